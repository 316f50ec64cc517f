//! Files of which another job has stored rows in the same table. Files or a [`Plan`] enter, what is known
//! leaves: the same file under other options, or among others, is another job to the ledger, and its rows
//! come on top of those that are there.

use super::job::target_name;
use super::job_lock::{KEY_SEED, MARK_SEED, holders_sql};
use super::same_table::{IS_SAME_SQL, over_taken, same_sql};
use super::{Ledger, is_lacking};
use crate::session::Session;
use howdah_model::{FilePlan, KnownFile, Plan, Relation, Result};
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// A file that was found, by one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileToLoad<'a> {
    /// Which of those that were found.
    pub no: usize,
    /// Its name.
    pub location: &'a str,
    /// What must be the same.
    pub version: &'a str,
}

/// A file that was found and that a finished job has loaded into a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    /// Which of those that were found.
    pub no: usize,
    /// The latest job that has.
    pub file: KnownFile,
}

/// What is not asked of others for a job, as it is the job's own or was known when it began.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Files of which it has stored chunks, by location.
    pub files: BTreeSet<String>,
    /// When it began first, as this session writes times: what others had done before, it was let in beside,
    /// but for files that have changed since.
    pub since: Option<String>,
    /// It is at work: who means to load beside it, by `--force` or `--known load`, takes nothing from it.
    pub at_work: bool,
}

/// Rows that a job which did not end has stored of files of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInPart {
    /// The job.
    pub job_id: String,
    /// One of the files, as that job wrote it.
    pub location: String,
    /// The table, `schema.name`.
    pub table: String,
    /// The same as that job wrote it.
    pub written: String,
    /// Its number in the plan.
    pub table_no: u32,
    /// Rows of all these files in this table.
    pub rows: u64,
    /// None of the files is what that job has read any more.
    pub has_changed: bool,
    /// A load of it is at work.
    pub at_work: bool,
}

/// A file of a plan that another job has loaded into the same table, or is about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// Which file of the plan.
    pub file_no: u32,
    /// The other job; of one that is at work, when it began.
    pub file: KnownFile,
    /// It is not done, and at work.
    pub at_work: bool,
    /// By no more than sessions that a killed run may have left.
    pub left_over: bool,
}

/// The files of all jobs by each of their names: as written, and where the links of that lead.
const NAMED_FILES_SQL: &str = "\
    (SELECT f.job_id, f.file_no, f.location, f.version, f.target, n.name \
     FROM @schema@.file f, LATERAL (VALUES (f.location), (f.real_location)) n (name) \
     WHERE n.name IS NOT NULL)";

/// Other jobs have files of these names at all, of these versions where they are given; or those of them that
/// did not end. Most files are nobody else's, and to plan a whole question takes the server 2 or 3 ms, this
/// one less than half of one (PostgreSQL 15).
const ANY_SQL: &str = "\
    SELECT FROM @schema@.file f \
    WHERE (f.location = ANY ($2) OR f.real_location = ANY ($2)) AND ($3 IS NULL OR f.version = ANY ($3)) AND f.job_id <> $1 \
      AND (NOT $4 OR EXISTS (SELECT FROM @schema@.job j WHERE j.job_id = f.job_id AND j.status <> 'done')) LIMIT 1";

/// By file and table.
const LOADED_SQL: &str = "\
    SELECT DISTINCT ON (found.no, f.target) found.no, f.location, f.target, j.job_id, \
           pg_catalog.to_char(j.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') \
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) AS found (no, name, version) \
    JOIN @files@ f USING (name, version) \
    JOIN @schema@.job j USING (job_id) \
    WHERE j.status = 'done' \
    ORDER BY found.no, f.target, j.finished_at DESC";

/// Those of these jobs since whose end, or last rows if they did not end, no other one has emptied or
/// replaced the table, or one that it is a partition of, nor since their first rows deleted, there or in a
/// partition of it, what its own files had no record of: the table is what these say then, and its key keeps
/// others from coming twice.
const STANDING_SQL: &str = " \
    SELECT c.job_id FROM came c \
    WHERE NOT EXISTS (SELECT FROM taken s \
                      WHERE s.job_id <> c.job_id \
                        AND (s.name IN ('truncate', 'replace') AND s.whole AND s.done_at > c.last_at \
                             OR s.name = 'delete' AND s.done_at > c.first_at))";

