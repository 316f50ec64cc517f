//! What a job relies on besides its chunks: that the ledger still knows it, that its tables are those it
//! began with, and that nobody empties or replaces a table while another job loads into it.

use super::Ledger;
use super::job_lock::{KEY_SEED, MARK_SEED, holders_sql};
use super::step::target;
use crate::session::Session;
use crate::tree::BY_NAME_SQL;
use howdah_model::{Error, ErrorKind, Relation, Result, plural, sqlstate};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Of a job: whether it is there; a table of which no step says that it was emptied; a table of its plan that
/// is another one by now; another and those of its columns that are others by now than the ones that rows
/// were copied into. The OID in the plan is 0 where an earlier part of the plan has made the table, and the
/// number of a column where it was not known.
const STANDS_SQL: &str = "\
    SELECT j.job_id IS NOT NULL, \
           (SELECT pg_catalog.min(e.target) FROM pg_catalog.unnest($2) AS e (target) \
            WHERE NOT EXISTS (SELECT FROM @schema@.step s \
                              WHERE s.job_id = $1 AND s.target = e.target AND s.name = 'truncate')), \
           (SELECT pg_catalog.min(t.name) \
            FROM (SELECT pg_catalog.format('%s.%s', t #>> '{table,relation,schema}'::pg_catalog.text[], t #>> '{table,relation,name}'::pg_catalog.text[]) AS name, \
                         (t #>> '{table,oid}'::pg_catalog.text[])::pg_catalog.int8 AS was, \
                         pg_catalog.to_regclass(pg_catalog.format('%I.%I', t #>> '{table,relation,schema}'::pg_catalog.text[], \
                             t #>> '{table,relation,name}'::pg_catalog.text[]))::pg_catalog.oid::pg_catalog.int8 AS is \
                  FROM pg_catalog.jsonb_array_elements(j.plan -> 'tables'::pg_catalog.text) AS t) AS t \
            WHERE t.was <> 0 AND t.was IS DISTINCT FROM t.is), \
           (SELECT pg_catalog.array_prepend(pg_catalog.format('%s.%s', t.relation ->> 'schema'::pg_catalog.text, t.relation ->> 'name'::pg_catalog.text), c.names) \
            FROM (SELECT t.plan, t.plan #> '{table,relation}'::pg_catalog.text[] AS relation \
                  FROM pg_catalog.jsonb_array_elements(j.plan -> 'tables'::pg_catalog.text) AS t (plan) \
                  WHERE t.plan ->> 'staging'::pg_catalog.text IS NULL \
                    AND (t.plan ->> 'frozen'::pg_catalog.text)::pg_catalog.bool IS NOT TRUE) AS t \
            CROSS JOIN LATERAL ( \
                SELECT pg_catalog.array_agg(a.attname::pg_catalog.text ORDER BY a.attnum) AS names \
                FROM pg_catalog.jsonb_array_elements(t.plan #> '{table,columns}'::pg_catalog.text[]) AS c (was) \
                JOIN pg_catalog.pg_attribute a \
                  ON a.attrelid = pg_catalog.to_regclass(pg_catalog.format('%I.%I', t.relation ->> 'schema'::pg_catalog.text, \
                         t.relation ->> 'name'::pg_catalog.text))::pg_catalog.oid \
                 AND a.attname = (c.was ->> 'name'::pg_catalog.text)::pg_catalog.name AND NOT a.attisdropped \
                 AND a.attnum <> nullif((c.was ->> 'attnum'::pg_catalog.text)::pg_catalog.int2, 0::pg_catalog.int2) \
                WHERE pg_catalog.jsonb_exists(t.plan -> 'fields'::pg_catalog.text, c.was ->> 'name'::pg_catalog.text)) AS c \
            WHERE c.names IS NOT NULL LIMIT 1) \
    FROM (SELECT $1::pg_catalog.text AS id) AS asked LEFT JOIN @schema@.job j ON j.job_id = asked.id";

