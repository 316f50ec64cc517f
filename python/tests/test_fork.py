"""A process that is forked while a load runs inherits its connections, and keeps them when the load is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import howdah

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database

WITHIN_SECONDS = 30


def test_what_a_killed_load_leaves_to_a_forked_process_is_ended_by_the_next_run(
    database: Database, tmp_path: Path
) -> None:
    rows = 1_000_000
    (tmp_path / "t.csv").write_text("a\n" + "".join(f"{n}\n" for n in range(rows)))
    arguments = {"table": "t", "to": database.conninfo, "job_id": "j", "chunk_size": "64kB", "jobs": 2}
    program = f"""
        import os, signal, threading, time, howdah
        begun = threading.Event()
        def load():
            tell = lambda event: event["type"] == "stored" and begun.set()
            howdah.load({str(tmp_path / "t.csv")!r}, on_event=tell, **{arguments!r})
        threading.Thread(target=load, daemon=True).start()
        begun.wait()
        child = os.fork()
        if child == 0:
            time.sleep(600)
        print(child, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    database.sql("CREATE TABLE t (a int)")
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.wait()
        try:
            began = time.monotonic()
            told: list[howdah.Event] = []
            summary = howdah.load(tmp_path / "t.csv", on_event=told.append, **arguments)
            assert time.monotonic() - began < WITHIN_SECONDS
        finally:
            os.kill(child, signal.SIGKILL)
    assert summary.rows_stored == rows
    messages = [event["message"] for event in told if event["type"] == "notice"]
    assert any("were still at work on the server: ended" in message for message in messages), messages
    assert database.sql("SELECT count(*), count(DISTINCT a) FROM t") == f"{rows}|{rows}"
