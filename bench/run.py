#!/usr/bin/env python3
"""Measures howdah against the usual ways into PostgreSQL and prints the table of the README.

Starts a server of its own, runs each workload in paired rounds, writes raw runs, medians and the machine to
bench/results/, prints the table, worst row first, and draws the chart of the README. `--markdown FILE` prints that
table of an earlier result; `--chart FILE...` draws the chart of some, each workload from the first that has it.
`--a-against-a` measures every opponent against itself: how far those ratios are from 1 is the noise of the machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import chart, machine, report
from harness.context import Context
from harness.data import Data
from harness.server import SETTINGS, Server, find_binaries

ROOT = Path(__file__).resolve().parent.parent
WORKLOADS = (
    "principals_gz",
    "principals_plain",
    "seven_files_s3",
    "typed",
    "indexed",
    "merge",
    "partitioned",
    "documents",
    "found",
    "split_only",
    "encode_only",
    "memory",
    "startup",
    "rivals",
)
# Asked for by name: howdah against itself, and what takes many minutes.
BY_NAME_ALONE = ("sessions", "documents_4gb")
CHART = ROOT / "docs/images/bench.svg"
SQL_FILES = ("imdb.sql", "lineitem.sql", "flights.sql", "sensor_log.sql", "sensor_log_daily.sql", "documents.sql")


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", choices=WORKLOADS + BY_NAME_ALONE, help="this workload; may be repeated"
    )
    parser.add_argument("--rounds", type=int, help="paired rounds (default 5; 3 with --quick)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--a-against-a", action="store_true", help="measure opponents against themselves")
    parser.add_argument("--work-dir", type=Path, default=ROOT / "target/bench", help="data, server and rivals")
    of_server = "the server to measure: its initdb and postgres (default PostgreSQL 15)"
    parser.add_argument("--postgres-bin", type=Path, metavar="FOLDER", help=of_server)
    parser.add_argument("--results", type=Path, default=ROOT / "bench/results", help="where results are written")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="print the table of this result and stop")
    parser.add_argument("--chart", type=Path, nargs="+", metavar="FILE", help="draw the chart of these and stop")
    return parser.parse_args()


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Runs the workloads; what fails is noted in the document and ends nothing else."""
    rounds = chosen.rounds or (3 if chosen.quick else 5)
    facts = machine.describe()
    work = chosen.work_dir.absolute()
    data = Data(ROOT, work, chosen.quick)
    workloads = [importlib.import_module(f"workloads.{name}") for name in chosen.only or WORKLOADS]
    with Server((chosen.postgres_bin or find_binaries(ROOT)).absolute(), work) as server:
        for name, (value, reason) in SETTINGS.items():
            print(f"{name} = {value}: {reason}", file=sys.stderr)
        for name in SQL_FILES:
            server.run_file(ROOT / "bench/datasets/sql" / name)
        context = Context(ROOT, work, server, data, rounds, chosen.quick, chosen.a_against_a)
        if context.howdah is None and not context.a_against_a:
            context.skip("howdah: not built (cargo build --release --bin howdah); opponents are measured alone")
        outcomes = []
        for workload in workloads:
            print(workload.__name__, file=sys.stderr)
            try:
                outcomes += [outcome for outcome in workload.outcomes(context) if outcome]
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                context.skip(f"{workload.__name__}: {error}")
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "revision": machine.revision(ROOT),
            "quick": chosen.quick,
            "a_against_a": chosen.a_against_a,
            "rounds": rounds,
            "machine": facts,
            "server": server.settings(),
            "not_run": context.not_run,
            "outcomes": [outcome.to_json() for outcome in outcomes],
        }


def save(document: dict[str, Any], folder: Path) -> Path:
    """Writes the result as JSON and as markdown; the name says date and size of the machine, never its name."""
    facts = document["machine"]
    kind = "-a-against-a" if document["a_against_a"] else "-quick" if document["quick"] else ""
    path = folder / f"{document['date']}-{facts['cores']}cores-{facts['memory_gib']}gib{kind}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    path.with_suffix(".md").write_text(report.markdown(document))
    return path


def draw(documents: list[dict[str, Any]]) -> None:
    """Writes the chart of the README."""
    CHART.write_text(chart.draw(chart.rows(documents)))
    print(f"written to {CHART}", file=sys.stderr)


def main() -> None:
    """Measures and prints, or only prints or draws."""
    chosen = options()
    if chosen.markdown:
        print(report.markdown(json.loads(chosen.markdown.read_text())))
        return
    if chosen.chart:
        draw([json.loads(path.read_text()) for path in chosen.chart])
        return
    # psql of the tests, where the system has none.
    os.environ["PATH"] += f":{ROOT / 'target/servers/psql/bin'}"
    document = measure(chosen)
    path = save(document, chosen.results)
    print(report.markdown(document))
    print(f"written to {path}", file=sys.stderr)
    if not (chosen.only or chosen.quick or chosen.a_against_a):
        draw([document])


if __name__ == "__main__":
    main()
