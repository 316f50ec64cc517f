"""400,000 changed rows merged into 4 million, with a primary key and two indexes.

The opponent is what an administrator types: \\copy to a staging table, then one INSERT ... ON CONFLICT DO UPDATE.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from harness.context import Context
from harness.data import Dataset
from harness.outcome import WALL, Outcome, Target
from harness.paired import Side

from .scripts import one_by_one

EVERY = 10
STAGING = "sensor_log_staging"


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Every tenth row of the table comes with another reading; the table is filled anew before each load."""
    dataset = context.data.sensor_log()
    changed = dataclasses.replace(dataset, path=every_tenth(dataset.path))

    def fill() -> None:
        context.server.query(
            f"TRUNCATE {dataset.table}",
            f"COPY {dataset.table} FROM '{dataset.path}' {dataset.copy_options}",
            f"DROP TABLE IF EXISTS {STAGING}",
            f"VACUUM ANALYZE {dataset.table}",
            "CHECKPOINT",
        )

    ours = context.load(changed, "--mode", "merge", "--key", "sensor_log_id")
    ours = ours and dataclasses.replace(ours, before=fill)
    theirs = dataclasses.replace(by_hand(context, changed), before=fill)
    work = f"{dataset.rows // EVERY:,} changed rows merged into {dataset.work}"
    yield context.compare("merge", changed, ours, theirs, Target(WALL, 0.40), work=work)


def by_hand(context: Context, changed: Dataset) -> Side:
    """Three commands of psql."""
    run = context.server.psql
    columns = ("location", "reading", "reading_date")
    settings = ", ".join(f"{column} = excluded.{column}" for column in columns)
    merge = f"INSERT INTO {changed.table} SELECT * FROM {STAGING} ON CONFLICT (sensor_log_id) DO UPDATE SET {settings}"
    return Side(
        "psql \\copy to a staging table, INSERT ... ON CONFLICT",
        one_by_one(
            [
                run(f"CREATE TABLE {STAGING} (LIKE {changed.table})"),
                run(f"\\copy {STAGING} FROM '{changed.path}' {changed.copy_options}"),
                run(merge),
            ]
        ),
    )


def every_tenth(path: Path) -> Path:
    """A file with every tenth record of this one, its reading changed."""
    changed = path.with_name(f"{path.stem}-changed.csv")
    with path.open() as source, changed.open("w") as target:
        target.write(source.readline())
        for number, line in enumerate(source):
            if number % EVERY == 0:
                key, location, reading, rest = line.split(",", 3)
                target.write(f"{key},{location},{int(reading) + 1},{rest}")
    return changed
