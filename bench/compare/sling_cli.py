"""sling: its command from the last packages that carry the binary (newer ones download it when imported).

It makes its own table, with types it infers and through a temporary one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .rival import Load, NotInstalled, Tools

NAME = "sling"
ROWS_MAX = 1_000_000
OWN_TABLE = "sling_bench.loaded"


def install(tools: Tools) -> None:
    """The binary is a package of its own."""
    tools.pip("sling==1.4.11", "sling-linux-amd64==1.4.11")
    if not list(_binaries(tools)):
        raise NotInstalled("the package sling-linux-amd64 has no binary for this machine")


def command(load: Load, tools: Tools) -> list[str]:
    """Into a table of its own: into one that is there it would add columns."""
    (binary, *_) = _binaries(tools)
    options = json.dumps({"delimiter": load.delimiter, "header": True})
    stream = ["--src-stream", f"file://{load.file}", "--src-options", options]
    target = ["--tgt-conn", "BENCH", "--tgt-object", OWN_TABLE, "--mode", "full-refresh"]
    return ["env", f"BENCH={load.url}", "SLING_DISABLE_TELEMETRY=true", str(binary), "run", *stream, *target]


def _binaries(tools: Tools) -> Iterator[Path]:
    return tools.venv.glob("lib/python*/site-packages/sling_linux_amd64/bin/sling-linux-amd64")
