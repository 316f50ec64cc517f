//! The end of a job, noted only where the ledger still holds all that the load was told of: a server may lose
//! commits that it has acknowledged, in a failover to a standby that was behind, say.

use super::job::unsigned;
use super::{JobStatus, Ledger};
use crate::finish::DURABLE_SQL;
use crate::session::Session;
use crate::sql::quote_literal;
use howdah_model::summary::Status;
use howdah_model::{Error, ErrorKind, Result, counted};
use tokio_postgres::types::{ToSql, Type};

/// What the ledger holds of a job whose rows are all in. Commits are lost from the last one backwards: where
/// the later ones are there, the earlier ones are. What is not asked for takes no right to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Proof {
    /// So many chunks at least.
    pub chunks: u64,
    /// So many steps at least that bring rows in: parts and deletions of staged rows, tables that have taken
    /// another's place.
    pub steps: u64,
    /// No change is left to be undone, but for staging tables, which go with the end of the job.
    pub put_back: bool,
}

/// How a job ends.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// Done, failed or interrupted.
    pub status: Status,
    /// The rows of all its runs.
    pub rows_stored: u64,
    /// It ends so only if the ledger holds all of this.
    pub proof: Proof,
    /// The server process that has held the job for this run and may not be gone yet. If others hold it, too,
    /// the job goes on, and only an end with all rows is noted.
    pub holder_pid: Option<i32>,
    /// Why it did not end well, as JSON.
    pub error: Option<&'a str>,
    /// Further statements of the same transaction, each with its semicolon.
    pub sql: &'a str,
}

