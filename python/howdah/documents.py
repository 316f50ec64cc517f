"""The documents that howdah returns as dicts: the same that the command prints with `--json`."""

from __future__ import annotations

from typing import Any, Literal, Optional, TypedDict


class TablePlan(TypedDict):
    """One table and how files like these are copied into it."""

    table: dict[str, Any]
    """Name, kind and columns as the catalog told them, or as they are going to be made."""
    create: Optional[dict[str, Any]]
    """The table that the load makes: its `columns` and `primary_key`."""
    changes: list[dict[str, Any]]
    """What is done to it before rows come."""
    fields: list[Optional[str]]
    """For each field of the file the column it fills; None drops the field."""
    readings: list[Any]
    """For each field how its values are spelled, where PostgreSQL would not read them as they are; else None."""
    dialect: Optional[dict[str, Any]]
    """How the files are written, where that was found and not told."""
    care: Literal["server", "watched", "rewritten"]
    """Who looks at the records: the server alone, the client too, or the client reads and rewrites each."""
    format: dict[str, Any]
    """How records are written as the server meets them."""
    recode: Optional[str]
    """The files' encoding, when the server cannot read it and the client converts it."""
    encode: Literal["pass_through", "copy_text"]
    """Whether the file's bytes go untouched, or records are rewritten."""
    copy_sql: str
    """The COPY statement of every chunk."""
    text_sql: Optional[str]
    """That of chunks of csv that are sent as COPY text."""
    binary: Optional[dict[str, Any]]
    """How values are sent in COPY's binary format, where that costs least."""
    route: Optional[dict[str, Any]]
    """How rows find their partition, where the client can tell."""
    known: Optional[dict[str, Any]]
    """Types by which the client finds bad records."""
    number: Optional[dict[str, Any]]
    """The column whose values come from a sequence by the chunk."""
    toast_compression: Optional[str]
    """`default_toast_compression` while rows come; None leaves it."""
    staging: Optional[dict[str, Any]]
    """The staging table in which rows wait."""
    notes: list[str]
    """What was decided and why, one sentence each."""
    unsure: list[str]
    """What cannot be told apart, each with the option that settles it."""
    policies: Optional[dict[str, Any]]
    """How rows meet the policies of row-level security."""
    outside: bool
    """Its rows may be kept elsewhere than in its own pages: foreign tables and partitions, views."""
    frozen: bool
    """Its rows come frozen, all in one transaction."""


class FilePlan(TypedDict):
    """One file of a job."""

    location: str
    """A path, `-` or a URL without credentials."""
    real_location: Optional[str]
    """Where the links in that path lead, where there are any."""
    stored_bytes: Optional[int]
    """Bytes as stored (compressed), where known."""
    version: Optional[str]
    """What must stay the same between runs: ETag, or size and time."""
    table_no: int
    """Index into the plan's tables."""
    codec: Literal["none", "gzip", "zstd", "bzip2", "xz", "lz4"]
    eol: Optional[Literal["lf", "cr", "crlf"]]
    """How its records end."""
    data_start_byte: int
    """Plain bytes before the first data record."""
    data_end_byte: Optional[int]
    """Where the data ends before the file does: totals, notes, a second table."""
    record_like: int
    """Lines beside the table that could be records, and are taken for titles, totals, notes or blank lines."""
    foreign_escapes: bool
    other_table: bool
    """Another table begins where this one ends."""
    found: Optional[str]
    """How it is written, in one line, where this was found."""
    typed: list[bool]
    """For each field: its first values are numbers, days or the like."""
    header: list[str]
    """The names in its header, where that was found: a record that says them again is refused."""
    evidence: list[str]
    """What that was found from."""
    unsure: list[str]
    """What cannot be told apart, each with the option that settles it."""
    ranged: bool
    """It is cut by byte ranges that are read in parallel."""
    rereadable: bool
    """It can be read again: not a pipe."""
    input_no: int
    """Its number in the order in which the sources were given."""
    cut_as_bytes: Optional[int]
    """The stored bytes by which the files before it are cut, where it has changed since the job began."""


