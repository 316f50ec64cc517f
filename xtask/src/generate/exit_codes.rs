//! `docs/reference/exit-codes.md`: how the command ends, and the kinds of errors. Codes and names are asked
//! of the code; the meanings are written here.

use howdah_cli::Exit;
use howdah_model::{Error, ErrorKind};
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Exit codes and errors

| code | meaning |
| --- | --- |
";

const EXITS: [(Exit, &str); 5] = [
    (
        Exit::Success,
        "Every row is stored, or `howdah check` has found nothing in what it could check, or the subcommand did what it is for",
    ),
    (
        Exit::Failure,
        "It failed. What is in the tables is what the ledger says: whole chunks, each once. Mend the cause and run the same command again, unless the load has no ledger (`--ledger none`) or reads from a pipe without `--job-id`: nobody knows then which rows are in, or nothing tells that they are the same, so remove the rows of this load first; or all was done, and what was to be written to standard output (`--json`) could not be: the message says so",
    ),
    (
        Exit::Usage,
        "The options or the job file make no sense, or name a job that is not there; nothing was touched",
    ),
    (
        Exit::LeftOut,
        "`howdah check`: some records are bad. Else: loaded, but for records that the table refused (`--on-error skip`), which the ledger's table `reject` keeps, or that `--lenient` could not mend; each is counted, and the first of a file are listed with their places",
    ),
    (
        Exit::Interrupted,
        "Stopped by Ctrl-C, SIGTERM or SIGHUP; what is stored stays, and the same command or `howdah resume` goes on; the hint says where another way is needed: a pipe, no ledger. Indexes that were dropped are put back before; a SIGINT or SIGTERM that comes a second or more after the first signal ends the process at once, which is safe too: `howdah restore` puts them back",
    ),
];

const ERRORS: &str = "\
An error is one line on standard error, and what can be done about it a second one:

    error: file /data/t.csv, line 1042, record 1041, byte 48112, column b: invalid input syntax for type integer: \"...\" (SQLSTATE 22P02)
    hint: ...

`line` is the line in which the record begins, as an editor counts; `record` counts data records from 1, without the header; `byte` is the offset of the record's first byte in the plain
(decompressed) file: `tail -c +48113 t.csv | head -1` shows it (of a file in UTF-16, or another encoding that the server cannot read, none is told). Values are never printed: where the server quotes one,
`\"...\"` stands in its place.

## Kinds of errors

Every error is of one of these kinds; retrying and the exit code are decided from the kind and the SQLSTATE alone.

| kind | what happened | tried again | code |
| --- | --- | --- | --- |
";

/// Kind, meaning, and whether the load tries again by itself.
const KINDS: &[(ErrorKind, &str, &str)] = &[
    (ErrorKind::Usage, "Options that contradict each other or make no sense", "no"),
    (ErrorKind::SourceNotFound, "A source that does not exist, or a pattern that matches nothing", "no"),
    (ErrorKind::SourceDenied, "Reading is not allowed: file permissions, credentials", "no"),
    (
        ErrorKind::SourceChanged,
        "The source is not what an earlier run, or the beginning of this one, read",
        "no",
    ),
    (
        ErrorKind::SourceTransient,
        "Reading broke in a way that may pass: reset, time-out, body too short, HTTP 408, 425, 429, 5xx",
        "yes, from the byte where it broke",
    ),
    (ErrorKind::SourceIo, "Reading broke for good", "no"),
    (ErrorKind::Decompress, "Compressed data is damaged or cut short", "no"),
    (ErrorKind::Unsupported, "A kind of file, or a COPY option, that is not loaded", "no"),
    (ErrorKind::Record, "A record does not fit the format", "no"),
    (
        ErrorKind::TooManyErrors,
        "The table refuses more records than `--max-errors` bears, or all of the first thousand",
        "no",
    ),
    (ErrorKind::RecordTooLong, "A record is longer than the memory budget allows", "no"),
    (ErrorKind::Columns, "The fields of the file and the columns of the table do not match", "no"),
    (
        ErrorKind::Table,
        "There is no such table, it takes no rows, its indexes or triggers cannot be dropped, disabled or put back, or it has some of the files already, or another job is loading them",
        "no",
    ),
    (
        ErrorKind::ConnectionLost,
        "The server cannot be reached or ended the session, and nothing was committed",
        "yes",
    ),
    (
        ErrorKind::ConnectionRefused,
        "The server refuses: password, pg_hba.conf, TLS, no such database; or it is read-only; or no host of the name is known when a load begins",
        "no",
    ),
    (
        ErrorKind::CommitUnknown,
        "COMMIT was sent and its answer lost",
        "yes: the claim in the ledger tells; without a ledger no",
    ),
    (ErrorKind::Server, "The server reported an error; see the SQLSTATE", "by SQLSTATE, see below"),
    (
        ErrorKind::JobDone,
        "The job has finished before; `--force` loads it once more, `--if-done ok` makes it a success",
        "no",
    ),
    (
        ErrorKind::FilesLoaded,
        "All files are in their tables already, by other jobs; `--known load` loads them once more",
        "no",
    ),
    (
        ErrorKind::Ledger,
        "The ledger is missing, of another version than this howdah knows, contradicts the job, or does not tell what `--verify` asks",
        "no",
    ),
    (
        ErrorKind::Differs,
        "`--verify`: what is stored is not what was read; rows may have been changed or deleted by triggers or other sessions",
        "no",
    ),
    (ErrorKind::Local, "Something on this machine: a folder, the embedded server", "no"),
    (ErrorKind::Interrupted, "The user stopped the load", "no"),
    (ErrorKind::Internal, "A promise was broken: please report it", "no"),
];