/// Another job at work whose rows come into the table, or have begun to: one that empties the table itself
/// counts from then on. A new table that is to take the place of this one is not it, nor is a check. Who is
/// at work holds the job's lock (`Ledger::hold_job`), and its sessions their marks, whatever another run of
/// the job has noted as its end; a lock may be lost and taken again. Those come first that go by what the
/// table refuses.
const LOADING_SQL: &str = "\
    SELECT j.job_id, coalesce(j.plan #>> '{job,arrival,mode}'::pg_catalog.text[] IN ('merge', 'insert-new'), false) \
           OR coalesce(j.plan #> '{job,arrival,atomic}'::pg_catalog.text[] = 'true'::pg_catalog.jsonb, false) \
           OR coalesce(j.plan #>> '{job,bad_records,on_error}'::pg_catalog.text[] = 'skip', false) AS judges \
    FROM @schema@.job j \
    WHERE j.status <> 'done' AND j.job_id <> $1 \
      AND j.plan #> '{job,arrival,check}'::pg_catalog.text[] IS DISTINCT FROM 'true'::pg_catalog.jsonb \
      AND EXISTS (SELECT FROM @schema@.file f WHERE f.job_id = j.job_id AND f.target = ANY ($2)) \
      AND CASE j.plan #>> '{job,arrival,mode}'::pg_catalog.text[] \
              WHEN 'replace' THEN false \
              WHEN 'truncate' THEN EXISTS (SELECT FROM @schema@.step s \
                  WHERE s.job_id = j.job_id AND s.target = ANY ($3) AND s.name = 'truncate') \
              ELSE true END \
      AND EXISTS (SELECT FROM @holders@) \
    ORDER BY judges DESC, j.job_id LIMIT 1";

/// The table, the partitioned tables that it is a partition of, and its partitions: rows of one are rows of
/// the others.
const KIN_SQL: &str = " \
    SELECT n.nspname::text, c.relname::text \
    FROM (SELECT tree.oid FROM tree \
          UNION SELECT a.relid::pg_catalog.oid FROM tree t, pg_catalog.pg_partition_ancestors(t.oid::pg_catalog.regclass) AS a \
                WHERE t.level = 0) AS kin \
    JOIN pg_catalog.pg_class c ON c.oid = kin.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace";

/// Another job at work whose rows come into a table, a partition of it, or one that it is a partition of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loading {
    /// The job.
    pub job_id: String,
    /// The table.
    pub relation: Relation,
    /// It goes by what the table refuses: it leaves such records out, or its rows come from a staging table.
    pub judges: bool,
}

