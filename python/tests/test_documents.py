"""The dicts and classes that the library declares have the keys of the documents that it returns."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import howdah
import pytest
from conftest import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conftest import Database


def assert_keys(document: Mapping[str, Any], declared: Any) -> None:
    """Check that the document has the keys that the TypedDict requires, and no others than it knows."""
    assert set(document) - declared.__optional_keys__ == declared.__required_keys__


def assert_plan(plan: howdah.Plan) -> None:
    assert_keys(plan, howdah.Plan)
    for table in plan["tables"]:
        assert_keys(table, howdah.TablePlan)
    for file in plan["files"]:
        assert_keys(file, howdah.FilePlan)


def own(declared: Any) -> set[str]:
    """Return the fields of a class that stand in the document, too."""
    return {field.name for field in dataclasses.fields(declared)} - {"account"}


def test_declared_keys_are_those_of_the_documents(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int PRIMARY KEY, b text)")
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,y\n")
    assert_plan(howdah.plan(path, "t", to=database.conninfo))
    events: list[howdah.Event] = []
    howdah.load(path, "t", to=database.conninfo, on_event=events.append)
    for event in events:
        if event["type"] == "planned":
            assert_plan(event["plan"])
        elif event["type"] == "done":
            document = event["summary"]
            assert set(document) == own(howdah.Summary)
            assert set(document["files"][0]) == own(howdah.FileSummary)
            assert set(document["tables"][0]) == own(howdah.TableSummary)
    assert {"planned", "done"} <= {event["type"] for event in events}
    (job,) = howdah.status(to=database.conninfo)
    assert_keys(job, howdah.JobRecord)
    assert_plan(job["plan"])
    command = [sys.executable, "-m", "howdah", "check", path, "--table", "t", "--to", database.conninfo, "--json"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    # All keys are in the table already.
    assert checked.returncode == 3, checked.stderr
    assert set(json.loads(checked.stdout)) - {"error"} == own(howdah.CheckReport)


def test_declared_keys_are_those_of_the_embedded_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOWDAH_PG_BIN", str(PROGRAMS / "pg18/bin"))
    monkeypatch.setenv("HOWDAH_DATA", str(tmp_path))
    assert_keys(howdah.pg.status(), howdah.ServerStatus)


def test_every_kind_of_error_is_declared() -> None:
    page = Path(__file__).parents[2] / "docs/reference/exit-codes.md"
    section = page.read_text().split("| kind |")[1].split("\n\n")[0]
    named = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert named == set(typing.get_args(howdah.errors.Kind))


def test_keys_of_a_later_release_are_passed_over(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.csv").write_text("a\n1\n")
    summary = howdah.load(tmp_path / "t.csv", "t", to=database.conninfo)
    document = summary.to_dict()
    for one in (document, document["files"][0], document["tables"][0]):
        one["later"] = 1
    assert howdah.Summary.from_document(document) == summary


def test_what_was_refused_has_no_summary() -> None:
    document = {"status": "failed", "error": {"kind": "usage", "message": ""}}
    for declared in (howdah.Summary, howdah.CheckReport):
        with pytest.raises(ValueError, match="refused before it began"):
            declared.from_document(document)


def test_types_can_be_asked_for_at_run_time() -> None:
    for name in howdah.__all__:
        if isinstance(getattr(howdah, name), type):
            typing.get_type_hints(getattr(howdah, name))
