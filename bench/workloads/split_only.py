"""Splitting alone, nothing loaded: the example program of the transcode crate on heavily quoted CSV, one thread.

Bytes are split as they are read, by pieces that fit the cache. A range of a file that turns out to begin inside quotes
is split once more from memory. Both ways are held against the target, for the server version that is
slower to split for.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from harness.context import Context
from harness.outcome import Figure, Outcome

GB_PER_S_MIN = 1.5
EXAMPLE = ["cargo", "run", "-q", "--release", "-p", "howdah-transcode", "--example", "split_throughput", "--"]
RATES = re.compile(r"as it is read +([0-9.]+) GB/s, once more +([0-9.]+) GB/s")


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """The example prints a line per server version; each rate is the best of its passes."""
    path = context.data.quoted()
    work = f"splitting alone, quoted CSV, {path.stat().st_size / 1e6:.0f} MB, one core"
    as_read = Figure("as it is read", "GB/s", target=GB_PER_S_MIN, higher_is_better=True)
    twice = Figure("all ranges twice", "GB/s", target=GB_PER_S_MIN, higher_is_better=True)
    outcome = Outcome("split_only", work, "", [as_read, twice])
    command = [*EXAMPLE, str(path), "csv"]
    done = subprocess.run(command, cwd=context.root, capture_output=True, text=True, check=False)
    passes = [(float(read), float(again)) for read, again in RATES.findall(done.stdout)]
    if done.returncode == 0 and passes:
        as_read.ours = min(read for read, _ in passes)
        twice.ours = min(1 / (1 / read + 1 / again) for read, again in passes)
        outcome.runs = {"howdah": [{"read": read, "again": again} for read, again in passes]}
    else:
        last_line = (done.stderr.strip().splitlines() or ["it printed no rate"])[-1]
        context.skip(f"{work}: {last_line}")
    yield outcome
