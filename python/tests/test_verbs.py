"""`plan`, `status`, `resume` and the embedded server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import howdah
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database

EVERYTHING = """
    SELECT (SELECT count(*) FROM pg_class WHERE oid >= 16384), (SELECT count(*) FROM pg_namespace),
           (SELECT count(*) FROM t)
"""


def test_plan_tells_everything_and_touches_nothing(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int, b text DEFAULT 'x')")
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    before = database.sql(EVERYTHING)
    plan = howdah.plan(path, "t", to=database.conninfo, header=True, chunk_size="1MB")
    assert database.sql(EVERYTHING) == before
    assert plan["chunk_bytes"] == 1 << 20
    assert plan["server_version"] >= 180000
    assert [(file["location"], file["codec"], file["data_start_byte"]) for file in plan["files"]] == [
        (str(path), "none", 2)
    ]
    assert plan["tables"][0]["fields"] == ["a"]
    assert plan["tables"][0]["copy_sql"].startswith('COPY "public"."t" ("a") FROM STDIN')
    assert howdah.load(path, "t", to=database.conninfo, header=True, chunk_size="1MB").job == plan["job_id"]


def test_status_tells_the_jobs_of_a_ledger(database: Database, tmp_path: Path) -> None:
    assert howdah.status(to=database.conninfo) == []
    database.sql("CREATE TABLE t (a int)")
    for name in ("one", "two"):
        (tmp_path / name).write_text("1\n2\n")
        howdah.load(tmp_path / name, "t", to=database.conninfo, job_id=name, ledger="books")
    assert howdah.status(to=database.conninfo) == []
    jobs = howdah.status(to=database.conninfo, ledger="books")
    assert [(job["job_id"], job["status"], job["rows_stored"]) for job in jobs] == [
        ("one", "done", 2),
        ("two", "done", 2),
    ]
    (job,) = howdah.status("tw", to=database.conninfo, ledger="books")
    assert job["plan"]["files"][0]["location"] == str(tmp_path / "two")
    with pytest.raises(howdah.UsageError, match="no job x"):
        howdah.status("x", to=database.conninfo, ledger="books")


def test_resume_goes_on_after_the_data_was_mended(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int CHECK (a <> 30000))")
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{number}\n" for number in range(50_000)))
    with pytest.raises(howdah.Error) as failed:
        howdah.load(path, "t", to=database.conninfo, chunk_size="16kB", jobs=1)
    assert failed.value.sqlstate == "23514"
    assert failed.value.record == 30_001
    assert failed.value.summary is not None
    job = failed.value.summary.job
    database.sql("ALTER TABLE t DROP CONSTRAINT t_a_check")
    events: list[howdah.Event] = []
    summary = howdah.resume(job, to=database.conninfo, on_event=events.append)
    assert summary.rows_stored == 50_000 and 0 < summary.rows_stored_before < 30_000
    assert events[0]["type"] == "planned"
    bytes_of = {kind: sum(event["bytes"] for event in events if event["type"] == kind) for kind in ("read", "skipped")}
    assert bytes_of["read"] == summary.bytes_read
    assert bytes_of["skipped"] > 0 and sum(bytes_of.values()) == path.stat().st_size
    assert database.sql("SELECT count(*), count(DISTINCT a) FROM t") == "50000|50000"
    with pytest.raises(howdah.JobDoneError):
        howdah.resume(job, to=database.conninfo)
    with pytest.raises(howdah.UsageError, match="memory: expected a size"):
        howdah.resume(job, to=database.conninfo, memory="much")
    assert howdah.resume(job, to=database.conninfo, jobs=1, memory="64MB", force=True).rows_stored == 50_000
    assert database.sql("SELECT count(*) FROM t") == "100000"


def test_restore_puts_back_what_duplicates_kept_from_being_built(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int PRIMARY KEY)")
    path = tmp_path / "t.csv"
    path.write_text("1\n2\n2\n")
    events: list[howdah.Event] = []
    with pytest.raises(howdah.ServerError, match=r"there is no ledger howdah in .*\nhint: give to and ledger as"):
        howdah.restore(to=database.conninfo)
    with pytest.raises(howdah.ServerError, match="several rows of the table have the same key") as failed:
        howdah.load(
            path,
            "t",
            to=database.conninfo,
            format="csv",
            indexes="rebuild",
            toast_compression="keep",
            on_event=events.append,
        )
    phases = [event["what"] for event in events if event["type"] == "phase"]
    assert phases == ["making all rows durable", "building an index"]
    assert failed.value.sqlstate == "23505"
    assert failed.value.summary is not None and failed.value.hint is not None
    assert f"then `howdah restore {failed.value.summary.job} --to 'dbname=" in failed.value.hint
    (job,) = howdah.status(to=database.conninfo)
    assert job["to_put_back"] == ["the index t_pkey of public.t", "the constraint t_pkey of public.t"]
    database.sql("DELETE FROM t WHERE a = 2")
    notices: list[howdah.Event] = []
    assert howdah.restore(job["job_id"][:6], to=database.conninfo, on_event=notices.append) == 2
    assert [notice["type"] for notice in notices] == ["notice", "notice"]
    assert database.sql("SELECT contype FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'p'") == "p"


def test_restore_warns_of_what_does_not_come_back(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int PRIMARY KEY); CREATE UNIQUE INDEX twice ON t ((a * 2))")
    path = tmp_path / "t.csv"
    path.write_text("1\n2\n2\n")
    with pytest.raises(howdah.ServerError) as failed:
        howdah.load(path, "t", to=database.conninfo, format="csv", indexes="rebuild")
    assert failed.value.summary is not None
    said = [*failed.value.summary.warnings, str(failed.value)]
    assert all(any(name in text for text in said) for name in ("t_pkey", "twice"))
    with pytest.raises(howdah.ServerError) as failed, pytest.warns(UserWarning, match="cannot be put back") as warned:
        howdah.restore(to=database.conninfo)
    said = [str(failed.value), *(str(warning.message) for warning in warned)]
    assert all(any(name in text for text in said) for name in ("t_pkey", "twice"))
    database.sql("DROP TABLE t; CREATE TABLE t (a int)")
    with pytest.warns(UserWarning, match="is not put back: the table is gone, and the one that"):
        assert howdah.restore(to=database.conninfo) == 0
