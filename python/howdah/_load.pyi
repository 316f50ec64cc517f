"""`howdah.load`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from .events import Event
from .summary import Summary

def load(
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
    on_event: Callable[[Event], Any] | None = None,
) -> Summary:
    """Load files, objects or standard input into PostgreSQL, in parallel, every record exactly once.

    Chunks of whole records are committed one by one, each together with its receipt in the ledger. So a load
    may be stopped or killed at any moment: the same call again, or `howdah.resume`, goes on where it stopped.

    The interpreter is released while the load runs. Ctrl-C in the main thread stops it within two seconds and
    then raises KeyboardInterrupt. Indexes that the load has dropped are put back before, however long that takes, and
    a warning says so; a second Ctrl-C does not wait. In an asyncio program, call it by
    `asyncio.to_thread`; to stop it from outside, let `on_event` raise an exception.

    Args:
        sources: What to load: a path, a glob, a directory, `-` (standard input, which `plan`, `check` or `load` reads
            once in a process, also as `/dev/stdin`, and only if `sys.stdin` holds nothing of it), or a URL with
            `s3://`, `gs://`, `az://`, `http://` or `https://`;
            one, several, or a mapping of each to its table.
            Of a named pipe, or another `/dev/fd/N`, each call takes what it reads: a `load` does not get what a `plan`
            before it has taken.
            Compression (gzip, zstd, bzip2, xz, lz4) is told by content. `{table}` in a source stands for the
            table's name.
        table: The table as in SQL, `[schema.]name`; may hold `{table}` as matched in the source.
        to: The database, as a URL or conninfo string. libpq's environment, `.pgpass` and service files complete
            it; when nothing names a server, the embedded one is started and used.
        password_command: A command, run by `sh -c`, whose first line of output is the password: for tokens that run
            out, as new sessions ask for another. HOWDAH_PASSWORD_COMMAND does the same.
        format: Read as COPY would, with COPY's defaults for what is not given. Without it, what is not given is found
            from the data.
        delimiter: Between fields. With a format: one byte; comma for csv, tab for text.
        quote: One byte around fields, or `"none"`; csv only. With a format: `"`.
        escape: One byte before a quote that is data; csv only. With a format: the quote.
        null: The spelling of NULL; without a format also several. With one: nothing unquoted for csv, `\\N` for text.
        header: Whether the first record names the columns; `"match"` demands that it equals them.
        encoding: The files' encoding by its PostgreSQL name. With a format: `PGCLIENTENCODING` or UTF8.
        force_null: Columns in which a quoted NULL spelling is NULL too, or `"*"`; csv only.
        force_not_null: Columns in which the NULL spelling is never NULL, or `"*"`; csv only.
        default: The spelling that stands for a column's default; PostgreSQL 16 and newer.
        copy_options: All of these in COPY's own words: `"(FORMAT csv, HEADER true)"`.
        columns: Table columns in the order of the files' fields; a header is then skipped, a first record that may be
            data only if it names one of them.
        map: Field of the header -> column it fills, where the names differ.
        ignore_extra: Leave out fields of the header that the table has no column for.
        create: Make the table when there is none. Default: in the embedded server.
        types: Column (or `"*"`) -> type of a new table, as SQL writes it. Default: found in the data.
        names: Names of columns of a new table: as in the header, or such that SQL needs no quotes.
        primary_key: The primary key of a new table.
        evolve: What may be done to a table that exists so that the data fits.
        lenient: Mend records that do not fit, count what was mended, and leave out what is beyond mending.
        all_tables: Load every table that stands in a file; the second goes to `table_2`, and so on; not from
            a pipe.
        jobs: Sessions that copy at once; `"auto"` finds out how many help.
        memory: What the load may hold in memory, in bytes or as `"256MB"` (the default).
        chunk_size: Bytes of plain data per transaction, or `"16MB"` (the default, less with many jobs).
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
        reject_file: With on_error="skip": what was refused is written to this file when the load ends, in the format of
            the files loaded; one that stands there when the load begins is replaced, or removed where nothing was
            refused; what another command writes there meanwhile stays, with a warning. A load that is stopped leaves it
            as it was: `howdah.status` writes it.
        rejects: The job whose rejected records the sources hold, as `reject_file` has written them, mended by now: they
            are loaded into the table that they were meant for, in the format they have.
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
        ledger: The schema that keeps the ledger; one that is named is trusted, whoever may write it. None for no
            ledger: such a load cannot be resumed.
        job_id: A name for the job, instead of a digest of files, table and options.
        force: Load once more what has been loaded, or what has changed since an unfinished run.
        known: Files that a finished job has loaded into the same table: the load is refused (the default), goes on
            without them, or loads them once more; for mode="append".
        if_done: A run of a job that has finished raises JobDoneError, or, with "ok", returns the account of the job;
            "ok" needs job_id for a pipe or a URL without a version, and not force.
        retry_for: How long failures that may pass are tried again, in seconds or as `"10min"` (the default).
        tune: How far a load may go with settings, all of which are put back; None for `"table"`, which then leaves
            autovacuum alone where files of less than 4 GB are to come.
        max_replica_lag: Pause while a replica is further behind, in bytes (`"1GB"`) or in time (`"30s"`).
        reserve_connections: Connections that are left to others.
        pause_for: How long a load pauses for a full disk or a replica before it gives up, in seconds or as `"10min"`
            (the default).
        max_decompressed: What a compressed file may come to; None for 1000 times its size, and 1 GB at least.
        verify: When all rows are in, count those that each chunk has left in the table, or also read the files once
            more and compare value by value; a difference raises DataError.
        on_event: Called with each event (see `howdah.events`), on the calling thread only.

    Returns:
        The account of the run. Every record read is stored, but for `rows_rejected`, which `lenient=True` or
            `on_error="skip"` left out, and for those of one key that `keep` passes over. `print()` shows it as the
            command does.

    Raises:
        howdah.UsageError: Arguments contradict each other or have no such value; nothing was touched.
        howdah.SourceNotFoundError: There is no such source.
        howdah.SourceError: Reading is denied, broke for good, or the source has changed since an earlier run.
        howdah.DataError: The data is damaged or does not fit, or the server refuses a record, with its place.
        howdah.ConnectionFailedError: The server cannot be reached, refuses us, or was away for too long.
        howdah.ServerError: The server reported another error, with its SQLSTATE, there is no such table, or some of
            the files are in it already.
        howdah.JobDoneError: This job has finished before, or all files are in; `force=True` loads them once more.
        howdah.LocalError: The embedded server cannot be started.
        KeyboardInterrupt: Ctrl-C; its cause is a `howdah.StoppedError` with the account so far.

    Example:
        >>> summary = howdah.load("title.*.tsv.gz", "staging.title", to="service=warehouse", header=True,
        ...                       delimiter="\\t", on_event=lambda event: print(event["type"]))
        >>> summary.rows_stored, summary.files[0].location
        (4000000, 'title.principals.tsv.gz')

    """
