//! Jobs as they are read from the ledger. Names or identities enter, rows with the plan of each leave; a plan
//! or a status that this howdah does not know is refused.

use super::job::unsigned;
use super::origin::here_sql;
use super::{Ledger, Origin, kept_plan};
use crate::session::Session;
use howdah_model::summary::Status;
use howdah_model::{Error, ErrorKind, Plan, Result};
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// How the ledger thinks of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// A load is at work on it, or was killed.
    Running,
    /// Every row is stored.
    Done,
    /// It stopped at an error.
    Failed,
    /// The user stopped it.
    Interrupted,
}

impl JobStatus {
    /// The word in the ledger, which is also the one to print.
    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::Running => "running",
            JobStatus::Done => "done",
            JobStatus::Failed => "failed",
            JobStatus::Interrupted => "interrupted",
        }
    }

    fn parse(word: &str) -> Option<JobStatus> {
        let all = [JobStatus::Running, JobStatus::Done, JobStatus::Failed, JobStatus::Interrupted];
        all.into_iter().find(|status| status.as_str() == word)
    }
}

impl From<Status> for JobStatus {
    fn from(status: Status) -> JobStatus {
        match status {
            Status::Done => JobStatus::Done,
            Status::Failed => JobStatus::Failed,
            Status::Interrupted => JobStatus::Interrupted,
        }
    }
}

/// A job as the ledger knows it; in a list, `P` is a plan that may not be there.
#[derive(Debug, Clone, Serialize)]
pub struct JobRow<P = Plan> {
    /// Its identity.
    pub job_id: String,
    /// The digest without the versions of its sources.
    pub work_key: String,
    /// How it stands.
    pub status: JobStatus,
    /// When its first run began: RFC 3339, UTC, whole seconds.
    pub started_at: String,
    /// When its last run was closed.
    pub finished_at: Option<String>,
    /// How many times it was started.
    pub runs: u32,
    /// Rows in chunks that are in.
    pub rows_stored: u64,
    /// Those of them that are not in their tables, but wait in staging tables; told where jobs are shown, and
    /// not counted as stored there. None where this role may not read how many have come, and they may be
    /// among those that are stored.
    pub rows_waiting: Option<u64>,
    /// Chunks that are in.
    pub chunks: u64,
    /// What it has dropped and not put back yet, in words.
    pub to_put_back: Vec<String>,
    /// What was decided when it was last started.
    pub plan: P,
    /// How its rows were last compared with the sources, and found equal: `count` or `checksum`.
    pub verified: Option<String>,
    /// Records of its chunks that were left out or refused.
    pub rows_rejected: u64,
    /// The tables that its files go to, `schema.name`.
    pub tables: Vec<String>,
    /// What has come of each file; only of a job that was asked for by its name.
    pub files: Vec<FileRow>,
    /// Why its last run did not end well, as an [`ErrorReport`](howdah_model::ErrorReport).
    pub error: Option<serde_json::Value>,
    /// Where it was last begun: tables of one that has come with the ledger from another database have other
    /// OIDs than its plan says.
    #[serde(skip)]
    pub origin: Origin,
}

/// What has come of a file of a job.
#[derive(Debug, Clone, Serialize)]
pub struct FileRow {
    /// The file.
    pub location: String,
    /// The table it goes to, `schema.name`.
    pub table: String,
    /// Rows of its chunks that are in; of a job that is not done they may wait in staging tables.
    pub rows_stored: u64,
    /// Records of these that were left out or refused.
    pub rows_rejected: u64,
    /// Chunks that are in.
    pub chunks: u64,
}

/// The columns of [`JobRow`], in order; `@where@` says which jobs, `@plan@` where their plan is.
const JOBS_SQL: &str = "\
    SELECT j.job_id, j.work_key, j.status, \
           pg_catalog.to_char(j.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), \
           pg_catalog.to_char(j.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), \
           j.runs, c.rows, c.chunks, @plan@::pg_catalog.text, j.verified, c.rejected, \
           ARRAY (SELECT DISTINCT f.target FROM @schema@.file f WHERE f.job_id = j.job_id ORDER BY f.target), \
           j.error::pg_catalog.text, @here@ \
    FROM @schema@.job j, \
         LATERAL (SELECT coalesce(pg_catalog.sum(k.rows), 0)::pg_catalog.int8 AS rows, \
                         pg_catalog.count(*) AS chunks, \
                         coalesce(pg_catalog.sum(k.left_out + k.rejected), 0)::pg_catalog.int8 AS rejected \
                  FROM @schema@.chunk k WHERE k.job_id = j.job_id) c \
    WHERE @where@ ORDER BY j.started_at, j.job_id";

