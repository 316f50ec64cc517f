//! Whether event triggers let an index be made, found out while there is nothing to lose: one is made that
//! has no row, and rolled back.

use crate::copy::server_error::safe_message;
use crate::error::{server_error, session_error};
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};

/// Others may wait for the table meanwhile.
const TRIED_WITHIN_MS: u32 = 3000;

/// The name of an index that nobody sees.
pub(crate) const NAME: &str = "howdah_trial";

/// Some event trigger is for CREATE INDEX.
///
/// # Errors
/// Those of the session.
pub(crate) async fn is_watched(session: &Session) -> Result<bool> {
    let sql = "SELECT FROM pg_catalog.pg_event_trigger \
               WHERE evtenabled <> 'D' AND evtevent IN ('ddl_command_start', 'ddl_command_end') \
                 AND (evttags IS NULL OR 'CREATE INDEX' = ANY (evttags)) LIMIT 1";
    Ok(!session.rows(sql, &[], "looking for event triggers").await?.is_empty())
}

/// An index to try.
pub(crate) struct Tried<'a> {
    /// On a table that has pages, one that is there: event triggers fire, and no row is read; those that go
    /// by `pg_event_trigger_ddl_commands` see nothing of it.
    pub(crate) name: &'a str,
    /// What it is made on, without partitions.
    pub(crate) on: &'a Relation,
    /// The table that it is about.
    pub(crate) table: &'a Relation,
    /// What is told of the statement, up to `is refused`.
    pub(crate) what: &'a str,
    /// What else helps than another event trigger.
    pub(crate) way_out: &'a str,
}

impl Tried<'_> {
    /// Makes it in the open transaction, under this path, by which functions of event triggers go.
    ///
    /// # Errors
    /// Table, where the server refuses it for good or is not done in time; those of the session.
    pub(crate) async fn expect_allowed(&self, session: &Session, own_path: &str) -> Result<()> {
        let begin = format!("SAVEPOINT trial; {own_path}; SET LOCAL statement_timeout = {TRIED_WITHIN_MS}");
        let create = format!(
            "CREATE INDEX IF NOT EXISTS {} ON ONLY {} ((1))",
            quote_ident(self.name),
            quote_relation(self.on)
        );
        let client = session.client();
        let trying = async {
            client.batch_execute(&begin).await?;
            client.batch_execute(&create).await?;
            client.batch_execute("ROLLBACK TO SAVEPOINT trial").await
        };
        let Err(error) = trying.await else { return Ok(()) };
        let Some(db) = error.as_db_error() else { return Err(session_error(&error, "trying an index")) };
        let names = [self.table.name.as_str(), self.table.schema.as_str()];
        let told = safe_message(db, names.into_iter());
        let refused = format!("{}, is refused: the server says: {told}", self.what);
        let (message, does) = match db.code().code() {
            sqlstate::QUERY_CANCELED => {
                let seconds = TRIED_WITHIN_MS / 1000;
                (format!("{}, has not come to an end within {seconds} s", self.what), "waits")
            }
            code if is_final(code) => (refused, "has raised it"),
            _ => return Err(server_error(db, &refused)),
        };
        let hint =
            format!("an event trigger {does}, perhaps (pg_event_trigger lists them); {}", self.way_out);
        Err(Error::new(ErrorKind::Table, message).with_sqlstate(db.code().code()).with_hint(hint))
    }
}

/// What has to do with the statement or with rights is final, also what an event trigger forbids (P0);
/// deadlocks, shutdowns and the like may pass.
pub(super) fn is_final(sqlstate: &str) -> bool {
    ["0A", "2B", "22", "23", "42", "P0"].iter().any(|class| sqlstate.starts_with(class))
}
