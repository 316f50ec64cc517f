"""The exceptions: one tree, with places, and hints in Python's words."""

from __future__ import annotations

import gzip
import io
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import howdah
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Database


def test_every_exception_is_in_the_tree() -> None:
    classes = [value for value in vars(howdah.errors).values() if isinstance(value, type)]
    ours = [one for one in classes if one.__module__ == "howdah.errors"]
    assert len(ours) == 11
    assert all(issubclass(one, howdah.Error) and getattr(howdah, one.__name__) is one for one in ours)


def test_a_bad_record_is_named_with_its_place(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int, b text)")
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{n},x\n" for n in range(100)) + "secret,x\n1,x\n")
    with pytest.raises(howdah.DataError) as failed:
        howdah.load(tmp_path / "t.csv", "t", to=database.conninfo, header=True)
    error = failed.value
    assert error.kind == "server"
    assert error.file == str(tmp_path / "t.csv")
    assert (error.record, error.byte, error.column) == (101, 4 + 10 * 4 + 90 * 5, "a")
    assert error.sqlstate == "22P02"
    assert "secret" not in str(error)
    assert error.summary is not None and error.summary.status == "failed"
    assert database.sql("SELECT count(*) FROM t") == str(error.summary.rows_stored)


def test_files_that_are_in_are_done_and_some_of_them_are_not(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("a\n1\n")
    howdah.load(tmp_path / "a.csv", "t", to=database.conninfo)
    with pytest.raises(howdah.JobDoneError) as done:
        howdah.load(tmp_path / "a.csv", "t", to=database.conninfo, job_id="other")
    assert done.value.kind == "files_loaded"
    assert done.value.hint is not None and 'known="load"' in done.value.hint
    with pytest.raises(howdah.ServerError) as some:
        howdah.load([tmp_path / "a.csv", tmp_path / "b.csv"], "t", to=database.conninfo)
    assert some.value.kind == "table"


def test_errors_survive_another_process() -> None:
    error = howdah.SourceNotFoundError("no such file", kind="source_not_found", file="x")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.kind, copy.file) == (
        type(error),
        "no such file",
        "source_not_found",
        "x",
    )


