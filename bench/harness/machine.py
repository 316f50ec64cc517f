"""Says which machine the figures come from, without its name: they mean nothing without it."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def describe() -> dict[str, str | int | float]:
    """CPU model, cores, memory, kernel and the load the run began with."""
    cores = len(os.sched_getaffinity(0))
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": cores,
        "memory_gib": round(memory_bytes / 2**30),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average_at_start": os.getloadavg()[0],
    }


def revision(root: Path) -> str:
    """The commit measured, with `+` when files have been changed since."""
    commit = _git(root, "rev-parse", "--short", "HEAD")
    return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
