//! The journal of what loads have changed in the database besides rows, and how it is put back.
//!
//! An entry is written in the transaction that makes the change and closed in the one that puts it back, so a
//! crash at any instant leaves either. While a load is at work it holds its job by a shared advisory lock;
//! who puts back from outside needs the job for itself.

use super::origin::{Origin, here_sql, table_oid_sql};
use super::{Known, Ledger, is_lacking};
use crate::session::Session;
use crate::sql::{quote_literal, quote_relation};
use howdah_model::{Error, ErrorKind, Relation, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// What an entry puts back. The order is that in which they are put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoKind {
    /// A trigger is enabled.
    Trigger,
    /// An index.
    Index,
    /// The table's `parallel_workers`, which were set for the builds of its indexes, are reset.
    Workers,
    /// A primary key, unique or exclusion constraint.
    Constraint,
    /// An index of a partitioned table, without those of its partitions.
    PartitionedIndex,
    /// The same with a constraint.
    PartitionedConstraint,
    /// The index of a partition becomes part of its parent's.
    Attach,
    /// What is said of an index elsewhere: CLUSTER, replica identity, extensions.
    Marks,
    /// A foreign key, not validated.
    ForeignKey,
    /// The validation of a foreign key.
    Validate,
    /// A table in which rows wait is dropped, with the job's receipts for what is in it.
    Staging,
}

impl UndoKind {
    /// All of them, in the order in which they are put back.
    pub const ALL: [UndoKind; 11] = [
        UndoKind::Trigger,
        UndoKind::Index,
        UndoKind::Workers,
        UndoKind::Constraint,
        UndoKind::PartitionedIndex,
        UndoKind::PartitionedConstraint,
        UndoKind::Attach,
        UndoKind::Marks,
        UndoKind::ForeignKey,
        UndoKind::Validate,
        UndoKind::Staging,
    ];

    /// The word in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            UndoKind::Trigger => "trigger",
            UndoKind::Index => "index",
            UndoKind::Workers => "workers",
            UndoKind::Constraint => "constraint",
            UndoKind::PartitionedIndex => "partitioned index",
            UndoKind::PartitionedConstraint => "partitioned constraint",
            UndoKind::Attach => "attach",
            UndoKind::Marks => "marks",
            UndoKind::ForeignKey => "foreign key",
            UndoKind::Validate => "validate",
            UndoKind::Staging => "staging",
        }
    }
}

/// A change that is about to be made, and how it is undone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NewUndo {
    /// What is put back.
    pub kind: UndoKind,
    /// The table it belongs to.
    pub relation: Relation,
    /// The table's OID.
    pub table_oid: u32,
    /// Name of the index, constraint, trigger or storage parameter, unquoted.
    pub name: String,
    /// As the server tells it under an empty `search_path`; of an attachment, the index that it is attached
    /// to, quoted; of a staging table, the table that its rows wait for; of a storage parameter, what it was
    /// set to.
    pub definition: String,
    /// Put it back when run in order in one transaction.
    pub statements: Vec<String>,
    /// Of an index: its first column are strings that the server compares by functions of the C library.
    pub compared_by_libc: bool,
}

/// A change that is not undone yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// Its number in the ledger.
    pub number: i64,
    /// The job that made the change.
    pub job_id: String,
    /// What was changed.
    pub change: NewUndo,
    /// Where the entry was written.
    pub origin: Origin,
}

impl NewUndo {
    /// The index, with its schema, quoted: indexes live in the schema of their table.
    pub fn index(&self) -> String {
        quote_relation(&Relation { schema: self.relation.schema.clone(), name: self.name.clone() })
    }
}

impl fmt::Display for Undo {
    /// `the index a of public.t`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.change.fmt(f)
    }
}

impl fmt::Display for NewUndo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            UndoKind::Trigger => "the trigger",
            UndoKind::Workers => "the storage parameter",
            UndoKind::Index | UndoKind::PartitionedIndex => "the index",
            UndoKind::Constraint | UndoKind::PartitionedConstraint => "the constraint",
            UndoKind::Attach => "the attachment of the index",
            UndoKind::Marks => "the marks of the index",
            UndoKind::ForeignKey | UndoKind::Validate => "the foreign key",
            UndoKind::Staging => return write!(f, "the staging table of {}", self.definition),
        };
        write!(f, "{what} {} of {}", self.name, self.relation)
    }
}

