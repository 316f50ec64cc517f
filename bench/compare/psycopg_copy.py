"""psycopg 3: `cursor.copy()` fed with the file's bytes, as its manual shows."""

from __future__ import annotations

from .rival import Load, Tools

NAME = "psycopg copy"
BLOCK_BYTES = 1 << 17


def install(tools: Tools) -> None:
    """With the C implementation."""
    tools.pip("psycopg[binary]==3.3.9")


def command(load: Load, tools: Tools) -> list[str]:
    """`load()` below, in the virtual environment."""
    return tools.python_command("compare.psycopg_copy", load)


def load(task: Load) -> None:
    """Copies the file block by block."""
    import psycopg

    with (
        psycopg.connect(task.conninfo) as connection,
        connection.cursor() as cursor,
        open(task.file, "rb") as file,
    ):
        with cursor.copy(f"COPY {task.table} FROM STDIN {task.copy_options}") as copy:
            while block := file.read(BLOCK_BYTES):
                copy.write(block)


if __name__ == "__main__":
    load(Load.from_arguments())
