//! Tables that are the same to loads, whatever a plan has called them: one that was given another name or
//! schema since, and a partition and the tables that it is a partition of, whose rows are its own. The OID in
//! the plan tells, where the ledger has not come from another database.

use super::Ledger;
use super::origin::here_sql;
use crate::session::Session;
use crate::tree::BY_NAME_SQL;
use howdah_model::Result;
use std::collections::BTreeSet;
use tokio_postgres::types::{ToSql, Type};

/// Two tables, by their OIDs.
const ARE_SAME_SQL: &str = "\
    (@one@ = @other@ \
     OR @one@ IN (SELECT a.relid::pg_catalog.oid FROM pg_catalog.pg_partition_ancestors(@other@::pg_catalog.regclass) AS a) \
     OR @other@ IN (SELECT a.relid::pg_catalog.oid FROM pg_catalog.pg_partition_ancestors(@one@::pg_catalog.regclass) AS a))";

/// Tables of plans with their OIDs, behind WITH, of the jobs that `named` says have loaded a file into one of
/// another name. Each plan is read once, however many files it has.
const TABLES_SQL: &str = "\
    tables AS MATERIALIZED ( \
        SELECT j.job_id, (t #>> '{table,oid}'::pg_catalog.text[])::pg_catalog.int8::pg_catalog.oid AS oid, \
               pg_catalog.format('%s.%s', t #>> '{table,relation,schema}'::pg_catalog.text[], t #>> '{table,relation,name}'::pg_catalog.text[]) AS name \
        FROM @schema@.job j, pg_catalog.jsonb_array_elements(j.plan -> 'tables'::pg_catalog.text) AS t \
        WHERE @is_here@ AND j.job_id IN (SELECT n.job_id FROM named n WHERE n.written <> n.target))";

/// Which of those that `named` has are the table of OID `oid` nevertheless.
const SAME_SQL: &str = "\
    same AS MATERIALIZED ( \
        SELECT n.job_id, n.written, n.oid \
        FROM (SELECT DISTINCT n.job_id, n.written, n.oid FROM named n WHERE n.written <> n.target AND n.oid <> 0::pg_catalog.oid) n \
        JOIN tables t ON t.job_id = n.job_id AND t.name = n.written \
        WHERE t.oid <> 0::pg_catalog.oid AND @are_same@)";

/// The condition on a row `n` of `named`.
pub(super) const IS_SAME_SQL: &str = "(n.written = n.target OR (n.job_id, n.written, n.oid) IN (SELECT s.job_id, s.written, s.oid FROM same s))";

/// What stands behind WITH for [`IS_SAME_SQL`]: `named` comes before, with the columns `job_id`, `written`
/// (the table as the job wrote it), `target` (the table that is asked for) and `oid` (its OID, or 0).
pub(super) fn same_sql() -> String {
    let tables = TABLES_SQL.replace("@is_here@", &here_sql("j"));
    format!("{tables}, {}", SAME_SQL.replace("@are_same@", &are_same_sql("t.oid", "n.oid")))
}

/// Whether the tables of these OIDs are the same, or one is a partition of the other on any level.
pub(super) fn are_same_sql(one: &str, other: &str) -> String {
    ARE_SAME_SQL.replace("@one@", one).replace("@other@", other)
}

/// Two different ones of these tables of which one is a partition of the other on any level, the first of
/// `taken`, by their OIDs.
///
/// # Errors
/// Those of the session.
pub async fn kin_among(session: &Session, taken: &[u32], all: &[u32]) -> Result<Option<(u32, u32)>> {
    let sql = format!(
        "SELECT a.oid, b.oid FROM pg_catalog.unnest($1) AS a (oid), pg_catalog.unnest($2) AS b (oid) \
         WHERE a.oid <> b.oid AND {} LIMIT 1",
        are_same_sql("a.oid", "b.oid")
    );
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&taken, Type::OID_ARRAY), (&all, Type::OID_ARRAY)];
    let rows = session.rows(&sql, &parameters, "looking for partitions among the tables").await?;
    Ok(rows.first().map(|row| (row.get(0), row.get(1))))
}

