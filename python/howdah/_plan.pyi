"""`howdah.plan`."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Literal

from .documents import Plan

def plan(
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
    indexes: Literal["auto", "keep", "rebuild"] = "auto",
    triggers: Literal["keep", "disable"] = "keep",
    sequences: Literal["advance", "keep"] = "advance",
    on_error: Literal["stop", "skip"] = "stop",
    max_errors: int | str | None = None,
    nul: Literal["reject", "strip", "replace"] = "reject",
    reject_file: str | PathLike[str] | None = None,
    rejects: str | None = None,
    after: Literal["analyze", "vacuum", "checkpoint", "none"] | Sequence[str] | None = None,
    mode: Literal["append", "truncate", "replace", "merge", "insert-new"] = "append",
    key: str | Sequence[str] | None = None,
    delete_missing: bool = False,
    keep: Literal["first", "last", "error"] = "error",
    atomic: bool = False,
    freeze: bool = False,
    lock_timeout: int | str | None = None,
    ledger: str | None = "howdah",
    job_id: str | None = None,
    force: bool = False,
    known: Literal["refuse", "skip", "load"] | None = None,
    if_done: Literal["fail", "ok"] = "fail",
    retry_for: int | str | None = None,
    tune: Literal["none", "session", "table", "server"] | None = None,
    max_replica_lag: str | None = None,
    reserve_connections: int = 3,
    pause_for: int | str | None = None,
    max_decompressed: int | str | None = None,
    verify: Literal["count", "checksum"] | None = None,
) -> Plan:
    """Decide everything that `howdah.load` would do with the same arguments, and touch nothing.

    Reads the heads of the files, the server's catalog and the ledger.

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
        after: What is done to the tables when all rows are in; None for what is useful: ANALYZE of tables of which
            more than a tenth is new, changed or gone.
        indexes: Indexes, keys and foreign keys of the tables: kept while rows come, or dropped and built again at
            the end.
        on_error: A record that the table does not take, for whatever reason: the load stops, or keeps the record in the
            ledger's table `reject` and goes on.
        nul: NUL bytes, which no text of PostgreSQL can hold: records with one do not fit, or they are dropped, or each
            is replaced by U+FFFD.
        max_errors: With on_error="skip": more refused records than this, or than a share such as "0.5%", stop the load.
        reject_file: With on_error="skip": the file that a load would write what is refused to; nothing is written.
        rejects: The job whose rejected records the sources hold, mended by now: the plan is that of loading them into
            the table that they were meant for, in the format they have.
        triggers: Triggers of the tables: they fire for each row, or not for these rows, foreign keys then being
            checked at the end.
        sequences: Sequences whose columns the sources fill: moved behind the largest value when all rows are in, or
            left alone.
        mode: What the rows are to those that are there: they come on top (chunk by chunk), into the emptied table, into
            a new one that takes its place, or by their key: `"merge"` changes the rows of keys that are there and adds
            the others, `"insert-new"` only adds.
        key: The columns that tell rows apart, which a unique index is on; for `"merge"` and `"insert-new"`.
        delete_missing: Delete rows whose key no record has; for `"merge"`.
        keep: Which of several records of one key counts, in the order of the sources.
        atomic: Other sessions see all rows at once or none.
        freeze: Write the rows frozen, all rows of a table in one transaction.
        lock_timeout: How long a lock on the table is waited for at a time, in seconds or as `"5s"` (the default).
        ledger: The schema that keeps the ledger, or None.
        job_id: A name for the job.
        force: Load once more what has been loaded.
        known: What becomes of files that a finished job has loaded into the same table.
        if_done: What a run of a job that has finished is to a load.
        retry_for: How long failures that may pass are tried again.
        tune: How far a load may go with settings.
        max_replica_lag: Pause while a replica is further behind.
        reserve_connections: Connections that are left to others.
        pause_for: How long a load pauses before it gives up.
        max_decompressed: What a compressed file may come to; None for 1000 times its size, and 1 GB at least.
        verify: When all rows are in, count those that each chunk has left in the table, or also read the files once
            more and compare value by value; a difference raises DataError.

    Returns:
        The plan, as `howdah plan --json` prints it: tables with their COPY statements and the reasons, files
        the largest first, chunk size in bytes.

    Raises:
        howdah.Error: As for `howdah.load`, as far as it is known before a byte moves.
        howdah.UsageError: No server is named, and there is no embedded one: nothing is made.

    Example:
        >>> howdah.plan("flights.csv.gz", "flights", header=True)["tables"][0]["copy_sql"]

    """
