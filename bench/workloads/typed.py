"""Typed columns, against `psql \\copy`: TPC-H lineitem and the real flights of 2013. Never slower is the target."""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.outcome import WALL, Outcome, Target

from .psql import psql


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Plain files, no index."""
    for dataset in (context.data.lineitem(), context.data.flights()):
        yield context.compare("typed", dataset, context.load(dataset), psql(context, dataset), Target(WALL, 1.0))
