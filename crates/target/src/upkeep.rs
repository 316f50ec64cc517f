//! ANALYZE, VACUUM and CHECKPOINT.

use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};
use std::collections::BTreeSet;
use tokio_postgres::types::{ToSql, Type};

/// Of the rows that the last statistics were made from, more than so many that are new, changed or gone make
/// them stale: autovacuum's own default (`autovacuum_analyze_scale_factor`), which this comes before by a
/// minute or, where autovacuum is off, for good.
const GROWN_SHARE: f64 = 0.1;

/// How long a table is waited for that others hold. Autovacuum gives way within a second
/// (`deadlock_timeout`).
const LOCK_TIMEOUT: &str = "10s";

/// Renews the statistics of a table unless `rows`, which are new, changed or gone, are few among those that
/// it had. A table that somebody else holds, which may be autovacuum doing the same, is passed over: then
/// this is false.
///
/// # Errors
/// Server with 42501, if the role may not; those of the session.
pub async fn analyze_if_grown(session: &Session, relation: &Relation, rows: u64) -> Result<bool> {
    let name = quote_relation(relation);
    let sql = "SELECT reltuples::pg_catalog.float8 FROM pg_catalog.pg_class \
               WHERE oid = pg_catalog.to_regclass($1)::pg_catalog.oid";
    let asked = [(&name as &(dyn ToSql + Sync), Type::TEXT)];
    // Sent together: one round trip.
    let (found, may) = tokio::join!(
        session.rows(sql, &asked, "reading the size of a table"),
        expect_right(session, relation)
    );
    let found = found?;
    let before = found.first().map_or(0.0, |row| row.get::<_, f64>(0));
    if !is_stale(before, rows) {
        return Ok(true);
    }
    may?;
    session.infos().listen();
    let done = run(session, &format!("ANALYZE (SKIP_LOCKED) {name}")).await;
    // A warning, in the words of whatever language the server speaks.
    let told = session.infos().take().unwrap_or_default();
    done.map(|()| told.iter().all(|info| info.sqlstate != sqlstate::LOCK_NOT_AVAILABLE))
}

/// Checkpoints of the server so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoints {
    /// Not those that were due by time: for `max_wal_size`, or because somebody has asked for them.
    requested: u64,
    /// Where the server's WAL ended.
    wal_end_bytes: u64,
    /// `max_wal_size`.
    pub max_wal_bytes: u64,
}

impl Checkpoints {
    /// How many came since `before` for want of `max_wal_size`, at most. Commands ask for checkpoints, too
    /// (CREATE DATABASE of PostgreSQL 13 for two), but the server itself does behind
    /// `max_wal_size / (1 + checkpoint_completion_target)` of WAL at the earliest (its page "WAL
    /// Configuration"), which is half of it or more.
    #[must_use]
    pub fn forced_since(&self, before: &Self) -> u64 {
        let wal_bytes = self.wal_end_bytes.saturating_sub(before.wal_end_bytes);
        let by_wal = wal_bytes / (self.max_wal_bytes.min(before.max_wal_bytes) / 2).max(1);
        by_wal.min(self.requested.saturating_sub(before.requested))
    }
}

/// Reads how many checkpoints there were, and where WAL ends.
///
/// # Errors
/// Those of the session.
pub async fn checkpoints(session: &Session) -> Result<Checkpoints> {
    let requested = match session.server_version() {
        170_000.. => "SELECT num_requested FROM pg_catalog.pg_stat_checkpointer",
        _ => "SELECT checkpoints_req FROM pg_catalog.pg_stat_bgwriter",
    };
    let sql = format!(
        "SELECT ({requested}), (pg_catalog.pg_current_wal_insert_lsn() - '0/0'::pg_catalog.pg_lsn)::pg_catalog.int8, \
         pg_catalog.pg_size_bytes(pg_catalog.current_setting('max_wal_size'))"
    );
    let rows = session.rows(&sql, &[], "counting checkpoints").await?;
    let count = |no: usize| rows.first().map_or(0, |row| row.get::<_, i64>(no).unsigned_abs());
    Ok(Checkpoints { requested: count(0), wal_end_bytes: count(1), max_wal_bytes: count(2) })
}

/// Statistics of so many rows are stale when so many are new, changed or gone.
fn is_stale(rows_there: f64, rows: u64) -> bool {
    rows as f64 > rows_there * GROWN_SHARE
}

/// What ANALYZE of a table will look at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// So many rows, if there are as many: 300 for each of the largest statistics target among its columns.
    pub rows_max: f64,
    /// Rows of the table when it last had statistics.
    pub rows_there: f64,
}

impl Sample {
    /// So many rows more make the statistics stale.
    pub fn is_renewed_by(&self, rows: u64) -> bool {
        is_stale(self.rows_there, rows)
    }
}

/// Reads what ANALYZE of a table, which need not be there yet, will look at.
///
/// # Errors
/// Those of the session.
pub async fn sample_of(session: &Session, relation: &Relation) -> Result<Sample> {
    let sql = "SELECT 300::pg_catalog.float8 * greatest(pg_catalog.current_setting('default_statistics_target')::pg_catalog.int4, \
                   (SELECT max(a.attstattarget::pg_catalog.int4) FROM pg_catalog.pg_attribute a \
                    WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped))::pg_catalog.float8, \
               coalesce((SELECT greatest(c.reltuples, 0)::pg_catalog.float8 FROM pg_catalog.pg_class c WHERE c.oid = t.oid), 0) \
               FROM (SELECT pg_catalog.to_regclass($1)::pg_catalog.oid) t (oid)";
    let name = quote_relation(relation);
    let found = session.rows(sql, &[(&name, Type::TEXT)], "reading what ANALYZE looks at").await?;
    let first = found.first();
    Ok(Sample {
        rows_max: first.map_or(0.0, |row| row.get(0)),
        rows_there: first.map_or(0.0, |row| row.get(1)),
    })
}

