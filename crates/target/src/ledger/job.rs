//! Jobs in the ledger: begun or reopened, and closed. A [`Plan`] enters; rows and receipts leave.
//! A job whose chunk borders would differ from those already stored is refused.

use super::{HOWDAH_VERSION, Ledger, kept_plan};
use crate::session::Session;
use crate::sql::{quote_literal, quote_relation};
use howdah_model::{Error, ErrorKind, Mode, Omitted, OnError, Plan, Receipt, Relation, Result, sqlstate};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

/// Inserts or reopens the job and its files. No row back: since this run was planned, another one has ended
/// the job, or has begun it with other files or chunk borders; or there is no such job, but something is left
/// of one ([`Ledger::forget_deleted`]). What comes from a pipe has no identity of its own; and files `$12`,
/// of which no chunk is in, may have changed. `@left@` is what [`left_sql`] makes.
const BEGIN_SQL: &str = "\
    WITH job AS ( \
        INSERT INTO @schema@.job AS j (job_id, work_key, status, plan, howdah_version, ledger_oid) \
        SELECT $1, $2, 'running', $3::pg_catalog.text::pg_catalog.jsonb, $4, pg_catalog.to_regclass($11)::pg_catalog.oid \
        WHERE EXISTS (SELECT FROM @schema@.job WHERE job_id = $1) \
           OR NOT (@left@) \
        ON CONFLICT (job_id) DO UPDATE \
        SET status = 'running', plan = excluded.plan, howdah_version = excluded.howdah_version, \
            ledger_oid = excluded.ledger_oid, finished_at = NULL, error = NULL, runs = j.runs + 1 \
        WHERE j.plan -> 'chunk_bytes'::pg_catalog.text = excluded.plan -> 'chunk_bytes'::pg_catalog.text \
          AND j.plan -> 'taper'::pg_catalog.text IS NOT DISTINCT FROM excluded.plan -> 'taper'::pg_catalog.text \
          AND j.status <> 'done' \
          AND (j.plan -> 'identity'::pg_catalog.text = excluded.plan -> 'identity'::pg_catalog.text \
               OR (j.work_key = excluded.work_key AND pg_catalog.jsonb_path_exists(j.plan, '$.files[*].rereadable ? (@ == false)')) \
               OR (j.work_key = excluded.work_key AND pg_catalog.cardinality($12) > 0 \
                   AND NOT EXISTS (SELECT FROM @schema@.chunk c WHERE c.job_id = $1 AND c.file_no = ANY ($12)) \
                   AND NOT EXISTS ( \
                       SELECT FROM @schema@.file o, ROWS FROM (pg_catalog.unnest($5), pg_catalog.unnest($7)) f (file_no, version) \
                       WHERE o.job_id = $1 AND o.file_no = f.file_no AND f.file_no <> ALL ($12) AND o.version <> f.version))) \
        RETURNING j.job_id), \
    files AS ( \
        INSERT INTO @schema@.file (job_id, file_no, location, version, stored_bytes, target, real_location) \
        SELECT job.job_id, f.* FROM job, ROWS FROM (pg_catalog.unnest($5), pg_catalog.unnest($6), \
            pg_catalog.unnest($7), pg_catalog.unnest($8), pg_catalog.unnest($9), pg_catalog.unnest($10)) f \
        ON CONFLICT (job_id, file_no) DO UPDATE \
        SET location = excluded.location, version = excluded.version, real_location = excluded.real_location, \
            stored_bytes = excluded.stored_bytes, target = excluded.target) \
    SELECT job_id FROM job";

/// The borders of a plan for a job without chunks.
const CUT_ANEW_SQL: &str = "\
    UPDATE @schema@.job SET plan = (plan - 'chunk_bytes'::pg_catalog.text - 'taper'::pg_catalog.text) || \
        (SELECT pg_catalog.jsonb_object_agg(p.key, p.value) FROM pg_catalog.jsonb_each($2::pg_catalog.text::pg_catalog.jsonb) p \
         WHERE p.key IN ('chunk_bytes'::pg_catalog.text, 'taper'::pg_catalog.text)) \
    WHERE job_id = $1 AND status <> 'done' AND NOT EXISTS (SELECT FROM @schema@.chunk WHERE job_id = $1) RETURNING job_id";

/// The columns of [`Receipt`], in order.
const RECEIPTS_SQL: &str = "\
    SELECT file_no, chunk_no, start_byte, end_byte, rows, digest, left_out, blank, rejected \
    FROM @schema@.chunk WHERE job_id = $1 ORDER BY file_no, chunk_no";

