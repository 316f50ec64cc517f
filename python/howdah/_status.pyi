"""`howdah.status`."""

from os import PathLike

from .documents import JobRecord

def status(
    job: str | None = None,
    *,
    to: str | None = None,
    password_command: str | None = None,
    ledger: str = "howdah",
    reject_file: str | PathLike[str] | None = None,
) -> list[JobRecord]:
    """Return the jobs that the ledger of a database remembers, the oldest first.

    Args:
        job: A job's name, or the beginning of it: only this one is returned.
        to: As for `howdah.load`.
        password_command: A command that prints the password.
        ledger: The schema that keeps the ledger.
        reject_file: Write the records that the job has rejected, and nobody has loaded since, to this file.

    Returns:
        One dict per job, as `howdah status --json` prints it; none when there is no ledger yet.

    Raises:
        howdah.UsageError: There is no such job, or several begin so; no server is named and there is no
            embedded one.
        howdah.LocalError: The file cannot be written.
        howdah.ConnectionFailedError: The server cannot be reached or refuses us.

    Example:
        >>> [job["job_id"] for job in howdah.status(to="service=warehouse") if job["status"] != "done"]

    """
