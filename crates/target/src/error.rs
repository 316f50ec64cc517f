//! What tokio-postgres reports, as howdah's own errors: the one place where a kind is decided.
//!
//! Kinds follow the SQLSTATE (PostgreSQL documentation, appendix A) or the kind of I/O failure, never
//! the text, which the server may have translated. DETAIL and CONTEXT are left out: they quote rows.

use crate::copy::server_error::{is_of_policy, is_raised, safe_message};
use howdah_model::{Error, ErrorKind, sqlstate};
use std::error::Error as _;
use std::{io, iter};
use tokio_postgres::error::{DbError, SqlState};

/// Sessions speak UTF-8, and a database of SQL_ASCII may hold any bytes.
const NOT_UTF8_HINT: &str = "a name in the database (of a table, column, index, constraint, trigger ...), or a value that it was asked for, is not \
     UTF-8, which a database of SQL_ASCII allows: give what has such a name another one, in psql behind SET client_encoding = 'SQL_ASCII'";

/// An error of a running session. `doing` completes "while ...".
pub(crate) fn session_error(error: &tokio_postgres::Error, doing: &str) -> Error {
    if let Some(db) = error.as_db_error() {
        // Of all else, names are what helps.
        let may_quote_rows = db.code().code().starts_with("22") || is_raised(db);
        let told = if may_quote_rows { safe_message(db, iter::empty()) } else { db.message().to_owned() };
        let told = server_error(db, &format!("the server says: {told}"));
        return match db.code().code() {
            _ if is_raised(db) && told.hint().is_none() => raised(&told, doing),
            sqlstate::CHARACTER_NOT_IN_REPERTOIRE => told.with_hint(NOT_UTF8_HINT),
            _ => told,
        };
    }
    if error.is_closed() || io_source(error).is_some() {
        let cause = io_source(error).map(|e| format!(": {e}")).unwrap_or_default();
        return Error::new(
            ErrorKind::ConnectionLost,
            format!("the connection to the server was lost while {doing}{cause}"),
        );
    }
    // Left over: messages out of order, values that do not convert. Our fault or the library's.
    let cause = error.source().map(|e| format!(": {e}")).unwrap_or_default();
    Error::new(ErrorKind::Internal, format!("{error} while {doing}{cause}"))
}

/// Text of a function, which is not shown: what it was asked about is.
fn raised(told: &Error, doing: &str) -> Error {
    let error = Error::new(told.kind(), format!("{} (while {doing})", told.message())).with_hint(
        "a trigger, an event trigger (pg_event_trigger lists them) or a function of the database has raised this: its text and its statement \
         are in the server's log",
    );
    match told.sqlstate() {
        Some(sqlstate) => error.with_sqlstate(sqlstate),
        None => error,
    }
}

