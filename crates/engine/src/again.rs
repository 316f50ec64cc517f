//! Commands that a user is told to type: they lead to the same server and the same ledger from any shell.

use crate::Connection;
use crate::pipeline::Run;
use howdah_model::terminal::in_shell;
use howdah_model::{Error, ErrorKind, LedgerChoice, Plan};
use howdah_target::undo::RUN_BY_ANOTHER;

/// As hints name it in short.
const RESTORE: &str = "howdah restore";
const STATUS: &str = "howdah status JOB";

/// `howdah restore 'night load' --to 'host=...' --ledger books`. Without a password.
pub fn command(connection: &Connection, verb: &str, job_id: &str, schema: &str) -> String {
    command_to(connection.to_type(), verb, job_id, schema, "")
}

/// The same with `more` options, a space before each.
pub fn command_with(connection: &Connection, verb: &str, job_id: &str, schema: &str, more: &str) -> String {
    command_to(connection.to_type(), verb, job_id, schema, more)
}

fn command_to(to: Option<&str>, verb: &str, job_id: &str, schema: &str, more: &str) -> String {
    let mut options = String::new();
    if let Some(to) = to {
        options += &format!(" --to {}", in_shell(to));
    }
    // Also where it is the usual one: a ledger that strangers may write has to be named.
    options += &format!(" {}", option("--ledger", schema));
    options += more;
    let job = in_shell(job_id);
    // A name like `-x` would be taken for an option anywhere before `--`.
    if job_id.starts_with('-') {
        format!("howdah {verb}{options} -- {job}")
    } else {
        format!("howdah {verb} {job}{options}")
    }
}

/// `--rejects 'night load'`.
pub(crate) fn option(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!("{name}{between}{}", in_shell(value))
}

/// The error, whose hint names `howdah restore`, or another verb with `JOB`, in short, with the whole
/// command.
pub fn in_full(error: Error, connection: &Connection, job_id: &str, schema: &str) -> Error {
    let Some(hint) = error.hint() else { return error };
    let mut full = status_in_full(hint, connection.to_type(), job_id, schema);
    // One that is in full already stands in backquotes.
    if let Some(at) = full.find(RESTORE).filter(|at| !full[..*at].ends_with('`')) {
        // Who has failed is not the one to run it.
        let to = match hint.starts_with(RUN_BY_ANOTHER) {
            true => connection.to_type_by_another(),
            false => connection.to_type(),
        };
        let restore = command_to(to, "restore", job_id, schema, "");
        full.replace_range(at..at + RESTORE.len(), &format!("`{restore}`"));
    }
    error.with_hint(full)
}

/// In a hint the options up to the closing backquote are the command's, too.
fn status_in_full(hint: &str, to: Option<&str>, job_id: &str, schema: &str) -> String {
    let mut parts = hint.split(STATUS);
    let mut full = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (more, rest) = part.split_at(part.find('`').unwrap_or(0));
        full += &command_to(to, "status", job_id, schema, more);
        full += rest;
    }
    full
}

/// How a job that did not end is gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By its name.
    Resume,
    /// It is a check, which nothing is stored of.
    Check,
    /// By the same bytes: it reads from a pipe and has a name.
    SameBytes,
    /// Not at all: nothing tells that another pipe brings what it has begun to read.
    NoName,
    /// By its own command, in which its URLs are whole.
    WholeUrl,
}

impl Way {
    pub(crate) fn of(plan: &Plan) -> Way {
        let is_pipe = plan.files.iter().any(|file| !file.rereadable);
        let is_redacted = plan.job.sources.iter().any(|source| howdah_source::is_redacted(&source.location));
        match plan.job.id {
            _ if plan.job.arrival.check => Way::Check,
            Some(_) if is_pipe => Way::SameBytes,
            None if is_pipe => Way::NoName,
            _ if is_redacted => Way::WholeUrl,
            _ => Way::Resume,
        }
    }

