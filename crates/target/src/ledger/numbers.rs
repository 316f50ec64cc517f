//! The numbers of entries in the ledger, which sequences give. A database that has the ledger's rows by
//! logical replication has not the state of its sequences, which would begin anew behind a failover and give
//! numbers that are taken.

use super::Ledger;
use super::schema::LOCK_KEY;
use crate::session::Session;
use crate::sql::quote_literal;
use futures_util::future::join;
use howdah_model::{Error, ErrorKind, Result, sqlstate};

/// The tables whose column `number` a sequence fills.
const NUMBERED: [&str; 3] = ["undo", "reject", "tuned"];

impl Ledger {
    /// [`Ledger::exists`], and [`Ledger::are_numbers_behind`], in one flight. No transaction is open.
    pub(super) async fn exists_and_numbers(&self, session: &Session) -> (Result<bool>, bool) {
        let reading = async || join(self.version_answer(session), self.are_numbers_behind(session)).await;
        match self.if_plain(session, reading).await {
            Ok((answer, are_behind)) => (self.is_there(session, answer).await, are_behind),
            Err(error) => (Err(error), false),
        }
    }

    /// Some sequence is behind the numbers that are there, and this role may set it. In an open transaction,
    /// in which the tables were looked at; it fails with it where there are no such tables, or not for this
    /// role.
    async fn are_numbers_behind(&self, session: &Session) -> bool {
        let sql = format!("SELECT FROM ({}) AS s WHERE s.is_behind", self.sequences_sql());
        session.client().query_typed(&sql, &[]).await.is_ok_and(|rows| !rows.is_empty())
    }

    /// Sets the sequences that are behind. No transaction is open.
    pub(super) async fn catch_up_numbers(&self, session: &Session) -> Result<()> {
        // Under the lock another load has either done it, or does not see what this one is about to do: none
        // is set back.
        let sql = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; {}; SELECT pg_catalog.pg_advisory_xact_lock({LOCK_KEY}); \
             SELECT pg_catalog.setval(s.sequence, s.last) FROM ({}) AS s WHERE s.is_behind; COMMIT",
            self.expect_plain_sql(),
            self.sequences_sql()
        );
        let done = session.client().batch_execute(&sql).await;
        session.or_roll_back(done).await.map_err(|error| self.error(&error, "setting the ledger's sequences"))
    }

    /// Each sequence that this role may set, with the last number that is taken. The role may not read
    /// others, and for these the server would fail (PostgreSQL before 17).
    fn sequences_sql(&self) -> String {
        let of = |table: &&str| {
            let name = format!("{}.{table}", self.quoted);
            format!(
                "SELECT pg_catalog.pg_get_serial_sequence({}, 'number')::pg_catalog.regclass AS sequence, \
                        pg_catalog.max(number) AS last FROM {name}",
                quote_literal(&name)
            )
        };
        let all = NUMBERED.iter().map(of).collect::<Vec<_>>().join(" UNION ALL ");
        format!(
            "SELECT n.sequence, n.last, \
                    CASE WHEN pg_catalog.has_sequence_privilege(n.sequence, 'UPDATE') \
                              AND pg_catalog.has_sequence_privilege(n.sequence, 'SELECT') \
                         THEN n.last > coalesce(pg_catalog.pg_sequence_last_value(n.sequence), 0) ELSE false END AS is_behind \
             FROM ({all}) AS n"
        )
    }

    /// The error, with what helps if a number was taken.
    pub(super) fn numbers_error(&self, error: &tokio_postgres::Error, mapped: Error) -> Error {
        let Some(constraint) = error.as_db_error().and_then(|db| db.constraint()) else { return mapped };
        let taken = NUMBERED.into_iter().find(|table| constraint == format!("{table}_pkey"));
        let Some(table) = taken.filter(|_| mapped.sqlstate() == Some(sqlstate::UNIQUE_VIOLATION)) else {
            return mapped;
        };
        let name = format!("{}.{table}", self.quoted);
        let message = format!(
            "the sequence of {name} gives numbers that are taken: it has not come with the ledger from another database"
        );
        Error::new(ErrorKind::Ledger, message).with_sqlstate(sqlstate::UNIQUE_VIOLATION).with_hint(format!(
            "the ledger's owner can run SELECT setval(pg_get_serial_sequence({}, 'number'), max(number)) FROM {name}, as a load \
             of that role here does, too; or name another ledger with --ledger",
            quote_literal(&name)
        ))
    }
}
