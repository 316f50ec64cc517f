"""Writes outcomes for people: the table of a README, worst row first, and the head that says where it was measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .outcome import CLIENT_CPU, PEAK_RSS, SERVER_CPU, WALL, Figure, Outcome

COLUMNS = (
    "work",
    "against",
    "measure",
    "howdah",
    "other",
    "ratio (min to max)",
    "target",
    "client CPU",
    "server CPU",
    "peak memory",
    "verdict",
)


def markdown(document: dict[str, Any]) -> str:
    """The whole page of one result file."""
    machine = document["machine"]
    settings = ", ".join(f"{name} {value}" for name, value in document["server"].items())
    head = [
        f"Measured {document['date']} at {document['revision']} on {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_gib']} GiB, Linux {machine['kernel']}; load average before: "
        f"{machine['load_average_at_start']:.2f}. Client and server share the machine. "
        f"Medians of {document['rounds']} paired rounds; ratio = howdah / other, below 1 means howdah needs less.",
        "",
        f"Server: {settings}.",
        "",
    ]
    if document["a_against_a"]:
        head += [
            "**Every opponent against itself:** the ratios show the noise of the machine, not howdah.",
            "",
        ]
    if document["not_run"]:
        head += [f"Not run: {'; '.join(document['not_run'])}.", ""]
    return "\n".join([*head, table(Outcome.from_json(each) for each in document["outcomes"])])


def table(outcomes: Iterable[Outcome]) -> str:
    """A markdown table, the row that strains its target most first."""
    lines = [(figure.strain, _cells(outcome, figure)) for outcome in outcomes for figure in _headline(outcome)]
    lines.sort(key=lambda line: -line[0])
    rows = [COLUMNS, tuple("---" for _ in COLUMNS), *(cells for _, cells in lines)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + "\n"


def _escaped(text: str) -> str:
    """A bar inside a cell would end it."""
    return text.replace("|", "\\|")


def _headline(outcome: Outcome) -> list[Figure]:
    """The figures that get a row: those with a target, and the wall time."""
    return [figure for figure in outcome.figures if figure.target is not None or figure.measure == WALL]


def _cells(outcome: Outcome, figure: Figure) -> tuple[str, ...]:
    sign = ">=" if figure.higher_is_better else "<="
    verdict = "**missed**" if figure.verdict == "missed" else figure.verdict
    others = {each.measure: each for each in outcome.figures}
    return (
        _escaped(outcome.work),
        _escaped(outcome.against),
        figure.measure,
        _amount(figure.ours, figure.unit),
        _amount(figure.theirs, figure.unit),
        _ratio(figure),
        "" if figure.target is None else f"{sign} {figure.target:g}",
        *(_pair(others.get(name)) for name in (CLIENT_CPU, SERVER_CPU, PEAK_RSS)),
        _escaped("; ".join(word for word in (verdict, outcome.note) if word)),
    )


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.2f} {unit}"


def _ratio(figure: Figure) -> str:
    if figure.ratio is None:
        return ""
    return f"{figure.ratio:.2f} ({figure.ratio_min:.2f} to {figure.ratio_max:.2f})"


def _pair(figure: Figure | None) -> str:
    """Ours and theirs in one cell, for the measures that are beside the point of the row."""
    if figure is None:
        return ""
    sides = [_amount(side, "").strip() for side in (figure.ours, figure.theirs) if side is not None]
    return f"{' / '.join(sides)} {figure.unit}"
