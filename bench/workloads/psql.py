"""psql as the opponent, and what the rivals' modules are told about a dataset."""

from __future__ import annotations

from compare import psql_copy
from compare.rival import Load
from harness.context import Context
from harness.data import Dataset
from harness.paired import Side
from harness.server import psql_command

from .scripts import at_once


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


def server_copy(context: Context, dataset: Dataset) -> Side:
    """Server-side COPY in as many sessions as cores, each with its part of the file, which was cut before."""
    options = dataset.copy_options.replace(", HEADER true", "")
    commands = [
        psql_command(context.server.conninfo, f"COPY {dataset.table} FROM '{part}' {options}")
        for part in context.data.parts(dataset, context.cores)
    ]
    return Side(f"server-side COPY of {context.cores} parts", at_once(commands))
