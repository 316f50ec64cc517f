"""What came of a load: the document that `howdah load --json` prints, as an object."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Optional


def known(declared: type[Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without the keys of a later release than this class."""
    own = {field.name for field in dataclasses.fields(declared)}
    return {key: value for key, value in document.items() if key in own}


def expect_account(document: dict[str, Any]) -> None:
    """Refuse the document of what was refused itself."""
    if "files" not in document and isinstance(document.get("error"), dict):
        kind = document["error"].get("kind")
        raise ValueError(f"the document holds no account: what it is of was refused before it began (error {kind!r})")


@dataclasses.dataclass(frozen=True)
class FileSummary:
    """One file's account."""

    location: str
    """The file: a path, `-` or a URL without credentials."""
    table: str
    """The table it went to, as `schema.name`."""
    rows_read: int
    """Records found in it."""
    rows_stored: int
    """Rows in the table, those of earlier runs of the same job included."""
    rows_rejected: int
    """Records left out, those of earlier runs of the same job included."""
    bytes_read: int
    """Bytes read as stored: compressed where the file is."""
    done: bool
    """All of it is in."""


@dataclasses.dataclass(frozen=True)
class TableSummary:
    """One table's account."""

    table: str
    """`schema.name`."""
    rows_read: int
    """Records found for it."""
    rows_stored: int
    """Rows stored, those of earlier runs of the same job included."""
    changes: Optional[dict[str, int]] = None
    """Rows `inserted`, `updated`, `unchanged` and `deleted`, those `held_back` by a trigger or policy, and `duplicates`
    among the records, where rows did not come into the table as they were read."""


@dataclasses.dataclass(frozen=True)
class Summary:
    """The whole account of one run. `str()` has what is `unsure`, the `warnings` and the command's text at the end."""

    job: str
    """The job's name in the ledger; `howdah.resume` takes it."""
    status: Literal["done", "failed", "interrupted"]
    """How it ended."""
    server: str
    """Where the rows went: server and database as `postgresql://user@host:port/database`, without a password."""
    rows_read: int
    """Records found in the sources."""
    rows_stored: int
    """Rows that the tables have taken, those of earlier runs of the same job included.

    With a key all records that were not rejected."""
    rows_stored_before: int
    """Of `rows_stored`, those an earlier or simultaneous run of the same job had stored."""
    rows_waiting: int
    """Rows in staging tables, where the load failed or was stopped before they came into their tables."""
    rows_rejected: int
    """Records left out, those of earlier runs of the same job included: by `lenient=True`, or kept in the ledger by
    `on_error="skip"`."""
    rows_rejected_before: int
    """Of `rows_rejected`, those an earlier run of the same job had left out."""
    comments: int
    """Lines passed over because they begin as comments do in their file, and have not its shape."""
    mended: dict[str, int]
    """Kind of mend (`short_row`, `stray_quote`, ..., `left_out`) -> records: what this run mended, with `lenient=True`
    or `nul`, and all records left out."""
    left_out: list[dict[str, Any]]
    """`file`, `record`, `line`, `byte`, `column`, `sqlstate` and `reason` of the first records of each file that
    are not stored, where this run has read them: up to 100 left out, and 20 that the table refused."""
    warnings: list[str]
    """Sentences about what is not as may be expected though the load went on: a second table in a file, which is not
    loaded, rows that were loaded before, a sequence that stays behind."""
    unsure: list[str]
    """Sentences about what the data did not tell, so that it was guessed: the file or the table, and the option that
    settles it."""
    read: list[dict[str, Any]]
    """`table`, `column`, `reading` and number of `values` that were spelled in another way than PostgreSQL's."""
    bytes_read: int
    """Bytes read as stored: compressed where the files are."""
    planning_seconds: float
    """From the beginning of planning to the start of loading: the server reached, files and tables looked at, the job
    begun."""
    wall_seconds: float
    """From the start of loading to the end of this run."""
    stages: dict[str, float]
    """Stage (`read`, `decompress`, `split`, `encode`, `copy`, `commit`, `indexes`, `finish`, `apply`,
    `verify`) -> busy or waiting seconds, added up over threads and sessions."""
    sessions: int
    """The largest number of sessions that copied at once."""
    sessions_trace: list[dict[str, Any]]
    """How the number of sessions was found, with `jobs="auto"`: `seconds` from the first bytes, sessions `before` and
    `after`, `mb_per_second`, the `wait` seen most and its `wait_share`, the `reason`, and whether it `settled` then."""
    waits: dict[str, float]
    """Wait event of the server (`Type:Event`, or `CPU`) -> share of the samples, from 0 to 1."""
    limit: Optional[dict[str, Any]]
    """What held the load back: `what` it was, its `share` from 0 to 1, and `of` what that is one: the `time` of the
    run, or what the `sessions` that copied were seen at; None where the load was too short to be seen."""
    retries: int
    """Transient failures that were tried again."""
    tuned: list[str]
    """Settings that were changed while rows came, each `NAME of WHAT = VALUE`; they are put back."""
    paused_seconds: float
    """For how long no chunk was begun because a disk was nearly full or a replica behind."""
    files: list[FileSummary]
    """Per file."""
    tables: list[TableSummary]
    """Per table."""
    verified: Optional[dict[str, Any]] = None
    """With `verify`: `by`, `rows` of this job found in the tables, their `checksum`, and `rows_of_others`."""
    account: str = dataclasses.field(default="", repr=False, compare=False)
    """The same for people, in a few lines."""

    def __str__(self) -> str:
        """Return the account for people."""
        return self.account or repr(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `howdah load --json` prints, without its key `error`; the keys are stable."""
        document = dataclasses.asdict(self)
        del document["account"]
        return document

    @classmethod
    def from_document(cls, document: dict[str, Any], account: str = "") -> Summary:
        """Make a summary of the parsed document of `howdah load --json`.

        A load that was refused before it began has none: its document holds `status` and `error` alone, and is a
        ValueError.
        """
        expect_account(document)
        values = known(cls, document)
        values["files"] = [FileSummary(**known(FileSummary, file)) for file in document["files"]]
        values["tables"] = [TableSummary(**known(TableSummary, table)) for table in document["tables"]]
        values["account"] = account
        return cls(**values)