/// Of the indexes named `$2` of tables `$1`, the tables of those that are on expressions.
const EXPRESSIONS_SQL: &str = "\
    SELECT DISTINCT i.indrelid \
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.text[])) AS wanted (relation, name) \
    JOIN pg_catalog.pg_index i ON i.indrelid = wanted.relation AND i.indexprs IS NOT NULL \
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid AND c.relname = wanted.name";

/// The tables, by OID, of those of these indexes that are on expressions, each given by its table and its
/// name. The values of expressions have statistics of their own, which are lost with the index.
///
/// # Errors
/// Those of the session.
pub async fn on_expressions(session: &Session, indexes: &[(u32, &str)]) -> Result<BTreeSet<u32>> {
    let (tables, names): (Vec<u32>, Vec<&str>) = indexes.iter().copied().unzip();
    let parameters: [(&(dyn ToSql + Sync), Type); 2] =
        [(&tables, Type::OID_ARRAY), (&names, Type::TEXT_ARRAY)];
    let rows = session.rows(EXPRESSIONS_SQL, &parameters, "looking for indexes on expressions").await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// What autovacuum asks itself before it vacuums a table for the sake of rows that were inserted. Of those,
/// `$2` at least: before PostgreSQL 15 the server counts them half a second late.
const DUE_SQL: &str = "\
    SELECT t >= 0::pg_catalog.float8 AND greatest(pg_catalog.pg_stat_get_ins_since_vacuum(c.oid), $2)::pg_catalog.float8 > t + s * greatest(c.reltuples, 0) \
    FROM pg_catalog.pg_class c, \
         pg_catalog.float8(pg_catalog.current_setting('autovacuum_vacuum_insert_threshold')) AS t, \
         pg_catalog.float8(pg_catalog.current_setting('autovacuum_vacuum_insert_scale_factor')) AS s \
    WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";

/// Does at once what autovacuum, which was kept away, would do at its next visit: marks the pages of new rows
/// as visible to all, if there are many among the table's. `inserted` rows of them are known. True if that
/// was so: then statistics are due as well. A table that somebody else holds is passed over.
///
/// # Errors
/// Those of the session.
pub async fn vacuum_if_due(session: &Session, relation: &Relation, inserted: u64) -> Result<bool> {
    let name = quote_relation(relation);
    let inserted = i64::try_from(inserted).unwrap_or(i64::MAX);
    let asked: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&inserted, Type::INT8)];
    let found = session.rows(DUE_SQL, &asked, "reading how a table has grown").await?;
    let is_due = found.first().is_some_and(|row| row.get::<_, Option<bool>>(0) == Some(true));
    if is_due {
        expect_right(session, relation).await?;
        run(session, &format!("VACUUM (SKIP_LOCKED) {name}")).await?;
    }
    Ok(is_due)
}

/// Whether the server would VACUUM or ANALYZE table `$1` for this role; the role; whether there is a right to
/// that, which can be granted.
const MAY_SQL: &str = "\
    SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE') OR pg_catalog.pg_has_role(d.datdba, 'USAGE') \
           OR CASE WHEN v.grantable THEN pg_catalog.has_table_privilege(c.oid, 'MAINTAIN') ELSE false END, \
           CURRENT_USER::pg_catalog.text, v.grantable \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database(), \
         (SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 170000 AS grantable) v \
    WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";

/// The server itself skips the table with a warning.
async fn expect_right(session: &Session, relation: &Relation) -> Result<()> {
    let name = quote_relation(relation);
    let rows = session.rows(MAY_SQL, &[(&name, Type::TEXT)], "asking for the role's rights").await?;
    let Some(row) = rows.first().filter(|row| !row.get::<_, bool>(0)) else { return Ok(()) };
    let role: String = row.get(1);
    let grant = match row.get(2) {
        true => format!(", and GRANT MAINTAIN ON {name} TO {} would let it", quote_ident(&role)),
        false => String::new(),
    };
    let message = format!("role {role} is not the owner of {relation}{grant}");
    Err(Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE))
}

/// Renews the statistics of a table.
///
/// # Errors
/// Those of the session; Server when others hold the table for too long, or with 42501, if the role may not.
pub async fn analyze(session: &Session, relation: &Relation) -> Result<()> {
    expect_right(session, relation).await?;
    run(session, &format!("SET lock_timeout = '{LOCK_TIMEOUT}'; ANALYZE {}", quote_relation(relation))).await
}

/// Freezes the rows of a table and marks its pages visible to all.
///
/// # Errors
/// As for [`analyze`].
pub async fn vacuum(session: &Session, relation: &Relation) -> Result<()> {
    expect_right(session, relation).await?;
    // Two statements in one message are one transaction, in which there is no VACUUM.
    run(session, &format!("SET lock_timeout = '{LOCK_TIMEOUT}'")).await?;
    run(session, &format!("VACUUM (FREEZE) {}", quote_relation(relation))).await
}

/// Writes to the disk what is in the server's memory alone.
///
/// # Errors
/// Those of the session; Server if the role may not (`pg_checkpoint`, since version 15).
pub async fn checkpoint(session: &Session) -> Result<()> {
    run(session, "CHECKPOINT").await
}

async fn run(session: &Session, sql: &str) -> Result<()> {
    session.client().batch_execute(sql).await.map_err(|error| session_error(&error, "looking after a table"))
}
