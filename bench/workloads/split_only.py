"""Splitting alone, without a target: the example program of the transcode crate on heavily quoted CSV, one thread."""

from __future__ import annotations

import re
import statistics
import subprocess
from collections.abc import Iterator

from harness.context import Context
from harness.outcome import Figure, Outcome

GB_PER_S_MIN = 1.5
EXAMPLE = ["cargo", "run", "-q", "--release", "-p", "howdah-transcode", "--example", "split_throughput", "--"]


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """The example prints a line with `N GB/s` for each pass; every line is one run."""
    path = context.data.quoted()
    work = f"splitting alone, quoted CSV, {path.stat().st_size / 1e6:.0f} MB, one core"
    figure = Figure("throughput", "GB/s", target=GB_PER_S_MIN, higher_is_better=True)
    outcome = Outcome("split_only", work, "", [figure])
    done = subprocess.run([*EXAMPLE, str(path)], cwd=context.root, capture_output=True, text=True, check=False)
    rates = [float(rate) for rate in re.findall(r"([0-9.]+) GB/s", done.stdout)]
    if done.returncode == 0 and rates:
        figure.ours = statistics.median(rates)
        outcome.runs = {"howdah": [{"throughput": rate} for rate in rates]}
        outcome.note = "; ".join(done.stdout.strip().splitlines())
    else:
        context.skip(f"{work}: {(done.stderr.strip().splitlines() or ['printed no rate'])[-1]}")
    yield outcome
