"""psql as the opponent, and what the rivals' modules are told about a dataset."""

from __future__ import annotations

from compare import psql_copy
from compare.rival import Load
from harness.context import Context
from harness.data import Dataset
from harness.paired import Side


def load_of(context: Context, dataset: Dataset) -> Load:
    """The dataset in the words of the rivals."""
    return Load(
        file=str(dataset.path),
        table=dataset.table,
        delimiter=dataset.delimiter,
        copy_options=dataset.copy_options,
        conninfo=context.server.conninfo,
        url=context.server.url,
        cores=context.cores,
    )


def psql(context: Context, dataset: Dataset) -> Side:
    """`psql \\copy` of a plain file."""
    return Side(psql_copy.NAME, psql_copy.command(load_of(context, dataset)))


def zcat_psql(context: Context, dataset: Dataset) -> Side:
    """`zcat | psql \\copy` of a gzip file."""
    return Side(psql_copy.GZIP_NAME, psql_copy.gzip_command(load_of(context, dataset)))
