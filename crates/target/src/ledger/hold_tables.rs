//! Which tables a load is at work on, and whether it takes rows out of them that others have brought. A load
//! that begins notes that, or learns who is in its way: of two that meet in a table, or in a partition and
//! its table, one waits if one of them takes rows.
//!
//! A note is an advisory lock, shared, whose second key is the OID of the table. So it goes with its session,
//! a table keeps it under another name, and loads of all ledgers of the database see it. Notes are made one
//! load after the other, and nobody waits for one.

use super::Ledger;
use super::job_lock::{KEY_SEED, MARK_SEED};
use super::same_table::are_same_sql;
use crate::error::session_error;
use crate::same_table::ANOTHER_SQLSTATE;
use crate::session::Session;
use futures_util::future::join3;
use howdah_model::{Error, ErrorKind, Relation, Result, sqlstate};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// What a load does with the rows that are in its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// They stay: its own come beside them. Others may do the same at the same time.
    Brings,
    /// It empties or replaces the table, or deletes what its files have no record of. Nobody else may be at
    /// work there.
    Takes,
}

impl Hold {
    /// The first keys of the locks: "howB" and "howT" in ASCII.
    fn class(self) -> i32 {
        match self {
            Hold::Brings => 0x686f_7742,
            Hold::Takes => 0x686f_7754,
        }
    }

    /// What keeps others out.
    fn in_the_way(self) -> Vec<i32> {
        match self {
            Hold::Brings => vec![Hold::Takes.class()],
            Hold::Takes => vec![Hold::Brings.class(), Hold::Takes.class()],
        }
    }
}

/// Under which notes are made: "tables" in ASCII.
const NOTING_KEY: i64 = 0x7461_626c_6573;
/// Whoever makes one asks the server a single question.
const NOTING_WITHIN_MS: u32 = 10_000;

/// Makes the notes for tables `$1` (their OIDs, and as keys `$2`) of class `$3`, unless others of the classes
/// `$4` are there, which come out, or one of them is not the table of schema `$7` and name `$8` any more. Job
/// `$6` is no stranger to itself, and one that is done takes no rows and brings none; `$5` is the schema.
const HOLD_SQL: &str = "\
    WITH locks AS MATERIALIZED ( \
        SELECT l.pid, l.classid::pg_catalog.int8 AS high, l.objid AS low, l.objsubid FROM pg_catalog.pg_locks l \
        WHERE l.locktype = 'advisory' AND l.granted AND l.pid <> pg_catalog.pg_backend_pid() \
          AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())), \
    met AS MATERIALIZED ( \
        SELECT a.no, l.pid, l.low AS oid FROM locks l \
        JOIN pg_catalog.unnest($1) WITH ORDINALITY AS a (oid, no) ON @are_same@ \
        WHERE l.objsubid = 2 AND l.high = ANY ($4)), \
    others AS MATERIALIZED ( \
        SELECT m.no, m.pid, m.oid, j.job_id \
        FROM (SELECT DISTINCT m.no, m.pid, m.oid FROM met m) m \
        LEFT JOIN LATERAL ( \
            SELECT j.job_id, j.status FROM @schema@.job j JOIN locks k ON k.pid = m.pid AND k.objsubid = 1 \
                AND (k.high << 32) | k.low::pg_catalog.int8 IN ( \
                    pg_catalog.hashtextextended($5 || '/' || j.job_id, {KEY_SEED}), pg_catalog.hashtextextended($5 || '/' || j.job_id, {MARK_SEED})) \
            LIMIT 1) j ON true \
        WHERE j.status IS DISTINCT FROM 'done' \
          AND NOT EXISTS (SELECT FROM locks k WHERE k.pid = m.pid AND k.objsubid = 1 \
              AND (k.high << 32) | k.low::pg_catalog.int8 IN ( \
                  pg_catalog.hashtextextended($5 || '/' || $6, {KEY_SEED}), pg_catalog.hashtextextended($5 || '/' || $6, {MARK_SEED}))) \
        ORDER BY m.no, m.pid LIMIT 1), \
    gone AS MATERIALIZED ( \
        SELECT a.no FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($7), pg_catalog.unnest($8)) WITH ORDINALITY AS a (oid, schema, name, no) \
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                          WHERE c.oid = a.oid AND n.nspname = a.schema AND c.relname = a.name)) \
    SELECT o.no, o.pid, o.job_id, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, \
           pg_catalog.host((SELECT a.client_addr FROM pg_catalog.pg_stat_get_activity(o.pid) AS a)), NULL::pg_catalog.text \
    FROM others o \
    LEFT JOIN pg_catalog.pg_class c ON c.oid = o.oid LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    UNION ALL SELECT g.no, NULL, NULL, NULL, NULL, NULL, NULL FROM gone g WHERE NOT EXISTS (SELECT FROM others) \
    UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, pg_catalog.pg_advisory_lock_shared($3, a.key)::pg_catalog.text \
    FROM pg_catalog.unnest($2) AS a (key) WHERE NOT EXISTS (SELECT FROM others) AND NOT EXISTS (SELECT FROM gone)";

