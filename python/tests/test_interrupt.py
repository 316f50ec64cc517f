"""Ctrl-C, sent to real processes: the library raises KeyboardInterrupt, the command exits with 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import TYPE_CHECKING

import howdah
import pytest
from conftest import PROGRAMS
from test_command import COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Database

# The promise is two seconds; a busy machine gets the benefit of the doubt, a load that ignores Ctrl-C does not.
STOP_SECONDS_MAX = 60
START_SECONDS_MAX = 600


@pytest.fixture
def pipe(database: Database, tmp_path: Path) -> Iterator[Path]:
    """Make a source that never ends: some records, then silence."""
    database.sql("CREATE TABLE t (a int)")
    path = tmp_path / "pipe"
    os.mkfifo(path)
    # Open for reading and writing, so that neither end waits for the other.
    stream = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    ended = threading.Event()
    writer = threading.Thread(target=fill, args=(stream, ended))
    writer.start()
    yield path
    ended.set()
    writer.join()
    os.close(stream)


def fill(stream: int, ended: threading.Event) -> None:
    """Write as fast as somebody reads, but not more than this."""
    for _ in range(1000):
        while True:
            try:
                os.write(stream, b"1\n" * 2048)
            except BlockingIOError:
                if ended.wait(0.01):
                    return
            else:
                break


def wait_for_sessions(database: Database, process: subprocess.Popen[str]) -> None:
    """Wait until the load is under way: its job is in the ledger."""
    began = time.monotonic()
    while True:
        assert process.poll() is None
        assert time.monotonic() - began < START_SECONDS_MAX
        if database.sql("SELECT to_regclass('howdah.job') IS NOT NULL") == "t" and howdah.status(to=database.conninfo):
            return
        time.sleep(0.05)


def interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=STOP_SECONDS_MAX)


def start(*command: object) -> subprocess.Popen[str]:
    return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_raises_keyboard_interrupt_after_a_clean_stop(database: Database, pipe: Path) -> None:
    # Python leaves a signal ignored that its parent ignores, as jobs in the background of a script do.
    program = f"""
        import signal, howdah
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            howdah.load({str(pipe)!r}, "t", to={database.conninfo!r}, chunk_size="8kB")
        except KeyboardInterrupt as interrupt:
            print(type(interrupt.__cause__).__name__, interrupt.__cause__.summary.status)
    """
    process = start(sys.executable, "-W", "ignore", "-c", textwrap.dedent(program))
    wait_for_sessions(database, process)
    out, err = interrupt(process)
    assert (out, err) == ("StoppedError interrupted\n", "")
    assert howdah.status(to=database.conninfo)[0]["status"] == "interrupted"


def test_what_a_stopped_load_still_does_is_said(database: Database, pipe: Path) -> None:
    database.sql("CREATE INDEX by_a ON t (a)")
    program = f"""
        import signal, howdah
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            howdah.load({str(pipe)!r}, "t", to={database.conninfo!r}, indexes="rebuild", chunk_size="8kB")
        except KeyboardInterrupt:
            print("stopped")
    """
    process = start(sys.executable, "-c", textwrap.dedent(program))
    wait_for_sessions(database, process)
    while database.sql("SELECT EXISTS (SELECT FROM howdah.undo WHERE undone_at IS NULL)") != "t":
        time.sleep(0.05)
    out, err = interrupt(process)
    assert out == "stopped\n"
    assert "UserWarning: putting back by_a; Ctrl-C again leaves that to `howdah restore " in err
    assert database.sql("SELECT count(*) FROM pg_indexes WHERE indexname = 'by_a'") == "1"


def test_ctrl_c_behind_the_last_row_tells_that_the_load_is_done(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    path = tmp_path / "t.csv"
    path.write_text("1\n2\n")

    def stop_vacuum(event: howdah.Event) -> None:
        if event["type"] == "phase" and event["what"] == "VACUUM":
            os.kill(os.getpid(), signal.SIGINT)

    # Jobs in the background have it ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as stopped:
            howdah.load(path, "t", to=database.conninfo, after="vacuum", on_event=stop_vacuum)
    finally:
        signal.signal(signal.SIGINT, handler)
    cause = stopped.value.__cause__
    assert isinstance(cause, howdah.StoppedError) and cause.summary is not None
    assert (cause.summary.status, cause.summary.rows_stored, cause.kind) == ("done", 2, "interrupted")
    assert database.sql("SELECT status FROM howdah.job") == "done"


def test_a_signal_handler_of_the_program_is_respected(database: Database, pipe: Path) -> None:
    program = f"""
        import signal, howdah
        def hurry(*_): raise TimeoutError("hurry")
        signal.signal(signal.SIGINT, hurry)
        try:
            howdah.load({str(pipe)!r}, "t", to={database.conninfo!r})
        except TimeoutError as error:
            print(error)
    """
    process = start(sys.executable, "-W", "ignore", "-c", textwrap.dedent(program))
    wait_for_sessions(database, process)
    assert interrupt(process) == ("hurry\n", "")


@pytest.fixture
def held_ledger(database: Database, tmp_path: Path) -> Iterator[str]:
    """Let a job end, and keep others from reading of it; gives its name."""
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.csv").write_text("1\nx\n2\n3\n")
    job = howdah.load(tmp_path / "t.csv", "t", to=database.conninfo, format="csv", on_error="skip").job
    command = [PROGRAMS / "psql/bin/psql", "-Xq", "-d", database.conninfo]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        holder.stdin.write("BEGIN;\nLOCK TABLE howdah.job;\n")
        holder.stdin.flush()
        wait_until(database, "SELECT EXISTS (SELECT FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock')")
        yield job
        holder.stdin.close()


def wait_until(database: Database, what: str) -> None:
    began = time.monotonic()
    while database.sql(what) != "t":
        assert time.monotonic() - began < START_SECONDS_MAX
        time.sleep(0.05)


@pytest.mark.parametrize("verb", ["load", "plan"])
def test_ctrl_c_is_heard_while_rejected_records_are_looked_up(
    database: Database, held_ledger: str, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "mended.csv").write_text("4\n")
    program = f"""
        import signal, howdah
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            howdah.{verb}({str(tmp_path / "mended.csv")!r}, to={database.conninfo!r}, rejects={held_ledger!r})
        except KeyboardInterrupt as interrupt:
            print(type(interrupt.__cause__).__name__)
    """
    process = start(sys.executable, "-W", "ignore", "-c", textwrap.dedent(program))
    wait_until(database, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
    assert interrupt(process) == ("StoppedError\n", "")


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-W", "ignore", "-m", "howdah"]])
def test_ctrl_c_ends_the_command_with_130(database: Database, pipe: Path, command: list[object]) -> None:
    process = start(*command, "load", pipe, "--table", "t", "--to", database.conninfo, "--chunk-size", "8kB")
    wait_for_sessions(database, process)
    _, err = interrupt(process)
    assert process.returncode == 130
    assert "error: stopped by the user" in err and "Traceback" not in err
    assert howdah.status(to=database.conninfo)[0]["status"] == "interrupted"
