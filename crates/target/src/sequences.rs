//! Sequences of columns whose values the files bring: moved past the largest value, so that the next
//! `nextval` does not meet a row that is there.
//!
//! A sequence is moved forward only, under a lock that `nextval` waits for: between reading it and moving it,
//! nobody takes values that would then be given out twice. Only its owner may take that lock; who may merely
//! UPDATE it moves it without. What the column has reached is asked before: rows of this load are all in, and
//! whatever others store meanwhile they have numbered by `nextval`, which the lock keeps.

use crate::error::session_error;
use crate::numbers::lock_sql;
use crate::session::Session;
use crate::sql::{quote_columns, quote_ident, quote_literal, quote_relation};
use crate::tree::{bytes_of, tree_of};
use howdah_model::{Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// How long the lock of a sequence is waited for: a transaction that calls `nextval` keeps it to its end.
const LOCK_TIMEOUT: &str = "5s";

/// A table up to this size is read for its largest value where no index tells it: some seconds, on any
/// storage.
pub const SCAN_BYTES_MAX: i64 = 4 << 30;

/// Sequences that fill columns of `$1` named in `$2`: those of identity columns (an internal dependency),
/// those that a default expression calls, of the column or of its domain (the expression depends on them),
/// and those that a column of numbers owns, from which programs take values themselves. Identity columns of
/// partitions (since PostgreSQL 17) draw from the sequence of their topmost table. A column may hold less
/// than its sequence can give.
const OWNED_SQL: &str = concat!(
    "SELECT a.attname::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, s.seqincrement, \
           greatest(s.seqmin, holds.least), least(s.seqmax, holds.most), pg_catalog.pg_has_role(c.relowner, 'USAGE') AS owner, \
           EXISTS (SELECT FROM pg_catalog.pg_index i \
                   JOIN pg_catalog.pg_class ic ON ic.oid = i.indexrelid \
                   JOIN pg_catalog.pg_am am ON am.oid = ic.relam AND am.amname = 'btree' \
                   WHERE i.indrelid = fills.relation AND i.indkey[0] = fills.attnum AND i.indpred IS NULL \
                     AND i.indisvalid) \
           OR (",
    tree_of!("fills.relation"),
    "SELECT pg_catalog.sum(CASE WHEN r.relkind = 'p' THEN 0 ELSE ",
    bytes_of!("r"),
    " END) FROM tree JOIN pg_catalog.pg_class r ON r.oid = tree.oid) <= $3::pg_catalog.numeric AS quick, \
           s.seqstart, pg_catalog.row_security_active(fills.relation), s.seqcycle \
    FROM ( \
        SELECT d.refobjid AS relation, d.refobjsubid::pg_catalog.int2 AS attnum, d.objid AS sequence \
        FROM pg_catalog.pg_depend d \
        WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
          AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid AND d.deptype = 'i' \
        UNION \
        SELECT a.attrelid, a.attnum, d.objid \
        FROM pg_catalog.pg_attribute a \
        JOIN pg_catalog.pg_attribute top ON top.attname = a.attname \
            AND top.attrelid = pg_catalog.pg_partition_root(pg_catalog.to_regclass($1))::pg_catalog.oid \
        JOIN pg_catalog.pg_depend d ON d.refobjid = top.attrelid AND d.refobjsubid = top.attnum AND d.deptype = 'i' \
            AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
        WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attidentity <> '' \
        UNION \
        SELECT e.adrelid, e.adnum, d.refobjid \
        FROM pg_catalog.pg_attrdef e \
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid AND d.objid = e.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
        UNION \
        SELECT a.attrelid, a.attnum, d.objid \
        FROM pg_catalog.pg_attribute a \
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid AND t.typcategory = 'N' \
        JOIN pg_catalog.pg_depend d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'a' \
            AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
        UNION \
        SELECT a.attrelid, a.attnum, d.refobjid \
        FROM pg_catalog.pg_attribute a \
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid AND d.objid = a.atttypid \
            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
        WHERE NOT a.atthasdef) AS fills \
    JOIN pg_catalog.pg_sequence s ON s.seqrelid = fills.sequence \
    JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_attribute a ON a.attrelid = fills.relation AND a.attnum = fills.attnum \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    LEFT JOIN (VALUES ('pg_catalog.int2'::pg_catalog.regtype::pg_catalog.oid, '-32768'::pg_catalog.int8, '32767'::pg_catalog.int8), \
                      ('pg_catalog.int4'::pg_catalog.regtype::pg_catalog.oid, '-2147483648'::pg_catalog.int8, \
                       '2147483647'::pg_catalog.int8)) AS holds (type, least, most) \
        ON holds.type = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END \
    WHERE fills.relation = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = ANY ($2) \
    ORDER BY a.attnum, c.oid"
);

