"""What howdah holds in memory: 2 GB of CSV with rows of 8 MB in it, 32 sessions."""

from __future__ import annotations

from collections.abc import Iterator

from harness import paired
from harness.context import Context
from harness.measure import CommandFailed
from harness.outcome import PEAK_RSS, WALL, Figure, Outcome
from harness.paired import Comparison, WrongRows

JOBS = 32
PEAK_MIB_MAX = 300


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """One run is enough: a peak is not a matter of noise."""
    dataset = context.data.big_rows()
    context.server.query(
        "SET client_min_messages TO warning",
        "DROP TABLE IF EXISTS bigrow",
        "CREATE TABLE bigrow (id bigint, body text)",
    )
    ours = context.load(dataset, "--jobs", str(JOBS))
    work = f"{dataset.path.stat().st_size / 1e9:.1f} GB csv with rows of 8 MB, {JOBS} jobs"
    peak = Figure(PEAK_RSS, "MiB", target=PEAK_MIB_MAX)
    wall = Figure(WALL, "s")
    outcome = Outcome("memory", work, "", [peak, wall])
    if ours:
        try:
            run = paired.run_once(
                context.server, Comparison("memory", work, ours, ours, ["bigrow"], dataset.rows), ours
            )
        except (CommandFailed, WrongRows) as error:
            context.skip(f"{work}: {error}")
        else:
            peak.ours, wall.ours = run[PEAK_RSS], run[WALL]
            outcome.runs = {ours.name: [run]}
    context.server.query("DROP TABLE bigrow")
    yield outcome
