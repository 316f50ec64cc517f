//! Files of which another job has stored rows in the same table. Files or a [`Plan`] enter, what is known leaves: the same file under
//! other options, or among others, is another job to the ledger, and its rows come on top of those that are there.

use super::Ledger;
use super::job::target_name;
use crate::session::Session;
use howdah_model::{FilePlan, KnownFile, Plan, Result};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
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

/// Rows that a job which did not end has stored of files of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInPart {
    /// The job.
    pub job_id: String,
    /// One of the files, as that job wrote it.
    pub location: String,
    /// The table, `schema.name`.
    pub table: String,
    /// Its number in the plan.
    pub table_no: u32,
    /// Rows of all these files in this table.
    pub rows: u64,
}

/// By file and table. A file that a link leads to may have been named by its own path. `@standing@` is [`STANDING_SQL`].
const LOADED_SQL: &str = "\
    SELECT DISTINCT ON (found.no, f.target) found.no, f.location, f.target, j.job_id, \
           pg_catalog.to_char(j.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') \
    FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) AS found (no, location, version) \
    JOIN @schema@.file f USING (location, version) \
    JOIN @schema@.job j USING (job_id) \
    WHERE j.status = 'done'@standing@ \
    ORDER BY found.no, f.target, j.finished_at DESC";

/// No other job has emptied or replaced the table since.
const STANDING_SQL: &str = " \
    AND NOT EXISTS (SELECT FROM @schema@.step s \
                    WHERE s.target = f.target AND s.job_id <> j.job_id AND s.name IN ('truncate', 'replace') \
                      AND s.done_at > j.finished_at)";

/// By job and table, the latest job first; of any version of the files, if `$6`.
const IN_PART_SQL: &str = "\
    SELECT j.job_id, pg_catalog.min(f.location), f.target, pg_catalog.min(planned.table_no), \
           pg_catalog.sum(c.rows)::pg_catalog.int8 \
    FROM (SELECT DISTINCT * FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), \
                                            pg_catalog.unnest($5)) AS p (location, version, target, table_no)) planned \
    JOIN @schema@.file f ON f.location = planned.location AND f.target = planned.target \
                        AND (f.version = planned.version OR $6 AND planned.version IS NOT NULL) \
    JOIN @schema@.job j USING (job_id) \
    JOIN @schema@.chunk c ON c.job_id = f.job_id AND c.file_no = f.file_no \
    WHERE j.status <> 'done' AND j.job_id <> $1 AND c.rows > 0 \
    GROUP BY j.job_id, j.started_at, f.target ORDER BY j.started_at DESC, f.target";

/// Each file of a plan by all its names.
struct Spelled<'a> {
    table_numbers: Vec<i32>,
    locations: Vec<&'a str>,
    versions: Vec<Option<&'a str>>,
    targets: Vec<String>,
}

impl Spelled<'_> {
    fn of(plan: &Plan) -> Spelled<'_> {
        let spelled = plan.files.iter().flat_map(|file| {
            let locations = std::iter::once(&file.location).chain(&file.real_location);
            locations.map(move |location| (location.as_str(), file))
        });
        let spelled: Vec<(&str, &FilePlan)> = spelled.collect();
        Spelled {
            table_numbers: spelled
                .iter()
                .map(|(_, file)| i32::try_from(file.table_no).unwrap_or_default())
                .collect(),
            locations: spelled.iter().map(|(location, _)| *location).collect(),
            versions: spelled.iter().map(|(_, file)| version(plan, file)).collect(),
            targets: spelled.iter().map(|(_, file)| target_name(plan, file.table_no)).collect(),
        }
    }
}

impl Ledger {
    /// What jobs that did not end have stored of this plan, the same versions of the files, or any, in the same tables: it is there,
    /// or waits in a staging table. One round trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn stored_in_part(
        &self,
        session: &Session,
        plan: &Plan,
        any_version: bool,
    ) -> Result<Vec<StoredInPart>> {
        let spelled = Spelled::of(plan);
        let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
            (&plan.job_id, Type::TEXT),
            (&spelled.locations, Type::TEXT_ARRAY),
            (&spelled.versions, Type::TEXT_ARRAY),
            (&spelled.targets, Type::TEXT_ARRAY),
            (&spelled.table_numbers, Type::INT4_ARRAY),
            (&any_version, Type::BOOL),
        ];
        let sql = IN_PART_SQL.replace("@schema@", &self.quoted);
        let rows = session.client().query_typed(&sql, &parameters).await;
        let rows = rows.map_err(|error| self.error(&error, "reading the ledger's files"))?;
        let stored = rows.iter().map(|row| StoredInPart {
            job_id: row.get(0),
            location: row.get(1),
            table: row.get(2),
            table_no: u32::try_from(row.get::<_, i32>(3)).unwrap_or(0),
            rows: u64::try_from(row.get::<_, i64>(4)).unwrap_or(0),
        });
        Ok(stored.collect())
    }

    /// What jobs that are done have loaded of these files, the same versions, and nobody has emptied the table since, as the ledger
    /// says. Nothing, where there is no ledger. One round trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn loaded(&self, session: &Session, files: &[FileToLoad<'_>]) -> Result<Vec<LoadedFile>> {
        let numbers: Vec<i64> = files.iter().map(|file| file.no as i64).collect();
        let locations: Vec<&str> = files.iter().map(|file| file.location).collect();
        let versions: Vec<&str> = files.iter().map(|file| file.version).collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&numbers, Type::INT8_ARRAY), (&locations, Type::TEXT_ARRAY), (&versions, Type::TEXT_ARRAY)];
        // An older ledger has no steps, or rights of before there were any; and there may be no ledger.
        for standing in [STANDING_SQL, ""] {
            let sql = LOADED_SQL.replace("@standing@", standing).replace("@schema@", &self.quoted);
            match session.client().query_typed(&sql, &parameters).await {
                Ok(rows) => return Ok(rows.iter().map(loaded_file).collect()),
                Err(error)
                    if matches!(error.code().map(SqlState::code), Some("42P01" | "42501" | "3F000")) => {}
                Err(error) => return Err(self.error(&error, "reading the ledger's files")),
            }
        }
        Ok(Vec::new())
    }
}

fn loaded_file(row: &Row) -> LoadedFile {
    let file = KnownFile { location: row.get(1), table: row.get(2), job_id: row.get(3), at: row.get(4) };
    LoadedFile { no: usize::try_from(row.get::<_, i64>(0)).unwrap_or(usize::MAX), file }
}

/// A table that this plan makes is empty, whatever was loaded into another one of its name.
fn version<'a>(plan: &Plan, file: &'a FilePlan) -> Option<&'a str> {
    let table = plan.tables.get(file.table_no as usize).filter(|table| table.create.is_none());
    table.and(file.version.as_deref())
}