/// Defaults of the columns of `$1` named in `$2`, or of their domains, that ask a sequence for a value.
/// Nothing depends on a sequence whose name is text.
const LATE_SQL: &str = "\
    SELECT a.attname::pg_catalog.text, given.expression \
    FROM pg_catalog.pg_attribute a \
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    LEFT JOIN pg_catalog.pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum \
    CROSS JOIN LATERAL (SELECT CASE WHEN e.oid IS NULL THEN pg_catalog.pg_get_expr(t.typdefaultbin, 0::pg_catalog.oid) \
                                    ELSE pg_catalog.pg_get_expr(e.adbin, e.adrelid) END AS expression) AS given \
    WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = ANY ($2) AND NOT a.attisdropped \
      AND a.attgenerated = '' AND given.expression ~ '[[:<:]]nextval[(]'::pg_catalog.text \
    ORDER BY a.attnum";

/// Whether a sequence could fill a column of `$1` named in `$2`: what the two above find is one of these.
const FILLS_SQL: &str = "\
    SELECT EXISTS (\
        SELECT FROM pg_catalog.pg_attribute a \
        WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = ANY ($2) \
          AND (a.atthasdef OR a.attidentity <> '' \
               OR EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid AND t.typtype = 'd') \
               OR EXISTS (SELECT FROM pg_catalog.pg_depend d \
                          JOIN pg_catalog.pg_class c ON c.oid = d.objid AND c.relkind = 'S' \
                          WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
                            AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid \
                            AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum)))";

/// A sequence that fills a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Its name.
    pub relation: Relation,
    /// The column that it fills, unquoted.
    pub column: String,
    increment: i64,
    start: i64,
    min: i64,
    max: i64,
    cycles: bool,
    is_owner: bool,
    /// Its column's largest value is found in an index, or in a table that is small enough to be read for it.
    pub is_quick: bool,
    /// Policies may hide the rows with the largest values from this role.
    pub is_hidden: bool,
}

/// What became of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advanced {
    /// It was behind its column's values already.
    Stands,
    /// It was moved.
    Moved(Moved),
    /// Its column has reached this, behind which it has no value: moved there, every `nextval` would be an
    /// error.
    AtItsEnd(i64),
    /// It begins anew when it has come to its end: no value of the column tells which are free.
    Cycles,
}

/// A sequence that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The last value that it gave, or would have given first.
    pub from: i64,
    /// The value of the column behind which it goes on.
    pub to: i64,
}

/// Whether [`of_columns`] and [`late`] could find something: what costs the server a tenth of these.
///
/// # Errors
/// Those of the session.
pub async fn could_fill(session: &Session, table: &Relation, columns: &[String]) -> Result<bool> {
    let name = quote_relation(table);
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&columns, Type::TEXT_ARRAY)];
    let rows = session.rows(FILLS_SQL, &parameters, "looking for the table's sequences").await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// The sequences that fill these columns of a table when a row does not bring their values; a table of more
