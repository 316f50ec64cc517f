//! Commands that a user is told to type: they lead to the same server and the same ledger from any shell.

use crate::Connection;
use howdah_model::Error;
use howdah_target::undo::RUN_BY_ANOTHER;

/// The schema of the ledger where `--ledger` does not name one.
pub const LEDGER_DEFAULT: &str = "howdah";

/// As hints name it in short.
const RESTORE: &str = "howdah restore";

/// `howdah restore 'night load' --to 'host=...' --ledger books`. Without a password.
pub fn command(connection: &Connection, verb: &str, job_id: &str, schema: &str) -> String {
    command_to(connection.to_type(), verb, job_id, schema)
}

fn command_to(to: Option<&str>, verb: &str, job_id: &str, schema: &str) -> String {
    let mut options = String::new();
    if let Some(to) = to {
        options += &format!(" --to {}", in_shell(to));
    }
    if schema != LEDGER_DEFAULT {
        options += &format!(" --ledger {}", in_shell(schema));
    }
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

/// The error, whose hint names `howdah restore`, or another verb with `JOB`, in short, with the whole command.
pub(crate) fn in_full(error: Error, connection: &Connection, job_id: &str, schema: &str) -> Error {
    let Some(hint) = error.hint() else { return error };
    let mut full = hint.replace("howdah status JOB", &command(connection, "status", job_id, schema));
    // One that is in full already stands in backquotes.
    if let Some(at) = full.find(RESTORE).filter(|at| !full[..*at].ends_with('`')) {
        // Who has failed is not the one to run it.
        let to = match hint.starts_with(RUN_BY_ANOTHER) {
            true => connection.to_type_by_another(),
            false => connection.to_type(),
        };
        let restore = command_to(to, "restore", job_id, schema);
        full.replace_range(at..at + RESTORE.len(), &format!("`{restore}`"));
    }
    error.with_hint(full)
}

/// The same word for a shell.
fn in_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::ErrorKind;

    #[test]
    fn a_command_names_server_and_ledger_and_is_quoted_for_a_shell() {
        let connection = Connection::resolve(Some("postgresql://u:secret@db/prod?sslmode=require")).unwrap();
        let to = "--to 'dbname=prod host=db sslmode=require user=u'";
        let told = command(&connection, "restore", "night load", "books");
        assert_eq!(told, format!("howdah restore 'night load' {to} --ledger books"));
        assert_eq!(command(&connection, "resume", "a-1", "howdah"), format!("howdah resume a-1 {to}"));
        assert_eq!(
            command(&connection, "restore", "-x", "books"),
            format!("howdah restore {to} --ledger books -- -x")
        );
        assert_eq!(option("--rejects", "night load"), "--rejects 'night load'");
        assert_eq!(option("--rejects", "-x"), "--rejects=-x");
        let error = |hint: &str| Error::new(ErrorKind::Table, "no").with_hint(hint);
        let full = |hint: &str| in_full(error(hint), &connection, "a-1", "howdah").hint().unwrap().to_owned();
        assert_eq!(
            full("howdah restore has to run as the owner"),
            "`howdah restore a-1 --to 'dbname=prod host=db sslmode=require'` has to run as the owner"
        );
        let told = full("mend it, then howdah restore");
        assert_eq!(told, format!("mend it, then `howdah restore a-1 {to}`"));
        assert_eq!(full(&told), told, "in full already");
        assert_eq!(
            full("`howdah status JOB --reject-file FILE`"),
            format!("`howdah status a-1 {to} --reject-file FILE`")
        );
        assert_eq!(in_shell("it's $x"), "'it'\\''s $x'");
    }
}
