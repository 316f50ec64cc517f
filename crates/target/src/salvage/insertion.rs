//! Rows that the server itself tries, a few at a time.
//!
//! What a trigger or an exclusion constraint refuses, no query tells, and COPY tells one row at a time: two
//! round trips and the rows before it once more. Where such rows are many, those that are left of a chunk go
//! into a temporary table that has no constraints, each with its number, and a function of the session's
//! temporary schema inserts them from there, a few in a subtransaction of their own. Which row it was at when
//! one of these fails, a sequence tells, since what sequences give is never taken back; what fails behind the
//! rows (foreign keys, AFTER triggers) is found by fewer rows at a time. A row is refused when it was named
//! so, or alone, with all rows before it in the table, as by [`super::show`].
//!
//! INSERT is not COPY: rules would rewrite it, and triggers for each statement fire for each few rows. Tables
//! that have these are left to COPY.

use super::probe::temporary;
use super::show::{Showing, Way};
use super::{NOT_ABOUT_A_ROW, Refused, Salvage};
use crate::commit::{self, ChunkError};
use crate::copy::placed::Placed;
use crate::copy::server_error::{TEMPORARY_SCHEMA, told_error};
use crate::ledger::Ledger;
use crate::session::toast;
use crate::sql::{quote_columns, quote_ident, quote_literal, quote_relation};
use crate::tree::tree_of;
use howdah_model::{Relation, RelationKind, TablePlan};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

/// Rows of one subtransaction, until it is known what they cost. Measured with a trigger that refuses 1 % of
/// the rows (PostgreSQL 15, seconds for 200,000): 16 rows 0.52, 32 rows 0.34 to 0.39, 64 rows 0.37 to 0.55,
/// 128 rows 0.53.
const WIDTH: i64 = 32;
const WIDTH_MIN: f64 = 4.0;
const WIDTH_MAX: f64 = 128.0;
/// What a subtransaction costs beside its rows: it, its statement, and its row in the ledger.
const SUBTRANSACTION: Duration = Duration::from_micros(5);

/// Rows of one statement, behind which it is asked how many are borne.
const AT_ONCE: usize = 4096;

/// Fewer rows than these are not worth the temporary table.
const INSERTED_MIN: usize = 256;

/// It is when one of so many rows is refused: a refused row costs COPY about 340 microseconds, and any row
/// here one more than there.
pub(super) const ONE_OF: usize = 300;

/// The columns `$2` of table `$1` and their types; none, if it has rules, triggers to which a statement's
/// rows are one whole, or foreign partitions, which may be sent several rows at a time, so that one fails
/// when the next ones were looked at.
const FACTS_SQL: &str = concat!(
    "SELECT a.attname::pg_catalog.text, pg_catalog.format_type(a.atttypid, a.atttypmod) \
    FROM pg_catalog.pg_attribute a \
    WHERE a.attrelid = $1 AND a.attname = ANY ($2) AND NOT a.attisdropped \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = $1 AND c.relhasrules) \
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = $1 AND g.tgtype & 4::pg_catalog.int2 = 4 \
                      AND NOT g.tgisinternal AND (g.tgtype & 1::pg_catalog.int2 = 0 OR g.tgnewtable IS NOT NULL)) \
      AND NOT EXISTS (",
    tree_of!("$1::pg_catalog.oid"),
    "SELECT FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid WHERE c.relkind = 'f')"
);

/// The table of rows that were refused.
const REFUSED: &str = "pg_temp.howdah_refused";
/// The sequence that tells the number of the row that is being stored.
const SEQUENCE: &str = "pg_temp.howdah_row";

/// How rows of one table are tried.
struct Insertion {
    /// Makes what is not there yet.
    make_sql: String,
    /// Takes rows in binary, each behind its number.
    binary_sql: Option<String>,
    /// The plan of the table as if its rows were to go into the temporary one.
    plan: TablePlan,
    /// Takes the first row, the one behind the last, how many at a time, and the chunk.
    store_sql: String,
    /// Empties what it has made.
    empty_sql: String,
}

