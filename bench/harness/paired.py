"""Paired runs: ours and theirs in turn on the same table, the order changing every round.

Neighbouring runs see the same machine, so the ratio within a round is steadier than either time; the median of the
rounds' ratios is what a target is held against. Every run starts with an empty table right after a CHECKPOINT, and
counts only if the table then has the rows the file has.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from . import measure
from .outcome import BOTH_CPU, CLIENT_CPU, PEAK_RSS, SERVER_CPU, WALL, Figure, Outcome, Target
from .server import Server

Run = dict[str, float]
UNITS = {WALL: "s", CLIENT_CPU: "s", SERVER_CPU: "s", BOTH_CPU: "s", PEAK_RSS: "MiB"}


@dataclass(frozen=True)
class Side:
    """One way to do the work.

    `before` puts right what the tool needs and is not measured; `tables` are its own ones, for a tool that cannot
    fill a table made by somebody else.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    tables: Sequence[str] = ()


@dataclass(frozen=True)
class Comparison:
    """Two ways to fill `tables` with `rows` rows. `ours` is None where howdah is not built."""

    workload: str
    work: str
    ours: Side | None
    theirs: Side
    tables: Sequence[str]
    rows: int
    targets: Sequence[Target] = ()
    rounds_max: int | None = None


class WrongRows(Exception):
    """A tool ended well, but the table does not have the file's rows."""


def compare(server: Server, comparison: Comparison, rounds: int, progress: Callable[[str], None]) -> Outcome:
    """Warms both sides up, checks that they store the same values, then runs the rounds."""
    sides = [side for side in (comparison.ours, comparison.theirs) if side]
    values = {}
    for side in sides:
        run_once(server, comparison, side)
        values[side.name] = _fingerprint(server, side.tables or comparison.tables)
    runs: dict[str, list[Run]] = {side.name: [] for side in sides}
    for number in range(min(rounds, comparison.rounds_max or rounds)):
        for side in sides if number % 2 == 0 else reversed(sides):
            run = run_once(server, comparison, side)
            runs[side.name].append(run)
            progress(f"round {number + 1} {side.name}: {run[WALL]:.2f} s")
    return _outcome(comparison, runs, _difference(comparison, values))


def run_once(server: Server, comparison: Comparison, side: Side) -> Run:
    """One measured run of one side."""
    server.empty(comparison.tables)
    side.before()
    server.wait_until_idle()
    server_cpu_before_s = server.cpu_s()
    cost = measure.run(side.command, env=side.env)
    server.wait_until_idle()
    server_cpu_s = server.cpu_s() - server_cpu_before_s
    counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in side.tables or comparison.tables)
    rows = int(server.query(f"SELECT {counts}"))
    if rows != comparison.rows:
        raise WrongRows(f"{side.name} stored {rows} rows of {comparison.rows}")
    return {
        WALL: cost.wall_s,
        CLIENT_CPU: cost.client_cpu_s,
        SERVER_CPU: server_cpu_s,
        BOTH_CPU: cost.client_cpu_s + server_cpu_s,
        PEAK_RSS: cost.peak_rss_mib,
    }


def _fingerprint(server: Server, tables: Sequence[str]) -> str:
    """The same for the same rows in any order."""
    sums = (f"(SELECT sum(hashtextextended(t::text, 0)::numeric) FROM {table} t)" for table in tables)
    return server.query(f"SELECT concat_ws(' ', {', '.join(sums)})")


def _difference(comparison: Comparison, values: dict[str, str]) -> str:
    """What a reader must know where the two sides did not store the same."""
    if len(set(values.values())) == 1:
        return ""
    return "makes its own table" if comparison.theirs.tables else "the two tables differ"


def _outcome(comparison: Comparison, runs: dict[str, list[Run]], note: str) -> Outcome:
    ours = runs[comparison.ours.name] if comparison.ours else []
    theirs = runs[comparison.theirs.name]
    targets = {target.measure: target for target in comparison.targets}
    figures = [_figure(name, ours, theirs, targets.get(name)) for name in UNITS]
    return Outcome(comparison.workload, comparison.work, comparison.theirs.name, figures, note, runs)


def _figure(name: str, ours: list[Run], theirs: list[Run], target: Target | None) -> Figure:
    figure = Figure(name, UNITS[name], theirs=statistics.median(run[name] for run in theirs))
    if target:
        figure.target, figure.higher_is_better = target.bound, target.higher_is_better
    if ours:
        # A clock tick is 10 ms: a smaller divisor means nothing.
        ratios = [mine[name] / max(other[name], 0.01) for mine, other in zip(ours, theirs, strict=True)]
        figure.ours = statistics.median(run[name] for run in ours)
        figure.ratio, figure.ratio_min, figure.ratio_max = statistics.median(ratios), min(ratios), max(ratios)
    return figure
