"""The same rows into daily partitions, with a primary key and two indexes, which are all there at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from harness.context import Context
from harness.outcome import WALL, Outcome, Target

from .psql import psql, server_copy


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """One \\copy into the partitioned table, and server-side COPY in as many sessions as cores."""
    dataset = dataclasses.replace(context.data.sensor_log(), table="sensor_log_daily")
    ours = context.load(dataset)
    for theirs, *reach in ((psql(context, dataset), Target(WALL, 0.30)), (server_copy(context, dataset),)):
        yield context.compare(
            "partitioned", dataset, ours, theirs, *reach, work=f"{dataset.work}, into daily partitions"
        )
