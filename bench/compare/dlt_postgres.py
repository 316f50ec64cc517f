"""dlt with Arrow batches and CSV load files, its fastest way into PostgreSQL; it makes its own table."""

from __future__ import annotations

from .rival import Load, Tools

NAME = "dlt"
ROWS_MAX = 200_000
OWN_TABLE = "dlt_bench.loaded"


def install(tools: Tools) -> None:
    """dlt reads through pyarrow here."""
    tools.pip("dlt[postgres]==1.31.0", "pyarrow==26.0.1")


def command(load: Load, tools: Tools) -> list[str]:
    """`load()` below, in the virtual environment."""
    return tools.python_command("compare.dlt_postgres", load)


def load(task: Load) -> None:
    """One pipeline in a folder of its own, replaced at every run."""
    import os
    import tempfile

    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    import dlt
    from pyarrow import csv

    schema, name = OWN_TABLE.split(".")
    quote = False if task.delimiter == "\t" else '"'
    batches = csv.open_csv(task.file, parse_options=csv.ParseOptions(delimiter=task.delimiter, quote_char=quote))
    with tempfile.TemporaryDirectory() as folder:
        pipeline = dlt.pipeline(
            pipeline_name="bench",
            pipelines_dir=folder,
            destination=dlt.destinations.postgres(task.url),
            dataset_name=schema,
        )
        resource = dlt.resource(batches, name=name, write_disposition="replace")
        pipeline.run(resource, loader_file_format="csv").raise_on_failed_jobs()


if __name__ == "__main__":
    load(Load.from_arguments())
