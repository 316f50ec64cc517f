#!/usr/bin/env python3
"""Measures what a value of each type costs client and server, sent as COPY text and in COPY's binary format.

Loads files of eight columns of one type in one session, several times in each form, and prints CPU nanoseconds of
client and server together for a value. The coefficients of crates/engine/src/plan/cost.rs are read off this table: the
cost of a byte is the slope between the two lengths of text, the cost of a value is what is left of its row.
`encode_costs.py char date` measures the types with such names alone, `encode_costs.py geometry` those of PostGIS.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from struct import pack

from harness import measure
from harness.server import Server, find_binaries

ROOT = Path(__file__).resolve().parent.parent
HOWDAH = ROOT / "target/release/howdah"
COLUMNS = 8
ROWS = 400_000
REPEATS = 3
# Rows that differ; the file repeats them.
DISTINCT_ROWS = 5_000


def day(rng: random.Random) -> str:
    """A date of some thirty years."""
    return f"{rng.randrange(1990, 2025)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"


def clock(rng: random.Random) -> str:
    """A time of day."""
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"


def place(rng: random.Random) -> tuple[float, float]:
    """A longitude and a latitude to a tenth of a meter."""
    return round(rng.uniform(-180, 180), 6), round(rng.uniform(-90, 90), 6)


VALUES: dict[str, tuple[str, Callable[[random.Random], str]]] = {
    "text, 8 bytes": ("text", lambda rng: f"{rng.getrandbits(32):08x}"),
    "text, 64 bytes": ("text", lambda rng: f"{rng.getrandbits(256):064x}"),
    "char(1)": ("char(1)", lambda rng: rng.choice("ABCDEF")),
    "char(10), 5 bytes": ("char(10)", lambda rng: f"{rng.getrandbits(20):05x}"),
    "char(10), 10 bytes": ("char(10)", lambda rng: f"{rng.getrandbits(40):010x}"),
    "char(64), 64 bytes": ("char(64)", lambda rng: f"{rng.getrandbits(256):064x}"),
    "smallint": ("smallint", lambda rng: str(rng.randrange(1000))),
    "integer": ("integer", lambda rng: str(rng.randrange(1_000_000))),
    "bigint": ("bigint", lambda rng: str(rng.randrange(10**12))),
    "numeric(15,2)": ("numeric(15,2)", lambda rng: f"{rng.randrange(10**7) / 100:.2f}"),
    "real": ("real", lambda rng: f"{rng.random() * 1000:.3f}"),
    "double precision": ("double precision", lambda rng: repr(rng.random() * 1000)),
    "boolean": ("boolean", lambda rng: rng.choice("tf")),
    "date": ("date", day),
    "time": ("time", clock),
    "timestamp": ("timestamp", lambda rng: f"{day(rng)} {clock(rng)}"),
    "timestamptz": ("timestamptz", lambda rng: f"{day(rng)} {clock(rng)}+00"),
    "interval": ("interval", lambda rng: f"{rng.randrange(100)} days {clock(rng)}"),
    "uuid": ("uuid", lambda rng: f"{rng.getrandbits(128):032x}"),
    "inet": ("inet", lambda rng: f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"),
    "jsonb": ("jsonb", lambda rng: f'{{"a": {rng.randrange(1000)}, "b": [true, "{rng.getrandbits(32):08x}"]}}'),
    "bytea": ("bytea", lambda rng: f"\\x{rng.getrandbits(128):032x}"),
    "geometry, points in hex": ("geometry", lambda rng: f"0101000000{pack('<dd', *place(rng)).hex()}"),
    "geometry, points in words": ("geometry", lambda rng: "POINT({} {})".format(*place(rng))),
    "geometry, lines of ten in words": (
        "geometry",
        lambda rng: f"LINESTRING({','.join('{} {}'.format(*place(rng)) for _ in range(10))})",
    ),
    "integer[]": ("integer[]", lambda rng: f"{{{','.join(str(rng.randrange(10_000)) for _ in range(3))}}}"),
}


def main() -> None:
    """Prints the table."""
    # The system's server has no PostGIS; `cargo xtask servers` adds it to that of the tests, where it can.
    binaries = ROOT / "target/servers/pg15/bin" if sys.argv[1:] == ["geometry"] else find_binaries(ROOT)
    os.environ["PATH"] += f":{ROOT / 'target/servers/psql/bin'}"
    work = (ROOT / "target/bench").absolute()
    with Server(binaries, work) as server:
        print("| type | bytes | text ns | binary ns | binary / text |\n| --- | --- | --- | --- | --- |")
        for name, (sql_type, value) in VALUES.items():
            if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
                continue
            if sql_type == "geometry":
                if server.query("SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'") == "0":
                    print(f"| {name} | no PostGIS |", flush=True)
                    continue
                server.query("CREATE EXTENSION IF NOT EXISTS postgis")
            path = work / "encode_costs.csv"
            bytes_a_value = write(path, value)
            server.query(
                "DROP TABLE IF EXISTS costs",
                f"CREATE TABLE costs ({', '.join(f'c{no} {sql_type}' for no in range(COLUMNS))})",
            )
            text, binary = (ns_a_value(server, path, encode) for encode in ("text", "binary"))
            print(f"| {name} | {bytes_a_value:.1f} | {text:.0f} | {binary:.0f} | {binary / text:.2f} |", flush=True)


def write(path: Path, value: Callable[[random.Random], str]) -> float:
    """Writes the file, as COPY text in csv's clothes: no value has quotes outside quotes. Returns bytes a value."""
    rng = random.Random(1)
    quoted = (
        f'"{text.replace(chr(34), chr(34) * 2)}"' if "," in text else text for text in iter(lambda: value(rng), None)
    )
    rows = [",".join(next(quoted) for _ in range(COLUMNS)) + "\n" for _ in range(DISTINCT_ROWS)]
    text = "".join(rows)
    path.write_text(text * (ROWS // DISTINCT_ROWS))
    return len(text) / (DISTINCT_ROWS * COLUMNS) - 1


def ns_a_value(server: Server, path: Path, encode: str) -> float:
    """The median of some loads, in CPU nanoseconds of client and server."""
    command = [
        str(HOWDAH), "load", "--quiet", "--ledger", "none", "--to", server.conninfo, "--table", "costs",
        "--format", "csv", "--jobs", "1", "--encode", encode, str(path),
    ]  # fmt: skip
    costs = []
    for _ in range(REPEATS):
        server.empty(["costs"])
        server.wait_until_idle()
        before_s = server.cpu_s()
        cost = measure.run(command)
        server.wait_until_idle()
        costs.append(cost.client_cpu_s + server.cpu_s() - before_s)
    return statistics.median(costs) * 1e9 / (ROWS * COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
