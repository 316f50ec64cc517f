"""Every rival that installs, on the same files as howdah; the target is never to be slower.

A rival far too slow for a whole file gets its first rows, and so does howdah for that comparison. Where a
rival's table differs from howdah's (it keeps the quotes of IMDb's lists, say), the row says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from compare import (
    adbc_pyarrow,
    dlt_postgres,
    duckdb_postgres,
    parallel_copy,
    pgloader_csv,
    polars_adbc,
    psycopg_copy,
    sling_cli,
)
from compare.rival import NotInstalled, Tools
from harness.context import Context
from harness.data import Dataset
from harness.outcome import WALL, Outcome, Target
from harness.paired import Side

from .psql import load_of

RIVALS = (
    parallel_copy,
    duckdb_postgres,
    adbc_pyarrow,
    psycopg_copy,
    polars_adbc,
    sling_cli,
    dlt_postgres,
    pgloader_csv,
)
# Rounds for rivals that get only the first rows: their distance is not a matter of noise.
SLOW_ROUNDS = 3
NEVER_SLOWER = Target(WALL, 1.0)


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Text columns, typed columns, and the gzip file for those that read one."""
    tools = Tools(context.work / "venv", context.work, context.root / "bench")
    installed = [rival for rival in RIVALS if is_installed(rival, tools, context)]
    principals = context.data.imdb("title.principals", gzip=False)
    gzip = context.data.imdb("title.principals", gzip=True)
    lineitem = context.data.lineitem()
    for dataset in (principals, lineitem):
        for rival in installed:
            yield against(context, rival, dataset, tools)
    for rival in installed:
        if getattr(rival, "READS_GZIP", False):
            yield against(context, rival, gzip, tools)


def is_installed(rival: ModuleType, tools: Tools, context: Context) -> bool:
    """Installs it if need be; what does not install is noted."""
    try:
        rival.install(tools)
    except NotInstalled as reason:
        context.skip(f"{rival.NAME}: {reason}")
        return False
    return True


def against(context: Context, rival: ModuleType, dataset: Dataset, tools: Tools) -> Outcome | None:
    """One rival on one file."""
    rows_max: int = getattr(rival, "ROWS_MAX", dataset.rows)
    slow = rows_max < dataset.rows
    if slow:
        dataset = context.data.head(dataset, rows_max)
    own_table = getattr(rival, "OWN_TABLE", None)
    side = Side(
        rival.NAME,
        rival.command(load_of(context, dataset), tools),
        before=lambda: drop_schema(context, own_table),
        tables=[own_table] if own_table else [],
    )
    rounds_max = SLOW_ROUNDS if slow else None
    return context.compare("rivals", dataset, context.load(dataset), side, NEVER_SLOWER, rounds_max=rounds_max)


def drop_schema(context: Context, table: str | None) -> None:
    """A tool that makes its own table starts without it, as on the first day."""
    if table:
        context.server.query(f"DROP SCHEMA IF EXISTS {table.partition('.')[0]} CASCADE")
