//! The table that rows come into: what backs its key, and how its columns are compared.

use super::{DOING, borders};
use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_columns, quote_ident, quote_relation};
use crate::staging::is_new_table;
use crate::tree::tree_of;
use howdah_model::{Error, ErrorKind, Relation, RelationKind, Result, StagingPlan, TablePlan, sqlstate};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Below this, neighbours by their key do not lie side by side (`pg_stats.correlation`): keys drawn at random
/// have 0.01 at most, ten runs in order one behind the other 0.1. By reckoning.
const CORRELATION_MIN: f32 = 0.1;

/// Of the pages of a table so many come on each page of rows for which it pays to look its rows up by their
/// key, instead of joining it as a whole: measured, see `docs/decisions/2026-11-22-merge.md`.
const PAGES_FOR_LOOKUP: u64 = 2;
/// The same where neighbours by their key do not lie side by side.
const PAGES_FOR_SCATTERED_LOOKUP: u64 = 8;

/// The unique indexes of table `$1` on exactly the columns `$2` that ON CONFLICT can use, each column with
/// the operators (=, >=, <) of the index, its type, and the index's operator class and collation: no
/// predicate, no expression, not deferrable, of the columns' own collations; and beside no deferrable one of
/// the same columns, collations and operator classes: ON CONFLICT would mean that, too, and the server refuse
/// it.
const KEY_SQL: &str = "\
    SELECT i.indexrelid, a.attname::pg_catalog.text, \
           ARRAY(SELECT pg_catalog.format('OPERATOR(%I.%s)', n.nspname, o.oprname) \
                 FROM pg_catalog.pg_amop m \
                 JOIN pg_catalog.pg_operator o ON o.oid = m.amopopr \
                 JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace \
                 WHERE m.amopfamily = c.opcfamily AND m.amoplefttype = c.opcintype AND m.amoprighttype = c.opcintype \
                   AND m.amopstrategy IN (1, 3, 4) \
                 ORDER BY CASE m.amopstrategy WHEN 3 THEN 0 WHEN 4 THEN 1 ELSE 2 END), \
           pg_catalog.format_type(a.atttypid, a.atttypmod), pg_catalog.format('%I.%I', cn.nspname, c.opcname), \
           (SELECT pg_catalog.format('%I.%I', n.nspname, l.collname) FROM pg_catalog.pg_collation l \
            JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace WHERE l.oid = i.indcollation[k.no]) \
    FROM pg_catalog.pg_index i \
    CROSS JOIN LATERAL pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k (no) \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.no] \
    JOIN pg_catalog.pg_opclass c ON c.oid = i.indclass[k.no] \
    JOIN pg_catalog.pg_namespace cn ON cn.oid = c.opcnamespace \
    WHERE i.indrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND i.indisunique AND NOT i.indisexclusion AND i.indisvalid AND i.indimmediate \
      AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = pg_catalog.cardinality($2) \
      AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS x (no) \
                      JOIN pg_catalog.pg_attribute b ON b.attrelid = i.indrelid AND b.attnum = i.indkey[x.no] \
                      WHERE b.attname <> ALL ($2) OR i.indcollation[x.no] <> b.attcollation) \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_index d WHERE d.indrelid = i.indrelid AND d.indisunique AND NOT d.indimmediate \
          AND d.indisvalid AND d.indpred IS NULL AND d.indexprs IS NULL AND d.indnkeyatts = i.indnkeyatts \
          AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS x (no) \
                          JOIN pg_catalog.pg_opclass xc ON xc.oid = i.indclass[x.no] \
                          WHERE NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, d.indnkeyatts - 1) AS y (no) \
                                            JOIN pg_catalog.pg_opclass yc ON yc.oid = d.indclass[y.no] \
                                            WHERE d.indkey[y.no] = i.indkey[x.no] AND d.indcollation[y.no] = i.indcollation[x.no] \
                                              AND yc.opcfamily = xc.opcfamily AND yc.opcintype = xc.opcintype))) \
    ORDER BY i.indexrelid, k.no";

