"""The words for what came of a workload: figures, targets, verdicts; and their JSON form."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

WALL = "wall"
CLIENT_CPU = "client CPU"
SERVER_CPU = "server CPU"
BOTH_CPU = "client and server CPU"
PEAK_RSS = "peak memory"


@dataclass(frozen=True)
class Target:
    """What one measure has to reach; for pairs, the ratio of ours to theirs."""

    measure: str
    bound: float
    higher_is_better: bool = False


@dataclass
class Figure:
    """One measured quantity: medians of both sides, and the median and extremes of the rounds' ratios."""

    measure: str
    unit: str
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    ratio_min: float | None = None
    ratio_max: float | None = None
    target: float | None = None
    higher_is_better: bool = False

    @property
    def judged(self) -> float | None:
        """What the target is about: the ratio of a pair, else our own figure."""
        return self.ratio if self.theirs is not None else self.ours

    @property
    def strain(self) -> float:
        """How near to or beyond the target: above 1 is a miss. Unknown comes last."""
        if self.target is None or self.judged is None:
            return 0.0
        return self.target / self.judged if self.higher_is_better else self.judged / self.target

    @property
    def verdict(self) -> str:
        """met, missed, or why neither can be said."""
        if self.judged is None:
            return "not run"
        if self.target is None:
            return ""
        return "met" if self.strain <= 1 else "missed"


@dataclass
class Outcome:
    """Everything one comparison or check gave; raw runs kept, per side in the order of the rounds."""

    workload: str
    work: str
    against: str
    figures: list[Figure] = field(default_factory=list)
    note: str = ""
    runs: dict[str, list[dict[str, float]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values; verdicts are written out for readers without this program."""
        document = dataclasses.asdict(self)
        for figure, fields in zip(self.figures, document["figures"], strict=True):
            fields["verdict"] = figure.verdict
        return document

    @staticmethod
    def from_json(document: dict[str, Any]) -> Outcome:
        """The inverse of `to_json`."""
        figures = [Figure(**_without_verdict(each)) for each in document["figures"]]
        return Outcome(**{**document, "figures": figures})


def _without_verdict(figure: dict[str, Any]) -> dict[str, Any]:
    """A verdict follows from the rest and is not stored in a `Figure`."""
    return {name: value for name, value in figure.items() if name != "verdict"}
