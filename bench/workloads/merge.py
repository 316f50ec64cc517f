"""Rows merged into a table with a primary key and two indexes.

400,000 changed ones into 4 million; and 100,000, half of them new, into a million.

The opponent is what an administrator types: \\copy to a staging table, then one INSERT ... ON CONFLICT DO UPDATE. For
the smaller merge, where what is done once weighs most, that table is a temporary one.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

from harness.context import Context
from harness.data import Dataset
from harness.outcome import WALL, Outcome, Target
from harness.paired import Side

from .scripts import one_by_one

EVERY = 10
# Of the smaller merge: of all records so many are the table, of which every so many-th is changed, and as many are new.
MIDDLING_SHARE = 4
MIDDLING_EVERY = 20
STAGING = "sensor_log_staging"


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """The table is filled anew before each load."""
    dataset = context.data.sensor_log()
    changed = dataclasses.replace(dataset, path=every_tenth(dataset.path))
    work = f"{dataset.rows // EVERY:,} changed rows merged into {dataset.work}"
    ours, theirs = into(context, dataset, changed, by_hand(context, changed))
    yield context.compare("merge", changed, ours, theirs, Target(WALL, 0.40), work=work)
    table = context.data.head(dataset, dataset.rows // MIDDLING_SHARE)
    new = table.rows // MIDDLING_EVERY
    # The rows that are in the table behind it are counted.
    path = changed_and_new(dataset.path, table.rows, new)
    records = dataclasses.replace(dataset, path=path, rows=table.rows + new)
    work = f"{2 * new:,} rows, half of them new, merged into {table.work}"
    ours, theirs = into(context, table, records, in_one_session(context, records))
    yield context.compare("merge_middling", records, ours, theirs, Target(WALL, 1.00), work=work)


def into(context: Context, table: Dataset, records: Dataset, theirs: Side) -> tuple[Side | None, Side]:
    """Both sides bring `records` into what `table` holds."""

    def fill() -> None:
        context.server.query(
            f"TRUNCATE {table.table}",
            f"COPY {table.table} FROM '{table.path}' {table.copy_options}",
            f"DROP TABLE IF EXISTS {STAGING}",
            f"VACUUM ANALYZE {table.table}",
            "CHECKPOINT",
        )

    ours = context.load(records, "--mode", "merge", "--key", "sensor_log_id")
    return ours and dataclasses.replace(ours, before=fill), dataclasses.replace(theirs, before=fill)


def by_hand(context: Context, changed: Dataset) -> Side:
    """Three commands of psql."""
    run = context.server.psql
    return Side(
        "psql \\copy to a staging table, INSERT ... ON CONFLICT",
        one_by_one(
            [
                run(f"CREATE TABLE {STAGING} (LIKE {changed.table})"),
                run(f"\\copy {STAGING} FROM '{changed.path}' {changed.copy_options}"),
                run(insert_or_update(changed.table)),
            ]
        ),
    )


def in_one_session(context: Context, records: Dataset) -> Side:
    """The same in one psql, with a temporary table."""
    return Side(
        "psql \\copy to a temporary table, INSERT ... ON CONFLICT",
        context.server.psql(
            f"CREATE TEMPORARY TABLE {STAGING} (LIKE {records.table})",
            f"\\copy {STAGING} FROM '{records.path}' {records.copy_options}",
            insert_or_update(records.table),
        ),
    )


def insert_or_update(table: str) -> str:
    """One statement for all rows."""
    settings = ", ".join(f"{column} = excluded.{column}" for column in ("location", "reading", "reading_date"))
    return f"INSERT INTO {table} SELECT * FROM {STAGING} ON CONFLICT (sensor_log_id) DO UPDATE SET {settings}"


def every_tenth(path: Path) -> Path:
    """A file with every tenth record of this one, its reading changed."""
    changed = path.with_name(f"{path.stem}-changed.csv")
    with path.open() as source, changed.open("w") as target:
        target.write(source.readline())
        target.writelines(with_other_reading(line) for line in itertools.islice(source, 0, None, EVERY))
    return changed


def changed_and_new(path: Path, rows: int, new: int) -> Path:
    """A file with so many of the first `rows` records of this one, their reading changed, and the `new` behind them."""
    mixed = path.with_name(f"{path.stem}-{rows}-mixed.csv")
    with path.open() as source, mixed.open("w") as target:
        target.write(source.readline())
        table = itertools.islice(source, rows)
        target.writelines(with_other_reading(line) for line in itertools.islice(table, 0, None, rows // new))
        target.writelines(itertools.islice(source, new))
    return mixed


def with_other_reading(line: str) -> str:
    """The record as if the sensor had told one more."""
    key, location, reading, rest = line.split(",", 3)
    return f"{key},{location},{int(reading) + 1},{rest}"
