"""`howdah.check`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from .check_report import CheckReport
from .events import Event

def check(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]] | Mapping[str, str | None],
    table: str | None = None,
    *,
    to: str | None = None,
    password_command: str | None = None,
    format: Literal["csv", "text"] | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    escape: str | None = None,
    null: str | Sequence[str] | None = None,
    header: bool | Literal["match"] | None = None,
    encoding: str | None = None,
    force_null: str | Sequence[str] | None = None,
    force_not_null: str | Sequence[str] | None = None,
    default: str | None = None,
    copy_options: str | None = None,
    columns: str | Sequence[str] | None = None,
    map: Mapping[str, str] | None = None,
    ignore_extra: bool = False,
    create: bool | None = None,
    types: Mapping[str, str] | None = None,
    names: Literal["keep", "snake"] = "snake",
    primary_key: str | Sequence[str] | None = None,
    evolve: Literal["none", "add", "widen"] = "none",
    lenient: bool = False,
    all_tables: bool = False,
    jobs: int | Literal["auto"] = "auto",
    memory: int | str | None = None,
    chunk_size: int | str | None = None,
    encode: Literal["auto", "csv", "text", "binary"] = "auto",
    toast_compression: Literal["auto", "keep"] = "auto",
    partitions: Literal["auto", "direct", "parent"] = "auto",
    create_partitions: Literal["day", "month"] | None = None,
    max_errors: int | str | None = None,
    nul: Literal["reject", "strip", "replace"] = "reject",
    reject_file: str | PathLike[str] | None = None,
    rejects: str | None = None,
    mode: Literal["append", "truncate", "replace", "merge", "insert-new"] = "append",
    key: str | Sequence[str] | None = None,
    delete_missing: bool = False,
    keep: Literal["first", "last", "error"] = "error",
    atomic: bool = False,
    lock_timeout: int | str | None = None,
    ledger: str = "howdah",
    retry_for: int | str | None = None,
    max_replica_lag: str | None = None,
    reserve_connections: int = 3,
    pause_for: int | str | None = None,
    max_decompressed: int | str | None = None,
    on_event: Callable[[Event], Any] | None = None,
) -> CheckReport:
    """Read everything and tell all that the table would have against it, storing nothing and holding up nobody.

    Finds wrong types, lengths and characters, NOT NULL, CHECK, duplicates within the sources and against the table,
    foreign keys that lead nowhere, and rows that no partition takes; what only storing would tell is named in
    `not_checked`.

    Args:
        sources: As for `howdah.load`, like all the others.
        table: The table as in SQL.
        to: The database.
        password_command: A command that prints the password.
        format: Read as COPY would; without it, what is not given is found from the data.
        delimiter: What stands between fields.
        quote: One byte around fields.
        escape: One byte before a quote that is data.
        null: The spelling of NULL; without a format also several.
        header: Whether the first record names the columns.
        encoding: The files' encoding.
        force_null: Columns in which a quoted NULL spelling is NULL too.
        force_not_null: Columns in which the NULL spelling is never NULL.
        default: The spelling that stands for a column's default.
        copy_options: All of these in COPY's own words.
        columns: Table columns in the order of the files' fields.
        map: Field of the header -> column it fills.
        ignore_extra: Leave out fields that the table has no column for.
        create: Make the table when there is none.
        types: Column (or `"*"`) -> type of a new table, as SQL writes it.
        names: Names of columns of a new table: as in the header, or such that SQL needs no quotes.
        primary_key: The primary key of a new table.
        evolve: What may be done to a table that exists so that the data fits.
        lenient: Mend records that do not fit, and leave out what is beyond mending.
        all_tables: Load every table that stands in a file; not from a pipe.
        jobs: Sessions that copy at once.
        memory: What the load may hold in memory.
        chunk_size: Bytes of plain data per transaction.
        encode: The format in which records are sent, as far as the data and the types allow.
        toast_compression: How the server compresses values that are too wide for a page.
        partitions: How rows of a partitioned table reach its partitions.
        create_partitions: Make partitions by RANGE of a date or timestamp for rows that have none.
        nul: NUL bytes, which no text of PostgreSQL can hold: records with one do not fit, or they are dropped, or each
            is replaced by U+FFFD.
        max_errors: More bad records than this, or than a share such as "0.5%", stop the check; None for any number.
        reject_file: Bad records are written to this file, in the format of the sources; one that stands there when the
            check begins is replaced, or removed where there are none; what another command writes there meanwhile
            stays, with a warning.
        rejects: The job whose rejected records the sources hold, mended by now: they are checked against the table that
            they were meant for, in the format they have.
        mode: What the rows are to those that are there: they come on top (chunk by chunk), into the emptied table, into
            a new one that takes its place, or by their key: `"merge"` changes the rows of keys that are there and adds
            the others, `"insert-new"` only adds.
        key: The columns that tell rows apart, which a unique index is on; for `"merge"` and `"insert-new"`.
        delete_missing: Delete rows whose key no record has; for `"merge"`.
        keep: Which of several records of one key counts, in the order of the sources.
        atomic: Other sessions see all rows at once or none.
        lock_timeout: How long a lock on the table is waited for at a time, in seconds or as `"5s"` (the default).
        ledger: The schema in which staging tables are made; a check needs one.
        retry_for: How long failures that may pass are tried again.
        max_replica_lag: Pause while a replica is further behind.
        reserve_connections: Connections that are left to others.
        pause_for: How long a load pauses before it gives up.
        max_decompressed: What a compressed file may come to; None for 1000 times its size, and 1 GB at least.
        on_event: Called with each event (see `howdah.events`), on the calling thread only.

    Returns:
        The report: what is wrong with how many records, and where the first of them stand.

    Raises:
        howdah.Error: As for `howdah.load`, with the account so far as its `report`. Bad records are no error.
        howdah.UsageError: No server is named, and there is no embedded one: nothing is made.

    Example:
        >>> report = howdah.check("orders.csv", "orders")
        >>> print(report)

    """