/// Elements are counted from 1.
const MADE_SQL: &str = "\
    UPDATE @schema@.job SET plan = pg_catalog.jsonb_set(plan, ARRAY['tables'], ( \
        SELECT pg_catalog.jsonb_agg( \
            CASE WHEN made.oid IS NULL THEN kept.element \
                 ELSE pg_catalog.jsonb_set(kept.element, ARRAY['table', 'oid'], pg_catalog.to_jsonb(made.oid)) END \
            ORDER BY kept.no) \
        FROM pg_catalog.jsonb_array_elements(pg_catalog.jsonb_extract_path(plan, 'tables')) \
             WITH ORDINALITY AS kept(element, no) \
        LEFT JOIN (SELECT named.no, pg_catalog.to_regclass(named.name)::pg_catalog.oid::pg_catalog.int8 AS oid \
                   FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.int8[]), pg_catalog.unnest($3::pg_catalog.text[])) \
                        AS named(no, name)) AS made \
            ON made.no OPERATOR(pg_catalog.+) 1::pg_catalog.int8 OPERATOR(pg_catalog.=) kept.no)) \
    WHERE job_id = $1";

/// Nothing of what its tables are or get is of its own making.
const UNBIND_SQL: &str = "\
    UPDATE @schema@.job SET plan = pg_catalog.jsonb_set(plan, ARRAY['tables'], ( \
        SELECT pg_catalog.jsonb_agg( \
            pg_catalog.jsonb_set(pg_catalog.jsonb_set(kept.element, ARRAY['create'], 'null'), ARRAY['changes'], '[]') \
            ORDER BY kept.no) \
        FROM pg_catalog.jsonb_array_elements(pg_catalog.jsonb_extract_path(plan, 'tables')) \
             WITH ORDINALITY AS kept(element, no))) \
    WHERE job_id = $1 AND status <> 'done' AND NOT EXISTS (SELECT FROM @schema@.chunk WHERE job_id = $1)";

