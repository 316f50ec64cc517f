"""DuckDB with its postgres extension: `INSERT INTO pg.t SELECT * FROM read_csv(...)`, which sends binary COPY."""

from __future__ import annotations

from .rival import Load, Tools

NAME = "DuckDB"
READS_GZIP = True


def install(tools: Tools) -> None:
    """The extension comes as a package too: `INSTALL postgres` would download it."""
    tools.pip("duckdb==1.5.5", "duckdb-extension-postgres-scanner==1.5.5")


def command(load: Load, tools: Tools) -> list[str]:
    """`load()` below, in the virtual environment."""
    return tools.python_command("compare.duckdb_postgres", load)


def load(task: Load) -> None:
    """Text tables are read as text, as COPY would; typed ones are sniffed and cast."""
    from pathlib import Path

    import duckdb
    import duckdb_extension_postgres_scanner as package

    (extension,) = Path(package.__file__).parent.glob("extensions/*/postgres_scanner.duckdb_extension")
    schema, name = task.schema_and_name
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"ATTACH '{task.conninfo}' AS pg (TYPE postgres)")
    options = "delim='\t', quote='', all_varchar=true" if task.delimiter == "\t" else "delim=','"
    connection.execute(f"INSERT INTO pg.{schema}.{name} SELECT * FROM read_csv('{task.file}', header=true, {options})")


if __name__ == "__main__":
    load(Load.from_arguments())
