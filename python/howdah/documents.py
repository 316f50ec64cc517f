"""The documents that howdah returns as dicts: the same that the command prints with `--json`."""

from __future__ import annotations

from typing import Any, Literal, Optional, TypedDict


class TablePlan(TypedDict):
    """One table and how files like these are copied into it."""

    table: dict[str, Any]
    """Name, kind and columns as the catalog told them."""
    fields: list[Optional[str]]
    """For each field of the file the column it fills; None drops the field."""
    encode: Literal["pass_through", "copy_text"]
    """Whether the file's bytes go untouched, or records are rewritten."""
    copy_sql: str
    """The COPY statement of every chunk."""
    text_sql: Optional[str]
    """That of chunks of csv that are sent as COPY text."""
    notes: list[str]
    """What was decided and why, one sentence each."""


class FilePlan(TypedDict):
    """One file of a job."""

    location: str
    """A path, `-` or a URL without credentials."""
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
    ranged: bool
    """It is cut by byte ranges that are read in parallel."""
    rereadable: bool
    """It can be read again: not a pipe."""


class Plan(TypedDict):
    """Everything decided before a byte moves. It holds no secret and no row values."""

    job_id: str
    """The job's name in the ledger."""
    work_key: str
    """Digest of the job without the versions of its sources."""
    identity: str
    """Digest of the work key and the version of every file."""
    job: dict[str, Any]
    """What was asked for."""
    server_version: int
    """`server_version_num`: 180006 is 18.6."""
    chunk_bytes: int
    """Plain bytes between chunk borders; one chunk is one transaction."""
    record_bytes_max: int
    """No single record may be longer."""
    format: dict[str, Any]
    """How the files are written, as the server is told."""
    recode: Optional[str]
    """The files' encoding, when the server cannot read it."""
    tables: list[TablePlan]
    files: list[FilePlan]
    """The largest first."""
    indexes: list[dict[str, Any]]
    """What becomes of the tables' indexes: for each table those that are `rebuilt` and those that are `kept`."""
    triggers: list[dict[str, Any]]
    """What becomes of the tables' triggers: for each table that has any the `way` that keeps them from firing."""


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
    chunks: int
    to_put_back: list[str]
    """What it has dropped and not put back yet; `howdah.restore` does."""
    plan: Plan
    """As of its last run."""


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
