"""What is stored is compared with the sources, from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import howdah
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Database


def test_what_is_stored_is_compared_and_a_difference_is_an_error(database: Database, tmp_path: Path) -> None:
    database.sql("CREATE TABLE t (a int, b text)")
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,one\n2,two\n")
    verified = howdah.load(path, "t", to=database.conninfo, verify="checksum").verified
    assert verified is not None
    assert (verified["by"], verified["rows"], verified["rows_of_others"]) == ("checksum", 2, 0)
    database.sql(
        "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.b := NULL; RETURN NEW; END'; "
        "CREATE TRIGGER change BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION change()"
    )
    path.write_text("a,b\n3,three\n")
    with pytest.raises(howdah.DataError, match="other values are in the table than were read, in b") as failed:
        howdah.load(path, "t", to=database.conninfo, verify="checksum")
    assert (failed.value.kind, failed.value.column) == ("differs", "b")
