//! Commands that a user is told to type: they lead to the same server and the same ledger from any shell.

use crate::Connection;

/// The schema of the ledger where `--ledger` does not name one.
pub const LEDGER_DEFAULT: &str = "howdah";

/// `howdah restore 'night load' --to 'host=...' --ledger books`. Without a password.
pub fn command(connection: &Connection, verb: &str, job_id: &str, schema: &str) -> String {
    let mut options = String::new();
    if let Some(to) = connection.to_type() {
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
        assert_eq!(in_shell("it's $x"), "'it'\\''s $x'");
    }
}
