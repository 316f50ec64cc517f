"""`howdah.load`: real files into real servers."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import howdah
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database, Server

RECORDS = 2000


def write_csv(path: Path, records: int = RECORDS) -> str:
    """Write numbers and texts with quoted commas, quotes and newlines; returns the file's text."""
    text = "".join(f'{number},"a ""quoted"", text\nof record {number}"\n' for number in range(records))
    path.write_text(text)
    return text


def test_a_file_is_loaded_as_the_servers_own_copy_would(each_server: Server, tmp_path: Path) -> None:
    database = each_server.database("plain")
    database.sql("CREATE TABLE t (id int, note text)")
    text = write_csv(tmp_path / "t.csv")
    summary = howdah.load(tmp_path / "t.csv", "t", to=database.conninfo, chunk_size="8kB", jobs=2)
    assert summary.status == "done"
    assert summary.rows_read == summary.rows_stored == RECORDS
    # What lies across the ends of ranges is read by two of them.
    assert summary.bytes_read >= len(text)
    assert [file.location for file in summary.files] == [str(tmp_path / "t.csv")]
    assert database.sql("SELECT count(*), count(DISTINCT id), sum(length(note)) FROM t") == "|".join(
        str(number)
        for number in (RECORDS, RECORDS, sum(len(f'a "quoted", text\nof record {n}') for n in range(RECORDS)))
    )