impl Ledger {
    /// The job is in the ledger, these tables were emptied for it, and all its tables, and the columns that
    /// it fills, are those that it began with.
    ///
    /// # Errors
    /// Ledger, for what the server has lost, as after a failover to a standby that was behind; Table, for a
    /// table or a column that has taken the place of another; those of the session.
    pub async fn expect_standing(
        &self,
        session: &Session,
        job_id: &str,
        emptied: &[&Relation],
    ) -> Result<()> {
        let targets: Vec<String> = emptied.iter().map(|relation| target(relation)).collect();
        let sql = STANDS_SQL.replace("@schema@", &self.quoted);
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&job_id, Type::TEXT), (&targets, Type::TEXT_ARRAY)];
        let rows = self.ask(session, &sql, &parameters, "looking after the job in the ledger").await?;
        let Some(row) = rows.first() else { return Ok(()) };
        if !row.get::<_, bool>(0) {
            return Err(self.lost_job(job_id));
        }
        if let Some(table) = row.get::<_, Option<String>>(1) {
            let message = format!(
                "that job {job_id} has emptied {table} is not in the ledger {} any more",
                self.quoted
            );
            return Err(lost(&message));
        }
        match (row.get::<_, Option<String>>(2), row.get::<_, Option<Vec<String>>>(3).as_deref()) {
            (Some(table), _) => Err(another_table(&table, job_id)),
            (None, Some([table, columns @ ..])) => Err(other_columns(table, columns, job_id)),
            (None, _) => Ok(()),
        }
    }

    /// The server that is there does not know the job, of which rows were stored.
    pub fn lost_job(&self, job_id: &str) -> Error {
        lost(&format!("job {job_id} is not in the ledger {} any more", self.quoted))
    }

    /// Another job that is at work and has rows in this table, or will have some: who empties or replaces the
    /// table now would take them from it, and what is dropped now refuses none of them. To be asked under a
    /// lock that keeps others from emptying it.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn loading(
        &self,
        session: &Session,
        job_id: &str,
        relation: &Relation,
    ) -> Result<Option<Loading>> {
        let fail = |error| self.error(&error, "looking for other jobs of the table");
        let names: [(&(dyn ToSql + Sync), Type); 2] =
            [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
        let rows =
            session.client().query_typed(&format!("{BY_NAME_SQL}{KIN_SQL}"), &names).await.map_err(fail)?;
        let kin: Vec<Relation> =
            rows.iter().map(|row| Relation { schema: row.get(0), name: row.get(1) }).collect();
        let of_file: Vec<String> = kin.iter().map(Relation::to_string).collect();
        let of_step: Vec<String> = kin.iter().map(target).collect();
        let key = |seed: i64| format!("pg_catalog.hashtextextended($4 || '/' || j.job_id, {seed})");
        let holders = holders_sql(&format!("{}, {}", key(KEY_SEED), key(MARK_SEED)));
        let sql = LOADING_SQL.replace("@schema@", &self.quoted).replace("@holders@", &holders);
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&job_id, Type::TEXT),
            (&of_file, Type::TEXT_ARRAY),
            (&of_step, Type::TEXT_ARRAY),
            (&self.schema, Type::TEXT),
        ];
        let rows = session.client().query_typed(&sql, &parameters).await.map_err(fail)?;
        let loading =
            |row: &Row| Loading { job_id: row.get(0), relation: relation.clone(), judges: row.get(1) };
        Ok(rows.first().map(loading))
    }

    /// Forgets chunks of these files of a job, whose rows are about to go: the job began anew, since the
    /// server, or somebody, has lost what it had noted before them.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn forget_chunks(
        &self,
        session: &Session,
        job_id: &str,
        file_nos: &[i32],
    ) -> Result<()> {
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&job_id, Type::TEXT), (&file_nos, Type::INT4_ARRAY)];
        let fail = |error| self.error(&error, "forgetting chunks in the ledger");
        let which = "WHERE job_id = $1 AND file_no = ANY ($2)";
        // Most roles need not delete anything there.
        let any = format!("SELECT FROM {}.chunk {which} LIMIT 1", self.quoted);
        if session.client().query_typed(&any, &parameters).await.map_err(fail)?.is_empty() {
            return Ok(());
        }
        for table in ["chunk", "chunk_part", "reject"] {
            let delete = format!("DELETE FROM {}.{table} {which}", self.quoted);
            session.client().query_typed(&delete, &parameters).await.map_err(fail)?;
        }
        Ok(())
    }
}

fn another_table(table: &str, job_id: &str) -> Error {
    let message = format!(
        "{table} is another table by now: it was dropped, renamed or replaced while rows of job {job_id} came, and \
         those that came before are not in it"
    );
    Error::new(ErrorKind::Table, message).with_hint(
        "if it was renamed, give it its name back, and the same command goes on; if it was dropped or replaced, take what came after that out \
         of it, then --force loads everything again from the beginning",
    )
}

fn other_columns(table: &str, columns: &[String], job_id: &str) -> Error {
    let message = format!(
        "{} {} of {table} {} by now: dropped and made anew, or renamed, while rows of job {job_id} came, and the values that came \
         before are not there",
        plural(columns.len() as u64, "column", "columns"),
        columns.join(", "),
        plural(columns.len() as u64, "is another one", "are other ones"),
    );
    Error::new(ErrorKind::Table, message).with_hint(
        "take the rows of the job out of the table (TRUNCATE, if it holds nothing else), then --force loads everything again from the \
         beginning",
    )
}

fn lost(message: &str) -> Error {
    let message =
        format!("{message}: the server has lost it, as after a failover to a standby that was behind");
    Error::new(ErrorKind::Ledger, message).with_hint("run the same command again: it loads what is not there")
}

/// Other jobs' rows would go.
pub(crate) fn busy(relation: &Relation, done: &str, other: &Loading) -> Error {
    let message = format!("{relation} cannot be {done} yet: job {} is loading rows into it", other.job_id);
    Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE)
}
