"""title.principals.tsv.gz into text columns without an index, against `zcat | psql`."""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.outcome import CLIENT_CPU, WALL, Outcome, Target

from .psql import zcat_psql


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """One file, one table."""
    dataset = context.data.imdb("title.principals", gzip=True)
    targets = (Target(WALL, 0.62), Target(CLIENT_CPU, 0.6))
    yield context.compare("principals_gz", dataset, context.load(dataset), zcat_psql(context, dataset), *targets)