def test_what_a_shell_is_told_keeps_its_words(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.csv").write_text("a\n1\n")
    job = howdah.load(tmp_path / "t.csv", "t", to=database.conninfo).job
    with pytest.raises(howdah.UsageError) as failed:
        howdah.load([], to=database.conninfo, rejects=job)
    message = str(failed.value)
    assert message.startswith(f"rejects needs the file of rejected records\nhint: `howdah status {job} --to 'dbname=")
    assert message.endswith("' --ledger howdah --reject-file FILE` writes it")
    (tmp_path / "config").write_text("[profile s]\nsso_session = x\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "s")
    with pytest.raises(howdah.SourceError) as denied:
        howdah.load("s3://bucket/t.csv", "t", to=database.conninfo)
    assert '`eval "$(aws configure export-credentials --format env --profile s)"`' in (denied.value.hint or "")


@pytest.mark.parametrize("verb", [howdah.load, howdah.plan, howdah.check])
def test_a_file_whose_name_is_no_text_is_named(database: Database, tmp_path: Path, verb: Callable[..., object]) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe9.csv")).write_text("a\n1\n")
    (name,) = tmp_path.iterdir()
    for sources in [name, str(name), [name], {name: "t"}]:
        with pytest.raises(howdah.SourceError) as failed:
            verb(sources, "t" if not isinstance(sources, dict) else None, to=database.conninfo)
        assert failed.value.kind == "source_io"
        assert failed.value.file == f"{tmp_path}/\ufffd.csv"
        assert str(failed.value).endswith("the name is not UTF-8\nhint: rename the file, or link to it by another name")


def test_only_names_of_options_are_renamed(database: Database) -> None:
    with pytest.raises(howdah.SourceError) as failed:
        howdah.load("a --see-below.csv", "t", to=database.conninfo)
    assert str(failed.value).startswith("file a --see-below.csv: ")


class Index:
    """A whole number as numpy has it."""

    def __index__(self) -> int:
        """Give the number."""
        return 5000


@pytest.mark.parametrize(
    ("arguments", "expected", "kind", "says"),
    [
        ({"sources": "nowhere.csv"}, FileNotFoundError, "source_not_found", "nowhere.csv"),
        ({"sources": "nowhere.csv"}, howdah.SourceError, "source_not_found", "nowhere.csv"),
        ({"table": "no_such"}, howdah.ServerError, "table", "no_such"),
        ({"to": "host=127.0.0.1 port=1", "retry_for": 0}, ConnectionError, "connection_lost", ""),
        ({"to": "host=127.0.0.1 port=x"}, ValueError, "usage", "port"),
        ({"jobs": 0}, howdah.UsageError, "usage", "jobs: expected auto or 1 to 1024, got"),
        ({"jobs": -1}, ValueError, "usage", "jobs: expected auto or 1 to 1024, got"),
        ({"chunk_size": "1x"}, howdah.UsageError, "usage", "chunk_size: expected a size"),
        ({"format": "parquet"}, howdah.UsageError, "usage", "format: expected csv or text, got"),
        ({"reserve_connections": -1}, howdah.UsageError, "usage", "reserve_connections: expected 0 to"),
        ({"table": ""}, howdah.UsageError, "usage", "table: expected the name of a table, got nothing"),
        ({"jobs": Index()}, howdah.UsageError, "usage", "jobs: expected auto or 1 to 1024, got"),
        ({"columns": "a,b"}, howdah.DataError, "columns", "a,b"),
        ({"header": "maybe"}, howdah.UsageError, "usage", "maybe"),
        (
            {"format": "text", "quote": "'"},
            howdah.UsageError,
            "usage",
            "quote and escape are options of the csv",
        ),
        ({"map": {"x": "a"}}, howdah.UsageError, "usage", "map renames the fields of a header"),
        ({"header": True}, howdah.DataError, "columns", ""),
        (
            {"on_error": "skip", "reject_file": "/nowhere/bad.csv"},
            howdah.LocalError,
            "local",
            "reject_file /nowhere/bad.csv cannot be written",
        ),
    ],
)
def test_an_error_has_its_class_and_kind(
    database: Database,
    tmp_path: Path,
    arguments: dict[str, Any],
    expected: type[Exception],
    kind: str,
    says: str,
) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.csv").write_text("1\n")
    call = {"sources": tmp_path / "t.csv", "table": "t", "to": database.conninfo, **arguments}
    with pytest.raises(expected) as failed:
        howdah.load(**call)
    assert isinstance(failed.value, howdah.Error)
    assert failed.value.kind == kind
    assert says in str(failed.value)
    assert "--" not in str(failed.value)
    assert failed.value.hint is None or str(failed.value).endswith(f"\nhint: {failed.value.hint}")


def test_damaged_data_is_a_data_error(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"1\n" * 100_000)[:-20])
    with pytest.raises(howdah.DataError) as failed:
        howdah.load(tmp_path / "t.gz", "t", to=database.conninfo)
    assert failed.value.kind == "decompress"


class Frame:
    """What a DataFrame is to others: data by columns, whose names it iterates over."""

    def __dataframe__(self) -> None:
        """Give the columns."""

    def __iter__(self) -> Iterator[str]:
        """Give the names of the columns."""
        return iter(["secret"])


class Cursor:
    """What a query's result is to others."""

    def fetchall(self) -> None:
        """Give the rows."""


class Table:
    """Data as Apache Arrow has it."""

    def __arrow_c_stream__(self) -> None:
        """Give the columns."""


@pytest.mark.parametrize(
    "data",
    [
        Frame(),
        Table(),
        Cursor(),
        b"secret",
        bytearray(b"secret"),
        memoryview(b"secret"),
        io.StringIO("secret"),
        io.BytesIO(b"secret"),
    ],
)
def test_data_is_not_taken_for_names(data: Any) -> None:
    load: Any = howdah.load
    for sources in (data, [data]):
        with pytest.raises(TypeError, match=f"expected paths or URLs, got {type(data).__name__}") as failed:
            load(sources, "t")
        assert "hint: write it to a file" in str(failed.value)
        assert "secret" not in str(failed.value)


def test_wrong_types_are_type_errors_that_name_the_argument(tmp_path: Path) -> None:
    load: Any = howdah.load
    with pytest.raises(TypeError, match="argument 'delimiter'"):
        load(tmp_path, "t", delimiter=1)
    with pytest.raises(TypeError, match="argument 'columns'"):
        load(tmp_path, "t", columns=1)
    with pytest.raises(TypeError, match="argument 'table'"):
        load(tmp_path, 5)
    with pytest.raises(TypeError, match="on_event: expected a function, got int"):
        load(tmp_path, "t", on_event=5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'delimeter'"):
        load(tmp_path, "t", delimeter=";")
    for sources in (1, [1]):
        with pytest.raises(TypeError, match="sources: expected paths or URLs, got int"):
            load(sources, "t")
    with pytest.raises(TypeError, match="sources: expected paths or URLs, got tuple"):
        load((row for row in [("secret",)]), "t")
    with pytest.raises(TypeError, match="sources: expected names of tables, got int"):
        load({"a.csv": 5})
    with pytest.raises(TypeError):
        load(tmp_path, "t", ";")