class _MayTaper(TypedDict, total=False):
    taper: dict[str, Any]
    """Where chunk borders come closer; absent where they do not."""


class KnownFile(TypedDict):
    """A file that a finished job has loaded into the table that it would go to."""

    location: str
    """As that job wrote it."""
    table: str
    """`schema.name`."""
    job_id: str
    """The latest job that has."""
    at: str
    """When that job finished: RFC 3339, UTC, whole seconds."""
    made_anew: bool
    """The table was dropped or made anew since, and holds rows: nobody knows whether the file's are among them."""


class Plan(_MayTaper):
    """Everything decided before a byte moves. It holds no secret and no row values."""

    job_id: str
    """The job's name in the ledger."""
    work_key: str
    """Digest of the job without the versions of its sources."""
    identity: str
    """Digest of that and the version of every file."""
    job: dict[str, Any]
    """What was asked for."""
    server_version: int
    """`server_version_num`: 180006 is 18.6."""
    chunk_bytes: int
    """Plain bytes between chunk borders at most; one chunk is one transaction."""
    record_bytes_max: int
    """No single record may be longer."""
    tables: list[TablePlan]
    files: list[FilePlan]
    """The largest first."""
    indexes: list[dict[str, Any]]
    """What becomes of the tables' indexes: for each table those that are `rebuilt` and those that are `kept`."""
    triggers: list[dict[str, Any]]
    """What becomes of the tables' triggers: for each table that has any the `way` that keeps them from firing."""
    tuning: dict[str, Any]
    """What is tuned and put back: the `level`, the `settings`, `notes`, and what is `unsafe_as_it_is`."""
    warnings: list[str]
    """What others may meet though the load goes on: publications of tables that it makes; files that came since the
    job began."""
    value_settings: dict[str, str]
    """How sessions read values, in all runs of the job: `DateStyle`, `TimeZone` and the like."""
    known: list[KnownFile]
    """Files that are in their tables already: left out, or loaded once more."""


class FileRecord(TypedDict):
    """What has come of a file of a job."""

    location: str
    table: str
    """`schema.name`."""
    rows_stored: int
    rows_rejected: int
    """Records that were left out or refused."""
    chunks: int


class ErrorRecord(TypedDict):
    """Why a run did not end well, without row values."""

    kind: str
    message: str
    file: Optional[str]
    line: Optional[int]
    record: Optional[int]
    byte: Optional[int]
    column: Optional[str]
    sqlstate: Optional[str]
    hint: Optional[str]


class JobRecord(TypedDict):
    """A job as the ledger knows it."""

    job_id: str
    work_key: str
    status: Literal["running", "done", "failed", "interrupted"]
    """`running` is also what a killed load leaves."""
    started_at: str
    """When its first run began: RFC 3339, UTC."""
    finished_at: Optional[str]
    """When its last run ended."""
    runs: int
    rows_stored: int
    rows_waiting: Optional[int]
    """Rows of its chunks that wait in staging tables for its next run; None where the role may not read the ledger's
    steps, and they may be among `rows_stored`."""
    chunks: int
    to_put_back: list[str]
    """What it has dropped and not put back yet; `howdah.restore` does."""
    plan: Optional[Plan]
    """As of its last run; None where another version of howdah wrote one that this one cannot read."""
    verified: Optional[Literal["count", "checksum"]]
    """How its rows were last compared with the files, and found equal."""
    rows_rejected: int
    """Records of its chunks that were left out or refused."""
    tables: list[str]
    """The tables that its files go to, `schema.name`."""
    files: list[FileRecord]
    """What has come of each file; of one job that is asked for alone."""
    error: Optional[ErrorRecord]
    """Why its last run did not end well; None while it runs, if it was killed, and when it is done."""


class ServerStatus(TypedDict):
    """What is known of the embedded server."""

    state: Literal["absent", "stopped", "running"]
    """`absent`: nothing has been made yet."""
    pid: Optional[int]
    """The server's process, while it runs."""
    major: int
    """The major version, 18 say."""
    data_dir: str
    log_file: str
    bin_dir: str
    """Where the server's programs are."""
