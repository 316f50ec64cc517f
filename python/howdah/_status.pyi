"""`howdah.status`."""

from .documents import JobRecord

def status(job: str | None = None, *, to: str | None = None, ledger: str = "howdah") -> list[JobRecord]:
    """Return the jobs that the ledger of a database remembers, the oldest first.

    Args:
        job: A job's name, or the beginning of it: only this one is returned.
        to: As for `howdah.load`.
        ledger: The schema that keeps the ledger.

    Returns:
        One dict per job, as `howdah status --json` prints it; none when there is no ledger yet.

    Raises:
        howdah.UsageError: There is no such job, or several begin so; no server is named and there is no
            embedded one.
        howdah.ConnectionFailedError: The server cannot be reached or refuses us.

    Example:
        >>> [job["job_id"] for job in howdah.status(to="service=warehouse") if job["status"] != "done"]

    """