def test_names_of_columns_may_hold_any_character(database: Database, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"x=y,z",b\n001,002\n')
    options = {"create": True, "names": "keep", "types": {"x=y,z": "text", "b": "text"}}
    howdah.load(tmp_path / "t.csv", "t", to=database.conninfo, **options)
    howdah.load(tmp_path / "t.csv", "t", to=database.conninfo, map={"x=y,z": "b", "b": "x=y,z"}, known="load")
    assert database.sql("SELECT string_agg(\"x=y,z\" || b, ' ' ORDER BY b DESC) FROM t") == "001002 002001"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_told_by_content(database: Database, tmp_path: Path, compress: type[gzip.GzipFile]) -> None:
    database.sql("CREATE TABLE t (id int, note text)")
    plain = write_csv(tmp_path / "plain.csv").encode()
    (tmp_path / "packed").write_bytes(compress(plain[:5000]) + compress(plain[5000:]))
    assert howdah.load(tmp_path / "packed", "t", to=database.conninfo).rows_stored == RECORDS


def test_every_option_of_copy_has_its_argument(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a text, b text NOT NULL, c text DEFAULT 'd', other text DEFAULT 'none')")
    (tmp_path / "t").write_bytes("x;B;y\n'NIL';NIL;D\n'\xe4 *'*'';b;NIL\n".encode("latin1"))
    howdah.load(
        [str(tmp_path / "t")], "t", to=database.conninfo, format="csv", delimiter=";", quote="'", escape="*",
        null="NIL", header=True, encoding="LATIN1", force_null=["a"], force_not_null="b", default="D",
        map={"x": "a", "y": "c"}, ignore_extra=False, jobs="auto", memory=256 << 20, chunk_size=1 << 20,
        ledger="books", job_id="by name", force=False, retry_for=5,
    )  # fmt: skip
    assert database.sql("SELECT a IS NULL, a, b, c, other FROM t ORDER BY b") == "t||NIL|d|none\nf|\xe4 ''|b||none"
    assert database.sql("SELECT job_id FROM books.job") == "by name"


def test_columns_are_chosen_by_position_or_by_a_header_that_holds_more(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int, b int)")
    (tmp_path / "t").write_text("x,b,a\n9,2,1\n")
    with pytest.raises(howdah.DataError, match=r"\bx\b"):
        howdah.load(tmp_path / "t", "t", to=database.conninfo, header=True)
    howdah.load(tmp_path / "t", "t", to=database.conninfo, header=True, ignore_extra=True)
    (tmp_path / "u").write_text("4,3\n")
    howdah.load(tmp_path / "u", "t", to=database.conninfo, columns=["b", "a"])
    assert database.sql("SELECT * FROM t ORDER BY a") == "1|2\n3|4"


def test_any_mapping_names_columns_and_types(database: Database, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("x\n1\n")
    names, types = MappingProxyType({"x": "a"}), MappingProxyType({"a": "numeric"})
    howdah.load(tmp_path / "t", "t", to=database.conninfo, create=True, map=names, types=types)
    assert database.sql("SELECT a, pg_typeof(a) FROM t") == "1|numeric"
    load: Any = howdah.load
    with pytest.raises(TypeError, match="argument 'map'"):
        load(tmp_path / "t", "t", to=database.conninfo, map=[("x", "a")])


def test_copy_options_are_taken_verbatim(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a text, b text)")
    (tmp_path / "t").write_text("a\tb\n1\t2\n")
    howdah.load(tmp_path / "t", "t", to=database.conninfo, copy_options=r"(FORMAT csv, HEADER, DELIMITER E'\t')")
    assert database.sql("SELECT * FROM t") == "1|2"
    with pytest.raises(howdah.UsageError, match="copy_options holds all options of COPY: null cannot be given"):
        howdah.load(tmp_path / "t", "t", to=database.conninfo, copy_options="(FORMAT csv)", null="x")


def test_many_files_go_to_many_tables(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE one (a int); CREATE TABLE two (a int); CREATE TABLE three (a int)")
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.csv").write_text("1\n2\n")
    summary = howdah.load(
        {str(tmp_path / "one.csv"): "one", str(tmp_path / "two.csv"): None}, "two", to=database.conninfo
    )
    assert [(table.table, table.rows_stored) for table in summary.tables] == [
        ("public.one", 2),
        ("public.two", 2),
    ]
    howdah.load(tmp_path / "th{table}.csv", "th{table}", to=database.conninfo)
    assert database.sql("SELECT count(*) FROM three") == "2"


def test_a_second_run_is_refused_and_changes_nothing(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (id int, note text)")
    write_csv(tmp_path / "t.csv")
    howdah.load(tmp_path / "t.csv", "t", to=database.conninfo)
    with pytest.raises(howdah.JobDoneError) as refused:
        howdah.load(tmp_path / "t.csv", "t", to=database.conninfo)
    assert refused.value.kind == "job_done"
    assert refused.value.hint is not None and "--" not in str(refused.value)
    assert database.sql("SELECT count(*) FROM t") == str(RECORDS)
    howdah.load(tmp_path / "t.csv", "t", to=database.conninfo, force=True)
    assert database.sql("SELECT count(*) FROM t") == str(2 * RECORDS)


def test_without_a_ledger_nothing_is_remembered(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t").write_text("1\n")
    for _ in range(2):
        howdah.load(tmp_path / "t", "t", to=database.conninfo, ledger=None)
    assert database.sql("SELECT count(*), to_regnamespace('howdah') IS NULL FROM t") == "2|t"


def test_the_summary_is_the_document_of_the_command(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int)")
    (tmp_path / "t").write_text("1\n")
    summary = howdah.load(tmp_path / "t", "t", to=database.conninfo)
    document = summary.to_dict()
    keys = {"job", "status", "rows_read", "rows_stored", "rows_rejected", "bytes_read", "wall_seconds", "stages",
            "retries", "files", "tables"}  # fmt: skip
    assert keys <= document.keys()
    assert document["files"][0]["rows_stored"] == 1
    assert document["sessions_trace"] == []
    assert howdah.Summary.from_document(document) == summary
    assert pickle.loads(pickle.dumps(summary)) == summary
    assert "1 row" in str(summary) or "1 rows" in str(summary)
    with pytest.raises(AttributeError):
        summary.rows_read = 2  # type: ignore[misc]


def test_what_is_unsure_is_in_the_summary(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE am (id int, d date)")
    (tmp_path / "am.csv").write_text("id,d\n1,01/02/2024\n2,03/04/2024\n")
    report = howdah.check(tmp_path / "am.csv", "am", to=database.conninfo, header=True)
    summary = howdah.load(tmp_path / "am.csv", "am", to=database.conninfo, header=True)
    for found in (report, summary):
        (unsure,) = found.unsure
        assert unsure.startswith("public.am: no value seen of d tells day from month")
        assert found.to_dict()["unsure"] == [unsure]
        assert "unsure public.am: no value seen of d tells day from month" in str(found)
