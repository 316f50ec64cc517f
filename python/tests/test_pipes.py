"""Pipes and standard input: every byte is for whoever waits for it, and a second reading is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import howdah
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Database

WAIT_SECONDS_MAX = 600

NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


def wait_for(what: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < WAIT_SECONDS_MAX
        time.sleep(0.01)


def times_open(path: Path) -> int:
    """Count this process's descriptors of a file."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += descriptor.readlink() == path
        except FileNotFoundError:
            pass
    return count


def reads_a_pipe(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the process has a thread that waits for standard input."""
    assert process.poll() is None
    return any(task.read_text() == "pipe\n" for task in Path(f"/proc/{process.pid}/task").glob("*/comm"))


@NEEDS_PROC
def test_what_is_written_behind_a_stopped_load_is_for_the_next_one(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    path = tmp_path / "pipe"
    os.mkfifo(path)
    # Open at both ends, as a service has it that goes on writing from load to load.
    stream = os.open(path, os.O_RDWR)

    def stop() -> None:
        wait_for(lambda: times_open(path) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    stopper = threading.Thread(target=stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            stopper.start()
            howdah.load(path, "t", to=database.conninfo)
    finally:
        stopper.join()
        signal.signal(signal.SIGINT, handler)
    assert times_open(path) == 1
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(howdah.load, path, "t", to=database.conninfo)
        wait_for(lambda: times_open(path) == 2)
        os.write(stream, b"".join(b"%d\n" % number for number in range(1000)))
        os.close(stream)
        assert loading.result().rows_stored == 1000
    assert database.sql("SELECT count(*), count(DISTINCT a) FROM t") == "1000|1000"


@NEEDS_PROC
def test_standard_input_is_left_alone_by_a_stopped_load(database: Database) -> None:
    program = f"""
        import signal, sys, howdah
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            howdah.load("-", "t", to={database.conninfo!r})
        except KeyboardInterrupt:
            print("stopped", flush=True)
        print(sys.stdin.read())
    """
    database.sql("CREATE TABLE t (a int)")
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        wait_for(lambda: reads_a_pipe(process))
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"stopped\n"
        process.stdin.write(b"1\n2\n3\n")
        process.stdin.close()
        assert process.stdout.read() == b"1\n2\n3\n\n"


@pytest.mark.parametrize(
    ("first", "source"), [("howdah.plan", "-"), ("howdah.load", "-"), ("howdah.plan", "/dev/stdin")]
)
def test_standard_input_is_not_read_by_a_second_call(database: Database, first: str, source: str) -> None:
    program = f"""
        import howdah
        for call in ({first}, howdah.load):
            try:
                call({source!r}, "t", to={database.conninfo!r}, format="csv", header=True)
            except howdah.Error as error:
                print(error.kind, error)
    """
    database.sql("CREATE TABLE t (a int)")
    # More than is read ahead; a load of it fails.
    text = "a\n" + "x\n" * 200_000
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    told = subprocess.run(command, check=True, input=text, capture_output=True, text=True).stdout
    last = told.splitlines()[-2:]
    assert last[0] == f"source_io file {source}: a pipe can be read only once, from its beginning", told
    assert last[1] == "hint: write the data to a file, and load that", told
    assert told.count("only once") == 1


@pytest.mark.parametrize("call", ["howdah.plan", "howdah.check", "howdah.load"])
def test_what_python_has_read_ahead_of_standard_input_is_not_missed(database: Database, call: str) -> None:
    program = f"""
        import sys, howdah
        print(sys.stdin.readline().strip(), flush=True)
        # Another call does not find them either.
        for attempt in range(2):
            try:
                {call}("-", "t", to={database.conninfo!r})
            except howdah.UsageError as error:
                print(error)
    """
    database.sql("CREATE TABLE t (a int)")
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"1\n2\n3\n")
        process.stdin.flush()
        # The writer has not ended: whoever waits for more waits for ever.
        told = process.stdout.read().decode()
    assert told.startswith("1\nfile -: Python has read ahead of what the program took from sys.stdin"), told
    assert told.count("hint: read nothing from sys.stdin before") == 2, told


def test_standard_input_is_loaded_behind_what_python_has_not_read_ahead(database: Database, tmp_path: Path) -> None:
    program = f"""
        import os, sys, howdah
        assert os.read(0, 2) == b"1\\n" and not sys.stdin.closed
        print(howdah.load("-", "t", to={database.conninfo!r}).rows_stored)
    """
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.csv").write_text("1\n2\n3\n")
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    with (tmp_path / "t.csv").open() as source:
        told = subprocess.run(command, check=True, stdin=source, capture_output=True, text=True).stdout
    assert told == "2\n"
    assert database.sql("SELECT string_agg(a::text, ',' ORDER BY a) FROM t") == "2,3"
