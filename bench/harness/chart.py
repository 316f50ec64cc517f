"""Draws ratios as a chart in SVG: a row for each comparison, slowest first, with the spread of its rounds and its aim.

The scale is logarithmic, so that half the time and twice the time stand as far from 1. The chart brings its own ground,
so that it can be read on light and dark pages; what colour says, a mark or a word says too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .outcome import WALL, Figure, Outcome

WIDTH = 1112
ROW_HEIGHT = 20
TOP = 84
BOTTOM = 40
WORK_X = 20
AGAINST_X = 350
PLOT_LEFT = 590
PLOT_RIGHT = 930
FIGURES_X = 950
TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"

GROUND = "#1b1f24"
TEXT = "#d0d7de"
DIM = "#9aa4af"
GRID = "#3a424b"
MET = "#7ee787"
MISSED = "#ffa657"


@dataclass(frozen=True)
class Row:
    """One comparison."""

    work: str
    against: str
    figure: Figure


def rows(documents: Iterable[dict[str, Any]]) -> list[Row]:
    """The wall times of all pairs, slowest first. A workload that several documents have is that of the first."""
    found: list[Row] = []
    known: set[str] = set()
    for document in documents:
        outcomes = [Outcome.from_json(each) for each in document["outcomes"]]
        for outcome in outcomes:
            if outcome.workload not in known:
                found += [Row(outcome.work, outcome.against, each) for each in outcome.figures if _is_drawn(each)]
        known |= {outcome.workload for outcome in outcomes}
    return sorted(found, key=lambda row: -row.figure.ratio)


def _is_drawn(figure: Figure) -> bool:
    return figure.measure == WALL and figure.ratio is not None


def draw(found: Sequence[Row]) -> str:
    """The chart as the text of an SVG file."""
    height = TOP + ROW_HEIGHT * len(found) + BOTTOM
    end = height - BOTTOM + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Wall time of howdah by that of others, for each comparison: median, smallest and largest of the "
        "rounds, and the aim</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{GROUND}"/>',
        f'<g font-family="{FONT}" font-size="11" fill="{TEXT}">',
        _text(WORK_X, 28, "Wall time of howdah / of the other; left of 1 howdah is faster", size=14),
        _legend(50),
        *(_tick(tick, end) for tick in TICKS),
        *(line for no, row in enumerate(found) for line in _row(row, TOP + ROW_HEIGHT * no)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(ratio: float) -> float:
    """Where a ratio stands; beyond the ends of the scale, at the end."""
    low, high = math.log(TICKS[0]), math.log(TICKS[-1])
    share = (math.log(max(ratio, 1e-9)) - low) / (high - low)
    return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * min(max(share, 0.0), 1.0)


def _text(x: float, y: float, text: str, *, fill: str = TEXT, size: int = 11, anchor: str = "start") -> str:
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(text)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str, *, width: float = 1) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{stroke}" stroke-width="{width:g}"/>'


def _mark(x: float, y: float, figure: Figure) -> str:
    """A dot where the aim is met or there is none; a diamond where it is missed."""
    if figure.verdict == "missed":
        points = f"{x:.1f},{y - 5:.1f} {x + 5:.1f},{y:.1f} {x:.1f},{y + 5:.1f} {x - 5:.1f},{y:.1f}"
        return f'<polygon points="{points}" fill="{MISSED}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{MET}"/>'


def _legend(y: float) -> str:
    met, missed = Figure(WALL, "s"), Figure(WALL, "s", theirs=1, ratio=2, target=1)
    return "".join(
        [
            _mark(WORK_X + 4, y - 4, met),
            _text(WORK_X + 14, y, "median of the rounds", fill=DIM),
            _mark(WORK_X + 149, y - 4, missed),
            _text(WORK_X + 160, y, "median that misses its aim", fill=DIM),
            _line(WORK_X + 335, y - 4, WORK_X + 365, y - 4, DIM, width=2),
            _text(WORK_X + 373, y, "smallest to largest", fill=DIM),
            _line(WORK_X + 505, y - 11, WORK_X + 505, y + 3, TEXT, width=2),
            _text(WORK_X + 513, y, "aim", fill=DIM),
        ]
    )


def _tick(tick: float, end: float) -> str:
    x = _x(tick)
    stroke = TEXT if tick == 1.0 else GRID
    return _line(x, TOP - 12, x, end, stroke) + _text(x, end + 16, f"{tick:g}", fill=DIM, anchor="middle")


def _row(row: Row, top: float) -> list[str]:
    figure, y, base = row.figure, top, top + 4
    missed = figure.verdict == "missed"
    aim = "" if figure.target is None else f", aim {figure.target:g}"
    parts = [
        _text(WORK_X, base, row.work),
        _text(AGAINST_X, base, row.against, fill=DIM),
        _line(_x(figure.ratio_min), y, _x(figure.ratio_max), y, MISSED if missed else MET, width=2),
    ]
    if figure.target is not None:
        parts.append(_line(_x(figure.target), y - 7, _x(figure.target), y + 7, TEXT, width=2))
    parts.append(_mark(_x(figure.ratio), y, figure))
    parts.append(_text(FIGURES_X, base, f"{figure.ratio:.2f}{aim}", fill=MISSED if missed else TEXT))
    return parts
