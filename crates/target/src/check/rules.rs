//! One query for each demand of a table, which gives the places of the rows that do not meet it; and by name
//! what no query can tell. All names are quoted; no value stands in them.

mod computed;
mod generated;
mod partitions;

use super::facts::{Check, Facts, Foreign, KeyPart, Unique};
use super::guarded::Condition;
use super::rows::Rows;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Arrival, Job, Keep, Mode, Relation, sqlstate};

/// A demand of a table, and how rows are found that do not meet it.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The table.
    pub table: Relation,
    /// PostgreSQL's code for a row that does not meet it.
    pub sqlstate: String,
    /// The column, where it is about one.
    pub column: Option<String>,
    /// The constraint or index.
    pub constraint: Option<String>,
    /// In words.
    pub reason: String,
    /// Gives places, each with that of another record which it repeats, or NULL.
    pub sql: String,
    /// The table that it reads besides the rows: of this, it takes SELECT.
    pub reads: Option<Relation>,
    /// It is about several records at once.
    pub among: Option<Among>,
    /// Whether a record meets it hangs on which other records come.
    pub leads_to_records: bool,
    /// The same as a condition, where it is one.
    pub(super) condition: Option<Condition>,
}

/// How a rule tells records that do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// All but the first of one key, each with the first.
    Keys,
    /// Each that conflicts with an earlier one, with that.
    Pairs,
}

impl Rule {
    /// What each row must meet by itself: false for those that do not.
    pub(crate) fn condition(&self) -> Option<&str> {
        self.condition.as_ref().map(|condition| condition.expression.as_str())
    }

    /// Some columns are computed from others.
    pub(crate) fn needs_computed(&self) -> bool {
        self.condition.as_ref().is_some_and(|condition| !condition.computed.is_empty())
    }
}

/// Something that is not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchecked {
    /// The table.
    pub table: Relation,
    /// What.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// What all tables of a check demand, and what of it cannot be told.
#[derive(Debug, Default)]
pub struct Rules {
    /// To be asked.
    pub rules: Vec<Rule>,
    /// To be named.
    pub unchecked: Vec<Unchecked>,
}

/// The rules for these rows, which would come as the job says. Each record is told with all that it conflicts
/// with: which of several can stay hangs on that.
pub fn rules_in_full(all: &[Rows], job: &Job) -> Rules {
    rules_for(all, &job.arrival, job.create_partitions.is_some(), true)
}

/// The same for rows that come in this way; `makes_partitions` for those that none takes.
pub(crate) fn rules_for(all: &[Rows], arrival: &Arrival, makes_partitions: bool, in_full: bool) -> Rules {
    let mut rules = Rules::default();
    for rows in all {
        let mut of_table = OfTable { rows, all, arrival, makes_partitions, in_full, found: &mut rules };
        of_table.generated();
        of_table.too_long_for_generated();
        of_table.not_null();
        of_table.not_null_in_leaves();
        rows.facts.checks.iter().for_each(|check| of_table.check(check));
        of_table.partitions();
        rows.facts.uniques.iter().for_each(|unique| of_table.unique(unique));
        rows.facts.exclusions.iter().for_each(|exclusion| of_table.exclusion(exclusion));
        rows.facts.computed_indexes.iter().for_each(|index| of_table.computed_index(index));
        rows.facts.foreign.iter().for_each(|foreign| of_table.foreign(foreign));
        of_table.others();
    }
    rules
}

/// When a row `t` of the table keeps what a record `s` says as well: conditions of the row, and of the
/// record.
#[derive(Debug, Default)]
struct Stays {
    of_row: String,
    of_record: String,
    /// A record `w` of the row's key, by this condition, says so too.
    still: Option<String>,
}

/// The rules of one table.
struct OfTable<'a> {
    rows: &'a Rows,
    all: &'a [Rows],
    arrival: &'a Arrival,
    makes_partitions: bool,
    in_full: bool,
    found: &'a mut Rules,
}