/// These jobs, with the times of their first and last rows.
const CAME_SQL: &str = "\
    , came AS MATERIALIZED ( \
        SELECT j.job_id, \
               coalesce((SELECT pg_catalog.min(p.done_at) FROM @schema@.step p WHERE p.job_id = j.job_id AND p.name = 'part'), \
                        (SELECT pg_catalog.min(c.stored_at) FROM @schema@.chunk c WHERE c.job_id = j.job_id AND c.rows > 0), \
                        j.finished_at) AS first_at, \
               coalesce(j.finished_at, \
                        (SELECT pg_catalog.max(c.stored_at) FROM @schema@.chunk c WHERE c.job_id = j.job_id AND c.rows > 0)) AS last_at \
        FROM @schema@.job j WHERE j.job_id = ANY ($3))";

/// What happened before is nothing to any of them.
const CAME_SINCE_SQL: &str = "SELECT pg_catalog.min(least(c.first_at, c.last_at)) FROM came c";

/// By file of the plan: a job at work, else the latest that is done. One at work that brings a new table
/// waits for those that load into the old one. One that empties the table first does so in a transaction that
/// nobody sees into, and may wait for others before: it counts from its beginning. Who puts back what a job
/// has dropped has its lock alone, and loads nothing. `$7` says nothing of a file that has changed since:
/// nobody had asked for this version then.
const RIVALS_SQL: &str = "\
    WITH working AS MATERIALIZED ( \
        SELECT j.job_id, EXISTS (SELECT FROM @holders@ AND l.mode = 'ShareLock') AS held \
        FROM @schema@.job j \
        WHERE j.status <> 'done' AND j.job_id <> $1 \
          AND EXISTS (SELECT FROM @workers@ AND l.mode = 'ShareLock') \
          AND j.plan #> '{job,arrival,check}'::pg_catalog.text[] IS DISTINCT FROM 'true'::pg_catalog.jsonb \
          AND j.plan #>> '{job,arrival,mode}'::pg_catalog.text[] IS DISTINCT FROM 'replace'), \
    named AS MATERIALIZED ( \
        SELECT p.file_no, p.has_changed, p.target, p.oid, f.job_id, f.location, f.target AS written \
        FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5), \
                        pg_catalog.unnest($9), pg_catalog.unnest($10)) AS p (file_no, name, version, target, has_changed, oid) \
        JOIN @files@ f USING (name, version) \
        WHERE f.job_id <> $1), @same@ \
    SELECT DISTINCT ON (n.file_no) n.file_no, n.location, n.target, j.job_id, \
           pg_catalog.to_char(CASE j.status WHEN 'done' THEN j.finished_at ELSE j.started_at END AT TIME ZONE 'UTC', \
                              'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), \
           w.job_id IS NOT NULL, w.held IS NOT DISTINCT FROM false \
    FROM named n \
    JOIN @schema@.job j USING (job_id) \
    LEFT JOIN working w USING (job_id) \
    WHERE @is_same@ AND (w.job_id IS NOT NULL \
             OR j.status = 'done' AND ($7 IS NULL OR n.has_changed OR j.finished_at >= $7::pg_catalog.timestamptz)) \
      AND NOT ($8 AND @beside@) \
    ORDER BY n.file_no, w.job_id IS NULL, j.finished_at DESC";

/// Those of these jobs that were done before the job `$1` began.
const DONE_BEFORE_SQL: &str = "\
    SELECT d.job_id FROM @schema@.job j JOIN @schema@.job d ON d.finished_at < j.started_at \
    WHERE j.job_id = $1 AND d.job_id = ANY ($2) AND d.status = 'done'";

