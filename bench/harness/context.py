"""What every workload is handed: the server, the data, the howdah to measure, and where failures are noted."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import paired
from .data import Data, Dataset
from .measure import CommandFailed
from .outcome import Outcome, Target
from .paired import Comparison, Side, WrongRows
from .server import Server

TESTED = "howdah"
# The others leave statistics to autovacuum; what is compared is the way of the rows into the table.
AS_OTHERS = ("--after", "none")


@dataclass
class Context:
    """One run of the benchmark. `a_against_a` puts the opponent in howdah's place: ratios then show the noise."""

    root: Path
    work: Path
    server: Server
    data: Data
    rounds: int
    quick: bool
    a_against_a: bool
    not_run: list[str] = field(default_factory=list)
    cores: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))

    @property
    def howdah(self) -> Path | None:
        """The command measured: $HOWDAH_BIN or the release build; None if it is not built."""
        path = Path(os.environ.get("HOWDAH_BIN", self.root / "target/release/howdah"))
        return path if path.exists() else None

    def load(self, dataset: Dataset, *options: str) -> Side | None:
        """howdah with one file and one table, everything else left to it."""
        return self.load_command(
            [str(dataset.path), "--table", dataset.table, "--copy-options", dataset.copy_options, *options]
        )

    def load_command(self, arguments: Sequence[str], env: Mapping[str, str] | None = None) -> Side | None:
        """`howdah load` with `arguments`; the same files are loaded again and again, hence `--force`."""
        if self.howdah is None:
            return None
        command = [str(self.howdah), "load", *arguments, "--to", self.server.conninfo, "--force", "--quiet", *AS_OTHERS]
        return Side(TESTED, command, env or {})

    def compare(
        self,
        workload: str,
        dataset: Dataset,
        ours: Side | None,
        theirs: Side,
        *targets: Target,
        work: str | None = None,
        tables: Sequence[str] | None = None,
        rounds_max: int | None = None,
    ) -> Outcome | None:
        """Runs one comparison; a tool that fails is noted with its reason and ends nothing else."""
        if self.a_against_a:
            ours = Side(f"{theirs.name} (again)", theirs.command, theirs.env, theirs.before, theirs.tables)
        comparison = Comparison(
            workload=workload,
            work=work or dataset.work,
            ours=ours,
            theirs=theirs,
            tables=tables or [dataset.table],
            rows=dataset.rows,
            targets=targets,
            rounds_max=rounds_max,
        )
        try:
            return paired.compare(self.server, comparison, self.rounds, self.say)
        except (CommandFailed, WrongRows) as error:
            self.say(getattr(error, "output", ""))
            self.skip(f"{comparison.work} against {theirs.name}: {error}")
            return None

    def skip(self, reason: str) -> None:
        """Notes what could not be measured."""
        self.not_run.append(reason)
        self.say(f"not run: {reason}")

    @staticmethod
    def say(text: str) -> None:
        """Progress, on stderr: stdout is for the table."""
        print(f"  {text}", file=sys.stderr, flush=True)