impl<'a> OfTable<'a> {
    fn facts(&self) -> &'a Facts {
        &self.rows.facts
    }

    fn not_checked(&mut self, what: String, reason: impl Into<String>) {
        let table = self.facts().relation.clone();
        self.found.unchecked.push(Unchecked { table, what, reason: reason.into() });
    }

    /// True where a column is among these whose value only storing tells; that is noted.
    fn is_unknown(&mut self, what: &str, columns: &[String]) -> bool {
        let Some(column) = self.rows.unknown_of(columns) else { return false };
        let reason = format!("column {column} takes a number from a sequence when a row is stored");
        self.not_checked(what.to_owned(), reason);
        true
    }

    fn add(&mut self, sqlstate: &str, constraint: &str, reason: String, sql: String) -> &mut Rule {
        let rule = Rule {
            table: self.facts().relation.clone(),
            sqlstate: sqlstate.to_owned(),
            column: None,
            constraint: Some(constraint.to_owned()),
            reason,
            sql,
            reads: None,
            among: None,
            leads_to_records: false,
            condition: None,
        };
        let no = self.found.rules.len();
        self.found.rules.push(rule);
        &mut self.found.rules[no]
    }

    /// Rows for which the expression is false, or fails. As a column it is computed in its own order, as the
    /// server does for a row that comes; the planner would order the parts of a WHERE by their costs, so that
    /// `b = 0 OR a / b > 1` may fail or not.
    fn condition(&mut self, constraint: &str, what: &str, expression: &str) {
        let reason = format!("violates {what}");
        let (place, from) = (&self.rows.place, self.rows.from());
        let sql = format!(
            "SELECT place, NULL::pg_catalog.int8 \
             FROM (SELECT {place} AS place, ({expression}) AS is_met FROM {from} OFFSET 0) AS c WHERE NOT is_met"
        );
        let condition =
            self.rows.condition(expression, sqlstate::CHECK_VIOLATION, format!("{what} cannot be evaluated"));
        self.add(sqlstate::CHECK_VIOLATION, constraint, reason, sql).condition = Some(condition);
    }

    fn not_null(&mut self) {
        let columns = self.facts().columns.iter().filter(|column| column.not_null);
        for column in columns {
            let what = format!("NOT NULL of column {}", column.name);
            if column.is_numbered && self.rows.unknown.contains(&column.name) {
                continue;
            }
            if self.facts().is_changed {
                self.not_checked(what, "a BEFORE INSERT trigger may fill it");
                continue;
            }
            let (sql, reason) = (
                self.where_not(&format!("{} IS NULL", quote_ident(&column.name))),
                format!("NULL in column {}, which is NOT NULL", column.name),
            );
            let met = format!("{} IS NOT NULL", quote_ident(&column.name));
            let condition = self.rows.condition(
                &met,
                sqlstate::NOT_NULL_VIOLATION,
                format!("column {} cannot be computed", column.name),
            );
            let rule = self.add(sqlstate::NOT_NULL_VIOLATION, &column.name, reason, sql);
            rule.condition = Some(condition);
            (rule.column, rule.constraint) = (rule.constraint.take(), None);
        }
    }

    fn where_not(&self, condition: &str) -> String {
        let (place, from) = (&self.rows.place, self.rows.from());
        format!("SELECT {place}, NULL::pg_catalog.int8 FROM {from} WHERE {condition}")
    }

    fn check(&mut self, check: &Check) {
        let what = format!("CHECK constraint {}", check.name);
        if self.is_unknown(&what, &check.columns) {
            return;
        }
        match self.stays_as_it_is() {
            Some(stays) => {
                self.condition(&check.name, &what, &format!("({}) OR {stays}", check.expression));
            }
            None => self.condition(&check.name, &what, &check.expression),
        }
    }

    /// The row of the table that has the key says what the record says, as a condition: it is not changed,
    /// and the server does not look at a CHECK, which may be NOT VALID. `None` where records are not merged.
    fn stays_as_it_is(&self) -> Option<String> {
        let key = self.merges_by()?;
        let of_key: Vec<String> = key.parts.iter().map(KeyPart::quoted).collect();
        let others: Vec<String> =
            self.rows.fields.iter().filter(|name| !of_key.contains(name)).cloned().collect();
        Some(self.has_the_same(key, &quote_ident(&self.facts().relation.name), &others))
    }

    /// The key by which records are merged.
    fn merges_by(&self) -> Option<&'a Unique> {
        let key = self.facts().uniques.iter().find(|unique| unique.is_on(&self.arrival.key));
        key.filter(|_| self.arrival.mode == Mode::Merge)
    }

    /// The row of the table that has the key of the row of this name has the same in these columns, byte by
    /// byte.
    fn has_the_same(&self, key: &Unique, of: &str, names: &[String]) -> String {
        let facts = self.facts();
        let there = if of == quote_ident("o") { "p" } else { "o" };
        let equal = key.parts.iter().map(|part| {
            let equals = part.equals.as_deref().unwrap_or("=");
            format!("{there}.{0} {equals} {of}.{0}", part.quoted())
        });
        let (equal, row) = (equal.collect::<Vec<_>>().join(" AND "), |of: &str| {
            let fields: Vec<String> = names.iter().map(|name| format!("{of}.{name}")).collect();
            format!("ROW({})::pg_catalog.record", fields.join(", "))
        });
        let only = if facts.is_partitioned { "" } else { "ONLY " };
        format!(
            "EXISTS (SELECT FROM {only}{} AS {there} WHERE {equal} AND {} OPERATOR(pg_catalog.*=) {})",
            quote_relation(&facts.relation),
            row(there),
            row(of)
        )
    }

    fn unique(&mut self, unique: &Unique) {
        let what = format!("unique key {}", unique.name);
        if self.is_unknown(&what, &unique.columns) {
            return;
        }
        if unique.method != "btree" || unique.parts.iter().any(|part| part.equals.is_none()) {
            self.not_checked(what, "it is no B-tree index");
            return;
        }
        self.computed_key(unique);
        let is_key = self.arrival.has_key() && unique.is_on(&self.arrival.key);
        if !is_key || self.arrival.keep == Keep::Error {
            let rows = if is_key { self.keys_waiting(unique) } else { self.keys_of_rows(unique) };
            let sql = repeated(unique, &rows);
            let reason = format!("repeats a value of {what} within the files");
            self.add(sqlstate::UNIQUE_VIOLATION, &unique.name, reason, sql).among = Some(Among::Keys);
        }
        let is_emptied = matches!(self.arrival.mode, Mode::Truncate | Mode::Replace);
        if is_key || is_emptied || self.facts().oid == 0 {
            return;
        }
        let (sql, leads_to_records) = (self.in_table(unique), self.hangs_on_records(unique));
        let reads = self.facts().relation.clone();
        let reason = format!("a row of the table has the same value of {what}");
        let rule = self.add(sqlstate::UNIQUE_VIOLATION, &unique.name, reason, sql);
        (rule.reads, rule.leads_to_records) = (Some(reads), leads_to_records);
    }

    /// Records whose value a row of the table has, which stays when the record comes.
    fn in_table(&self, unique: &Unique) -> String {
        let (rows, there) = (self.keys_of_rows(unique), self.keys_of_table(unique));
        let same = |of: &str| {
            let same = unique.names().zip(&unique.parts).map(|(name, part)| {
                let equals = part.equals.as_deref().unwrap_or("=");
                format!("{of}.{name} {equals} s.{name}")
            });
            same.collect::<Vec<_>>().join(" AND ")
        };
        let stays = self.stays(unique);
        let whole = in_any(&rows, &there, same, &stays);
        if !unique.nulls_alike {
            return whole;
        }
        // Records compare NULLs as the same; few rows have any.
        let record = |of: &str| {
            let fields: Vec<String> = unique.names().map(|name| format!("{of}.{name}")).collect();
            format!("ROW({})::pg_catalog.record", fields.join(", "))
        };
        let alike = |of: &str| {
            format!(
                "NOT ({}) AND NOT ({}) AND {} OPERATOR(pg_catalog.=) {}",
                unique.is_whole("s"),
                unique.is_whole(of),
                record(of),
                record("s")
            )
        };
        format!("{whole} UNION {}", in_any(&rows, &there, alike, &stays))
    }

    /// Which rows of the table keep what they say in this key when a record comes: any of these ways does.
    /// Where records are merged by a key, the row of the same key is changed; and so are those of other
    /// records, before new rows come, which may take what these give up. Whether a row that is changed itself
    /// may, hangs on which is changed first.
    fn stays(&self, unique: &Unique) -> Vec<Stays> {
        if self.arrival.mode != Mode::Merge {
            return vec![Stays::default()];
        }
        let numbered = |of: &'static str| move |no: usize, _: &str| format!("{of}.m{no}");
        let named = |of: &'static str| move |_: usize, column: &str| format!("{of}.{}", quote_ident(column));
        let other = format!(" AND NOT ({})", self.same_key(numbered("t"), numbered("s")));
        if !self.is_filled(unique) {
            return vec![Stays { of_row: other, ..Stays::default() }];
        }
        let only = if self.facts().is_partitioned { "" } else { "ONLY " };
        let (table, waiting) = (quote_relation(&self.facts().relation), &self.rows.waiting);
        let changes = self.same_key(numbered("t"), named("w"));
        let is_there = self.same_key(named("r"), numbered("s"));
        let unchanged = format!("{other} AND NOT EXISTS (SELECT FROM {waiting} AS w WHERE {changes})");
        let of_record = format!(" AND EXISTS (SELECT FROM {only}{table} AS r WHERE {is_there})");
        let still = Some(self.same_key(numbered("t"), numbered("w")));
        vec![
            Stays { of_row: unchanged, ..Stays::default() },
            Stays { of_row: other.clone(), of_record, still: None },
            Stays { of_row: other, still, ..Stays::default() },
        ]
    }

    /// The keys by which records are merged are the same, of rows whose columns are named so by number and
    /// name.
    fn same_key(
        &self,
        left: impl Fn(usize, &str) -> String,
        right: impl Fn(usize, &str) -> String,
    ) -> String {
        let key = self.merges_by();
        let equals = |column: &String| key?.parts.iter().find(|part| part.is(column))?.equals.as_deref();
        let equal = (1..).zip(&self.arrival.key).map(|(no, column)| {
            format!("{} {} {}", left(no, column), equals(column).unwrap_or("="), right(no, column))
        });
        equal.collect::<Vec<_>>().join(" AND ")
    }

    /// Other records may change rows of the table whose values a record repeats.
    fn hangs_on_records(&self, unique: &Unique) -> bool {
        self.arrival.mode == Mode::Merge && self.is_filled(unique)
    }

    /// The files say all that is unique by this key.
    fn is_filled(&self, unique: &Unique) -> bool {
        unique.columns.iter().all(|column| self.rows.fields.contains(&quote_ident(column)))
    }

    /// The columns by which records are merged, `m1` and so on.
    fn merged_by(&self) -> String {
        let name = |(no, column): (usize, &String)| format!("{} AS m{}", quote_ident(column), no + 1);
        self.arrival.key.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
    }

    /// The keys of the rows, `k1` and so on, with their places.
    fn keys_of_rows(&self, unique: &Unique) -> String {
        let (place, from) = (&self.rows.place, self.rows.from());
        let conditions: Vec<String> =
            unique.predicate.clone().into_iter().chain(self.rows.counts(self.arrival)).collect();
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE ({})", conditions.join(") AND (")),
        };
        format!("SELECT {place} AS place, {} FROM {from}{filter}", self.fields(unique))
    }

    /// The keys by which records are merged, of those as well that would not come.
    fn keys_waiting(&self, unique: &Unique) -> String {
        let (place, waiting) = (&self.rows.place, &self.rows.waiting);
        format!("SELECT {place} AS place, {} FROM {waiting} AS s", unique.fields())
    }

    /// The keys of the table: of its own rows alone, as tables that inherit from it have indexes of their
    /// own.
    fn keys_of_table(&self, unique: &Unique) -> String {
        let facts = self.facts();
        let only = if facts.is_partitioned { "" } else { "ONLY " };
        let (table, alias) = (quote_relation(&facts.relation), quote_ident(&facts.relation.name));
        format!("SELECT {} FROM {only}{table} AS {alias}{}", self.fields(unique), unique.filter())
    }

    fn fields(&self, unique: &Unique) -> String {
        match self.arrival.mode {
            Mode::Merge => format!("{}, {}", unique.fields(), self.merged_by()),
            _ => unique.fields(),
        }
    }

    /// No two rows may be such that all operators hold.
    fn exclusion(&mut self, exclusion: &Unique) {
        let what = format!("exclusion constraint {}", exclusion.name);
        if self.is_unknown(&what, &exclusion.columns) {
            return;
        }
        let operators: Option<Vec<&str>> =
            exclusion.parts.iter().map(|part| part.equals.as_deref()).collect();
        let Some(operators) = operators else {
            return self.not_checked(what, "only storing rows would tell");
        };
        self.computed_key(exclusion);
        if let Some(last) = exclusion.parts.last().filter(|_| exclusion.is_temporal) {
            let what = format!("key {} WITHOUT OVERLAPS, which takes no empty range", exclusion.name);
            self.condition(&exclusion.name, &what, &format!("NOT pg_catalog.isempty({})", last.expression));
        }
        let (rows, there) = (self.keys_of_rows(exclusion), self.keys_of_table(exclusion));
        let names: Vec<String> = exclusion.names().collect();
        let meet = |of: &str| {
            let meet = names
                .iter()
                .zip(&operators)
                .map(|(name, operator)| format!("{of}.{name} {operator} s.{name}"));
            meet.collect::<Vec<_>>().join(" AND ")
        };
        let (first, group) =
            if self.in_full { ("t.place", "") } else { ("pg_catalog.min(t.place)", " GROUP BY s.place") };
        let sql = format!(
            "SELECT s.place, {first} FROM ({rows}) AS s JOIN ({rows}) AS t ON t.place < s.place AND {}{group}",
            meet("t")
        );
        let reason = format!("conflicts with a record of the files by {what}");
        self.add(sqlstate::EXCLUSION_VIOLATION, &exclusion.name, reason, sql).among = Some(Among::Pairs);
        let is_emptied = matches!(self.arrival.mode, Mode::Truncate | Mode::Replace);
        if is_emptied {
            return;
        }
        let sql = in_any(&rows, &there, meet, &self.stays(exclusion));
        let leads_to_records = self.hangs_on_records(exclusion);
        let reads = self.facts().relation.clone();
        let reason = format!("conflicts with a row of the table by {what}");
        let rule = self.add(sqlstate::EXCLUSION_VIOLATION, &exclusion.name, reason, sql);
        (rule.reads, rule.leads_to_records) = (Some(reads), leads_to_records);
    }

    fn foreign(&mut self, foreign: &Foreign) {
        // That of a new table is added when the rows are there, which looks at them whatever triggers do.
        if !foreign.fires && self.arrival.mode != Mode::Replace {
            return;
        }
        let what = format!("foreign key {}", foreign.name);
        if self.is_unknown(&what, &foreign.columns) {
            return;
        }
        if foreign.has_period {
            self.not_checked(what, "it is one of periods");
            return;
        }
        let sql = self.dangling(foreign);
        let reason = format!("violates {what}: {} has no such row", foreign.other);
        let leads_to_records = self.all.iter().any(|rows| rows.facts.oid == foreign.oid);
        let rule = self.add(sqlstate::FOREIGN_KEY_VIOLATION, &foreign.name, reason, sql);
        (rule.reads, rule.leads_to_records) = (Some(foreign.other.clone()), leads_to_records);
    }

    /// Rows whose foreign key leads to no row: neither of the other table nor, for what comes with them, of
    /// the files.
    fn dangling(&self, foreign: &Foreign) -> String {
        let (place, from) = (&self.rows.place, self.rows.from());
        let names: Vec<String> = foreign.columns.iter().map(|name| quote_ident(name)).collect();
        let is_whole =
            names.iter().map(|name| format!("s.{name} IS NOT NULL")).collect::<Vec<_>>().join(" AND ");
        let has_some =
            names.iter().map(|name| format!("s.{name} IS NOT NULL")).collect::<Vec<_>>().join(" OR ");
        let there = foreign.columns_there.iter().zip(&names).zip(&foreign.equals).zip(&foreign.collations);
        let same = there.map(|(((there, here), equals), collation)| {
            let collate = collation.as_ref().map(|name| format!(" COLLATE {name}")).unwrap_or_default();
            format!("t.{}{collate} {equals} s.{here}{collate}", quote_ident(there))
        });
        let same = same.collect::<Vec<_>>().join(" AND ");
        let only = if foreign.is_partitioned { "" } else { "ONLY " };
        let mut targets = Vec::new();
        let is_emptied =
            matches!(self.arrival.mode, Mode::Truncate | Mode::Replace) && foreign.oid == self.facts().oid;
        if !is_emptied {
            targets.push(format!("{only}{} AS t", quote_relation(&foreign.other)));
        }
        let with_them = self.all.iter().filter(|rows| rows.facts.oid == foreign.oid);
        targets.extend(with_them.map(|rows| {
            let filter =
                rows.counts(self.arrival).map(|counts| format!(" WHERE {counts}")).unwrap_or_default();
            format!("(SELECT * FROM {}{filter}) AS t", rows.from())
        }));
        let missing = targets.iter().map(|target| format!("NOT EXISTS (SELECT FROM {target} WHERE {same})"));
        let missing = missing.collect::<Vec<_>>().join(" AND ");
        let half = match foreign.is_full {
            true => format!(" OR (({has_some}) AND NOT ({is_whole}))"),
            false => String::new(),
        };
        format!(
            "SELECT {place}, NULL::pg_catalog.int8 FROM (SELECT * FROM {from}) AS s \
             WHERE (({is_whole} AND {missing}){half}){}",
            self.refers_anew(&names)
        )
    }

    /// Where records are merged by a key, the server looks at a foreign key of the row that is changed only
    /// if that changes: what the row has led to nowhere before, as under a key that is NOT VALID, does not
    /// matter.
    fn refers_anew(&self, names: &[String]) -> String {
        let Some(key) = self.merges_by() else { return String::new() };
        format!(" AND NOT {}", self.has_the_same(key, "s", names))
    }

    fn others(&mut self) {
        for other in &self.facts().others {
            let of = other.partition.as_ref().map(|name| format!(" of partition {name}")).unwrap_or_default();
            let what = format!("{} {}{of}", other.what, other.name);
            let reason = match other.what.as_str() {
                "trigger" => "it may change or refuse rows",
                _ => "only storing rows would tell",
            };
            self.not_checked(what, reason);
        }
        if self.facts().has_policies {
            self.not_checked("row-level security policies".to_owned(), "only storing rows would tell");
        }
    }
}

