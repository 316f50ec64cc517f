"""What came of a check: the document that `howdah check --json` prints, as an object."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from howdah.summary import expect_account, known


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """The whole account of a check. `str()` gives the text that the command prints."""

    status: Literal["done", "failed", "interrupted"]
    """How it ended; `done` whatever was found."""
    rows_read: int
    """Records found in the sources."""
    rows_good: int
    """Those that the tables would take."""
    rows_bad: int
    """Those that they would not, each counted once."""
    findings: list[dict[str, Any]]
    """By reason: `table`, `sqlstate`, `column`, `constraint`, `reason`, how many `records`, and the `first` of them,
    each with `file`, `line`, `record`, `byte`, `first_file` and `first_record`."""
    not_checked: list[dict[str, Any]]
    """`table`, `what` and `reason` of what only storing rows would tell."""
    warnings: list[str]
    """Sentences about what is not as may be expected."""
    unsure: list[str]
    """Sentences about what the data did not tell, so that it was guessed, with the option that settles each."""
    comments: int
    """Lines passed over because they begin as comments do in their file."""
    mended: dict[str, int]
    """Kind of mend -> records, with `lenient=True`."""
    bytes_read: int
    """Bytes read as stored: compressed where the files are."""
    wall_seconds: float
    """From start to end."""
    retries: int
    """Transient failures that were tried again."""
    files: list[dict[str, Any]]
    """Per file: `location`, `table`, `rows_read`, `rows_good`, `rows_bad`, `bytes_read`, `done`."""
    account: str = dataclasses.field(default="", repr=False, compare=False)
    """The same for people."""

    def __str__(self) -> str:
        """Return the account for people."""
        return self.account or repr(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `howdah check --json` prints, without its key `error`; the keys are stable."""
        document = dataclasses.asdict(self)
        del document["account"]
        return document

    @classmethod
    def from_document(cls, document: dict[str, Any], account: str = "") -> CheckReport:
        """Make a report of the parsed document of `howdah check --json`.

        A check that was refused before it began has none: its document is a ValueError.
        """
        expect_account(document)
        return cls(**{**known(cls, document), "account": account})