const RETRIES: &str = "
## What is tried again

For `--retry-for` (10 minutes) counted from the last thing that worked, with waits from 0.1 s doubling to 10 s, each
shortened at random by up to a half so that sessions do not come back together. By SQLSTATE:

| SQLSTATE | what it is | what is done |
| --- | --- | --- |
| 08xxx | the connection broke, or a pooler is full | a new session, the chunk again. A pooler that does not take `options` is not asked twice |
| 40001, 40003, 40P01 | serialization failure, statement completion unknown, deadlock | the chunk again |
| 55P03 | lock not available | the chunk again |
| 57P01, 57P02, 57P03, 57P05, 25P03 | shutdown, crash, starting up, idle session or transaction time-out | a new session, the chunk again |
| 25006 | read only: the old primary after a failover | a new session, which finds the new one. A load or check whose only host is read-only when it begins is refused at once |
| 57014 | somebody has cancelled the statement (`pg_cancel_backend`): the time-out for statements is off in sessions of howdah | the load ends, and what is in stays. Of an index build: the index is missing until `howdah restore` builds it. Of ANALYZE or VACUUM at the end: a warning, and the load is done |
| 53300 | too many connections | the chunk again, with fewer sessions from now on |
| all else | will not get better | the load ends |

While planning, nothing is begun anew after 15 s: a server or store that does not answer at all is most likely misspelled.
A host name that has no address is looked up twice. A session that does not come is waited for 60 s, or for `--retry-for` if that is less, but 10 s at least.
";

pub(super) fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    // Writing to a String cannot fail, here and below.
    for (exit, meaning) in EXITS {
        let _ = writeln!(page, "| {} | {meaning} |", exit.code());
    }
    let _ = write!(page, "\n{ERRORS}");
    for (kind, meaning, again) in KINDS {
        let code = Exit::of(&Error::new(*kind, "")).code();
        let _ = writeln!(page, "| `{}` | {meaning} | {again} | {code} |", name(*kind));
    }
    page + RETRIES
}

/// The kind's stable name.
fn name(kind: ErrorKind) -> String {
    serde_json::to_value(kind).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_is_on_the_page() {
        // The list is open to other crates, so the compiler cannot tell; `Internal` is the last one.
        let names: Vec<String> = KINDS.iter().map(|(kind, _, _)| name(*kind)).collect();
        let text = include_str!("../../../crates/model/src/error.rs");
        let list = text.split_once("pub enum ErrorKind {").unwrap().1.split_once("\n}").unwrap().0;
        let variants = list.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.is_empty());
        assert_eq!(variants.count(), names.len());
    }
}