/// An error with this text for what the server reported, its kind decided by SQLSTATE alone.
pub(crate) fn server_error(db: &DbError, message: &str) -> Error {
    let code = db.code().code();
    let mut error = Error::new(kind_of_sqlstate(code), message).with_sqlstate(code);
    // What a statement itself is refused for has no context.
    if db.where_().is_some() {
        error = error.met_at_row();
    }
    match server_hint(db) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Shutdown, crash, start-up and class 08 end the session but may pass; class 28 and unknown
/// databases do not; all else, "too many connections" (53300) included, is for the caller's table.
pub(crate) fn kind_of_sqlstate(code: &str) -> ErrorKind {
    match code {
        sqlstate::ADMIN_SHUTDOWN | sqlstate::CRASH_SHUTDOWN | sqlstate::CANNOT_CONNECT_NOW => {
            ErrorKind::ConnectionLost
        }
        sqlstate::INVALID_CATALOG_NAME => ErrorKind::ConnectionRefused,
        _ if code.starts_with("08") => ErrorKind::ConnectionLost,
        _ if code.starts_with("28") => ErrorKind::ConnectionRefused,
        _ => ErrorKind::Server,
    }
}

/// Where the server finds that a role is not there, may not log in or has as many sessions as it may, and
/// where it finds the last of a database.
const ROLE_ROUTINE: &str = "InitializeSessionUserId";
const DATABASE_FULL_ROUTINE: &str = "CheckMyDatabase";

/// Where the server finds that its table of locks is full.
const LOCK_ROUTINES: &[&str] = &["LockAcquire", "FastPath", "VirtualXactLock"];

/// It is not memory that is short.
pub(crate) fn has_no_locks_left(db: &DbError) -> bool {
    let is_of_locks = |routine: &str| LOCK_ROUTINES.iter().any(|at| routine.starts_with(at));
    *db.code() == SqlState::OUT_OF_MEMORY && db.routine().is_some_and(is_of_locks)
}

/// Where the server heeds a request to cancel. Functions that ask another server report its time-outs with
/// the same SQLSTATE.
const CANCEL_ROUTINE: &str = "ProcessInterrupts";

/// Where the server finds that a row fits no page.
const ROW_TOO_BIG_ROUTINE: &str = "RelationGetBufferForTuple";

/// Where the server finds that an entry fits no page of an index: of any kind, B-tree, GIN, hash, SP-GiST,
/// BRIN.
const INDEX_ROUTINES: &[&str] = &[
    "index_form_tuple",
    "index_form_tuple_context",
    "_bt_check_third_page",
    "GinFormTuple",
    "_hash_doinsert",
    "gistSplit",
    "gistplacetopage",
    "spgdoinsert",
    "brin_doinsert",
    "brin_doupdate",
];

fn is_of_index(routine: &str) -> bool {
    INDEX_ROUTINES.contains(&routine)
}

/// Statements are prepared once a session, under names that no other statement of it has; temporary tables
/// live as long as it does.
pub(crate) const SESSION_HINT: &str = "the session is not the one that has made this, as behind a pool of transactions (pgbouncer: pool_mode = session), or \
     something in the database has run DEALLOCATE or DISCARD in it: connect to the server's own port, and the same command goes on";

/// Of a server that is full.
pub const FEWER_SESSIONS: &str = "use fewer --jobs, or raise max_connections";

fn server_hint(db: &DbError) -> Option<String> {
    let own = match *db.code() {
        SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => SESSION_HINT,
        SqlState::INSUFFICIENT_PRIVILEGE if is_of_policy(db) => {
            "the WITH CHECK of a policy of the table says which rows this role may store"
        }
        SqlState::INSUFFICIENT_PRIVILEGE if is_raised(db) => {
            "a trigger, an event trigger or a function of the database refuses this to the role: its text is in the server's log"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => "ask the owner to GRANT the privilege to this role",
        SqlState::TOO_MANY_CONNECTIONS if db.routine() == Some(ROLE_ROUTINE) => {
            "the role has a CONNECTION LIMIT (pg_roles.rolconnlimit): raise it to 3 at least, or wait for its other sessions; \
             --jobs 1 does with 2"
        }
        SqlState::TOO_MANY_CONNECTIONS if db.routine() == Some(DATABASE_FULL_ROUTINE) => {
            "the database has a CONNECTION LIMIT (pg_database.datconnlimit): raise it to 3 at least, or wait for other sessions; \
             --jobs 1 does with 2"
        }
        SqlState::TOO_MANY_CONNECTIONS => FEWER_SESSIONS,
        SqlState::INVALID_PASSWORD => {
            "check PGPASSWORD, the .pgpass entry, the URL's password or what --password-command prints"
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if db.routine() == Some(ROLE_ROUTINE) => {
            "name a role that is there and may log in as user in --to, or in PGUSER"
        }
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => "check pg_hba.conf on the server and sslmode",
        SqlState::INVALID_CATALOG_NAME => "name an existing database in --to or PGDATABASE",
        SqlState::PROGRAM_LIMIT_EXCEEDED if db.routine() == Some(ROW_TOO_BIG_ROUTINE) => {
            "a row has room for 8 kB of what cannot be moved out of it: spread its columns over several tables, give fewer of them values, \
             or put long text that was set STORAGE PLAIN back by ALTER TABLE ... ALTER COLUMN ... SET STORAGE EXTENDED"
        }
        SqlState::PROGRAM_LIMIT_EXCEEDED if db.routine().is_some_and(is_of_index) => {
            "an index takes no value that is so long: drop the index, or make it on md5(COLUMN) or left(COLUMN, 1000) in its place; \
             --on-error skip leaves such records out"
        }
        SqlState::TOO_MANY_COLUMNS => {
            "a table has 1600 columns at most, dropped ones and those of its composite types counted: load into a table made anew, or leave \
             fields out with --ignore-extra"
        }
        SqlState::OUT_OF_MEMORY if has_no_locks_left(db) => {
            "the server has too few locks for so many tables, partitions and indexes in one transaction: raise its \
             max_locks_per_transaction, which takes a restart"
        }
        SqlState::QUERY_CANCELED if db.routine() == Some(CANCEL_ROUTINE) => {
            "somebody has cancelled this statement (pg_cancel_backend, or a tool that does so), which ends the load: what is in stays, and the \
             same command goes on"
        }
        SqlState::DISK_FULL => "free or add disk space on the server; then run the same command again",
        _ => return None,
    };
    Some(own.to_owned())
}

/// The I/O error behind a session's failure, if that is what it was.
pub(crate) fn io_source(error: &tokio_postgres::Error) -> Option<&io::Error> {
    error.source()?.downcast_ref::<io::Error>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_sqlstate() {
        assert_eq!(kind_of_sqlstate("57P01"), ErrorKind::ConnectionLost);
        assert_eq!(kind_of_sqlstate("08006"), ErrorKind::ConnectionLost);
        assert_eq!(kind_of_sqlstate("28P01"), ErrorKind::ConnectionRefused);
        assert_eq!(kind_of_sqlstate("3D000"), ErrorKind::ConnectionRefused);
        assert_eq!(kind_of_sqlstate("53300"), ErrorKind::Server);
        assert_eq!(kind_of_sqlstate("22P02"), ErrorKind::Server);
    }
}