impl Insertion {
    /// Reads what it needs of the table, which it locks. `None`: its rows have to go by COPY.
    async fn read(
        client: &Client,
        plan: &TablePlan,
        ledger: Option<&Ledger>,
    ) -> Result<Option<Insertion>, tokio_postgres::Error> {
        let is_plain = matches!(plan.table.kind, RelationKind::Table | RelationKind::Partitioned)
            && plan.staging.is_none()
            && plan.policies.is_none();
        // Rights on columns allow no lock.
        let may_lock = "SELECT pg_catalog.has_table_privilege($1, 'INSERT')";
        let stored_in = quote_relation(plan.stored_in());
        if !is_plain
            || !client.query_typed_one(may_lock, &[(&stored_in, Type::TEXT)]).await?.get::<_, bool>(0)
        {
            return Ok(None);
        }
        let columns: Vec<String> = plan.fields.iter().flatten().cloned().collect();
        client.batch_execute(&format!("LOCK TABLE ONLY {stored_in} IN ROW EXCLUSIVE MODE")).await?;
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&plan.table.oid, Type::OID), (&columns, Type::TEXT_ARRAY)];
        let rows = client.query_typed(FACTS_SQL, &parameters).await?;
        let types: BTreeMap<String, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let kept = toast::kept_as(client, &stored_in, &columns).await?;
        Ok(Insertion::new(plan, &columns, &types, &kept, ledger))
    }

    fn new(
        plan: &TablePlan,
        columns: &[String],
        types: &BTreeMap<String, String>,
        kept: &[String],
        ledger: Option<&Ledger>,
    ) -> Option<Insertion> {
        let is_taken = |name: &String| columns.contains(name);
        let place = (0..).map(|no| format!("place{no}")).find(|name| !is_taken(name))?;
        let typed: Option<Vec<String>> =
            columns.iter().map(|name| Some(format!("{} {}", quote_ident(name), types.get(name)?))).collect();
        let typed = typed?.join(", ");
        let mark = ledger.map(Ledger::mark_of_variables_sql).unwrap_or_default();
        // Whatever they are made for is in their names, so that no other load finds the wrong ones in its
        // session.
        let mut hasher = DefaultHasher::new();
        (plan.table.oid, quote_relation(plan.stored_in()), &typed, kept, &mark).hash(&mut hasher);
        let digest = hasher.finish();
        let name = |what: &str| Relation {
            schema: TEMPORARY_SCHEMA.to_owned(),
            name: format!("howdah_{what}_{digest:x}"),
        };
        let (rows, function) = (name("rows"), quote_relation(&name("insert")));
        let body = body(plan, &rows, &place, columns, &function, &mark);
        let make_sql = make_sql(&rows, &place, &typed, kept, &function, &body);
        let binary_sql = plan.binary.as_ref().map(|binary| {
            let names: Vec<String> = [&place].into_iter().chain(&binary.columns).cloned().collect();
            format!(
                "COPY {} ({}) FROM STDIN WITH (FORMAT binary)",
                quote_relation(&rows),
                quote_columns(&names)
            )
        });
        let own = format!("COPY {} ", quote_relation(plan.copied_into()));
        let copy_sql = format!("COPY {} {}", quote_relation(&rows), plan.copy_sql.strip_prefix(&own)?);
        let store_sql = format!("SELECT {function}($1, $2, $3, $4, $5, $6)");
        let empty_sql = format!("TRUNCATE {}, {REFUSED}", quote_relation(&rows));
        let staging = temporary(&rows.name, &place);
        let plan = TablePlan { staging: Some(staging), copy_sql, ..plan.clone() };
        Some(Insertion { make_sql, binary_sql, plan, store_sql, empty_sql })
    }
}