/// Takes back the notes of the class `$2` for tables `$1`.
const LEAVE_SQL: &str =
    "SELECT pg_catalog.pg_advisory_unlock_shared($2, a.key) FROM pg_catalog.unnest($1) AS a (key)";

impl Ledger {
    /// Holds these tables for as long as the session lives, beside other runs of the job. A table that is not
    /// there yet, with the OID 0, is held by nobody.
    ///
    /// # Errors
    /// Server with 55P03, which may pass, where another load is in the way; Table, where one of them has
    /// another name by now, or another table has its name; those of the session.
    pub async fn hold_tables(
        &self,
        session: &Session,
        job_id: &str,
        tables: &[(u32, &Relation)],
        hold: Hold,
    ) -> Result<()> {
        let tables: Vec<(u32, &Relation)> = tables.iter().filter(|(oid, _)| *oid != 0).copied().collect();
        if tables.is_empty() {
            return Ok(());
        }
        let (oids, keys): (Vec<u32>, Vec<i32>) =
            tables.iter().map(|(oid, _)| (*oid, oid.cast_signed())).unzip();
        let (schemas, names): (Vec<&str>, Vec<&str>) =
            tables.iter().map(|(_, relation)| (relation.schema.as_str(), relation.name.as_str())).unzip();
        let (class, classes) = (hold.class(), hold.in_the_way());
        let parameters: [(&(dyn ToSql + Sync), Type); 8] = [
            (&oids, Type::OID_ARRAY),
            (&keys, Type::INT4_ARRAY),
            (&class, Type::INT4),
            (&classes, Type::INT4_ARRAY),
            (&self.schema, Type::TEXT),
            (&job_id, Type::TEXT),
            (&schemas, Type::TEXT_ARRAY),
            (&names, Type::TEXT_ARRAY),
        ];
        let sql = HOLD_SQL
            .replace("{KEY_SEED}", &KEY_SEED.to_string())
            .replace("{MARK_SEED}", &MARK_SEED.to_string())
            .replace("@are_same@", &are_same_sql("l.low", "a.oid"))
            .replace("@schema@", &self.quoted);
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {NOTING_WITHIN_MS}; \
             SELECT pg_catalog.pg_advisory_xact_lock({NOTING_KEY})"
        );
        let client = session.client();
        // Sent together: one round trip.
        let noting = async {
            let (begun, asked, ended) = join3(
                client.batch_execute(&begin),
                client.query_typed(&sql, &parameters),
                client.batch_execute("COMMIT"),
            )
            .await;
            let fail = |error| self.error(&error, "looking who is at work on the tables");
            begun.map_err(|error| session_error(&error, "waiting for loads that begin"))?;
            let rows = asked.map_err(fail)?;
            ended.map_err(fail)?;
            Ok(rows)
        };
        let rows: Vec<Row> = session.or_roll_back(noting.await).await?;
        let other = rows.iter().find(|row| row.get::<_, Option<i64>>(0).is_some());
        other.map_or(Ok(()), |row| Err(in_the_way(row, &tables, hold)))
    }

    /// Ceases to take rows of these tables, which the session holds so, and goes on to bring some.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn take_no_more(&self, session: &Session, tables: &[u32]) -> Result<()> {
        let keys: Vec<i32> = tables.iter().filter(|oid| **oid != 0).map(|oid| oid.cast_signed()).collect();
        let sql =
            "SELECT pg_catalog.pg_advisory_lock_shared($2, a.key) FROM pg_catalog.unnest($1) AS a (key)";
        for (sql, class) in [(sql, Hold::Brings.class()), (LEAVE_SQL, Hold::Takes.class())] {
            let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                [(&keys, Type::INT4_ARRAY), (&class, Type::INT4)];
            session.rows(sql, &parameters, "letting other loads bring rows").await?;
        }
        Ok(())
    }
}

fn in_the_way(row: &Row, tables: &[(u32, &Relation)], hold: Hold) -> Error {
    let no = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or_default();
    let table = tables.get(no).map(|(_, relation)| relation.to_string()).unwrap_or_default();
    let Some(pid) = row.get::<_, Option<i32>>(1) else { return another(&table) };
    let found = row.get::<_, Option<String>>(3).zip(row.get(4));
    let other = found.map_or_else(|| table.clone(), |(schema, name)| Relation { schema, name }.to_string());
    let who =
        row.get::<_, Option<String>>(2).map_or_else(|| "another load".to_owned(), |job| format!("job {job}"));
    let from = row.get::<_, Option<String>>(5).map(|host| format!(" for {host}")).unwrap_or_default();
    let who = format!("{who} (server process {pid}{from})");
    let message = match hold {
        Hold::Takes => format!("rows of {table} cannot be taken out yet: {who} is at work on {other}"),
        Hold::Brings => format!(
            "no rows can come into {table} yet: {who} empties or replaces {other}, or deletes rows of it"
        ),
    };
    Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE).with_hint(
        "run the same command again when that load has ended; --retry-for says how long it is waited for",
    )
}

fn another(table: &str) -> Error {
    let message = format!(
        "{table} is another table by now: it was dropped, renamed or replaced since the load was planned"
    );
    Error::new(ErrorKind::Table, message)
        .with_sqlstate(ANOTHER_SQLSTATE)
        .with_hint("run the same command again: it loads into the table that is there now")
}