impl Ledger {
    /// Changes of one job, or of any, are not undone, or settings are held ([`Ledger::held`]), or this role
    /// may not see whether: most often there are none, and to plan what asks for both takes the server six
    /// times as long (1 ms, PostgreSQL 15).
    ///
    /// # Errors
    /// Those of the session.
    pub async fn may_have_left(&self, session: &Session, job_id: Option<&str>) -> Result<bool> {
        if self.is_absent(session) {
            return Ok(false);
        }
        let open = |table: &str| {
            let schema = &self.quoted;
            format!(
                "EXISTS (SELECT FROM {schema}.{table} WHERE undone_at IS NULL AND ($1 IS NULL OR job_id = $1))"
            )
        };
        let sql = format!("SELECT {} OR {}", open("undo"), open("tuned"));
        match session.client().query_typed_one(&sql, &[(&job_id, Type::TEXT)]).await {
            Ok(row) => Ok(row.get(0)),
            Err(error) if is_lacking(&error) => Ok(true),
            Err(error) => Err(self.error(&error, "reading the ledger's journal")),
        }
    }

    /// Changes that are not undone, of one job or of all, in the order in which they were made. None where
    /// there is no ledger.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn open_undos(&self, session: &Session, job_id: Option<&str>) -> Result<Vec<Undo>> {
        Ok(self.journal(session, job_id).await?.unwrap_or_default())
    }

    /// The same; `None` where there is no journal, or not for this role.
    pub(super) async fn journal(&self, session: &Session, job_id: Option<&str>) -> Result<Option<Vec<Undo>>> {
        if self.is_absent(session) {
            return Ok(None);
        }
        let sql = format!(
            "{} WHERE undone_at IS NULL AND ($1 IS NULL OR job_id = $1) ORDER BY number",
            self.undos_sql()
        );
        match session.client().query_typed(&sql, &[(&job_id, Type::TEXT)]).await {
            Ok(rows) => rows.iter().map(|row| self.undo(row)).collect::<Result<_>>().map(Some),
            // No ledger, or no rights on its journal: then this role has changed nothing.
            Err(error) if is_lacking(&error) => Ok(None),
            Err(error) => Err(self.error(&error, "reading the ledger's journal")),
        }
    }

    fn undos_sql(&self) -> String {
        format!(
            "SELECT number, job_id, kind, schema_name, table_name, {}, name, definition, statements, \
                    compared_by_libc, {}, undone_at IS NULL \
             FROM {}.undo",
            table_oid_sql("undo"),
            here_sql("undo"),
            self.quoted
        )
    }

    /// What this job has ever changed, put back or not.
    pub(super) async fn all_of_job(&self, session: &Session, job_id: &str) -> Result<Vec<Known>> {
        let sql = format!("{} WHERE job_id = $1 ORDER BY number", self.undos_sql());
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's journal").await?;
        rows.iter().map(|row| Ok(Known { undo: self.undo(row)?, open: row.get(11) })).collect()
    }

    /// Opens these entries again in the open transaction: what they had put back is gone.
    pub(crate) async fn open_again(&self, session: &Session, numbers: &[i64]) -> Result<()> {
        // In their order, so that nobody who does the same is waited for while he waits.
        let sql = format!(
            "UPDATE {0}.undo SET undone_at = NULL WHERE number IN \
                 (SELECT o.number FROM {0}.undo o WHERE o.number = ANY ($1) ORDER BY o.number FOR UPDATE)",
            self.quoted
        );
        self.ask(session, &sql, &[(&numbers, Type::INT8_ARRAY)], "writing the ledger's journal")
            .await
            .map(|_| ())
    }

    /// Of the job's open entries of partitions, by their numbers: the table at the top.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn roots_of_undos(&self, session: &Session, job_id: &str) -> Result<BTreeMap<i64, Relation>> {
        let sql = format!(
            "SELECT u.number, n.nspname, c.relname FROM {}.undo u \
             JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.pg_partition_root(u.table_oid::pg_catalog.regclass) \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE u.undone_at IS NULL AND u.job_id = $1",
            self.quoted
        );
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's journal").await?;
        let root = |row: &Row| (row.get(0), Relation { schema: row.get(1), name: row.get(2) });
        Ok(rows.iter().map(root).collect())
    }

    fn undo(&self, row: &Row) -> Result<Undo> {
        let word: &str = row.get(2);
        let kind = UndoKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        let kind = kind.ok_or_else(|| {
            let message = format!("the journal of the ledger {} has the unknown kind {word}", self.quoted);
            Error::new(ErrorKind::Ledger, message)
                .with_hint("it was written by another version of howdah; use that")
        })?;
        let change = NewUndo {
            kind,
            relation: Relation { schema: row.get(3), name: row.get(4) },
            table_oid: row.get(5),
            name: row.get(6),
            definition: row.get(7),
            statements: row.get(8),
            compared_by_libc: row.get(9),
        };
        Ok(Undo { number: row.get(0), job_id: row.get(1), change, origin: Origin::of(row.get(10)) })
    }

    /// Writes an entry into the open transaction, which must make the change.
    pub(crate) async fn note_change(&self, session: &Session, job_id: &str, change: &NewUndo) -> Result<()> {
        let sql = format!(
            "INSERT INTO {}.undo (job_id, kind, schema_name, table_name, table_oid, name, definition, statements, \
                                  compared_by_libc, ledger_oid) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, pg_catalog.to_regclass($10)::pg_catalog.oid)",
            self.quoted
        );
        let journal = format!("{}.undo", self.quoted);
        let kind = change.kind.as_str();
        let parameters: [(&(dyn ToSql + Sync), Type); 10] = [
            (&job_id, Type::TEXT),
            (&kind, Type::TEXT),
            (&change.relation.schema, Type::TEXT),
            (&change.relation.name, Type::TEXT),
            (&change.table_oid, Type::OID),
            (&change.name, Type::TEXT),
            (&change.definition, Type::TEXT),
            (&change.statements, Type::TEXT_ARRAY),
            (&change.compared_by_libc, Type::BOOL),
            (&journal, Type::TEXT),
        ];
        let done = session.client().query_typed(&sql, &parameters).await;
        done.map(|_| self.noted.change(job_id, change))
            .map_err(|error| self.error(&error, "writing the ledger's journal"))
    }

    /// Takes an entry for the open transaction; false if it is undone already. Waits for whoever has taken
    /// it, or one of those that this transaction could be in the way of: after a lost connection the index of
    /// a partition may stand in two entries, since a partitioned index that comes back makes what its
    /// partitions lack.
    pub(crate) async fn take_undo(&self, session: &Session, entry: &Undo, partitioned: bool) -> Result<bool> {
        let partitions = match partitioned {
            true => {
                " OR o.table_oid IN (SELECT p.relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree($2::pg_catalog.regclass) p)"
            }
            false => "",
        };
        let sql = format!(
            "SELECT o.number FROM {}.undo o \
             WHERE o.undone_at IS NULL AND (o.number = $1 OR (o.table_oid = $2 AND o.name = $3){partitions}) \
             ORDER BY o.number FOR UPDATE",
            self.quoted
        );
        let change = &entry.change;
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&entry.number, Type::INT8), (&change.table_oid, Type::OID), (&change.name, Type::TEXT)];
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's journal").await?;
        Ok(rows.iter().any(|row| row.get::<_, i64>(0) == entry.number))
    }

    /// What other jobs, or another run of this one that is at work, have dropped of these tables and not put
    /// back altogether: table and name.
    pub(crate) async fn coming_back(
        &self,
        session: &Session,
        (job_id, holder_pid): (&str, i32),
        oids: &[u32],
    ) -> Result<BTreeSet<(u32, String)>> {
        let sql = format!(
            "SELECT {0}, name FROM {1}.undo WHERE undone_at IS NULL AND (job_id <> $1 OR {2}) AND {0} = ANY ($2)",
            table_oid_sql("undo"),
            self.quoted,
            self.held_by_others_sql(job_id, Some(holder_pid))
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&job_id, Type::TEXT), (&oids, Type::OID_ARRAY)];
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's journal").await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// The partitioned table of this entry has partitions that it had not when its index was dropped.
    pub(crate) async fn has_new_partitions(&self, session: &Session, entry: &Undo) -> Result<bool> {
        let index = entry.change.index();
        let sql = format!(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = $1 \
                            AND NOT EXISTS (SELECT FROM {}.undo u WHERE u.job_id = $2 AND u.kind = 'attach' \
                                            AND {} = h.inhrelid AND u.definition = $3))",
            self.quoted,
            table_oid_sql("u")
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&entry.change.table_oid, Type::OID), (&entry.job_id, Type::TEXT), (&index, Type::TEXT)];
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's journal").await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Some load has changed the table, or settings of it, and not put that back yet. Of a ledger that nobody
    /// has looked at, no more is read than the columns that `LEDGERS_SQL` in `others.rs` names.
    pub(crate) async fn holds_changes(&self, session: &Session, relation: &Relation) -> Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT FROM ONLY {0}.undo WHERE undone_at IS NULL AND kind <> 'staging' AND {1} = c.oid) \
                 OR EXISTS (SELECT FROM ONLY {0}.tuned WHERE undone_at IS NULL AND {2} = c.oid) \
             FROM (SELECT pg_catalog.to_regclass($1)::pg_catalog.oid AS oid) c",
            self.quoted,
            table_oid_sql("undo"),
            table_oid_sql("tuned")
        );
        let rows = self
            .ask(session, &sql, &[(&quote_relation(relation), Type::TEXT)], "reading the ledger's journal")
            .await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// The job has made the table of this OID and name, in which its rows wait, and has not dropped it.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn has_made(
        &self,
        session: &Session,
        job_id: &str,
        own: &Relation,
        oid: u32,
    ) -> Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {}.undo u WHERE u.undone_at IS NULL AND u.kind = 'staging' AND u.job_id = $1 \
                            AND u.schema_name = $2 AND u.table_name = $3 AND {} = $4)",
            self.quoted,
            table_oid_sql("u")
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 4] =
            [(&job_id, Type::TEXT), (&own.schema, Type::TEXT), (&own.name, Type::TEXT), (&oid, Type::OID)];
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's journal").await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// The statement that closes the entry of a staging table.
    pub(crate) fn staging_done_sql(&self, job_id: &str, staging: &Relation) -> String {
        format!(
            "UPDATE {}.undo SET undone_at = pg_catalog.clock_timestamp() WHERE job_id = {} AND kind = 'staging' \
             AND name = {} AND undone_at IS NULL",
            self.quoted,
            quote_literal(job_id),
            quote_literal(&staging.name)
        )
    }

    /// Some chunk of the job is in.
    pub(crate) async fn has_chunks(&self, session: &Session, job_id: &str) -> Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT FROM {}.chunk WHERE job_id = $1)", self.quoted);
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's chunks").await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// The statement that forgets what of an unfinished job was in its staging tables, and what has come from
    /// there: its next run begins anew.
    pub(crate) fn forget_sql(&self, job_id: &str) -> String {
        let (schema, job) = (&self.quoted, quote_literal(job_id));
        let unfinished = format!(
            "job_id = {job} AND NOT EXISTS (SELECT FROM {schema}.job WHERE job_id = {job} AND status = 'done')"
        );
        // What was refused of the chunks is refused anew.
        let tables = ["chunk", "chunk_part", "reject", "step"];
        tables.map(|table| format!("DELETE FROM {schema}.{table} WHERE {unfinished}")).join("; ")
    }

    /// The statement that closes an entry.
    pub(crate) fn undone_sql(&self, number: i64) -> String {
        format!(
            "UPDATE {}.undo SET undone_at = pg_catalog.clock_timestamp() WHERE number = {number}",
            self.quoted
        )
    }
}
