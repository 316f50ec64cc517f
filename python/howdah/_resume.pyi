"""`howdah.resume`."""

from collections.abc import Callable
from typing import Any, Literal

from .events import Event
from .summary import Summary

def resume(
    job: str,
    *,
    to: str | None = None,
    ledger: str = "howdah",
    indexes: Literal["auto", "keep", "rebuild"] | None = None,
    on_event: Callable[[Event], Any] | None = None,
) -> Summary:
    """Go on with a job where it stopped, with the options it was begun with.

    Calling `howdah.load` again with the same arguments does the same.

    Args:
        job: The job's name, or the beginning of it: `Summary.job`, or `job_id` of `howdah.status`.
        to: As for `howdah.load`.
        ledger: The schema that keeps the ledger.
        indexes: As for `howdah.load`; None: as the job was begun.
        on_event: As for `howdah.load`.

    Raises:
        howdah.UsageError: There is no such job, or it read from a pipe.
        howdah.JobDoneError: It has finished.
        howdah.SourceError: A source is not what it was.
        howdah.Error: As for `howdah.load`.

    Example:
        >>> howdah.resume("3f9c", to="service=warehouse").rows_stored_before

    """