/// The columns of [`FileRow`], in order.
const FILES_SQL: &str = "\
    SELECT f.location, f.target, c.rows, c.rejected, c.chunks \
    FROM @schema@.file f, \
         LATERAL (SELECT coalesce(pg_catalog.sum(k.rows), 0)::pg_catalog.int8 AS rows, \
                         coalesce(pg_catalog.sum(k.left_out + k.rejected), 0)::pg_catalog.int8 AS rejected, \
                         pg_catalog.count(*) AS chunks \
                  FROM @schema@.chunk k WHERE k.job_id = f.job_id AND k.file_no = f.file_no) c \
    WHERE f.job_id = $1 ORDER BY f.file_no";

/// The largest number of a name that goes on with one, at least 1. Numbers of more digits are somebody's own
/// names.
const NEXT_NAME_SQL: &str = "\
    SELECT coalesce(pg_catalog.max((pg_catalog.regexp_match( \
        pg_catalog.substr(job_id, pg_catalog.length($1) + 2), '^[1-9][0-9]{0,17}$'))[1]::pg_catalog.int8), 1) \
    FROM @schema@.job WHERE pg_catalog.starts_with(job_id, $1 || '-')";

impl Ledger {
    /// The job of this identity.
    ///
    /// # Errors
    /// Ledger, if its plan cannot be read by this howdah; those of the session.
    pub async fn find(&self, session: &Session, job_id: &str) -> Result<Option<JobRow>> {
        Ok(self.select(session, "j.job_id = $1", &[(&job_id, Type::TEXT)]).await?.pop())
    }

    /// Jobs of this work, the oldest first: those that are not done (resumable, or of sources that have
    /// changed) and the latest that is, of the very same sources. What one of other sources has stored is
    /// settled when a load of this work that began since is done: who ran that has removed it, or knew of it.
    ///
    /// # Errors
    /// As for [`Ledger::find`].
    pub async fn of_work(&self, session: &Session, work_key: &str, identity: &str) -> Result<Vec<JobRow>> {
        let which = "j.work_key = $1 AND (j.status <> 'done' AND ( \
                j.plan ->> 'identity'::pg_catalog.text = $2 OR NOT EXISTS ( \
                    SELECT FROM @schema@.job l WHERE l.work_key = $1 AND l.status = 'done' AND l.started_at > ( \
                        SELECT pg_catalog.max(c.stored_at) FROM @schema@.chunk c WHERE c.job_id = j.job_id))) \
            OR j.job_id = ( \
            SELECT l.job_id FROM @schema@.job l \
            WHERE l.work_key = $1 AND l.status = 'done' AND l.plan ->> 'identity'::pg_catalog.text = $2 \
            ORDER BY l.started_at DESC, l.job_id DESC LIMIT 1))";
        self.select(session, which, &[(&work_key, Type::TEXT), (&identity, Type::TEXT)]).await
    }

