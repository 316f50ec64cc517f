//! Which loads hold which changed setting, of a table or of the server.
//!
//! The first load that changes a setting writes down what it was; loads that come while it is changed hold it
//! beside the first and take that over. Whoever ceases to hold it as the last puts it back. All of this
//! happens under one advisory lock, so that nobody reads a change for what was there before.

use super::job_lock::{give_up, is_kept, take_briefly};
use super::origin::{Origin, here_sql, table_oid_sql};
use super::{Ledger, is_lacking};
use crate::session::Session;
use crate::sql::quote_literal;
use howdah_model::{Relation, Result};
use std::collections::BTreeMap;
use std::fmt;
use tokio_postgres::types::{ToSql, Type};

/// Keeps the lock's keys apart from those of jobs: "tuned" in ASCII.
const SEED: i64 = 0x74_756e_6564;

/// What can be changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thing {
    /// The table and its OID; `None` is the server.
    pub table: Option<(u32, Relation)>,
    /// The setting or storage parameter; those of the TOAST table begin with `toast.`.
    pub name: String,
}

/// What it was before anybody changed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before {
    /// Its value; `None`: it was not set.
    pub value: Option<String>,
    /// All storage parameters of the table, in order.
    pub options: Option<Vec<String>>,
}

/// A change that a job holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its number in the ledger.
    pub number: i64,
    /// The job.
    pub job_id: String,
    /// What is changed.
    pub thing: Thing,
    /// What it was.
    pub before: Before,
    /// What it is meanwhile.
    pub during: String,
    /// Where the change was noted.
    pub origin: Origin,
}

impl Thing {
    fn oid(&self) -> u32 {
        self.table.as_ref().map_or(0, |(oid, _)| *oid)
    }
}

impl fmt::Display for Thing {
    /// `autovacuum_enabled of public.t`, `max_wal_size of the server`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some((_, relation)) => write!(f, "{} of {relation}", self.name),
            None => write!(f, "{} of the server", self.name),
        }
    }
}

/// The row counts here: of settings of the server, those that were noted elsewhere are that server's.
fn counts_sql(table: &str) -> String {
    format!("({table}.table_oid <> 0::pg_catalog.oid OR {})", here_sql(table))
}

impl Ledger {
    /// Waits for the lock under which holds are taken and given up; it lasts as long as the transaction.
    pub(crate) async fn lock_tuned(&self, session: &Session) -> Result<()> {
        let sql = format!("SELECT FROM pg_catalog.pg_advisory_xact_lock({})", self.tuned_key());
        let done = session.client().query_typed(&sql, &[]).await;
        done.map(|_| ()).map_err(|error| self.error(&error, "locking what is tuned"))
    }