/// Behind [`BY_NAME_SQL`](crate::tree::BY_NAME_SQL): the table (whose rows are all gone with what is
/// `whole`), those that it is a partition of, and its partitions, with their names in the ledger's files and
/// steps.
const KIN_SQL: &str = "\
    , kin AS MATERIALIZED ( \
        SELECT k.oid, k.whole, pg_catalog.format('%s.%s', n.nspname, c.relname) AS written, \
               CASE WHEN pg_catalog.strpos(pg_catalog.concat(n.nspname, c.relname), '.') = 0 THEN pg_catalog.format('%s.%s', n.nspname, c.relname) \
                    ELSE pg_catalog.format('\"%s\".\"%s\"', pg_catalog.replace(n.nspname::pg_catalog.text, '\"', '\"\"'), \
                                           pg_catalog.replace(c.relname::pg_catalog.text, '\"', '\"\"')) END AS target \
        FROM (SELECT tree.oid, pg_catalog.bool_or(tree.level = 0) AS whole FROM tree GROUP BY tree.oid \
              UNION ALL SELECT a.relid::pg_catalog.oid, true \
              FROM tree, pg_catalog.pg_partition_ancestors(tree.oid::pg_catalog.regclass) AS a \
              WHERE tree.level = 0 AND a.relid::pg_catalog.oid <> tree.oid) k \
        JOIN pg_catalog.pg_class c ON c.oid = k.oid \
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace)";

/// Steps that have taken rows out of the table or one of its `kin` since `@since@`, whatever its name was
/// then. Plans are unfolded of jobs with such steps alone, each once: of a thousand jobs with a hundred
/// tables that took the server half a second (PostgreSQL 18, on a busy machine), once for each table of a
/// load.
const TAKEN_SQL: &str = "\
    , later AS MATERIALIZED ( \
        SELECT s.job_id, s.target, s.name, s.done_at, s.deleted FROM @schema@.step s \
        WHERE (s.name IN ('truncate', 'replace') OR s.name = 'delete' AND s.deleted > 0) AND s.done_at > (@since@)), \
    written AS MATERIALIZED ( \
        SELECT o.job_id, \
               pg_catalog.format('%s.%s', t #>> '{table,relation,schema}'::pg_catalog.text[], t #>> '{table,relation,name}'::pg_catalog.text[]) AS target, \
               (t #>> '{table,oid}'::pg_catalog.text[])::pg_catalog.int8::pg_catalog.oid AS oid \
        FROM (SELECT o.job_id, o.plan FROM @schema@.job o \
              WHERE @is_here@ AND o.job_id IN (SELECT l.job_id FROM later l) OFFSET 0) o, \
             pg_catalog.jsonb_array_elements(o.plan -> 'tables'::pg_catalog.text) AS t), \
    taken AS MATERIALIZED ( \
        SELECT l.job_id, l.name, l.done_at, l.deleted, k.whole \
        FROM later l JOIN kin k ON k.target = l.target \
            OR (l.job_id, l.target, k.oid) IN (SELECT w.job_id, w.target, w.oid FROM written w))";

/// The statement that asks for them as `kin`, of the table of schema `$1` and name `$2`.
pub(super) fn over_kin(sql: &str) -> String {
    format!("{BY_NAME_SQL}{KIN_SQL}{sql}")
}

/// The same with the steps that have taken rows out of them as `taken`. `came` are further parts of its WITH,
/// of which the earliest time in question can be asked by `since`.
pub(super) fn over_taken(came: &str, since: &str, sql: &str) -> String {
    let taken = TAKEN_SQL.replace("@is_here@", &here_sql("o")).replace("@since@", since);
    over_kin(&format!("{came}{taken}{sql}"))
}

