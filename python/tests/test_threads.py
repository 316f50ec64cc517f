"""The interpreter is free while a load runs, and loads run from any thread."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import howdah
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database


def test_other_threads_run_while_a_load_waits(database: Database, tmp_path: Path) -> None:
    """The load reads from a pipe that another Python thread fills: with the lock held, neither would end."""
    database.sql("CREATE TABLE t (a int)")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def fill() -> None:
        with pipe.open("w") as stream:
            for number in range(100_000):
                stream.write(f"{number}\n")

    writer = threading.Thread(target=fill)
    writer.start()
    summary = howdah.load(pipe, "t", to=database.conninfo)
    writer.join()
    assert summary.rows_stored == 100_000


def test_loads_run_side_by_side_from_any_thread(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int, b int)")

    def load(number: int) -> int:
        path = tmp_path / f"{number}.csv"
        path.write_text("".join(f"{number},{record}\n" for record in range(1000)))
        events: list[int] = []
        summary = howdah.load(path, "t", to=database.conninfo, on_event=lambda _: events.append(threading.get_ident()))
        assert set(events) == {threading.get_ident()}
        return summary.rows_stored

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(load, range(8))) == [1000] * 8
    assert database.sql("SELECT count(*), count(DISTINCT (a, b)) FROM t") == "8000|8000"


def test_an_asyncio_program_loads_in_a_thread(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.csv").write_text("1\n2\n")
    summary = asyncio.run(asyncio.to_thread(howdah.load, tmp_path / "t.csv", "t", to=database.conninfo))
    assert summary.rows_stored == 2


WITHOUT_THREADS = """
import importlib.abc, os, resource, sys
import howdah

def told():
    try:
        howdah.plan(sys.argv[2], "t", to="host=127.0.0.1 port=9 user=u dbname=d", retry_for="0s")
    except howdah.Error as error:
        return str(error)

told()  # What the call imports, another user may not read.
os.setgid(54321)
os.setuid(54321)
resource.setrlimit(resource.RLIMIT_NPROC, (int(sys.argv[1]), int(sys.argv[1])))
print(told())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the limit does not hold for root, who alone becomes another user")
@pytest.mark.parametrize("limit", range(1, 4))
def test_where_no_thread_can_be_had_that_is_an_error(limit: int, tmp_path: Path) -> None:
    """The engine waited for threads that never came, with the interpreter's lock held."""
    (tmp_path / "t.csv").write_text("1\n")
    command = [sys.executable, "-c", WITHOUT_THREADS, str(limit), str(tmp_path / "t.csv")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended
    assert "cannot start a thread" in ended.stdout and "ulimit -u" in ended.stdout, ended


ENDS_DURING_CALLS = """
import sys, threading, time
import howdah

def call():
    while True:
        try:
            howdah.plan("/nonexistent.csv", "t", to=sys.argv[1])
        except howdah.Error:
            pass

for _ in range(8):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("_", range(4))
def test_the_interpreter_ends_while_daemon_threads_are_at_work(_: int, database: Database) -> None:
    """Python ended such a thread within frames of Rust, which aborted the process in two of three runs."""
    command = [sys.executable, "-c", ENDS_DURING_CALLS, database.conninfo]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended


ENDS_DURING_A_LOAD = """
import atexit, os, sys, threading

started, raised = threading.Event(), threading.Event()
if len(sys.argv) < 4:
    # Called behind howdah's own, which is registered later: else the interpreter may end before the thread says a word.
    atexit.register(raised.wait)

import howdah

def show(event):
    started.set()
    if len(sys.argv) > 3:
        threading.Event().wait()

def load():
    try:
        howdah.load(sys.argv[2], "t", to=sys.argv[1], indexes="rebuild", on_event=show)
    except howdah.StoppedError as error:
        print(type(error).__name__, file=sys.stderr, flush=True)
        raised.set()

threading.Thread(target=load, daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("stuck", [[], ["stuck"]])
def test_the_end_of_the_interpreter_stops_a_load_and_puts_back(
    stuck: list[str], database: Database, tmp_path: Path
) -> None:
    """Also where the caller's function never comes back: that alone is not waited for without end."""
    database.sql("CREATE TABLE t (a int); CREATE INDEX i ON t (a)")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    stream = os.open(pipe, os.O_RDWR)
    os.write(stream, b"1\n")
    command = [sys.executable, "-c", ENDS_DURING_A_LOAD, database.conninfo, str(pipe), *stuck]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    os.close(stream)
    assert ended.returncode == 0, ended
    assert stuck or "StoppedError" in ended.stderr, ended
    assert database.sql("SELECT to_regclass('i') IS NOT NULL") == "t"
