"""`on_event`: what it is told, where it runs, and what happens when it raises."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import howdah
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database
    from howdah import Event

RECORDS = 50_000


@pytest.fixture
def source(database: Database, tmp_path: Path) -> Path:
    """Write a file of some dozens of chunks, and make its table."""
    database.sql("CREATE TABLE t (a int, b text)")
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{number},{'x' * 20}\n" for number in range(RECORDS)))
    return path


def test_events_tell_the_whole_load_in_order(database: Database, source: Path) -> None:
    events: list[Event] = []
    threads = set()

    def listen(event: Event) -> None:
        threads.add(threading.get_ident())
        events.append(event)

    summary = howdah.load(source, "t", to=database.conninfo, chunk_size="32kB", on_event=listen)
    phases = [event["what"] for event in events if event["type"] == "phase"]
    assert phases == ["making all rows durable", "ANALYZE"]
    assert threads == {threading.get_ident()}
    assert events[0]["type"] == "planned" and events[0]["plan"]["job_id"] == summary.job
    assert events[-1]["type"] == "done" and events[-1]["summary"] == summary.to_dict()
    assert sum(event["bytes"] for event in events if event["type"] == "read") == summary.bytes_read
    stored = [event for event in events if event["type"] == "stored"]
    assert sum(event["rows"] for event in stored) == RECORDS
    assert sum(event["bytes"] for event in stored) == source.stat().st_size
    assert not any(event["before"] for event in stored)
    file_done = [event["type"] for event in events].index("file_done")
    assert all(event["type"] != "stored" for event in events[file_done:])


def test_a_slow_callback_misses_no_row_and_holds_nothing_up(database: Database, source: Path) -> None:
    rows = 0
    calls = 0

    def listen(event: Event) -> None:
        nonlocal rows, calls
        calls += 1
        if event["type"] == "planned":
            # Every chunk is stored while this sleeps, or waits to be added up.
            while database.sql("SELECT count(*) FROM t") != str(RECORDS):
                time.sleep(0.05)
        if event["type"] == "stored":
            rows += event["rows"]

    howdah.load(source, "t", to=database.conninfo, chunk_size="32kB", on_event=listen)
    assert rows == RECORDS
    assert calls < 20


def test_what_is_stored_behind_a_loss_is_told_behind_it(database: Database, source: Path) -> None:
    # The load's first transaction stands still in its last chunks.
    database.sql(
        f"""
        CREATE SEQUENCE n;
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN
                IF NEW.a = {RECORDS - 1} AND nextval('n') = 1 THEN PERFORM pg_sleep(600); END IF;
                RETURN NEW;
            END $$;
        CREATE TRIGGER wait BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION wait()
        """
    )
    events: list[Event] = []

    def listen(event: Event) -> None:
        if event["type"] == "planned":
            # All that follows waits to be told.
            end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            while database.sql(end) == "0":
                time.sleep(0.05)
            while database.sql("SELECT count(*) FROM t") != str(RECORDS):
                time.sleep(0.05)
        events.append(event)

    howdah.load(
        source, "t", to=database.conninfo, mode="truncate", freeze=True, chunk_size="32kB", jobs=1, on_event=listen
    )
    rows, losses = 0, 0
    for event in events:
        if event["type"] == "stored":
            rows += event["rows"]
        if event["type"] == "lost":
            assert event["rows"] == rows
            rows, losses = 0, losses + 1
    assert (rows, losses) == (RECORDS, 1)


def test_many_files_that_are_done_keep_no_remark_from_being_told(database: Database, tmp_path: Path) -> None:
    files = 1100
    # When more than a thousand files are in, a chunk fails in a way that may pass.
    database.sql(
        """
        CREATE SEQUENCE n;
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF nextval('n') = 1080 THEN RAISE 'once' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
        CREATE TABLE t (a int);
        CREATE TRIGGER fail BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fail()
        """
    )
    for number in range(files):
        (tmp_path / f"{number}.csv").write_text(f"{number}\n")
    types = []

    def listen(event: Event) -> None:
        if event["type"] == "planned":
            while database.sql("SELECT count(*) FROM t") != str(files):
                time.sleep(0.05)
        types.append(event["type"])

    howdah.load(tmp_path, "t", to=database.conninfo, format="csv", jobs=1, on_event=listen)
    assert types.count("file_done") == files
    assert types.count("retry") == 1


def test_what_the_callback_raises_stops_the_load_and_comes_out(database: Database, source: Path) -> None:
    def listen(event: Event) -> None:
        if event["type"] == "stored":
            raise LookupError(event["rows"])

    with pytest.raises(LookupError) as raised:
        howdah.load(source, "t", to=database.conninfo, chunk_size="32kB", jobs=1, on_event=listen)
    cause = raised.value.__cause__
    assert isinstance(cause, howdah.StoppedError)
    assert cause.summary is not None and cause.summary.status == "interrupted"
    left = int(database.sql("SELECT count(*) FROM t"))
    assert 0 < left < RECORDS
    summary = howdah.resume(cause.summary.job[:8], to=database.conninfo)
    assert summary.rows_stored == RECORDS and summary.rows_stored_before == left
    assert database.sql("SELECT count(*), count(DISTINCT a) FROM t") == f"{RECORDS}|{RECORDS}"


def test_warnings_name_options_as_python_spells_them(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a text, b int, c int)")
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\nalpha,1,2\nbeta,3,4\ngamma,5,6\n(none),,\n")
    events: list[Event] = []
    howdah.load(path, "t", to=database.conninfo, max_replica_lag="1min", on_event=events.append)
    warnings = [event["message"] for event in events if event["type"] == "warning"]
    assert any(warning.startswith("max_replica_lag: no replica is connected") for warning in warnings)
    assert any(warning.endswith("; format csv or text loads all") for warning in warnings)
