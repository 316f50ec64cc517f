//! Index entries that would be too long: of B-trees a third of a page, of others a page at most.
//!
//! How long an entry is hangs on how well its values can be compressed, so that no query tells. Where the
//! values of a row come near to what fits, it is stored in a temporary table that has the same index, by a
//! function in the session's temporary schema, and taken out again.

use super::DOING;
use super::facts::Facts;
use super::found::{Refusal, under_savepoint};
use super::rows::Rows;
use super::rules::{Rule, Rules, Unchecked};
use crate::error::session_error;
use crate::session::{Session, toast};
use crate::sql::{quote_ident, quote_literal, quote_relation};
use crate::tree::tree_of;
use howdah_model::{Arrival, Result, TablePlan, sqlstate};
use std::borrow::Borrow;
use tokio_postgres::types::Type;

/// Indexes of table `$1`, and those that partitions have of their own, whose entries may be long, by the
/// types of their columns: name, what follows the table's name in the definition, whether that begins with
/// UNIQUE, the expressions of all columns, what the partition takes. `tsvector` and `jsonb` go into GIN and
/// GiST by parts that are short or hashed. A hash index keeps hashes. A BRIN index sums up what is there when
/// it is made, and the rest when VACUUM comes.
const INDEXES_SQL: &str = concat!(
    tree_of!("$1::pg_catalog.oid"),
    "SELECT x.relname::pg_catalog.text, \
           pg_catalog.substr(pg_catalog.pg_get_indexdef(i.indexrelid), 1 + pg_catalog.length(h.head)), \
           i.indisunique AND m.amname = 'btree', \
           ARRAY(SELECT pg_catalog.pg_get_indexdef(i.indexrelid, k.no, false) \
                 FROM pg_catalog.generate_series(1, i.indnatts) k (no) ORDER BY k.no), \
           CASE WHEN i.indrelid <> $1 THEN pg_catalog.pg_get_partition_constraintdef(i.indrelid) END \
    FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
    JOIN pg_catalog.pg_am m ON m.oid = x.relam \
    JOIN pg_catalog.pg_class t ON t.oid = i.indrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace, \
        LATERAL (SELECT pg_catalog.format('CREATE %sINDEX %I ON %s%I.%I ', CASE WHEN i.indisunique THEN 'UNIQUE ' END, x.relname, \
                                          CASE WHEN x.relkind = 'I' THEN 'ONLY ' END, n.nspname, t.relname) AS head) h \
    WHERE i.indrelid IN (SELECT oid FROM tree WHERE NOT tree.is_detached) AND i.indislive AND i.indisready \
      AND (i.indrelid = $1 OR NOT EXISTS (SELECT FROM pg_catalog.pg_inherits p WHERE p.inhrelid = i.indexrelid)) \
      AND m.amname IN ('btree', 'gin', 'gist', 'spgist') \
      AND EXISTS (SELECT FROM pg_catalog.pg_opclass s WHERE s.oid = ANY (i.indclass) \
                  AND (m.amname = 'btree' OR s.opcintype NOT IN ('pg_catalog.tsvector'::pg_catalog.regtype, 'pg_catalog.jsonb'::pg_catalog.regtype))) \
      AND (SELECT sum(CASE WHEN a.attlen > 0 THEN a.attlen::pg_catalog.int4 \
                           WHEN a.atttypmod > 4 AND a.atttypid IN ('pg_catalog.varchar'::pg_catalog.regtype, 'pg_catalog.bpchar'::pg_catalog.regtype) \
                           THEN 4 * a.atttypmod \
                           ELSE 8192 END) \
           FROM pg_catalog.pg_attribute a WHERE a.attrelid = i.indexrelid) >= 2048 \
    ORDER BY i.indrelid <> $1, x.relname"
);

/// So many indexes of partitions alone are looked at: each costs a look at all rows.
const OF_PARTITIONS_MAX: usize = 50;

/// What is shorter than a quarter of a page fits everywhere, with all that an entry has around it.
const NEAR_SQL: &str = "pg_catalog.current_setting('block_size')::pg_catalog.int4 / 4";

