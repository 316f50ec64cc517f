"""What a rival is told, and how rivals are installed.

Every module beside this one but `psql_copy` has: `NAME`; `install(tools)`, which raises `NotInstalled` with the
reason; `command(load, tools)`, the command to measure. Optional are `READS_GZIP`, `ROWS_MAX` (for tools too slow
for whole files: both sides then load the first rows) and `OWN_TABLE` (the tool makes its own table).
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


class NotInstalled(Exception):
    """The tool cannot be had here; the message says why."""


@dataclass(frozen=True)
class Load:
    """One file for one table. `conninfo` goes over the unix socket, `url` over TCP."""

    file: str
    table: str
    delimiter: str
    copy_options: str
    conninfo: str
    url: str
    cores: int

    @property
    def schema_and_name(self) -> tuple[str, str]:
        """The table's two names."""
        schema, _, name = self.table.rpartition(".")
        return schema or "public", name

    @staticmethod
    def from_arguments() -> Load:
        """The load a rival's own process was started for."""
        return Load(**json.loads(sys.argv[1]))


@dataclass(frozen=True)
class Tools:
    """Where rivals live: the virtual environment, a folder for files they need, and this package's parent."""

    venv: Path
    scratch: Path
    bench: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.venv / "bin" / "python"

    def pip(self, *packages: str) -> None:
        """Installs packages into the environment, which is made when first needed."""
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(self.venv)], check=True)
        command = [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotInstalled(f"pip install {' '.join(packages)}: {done.stderr.strip().splitlines()[-1:]}")

    def python_command(self, module: str, load: Load) -> list[str]:
        """Runs `module` of this package for `load`; interpreter start and imports are part of what a user waits for."""
        return ["env", f"PYTHONPATH={self.bench}", str(self.python), "-m", module, json.dumps(asdict(load))]
