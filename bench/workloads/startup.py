"""How long a tiny load takes: 1 KB, the ledger on, beside a local server.

The target is the time from start to the first byte of COPY. The whole load is measured, from the start of the
process to its end: an upper bound that needs no look inside, so meeting it proves the target.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from harness import paired
from harness.context import Context
from harness.measure import CommandFailed
from harness.outcome import WALL, Figure, Outcome
from harness.paired import Comparison, WrongRows

RUNS = 21
WALL_MS_MAX = 150


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """The first run makes the ledger and is not counted."""
    dataset = context.data.tiny()
    ours = context.load(dataset)
    work = f"{dataset.path.stat().st_size} bytes, whole load, ledger on"
    figure = Figure(WALL, "ms", target=WALL_MS_MAX)
    outcome = Outcome("startup", work, "", [figure])
    if ours:
        comparison = Comparison("startup", work, ours, ours, [dataset.table], dataset.rows)
        try:
            runs = [paired.run_once(context.server, comparison, ours) for _ in range(RUNS + 1)][1:]
        except (CommandFailed, WrongRows) as error:
            context.skip(f"{work}: {error}")
        else:
            figure.ours = 1000 * statistics.median(run[WALL] for run in runs)
            outcome.runs = {ours.name: runs}
    yield outcome