/// The columns `$2` of table `$1`: whether `IS DISTINCT FROM` tells all values apart that are stored
/// differently, as what type (one that `pg_catalog` has an equality for: it looks for the operator in all
/// schemas of the search path), whether the column is an identity column, one whose values cannot be given.
/// Then, of the table with its partitions, whether what rows say besides the key `$3` has to be unique, and
/// be it to be among those that a predicate takes; whether that, or what they refer to, is known only when
/// all are in, also where that is a table which this one is a partition of; whether a trigger or a policy may
/// keep rows from being inserted, make something else of those that are, keep rows from being changed, and
/// from being deleted, and make something else of those that are changed; and whether rows are deleted with
/// others that they refer to. Triggers that check foreign keys, and keys at the end, do none of this.
const COLUMNS_SQL: &str = concat!(
    tree_of!("pg_catalog.to_regclass($1)::pg_catalog.oid"),
    "SELECT a.attname::pg_catalog.text, \
           CASE WHEN NOT coalesce(l.collisdeterministic, true) THEN NULL WHEN t.oid IN (1043, 25) THEN '::pg_catalog.text' \
                WHEN t.oid IN (16, 17, 18, 19, 20, 21, 23, 26, 829, 869, 1082, 1083, 1114, 1184, 2950) THEN '' END, \
           a.attidentity <> '', a.attidentity = 'a', \
           EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = ANY (ARRAY(SELECT oid FROM tree)) AND (i.indisunique OR i.indisexclusion) \
               AND (i.indpred IS NOT NULL OR EXISTS (SELECT FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) AS k (no) WHERE NOT EXISTS ( \
                   SELECT FROM pg_catalog.pg_attribute b \
                   WHERE b.attrelid = i.indrelid AND b.attnum = k.no AND b.attname = ANY ($3))))), \
           EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.conrelid = ANY (ARRAY(SELECT oid FROM tree)) \
               AND ((f.condeferrable AND f.contype IN ('p', 'u', 'x')) OR f.confrelid = ANY (ARRAY( \
                   SELECT oid FROM tree UNION ALL SELECT p.relid::pg_catalog.oid FROM pg_catalog.pg_partition_ancestors(pg_catalog.to_regclass($1)) AS p (relid))))), \
           ARRAY(SELECT EXISTS (SELECT FROM pg_catalog.pg_class r WHERE r.oid = pg_catalog.to_regclass($1)::pg_catalog.oid AND r.relrowsecurity) \
                 OR EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = ANY (ARRAY(SELECT oid FROM tree)) \
                     AND g.tgtype & fires.at = fires.at AND g.tgenabled <> 'D' \
                     AND NOT (g.tgisinternal AND g.tgconstraint <> 0::pg_catalog.oid)) \
                 FROM (VALUES (1, 7::pg_catalog.int2), (2, 4::pg_catalog.int2), (3, 19::pg_catalog.int2), (4, 11::pg_catalog.int2), (5, 16::pg_catalog.int2)) \
                     AS fires (no, at) ORDER BY fires.no), \
           EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.contype = 'f' AND f.confdeltype = 'c' AND f.conrelid = ANY (ARRAY(SELECT oid FROM tree))) \
    FROM pg_catalog.unnest($2) WITH ORDINALITY AS wanted (name, no) \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = wanted.name \
        AND NOT a.attisdropped \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation \
    ORDER BY wanted.no"
);

/// The first of the columns `$2` of table `$1` that has another type or collation than in the staging table
/// `$3`: its name, and both types. A longer varchar, and numeric with more digits before the point, take
/// every value as it is.
const CHANGED_SQL: &str = "\
    SELECT a.attname::pg_catalog.text, pg_catalog.concat(pg_catalog.format_type(s.atttypid, s.atttypmod), \
               ' COLLATE ' || CASE WHEN a.atttypid = s.atttypid AND s.attcollation <> a.attcollation THEN pg_catalog.quote_ident(sc.collname::pg_catalog.text) END), \
           pg_catalog.concat(pg_catalog.format_type(a.atttypid, a.atttypmod), \
               ' COLLATE ' || CASE WHEN a.atttypid = s.atttypid AND s.attcollation <> a.attcollation THEN pg_catalog.quote_ident(ac.collname::pg_catalog.text) END) \
    FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_attribute s ON s.attrelid = pg_catalog.to_regclass($3)::pg_catalog.oid AND s.attname = a.attname \
        AND NOT s.attisdropped \
    LEFT JOIN pg_catalog.pg_collation ac ON ac.oid = a.attcollation \
    LEFT JOIN pg_catalog.pg_collation sc ON sc.oid = s.attcollation \
    WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = ANY ($2) AND NOT a.attisdropped \
      AND (a.atttypid <> s.atttypid OR a.attcollation <> s.attcollation OR (a.atttypmod <> s.atttypmod AND NOT CASE a.atttypid \
               WHEN 1043::pg_catalog.oid THEN s.atttypmod > 0 AND (a.atttypmod > s.atttypmod OR a.atttypmod = -1) \
               WHEN 1700::pg_catalog.oid THEN s.atttypmod > 0 AND a.atttypmod > s.atttypmod AND (a.atttypmod - s.atttypmod) % 65536 = 0 \
               ELSE false END)) \
    ORDER BY a.attnum LIMIT 1";

