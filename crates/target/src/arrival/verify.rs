//! Rows of a staging table are in their table as they waited: looked up by their key, or summed up by the
//! transactions that brought them.

use super::DOING;
use super::part::{Surroundings, Way};
use super::table::Into;
use crate::build::lift_sql;
use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_relation;
use crate::verify::{EXACT_SQL, hash_sql};
use howdah_model::{Error, ErrorKind, Mode, Result, Verify};
use tokio_postgres::types::{ToSql, Type};

/// Looks within the open transaction.
///
/// # Errors
/// Differs, when some are not; those of the session.
pub async fn check(session: &Session, around: Surroundings<'_>, way: Way<'_>, by: Verify) -> Result<()> {
    if by == Verify::None {
        return Ok(());
    }
    let fail = |error: tokio_postgres::Error| session_error(&error, DOING);
    session.client().batch_execute(EXACT_SQL).await.map_err(fail)?;
    let target = way.into.relation.to_string();
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&around.job_id, Type::TEXT), (&target, Type::TEXT)];
    let transactions = around.ledger.step_transactions_sql();
    let sql = way.into.astray_sql(way.mode, by, &transactions);
    let rows = session.client().query_typed(&sql, &parameters).await.map_err(fail)?;
    match rows.first().map_or(0, |row| row.get::<_, i64>(0)) {
        0 => Ok(()),
        astray => Err(differs(way, astray.unsigned_abs())),
    }
}

/// The same in a transaction of its own.
///
/// # Errors
/// As [`check`].
pub async fn check_alone(
    session: &Session,
    around: Surroundings<'_>,
    way: Way<'_>,
    by: Verify,
) -> Result<()> {
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| session_error(&error, DOING))
    };
    let lift = lift_sql(session.server_version());
    run(&format!("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; {lift}")).await?;
    let checked = check(session, around, way, by).await;
    run("ROLLBACK").await?;
    checked
}

fn differs(way: Way<'_>, rows: u64) -> Error {
    let (relation, staging) = (&way.into.relation, &way.into.staging.relation);
    let message = match way.mode {
        Mode::Merge | Mode::InsertNew => {
            format!("{rows} of the rows that waited in {staging} are not in {relation} as they were read")
        }
        _ => format!("what came into {relation} is not what waited in {staging}"),
    };
    let hint = "a trigger of the table, or another session, has changed or deleted rows: see to that; howdah restore drops what waits, and \
                the same command loads it once more";
    Error::new(ErrorKind::Differs, message).with_hint(hint)
}

impl Into {
    /// Counts rows that are not in the table as they wait, or tells by 1 that the sums of all differ.
    /// `transactions` are those that brought them, of job `$1` into table `$2`.
    fn astray_sql(&self, mode: Mode, by: Verify, transactions: &str) -> String {
        let ours = format!("t.xmin = ANY (ARRAY({transactions}))");
        let staging = quote_relation(&self.staging.relation);
        if self.key.is_empty() {
            let hash = if by == Verify::Checksum { hash_sql(&self.names()) } else { "0".to_owned() };
            let sums = format!(
                "SELECT ROW(pg_catalog.count(*), coalesce(pg_catalog.sum({hash}), 0))::pg_catalog.text"
            );
            return format!(
                "SELECT (({sums} FROM {staging} AS t) IS DISTINCT FROM ({sums} FROM {} AS t WHERE {ours}))\
                 ::pg_catalog.int4::pg_catalog.int8",
                quote_relation(&self.relation)
            );
        }
        let same = match (by, mode) {
            _ if self.others().next().is_none() => String::new(),
            (Verify::Checksum, Mode::Merge) => format!(" AND NOT ({})", self.differs()),
            // What was there before may be otherwise.
            (Verify::Checksum, _) => format!(" AND (NOT ({ours}) OR NOT ({}))", self.differs()),
            _ => String::new(),
        };
        format!(
            "SELECT pg_catalog.count(*) FROM {staging} AS s WHERE ($1 || $2) IS NOT NULL \
             AND NOT EXISTS (SELECT FROM {} AS t WHERE {}{same})",
            self.target(),
            self.same_key()
        )
    }
}