/// An index.
struct Index {
    name: String,
    /// What follows the table in its definition.
    definition: String,
    is_unique: bool,
    expressions: Vec<String>,
    /// Rows come to it that meet this.
    takes: Option<String>,
}

/// Finds the indexes for which some of these rows may be too long, and makes what tells whether they are: a
/// rule for each.
///
/// # Errors
/// Those of the session, which is outside a transaction before and after.
pub async fn too_long(
    session: &Session,
    all: &[Rows],
    plans: &[impl Borrow<TablePlan>],
    arrival: &Arrival,
) -> Result<Rules> {
    let mut rules = Rules::default();
    for (table_no, (rows, plan)) in all.iter().zip(plans).enumerate() {
        let (mut indexes, facts) = (indexes(session, &rows.facts, plan.borrow()).await?, &rows.facts);
        let of_table = indexes.iter().take_while(|index| index.takes.is_none()).count();
        if indexes.len() > of_table + OF_PARTITIONS_MAX {
            let what = format!("the length of entries in {} indexes of partitions", indexes.len() - of_table);
            let reason = format!("that is done of {OF_PARTITIONS_MAX} at most");
            rules.unchecked.push(Unchecked { table: facts.relation.clone(), what, reason });
            indexes.truncate(of_table);
        }
        for (index_no, index) in indexes.iter().enumerate() {
            let candidates = index.candidates_sql(rows, arrival);
            if !has_any(session, &candidates).await? {
                continue;
            }
            let trial = Trial { index, rows, name: format!("{table_no}_{index_no}") };
            let rule = trial.rule();
            match trial.make(session, &candidates).await? {
                None => rules.rules.push(rule),
                Some(refusal) => rules.unchecked.push(refusal.of(&rule)),
            }
        }
    }
    Ok(rules)
}

async fn indexes(session: &Session, facts: &Facts, plan: &TablePlan) -> Result<Vec<Index>> {
    if facts.oid == 0 {
        let key = plan.create.iter().flat_map(|create| &create.primary_key);
        let expressions: Vec<String> = key.map(|name| quote_ident(name)).collect();
        let definition = format!("USING btree ({})", expressions.join(", "));
        let name = "primary key".to_owned();
        let primary = Index { name, definition, is_unique: true, expressions, takes: None };
        return Ok(Some(primary).filter(|primary| !primary.expressions.is_empty()).into_iter().collect());
    }
    let fail = |error: tokio_postgres::Error| session_error(&error, "reading what the table demands");
    // With all names in full.
    session.client().batch_execute("BEGIN READ ONLY; SET LOCAL search_path = ''").await.map_err(fail)?;
    let read = session.client().query_typed(INDEXES_SQL, &[(&facts.oid, Type::OID)]).await;
    session.roll_back().await;
    let index = |row: &tokio_postgres::Row| Index {
        name: row.get(0),
        definition: row.get(1),
        is_unique: row.get(2),
        expressions: row.get(3),
        takes: row.get(4),
    };
    Ok(read.map_err(fail)?.iter().map(index).collect())
}

/// There is such a row, or asking for one fails: then each is to be looked at by itself.
async fn has_any(session: &Session, candidates: &str) -> Result<bool> {
    let begun = session.client().batch_execute("BEGIN READ ONLY; SET LOCAL row_security = off").await;
    begun.map_err(|error| session_error(&error, DOING))?;
    let asked = under_savepoint(session, &format!("SELECT EXISTS ({candidates})")).await?;
    session.roll_back().await;
    Ok(asked.map_or(true, |answer| answer == "t"))
}

impl Index {
    /// Rows whose values for the index come near to what fits.
    fn candidates_sql(&self, rows: &Rows, arrival: &Arrival) -> String {
        let long =
            self.expressions.iter().map(|value| format!("coalesce(pg_catalog.pg_column_size({value}), 0)"));
        let long = long.collect::<Vec<_>>().join(" + ");
        let takes = self.takes.as_ref().map(|takes| format!("({takes})"));
        let also: String =
            takes.into_iter().chain(rows.counts(arrival)).map(|also| format!(" AND {also}")).collect();
        format!("SELECT * FROM {} WHERE {long} > {NEAR_SQL}{also}", rows.from())
    }
}

