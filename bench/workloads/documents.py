"""Documents of 20 kB as jsonb, against `psql \\copy`: the server's time goes into reading and compressing them."""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.outcome import WALL, Outcome, Target

from .psql import psql


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """One plain file, no index."""
    dataset = context.data.documents()
    yield context.compare("documents", dataset, context.load(dataset), psql(context, dataset), Target(WALL, 0.5))
