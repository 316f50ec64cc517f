//! Files that another job has loaded into the same table. A [`Plan`] enters, a remark leaves: the same file under
//! other options is another job to the ledger, and its rows come on top of those that are there.

use super::Ledger;
use super::job::target_name;
use crate::session::Session;
use howdah_model::{FilePlan, Plan, Result};
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

impl Ledger {
    /// What other jobs that are done have loaded of this plan, the same versions of the files into the same
    /// tables. One round trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn loaded_before(&self, session: &Session, plan: &Plan) -> Result<Option<LoadedBefore>> {
        let spelled = (0_i32..).zip(&plan.files).flat_map(|(no, file)| {
            let locations = std::iter::once(&file.location).chain(&file.real_location);
            locations.map(move |location| (no, location.as_str(), file))
        });
        let spelled: Vec<(i32, &str, &FilePlan)> = spelled.collect();
        let numbers: Vec<i32> = spelled.iter().map(|(no, ..)| *no).collect();
        let locations: Vec<&str> = spelled.iter().map(|(_, location, _)| *location).collect();
        let versions: Vec<Option<&str>> = spelled.iter().map(|(.., file)| version(plan, file)).collect();
        let targets: Vec<String> =
            spelled.iter().map(|(.., file)| target_name(plan, file.table_no)).collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
            (&plan.job_id, Type::TEXT),
            (&locations, Type::TEXT_ARRAY),
            (&versions, Type::TEXT_ARRAY),
            (&targets, Type::TEXT_ARRAY),
            (&numbers, Type::INT4_ARRAY),
        ];
        let sql = BEFORE_SQL.replace("@schema@", &self.quoted);
        let rows = session.client().query_typed(&sql, &parameters).await;
        let rows = rows.map_err(|error| self.error(&error, "reading the ledger's files"))?;
        Ok(rows.first().map(|row| LoadedBefore {
            files: u64::try_from(row.get::<_, i64>(0)).unwrap_or(0),
            location: row.get(1),
            table: row.get(2),
            job_id: row.get(3),
            at: row.get(4),
        }))
    }
}

/// A table that this plan makes is empty, whatever was loaded into another one of its name.
fn version<'a>(plan: &Plan, file: &'a FilePlan) -> Option<&'a str> {
    let table = plan.tables.get(file.table_no as usize).filter(|table| table.create.is_none());
    table.and(file.version.as_deref())
}