/// Makes the temporary objects, unless the session has them. What is inserted is found by its number, with no
/// statistics.
fn make_sql(
    rows: &Relation,
    place: &str,
    typed: &str,
    kept: &[String],
    function: &str,
    body: &str,
) -> String {
    let (table, place) = (quote_relation(rows), quote_ident(place));
    let index = quote_ident(&format!("{}_place", rows.name));
    let once = |name: &str, make: &str| {
        format!("IF pg_catalog.to_regclass({}) IS NULL THEN {make}; END IF; ", quote_literal(name))
    };
    let block = [
        "BEGIN ".to_owned(),
        once(
            &table,
            &format!(
                "CREATE TEMPORARY TABLE {table} ({place} pg_catalog.int8, {typed}) ON COMMIT DELETE ROWS; \
                 CREATE INDEX {index} ON {table} ({place}){}",
                toast::keep_so_sql(&table, kept)
            ),
        ),
        once(SEQUENCE, &format!("CREATE TEMPORARY SEQUENCE {SEQUENCE} MINVALUE 0")),
        once(
            REFUSED,
            &format!(
                "CREATE TEMPORARY TABLE {REFUSED} (place pg_catalog.int8, code pg_catalog.text, said pg_catalog.text, \
                 at pg_catalog.text, names pg_catalog.text[], column_name pg_catalog.text) ON COMMIT DELETE ROWS"
            ),
        ),
        format!(
            "IF pg_catalog.to_regproc({}) IS NULL THEN CREATE FUNCTION {function}(first pg_catalog.int8, \
             behind pg_catalog.int8, width pg_catalog.int8, job pg_catalog.text, file_no pg_catalog.int4, \
             chunk_no pg_catalog.int8) RETURNS pg_catalog.int8 LANGUAGE plpgsql AS {}; END IF; END",
            quote_literal(function),
            quote_literal(body)
        ),
    ];
    format!("DO {}", quote_literal(&block.concat()))
}

/// The function: stores rows from `first` on, up to `behind`, and tells how many it has stored. Columns are
/// called by their table, so that variables may have any names.
fn body(
    plan: &TablePlan,
    rows: &Relation,
    place: &str,
    columns: &[String],
    function: &str,
    mark: &str,
) -> String {
    let (table, rows, place) = (quote_relation(plan.stored_in()), quote_relation(rows), quote_ident(place));
    let into = quote_columns(columns);
    let of = |alias: &str| {
        let names: Vec<String> =
            columns.iter().map(|name| format!("{alias}.{}", quote_ident(name))).collect();
        names.join(", ")
    };
    // With OFFSET, the condition is asked of one row after the other, each before it is stored.
    let insert = format!(
        "INSERT INTO {table} ({into}) OVERRIDING SYSTEM VALUE SELECT {fields} FROM (SELECT r.* FROM {rows} r \
         WHERE r.{place} >= first AND r.{place} < upto ORDER BY r.{place} OFFSET 0) s \
         WHERE pg_catalog.setval('{SEQUENCE}', s.{place}) >= 0",
        fields = of("s"),
    );
    let classes: Vec<String> = NOT_ABOUT_A_ROW.classes.iter().map(|class| quote_literal(class)).collect();
    let states: Vec<String> = NOT_ABOUT_A_ROW.states.iter().map(|state| quote_literal(state)).collect();
    let again = |first: &str, behind: &str, width: &str| {
        format!("{function}({first}, {behind}, {width}, job, file_no, chunk_no)")
    };
    let refuse = |row: &str| {
        format!(
            "INSERT INTO {REFUSED} VALUES ({row}, code, said, pg_catalog.split_part(said_at, E'\\n', 1), names, \
             column_name);"
        )
    };
    format!(
        "#variable_conflict use_variable\n\
         DECLARE stored pg_catalog.int8 := 0; came pg_catalog.int8; upto pg_catalog.int8; reached pg_catalog.int8; \
             final pg_catalog.int8; tried pg_catalog.int8; code pg_catalog.text; said pg_catalog.text; \
             said_at pg_catalog.text; names pg_catalog.text[]; column_name pg_catalog.text; \
             relation_name pg_catalog.text; rule_name pg_catalog.text; type_name pg_catalog.text; \
         BEGIN \
         PERFORM pg_catalog.setval('{SEQUENCE}', 0); \
         WHILE first < behind LOOP \
             upto := least(first + width, behind); \
             BEGIN \
                 {insert}; GET DIAGNOSTICS came = ROW_COUNT; {mark} \
                 stored := stored + came; first := upto; \
             EXCEPTION WHEN OTHERS OR assert_failure THEN \
                 GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, said = MESSAGE_TEXT, said_at = PG_EXCEPTION_CONTEXT, \
                     column_name = COLUMN_NAME, relation_name = TABLE_NAME, rule_name = CONSTRAINT_NAME, \
                     type_name = PG_DATATYPE_NAME; \
                 IF pg_catalog.left(code, 2) IN ({classes}) OR code IN ({states}) THEN RAISE; END IF; \
                 names := ARRAY[relation_name, rule_name, type_name, column_name]; \
                 reached := pg_catalog.currval('{SEQUENCE}'); \
                 SELECT pg_catalog.max(r.{place}), pg_catalog.count(*) INTO final, tried FROM {rows} r \
                     WHERE r.{place} >= first AND r.{place} < upto; \
                 IF reached >= first AND reached < final THEN \
                     stored := stored + {before}; {refuse_reached} first := reached + 1; \
                 ELSIF tried = 1 THEN \
                     {refuse_final} first := upto; \
                 ELSE \
                     stored := stored + {fewer}; first := upto; \
                 END IF; \
             END; \
         END LOOP; \
         RETURN stored; END",
        classes = classes.join(", "),
        states = states.join(", "),
        before = again("first", "reached", "width"),
        fewer = again("first", "upto", "greatest(width / 8, 1)"),
        refuse_reached = refuse("reached"),
        refuse_final = refuse("final"),
    )
}

