"""`howdah.restore`."""

from collections.abc import Callable
from typing import Any

from .events import Event

def restore(
    job: str | None = None,
    *,
    to: str | None = None,
    password_command: str | None = None,
    ledger: str | None = None,
    on_event: Callable[[Event], Any] | None = None,
) -> int:
    """Put back what a load has dropped or disabled and, being killed, could not put back itself.

    Loading again with the same arguments, or `howdah.resume`, does so too when it ends.

    Args:
        job: The job's name, or the beginning of it; all jobs by default.
        to: As for `howdah.load`.
        password_command: A command that prints the password.
        ledger: The schema that keeps the ledger: `howdah` by default, unless that belongs to another role, whose
            statements would run with your rights: then it has to be named.
        on_event: Called with a notice for each thing that is back.

    Returns:
        How many things are back. What is not and never will be, since its table is gone, is not counted: without
        `on_event`, each is a `UserWarning`.

    Raises:
        howdah.UsageError: There is no such job, or no server is named and there is no embedded one.
        howdah.ServerError: There is no ledger, so no load has left anything there; or it is another role's, and not
            named.
        howdah.Error: The job is still at work, or rows contradict a key.

    Example:
        >>> howdah.restore(to="service=warehouse")

    """
