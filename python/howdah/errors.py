"""The exceptions: one small tree under `Error`.

Each carries a stable `kind` and, as far as it is known, the place in the input; those that Python has a word
for are that, too, so `except FileNotFoundError` and `except ConnectionError` work. Messages hold names,
types, counts and positions; never row values, passwords or tokens.

    Error
    +-- UsageError (ValueError)                     arguments that contradict each other or make no sense
    +-- SourceError (OSError)                       reading is denied, broke, or the source has changed
    |   +-- SourceNotFoundError (FileNotFoundError) there is none
    +-- DataError (ValueError)                      the data does not fit: damage, format, columns, a record refused
    +-- ConnectionFailedError (ConnectionError)     the server cannot be reached, refuses us, or dropped us
    +-- ServerError                                 the server reported an error; no such table; the ledger
    +-- JobDoneError                                the ledger has the job, or its files, as loaded
    +-- LocalError (OSError)                        a local process or folder failed us: the embedded server
    +-- StoppedError                                the cause of what is raised when a load was stopped
    +-- InternalError (RuntimeError)                a fault of howdah itself
"""

from __future__ import annotations

from typing import Literal, Optional

from howdah.check_report import CheckReport
from howdah.summary import Summary

Kind = Literal[
    "usage",
    "source_not_found",
    "source_denied",
    "source_changed",
    "source_transient",
    "source_io",
    "decompress",
    "unsupported",
    "record",
    "too_many_errors",
    "record_too_long",
    "columns",
    "table",
    "connection_lost",
    "connection_refused",
    "commit_unknown",
    "server",
    "job_done",
    "files_loaded",
    "differs",
    "ledger",
    "local",
    "interrupted",
    "internal",
]
"""What went wrong, stable across releases."""


class Error(Exception):
    """Anything that goes wrong in howdah. The text ends with a line `hint: ...` where the user can act."""

    kind: Kind
    """What went wrong, stable across releases."""
    file: Optional[str]
    """The source, as `Summary.files` names it."""
    line: Optional[int]
    """The line in which the record begins, counted from 1 as an editor does, with header and newlines within quotes."""
    record: Optional[int]
    """The data record, counted from 1 without the header."""
    byte: Optional[int]
    """Where the record begins: the offset in the decompressed file, header included."""
    column: Optional[str]
    """The column of the table or file."""
    sqlstate: Optional[str]
    """The server's five-character code, if the server reported this."""
    hint: Optional[str]
    """What the user can do."""
    summary: Optional[Summary]
    """How far the load had come, if it was under way: what is stored stays stored, and a rerun skips it."""
    report: Optional[CheckReport]
    """How far the check had come, if it was under way, and what it had found."""

    def __init__(
        self,
        message: str = "",
        *,
        kind: Kind = "internal",
        file: str | None = None,
        line: int | None = None,
        record: int | None = None,
        byte: int | None = None,
        column: str | None = None,
        sqlstate: str | None = None,
        hint: str | None = None,
        summary: Summary | None = None,
        report: CheckReport | None = None,
    ) -> None:
        """Make an error of this kind; only howdah does."""
        super().__init__(message)
        self.kind = kind
        self.file = file
        self.line = line
        self.record = record
        self.byte = byte
        self.column = column
        self.sqlstate = sqlstate
        self.hint = hint
        self.summary = summary
        self.report = report


class UsageError(Error, ValueError):
    """Arguments that contradict each other or make no sense; nothing was touched."""


class SourceError(Error, OSError):
    """A source cannot be read: denied, broken for good, or other than what an earlier run read."""


class SourceNotFoundError(SourceError, FileNotFoundError):
    """A source that does not exist, or a pattern that matches nothing."""


class DataError(Error, ValueError):
    """The data does not fit: a damaged stream, another kind of file, columns that differ, a record that is refused."""


class ConnectionFailedError(Error, ConnectionError):
    """The server cannot be reached, refuses us for good, or dropped us for longer than `retry_for`."""


class ServerError(Error):
    """The server reported another error, there is no such table, it has some of the files, or the ledger says no."""


class JobDoneError(Error):
    """The ledger has the job as finished, or all its files as loaded: nothing was loaded, but `force=True` does it."""


class LocalError(Error, OSError):
    """A local file or process failed us: a data directory, the embedded server."""


class StoppedError(Error):
    """The load was stopped. Never raised itself: the `__cause__` of what stopped it, KeyboardInterrupt say."""


class InternalError(Error, RuntimeError):
    """A promise was broken: a fault of howdah itself."""
