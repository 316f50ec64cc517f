"""Runs one command and says what it cost: wall time, CPU and peak memory of its whole process tree.

The kernel's own account is read (wait4), so nothing is sampled. Two things to know: `ru_maxrss` is that of the
largest single process of the tree, not the sum; and a child starts with the resident size of the harness it was
forked from, about 20 MB, so smaller figures cannot be seen.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The end of a failed command's output that is shown.
TAIL_CHARACTERS = 2_000


@dataclass(frozen=True)
class Cost:
    """What one run took."""

    wall_s: float
    client_cpu_s: float
    peak_rss_mib: float


class CommandFailed(Exception):
    """The command ended with an error or ran out of time; `output` is the end of what it printed."""

    def __init__(self, command: Sequence[str], returncode: int, wall_s: float, output: str) -> None:
        self.output = output
        last_line = (output.strip().splitlines() or ["it printed nothing"])[-1]
        super().__init__(f"{command[0]} ended with {returncode} after {wall_s:.1f} s: {last_line}")


def run(command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float = 900) -> Cost:
    """Runs `command` to its end, with `env` added to this process's environment."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        # The whole session of the command is ended: it may be a pipeline.
        watchdog = threading.Timer(timeout_s, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            # In a session of its own, the command does not get the terminal's signal.
            os.killpg(process.pid, signal.SIGTERM)
            raise
        finally:
            watchdog.cancel()
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")[-TAIL_CHARACTERS:]
            raise CommandFailed(command, process.returncode, wall_s, text)
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
