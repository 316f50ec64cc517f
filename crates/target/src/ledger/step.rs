//! Steps: what a job does to a table besides copying chunks, each once. A step's row is written into the
//! transaction that does it.

use super::{Ledger, is_lacking};
use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Changes, Relation, Result};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// A step of a job on one of its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Rows of one part of the staging table come into the table.
    Part(u32),
    /// Rows that no record has are deleted.
    Delete,
    /// The table is emptied.
    Truncate,
    /// A new table takes its place.
    Replace,
}

impl Step {
    fn words(self) -> (&'static str, i32) {
        match self {
            // Far below 2^31: some thousands at most.
            Step::Part(no) => ("part", i32::try_from(no).unwrap_or(i32::MAX)),
            Step::Delete => ("delete", 0),
            Step::Truncate => ("truncate", 0),
            Step::Replace => ("replace", 0),
        }
    }
}

/// The table's name in the ledger: as people read it, unless its dots say nothing then.
pub(super) fn target(table: &Relation) -> String {
    let is_plain = !table.schema.contains('.') && !table.name.contains('.');
    if is_plain { table.to_string() } else { quote_relation(table) }
}

/// A step of no part, as that which empties a table, has no rows.
const COME_SQL: &str = "\
    SELECT j.job_id, @come@ \
    FROM @schema@.job j \
    WHERE j.status <> 'done' AND pg_catalog.jsonb_path_exists(j.plan, '$.tables[*].staging ? (@ != null)')";
const OF_STEPS: &str = "(SELECT coalesce(pg_catalog.sum(s.rows), 0)::pg_catalog.int8 FROM @schema@.step s WHERE s.job_id = j.job_id)";
const UNTOLD: &str = "NULL::pg_catalog.int8";

impl Ledger {
    /// Claims a step for the open transaction; false if it is done. Waits for whoever has claimed it.
    pub(crate) async fn claim_step(
        &self,
        session: &Session,
        job_id: &str,
        table: &Relation,
        step: Step,
    ) -> Result<bool> {
        let (name, part_no) = step.words();
        let claimed = self.insert_step(session, job_id, table, name, part_no).await?;
        if claimed && matches!(step, Step::Part(_) | Step::Delete) {
            self.mark_step(session, job_id).await?;
        }
        Ok(claimed)
    }

    /// Writes down what the step has changed and when, in the transaction that has claimed it.
    pub(crate) async fn settle_step(
        &self,
        session: &Session,
        job_id: &str,
        table: &Relation,
        step: Step,
        rows: u64,
        changes: Changes,
    ) -> Result<()> {
        let sql = format!(
            "UPDATE {}.step SET inserted = $5, updated = $6, deleted = $7, rows = $8, held_back = $9, \
                 done_at = pg_catalog.clock_timestamp() \
             WHERE job_id = $1 AND target = $2 AND name = $3 AND part_no = $4",
            self.quoted
        );
        let (name, part_no) = step.words();
        let count = |rows: u64| i64::try_from(rows).unwrap_or(i64::MAX);
        let counts = [count(changes.inserted), count(changes.updated), count(changes.deleted)];
        let (rows, held_back) = (count(rows), count(changes.held_back));
        let parameters: [(&(dyn ToSql + Sync), Type); 9] = [
            (&job_id, Type::TEXT),
            (&target(table), Type::TEXT),
            (&name, Type::TEXT),
            (&part_no, Type::INT4),
            (&counts[0], Type::INT8),
            (&counts[1], Type::INT8),
            (&counts[2], Type::INT8),
            (&rows, Type::INT8),
            (&held_back, Type::INT8),
        ];
        let done = session.client().query_typed(&sql, &parameters).await;
        done.map(|_| ()).map_err(|error| self.error(&error, "writing the ledger's steps"))
    }