/// Pages of a staging table that tell how its keys are spread: some 20,000 rows.
const SAMPLE_PAGES: u64 = 256;

/// A column of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its name, unquoted.
    pub name: String,
    /// Operators of the index, ready for SQL: =, >= and <.
    pub(super) operators: [String; 3],
    /// Its type with its length: a `character` without one has a single letter.
    pub(super) type_name: String,
    /// The index's operator class for it, ready for SQL.
    pub(super) operator_class: String,
    /// The index's collation for it, ready for SQL; `None` where the type has none.
    pub(super) collation: Option<String>,
}

impl KeyColumn {
    /// ` COLLATE x`, where the type has collations.
    pub(super) fn collate(&self) -> String {
        self.collation.as_ref().map(|name| format!(" COLLATE {name}")).unwrap_or_default()
    }
}

/// A column that the files fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Values that are stored differently are distinct, with this cast behind them.
    pub(super) plain_as: Option<String>,
    /// GENERATED ALWAYS AS IDENTITY.
    pub(super) always: bool,
}

/// A table and the staging table whose rows come into it.
#[derive(Debug, Clone)]
pub struct Into {
    /// The table.
    pub relation: Relation,
    /// Where the rows wait.
    pub staging: StagingPlan,
    /// The columns of the key; none where rows are not told apart.
    pub key: Vec<KeyColumn>,
    pub(super) columns: Vec<Column>,
    /// Some column is an identity column, whose values the file brings.
    pub(super) overriding: bool,
    pub(super) partitioned: bool,
    /// A trigger may keep rows from being inserted, or a policy may hide rows of the same key.
    pub(super) may_drop: bool,
    /// A trigger may make something else of rows that are inserted, or of others when they are.
    pub(super) may_remake: bool,
    /// What rows say besides their key has to be unique, at least among some, or in a partition.
    pub is_unique_besides: bool,
    /// Rows refer to each other, or may break a constraint until all are in: they come in one transaction.
    pub comes_together: bool,
    /// A trigger or a policy may keep rows from being changed.
    pub(super) may_hold_back: bool,
    /// A trigger may make something else of rows that are changed, or of others when they are.
    pub(super) may_change_again: bool,
    /// The same of rows that are deleted.
    pub(super) may_keep: bool,
    /// By ON DELETE CASCADE of a foreign key rows are deleted with those that they refer to.
    pub(super) goes_along: bool,
}

