"""ADBC's PostgreSQL driver fed by pyarrow's CSV reader: `adbc_ingest`, which sends binary COPY."""

from __future__ import annotations

from typing import Any

from .rival import Load, Tools

NAME = "ADBC"
READS_GZIP = True


def install(tools: Tools) -> None:
    """Driver and reader."""
    tools.pip("adbc-driver-postgresql==1.13.0", "pyarrow==26.0.1")


def command(load: Load, tools: Tools) -> list[str]:
    """`load()` below, in the virtual environment."""
    return tools.python_command("compare.adbc_pyarrow", load)


def arrow_types(cursor: Any, schema: str, name: str) -> dict[str, Any]:
    """The Arrow type that binary COPY needs for each column of the table."""
    import pyarrow

    types = {
        "bigint": pyarrow.int64(),
        "integer": pyarrow.int32(),
        "numeric": pyarrow.decimal128(15, 2),
        "date": pyarrow.date32(),
    }
    cursor.execute(
        "SELECT column_name, data_type FROM information_schema.columns "
        f"WHERE table_schema = '{schema}' AND table_name = '{name}' ORDER BY ordinal_position"
    )
    return {column: types.get(data_type, pyarrow.string()) for column, data_type in cursor.fetchall()}


def load(task: Load) -> None:
    """Streams record batches, so that memory stays bounded."""
    import adbc_driver_postgresql.dbapi
    from pyarrow import csv

    schema, name = task.schema_and_name
    with adbc_driver_postgresql.dbapi.connect(task.url) as connection, connection.cursor() as cursor:
        types = arrow_types(cursor, schema, name)
        reader = csv.open_csv(
            task.file,
            read_options=csv.ReadOptions(column_names=list(types), skip_rows=1),
            parse_options=csv.ParseOptions(
                delimiter=task.delimiter, quote_char=False if task.delimiter == "\t" else '"'
            ),
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
        cursor.adbc_ingest(name, reader, mode="append", db_schema_name=schema)
        connection.commit()


if __name__ == "__main__":
    load(Load.from_arguments())
