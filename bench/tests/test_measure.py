"""The harness measures what it says it does."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

from harness import measure
from harness.data import Data
from workloads.scripts import at_once, one_by_one


class Measure(unittest.TestCase):
    """One command."""

    def test_cpu_of_children_counts(self) -> None:
        burn = "import time\nwhile time.process_time() < 0.2: pass"
        cost = measure.run(["bash", "-c", f"{sys.executable} -c '{burn}' | cat"])
        self.assertGreaterEqual(cost.client_cpu_s, 0.19)

    def test_peak_memory_of_a_child_counts(self) -> None:
        cost = measure.run(["bash", "-c", f"{sys.executable} -c 'bytearray(200 << 20)' | cat"])
        self.assertGreater(cost.peak_rss_mib, 200)

    def test_a_failure_shows_the_end_of_the_output(self) -> None:
        with self.assertRaisesRegex(measure.CommandFailed, "no such thing"):
            measure.run(["bash", "-c", "echo no such thing >&2; exit 3"])

    def test_a_command_that_never_ends_is_ended(self) -> None:
        with self.assertRaises(measure.CommandFailed):
            measure.run(["sleep", "60"], timeout_s=0.1)


class Scripts(unittest.TestCase):
    """Several commands as one."""

    def test_a_failure_of_one_fails_all(self) -> None:
        for script in (one_by_one, at_once):
            for commands in ([["true"], ["false"]], [["false"], ["true"]]):
                with self.assertRaises(measure.CommandFailed):
                    measure.run(script(commands))
            measure.run(script([["true"], ["true"]]))


class Parts(unittest.TestCase):
    """Files cut by hand for server-side COPY."""

    def test_parts_hold_every_row_once_and_no_header(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "t.csv"
            rows = [f"{number},{'x' * (number % 7)}\n" for number in range(1_000)]
            path.write_text("id,text\n" + "".join(rows))
            for count in (1, 2, 3, 7):
                parts = Data.parts(path, count, header=True)
                self.assertEqual("".join(part.read_text() for part in parts), "".join(rows))


if __name__ == "__main__":
    unittest.main()