impl Into {
    /// Reads what has to be known of the plan's table.
    ///
    /// # Errors
    /// Table and Columns, for a key that no unique index backs; those of the session.
    pub async fn read(
        session: &Session,
        plan: &TablePlan,
        staging: &StagingPlan,
        key: &[String],
    ) -> Result<Into> {
        let fail = |error| session_error(&error, "reading the table's key");
        let relation = &plan.table.relation;
        let name = quote_relation(relation);
        let fields: Vec<&String> = plan.fields.iter().flatten().collect();
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&name, Type::TEXT), (&fields, Type::TEXT_ARRAY), (&key, Type::TEXT_ARRAY)];
        let rows = session.client().query_typed(COLUMNS_SQL, &parameters).await.map_err(fail)?;
        if let Some(missing) = key.iter().find(|column| !fields.contains(column)) {
            let message = format!("no field of the files fills {missing}, which is part of the key");
            return Err(Error::new(ErrorKind::Columns, message));
        }
        let key = if key.is_empty() { Vec::new() } else { unique_key(session, relation, key).await? };
        let fires = rows.first().map_or_else(Vec::new, |row| row.get::<_, Vec<bool>>(6));
        let fires = |no: usize| fires.get(no) == Some(&true);
        let column = |row: &Row| Column { name: row.get(0), plain_as: row.get(1), always: row.get(3) };
        Ok(Into {
            relation: relation.clone(),
            staging: staging.clone(),
            columns: rows.iter().map(column).collect(),
            overriding: rows.iter().any(|row| row.get(2)),
            key,
            is_unique_besides: rows.first().is_some_and(|row| row.get(4)),
            comes_together: rows.first().is_some_and(|row| row.get(5)),
            may_drop: fires(0),
            may_remake: fires(1),
            may_hold_back: fires(2),
            may_change_again: fires(4),
            may_keep: fires(3),
            goes_along: rows.first().is_some_and(|row| row.get(7)),
            partitioned: plan.table.kind == RelationKind::Partitioned,
        })
    }

    /// Rows that have waited may meet another table than the one that was planned for: a column that somebody
    /// has renamed or dropped meanwhile would be left empty, and values cast to what its type has become.
    ///
    /// # Errors
    /// Server, where a column is not there that the files fill; Table, where it has another type; those of
    /// the session.
    pub async fn expect_columns(&self, session: &Session, plan: &TablePlan) -> Result<()> {
        let is_there = |name: &&String| self.columns.iter().any(|column| column.name == **name);
        let Some(missing) = plan.fields.iter().flatten().find(|name| !is_there(name)) else {
            return match is_new_table(&self.staging) {
                // It is compared with the old one as a whole.
                true => Ok(()),
                false => self.expect_same_types(session).await,
            };
        };
        let message = format!("column {missing} of {} is not there any more", self.relation);
        Err(Error::new(ErrorKind::Server, message)
            .with_sqlstate(sqlstate::UNDEFINED_COLUMN)
            .with_hint("somebody has renamed or dropped it: put it back and run the same command again"))
    }

    /// See [`expect_same_types`]. Behind a statement that has locked the table, nobody changes them until the
    /// transaction ends.
    pub(super) async fn expect_same_types(&self, session: &Session) -> Result<()> {
        expect_same_types(session, &self.relation, &self.staging.relation, &self.names()).await
    }

    /// Columns that are not part of the key.
    pub(super) fn others(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| self.key.iter().all(|key| key.name != column.name))
    }

    /// A column that merge sets in rows that are there.
    pub fn changed_column(&self) -> Option<&str> {
        self.others().map(|column| column.name.as_str()).next()
    }

    /// A column that no UPDATE may set.
    pub fn fixed_column(&self) -> Option<&str> {
        self.others().find(|column| column.always).map(|column| column.name.as_str())
    }

    /// Pages of the staging table, which its parts are cut by.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn staged_pages(&self, session: &Session) -> Result<u64> {
        let sql = "SELECT pg_catalog.pg_relation_size(pg_catalog.to_regclass($1)) \
                   / pg_catalog.current_setting('block_size')::pg_catalog.int8";
        self.pages(session, sql, &self.staging.relation).await
    }

    async fn pages(&self, session: &Session, sql: &str, relation: &Relation) -> Result<u64> {
        let rows = session
            .rows(sql, &[(&quote_relation(relation), Type::TEXT)], "reading the size of a table")
            .await?;
        Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map_or(0, i64::unsigned_abs))
    }

    /// Pages of the table, with those of its partitions.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn table_pages(&self, session: &Session) -> Result<u64> {
        let sql = concat!(
            tree_of!("pg_catalog.to_regclass($1)::pg_catalog.oid"),
            "SELECT (pg_catalog.sum(pg_catalog.pg_relation_size(oid)) \
                     / pg_catalog.current_setting('block_size')::pg_catalog.int8)::pg_catalog.int8 FROM tree"
        );
        self.pages(session, sql, &self.relation).await
    }

    /// Rows whose keys are neighbours lie all over the table, as the statistics of the largest of its
    /// partitions say. Not known is no.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn is_scattered(&self, session: &Session) -> Result<bool> {
        let Some(first) = self.key.first() else { return Ok(false) };
        let sql = concat!(
            tree_of!("pg_catalog.to_regclass($1)::pg_catalog.oid"),
            "SELECT s.correlation FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_catalog.pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = $2 \
             WHERE s.correlation IS NOT NULL ORDER BY c.relpages DESC LIMIT 1"
        );
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&quote_relation(&self.relation), Type::TEXT), (&first.name, Type::TEXT)];
        let rows = session.rows(sql, &parameters, "reading the statistics of a key").await?;
        Ok(rows.first().is_some_and(|row| row.get::<_, f32>(0).abs() < CORRELATION_MIN))
    }

    /// On so few pages rows wait for a table of so many that its rows are looked up by their key. Not in a
    /// table with partitions: most of them are spared by the range of a part.
    pub fn is_looked_up(&self, staged_pages: u64, table_pages: u64, is_scattered: bool) -> bool {
        let pages_for_lookup = if is_scattered { PAGES_FOR_SCATTERED_LOOKUP } else { PAGES_FOR_LOOKUP };
        !self.key.is_empty()
            && !self.partitioned
            && table_pages >= staged_pages.saturating_mul(pages_for_lookup)
    }

    /// Values of the key's first column by which the rows are cut into so many parts of about the same size,
    /// as text, in the order of the operators by which they are cut. They are found in a sample by the first
    /// run of a job and kept beside the staging table ([`super::borders`]): all runs cut alike. None where
    /// rows are not told apart. A database of SQL_ASCII holds bytes that are no text to the client: there
    /// only values of ASCII are borders, and the parts may be fewer; in the collation C, since regular
    /// expressions have nothing to do with a nondeterministic one.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn borders(&self, session: &Session, parts: u32) -> Result<Vec<String>> {
        let Some(first) = self.key.first().filter(|_| parts > 1) else { return Ok(Vec::new()) };
        let pages = self.staged_pages(session).await?.max(1);
        let percent = (100 * SAMPLE_PAGES).div_ceil(pages).min(100);
        let shares: Vec<String> =
            (1..parts).map(|no| (f64::from(no) / f64::from(parts)).to_string()).collect();
        let column = quote_ident(&first.name);
        let sql = format!(
            "SELECT pg_catalog.row_number() OVER (ORDER BY shares.share)::pg_catalog.int4 AS no, s.border FROM pg_catalog.unnest('{{{}}}'::pg_catalog.float8[]) shares(share) JOIN ( \
                 SELECT {column}::pg_catalog.text COLLATE pg_catalog.\"C\" AS border, pg_catalog.row_number() OVER (ORDER BY {column} USING {}) AS no, \
                        pg_catalog.count(*) OVER () AS rows \
                 FROM {} TABLESAMPLE SYSTEM ({percent}) REPEATABLE (1) WHERE {column} IS NOT NULL) s \
             ON s.no = pg_catalog.ceil(shares.share * s.rows::pg_catalog.float8)::pg_catalog.int8 \
             WHERE pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.<>) 'SQL_ASCII' \
                OR s.border OPERATOR(pg_catalog.!~) '[^ -~]'",
            shares.join(", "),
            first.operators[2],
            quote_relation(&self.staging.relation)
        );
        borders::kept_or_told(session, &self.staging.relation, &sql).await
    }

    /// Tells the planner how many rows the staging table has and how their keys are spread. Of the other
    /// columns it need not know: rows are found by their keys alone.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn analyze_key(&self, session: &Session) -> Result<()> {
        let (staging, columns) = (quote_relation(&self.staging.relation), quote_columns(&self.key_names()));
        let analyzed = session.client().batch_execute(&format!("ANALYZE {staging} ({columns})")).await;
        analyzed.map_err(|error| session_error(&error, DOING))
    }

    /// Rows of the staging table.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn staged_rows(&self, session: &Session) -> Result<u64> {
        let sql = format!("SELECT pg_catalog.count(*) FROM {}", quote_relation(&self.staging.relation));
        let rows = session.rows(&sql, &[], "counting the rows of the staging table").await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
    }
}