/// than `scan_bytes_max` is not to be read as a whole.
///
/// # Errors
/// Those of the session.
pub async fn of_columns(
    session: &Session,
    table: &Relation,
    columns: &[String],
    scan_bytes_max: i64,
) -> Result<Vec<Sequence>> {
    let name = quote_relation(table);
    let rows = session
        .rows(
            OWNED_SQL,
            &[(&name, Type::TEXT), (&columns, Type::TEXT_ARRAY), (&scan_bytes_max, Type::INT8)],
            "reading the table's sequences",
        )
        .await?;
    let sequence = |row: &tokio_postgres::Row| Sequence {
        relation: Relation { schema: row.get(1), name: row.get(2) },
        column: row.get(0),
        increment: row.get(3),
        min: row.get(4),
        max: row.get(5),
        start: row.get(8),
        is_owner: row.get(6),
        is_quick: row.get::<_, Option<bool>>(7) == Some(true),
        is_hidden: row.get(9),
        cycles: row.get(10),
    };
    Ok(rows.iter().map(sequence).collect())
}

/// A column whose default finds its sequence by a name that it makes of text when a row comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// The column, unquoted.
    pub column: String,
    /// The default, as the server writes it.
    expression: String,
}

/// Those of these columns of a table whose default asks a sequence for a value: that of [`of_columns`], or
/// one that nobody can tell, as the application's `search_path` may decide which it is.
///
/// # Errors
/// Those of the session.
pub async fn late(session: &Session, table: &Relation, columns: &[String]) -> Result<Vec<Late>> {
    let name = quote_relation(table);
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&columns, Type::TEXT_ARRAY)];
    let rows = session.rows(LATE_SQL, &parameters, "reading the table's defaults").await?;
    Ok(rows.iter().map(|row| Late { column: row.get(0), expression: row.get(1) }).collect())
}

impl Late {
    /// What moves the sequence by hand, where the default is nothing but its next value.
    pub fn by_hand(&self, table: &Relation) -> Option<String> {
        let sequence = self.expression.strip_prefix("nextval(")?.strip_suffix(')')?;
        let (column, table) = (quote_ident(&self.column), quote_relation(table));
        // What it would give next is a value that nobody has.
        Some(format!(
            "SELECT setval({sequence}, greatest(max({column})::bigint, nextval({sequence}))) FROM {table}"
        ))
    }
}

impl Sequence {
    /// Moves it behind the column's largest value (its smallest, if the sequence counts down), unless it is
    /// there already. Values beyond its bounds are none of its own. It stays where it is if it would have
    /// none to give then.
    ///
    /// # Errors
    /// Server, if the role may not move it or others hold it for too long; those of the session.
    pub async fn advance(&self, session: &Session, table: &Relation) -> Result<Advanced> {
        let fail = |error| session_error(&error, "moving a sequence");
        let ask = self.behind_sql(&self.reached_sql(table));
        let rows = session.client().query_typed(&ask, &[]).await.map_err(fail)?;
        let Some(row) = rows.first() else { return Ok(Advanced::Stands) };
        let (reached, has_next): (i64, bool) = (row.get(2), row.get(4));
        if self.cycles {
            return Ok(Advanced::Cycles);
        }
        if !has_next {
            return Ok(Advanced::AtItsEnd(reached));
        }
        let sequence = quote_relation(&self.relation);
        let mut begin =
            format!("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'");
        if self.is_owner {
            begin.push_str(&format!("; {}", lock_sql(&sequence, self.start)));
        }
        let set = format!(
            "SELECT state.last_value, state.reached, pg_catalog.setval({}::pg_catalog.regclass, \
                 pg_catalog.numeric_add(state.last_value::pg_catalog.numeric, pg_catalog.numeric_mul(state.steps, {}))::pg_catalog.int8) \
             FROM ({}) AS state WHERE state.has_next",
            quote_literal(&sequence),
            self.step_sql(),
            self.behind_sql(&format!("SELECT '{reached}'::pg_catalog.int8 AS reached"))
        );
        let moving = async {
            session.client().batch_execute(&begin).await?;
            let rows = session.client().query_typed(&set, &[]).await?;
            session.client().batch_execute("COMMIT").await?;
            let moved = rows.first().map(|row| Moved { from: row.get(0), to: row.get(1) });
            Ok(moved.map_or(Advanced::Stands, Advanced::Moved))
        };
        let moved: std::result::Result<_, tokio_postgres::Error> = moving.await;
        session.or_roll_back(moved).await.map_err(fail)
    }

