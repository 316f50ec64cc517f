#!/usr/bin/env python3
"""Measures what an index or a trigger costs the server for a row: kept while rows are copied, and built behind them.

For each kind a table gets rows by a COPY inside the server, without the index and with it, into an empty table and on
top of as many rows as are there already; then the index is built by CREATE INDEX in one process. Printed are CPU
nanoseconds a row. The coefficients of crates/engine/src/plan/index_cost.rs are read off this table. `triggers` as
argument measures triggers and the foreign key alone.
"""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

from harness.server import Server, find_binaries

ROOT = Path(__file__).resolve().parent.parent
ROWS = 1_000_000
APPENDED = 100_000
REPEATS = 3

# Name: type of the column, value of row n, the index, how many rows (GIN and GiST take long).
KINDS: dict[str, tuple[str, str, str, int]] = {
    "btree, bigint, rising": ("bigint", "n", "USING btree (v)", ROWS),
    "btree, bigint, random": ("bigint", "hashint8(n)::bigint", "USING btree (v)", ROWS),
    "btree, bigint, 1000 values": ("bigint", "hashint8(n) % 1000", "USING btree (v)", ROWS),
    "btree unique, bigint, rising": ("bigint", "n", "USING btree (v)", ROWS),
    "btree, text, 32 bytes, random": ("text", "md5(n::text)", "USING btree (v)", ROWS),
    "btree, text, 12 bytes, rising": ("text", "'tt' || lpad(n::text, 10, '0')", "USING btree (v)", ROWS),
    "hash, text": ("text", "md5(n::text)", "USING hash (v)", ROWS),
    "gin, text[] of 3": (
        "text[]", "ARRAY['a' || abs(hashint8(n) % 50000), 'b' || n % 1000, 'c' || n % 10]", "USING gin (v)", ROWS // 2,
    ),
    "gin, tsvector of 8": (
        "tsvector",
        "(SELECT array_to_tsvector(array_agg(DISTINCT 'w' || abs(hashint8(n * 8 + k) % 50000)))"
        " FROM generate_series(1, 8) k)",
        "USING gin (v)", ROWS // 4,
    ),
    "gist, point": ("point", "point(hashint8(n), hashint8(n + 1))", "USING gist (v)", ROWS // 4),
    "spgist, point": ("point", "point(hashint8(n), hashint8(n + 1))", "USING spgist (v)", ROWS // 4),
    "brin, bigint": ("bigint", "n", "USING brin (v)", ROWS),
}  # fmt: skip


def main() -> None:
    """Prints the table."""
    os.environ["PATH"] += f":{ROOT / 'target/servers/psql/bin'}"
    work = (ROOT / "target/bench").absolute()
    with Server(find_binaries(ROOT), work) as server:
        print("| index | rows | kept, empty table ns | kept, appended ns | built ns |\n| --- | --- | --- | --- | --- |")
        kinds = {} if "triggers" in sys.argv[1:] else KINDS
        for name, (sql_type, value, index, rows) in kinds.items():
            unique = "UNIQUE " if "unique" in name else ""
            create = f"CREATE {unique}INDEX i ON t {index}"
            costs = [measure(server, sql_type, value, create, rows) for _ in range(REPEATS)]
            kept, appended, built = (statistics.median(each) for each in zip(*costs, strict=True))
            print(f"| {name} | {rows:,} | {kept:.0f} | {appended:.0f} | {built:.0f} |", flush=True)
        fk = [foreign_key(server) for _ in range(REPEATS)]
        kept, built = (statistics.median(each) for each in zip(*fk, strict=True))
        print(f"| foreign key, bigint | {ROWS:,} | {kept:.0f} | | {built:.0f} |", flush=True)
        for when in ("BEFORE", "AFTER"):
            kept = statistics.median(trigger(server, when) for _ in range(REPEATS))
            print(f"| {when} trigger in PL/pgSQL that does nothing | {ROWS:,} | {kept:.0f} | | |", flush=True)


def measure(server: Server, sql_type: str, value: str, create: str, rows: int) -> tuple[float, float, float]:
    """Nanoseconds a row: kept in an empty table, kept on top, built."""
    path = server.data / "rows"
    server.query(
        "DROP TABLE IF EXISTS t", f"CREATE TABLE t (id bigint, v {sql_type}, filler text)",
        "SET max_parallel_workers_per_gather = 0",
        f"COPY (SELECT n, {value}, md5(n::text) FROM generate_series(1::bigint, {rows}) n) TO '{path}1'",
        f"COPY (SELECT n, {value}, md5(n::text) FROM generate_series({rows + 1}::bigint, {rows + APPENDED}) n)"
        f" TO '{path}2'",
    )  # fmt: skip
    bare, bare_more = copies(server, path)
    built = cpu(server, "SET max_parallel_maintenance_workers = 0", create)
    server.query("DROP INDEX i", "TRUNCATE t", create)
    kept, kept_more = copies(server, path)
    total = rows + APPENDED
    return (kept - bare) * 1e9 / rows, (kept_more - bare_more) * 1e9 / APPENDED, built * 1e9 / total


def copies(server: Server, path: Path) -> tuple[float, float]:
    """CPU seconds of the first and the second copy into the table."""
    server.query("CHECKPOINT")
    return cpu(server, f"COPY t FROM '{path}1'"), cpu(server, f"COPY t FROM '{path}2'")


def foreign_key(server: Server) -> tuple[float, float]:
    """The same of a foreign key to a table of 10,000 rows."""
    path = server.data / "rows"
    server.query(
        "DROP TABLE IF EXISTS t, p", "CREATE TABLE p (id bigint PRIMARY KEY)",
        "INSERT INTO p SELECT generate_series(0, 9999)", "CREATE TABLE t (id bigint, v bigint, filler text)",
        f"COPY (SELECT n, abs(hashint8(n)) % 10000, md5(n::text) FROM generate_series(1::bigint, {ROWS}) n)"
        f" TO '{path}1'",
        "ANALYZE p",
    )  # fmt: skip
    bare = cpu(server, f"COPY t FROM '{path}1'")
    add = "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (v) REFERENCES p"
    built = cpu(server, add)
    server.query("TRUNCATE t")
    kept = cpu(server, f"COPY t FROM '{path}1'")
    return (kept - bare) * 1e9 / ROWS, built * 1e9 / ROWS


def trigger(server: Server, when: str) -> float:
    """Nanoseconds a row of a row trigger that does nothing."""
    path = server.data / "rows"
    server.query(
        "DROP TABLE IF EXISTS t", "CREATE TABLE t (id bigint, v bigint, filler text)",
        "CREATE OR REPLACE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        f"COPY (SELECT n, n, md5(n::text) FROM generate_series(1::bigint, {ROWS}) n) TO '{path}1'",
    )  # fmt: skip
    bare = cpu(server, f"COPY t FROM '{path}1'")
    server.query("TRUNCATE t", f"CREATE TRIGGER x {when} INSERT ON t FOR EACH ROW EXECUTE FUNCTION nothing()")
    return (cpu(server, f"COPY t FROM '{path}1'") - bare) * 1e9 / ROWS


def cpu(server: Server, *statements: str) -> float:
    """CPU seconds of the whole server for these statements."""
    server.wait_until_idle()
    before_s = server.cpu_s()
    server.query(*statements)
    server.wait_until_idle()
    return server.cpu_s() - before_s


if __name__ == "__main__":
    sys.exit(main())