/// Values were read as what the columns were when the staging table was made: cast to another type, `00742`,
/// which waits as the number 742, would come out otherwise than the file has it.
///
/// # Errors
/// Table, for a column that has got another type or collation since; those of the session.
pub(crate) async fn expect_same_types(
    session: &Session,
    relation: &Relation,
    staging: &Relation,
    columns: &[String],
) -> Result<()> {
    let (table, waiting) = (quote_relation(relation), quote_relation(staging));
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&table, Type::TEXT), (&columns, Type::TEXT_ARRAY), (&waiting, Type::TEXT)];
    let rows = session.rows(CHANGED_SQL, &parameters, "reading the table's columns").await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let [column, was, is] = [0, 1, 2].map(|at| row.get::<_, String>(at));
    let message = format!(
        "rows wait for {relation} whose column {column} was read as {was}, and it is {is} by now: a cast could change values"
    );
    Err(Error::new(ErrorKind::Table, message).with_sqlstate(sqlstate::DATATYPE_MISMATCH).with_hint(
        "give the column the type back that it had, or let howdah restore drop the rows that wait; then run the same command again",
    ))
}

async fn unique_key(session: &Session, relation: &Relation, key: &[String]) -> Result<Vec<KeyColumn>> {
    let name = quote_relation(relation);
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&key, Type::TEXT_ARRAY)];
    let rows = session.rows(KEY_SQL, &parameters, "reading the table's key").await?;
    let index = rows.first().map(|row| row.get::<_, u32>(0));
    let of_index = rows.iter().filter(|row| Some(row.get::<_, u32>(0)) == index);
    let found: Vec<KeyColumn> = of_index
        .map(|row| KeyColumn {
            name: row.get(1),
            operators: row.get::<_, Vec<String>>(2).try_into().unwrap_or_default(),
            type_name: row.get(3),
            operator_class: row.get(4),
            collation: row.get(5),
        })
        .collect();
    match found.is_empty() {
        true => Err(no_unique_key(session, relation, key).await?),
        false => Ok(found),
    }
}