/// Records that meet a row of the table that stays in one of these ways. Each is a join for the planner.
fn in_any(rows: &str, there: &str, meet: impl Fn(&str) -> String, stays: &[Stays]) -> String {
    let way = |Stays { of_row, of_record, still }: &Stays| {
        let still = still
            .as_ref()
            .map(|same| format!(" AND EXISTS (SELECT FROM ({rows}) AS w WHERE {same} AND {})", meet("w")));
        format!(
            "SELECT place, NULL::pg_catalog.int8 FROM ({rows}) AS s \
             WHERE EXISTS (SELECT FROM ({there}) AS t WHERE {}{of_row}{}){of_record}",
            meet("t"),
            still.unwrap_or_default()
        )
    };
    stays.iter().map(way).collect::<Vec<_>>().join(" UNION ")
}

/// All but the first record of each key.
fn repeated(unique: &Unique, rows: &str) -> String {
    let (same, order) = unique.repeats(unique.names(), "place");
    let filter = if unique.nulls_alike { "true".to_owned() } else { unique.is_whole("k") };
    format!(
        "SELECT place, first FROM (\
             SELECT place, pg_catalog.min(place) OVER (PARTITION BY key_no) AS first FROM (\
                 SELECT place, pg_catalog.count(*) FILTER (WHERE is_new) OVER w AS key_no FROM (\
                     SELECT k.*, ({same}) IS NOT TRUE AS is_new FROM ({rows}) AS k WHERE {filter} \
                     WINDOW w AS (ORDER BY {order}, place)) AS a \
                 WINDOW w AS (ORDER BY {order}, place ROWS UNBOUNDED PRECEDING)) AS b) AS c \
         WHERE first < place"
    )
}
