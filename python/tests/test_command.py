"""The console script `howdah`: the same command as the binary's."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import howdah

if TYPE_CHECKING:
    from conftest import Database

COMMAND = Path(sysconfig.get_path("scripts")) / "howdah"


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command and check its exit code."""
    ended = subprocess.run([COMMAND, *map(str, arguments)], check=False, capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    return ended


def test_the_command_says_its_version_and_name() -> None:
    assert run("--version").stdout == f"howdah {howdah.__version__}\n"
    assert "Usage: howdah load" in run("load", "--help").stdout


def test_the_command_loads_what_the_library_then_knows(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.csv").write_text("1\n2\n")
    arguments = ["load", tmp_path / "t.csv", "--table", "t", "--to", database.conninfo]
    document = json.loads(run(*arguments, "--json").stdout)
    assert document["rows_stored"] == 2
    assert howdah.status(to=database.conninfo)[0]["job_id"] == document["job"]
    refused = run(*arguments, "--json", code=1)
    assert json.loads(refused.stdout)["error"]["kind"] == "job_done"
    assert "--force" in refused.stderr


def test_mistakes_end_with_exit_code_2(tmp_path: Path) -> None:
    assert "--no-such-option" in run("load", "--no-such-option", code=2).stderr
    assert "--jobs" in run("load", tmp_path, "--table", "t", "--jobs", "0", code=2).stderr
