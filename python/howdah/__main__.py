"""The `howdah` command, also as `python -m howdah`: the same program as the binary without Python."""

import signal
import sys

from howdah._howdah import command


def main() -> None:
    """Run the command line of this process and exit with its code."""
    # Python's own handler would raise KeyboardInterrupt on top of the clean stop that the command makes of
    # Ctrl-C; the command installs its handlers over the default.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command(["howdah", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
