"""lineitem to COPY's binary format, nothing loaded: read, split and encoded by one thread.

An example program of the transcode crate does it, with the code that a load runs.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from harness.context import Context
from harness.outcome import Figure, Outcome

MB_PER_S_MIN = 400
EXAMPLE = ["cargo", "run", "-q", "--release", "-p", "howdah-transcode", "--example", "binary_throughput", "--"]
RATE = re.compile(r"([0-9]+) MB/s read, split and encoded")


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """The rate is the best of the example's passes."""
    path = context.data.lineitem().path
    work = f"{path.name} to binary, nothing loaded, {path.stat().st_size / 1e6:.0f} MB, one core"
    rate = Figure("read, split, encoded", "MB/s", target=MB_PER_S_MIN, higher_is_better=True)
    outcome = Outcome("encode_only", work, "", [rate])
    done = subprocess.run([*EXAMPLE, str(path)], cwd=context.root, capture_output=True, text=True, check=False)
    found = RATE.search(done.stdout)
    if done.returncode == 0 and found:
        rate.ours = float(found[1])
        outcome.runs = {"howdah": [{"rate": rate.ours}]}
    else:
        last_line = (done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["it printed no rate"])[-1]
        context.skip(f"{work}: {last_line}")
    yield outcome
