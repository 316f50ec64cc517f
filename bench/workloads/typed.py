"""Typed columns, against `psql \\copy`: TPC-H lineitem, and the real flights of 2013, where the aim is never slower."""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.outcome import BOTH_CPU, WALL, Outcome, Target

from .psql import psql


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Plain files, no index."""
    lineitem, flights = context.data.lineitem(), context.data.flights()
    targets = (Target(WALL, 0.40), Target(BOTH_CPU, 0.75))
    yield context.compare("typed", lineitem, context.load(lineitem), psql(context, lineitem), *targets)
    yield context.compare("typed", flights, context.load(flights), psql(context, flights), Target(WALL, 1.0))
