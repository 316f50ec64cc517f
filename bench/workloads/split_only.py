"""Splitting alone, nothing loaded: the example program of the transcode crate on heavily quoted CSV, one thread.

A stream is split in one pass (scan); a file cut by range takes a pass before it (transition), to learn how the quotes
stand at each cut. Both ways are held against the target, for the server version that is slower to split for.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from harness.context import Context
from harness.outcome import Figure, Outcome

GB_PER_S_MIN = 1.5
EXAMPLE = ["cargo", "run", "-q", "--release", "-p", "howdah-transcode", "--example", "split_throughput", "--"]
RATES = re.compile(r"scan +([0-9.]+) GB/s, transition +([0-9.]+) GB/s")


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """The example prints a line per server version; each rate is the best of its passes."""
    path = context.data.quoted()
    work = f"splitting alone, quoted CSV, {path.stat().st_size / 1e6:.0f} MB, one core"
    stream = Figure("stream", "GB/s", target=GB_PER_S_MIN, higher_is_better=True)
    ranges = Figure("file cut by range", "GB/s", target=GB_PER_S_MIN, higher_is_better=True)
    outcome = Outcome("split_only", work, "", [stream, ranges])
    command = [*EXAMPLE, str(path), "csv"]
    done = subprocess.run(command, cwd=context.root, capture_output=True, text=True, check=False)
    passes = [(float(scan), float(transition)) for scan, transition in RATES.findall(done.stdout)]
    if done.returncode == 0 and passes:
        stream.ours = min(scan for scan, _ in passes)
        ranges.ours = min(1 / (1 / scan + 1 / transition) for scan, transition in passes)
        outcome.runs = {"howdah": [{"scan": scan, "transition": transition} for scan, transition in passes]}
    else:
        last_line = (done.stderr.strip().splitlines() or ["it printed no rate"])[-1]
        context.skip(f"{work}: {last_line}")
    yield outcome