    /// A run of this work under this name, or one that begins so, has stored something; these jobs do not
    /// count.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn has_stored(
        &self,
        session: &Session,
        work_key: &str,
        name: &str,
        gone: &[&str],
    ) -> Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {schema}.job j WHERE j.work_key = $1 AND pg_catalog.starts_with(j.job_id, $2) \
             AND j.job_id <> ALL ($3) AND EXISTS (SELECT FROM {schema}.chunk c WHERE c.job_id = j.job_id))",
            schema = self.quoted
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&work_key, Type::TEXT), (&name, Type::TEXT), (&gone, Type::TEXT_ARRAY)];
        let asked = session.client().query_typed_one(&sql, &parameters).await;
        asked.map(|row| row.get(0)).map_err(|error| self.error(&error, "reading the ledger's jobs"))
    }

    /// A name behind `name-2`, `name-3`, ... for a job that is loaded once more.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn next_name(&self, session: &Session, name: &str) -> Result<String> {
        let sql = NEXT_NAME_SQL.replace("@schema@", &self.quoted);
        let row = session.client().query_typed_one(&sql, &[(&name, Type::TEXT)]).await;
        let last: i64 = row.map_err(|error| self.error(&error, "reading the names of jobs"))?.get(0);
        Ok(format!("{name}-{}", last + 1))
    }

    /// The job of this name; otherwise those whose names begin so, two of them at most.
    ///
    /// # Errors
    /// As for [`Ledger::find`].
    pub async fn beginning(&self, session: &Session, name: &str) -> Result<Vec<JobRow>> {
        let which = "j.job_id IN (SELECT k.job_id FROM @schema@.job k WHERE pg_catalog.starts_with(k.job_id, $1) \
            AND (k.job_id = $1 OR NOT EXISTS (SELECT FROM @schema@.job e WHERE e.job_id = $1)) LIMIT 2)";
        self.select(session, which, &[(&name, Type::TEXT)]).await
    }

    /// All jobs, the oldest first; with the plans that this howdah can read, if these are wanted.
    ///
    /// # Errors
    /// Ledger, if a job's status is unknown; those of the session.
    pub async fn jobs(&self, session: &Session, with_plans: bool) -> Result<Vec<JobRow<Option<Plan>>>> {
        let plan = if with_plans { "j.plan" } else { "NULL" };
        let rows = self.rows(session, "true", plan, &[]).await?;
        rows.iter()
            .map(|row| self.job_row(row, |text| Ok(text.and_then(|text| kept_plan::read(text).ok()))))
            .collect()
    }

    /// What has come of the files of a job, in their order.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn files(&self, session: &Session, job_id: &str) -> Result<Vec<FileRow>> {
        let sql = FILES_SQL.replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's files").await?;
        let file = |row: &Row| FileRow {
            location: row.get(0),
            table: row.get(1),
            rows_stored: unsigned(row.get(2)),
            rows_rejected: unsigned(row.get(3)),
            chunks: unsigned(row.get(4)),
        };
        Ok(rows.iter().map(file).collect())
    }

    async fn select(
        &self,
        session: &Session,
        which: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<JobRow>> {
        let rows = self.rows(session, which, "j.plan", parameters).await?;
        let read = |text: Option<&str>| {
            kept_plan::read(text.unwrap_or_default()).map_err(|_| "a plan that cannot be read")
        };
        rows.iter().map(|row| self.job_row(row, read)).collect()
    }

    async fn rows(
        &self,
        session: &Session,
        which: &str,
        plan: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>> {
        let sql =
            JOBS_SQL.replace("@here@", &here_sql("j")).replace("@where@", which).replace("@plan@", plan);
        let sql = sql.replace("@schema@", &self.quoted);
        self.ask(session, &sql, parameters, "reading the ledger's jobs").await
    }

    fn job_row<P>(
        &self,
        row: &Row,
        read: impl Fn(Option<&str>) -> std::result::Result<P, &'static str>,
    ) -> Result<JobRow<P>> {
        let job_id: String = row.get(0);
        let unreadable = |what: &str| {
            let message = format!("job {job_id} in the ledger {} has {what}", self.quoted);
            Error::new(ErrorKind::Ledger, message)
                .with_hint("it was written by another version of howdah; use that")
        };
        let status = JobStatus::parse(row.get(2)).ok_or_else(|| unreadable("an unknown status"))?;
        let plan = read(row.get(8)).map_err(unreadable)?;
        Ok(JobRow {
            work_key: row.get(1),
            status,
            started_at: row.get(3),
            finished_at: row.get(4),
            runs: unsigned(i64::from(row.get::<_, i32>(5))) as u32,
            rows_stored: unsigned(row.get(6)),
            rows_waiting: Some(0),
            chunks: unsigned(row.get(7)),
            to_put_back: Vec::new(),
            plan,
            verified: row.get(9),
            rows_rejected: unsigned(row.get(10)),
            tables: row.get(11),
            files: Vec::new(),
            error: row.get::<_, Option<&str>>(12).and_then(|text| serde_json::from_str(text).ok()),
            origin: Origin::of(row.get(13)),
            job_id,
        })
    }
}
