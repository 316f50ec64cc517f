"""The chart: every comparison is on it, where its ratio puts it, and a missed aim can be told from a met one."""

from __future__ import annotations

import unittest
from xml.etree import ElementTree

from harness import chart
from harness.outcome import WALL, Figure, Outcome


def outcome(workload: str, work: str, ratio: float, target: float | None = 1.0) -> Outcome:
    """A pair with a spread of a tenth to both sides."""
    figure = Figure(
        WALL, "s", ours=ratio, theirs=1.0, ratio=ratio, ratio_min=ratio - 0.1, ratio_max=ratio + 0.1, target=target
    )
    return Outcome(workload, work, "zcat | psql & others <fast>", [figure, Figure(WALL, "ms", ours=45.0, target=150)])


def document(*outcomes: Outcome) -> dict[str, object]:
    """A result file, as far as the chart reads it."""
    return {"outcomes": [each.to_json() for each in outcomes]}


class Rows(unittest.TestCase):
    """Which comparisons are drawn."""

    def test_the_slowest_comes_first_and_what_has_no_ratio_not_at_all(self) -> None:
        found = chart.rows([document(outcome("a", "good", 0.5), outcome("b", "bad", 1.2))])
        self.assertEqual([row.work for row in found], ["bad", "good"])

    def test_a_workload_is_taken_from_the_first_document_that_has_it(self) -> None:
        first = document(outcome("a", "one", 0.5), outcome("a", "two", 0.6))
        second = document(outcome("a", "one, measured before", 0.7), outcome("b", "three", 0.4))
        found = chart.rows([first, second])
        self.assertEqual([row.work for row in found], ["two", "one", "three"])


class Drawing(unittest.TestCase):
    """What the file holds."""

    def drawn(self, *outcomes: Outcome) -> ElementTree.Element:
        """The chart, parsed: it is well-formed whatever the names."""
        return ElementTree.fromstring(chart.draw(chart.rows([document(*outcomes)])))

    def test_names_are_escaped_and_all_there(self) -> None:
        texts = [each.text for each in self.drawn(outcome("a", "a < b", 0.5)).iter() if each.text]
        self.assertIn("a < b", texts)
        self.assertIn("zcat | psql & others <fast>", texts)
        self.assertIn("0.50, aim 1", texts)

    def test_a_missed_aim_has_a_mark_of_its_own(self) -> None:
        def count(svg: ElementTree.Element, mark: str) -> int:
            return sum(each.tag.endswith(mark) for each in svg.iter())

        met, missed = self.drawn(outcome("a", "x", 0.5)), self.drawn(outcome("a", "x", 1.5))
        self.assertEqual((count(met, "circle"), count(met, "polygon")), (2, 1))
        self.assertEqual((count(missed, "circle"), count(missed, "polygon")), (1, 2))

    def test_everything_stays_on_the_chart(self) -> None:
        svg = self.drawn(outcome("a", "x", 0.0001 + 0.1), outcome("b", "y", 40.0))
        width, height = float(svg.get("width", 0)), float(svg.get("height", 0))
        for each in svg.iter():
            for name in ("x", "x1", "x2", "cx"):
                self.assertTrue(0 <= float(each.get(name, 0)) <= width, ElementTree.tostring(each))
            for name in ("y", "y1", "y2", "cy"):
                self.assertTrue(0 <= float(each.get(name, 0)) <= height, ElementTree.tostring(each))

    def test_half_and_twice_the_time_are_as_far_from_the_same(self) -> None:
        self.assertAlmostEqual(chart._x(1.0) - chart._x(0.5), chart._x(2.0) - chart._x(1.0))


if __name__ == "__main__":
    unittest.main()
