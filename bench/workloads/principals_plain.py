"""title.principals.tsv, plain: against `psql \\copy`, and against server-side COPY text of parts.

The second needs a superuser, files on the server's host, and somebody who writes the rows as COPY text and cuts them;
neither is measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.outcome import WALL, Outcome, Target

from .psql import psql, server_copy_text


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Both opponents on the same file."""
    dataset = context.data.imdb("title.principals", gzip=False)
    ours = context.load(dataset)
    yield context.compare("principals_plain", dataset, ours, psql(context, dataset), Target(WALL, 0.55))
    yield context.compare("principals_plain", dataset, ours, server_copy_text(context, dataset), Target(WALL, 1.05))
