"""title.principals.tsv, plain: against `psql \\copy`, and against server-side COPY of parts cut by hand.

The second needs a superuser, files on the server's host, and somebody who cuts them; cutting is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.data import Dataset
from harness.outcome import WALL, Outcome, Target
from harness.paired import Side
from harness.server import psql_command

from .psql import psql
from .scripts import at_once


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Both opponents on the same file."""
    dataset = context.data.imdb("title.principals", gzip=False)
    ours = context.load(dataset)
    yield context.compare("principals_plain", dataset, ours, psql(context, dataset), Target(WALL, 0.75))
    yield context.compare("principals_plain", dataset, ours, by_hand(context, dataset), Target(WALL, 1.15))


def by_hand(context: Context, dataset: Dataset) -> Side:
    """As many sessions as cores, each with its part of the file."""
    options = dataset.copy_options.replace(", HEADER true", "")
    commands = [
        psql_command(context.server.conninfo, f"COPY {dataset.table} FROM '{part}' {options}")
        for part in context.data.parts(dataset, context.cores)
    ]
    return Side(f"server-side COPY of {context.cores} parts", at_once(commands))
