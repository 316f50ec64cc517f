//! Files of which another job has stored rows in the same table. A [`Plan`] enters, what is known leaves: the same file under
//! other options is another job to the ledger, and its rows come on top of those that are there.

use super::Ledger;
use super::job::target_name;
use crate::session::Session;
use howdah_model::{FilePlan, Plan, Result};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Files of a plan that finished jobs have loaded before, told by the latest of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedBefore {
    /// How many files of the plan.
    pub files: u64,
    /// One of them, as that job wrote it.
    pub location: String,
    /// The table it was loaded into, `schema.name`.
    pub table: String,
    /// The job that did.
    pub job_id: String,
    /// When that job finished: RFC 3339, UTC, whole seconds.
    pub at: String,
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

/// A file without a version (a pipe) equals nothing, and one that a link leads to may have been named by its own path. One row
/// for each file of the plan, then the latest of all.
const BEFORE_SQL: &str = "\
    SELECT pg_catalog.count(*) OVER (), location, target, job_id, \
           pg_catalog.to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') \
    FROM (SELECT DISTINCT ON (planned.no) f.location, f.target, j.job_id, j.finished_at AS at \
          FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5)) \
               AS planned (location, version, target, no) \
          JOIN @schema@.file f USING (location, version, target) \
          JOIN @schema@.job j USING (job_id) \
          WHERE j.status = 'done' AND j.job_id <> $1 \
          ORDER BY planned.no, j.finished_at DESC) known \
    ORDER BY at DESC, location LIMIT 1";

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
    numbers: Vec<i32>,
    table_numbers: Vec<i32>,
    locations: Vec<&'a str>,
    versions: Vec<Option<&'a str>>,
    targets: Vec<String>,
}

impl Spelled<'_> {
    fn of(plan: &Plan) -> Spelled<'_> {
        let spelled = (0_i32..).zip(&plan.files).flat_map(|(no, file)| {
            let locations = std::iter::once(&file.location).chain(&file.real_location);
            locations.map(move |location| (no, location.as_str(), file))
        });
        let spelled: Vec<(i32, &str, &FilePlan)> = spelled.collect();
        Spelled {
            numbers: spelled.iter().map(|(no, ..)| *no).collect(),
            table_numbers: spelled
                .iter()
                .map(|(.., file)| i32::try_from(file.table_no).unwrap_or_default())
                .collect(),
            locations: spelled.iter().map(|(_, location, _)| *location).collect(),
            versions: spelled.iter().map(|(.., file)| version(plan, file)).collect(),
            targets: spelled.iter().map(|(.., file)| target_name(plan, file.table_no)).collect(),
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
        let any = [(&any_version as &(dyn ToSql + Sync), Type::BOOL)];
        let rows =
            self.ask_of_files(session, IN_PART_SQL, plan, (&spelled, &spelled.table_numbers), &any).await?;
        let stored = rows.iter().map(|row| StoredInPart {
            job_id: row.get(0),
            location: row.get(1),
            table: row.get(2),
            table_no: u32::try_from(row.get::<_, i32>(3)).unwrap_or(0),
            rows: u64::try_from(row.get::<_, i64>(4)).unwrap_or(0),
        });
        Ok(stored.collect())
    }

    /// What other jobs that are done have loaded of this plan, the same versions of the files into the same
    /// tables. One round trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn loaded_before(&self, session: &Session, plan: &Plan) -> Result<Option<LoadedBefore>> {
        let spelled = Spelled::of(plan);
        let rows = self.ask_of_files(session, BEFORE_SQL, plan, (&spelled, &spelled.numbers), &[]).await?;
        Ok(rows.first().map(|row| LoadedBefore {
            files: u64::try_from(row.get::<_, i64>(0)).unwrap_or(0),
            location: row.get(1),
            table: row.get(2),
            job_id: row.get(3),
            at: row.get(4),
        }))
    }

    /// A question about the files of a plan, which these numbers go with.
    async fn ask_of_files(
        &self,
        session: &Session,
        sql: &str,
        plan: &Plan,
        (spelled, numbers): (&Spelled<'_>, &[i32]),
        more: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>> {
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&plan.job_id, Type::TEXT),
            (&spelled.locations, Type::TEXT_ARRAY),
            (&spelled.versions, Type::TEXT_ARRAY),
            (&spelled.targets, Type::TEXT_ARRAY),
            (&numbers, Type::INT4_ARRAY),
        ];
        let sql = sql.replace("@schema@", &self.quoted);
        let parameters = [&parameters, more].concat();
        let rows = session.client().query_typed(&sql, &parameters).await;
        rows.map_err(|error| self.error(&error, "reading the ledger's files"))
    }
}

/// A table that this plan makes is empty, whatever was loaded into another one of its name.
fn version<'a>(plan: &Plan, file: &'a FilePlan) -> Option<&'a str> {
    let table = plan.tables.get(file.table_no as usize).filter(|table| table.create.is_none());
    table.and(file.version.as_deref())
}
