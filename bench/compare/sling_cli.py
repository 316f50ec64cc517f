"""sling: its command from the last packages that carry the binary (newer ones download it when imported)."""

from __future__ import annotations

from .rival import Load, NotInstalled, Tools

NAME = "sling"
ROWS_MAX = 1_000_000


def install(tools: Tools) -> None:
    """The binary is a package of its own."""
    tools.pip("sling==1.4.11", "sling-linux-amd64==1.4.11")
    if not list(_binaries(tools)):
        raise NotInstalled("the package sling-linux-amd64 has no binary for this machine")


def command(load: Load, tools: Tools) -> list[str]:
    """Into the table that is there."""
    (binary, *_) = _binaries(tools)
    options = f'{{"delimiter": "{"\\\\t" if load.delimiter == chr(9) else ","}", "header": true}}'
    stream = ["--src-stream", f"file://{load.file}", "--src-options", options]
    target = ["--tgt-conn", "BENCH", "--tgt-object", load.table, "--mode", "truncate"]
    return ["env", f"BENCH={load.url}", "SLING_DISABLE_TELEMETRY=true", str(binary), "run", *stream, *target]


def _binaries(tools: Tools):
    return tools.venv.glob("lib/python*/site-packages/sling_linux_amd64/bin/sling-linux-amd64")
