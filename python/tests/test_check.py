"""Everything is read, all that is wrong is told, and nothing is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import howdah
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database


def test_all_that_is_wrong_is_told_and_nothing_is_stored(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL CHECK (b <> 'bad'))")
    path, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_text("a,b\n1,one\ntwo,zwei\n3,\n4,bad\n1,again\n")
    report = howdah.check(path, "t", to=database.conninfo, format="csv", header=True, reject_file=bad)
    assert (report.status, report.rows_read, report.rows_good, report.rows_bad) == ("done", 5, 1, 4)
    found = {(found["sqlstate"], found["first"][0]["record"], found["first"][0]["byte"]) for found in report.findings}
    assert found == {("22P02", 2, 10), ("23502", 3, 19), ("23514", 4, 22), ("23505", 5, 28)}
    assert "read 5 = good 1 + bad 4" in str(report)
    assert bad.read_text() == '"a","b"\ntwo,zwei\n3,\n4,bad\n1,again\n'
    assert database.sql("SELECT count(*) FROM t") == "0"
    assert database.sql("SELECT count(*) FROM howdah.job") == "0"


def test_a_check_that_fails_under_way_tells_how_far_it_came(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 100 + "bad\n" * 3)
    with pytest.raises(howdah.DataError) as failed:
        howdah.check(path, "t", to=database.conninfo, format="csv", header=True, max_errors=1)
    report = failed.value.report
    assert report is not None and failed.value.summary is None
    assert (report.status, report.rows_read) == ("failed", 103)
    assert str(report)


def test_a_clean_file_is_good_and_can_be_loaded(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int PRIMARY KEY)")
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n")
    report = howdah.check(path, "t", to=database.conninfo)
    assert (report.rows_good, report.rows_bad, report.findings, report.not_checked) == (2, 0, [], [])
    assert howdah.load(path, "t", to=database.conninfo).rows_stored == 2
    assert howdah.check(path, "t", to=database.conninfo).rows_bad == 2


def test_a_check_without_a_ledger_is_refused(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with pytest.raises(howdah.UsageError, match="a check needs a schema of the database") as refused:
        howdah.check(path, "t", to=database.conninfo, ledger=None)
    assert "on_error" not in str(refused.value)


def test_options_about_rows_that_are_stored_are_refused(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("verify", {"verify": "count"}),
        ("job_id", {"job_id": "x"}),
        ("force", {"force": True}),
        ("triggers disable", {"triggers": "disable"}),
        ("on_error stop", {"on_error": "stop"}),
    ]
    for name, options in refused:
        with pytest.raises(howdah.UsageError, match=f"^{name} is about rows that are stored"):
            howdah.check(path, "t", to=database.conninfo, **options)