    /// What the column has reached.
    fn reached_sql(&self, table: &Relation) -> String {
        let furthest = if self.increment > 0 { "max" } else { "min" };
        let (column, table) = (quote_ident(&self.column), quote_relation(table));
        format!(
            "SELECT pg_catalog.{furthest}({column})::pg_catalog.int8 AS reached FROM {table} \
             WHERE {column} OPERATOR(pg_catalog.>=) {} AND {column} OPERATOR(pg_catalog.<=) {}",
            self.min, self.max
        )
    }

    /// One row if the sequence is behind: where it stands, what its column has reached, and with how many
    /// steps it would not come past that: others may take the numbers between. And whether there is a value
    /// behind that.
    fn behind_sql(&self, reached_sql: &str) -> String {
        format!(
            "SELECT s.last_value, s.is_called, r.reached, {} AS steps, {} AS has_next \
             FROM {} AS s, ({reached_sql}) AS r WHERE r.reached IS NOT NULL AND {}",
            self.steps_sql(),
            self.has_next_sql(),
            quote_relation(&self.relation),
            self.is_behind_sql()
        )
    }

    /// `nextval` would give a value that the column has reached.
    fn is_behind_sql(&self) -> String {
        let compared = if self.increment > 0 { ">" } else { "<" };
        format!(
            "(r.reached {compared} s.last_value OR (r.reached = s.last_value AND NOT s.is_called)) \
             AND (NOT s.is_called OR pg_catalog.numeric_ge({}, 1::pg_catalog.numeric))",
            self.steps_sql()
        )
    }

    /// The step behind those is within the bounds.
    fn has_next_sql(&self) -> String {
        let (compared, bound) =
            if self.increment > 0 { ("numeric_le", self.max) } else { ("numeric_ge", self.min) };
        format!(
            "pg_catalog.{compared}(pg_catalog.numeric_add(s.last_value::pg_catalog.numeric, \
                 pg_catalog.numeric_mul(pg_catalog.numeric_add({}, 1::pg_catalog.numeric), {})), '{bound}'::pg_catalog.numeric)",
            self.steps_sql(),
            self.step_sql()
        )
    }

    fn steps_sql(&self) -> String {
        let way = "pg_catalog.numeric_sub(r.reached::pg_catalog.numeric, s.last_value::pg_catalog.numeric)";
        format!("pg_catalog.div({way}, {})", self.step_sql())
    }

    fn step_sql(&self) -> String {
        format!("'{}'::pg_catalog.numeric", self.increment)
    }
}

/// What moves the sequence by hand: as it is run later, it may find the sequence further on by then. Values
/// so close to its end that it would have none to give behind them do not count.
pub fn by_hand(sequence: &Sequence, table: &Relation) -> String {
    let furthest = if sequence.increment > 0 { "max" } else { "min" };
    let name = quote_relation(&sequence.relation);
    let (literal, column) = (quote_literal(&name), quote_columns(std::slice::from_ref(&sequence.column)));
    let (table, step) = (quote_relation(table), sequence.increment);
    // The sequence has columns, too, and the table's may have their names.
    let column = format!("t.{column}");
    let reached = format!("{furthest}({column})::bigint");
    let to = match step {
        1 => format!("greatest({reached}, s.last_value)"),
        -1 => format!("least({reached}, s.last_value)"),
        _ => format!("s.last_value + greatest(({reached} - s.last_value) / {step}, 0) * {step}"),
    };
    let (compared, bound) = if step > 0 { ("<=", sequence.max) } else { (">=", sequence.min) };
    let last = i128::from(bound) - i128::from(step);
    format!(
        "SELECT setval({literal}, {to}) FROM {table} AS t, {name} AS s WHERE {column} {compared} {last} GROUP BY s.last_value"
    )
}