/// By job and table, those that nobody is at work for and the latest jobs first; of files whose first rows
/// came since `$7`, and of rows that came since `$9`, if these are given. Who has loaded a file since,
/// whichever version, knew of the rows that were there, or had removed them. Other rejected records (`$6`)
/// under a name that rejected records have had are not what that was.
const IN_PART_SQL: &str = "\
    WITH named AS MATERIALIZED ( \
        SELECT f.job_id, f.file_no, f.location, f.version <> p.version AS is_other, f.target AS written, p.name, p.table_no, p.target, p.oid \
        FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), \
                        pg_catalog.unnest($5), pg_catalog.unnest($11)) AS p (name, version, target, table_no, oid) \
        JOIN @files@ f USING (name) \
        WHERE f.job_id IN (SELECT j.job_id FROM @schema@.job j WHERE j.status <> 'done' AND j.job_id <> $1)), @same@ \
    SELECT j.job_id, pg_catalog.min(f.location), f.target, pg_catalog.min(f.table_no), \
           pg_catalog.sum(c.rows)::pg_catalog.int8, EXISTS (SELECT FROM @holders@ AND l.mode = 'ShareLock') AS at_work, \
           pg_catalog.bool_and(f.has_changed), f.written \
    FROM (SELECT n.job_id, n.file_no, n.location, n.target, n.written, pg_catalog.min(n.table_no) AS table_no, \
                 pg_catalog.array_agg(n.name) AS names, coalesce(pg_catalog.bool_and(n.is_other), true) AS has_changed \
          FROM named n WHERE @is_same@ \
          GROUP BY n.job_id, n.file_no, n.location, n.target, n.written) f \
    JOIN @schema@.job j USING (job_id) \
    JOIN LATERAL (SELECT pg_catalog.sum(c.rows) FILTER (WHERE $9 IS NULL OR c.stored_at >= $9::pg_catalog.timestamptz) AS rows, \
                         pg_catalog.min(c.stored_at) AS first_at, pg_catalog.max(c.stored_at) AS last_at FROM @schema@.chunk c \
                  WHERE c.job_id = f.job_id AND c.file_no = f.file_no AND c.rows > 0) c ON c.rows > 0 \
    WHERE (NOT f.has_changed OR j.plan #>> '{job,rejects_of,job_id}'::pg_catalog.text[] IS NOT DISTINCT FROM $6) \
      AND ($7 IS NULL OR c.first_at >= $7::pg_catalog.timestamptz) \
      AND NOT EXISTS (SELECT FROM @files@ s JOIN @schema@.job d USING (job_id) \
                      WHERE s.name = ANY (f.names) AND s.target IN (f.target, f.written) AND d.status = 'done' AND d.started_at > c.last_at) \
      AND NOT ($10 AND @beside@) \
    GROUP BY j.job_id, j.started_at, f.target, f.written ORDER BY at_work, j.started_at DESC, f.target, f.written";

/// The job means to load beside others.
const BESIDE_SQL: &str = "\
    (coalesce(j.plan #>> '{job,force}'::pg_catalog.text[], '') = 'true' \
     OR coalesce(j.plan #>> '{job,known}'::pg_catalog.text[], '') = 'load')";

/// Chunks of a job whose own row somebody has deleted are another job's.
const BEGUN_SQL: &str = "\
    SELECT DISTINCT j.started_at::pg_catalog.text, c.file_no FROM @schema@.job j LEFT JOIN @schema@.chunk c USING (job_id) \
    WHERE j.job_id = $1";

/// Each file of a plan that is loaded, by all its names.
struct Spelled<'a> {
    file_numbers: Vec<i32>,
    table_numbers: Vec<i32>,
    locations: Vec<&'a str>,
    versions: Vec<Option<&'a str>>,
    targets: Vec<String>,
    oids: Vec<u32>,
    have_changed: Vec<bool>,
}

impl Spelled<'_> {
    fn of<'a>(plan: &'a Plan, own: &Own, is_asked: impl Fn(&FilePlan) -> bool) -> Spelled<'a> {
        let is_asked =
            |file: &FilePlan| !file.left_out && !own.files.contains(&file.location) && is_asked(file);
        let asked = (0..).zip(&plan.files).filter(|(_, file)| is_asked(file));
        let spelled = asked.flat_map(|(no, file)| {
            let locations = std::iter::once(&file.location).chain(&file.real_location);
            locations.map(move |location| (no, location.as_str(), file))
        });
        let spelled: Vec<(i32, &str, &FilePlan)> = spelled.collect();
        Spelled {
            file_numbers: spelled.iter().map(|(no, ..)| *no).collect(),
            table_numbers: spelled
                .iter()
                .map(|(.., file)| i32::try_from(file.table_no).unwrap_or_default())
                .collect(),
            locations: spelled.iter().map(|(_, location, _)| *location).collect(),
            versions: spelled.iter().map(|(.., file)| file.version.as_deref()).collect(),
            targets: spelled.iter().map(|(.., file)| target_name(plan, file.table_no)).collect(),
            oids: spelled.iter().map(|(.., file)| target_oid(plan, file.table_no)).collect(),
            have_changed: spelled.iter().map(|(.., file)| file.has_ever_changed()).collect(),
        }
    }
}