    /// Into how many parts the table's rows are cut: `wanted`, unless an earlier or simultaneous run of the
    /// job has cut them otherwise.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn cut_into_parts(
        &self,
        session: &Session,
        job_id: &str,
        table: &Relation,
        wanted: u32,
    ) -> Result<u32> {
        // In two statements: what a simultaneous run has committed meanwhile is seen by the second alone.
        let insert = format!(
            "INSERT INTO {}.step (job_id, target, name, part_no, parts) VALUES ($1, $2, 'parts', 0, $3) \
             ON CONFLICT (job_id, target, name, part_no) DO NOTHING",
            self.quoted
        );
        let select = format!(
            "SELECT parts FROM {}.step WHERE job_id = $1 AND target = $2 AND name = 'parts'",
            self.quoted
        );
        let wanted = i32::try_from(wanted).unwrap_or(1);
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&job_id, Type::TEXT), (&target(table), Type::TEXT), (&wanted, Type::INT4)];
        let fail = |error| self.error(&error, "writing the ledger's steps");
        session.client().query_typed(&insert, &parameters).await.map_err(fail)?;
        let rows = session.client().query_typed(&select, &parameters[..2]).await.map_err(fail)?;
        let parts = rows.first().map_or(wanted, |row| row.get(0));
        Ok(u32::try_from(parts).unwrap_or(1).max(1))
    }

    /// How many rows of jobs that are not done have come from staging tables, by job; of jobs whose rows wait
    /// in such alone.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn rows_come(&self, session: &Session) -> Result<Vec<(String, Option<u64>)>> {
        let ask = async |come: &str| {
            let sql = COME_SQL.replace("@come@", come).replace("@schema@", &self.quoted);
            session.client().query_typed(&sql, &[]).await
        };
        let rows = match ask(OF_STEPS).await {
            // Who only looks need not be allowed to read them.
            Err(error) if is_lacking(&error) => ask(UNTOLD).await,
            rows => rows,
        };
        let rows = rows.map_err(|error| self.error(&error, "reading the ledger's steps"))?;
        let come = |row: &Row| row.get::<_, Option<i64>>(1).map(|come| u64::try_from(come).unwrap_or(0));
        Ok(rows.iter().map(|row| (row.get(0), come(row))).collect())
    }

    /// What all steps of the job have changed in the table so far, and how many rows of its staging table
    /// they have dealt with.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn steps_done(
        &self,
        session: &Session,
        job_id: &str,
        table: &Relation,
    ) -> Result<(Changes, u64)> {
        let sql = format!(
            "SELECT coalesce(pg_catalog.sum(inserted), 0)::pg_catalog.int8, \
                    coalesce(pg_catalog.sum(updated), 0)::pg_catalog.int8, \
                    coalesce(pg_catalog.sum(deleted), 0)::pg_catalog.int8, \
                    coalesce(pg_catalog.sum(rows), 0)::pg_catalog.int8, \
                    coalesce(pg_catalog.sum(held_back), 0)::pg_catalog.int8, \
                    coalesce(pg_catalog.sum(rows - inserted - updated - held_back) FILTER (WHERE rows > 0), 0)::pg_catalog.int8 \
             FROM {}.step WHERE job_id = $1 AND target = $2",
            self.quoted
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&job_id, Type::TEXT), (&target(table), Type::TEXT)];
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's steps").await?;
        let count =
            |at: usize| rows.first().map_or(0, |row| u64::try_from(row.get::<_, i64>(at)).unwrap_or(0));
        let changes = Changes {
            inserted: count(0),
            updated: count(1),
            deleted: count(2),
            held_back: count(4),
            unchanged: count(5),
            ..Changes::default()
        };
        Ok((changes, count(3)))
    }

    async fn insert_step(
        &self,
        session: &Session,
        job_id: &str,
        table: &Relation,
        name: &str,
        part_no: i32,
    ) -> Result<bool> {
        let sql = format!(
            "INSERT INTO {}.step (job_id, target, name, part_no) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (job_id, target, name, part_no) DO NOTHING RETURNING part_no",
            self.quoted
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&job_id, Type::TEXT),
            (&target(table), Type::TEXT),
            (&name, Type::TEXT),
            (&part_no, Type::INT4),
        ];
        let rows = session.client().query_typed(&sql, &parameters).await;
        rows.map(|rows| !rows.is_empty()).map_err(|error| self.error(&error, "writing the ledger's steps"))
    }
}
