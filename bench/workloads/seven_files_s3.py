"""IMDb's seven gzip files from an S3-compatible server over HTTP, into their seven staging tables.

The opponents are the published sample's way without its extension: COPY inside the server from `curl | gunzip`, one
session a file, one after the other and all at once. They need a superuser and URLs signed beforehand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from harness.context import Context
from harness.data import IMDB_TABLES, Dataset
from harness.outcome import WALL, Outcome, Target
from harness.paired import Side
from harness.s3 import S3Server, find_versitygw
from harness.server import psql_command

from .scripts import at_once, one_by_one

BUCKET = "imdb"


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Both opponents on the same seven objects."""
    datasets = [context.data.imdb(stem, gzip=True) for stem in IMDB_TABLES]
    everything = dataclasses.replace(datasets[0], rows=sum(dataset.rows for dataset in datasets))
    tables = list(IMDB_TABLES.values())
    with S3Server(find_versitygw(context.root), context.work) as s3:
        s3.create_bucket(BUCKET)
        for dataset in datasets:
            s3.upload(BUCKET, key(dataset), dataset.path)
        pattern = f"s3://{BUCKET}/{{table}}.tsv.gz"
        ours = context.load_command([pattern, "--copy-options", datasets[0].copy_options], s3.env)
        commands = copy_from_curl(context, s3, datasets)
        for theirs, bound in (
            (Side("COPY FROM PROGRAM curl, file by file", one_by_one(commands)), 0.6),
            (Side("COPY FROM PROGRAM curl, all at once", at_once(commands)), 0.9),
        ):
            work = f"seven files, gzip, from S3, {everything.rows:,} rows"
            yield context.compare(
                "seven_files_s3", everything, ours, theirs, Target(WALL, bound), work=work, tables=tables
            )


def key(dataset: Dataset) -> str:
    """Objects are named after their tables, which is what `{table}` matches."""
    return f"{dataset.table}.tsv.gz"


def copy_from_curl(context: Context, s3: S3Server, datasets: Sequence[Dataset]) -> list[list[str]]:
    """One psql a file; the server's own shell runs curl."""
    commands = []
    for dataset in datasets:
        url = s3.presign("GET", f"/{BUCKET}/{key(dataset)}")
        program = f'curl -sSf "{url}" | gunzip'
        statement = f"COPY {dataset.table} FROM PROGRAM '{program}' {dataset.copy_options}"
        commands.append(psql_command(context.server.conninfo, statement))
    return commands
