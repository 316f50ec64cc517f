"""The console script."""

from collections.abc import Sequence
from os import PathLike

def command(arguments: Sequence[str | PathLike[str]]) -> int:
    """Run a command line, its first word being the program's name.

    Only for `howdah.__main__`: it takes over Ctrl-C for the rest of the process and writes to its stdout and
    stderr.

    Returns:
        The exit code: 0 all rows stored, 1 failed, 2 usage, 3 done but for records that were left out or, of a
        check, are bad, 130 stopped by the user.

    """