/// A temporary table with the index, and the function that stores rows in it.
struct Trial<'a> {
    index: &'a Index,
    rows: &'a Rows,
    name: String,
}

impl Trial<'_> {
    fn rule(&self) -> Rule {
        Rule {
            table: self.rows.facts.relation.clone(),
            sqlstate: sqlstate::PROGRAM_LIMIT_EXCEEDED.to_owned(),
            column: None,
            constraint: Some(self.index.name.clone()),
            reason: format!("its entry in index {} would be too long", self.index.name),
            sql: format!(
                "SELECT place, NULL::pg_catalog.int8 FROM pg_temp.howdah_too_long_{}() AS f (place)",
                self.name
            ),
            reads: None,
            among: None,
            leads_to_records: false,
            condition: None,
        }
    }

    /// What the server has against it, if anything.
    async fn make(&self, session: &Session, candidates: &str) -> Result<Option<Refusal>> {
        let fail = |error: tokio_postgres::Error| session_error(&error, DOING);
        session.client().batch_execute("BEGIN READ WRITE").await.map_err(fail)?;
        let kept =
            toast::kept_as(session.client(), &quote_relation(&self.rows.facts.relation), &self.columns())
                .await;
        let made = under_savepoint(session, &self.make_sql(&kept.map_err(fail)?, candidates)).await?;
        match made {
            Ok(_) => session.client().batch_execute("COMMIT").await.map_err(fail)?,
            Err(_) => session.roll_back().await,
        }
        Ok(made.err())
    }

    /// Those of the table; of one that is not there yet those of its key.
    fn columns(&self) -> Vec<String> {
        let facts = &self.rows.facts;
        match facts.oid {
            0 => facts.uniques.iter().flat_map(|unique| unique.columns.clone()).collect(),
            _ => facts.columns.iter().map(|column| column.name.clone()).collect(),
        }
    }

    /// Values are kept as the table keeps them: an index takes them so. Whatever else is refused, and told
    /// elsewhere, says nothing of the length.
    fn make_sql(&self, kept: &[String], candidates: &str) -> String {
        let (facts, table) = (&self.rows.facts, format!("pg_temp.howdah_entries_{}", self.name));
        let columns: Vec<String> = self.columns().iter().map(|name| quote_ident(name)).collect();
        let from = if facts.oid == 0 { self.rows.waiting.clone() } else { quote_relation(&facts.relation) };
        let values: Vec<String> = columns.iter().map(|name| format!("r.{name}")).collect();
        let (columns, values) = (columns.join(", "), values.join(", "));
        let body = format!(
            "#variable_conflict use_column\n\
             DECLARE r pg_catalog.record; \
             BEGIN \
                 FOR r IN {candidates} LOOP \
                     BEGIN \
                         INSERT INTO {table} ({columns}) VALUES ({values}); \
                         RAISE SQLSTATE 'HD000'; \
                     EXCEPTION \
                         WHEN program_limit_exceeded THEN RETURN NEXT r.{}; \
                         WHEN OTHERS OR assert_failure THEN NULL; \
                     END; \
                 END LOOP; \
             END",
            self.rows.place
        );
        format!(
            "CREATE TEMPORARY TABLE {} AS SELECT {columns} FROM {from} WITH NO DATA{}; \
             CREATE {}INDEX ON {table} {}; \
             CREATE FUNCTION pg_temp.howdah_too_long_{}() RETURNS SETOF pg_catalog.int8 LANGUAGE plpgsql AS {}",
            table.trim_start_matches("pg_temp."),
            toast::keep_so_sql(&table, kept),
            if self.index.is_unique { "UNIQUE " } else { "" },
            self.index.definition,
            self.name,
            quote_literal(&body)
        )
    }
}
