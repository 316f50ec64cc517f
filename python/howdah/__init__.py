"""Bulk loader for PostgreSQL: fast, exactly once, and clear about what held it back.

>>> import howdah
>>> howdah.load("flights.csv.gz", "flights", to="service=warehouse", header=True)  # doctest: +SKIP

The verbs load, plan, check, status, resume and restore of the `howdah` command are functions here, with the same
options under the same names, and those of `howdah pg` are in `howdah.pg`; `howdah bench` is of the command alone. All
release the interpreter while they work, may be called from any thread, and stop cleanly at Ctrl-C.
"""

from howdah import pg
from howdah._howdah import __version__, check, load, plan, restore, resume, status
from howdah.check_report import CheckReport
from howdah.documents import FilePlan, JobRecord, Plan, ServerStatus, TablePlan
from howdah.errors import (
    ConnectionFailedError,
    DataError,
    Error,
    InternalError,
    JobDoneError,
    LocalError,
    ServerError,
    SourceError,
    SourceNotFoundError,
    StoppedError,
    UsageError,
)
from howdah.events import Event
from howdah.summary import FileSummary, Summary, TableSummary

__all__ = [
    "CheckReport",
    "ConnectionFailedError",
    "DataError",
    "Error",
    "Event",
    "FilePlan",
    "FileSummary",
    "InternalError",
    "JobDoneError",
    "JobRecord",
    "LocalError",
    "Plan",
    "ServerError",
    "ServerStatus",
    "SourceError",
    "SourceNotFoundError",
    "StoppedError",
    "Summary",
    "TablePlan",
    "TableSummary",
    "UsageError",
    "__version__",
    "check",
    "load",
    "pg",
    "plan",
    "restore",
    "resume",
    "status",
]
