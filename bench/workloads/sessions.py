"""`--jobs auto` against every fixed number of sessions up to twice the cores, on the files of the other workloads.

The best fixed number differs from file to file, and nobody knows it beforehand: auto must come within a twentieth of
it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness.context import Context
from harness.data import Dataset
from harness.outcome import WALL, Outcome, Target

NEAR_THE_BEST = Target(WALL, 1.05)


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Each file with each fixed number as the opponent."""
    for dataset in datasets(context):
        for jobs in range(1, 2 * context.cores + 1):
            auto, fixed = context.load(dataset), context.load(dataset, "--jobs", str(jobs))
            if fixed:
                theirs = dataclasses.replace(fixed, name=f"howdah --jobs {jobs}")
                yield context.compare("sessions", dataset, auto, theirs, NEAR_THE_BEST)


def datasets(context: Context) -> Iterator[Dataset]:
    """Text, plain and packed; typed columns; indexes; partitions; documents."""
    yield context.data.imdb("title.principals", gzip=False)
    yield context.data.imdb("title.principals", gzip=True)
    yield context.data.lineitem()
    sensor_log = context.data.sensor_log()
    yield sensor_log
    yield dataclasses.replace(sensor_log, table="sensor_log_daily")
    yield context.data.documents()
