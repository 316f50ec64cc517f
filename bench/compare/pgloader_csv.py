"""pgloader: `LOAD CSV` from a command file."""

from __future__ import annotations

import shutil

from .rival import Load, NotInstalled, Tools

NAME = "pgloader"
ROWS_MAX = 200_000


def install(_: Tools) -> None:
    """A package of the system."""
    if shutil.which("pgloader") is None:
        raise NotInstalled("apt-get install pgloader")


def command(load: Load, tools: Tools) -> list[str]:
    """Writes the command file; fields of tab-separated files are not enclosed, as in IMDb's description."""
    fields = "fields terminated by '\\t', fields not enclosed" if load.delimiter == "\t" else "fields terminated by ','"
    target = load.url.partition("?")[0]
    script = tools.scratch / "pgloader.load"
    script.write_text(
        f"LOAD CSV FROM '{load.file}' INTO {target}?tablename={load.table}\nWITH skip header = 1, {fields};\n"
    )
    return ["pgloader", "--quiet", "--root-dir", str(tools.scratch / "pgloader"), str(script)]
