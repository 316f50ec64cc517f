"""psql as the opponent, and what the rivals' modules are told about a dataset."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

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
    parts = context.data.parts(dataset.path, context.cores, header=True)
    options = dataset.copy_options.replace(", HEADER true", "")
    return Side(f"server-side COPY of {context.cores} parts", _copies(context, dataset, parts, options))


def server_copy_text(context: Context, dataset: Dataset) -> Side:
    """The same of parts that were written as COPY text before, which the server reads with less CPU than csv."""
    parts = context.data.parts(_as_text(context, dataset), context.cores, header=False)
    return Side(f"server-side COPY text of {context.cores} parts", _copies(context, dataset, parts, "(FORMAT text)"))


def _copies(context: Context, dataset: Dataset, parts: Sequence[Path], options: str) -> list[str]:
    copies = (f"COPY {dataset.table} FROM '{part}' {options}" for part in parts)
    return at_once([psql_command(context.server.conninfo, copy) for copy in copies])


def _as_text(context: Context, dataset: Dataset) -> Path:
    """The rows of a plain file as the server writes them as COPY text; made once."""
    path = dataset.path.with_name(f"{dataset.path.stem}-text.tsv")
    if not path.exists() or path.stat().st_mtime < dataset.path.stat().st_mtime:
        context.server.empty([dataset.table])
        subprocess.run(psql(context, dataset).command, check=True)
        part = path.with_suffix(".new")
        subprocess.run(context.server.psql(f"\\copy {dataset.table} TO '{part}'"), check=True)
        part.rename(path)
    return path
