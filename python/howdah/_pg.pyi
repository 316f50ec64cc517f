"""`howdah.pg.start`, `stop`, `status` and `url`."""

from .documents import ServerStatus

def pg_start() -> str:
    """Start the embedded server if it does not run, making its data directory the first time.

    The first start takes about a second, later ones a tenth. Several processes may call this at once. Ctrl-C raises
    KeyboardInterrupt at once; what has begun goes on meanwhile.

    Returns:
        Its connection string, for `to` or any libpq client: unix socket only, no password.

    Raises:
        howdah.LocalError: There are no server programs on this machine, or one of them failed.

    Example:
        >>> howdah.load("t.csv", "t", to=howdah.pg.start())

    """

def pg_stop() -> bool:
    """Stop the embedded server; open transactions are rolled back.

    Ctrl-C raises KeyboardInterrupt at once; what has begun goes on meanwhile.

    Returns:
        Whether it ran.

    Raises:
        howdah.LocalError: It does not stop.

    """

def pg_status() -> ServerStatus:
    """Tell whether the embedded server runs, where its data is, and which version it has.

    Raises:
        howdah.LocalError: There are no server programs on this machine.

    """

def pg_url() -> str:
    """Return the connection string of the embedded server, whether or not it runs.

    Raises:
        howdah.LocalError: There are no server programs on this machine.

    """
