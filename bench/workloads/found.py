"""What finding the dialect costs: howdah without a word about the file against howdah with all options given.

Both load the same file into the same table. Without options the plan reads a sample and each chunk is looked at on its
way; that may cost 5 % of the wall time. With `--lenient` on a clean file there is to be no more to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.context import Context
from harness.outcome import WALL, Outcome, Target
from harness.paired import Side


def outcomes(context: Context) -> Iterator[Outcome | None]:
    """Plain and gzip, text and typed columns; then a clean file with and without --lenient."""
    principals = context.data.imdb("title.principals", gzip=False)
    for dataset in (
        principals,
        context.data.imdb("title.principals", gzip=True),
        context.data.lineitem(),
        context.data.flights(),
    ):
        told = context.load(dataset)
        found = context.load_command([str(dataset.path), "--table", dataset.table])
        if told is None or found is None:
            return
        given = Side("howdah, all options given", told.command)
        yield context.compare("found", dataset, found, given, Target(WALL, 1.05), work=f"{dataset.work}, no options")
    lineitem = context.data.lineitem()
    lenient = context.load_command([str(lineitem.path), "--table", lineitem.table, "--lenient"])
    strict = context.load_command([str(lineitem.path), "--table", lineitem.table])
    if lenient is None or strict is None:
        return
    yield context.compare(
        "found",
        lineitem,
        lenient,
        Side("howdah without --lenient", strict.command),
        Target(WALL, 1.03),
        work=f"{lineitem.work}, --lenient",
    )