impl Ledger {
    /// Writes the job and its files, or opens the job again with this plan. False if another run has ended
    /// the job, or begun it with other files or chunk borders, or if [`Ledger::forget_deleted`] has something
    /// to forget.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn begin(&self, session: &Session, plan: &Plan) -> Result<bool> {
        self.begin_with(session, plan, &[]).await
    }

    /// The same for a job that was begun with earlier versions of files that have changed since, as the plan
    /// says: these are noted as they are now, all at once. False also if chunks of them are in. Nobody must
    /// be at work for the job.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn begin_changed(&self, session: &Session, plan: &Plan) -> Result<bool> {
        let changed = (0..).zip(&plan.files).filter(|(_, file)| file.has_changed).map(|(no, _)| no);
        self.begin_with(session, plan, &changed.collect::<Vec<i32>>()).await
    }

    async fn begin_with(&self, session: &Session, plan: &Plan, changed: &[i32]) -> Result<bool> {
        let text = kept_plan::write(plan).map_err(unwritable)?;
        let file_nos: Vec<i32> = (0..).take(plan.files.len()).collect();
        let locations: Vec<&str> = plan.files.iter().map(|file| file.location.as_str()).collect();
        // What is left out is not loaded by this job: without a version nobody takes it for the file that
        // was.
        let versions = plan.files.iter().map(|file| file.version.as_deref().filter(|_| !file.left_out));
        let versions: Vec<Option<&str>> = versions.collect();
        let bytes =
            |file: &howdah_model::FilePlan| file.stored_bytes.and_then(|bytes| i64::try_from(bytes).ok());
        let stored_bytes: Vec<Option<i64>> = plan.files.iter().map(bytes).collect();
        let targets: Vec<String> = plan.files.iter().map(|file| target_name(plan, file.table_no)).collect();
        let real_locations: Vec<Option<&str>> =
            plan.files.iter().map(|file| file.real_location.as_deref()).collect();
        let ledger_table = format!("{}.job", self.quoted);
        let parameters: [(&(dyn ToSql + Sync), Type); 12] = [
            (&plan.job_id, Type::TEXT),
            (&plan.work_key, Type::TEXT),
            (&text, Type::TEXT),
            (&HOWDAH_VERSION, Type::TEXT),
            (&file_nos, Type::INT4_ARRAY),
            (&locations, Type::TEXT_ARRAY),
            (&versions, Type::TEXT_ARRAY),
            (&stored_bytes, Type::INT8_ARRAY),
            (&targets, Type::TEXT_ARRAY),
            (&real_locations, Type::TEXT_ARRAY),
            (&ledger_table, Type::TEXT),
            (&changed, Type::INT4_ARRAY),
        ];
        let sql = BEGIN_SQL.replace("@left@", &left_sql(plan)).replace("@schema@", &self.quoted);
        let rows = session.client().query_typed(&sql, &parameters).await;
        let rows = rows.map_err(|error| match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => not_free(&plan.job_id),
            _ => self.error(&error, "writing the job into the ledger"),
        })?;
        Ok(!rows.is_empty())
    }

    /// Gives a job of which no chunk is in the borders of this plan. False if there are chunks, or it is
    /// done. Nobody must be at work for it.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn cut_anew(&self, session: &Session, plan: &Plan) -> Result<bool> {
        let sql = CUT_ANEW_SQL.replace("@schema@", &self.quoted);
        let text = kept_plan::write(plan).map_err(unwritable)?;
        let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&plan.job_id, Type::TEXT), (&text, Type::TEXT)];
        let rows = self.ask(session, &sql, &parameters, "changing the chunk size in the ledger").await?;
        Ok(!rows.is_empty())
    }

    /// Forgets what is left of a job whose own row somebody has deleted: whoever comes to its name is another
    /// job, and none of his chunks are in. True if there was something. Nobody must be at work for the job.
    ///
    /// # Errors
    /// Ledger, with the right that is missing, where the role may not delete; those of the session.
    pub async fn forget_deleted(&self, session: &Session, job_id: &str) -> Result<bool> {
        let (schema, job) = (&self.quoted, quote_literal(job_id));
        // Chunks last: they keep the job from beginning until all is gone.
        let marks = self.has_marks(session).await?.then_some("unlogged_mark");
        let tables = marks.into_iter().chain(["chunk_part", "reject", "step", "chunk"]);
        let deletes = tables.map(|table| {
            format!(
                "DELETE FROM {schema}.{table} WHERE job_id = {job} \
                 AND NOT EXISTS (SELECT FROM {schema}.job WHERE job_id = {job}) RETURNING job_id"
            )
        });
        let answers = session.client().simple_query(&deletes.collect::<Vec<_>>().join("; ")).await;
        let answers = answers.map_err(|error| self.error(&error, "forgetting a job that was deleted"))?;
        Ok(answers.iter().any(|answer| matches!(answer, tokio_postgres::SimpleQueryMessage::Row(_))))
    }

    /// Lets the plan of a job that has begun bind no other run, since what it was to make others have made
    /// otherwise: unless a chunk is in, or others are at work for the job. The session ceases to hold it.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn unbind(&self, session: &Session, job_id: &str) -> Result<()> {
        if !self.hold_job_alone(session, job_id).await? {
            return Ok(());
        }
        let sql = UNBIND_SQL.replace("@schema@", &self.quoted);
        let done = session.client().query_typed(&sql, &[(&job_id, Type::TEXT)]).await;
        done.map_err(|error| self.error(&error, "changing a plan in the ledger"))?;
        self.leave_job(session, job_id).await
    }

    /// Notes which tables a run of the job has made, by their numbers in the plan: a later one of the same
    /// name is not the one that its chunks are in. All at once, since each time the plan of all is written
    /// anew.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn made(&self, session: &Session, job_id: &str, tables: &[(usize, &Relation)]) -> Result<()> {
        let sql = MADE_SQL.replace("@schema@", &self.quoted);
        let numbers: Vec<i64> = tables.iter().map(|(no, _)| *no as i64).collect();
        let names: Vec<String> = tables.iter().map(|(_, relation)| quote_relation(relation)).collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&job_id, Type::TEXT), (&numbers, Type::INT8_ARRAY), (&names, Type::TEXT_ARRAY)];
        let done = session.client().query_typed(&sql, &parameters).await;
        done.map(|_| ()).map_err(|error| self.error(&error, "noting the tables in the ledger"))
    }

    /// The chunks of a job that are in, in file order.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn receipts(&self, session: &Session, job_id: &str) -> Result<Vec<Receipt>> {
        let sql = RECEIPTS_SQL.replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's chunks").await?;
        let receipt = |row: &Row| Receipt {
            file_no: unsigned(i64::from(row.get::<_, i32>(0))) as u32,
            chunk_no: unsigned(row.get(1)),
            start_byte: unsigned(row.get(2)),
            end_byte: unsigned(row.get(3)),
            rows: unsigned(row.get(4)),
            digest: row.get::<_, Option<i64>>(5).map(i64::cast_unsigned),
            omitted: Omitted {
                left_out: unsigned(row.get(6)),
                blank: unsigned(row.get(7)),
                rejected: unsigned(row.get(8)),
            },
        };
        Ok(rows.iter().map(receipt).collect())
    }
}

/// Something is left of a job of this name, in tables that the plan's own rows go to: the role may have no
/// rights on others.
fn left_sql(plan: &Plan) -> String {
    let arrival = &plan.job.arrival;
    let has_steps = arrival.mode != Mode::Append || arrival.is_staged();
    let has_rejects = plan.job.bad_records.on_error == OnError::Skip;
    let tables = [("chunk", true), ("step", has_steps), ("reject", has_rejects)].into_iter();
    let asked = tables.filter(|(_, is_used)| *is_used);
    let asked = asked.map(|(table, _)| format!("EXISTS (SELECT FROM @schema@.{table} WHERE job_id = $1)"));
    asked.collect::<Vec<_>>().join(" OR ")
}

/// Somebody has its row, or a table of the ledger, for himself.
fn not_free(job_id: &str) -> Error {
    let message = format!("job {job_id} cannot begin yet: other sessions hold what the ledger has of it");
    Error::new(ErrorKind::Server, message)
        .with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE)
        .with_hint("end their transactions; then run the same command again")
}

pub(super) fn target_name(plan: &Plan, table_no: u32) -> String {
    let table = plan.tables.get(table_no as usize);
    table.map(|table| table.table.relation.to_string()).unwrap_or_default()
}

fn unwritable(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("the plan cannot be written: {error}"))
}

/// Counts and offsets are written from unsigned numbers, so none is negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
