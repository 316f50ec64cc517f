"""polars: `read_csv` and `write_database(engine="adbc")`; the whole file is held in memory."""

from __future__ import annotations

from .rival import Load, Tools

NAME = "polars"
READS_GZIP = True


def install(tools: Tools) -> None:
    """polars writes through ADBC."""
    tools.pip("polars==2.1.0", "adbc-driver-postgresql==1.13.0", "pyarrow==26.0.1")


def command(load: Load, tools: Tools) -> list[str]:
    """`load()` below, in the virtual environment."""
    return tools.python_command("compare.polars_adbc", load)


def load(task: Load) -> None:
    """Text tables are read as text; for others the table's types are asked for."""
    import adbc_driver_postgresql.dbapi
    import polars

    schema, name = task.schema_and_name
    types = {
        "bigint": polars.Int64,
        "integer": polars.Int32,
        "numeric": polars.Decimal(15, 2),
        "date": polars.Date,
    }
    with adbc_driver_postgresql.dbapi.connect(task.url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            f"WHERE table_schema = '{schema}' AND table_name = '{name}' ORDER BY ordinal_position"
        )
        columns = {column: types.get(data_type, polars.String) for column, data_type in cursor.fetchall()}
        frame = polars.read_csv(
            task.file,
            separator=task.delimiter,
            quote_char=None if task.delimiter == "\t" else '"',
            schema=columns,
        )
        frame.write_database(task.table, connection, engine="adbc", if_table_exists="append")


if __name__ == "__main__":
    load(Load.from_arguments())