impl Salvage<'_> {
    /// Stores what the table takes of these rows; `known` as for [`Salvage::show`]. `false`: they have to be
    /// shown to COPY, and nothing of them is stored.
    pub(super) async fn insert_all(
        &mut self,
        rows: &[u64],
        known: &[u64],
        showing: &Showing<'_>,
        refused: &mut Vec<Refused>,
    ) -> Result<bool, ChunkError> {
        if rows.len() < INSERTED_MIN {
            return Ok(false);
        }
        self.save().await?;
        let read = Insertion::read(self.session.client(), self.target.table, self.target.ledger).await;
        let Some(insertion) = self.or_fail(read).await? else { return Ok(false) };
        if !self.fill(&insertion, &showing.way, rows).await? {
            return Ok(false);
        }
        let (before, began) = (refused.len(), Instant::now());
        let (mut width, mut tried) = (WIDTH, 0);
        for some in rows.chunks(AT_ONCE) {
            self.progress.step();
            self.insert_some(&insertion, some, width, refused).await?;
            tried += some.len();
            width = best_width(tried, refused.len() - before, began.elapsed());
            let last = some.last().copied().unwrap_or_default();
            let behind = known.len() - known.partition_point(|known| *known <= last);
            self.bear(showing.bear, refused, refused.len() - behind).await?;
        }
        self.inserted = Some((refused.len() - before).saturating_mul(ONE_OF) >= rows.len());
        Ok(true)
    }

    /// Puts the rows into the temporary table. `false`: something of it is refused.
    async fn fill(&mut self, insertion: &Insertion, way: &Way<'_>, rows: &[u64]) -> Result<bool, ChunkError> {
        let make_sql = match self.inserted {
            None => insertion.make_sql.clone(),
            Some(_) => format!("{}; {}", insertion.make_sql, insertion.empty_sql),
        };
        match self.session.client().batch_execute(&make_sql).await {
            Ok(()) => {}
            Err(error) if error.as_db_error().is_some() => {
                self.spoil();
                return Ok(false);
            }
            Err(error) => return Err(self.fail(&error).await),
        }
        let (stored, mut left) = (self.stored, rows);
        while let Some(first) = left.first() {
            let (sql, pieces, count) = match way {
                Way::Written(written) => {
                    let Some(sql) = &insertion.binary_sql else { return Ok(false) };
                    let fields: Vec<usize> = (0..written.fields()).collect();
                    let Some(some) = written.keys(&fields, *first, Some(left)) else { return Ok(false) };
                    let count = left.partition_point(|row| *row < some.next);
                    (sql.clone(), some.pieces, count)
                }
                Way::AsInFile(places, None) => {
                    let Some(placed) = Placed::new(&insertion.plan, Some(0)) else { return Ok(false) };
                    let count = Placed::rows_at_once(rows.len(), self.chunk.bytes.len()).min(left.len());
                    let some = left[..count].iter().map(|row| (*row, places.of(*row)));
                    let pieces = placed.pieces(&self.chunk.bytes, some);
                    (placed.sql, pieces, count)
                }
                Way::AsInFile(_, Some(_)) => return Ok(false),
            };
            let refusal = self.try_copy(&sql, &pieces, count as u64).await?;
            // These are not in the table.
            (self.stored, self.unmarked) = (stored, false);
            if refusal.is_some() {
                return Ok(false);
            }
            left = &left[count..];
        }
        Ok(true)
    }

    async fn insert_some(
        &mut self,
        insertion: &Insertion,
        rows: &[u64],
        width: i64,
        refused: &mut Vec<Refused>,
    ) -> Result<(), ChunkError> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let (first, behind) = (first.cast_signed(), last.cast_signed() + 1);
        let origin = &self.chunk.origin;
        let (file_no, chunk_no) = (origin.file_no.cast_signed(), origin.chunk_no.cast_signed());
        let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
            (&first, Type::INT8),
            (&behind, Type::INT8),
            (&width, Type::INT8),
            (&self.target.job_id, Type::TEXT),
            (&file_no, Type::INT4),
            (&chunk_no, Type::INT8),
        ];
        let stored = self.session.client().query_typed_one(&insertion.store_sql, &parameters).await;
        let stored: i64 = self.or_fail(stored).await?.get(0);
        let sql = format!(
            "SELECT place, code, said, at, names, column_name FROM {REFUSED} WHERE place >= $1 ORDER BY place"
        );
        let told = self.session.client().query_typed(&sql, &[(&first, Type::INT8)]).await;
        let told = self.or_fail(told).await?;
        let before = refused.len();
        for row in &told {
            let columns = insertion.plan.fields.iter().flatten();
            let names: Vec<Option<&str>> = row.get(4);
            let names = names.into_iter().flatten().chain(columns.map(String::as_str));
            let column = row.get::<_, Option<&str>>(5).filter(|name| !name.is_empty());
            let error = told_error(row.get(1), row.get(2), row.get(3), names, column);
            refused.push(Refused { row: row.get::<_, i64>(0).cast_unsigned(), error });
        }
        let (stored, expected) = (stored.cast_unsigned(), (rows.len() - (refused.len() - before)) as u64);
        if stored != expected {
            commit::roll_back(self.session).await;
            return Err(commit::wrong_count(stored, expected).into());
        }
        self.stored += stored;
        Ok(())
    }
}

/// Rows of one subtransaction, after so many were tried, and so many of them refused, in this time. More of
/// them share the price of one; half of them, on average, are stored twice when one fails.
fn best_width(tried: usize, refused: usize, elapsed: Duration) -> i64 {
    let wasted_s = refused as f64 * elapsed.as_secs_f64() / (tried as f64).powi(2) / 2.0;
    (SUBTRANSACTION.as_secs_f64() / wasted_s).sqrt().clamp(WIDTH_MIN, WIDTH_MAX) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_rows_cost_and_the_more_are_refused_the_fewer_go_together() {
        let second = Duration::from_secs(1);
        assert_eq!(best_width(1_000_000, 0, second), 128);
        assert_eq!(best_width(1_000_000, 10_000, second), 31);
        assert_eq!(best_width(1_000_000, 10_000, 16 * second), 7);
        assert_eq!(best_width(4096, 4096, second), 4);
    }
}
