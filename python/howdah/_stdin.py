"""Whether Python has taken bytes of standard input that howdah, which reads the descriptor, would miss."""

from __future__ import annotations

import os
import sys
from typing import Any

STDIN = 0

# Device and inode of what lacks the bytes that a stream held once.
_lacking: set[tuple[int, int]] = set()


def is_read_ahead() -> bool:
    """Tell whether `sys.stdin` holds, or held at an earlier call, bytes that nobody has read from it."""
    try:
        status = os.fstat(STDIN)
    except OSError:
        # Closed: it gives nothing to anybody.
        return False
    file = (status.st_dev, status.st_ino)
    streams = (sys.stdin, sys.__stdin__)
    # Looking takes them out of the stream.
    if any([_gives(stream) for stream in streams if _reads_stdin(stream)]):
        _lacking.add(file)
    return file in _lacking


def _reads_stdin(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == STDIN)
    except (AttributeError, OSError, ValueError):
        # Closed, or what a notebook or a test has put in its place.
        return False


def _gives(stream: Any) -> bool:
    """Read what the stream gives while the descriptor is at its end.

    Of a pipe nothing else tells that without waiting for its writer: it has no offset, and `peek` reads where the
    buffer is empty, and knows nothing of characters that are decoded already.
    """
    kept, nothing = os.dup(STDIN), os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, STDIN)
        return bool(stream.read())
    except UnicodeError:
        return True
    finally:
        os.dup2(kept, STDIN)
        os.close(kept)
        os.close(nothing)