impl Ledger {
    /// The job has come to its end.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn is_done(&self, session: &Session, job_id: &str) -> Result<bool> {
        let sql = format!("SELECT FROM {}.job WHERE job_id = $1 AND status = 'done'", self.quoted);
        let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&job_id, Type::TEXT)];
        Ok(!self.ask(session, &sql, &parameters, "reading the ledger's jobs").await?.is_empty())
    }

    /// The ledger holds all of this, as a condition; the job is a literal.
    fn proof_sql(&self, job: &str, proof: Proof) -> String {
        let schema = &self.quoted;
        let of_job = |table: &str| format!("FROM {schema}.{table} WHERE job_id = {job}");
        let mut all = vec!["true".to_owned()];
        if proof.chunks > 0 {
            let chunks = of_job("chunk");
            all.push(format!("(SELECT pg_catalog.count(*) {chunks}) >= {}", proof.chunks));
        }
        if proof.steps > 0 {
            let steps = of_job("step");
            let bring_in = "name IN ('part', 'delete', 'replace')";
            all.push(format!("(SELECT pg_catalog.count(*) {steps} AND {bring_in}) >= {}", proof.steps));
        }
        if proof.put_back {
            let undos = of_job("undo");
            all.push(format!("NOT EXISTS (SELECT {undos} AND undone_at IS NULL AND kind <> 'staging')"));
        }
        all.join(" AND ")
    }

    /// The ledger holds all of this.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn holds(&self, session: &Session, job_id: &str, proof: Proof) -> Result<bool> {
        let sql = format!("SELECT {}", self.proof_sql("$1", proof));
        let asked = session.client().query_typed_one(&sql, &[(&job_id, Type::TEXT)]).await;
        asked.map(|row| row.get(0)).map_err(|error| self.error(&error, "looking for what the job has stored"))
    }

    /// A job that is done stays done: who brought all rows in by one transaction, and lost the answer, does
    /// not know it.
    fn close_sql(&self, job_id: &str, ending: Ending<'_>) -> String {
        let Ending { status, rows_stored, proof, holder_pid, error, .. } = ending;
        let (schema, job) = (&self.quoted, quote_literal(job_id));
        let condition = if status == Status::Done {
            self.standing_sql(&job).map(|sql| format!(" AND {sql}")).unwrap_or_default()
        } else {
            format!(" AND status <> 'done' AND NOT {}", self.held_by_others_sql(job_id, holder_pid))
        };
        // A text of the server's database holds no NUL.
        let error = error
            .map(|json| format!("{}::pg_catalog.jsonb", quote_literal(&json.replace("\\u0000", "\\ufffd"))));
        let error = error.as_deref().unwrap_or("NULL");
        format!(
            "UPDATE {schema}.job SET status = {}, error = {error}, rows_stored = {rows_stored}, \
                 finished_at = greatest(pg_catalog.clock_timestamp(), started_at) \
             WHERE job_id = {job} AND {}{condition} RETURNING job_id",
            quote_literal(JobStatus::from(status).as_str()),
            self.proof_sql(&job, proof),
        )
    }

    /// Notes in the open transaction how the job ends; the further statements are run in any case.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn end_within(&self, session: &Session, job_id: &str, ending: Ending<'_>) -> Result<()> {
        let sql = format!("{}; {}", self.close_sql(job_id, ending), ending.sql);
        let done = session.client().batch_execute(&sql).await;
        done.map_err(|error| self.error(&error, "closing the job in the ledger"))
    }

    /// The ledger holds at least so many chunks of the job: what waits in staging tables was stored with
    /// them. Of a server that has lost some, as after a failover to a standby that was behind, rows must not
    /// come in as if they were all.
    ///
    /// # Errors
    /// Server, if it has lost some; those of the session.
    pub async fn expect_chunks(&self, session: &Session, job_id: &str, chunks: u64) -> Result<()> {
        let sql = format!("SELECT pg_catalog.count(*) FROM {}.chunk WHERE job_id = $1", self.quoted);
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "counting the ledger's chunks").await?;
        let held = rows.first().map_or(0, |row| unsigned(row.get(0)));
        if held >= chunks {
            return Ok(());
        }
        let message = format!(
            "of {} that the job has stored in staging tables {held} are there: the server has lost the others, as after a \
             failover to a standby that was behind",
            counted(chunks, "chunk")
        );
        Err(Error::new(ErrorKind::Server, message)
            .with_hint("run the same command again: it loads what is not there"))
    }

    /// Notes how the job ended, durably: when this returns, neither this nor any chunk whose commit was
    /// answered before can be lost (see [`crate::finish`]). False, and nothing is noted, if the server has
    /// lost some of what proves it, as after a failover to a standby that was behind, or if the job goes on
    /// or is done without this run.
    ///
    /// # Errors
    /// Ledger, if the job is not there; those of the session.
    pub async fn close(&self, session: &Session, job_id: &str, ending: Ending<'_>) -> Result<bool> {
        let fail = async |error| {
            let mapped = self.error(&error, "closing the job in the ledger");
            session.roll_back().await;
            Err(mapped)
        };
        // One simple query is one transaction and one round trip, where nothing hangs on the answer; it takes
        // no parameters.
        let commit = if ending.sql.is_empty() { "; COMMIT" } else { "" };
        let sql = format!("BEGIN; {DURABLE_SQL}; {}{commit}", self.close_sql(job_id, ending));
        let answers = match session.client().simple_query(&sql).await {
            Ok(answers) => answers,
            Err(error) => return fail(error).await,
        };
        let rows =
            answers.iter().filter(|answer| matches!(answer, tokio_postgres::SimpleQueryMessage::Row(_)));
        // One row is set_config's answer, the other the job's.
        let is_noted = rows.count() >= 2;
        if !ending.sql.is_empty() {
            let rest = if is_noted { format!("{}COMMIT", ending.sql) } else { "ROLLBACK".to_owned() };
            if let Err(error) = session.client().batch_execute(&rest).await {
                return fail(error).await;
            }
        }
        if is_noted {
            return Ok(true);
        }
        match self.find(session, job_id).await? {
            Some(_) => Ok(false),
            None => Err(self.lost_job(job_id)),
        }
    }
}
