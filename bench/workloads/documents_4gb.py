"""200,000 documents of 20 kB as jsonb, 4 GB: the workload `documents` at full size."""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.outcome import WALL, Outcome, Target

from .psql import psql


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """One plain file, no index."""
    dataset = context.data.documents(200_000)
    yield context.compare("documents_4gb", dataset, context.load(dataset), psql(context, dataset), Target(WALL, 0.5))