/// Whether table `$1` is partitioned, of which the server makes no index CONCURRENTLY; whether its key of the
/// columns `$2` is one WITHOUT OVERLAPS (PostgreSQL 18), by whose index no ON CONFLICT goes; the name of a
/// deferrable constraint on them, which no index beside it would help, and its definition without that.
const NO_KEY_SQL: &str = "\
    SELECT c.relkind = 'p', EXISTS ( \
        SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisexclusion \
          AND i.indnkeyatts = pg_catalog.cardinality($2) AND NOT EXISTS ( \
              SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS x (no) \
              JOIN pg_catalog.pg_attribute b ON b.attrelid = i.indrelid AND b.attnum = i.indkey[x.no] \
              WHERE b.attname <> ALL ($2))), d.conname::pg_catalog.text, d.at_once \
    FROM pg_catalog.pg_class c \
    LEFT JOIN LATERAL ( \
        SELECT f.conname, pg_catalog.regexp_replace(pg_catalog.pg_get_constraintdef(f.oid), ' DEFERRABLE( INITIALLY DEFERRED)?$', '') AS at_once \
        FROM pg_catalog.pg_constraint f \
        WHERE f.conrelid = c.oid AND f.contype IN ('p', 'u') AND f.condeferrable \
          AND pg_catalog.cardinality(f.conkey) = pg_catalog.cardinality($2) AND NOT EXISTS ( \
              SELECT FROM pg_catalog.pg_attribute b WHERE b.attrelid = c.oid AND b.attnum = ANY (f.conkey) AND b.attname <> ALL ($2)) \
        ORDER BY f.conname LIMIT 1) AS d ON true \
    WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";

/// That no unique index backs this key, and what helps.
async fn no_unique_key(session: &Session, relation: &Relation, key: &[String]) -> Result<Error> {
    let name = quote_relation(relation);
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&key, Type::TEXT_ARRAY)];
    let rows = session.rows(NO_KEY_SQL, &parameters, "reading the table's key").await?;
    let (is_partitioned, is_temporal) = rows.first().map_or((false, false), |row| (row.get(0), row.get(1)));
    let columns: Vec<String> = key.iter().map(|column| quote_ident(column)).collect();
    let columns = columns.join(", ");
    let message = format!("no unique index of {relation} is on ({columns}) alone");
    let deferrable = rows
        .first()
        .and_then(|row| Some((row.get::<_, Option<String>>(2)?, row.get::<_, Option<String>>(3)?)));
    if let Some((constraint, at_once)) = deferrable.filter(|_| !is_temporal) {
        let message = format!(
            "{message} by which rows can be told apart: {constraint} is DEFERRABLE, and ON CONFLICT goes by no index on the same \
             columns beside it"
        );
        let quoted = quote_ident(&constraint);
        let hint = format!(
            "ALTER TABLE {name} DROP CONSTRAINT {quoted}, ADD CONSTRAINT {quoted} {at_once} makes it one that is checked at once"
        );
        return Ok(Error::new(ErrorKind::Table, message).with_hint(hint));
    }
    let (why, besides) = match is_temporal {
        true => (
            "its key WITHOUT OVERLAPS is none that ON CONFLICT can go by",
            "; its key stays in force beside it",
        ),
        false => (
            "without one, other sessions could insert the same key meanwhile",
            "; one with a predicate, of expressions, of another collation, or that is deferrable does not do",
        ),
    };
    let how = if is_partitioned { "" } else { "CONCURRENTLY " };
    let hint = format!(
        "CREATE UNIQUE INDEX {how}ON {name} ({columns}){besides}; one that another load has dropped comes back at its end (howdah status)"
    );
    Ok(Error::new(ErrorKind::Table, format!("{message}: {why}")).with_hint(hint))
}
