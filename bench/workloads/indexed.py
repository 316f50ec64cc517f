"""A table with a primary key and two indexes, which are all there at the end: filled from empty, and appended to.

The opponents keep the indexes, in one session and in as many as cores, or drop them and build them by hand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from harness.context import Context
from harness.data import Dataset
from harness.outcome import WALL, Outcome, Target
from harness.paired import Side

from .psql import psql, server_copy
from .scripts import one_by_one

DROP = (
    "ALTER TABLE sensor_log DROP CONSTRAINT sensor_log_pkey",
    "DROP INDEX sensor_log_location_index, sensor_log_reading_date_index",
)
BUILD = (
    "ALTER TABLE sensor_log ADD PRIMARY KEY (sensor_log_id)",
    "CREATE INDEX sensor_log_location_index ON sensor_log (location)",
    "CREATE INDEX sensor_log_reading_date_index ON sensor_log (reading_date)",
)
APPENDED_ROWS = 40_000


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """The empty table against three opponents, then the full one."""
    dataset = context.data.sensor_log()
    ours = context.load(dataset)
    for theirs, reach in (
        (psql(context, dataset), 0.30),
        (server_copy(context, dataset), 0.40),
        (by_hand(context, dataset), 0.60),
    ):
        yield context.compare("indexed", dataset, ours, theirs, Target(WALL, reach))
    yield appended(context, dataset)


def by_hand(context: Context, dataset: Dataset) -> Side:
    """What an administrator types: drop, \\copy, build again.

    With the server's own maintenance_work_mem: with 1 GB the three builds took 4.7 to 5.1 s instead of 3.9 to 4.4.
    """
    run = context.server.psql
    copy = psql(context, dataset).command
    return Side("drop, psql \\copy, build by hand", one_by_one([run(*DROP), list(copy), run(*BUILD)]))


def appended(context: Context, dataset: Dataset) -> Outcome | None:
    """A hundredth more rows for a table that is full: building the indexes anew would be a waste."""
    more = dataclasses.replace(
        dataset, path=following(dataset.path, dataset.rows, APPENDED_ROWS), rows=dataset.rows + APPENDED_ROWS
    )
    options = dataset.copy_options

    def fill() -> None:
        context.server.query(
            *DROP, f"COPY {dataset.table} FROM '{dataset.path}' {options}", *BUILD, "ANALYZE sensor_log", "CHECKPOINT"
        )

    ours = context.load(more)
    ours = ours and dataclasses.replace(ours, before=fill)
    theirs = dataclasses.replace(psql(context, more), before=fill)
    work = f"{APPENDED_ROWS:,} rows appended to {dataset.work}"
    return context.compare("indexed", more, ours, theirs, Target(WALL, 1.10), work=work)


def following(path: Path, after: int, rows: int) -> Path:
    """A file with the next `rows` keys behind `after`."""
    more = path.with_name(f"{path.stem}-more.csv")
    with path.open() as source, more.open("w") as target:
        target.write(source.readline())
        for number in range(1, rows + 1):
            _, rest = source.readline().split(",", 1)
            target.write(f"{after + number},{rest}")
    return more