    /// The same until [`Ledger::unlock_tuned`], for changes that cannot be part of a transaction. Until then
    /// the session waits for locks only so long, and the server for its client: all who tune, put back or
    /// settle wait for it.
    ///
    /// # Errors
    /// Server with 55P03 when others have kept it for long, which may pass; those of the session.
    pub(crate) async fn lock_tuned_for_session(&self, session: &Session) -> Result<()> {
        let key = self.tuned_key();
        match take_briefly(session, &key).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let others = "set the server, or put back what they have set";
                Err(is_kept(session, &key, others, "lock for that").await)
            }
            Err(error) => Err(self.error(&error, "locking what is tuned")),
        }
    }

    /// Gives it up.
    pub(crate) async fn unlock_tuned(&self, session: &Session) -> Result<()> {
        let given_up = give_up(session, &self.tuned_key()).await;
        given_up.map_err(|error| self.error(&error, "giving up the lock of what is tuned"))
    }

    fn tuned_key(&self) -> String {
        format!("pg_catalog.hashtextextended({}, {SEED})", quote_literal(&self.schema))
    }

    /// Changes that are held, by one job or by any, the newest first. None where there is no ledger.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn held(&self, session: &Session, job_id: Option<&str>) -> Result<Vec<Held>> {
        if self.is_absent(session) {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT number, job_id, {}, schema_name, table_name, name, value_before, options_before, value_during, {} \
             FROM {}.tuned WHERE undone_at IS NULL AND ($1 IS NULL OR job_id = $1) ORDER BY number DESC",
            table_oid_sql("tuned"),
            here_sql("tuned"),
            self.quoted
        );
        let rows = match session.client().query_typed(&sql, &[(&job_id, Type::TEXT)]).await {
            Ok(rows) => rows,
            // As with the journal: then this role has changed nothing.
            Err(error) if is_lacking(&error) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(self.error(&error, "reading what is tuned")),
        };
        let held = |row: &tokio_postgres::Row| {
            let relation = Relation { schema: row.get(3), name: row.get(4) };
            // A table that did not come with the ledger has the OID 0, but a name.
            let table = Some((row.get(2), relation)).filter(|(_, relation)| !relation.name.is_empty());
            Held {
                number: row.get(0),
                job_id: row.get(1),
                thing: Thing { table, name: row.get(5) },
                before: Before { value: row.get(6), options: row.get(7) },
                during: row.get(8),
                origin: Origin::of(row.get(9)),
            }
        };
        Ok(rows.iter().map(held).collect())
    }

    /// Notes in the open transaction that the job holds the change. What it was before is what the first of
    /// those that hold it found, or else `found`; what it is meanwhile is what the first has given it, or
    /// else `during`, which is returned: the last of them puts back only what has that value. What the job
    /// has noted of another server, before the ledger came here, is noted anew.
    pub(crate) async fn hold(
        &self,
        session: &Session,
        job_id: &str,
        thing: &Thing,
        found: &Before,
        during: &str,
    ) -> Result<String> {
        let sql = format!(
            "WITH first AS (SELECT value_before, options_before, value_during FROM {0}.tuned \
                            WHERE undone_at IS NULL AND {1} = $2 AND name = $5 AND {2} ORDER BY number LIMIT 1), \
                  as_first AS (SELECT * FROM first \
                               UNION ALL SELECT $6, $7, $8 WHERE NOT EXISTS (SELECT FROM first)), \
                  noted AS ( \
             INSERT INTO {0}.tuned AS tuned (job_id, table_oid, schema_name, table_name, name, value_before, options_before, \
                                    value_during, ledger_oid) \
             SELECT $1, $2, $3, $4, $5, as_first.*, pg_catalog.to_regclass($9)::pg_catalog.oid FROM as_first \
             ON CONFLICT (table_oid, name, job_id) WHERE undone_at IS NULL \
             DO UPDATE SET value_before = excluded.value_before, options_before = excluded.options_before, \
                           value_during = excluded.value_during, ledger_oid = excluded.ledger_oid WHERE NOT {2}) \
             SELECT value_during FROM as_first",
            self.quoted,
            table_oid_sql("tuned"),
            counts_sql("tuned")
        );
        let ledger_table = format!("{}.tuned", self.quoted);
        let (oid, relation) = (thing.oid(), thing.table.as_ref().map(|(_, relation)| relation));
        let (schema, table) =
            relation.map_or(("", ""), |relation| (relation.schema.as_str(), relation.name.as_str()));
        let parameters: [(&(dyn ToSql + Sync), Type); 9] = [
            (&job_id, Type::TEXT),
            (&oid, Type::OID),
            (&schema, Type::TEXT),
            (&table, Type::TEXT),
            (&thing.name, Type::TEXT),
            (&found.value, Type::TEXT),
            (&found.options, Type::TEXT_ARRAY),
            (&during, Type::TEXT),
            (&ledger_table, Type::TEXT),
        ];
        let rows = self.ask(session, &sql, &parameters, "noting what is tuned").await?;
        let during = rows.first().map_or_else(|| during.to_owned(), |row| row.get(0));
        self.noted.held(job_id, thing, &during);
        Ok(during)
    }

    /// Those of these entries that are still open, which nobody has given up meanwhile, and whether another
    /// job holds the same.
    pub(crate) async fn open_holds(&self, session: &Session, held: &[Held]) -> Result<BTreeMap<i64, bool>> {
        let sql = format!(
            "SELECT tuned.number, EXISTS (SELECT FROM {0}.tuned other \
                                          WHERE other.undone_at IS NULL AND {1} = {2} AND other.name = tuned.name \
                                            AND other.job_id <> tuned.job_id AND {3}) \
             FROM {0}.tuned WHERE tuned.number = ANY ($1) AND tuned.undone_at IS NULL",
            self.quoted,
            table_oid_sql("other"),
            table_oid_sql("tuned"),
            counts_sql("other")
        );
        let numbers: Vec<i64> = held.iter().map(|held| held.number).collect();
        let rows = self.ask(session, &sql, &[(&numbers, Type::INT8_ARRAY)], "reading what is tuned").await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// The statement that closes an entry.
    pub(crate) fn given_up_sql(&self, number: i64) -> String {
        format!(
            "UPDATE {}.tuned SET undone_at = pg_catalog.clock_timestamp() WHERE number = {number}",
            self.quoted
        )
    }
}
