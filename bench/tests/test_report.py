"""Verdicts and the table: a missed target is never hidden."""

from __future__ import annotations

import unittest

from harness import report
from harness.outcome import PEAK_RSS, WALL, Figure, Outcome


def pair(ratio: float, target: float | None) -> Figure:
    """A wall-time figure of two sides."""
    return Figure(WALL, "s", ours=ratio, theirs=1.0, ratio=ratio, ratio_min=ratio, ratio_max=ratio, target=target)


class Verdicts(unittest.TestCase):
    """What a figure says about its target."""

    def test_a_ratio_above_its_target_is_missed(self) -> None:
        self.assertEqual(pair(0.86, 0.85).verdict, "missed")
        self.assertEqual(pair(0.85, 0.85).verdict, "met")

    def test_a_rate_below_its_target_is_missed(self) -> None:
        rate = Figure("throughput", "GB/s", ours=1.4, target=1.5, higher_is_better=True)
        self.assertEqual(rate.verdict, "missed")
        rate.ours = 1.6
        self.assertEqual(rate.verdict, "met")

    def test_what_was_not_run_is_not_met(self) -> None:
        self.assertEqual(Figure(PEAK_RSS, "MiB", target=300).verdict, "not run")
        self.assertEqual(Figure(WALL, "s", theirs=2.0, target=0.85).verdict, "not run")


class Tables(unittest.TestCase):
    """The table of the README."""

    def test_the_worst_row_comes_first(self) -> None:
        good = Outcome("w", "good", "psql", [pair(0.5, 0.75)])
        bad = Outcome("w", "bad", "psql", [pair(1.2, 1.0)])
        lines = report.table([good, bad]).splitlines()
        self.assertTrue(lines[2].startswith("| bad "), lines[2])
        self.assertIn("**missed**", lines[2])

    def test_a_bar_in_a_name_does_not_end_its_cell(self) -> None:
        line = report.table([Outcome("w", "work", "zcat | psql", [pair(0.5, 0.75)])]).splitlines()[2]
        self.assertEqual(line.replace("\\|", "").count("|"), len(report.COLUMNS) + 1)

    def test_an_outcome_survives_its_json_form(self) -> None:
        outcome = Outcome("w", "work", "psql", [pair(0.5, 0.75)], "note", {"howdah": [{WALL: 1.0}]})
        self.assertEqual(Outcome.from_json(outcome.to_json()), outcome)


if __name__ == "__main__":
    unittest.main()
