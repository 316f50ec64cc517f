"""timescaledb-parallel-copy, if it is on the PATH: no registry has a version of it that installs."""

from __future__ import annotations

import shutil

from .rival import Load, NotInstalled, Tools

NAME = "timescaledb-parallel-copy"
READS_GZIP = True


def install(_: Tools) -> None:
    """Only found, not fetched."""
    if shutil.which("timescaledb-parallel-copy") is None:
        raise NotInstalled("not on the PATH, and no registry has a version of it that installs")


def command(load: Load, _: Tools) -> list[str]:
    """As many workers as cores, as its manual advises."""
    schema, name = load.schema_and_name
    delimiter = "\\t" if load.delimiter == "\t" else load.delimiter
    source = ["--file", load.file, "--skip-header", "--split", delimiter]
    target = ["--connection", load.url, "--schema", schema, "--table", name, "--workers", str(load.cores)]
    return ["timescaledb-parallel-copy", *source, *target]