/// Jobs that did not end, with the name that their table `$1` has now, where that is another one.
const RENAMED_SQL: &str = "\
    SELECT w, j.job_id, pg_catalog.format('%s.%s', n.nspname, c.relname) \
    FROM @schema@.job j, pg_catalog.jsonb_array_elements(j.plan -> 'tables'::pg_catalog.text) AS t \
    CROSS JOIN LATERAL pg_catalog.format('%s.%s', t #>> '{table,relation,schema}'::pg_catalog.text[], t #>> '{table,relation,name}'::pg_catalog.text[]) AS w \
    JOIN pg_catalog.pg_class c ON c.oid = (t #>> '{table,oid}'::pg_catalog.text[])::pg_catalog.int8::pg_catalog.oid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE @is_here@ AND j.status <> 'done' \
      AND w = ANY ($1) AND pg_catalog.format('%s.%s', n.nspname, c.relname) <> w \
      AND EXISTS (SELECT FROM @schema@.chunk s WHERE s.job_id = j.job_id AND s.rows > 0) \
    ORDER BY j.started_at DESC";

/// Jobs that have stored rows in another table of this name. One that replaces its table makes it anew
/// itself.
const MADE_ANEW_SQL: &str = "\
    SELECT DISTINCT j.job_id \
    FROM @schema@.job j, pg_catalog.jsonb_array_elements(j.plan -> 'tables'::pg_catalog.text) AS t \
    WHERE @is_here@ AND j.job_id = ANY ($1) AND j.plan #>> '{job,arrival,mode}'::pg_catalog.text[] IS DISTINCT FROM 'replace' \
      AND pg_catalog.format('%s.%s', t #>> '{table,relation,schema}'::pg_catalog.text[], t #>> '{table,relation,name}'::pg_catalog.text[]) = $2 \
      AND (t #>> '{table,oid}'::pg_catalog.text[])::pg_catalog.int8::pg_catalog.oid NOT IN (0::pg_catalog.oid, $3)";

impl Ledger {
    /// Those of these jobs whose `table`, `schema.name`, was another one than that of this OID. None where
    /// the ledger has come from another database, since no OID tells then.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn made_anew(
        &self,
        session: &Session,
        (table, oid): (&str, u32),
        jobs: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>> {
        let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&jobs, Type::TEXT_ARRAY), (&table, Type::TEXT), (&oid, Type::OID)];
        let sql = MADE_ANEW_SQL.replace("@is_here@", &here_sql("j")).replace("@schema@", &self.quoted);
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's plans").await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Those of these `tables`, `schema.name`, that have another name by now, each with a job that did not
    /// end and has stored rows in it, and that name; the latest first. One round trip.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn renamed(
        &self,
        session: &Session,
        tables: &[String],
    ) -> Result<Vec<(String, String, String)>> {
        if self.is_absent(session) {
            return Ok(Vec::new());
        }
        let sql = RENAMED_SQL.replace("@is_here@", &here_sql("j")).replace("@schema@", &self.quoted);
        let tables: [(&(dyn ToSql + Sync), Type); 1] = [(&tables, Type::TEXT_ARRAY)];
        let rows = self.ask(session, &sql, &tables, "reading the ledger's plans").await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }

    /// Those of these tables, each with the job that wrote it so, that are the `table` of this OID under
    /// another name, a partition of it, or what it is a partition of. One round trip, if there are any.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn same_tables(
        &self,
        session: &Session,
        table: &str,
        oid: u32,
        others: &BTreeSet<(String, String)>,
    ) -> Result<BTreeSet<(String, String)>> {
        if others.is_empty() {
            return Ok(BTreeSet::new());
        }
        let (jobs, written): (Vec<&str>, Vec<&str>) =
            others.iter().map(|(job_id, written)| (job_id.as_str(), written.as_str())).unzip();
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&jobs, Type::TEXT_ARRAY),
            (&written, Type::TEXT_ARRAY),
            (&table, Type::TEXT),
            (&oid, Type::OID),
        ];
        let sql = format!(
            "WITH named AS MATERIALIZED ( \
                 SELECT o.job_id, o.written, $3 AS target, $4 AS oid \
                 FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS o (job_id, written)), {} \
             SELECT s.job_id, s.written FROM same s",
            same_sql().replace("@schema@", &self.quoted)
        );
        let rows = self.ask(session, &sql, &parameters, "reading the ledger's plans").await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }
}
