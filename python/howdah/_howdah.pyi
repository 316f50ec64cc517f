"""The extension module: an index of the verbs, whose documentation is in one stub each."""

from ._check import check as check
from ._command import command as command
from ._load import load as load
from ._pg import pg_start as pg_start
from ._pg import pg_status as pg_status
from ._pg import pg_stop as pg_stop
from ._pg import pg_url as pg_url
from ._plan import plan as plan
from ._restore import restore as restore
from ._resume import resume as resume
from ._status import status as status

__all__ = [
    "__version__",
    "check",
    "command",
    "load",
    "pg_start",
    "pg_status",
    "pg_stop",
    "pg_url",
    "plan",
    "restore",
    "resume",
    "status",
]

__version__: str