impl Ledger {
    /// When the job began first, and the files of which it has stored chunks, by their numbers. One round
    /// trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn begun_files(
        &self,
        session: &Session,
        job_id: &str,
    ) -> Result<(Option<String>, BTreeSet<u32>)> {
        let sql = BEGUN_SQL.replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &[(&job_id, Type::TEXT)], "reading the ledger's chunks").await?;
        let files = rows.iter().filter_map(|row| row.get::<_, Option<i32>>(1)).map(i32::unsigned_abs);
        Ok((rows.first().map(|row| row.get(0)), files.collect()))
    }

    /// What jobs that did not end have stored of the files of this plan, whichever version, but for those
    /// that are its job's `own`, in the same tables: it is there, or waits in a staging table. One round
    /// trip, and another where such jobs have files of these names.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn stored_in_part(
        &self,
        session: &Session,
        plan: &Plan,
        own: &Own,
    ) -> Result<Vec<StoredInPart>> {
        // A table that this plan makes is empty, whatever was loaded into another one of its name. A pipe is
        // another one each time.
        let is_there = |file: &FilePlan| {
            plan.tables.get(file.table_no as usize).is_some_and(|table| table.create.is_none())
        };
        let spelled = Spelled::of(plan, own, |file| file.rereadable && is_there(file));
        if !self.has_any(session, &plan.job_id, &spelled.locations, None, true).await? {
            return Ok(Vec::new());
        }
        let rejects_of = plan.job.rejects_of.as_ref().map(|of| of.job_id.as_str());
        let parameters: [(&(dyn ToSql + Sync), Type); 11] = [
            (&plan.job_id, Type::TEXT),
            (&spelled.locations, Type::TEXT_ARRAY),
            (&spelled.versions, Type::TEXT_ARRAY),
            (&spelled.targets, Type::TEXT_ARRAY),
            (&spelled.table_numbers, Type::INT4_ARRAY),
            (&rejects_of, Type::TEXT),
            (&plan.job.once_more_until, Type::TEXT),
            (&self.schema, Type::TEXT),
            (&own.since, Type::TEXT),
            (&own.at_work, Type::BOOL),
            (&spelled.oids, Type::OID_ARRAY),
        ];
        let holders = format!("pg_catalog.hashtextextended($8 || '/' || j.job_id, {KEY_SEED})");
        let sql = self.over_files(&IN_PART_SQL.replace("@holders@", &holders_sql(&holders)));
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's files").await?;
        let stored = rows.iter().map(|row| StoredInPart {
            job_id: row.get(0),
            location: row.get(1),
            table: row.get(2),
            table_no: u32::try_from(row.get::<_, i32>(3)).unwrap_or(0),
            rows: u64::try_from(row.get::<_, i64>(4)).unwrap_or(0),
            at_work: row.get(5),
            has_changed: row.get(6),
            written: row.get(7),
        });
        Ok(stored.collect())
    }

    /// What jobs that are done have loaded of these files, the same versions, whatever became of the rows
    /// since. Nothing, where there is no ledger. One round trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn loaded(&self, session: &Session, files: &[FileToLoad<'_>]) -> Result<Vec<LoadedFile>> {
        if self.is_absent(session) {
            return Ok(Vec::new());
        }
        let numbers: Vec<i64> = files.iter().map(|file| file.no as i64).collect();
        let locations: Vec<&str> = files.iter().map(|file| file.location).collect();
        let versions: Vec<&str> = files.iter().map(|file| file.version).collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&numbers, Type::INT8_ARRAY), (&locations, Type::TEXT_ARRAY), (&versions, Type::TEXT_ARRAY)];
        let sql = self.over_files(LOADED_SQL);
        match self.if_plain(session, async || session.client().query_typed(&sql, &parameters).await).await? {
            Ok(rows) => Ok(rows.iter().map(loaded_file).collect()),
            Err(error) if is_lacking(&error) => Ok(Vec::new()),
            Err(error) => Err(self.error(&error, "reading the ledger's files")),
        }
    }

    /// Those of these jobs that were done before this one began.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn done_before(
        &self,
        session: &Session,
        job_id: &str,
        jobs: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>> {
        let asked: Vec<&String> = jobs.iter().collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&job_id, Type::TEXT), (&asked, Type::TEXT_ARRAY)];
        let sql = DONE_BEFORE_SQL.replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's jobs").await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Those of these jobs that neither another job has emptied the table behind nor, where it is UNLOGGED, a
    /// crash of the server, as far as the ledger says.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn standing(
        &self,
        session: &Session,
        relation: &Relation,
        jobs: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>> {
        if jobs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let fail = |error| self.error(&error, "looking who has emptied the table");
        let asked: Vec<&String> = jobs.iter().collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT), (&asked, Type::TEXT_ARRAY)];
        let sql = over_taken(CAME_SQL, CAME_SINCE_SQL, STANDING_SQL).replace("@schema@", &self.quoted);
        let mut standing: BTreeSet<String> = match session.client().query_typed(&sql, &parameters).await {
            Ok(rows) => rows.iter().map(|row| row.get(0)).collect(),
            // Who may not read the steps takes the rows for there.
            Err(error) if is_lacking(&error) => jobs.clone(),
            Err(error) => return Err(fail(error)),
        };
        if self.has_marks(session).await? {
            let lost = self.lost_in_crash(session, relation, &asked).await?;
            standing.retain(|job_id| !lost.contains(job_id));
        }
        Ok(standing)
    }

    /// What other jobs have loaded of the files of this plan, but for those that are its job's `own`, into
    /// the same tables, the same versions, or are loading at this time. One round trip, and another where
    /// other jobs have the same files.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn rivals(&self, session: &Session, plan: &Plan, own: &Own) -> Result<Vec<Rival>> {
        let key = |seed: i64| format!("pg_catalog.hashtextextended($6 || '/' || j.job_id, {seed})");
        let workers = holders_sql(&format!("{}, {}", key(KEY_SEED), key(MARK_SEED)));
        let sql =
            RIVALS_SQL.replace("@holders@", &holders_sql(&key(KEY_SEED))).replace("@workers@", &workers);
        let spelled = Spelled::of(plan, own, |_| true);
        if !self.has_any(session, &plan.job_id, &spelled.locations, Some(&spelled.versions), false).await? {
            return Ok(Vec::new());
        }
        let parameters: [(&(dyn ToSql + Sync), Type); 10] = [
            (&plan.job_id, Type::TEXT),
            (&spelled.file_numbers, Type::INT4_ARRAY),
            (&spelled.locations, Type::TEXT_ARRAY),
            (&spelled.versions, Type::TEXT_ARRAY),
            (&spelled.targets, Type::TEXT_ARRAY),
            (&self.schema, Type::TEXT),
            (&own.since, Type::TEXT),
            (&own.at_work, Type::BOOL),
            (&spelled.have_changed, Type::BOOL_ARRAY),
            (&spelled.oids, Type::OID_ARRAY),
        ];
        let rows =
            self.ask(session, &self.over_files(&sql), &parameters, "reading the ledger's files").await?;
        let rival = |row: &Row| Rival {
            file_no: row.get::<_, i32>(0).unsigned_abs(),
            file: known_file(row),
            at_work: row.get(5),
            left_over: row.get(6),
        };
        Ok(rows.iter().map(rival).collect())
    }

    /// See [`ANY_SQL`].
    async fn has_any(
        &self,
        session: &Session,
        job_id: &str,
        locations: &[&str],
        versions: Option<&[Option<&str>]>,
        unfinished: bool,
    ) -> Result<bool> {
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&job_id, Type::TEXT),
            (&locations, Type::TEXT_ARRAY),
            (&versions, Type::TEXT_ARRAY),
            (&unfinished, Type::BOOL),
        ];
        let sql = ANY_SQL.replace("@schema@", &self.quoted);
        Ok(!self.ask(session, &sql, &parameters, "reading the ledger's files").await?.is_empty())
    }

    fn over_files(&self, sql: &str) -> String {
        sql.replace("@files@", NAMED_FILES_SQL)
            .replace("@same@", &same_sql())
            .replace("@is_same@", IS_SAME_SQL)
            .replace("@beside@", BESIDE_SQL)
            .replace("@schema@", &self.quoted)
    }
}

fn loaded_file(row: &Row) -> LoadedFile {
    LoadedFile { no: usize::try_from(row.get::<_, i64>(0)).unwrap_or(usize::MAX), file: known_file(row) }
}

fn known_file(row: &Row) -> KnownFile {
    let (location, table, job_id, at) = (row.get(1), row.get(2), row.get(3), row.get(4));
    KnownFile { location, table, job_id, at, made_anew: false }
}

/// 0, where a plan makes the table.
fn target_oid(plan: &Plan, table_no: u32) -> u32 {
    plan.tables.get(table_no as usize).map_or(0, |table| table.table.oid)
}
