"""`howdah.resume`."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

from .events import Event
from .summary import Summary

def resume(
    job: str,
    *,
    to: str | None = None,
    password_command: str | None = None,
    ledger: str | None = None,
    jobs: int | Literal["auto"] | None = None,
    memory: int | str | None = None,
    indexes: Literal["auto", "keep", "rebuild"] | None = None,
    triggers: Literal["keep", "disable"] | None = None,
    tune: Literal["none", "session", "table", "server"] | None = None,
    max_errors: int | str | None = None,
    reject_file: str | PathLike[str] | None = None,
    retry_for: int | str | None = None,
    pause_for: int | str | None = None,
    max_decompressed: int | str | None = None,
    force: bool = False,
    on_event: Callable[[Event], Any] | None = None,
) -> Summary:
    """Go on with a job where it stopped, with the options it was begun with, but for how it is run.

    Calling `howdah.load` again with the same arguments does the same.

    Args:
        job: The job's name, or the beginning of it: `Summary.job`, or `job_id` of `howdah.status`.
        to: As for `howdah.load`.
        password_command: A command that prints the password.
        ledger: The schema that keeps the ledger; None: `howdah`. It has to be named where a role may write it that is a
            stranger to this one: what it says is done with this role's rights.
        jobs: As for `howdah.load`, like all that follow; None: as the job was begun.
        memory: What the process may hold in memory.
        indexes: What becomes of indexes, keys and foreign keys.
        triggers: What becomes of triggers.
        tune: How far the load may go with settings.
        max_errors: Of a job with on_error="skip": more refused records stop the load.
        reject_file: Of the same: where rejected records are written when the load ends. None: where the job was told to
            write them, if nobody else can have written that into the ledger.
        retry_for: How long failures that may pass are tried again.
        pause_for: How long the load pauses for a full disk or a replica before it gives up.
        max_decompressed: What a compressed file may come to.
        force: Load once more what has been loaded, or what has changed since.
        on_event: As for `howdah.load`.

    Raises:
        howdah.UsageError: There is no such job, or it read from a pipe.
        howdah.JobDoneError: It has finished.
        howdah.SourceError: A source is not what it was.
        howdah.Error: As for `howdah.load`.

    Example:
        >>> howdah.resume("3f9c", to="service=warehouse").rows_stored_before

    """
