"""Several commands as one: what a user's shell script does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def one_by_one(commands: Sequence[Sequence[str]]) -> list[str]:
    """One after the other; the first that fails ends it."""
    return ["bash", "-e", "-c", "\n".join(shlex.join(command) for command in commands)]


def at_once(commands: Sequence[Sequence[str]]) -> list[str]:
    """All at the same time; fails if one of them does."""
    started = "\n".join(f"{shlex.join(command)} & jobs+=($!)" for command in commands)
    return ["bash", "-e", "-c", f'{started}\nfor job in "${{jobs[@]}}"; do wait "$job"; done']
