//! The ledger: a schema in the target database that knows which chunks of which job are in.
//! Plans and receipts enter and leave; a chunk's claim is written in the same transaction as its rows,
//! so the ledger cannot be wrong about them. Knows nothing of COPY.

mod account;
mod at_work;
mod check;
mod claim;
mod clock;
mod copied;
mod emptied;
mod ending;
mod gone;
mod hold_tables;
mod job;
mod job_lock;
mod job_row;
pub(crate) mod kept_plan;
mod lacking;
mod maker;
mod noted;
mod numbers;
mod origin;
mod others;
mod plain;
mod proof;
mod reject;
mod rivals;
mod same_table;
mod schema;
mod step;
mod strangers;
mod tuned;
mod undo;
mod verify;

pub use account::FileAccount;
pub use check::RejectKind;
pub(crate) use claim::{BEGUN_SQL, Claim};
pub use emptied::Volatile;
pub use ending::{Ending, Proof};
pub use gone::{StoredRows, Taken};
pub use hold_tables::Hold;
pub(crate) use job_lock::IDLE_IN_TURN_MS;
pub use job_lock::LOCKS_IN_TURN_MS;
pub use job_row::{FileRow, JobRow, JobStatus};
pub(crate) use noted::Known;
pub use noted::OwnUndos;
pub use origin::Origin;
pub use proof::Loading;
pub(crate) use proof::busy;
pub use reject::{RejectRow, RejectsSettled};
pub use rivals::{FileToLoad, LoadedFile, Own, Rival, StoredInPart};
pub use same_table::kin_among;
pub use schema::Footing;
pub use step::Step;
pub use strangers::Believed;
pub use tuned::{Before, Held, Thing};
pub use undo::{NewUndo, Undo, UndoKind};

use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_ident;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use noted::Noted;
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// The version written beside jobs and the schema.
const HOWDAH_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the ledger is. Cheap to copy; every call names the session to use.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// The schema's name, unquoted.
    schema: String,
    /// The same, ready for SQL.
    quoted: String,
    /// What a crash of the server takes from the tables of the job, while the ledger goes on.
    volatile: Option<Arc<Volatile>>,
    /// What it was told to note of changes, for as long as the process lasts.
    noted: Noted,
    /// The user has named it: its journal is believed, whoever may write it.
    named: bool,
}

impl Ledger {
    /// The ledger in this schema (unquoted name). Nothing is created or read.
    pub fn new(schema: &str) -> Ledger {
        Ledger {
            schema: schema.to_owned(),
            quoted: quote_ident(schema),
            volatile: None,
            noted: Noted::default(),
            named: false,
        }
    }

    /// The same, which the user has `named` or not: of one that is named the journal is believed, whoever may
    /// write it.
    #[must_use]
    pub fn named(self, named: bool) -> Ledger {
        Ledger { named, ..self }
    }

    /// It was not there when the newest session was opened, and is not known to be there since: what reads it
    /// finds nothing.
    pub(crate) fn is_absent(&self, session: &Session) -> bool {
        session.ledger_seen().is_absent(&self.schema)
    }

    /// The schema's name, unquoted.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The rows of one of this module's statements. `doing` completes "while ...".
    pub(crate) async fn ask(
        &self,
        session: &Session,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
        doing: &str,
    ) -> Result<Vec<Row>> {
        session.client().query_typed(sql, parameters).await.map_err(|error| self.error(&error, doing))
    }

    /// An error of one of this module's statements; a refusal names what to grant.
    pub(crate) fn error(&self, error: &tokio_postgres::Error, doing: &str) -> Error {
        let mapped = session_error(error, doing);
        match error.code().map(SqlState::code) {
            Some(sqlstate::INSUFFICIENT_PRIVILEGE) => {
                let schema = &self.quoted;
                let message = format!("the ledger in schema {schema} may not be used: {}", mapped.message());
                Error::new(ErrorKind::Ledger, message)
                    .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
                    .with_hint(format!(
                        "where all who share this ledger trust each other, its owner can grant this role USAGE on the schema, and SELECT, \
                         INSERT, UPDATE and DELETE on its tables (of {schema}.reject, the column bytes holds records); or, only if no \
                         load of these files was begun with this one, since what that has stored would come twice, name a ledger of \
                         its own with --ledger"
                    ))
            }
            // Tables or columns that should be there are not: somebody changed the schema.
            Some(sqlstate::UNDEFINED_TABLE | sqlstate::UNDEFINED_COLUMN | sqlstate::INVALID_SCHEMA_NAME) => {
                mapped.with_kind(ErrorKind::Ledger).with_hint(format!(
                    "the schema {} is not a complete ledger: after a failover to a server without it, run the same command again; if it \
                     was dropped, rows that a load has stored are in the table without a receipt, and would come twice: take them out \
                     first; else name another with --ledger, or drop it (its history is lost)",
                    self.quoted
                ))
            }
            Some(sqlstate::UNTRANSLATABLE_CHARACTER) => {
                let message = format!(
                    "the ledger in schema {} cannot keep what names this load: the path of a file, a name in its header, or an option \
                     has a character that the database's encoding lacks",
                    self.quoted
                );
                Error::new(ErrorKind::Ledger, message)
                    .with_sqlstate(sqlstate::UNTRANSLATABLE_CHARACTER)
                    .with_hint(
                        "rename the file, its folder or the field of its header; or load without resume by --ledger none; a database of \
                         UTF8 holds all names",
                    )
            }
            _ => self.numbers_error(error, mapped),
        }
    }
}

/// There is no ledger, or no such table in it.
fn is_not_there(error: &tokio_postgres::Error) -> bool {
    matches!(
        error.code().map(SqlState::code),
        Some(sqlstate::UNDEFINED_TABLE | sqlstate::INVALID_SCHEMA_NAME)
    )
}

/// The same, or it is not for this role.
fn is_lacking(error: &tokio_postgres::Error) -> bool {
    is_not_there(error) || error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}
