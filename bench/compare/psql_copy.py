"""psql's \\copy, plain and behind zcat: the way everybody has, and the base line of every workload."""

from __future__ import annotations

import shlex

from .rival import Load

NAME = "psql \\copy"
GZIP_NAME = "zcat | psql \\copy"


def command(load: Load) -> list[str]:
    """psql reads the file."""
    return _psql(load, f"\\copy {load.table} FROM '{load.file}' {load.copy_options}")


def gzip_command(load: Load) -> list[str]:
    """zcat decompresses into psql."""
    psql = shlex.join(_psql(load, f"\\copy {load.table} FROM STDIN {load.copy_options}"))
    return ["bash", "-o", "pipefail", "-c", f"zcat {shlex.quote(load.file)} | {psql}"]


def _psql(load: Load, statement: str) -> list[str]:
    return ["psql", "-X", "-q", "-d", load.conninfo, "-c", statement]
