"""Records that the table does not take: kept, written to a file, mended and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import howdah
import pytest

if TYPE_CHECKING:
    from conftest import Database

NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that takes no file is in /proc")


def test_what_is_refused_is_written_mended_and_loaded(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int, b text NOT NULL)")
    path, rejects = tmp_path / "t.csv", tmp_path / "rejects.csv"
    path.write_text("a,b\n1,one\ntwo,zwei\n3,\n4,four\n")
    summary = howdah.load(path, "t", to=database.conninfo, on_error="skip", max_errors="50%", reject_file=rejects)
    assert (summary.rows_read, summary.rows_stored, summary.rows_rejected) == (4, 2, 2)
    assert [(out["record"], out["column"], out["sqlstate"]) for out in summary.left_out] == [
        (2, "a", "22P02"),
        (3, "b", "23502"),
    ]
    assert rejects.read_text() == '"a","b"\ntwo,zwei\n3,\n'
    once_more = tmp_path / "once_more.csv"
    assert len(howdah.status(summary.job, to=database.conninfo, reject_file=once_more)) == 1
    assert once_more.read_text() == rejects.read_text()
    with pytest.raises(howdah.UsageError, match="reject_file is for the rejected records of one job"):
        howdah.status(to=database.conninfo, reject_file=once_more)
    rejects.write_text('"a","b"\n2,zwei\n3,drei\n')
    assert howdah.check(rejects, to=database.conninfo, rejects=summary.job).rows_good == 2
    again = howdah.load(rejects, to=database.conninfo, rejects=summary.job)
    assert (again.rows_stored, again.rows_rejected) == (2, 0)
    assert database.sql("SELECT string_agg(a || b, ' ' ORDER BY a) FROM t") == "1one 2zwei 3drei 4four"


def test_too_many_are_an_error(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    path = tmp_path / "t.csv"
    path.write_text("1\nx\ny\n")
    with pytest.raises(howdah.DataError, match="more than max_errors 1 allows") as failed:
        howdah.load(path, "t", to=database.conninfo, format="csv", on_error="skip", max_errors=1)
    assert failed.value.kind == "too_many_errors"


def test_a_nul_byte_is_dropped(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a text, b text)")
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nx\0y,1\nz,2\n")
    assert howdah.load(path, "t", to=database.conninfo, nul="strip").rows_stored == 2
    assert database.sql("SELECT string_agg(a, ' ' ORDER BY b) FROM t") == "xy z"


@NEEDS_PROC
def test_a_reject_file_that_cannot_be_written_hides_neither_the_reason_nor_the_account(
    database: Database, tmp_path: Path
) -> None:
    database.sql("CREATE TABLE t (a int)")
    path = tmp_path / "t.csv"
    path.write_text("1\nx\ny\n")
    # A directory that is there and takes no file, not even from root.
    unwritable = "/proc/rejects.csv"
    options = {"to": database.conninfo, "format": "csv", "on_error": "skip", "reject_file": unwritable}
    # The first chunk comes in with the one record that may be bad.
    with pytest.raises(howdah.DataError, match="more than max_errors 1 allows") as failed:
        howdah.load(path, "t", max_errors=1, chunk_size=4, jobs=1, **options)
    assert failed.value.summary is not None
    assert any(unwritable in warning for warning in failed.value.summary.warnings)
    with pytest.raises(howdah.LocalError, match=unwritable) as unwritten:
        howdah.load(path, "t", force=True, **options)
    assert unwritten.value.summary is not None
    assert (unwritten.value.summary.status, unwritten.value.summary.rows_stored) == ("done", 1)