    /// What is to be done, where that is not `howdah resume`.
    pub(crate) fn told(self) -> Option<&'static str> {
        match self {
            Way::Resume => None,
            Way::Check => Some("run the same `howdah check` command again; it drops what this one has left"),
            Way::SameBytes => Some("send the same bytes through the same `howdah load` command again"),
            Way::NoName => Some(
                "nothing goes on with a load from a pipe that has no --job-id: remove the rows that it has stored, then load again",
            ),
            Way::WholeUrl => Some(
                "run the same `howdah load` command again, with the whole URL: the ledger keeps no signature and no password",
            ),
        }
    }
}

/// What goes on with a job that did not end.
pub fn further(connection: &Connection, plan: &Plan, schema: &str) -> String {
    let told = Way::of(plan).told().map(str::to_owned);
    told.unwrap_or_else(|| command(connection, "resume", &plan.job_id, schema))
}

/// The error of a load, with what to do about one that the user has stopped: the same command would store
/// once more what is there already, where nobody knows that.
pub(crate) fn advised(run: &Run, error: Error) -> Error {
    let has_begun = run.ledger.is_none() || run.tally.chunks() > 0;
    match error.kind() {
        ErrorKind::Interrupted if has_begun => {
            error.with_hint(after_stop(&run.context.connection, &run.plan))
        }
        _ => error,
    }
}

fn after_stop(connection: &Connection, plan: &Plan) -> String {
    let LedgerChoice::Schema(schema) = &plan.job.ledger else {
        return "rows of this load are in the table, and without a ledger nobody knows which: remove them before you load again".to_owned();
    };
    match Way::of(plan) {
        Way::Resume => {
            let resume = command(connection, "resume", &plan.job_id, schema);
            format!("run the same command again, or `{resume}`, to go on where it stopped")
        }
        way => way.told().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Absent;
    use howdah_model::ErrorKind;

    #[test]
    fn a_command_names_server_and_ledger_and_is_quoted_for_a_shell() {
        let connection =
            Connection::resolve(Some("postgresql://u:secret@db/prod?sslmode=require"), &[], Absent::Made)
                .unwrap();
        let to = "--to 'dbname=prod host=db sslmode=require user=u'";
        let told = command(&connection, "restore", "night load", "books");
        assert_eq!(told, format!("howdah restore 'night load' {to} --ledger books"));
        assert_eq!(
            command(&connection, "resume", "a-1", "howdah"),
            format!("howdah resume a-1 {to} --ledger howdah")
        );
        assert_eq!(
            command(&connection, "restore", "-x", "books"),
            format!("howdah restore {to} --ledger books -- -x")
        );
        assert_eq!(
            command(&connection, "resume", "a\nb", "-x"),
            format!("howdah resume $'a\\nb' {to} --ledger=-x")
        );
        assert_eq!(option("--rejects", "night load"), "--rejects 'night load'");
        assert_eq!(option("--rejects", "-x"), "--rejects=-x");
        let error = |hint: &str| Error::new(ErrorKind::Table, "no").with_hint(hint);
        let full = |hint: &str| in_full(error(hint), &connection, "a-1", "howdah").hint().unwrap().to_owned();
        assert_eq!(
            full("howdah restore has to run as the owner"),
            "`howdah restore a-1 --to 'dbname=prod host=db sslmode=require' --ledger howdah` has to run as the owner"
        );
        let told = full("mend it, then howdah restore");
        assert_eq!(told, format!("mend it, then `howdah restore a-1 {to} --ledger howdah`"));
        assert_eq!(full(&told), told, "in full already");
        assert_eq!(
            full("`howdah status JOB --reject-file FILE`"),
            format!("`howdah status a-1 {to} --ledger howdah --reject-file FILE`")
        );
        let of_option =
            in_full(error("`howdah status JOB --reject-file FILE` writes"), &connection, "-x", "howdah");
        assert_eq!(
            of_option.hint(),
            Some(&*format!("`howdah status {to} --ledger howdah --reject-file FILE -- -x` writes"))
        );
    }
}
