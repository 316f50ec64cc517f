//! Rows of a staging table as they would be stored: what the files do not fill has its default, or stays as
//! it is in the row that is changed, and generated columns are computed.

use super::facts::{Column, Facts, KeyPart};
use super::guarded::Condition;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Arrival, Keep, Mode, StagingPlan, TablePlan};
use std::collections::BTreeSet;

/// The rows of one table that are checked.
#[derive(Debug, Clone)]
pub struct Rows {
    /// What the table demands.
    pub facts: Facts,
    /// A query that gives them, each with its place.
    sql: String,
    /// Where all records wait, those included that would not come.
    pub(super) waiting: String,
    pub(super) place: String,
    /// Columns whose values storing alone would tell.
    pub(super) unknown: BTreeSet<String>,
    /// Generated columns, with the items of SELECT that compute them.
    pub(super) computed: Vec<(String, String)>,
    /// The same without generated columns.
    fields_sql: String,
    /// Columns that are not generated, quoted.
    pub(super) fields: Vec<String>,
}

impl Rows {
    /// Those that would be stored when they come in this way. `None` where the staging table keeps no places.
    pub fn new(facts: Facts, plan: &TablePlan, staging: &StagingPlan, arrival: &Arrival) -> Option<Rows> {
        let place = quote_ident(&staging.place.as_ref()?.name);
        let is_filled = |column: &&Column| plan.fields.iter().flatten().any(|field| *field == column.name);
        let (filled, rest): (Vec<&Column>, Vec<&Column>) = facts.columns.iter().partition(is_filled);
        let (generated, defaulted): (Vec<&Column>, Vec<&Column>) =
            rest.into_iter().partition(|column| column.generated.is_some());
        let mut unknown: BTreeSet<String> = BTreeSet::new();
        unknown
            .extend(defaulted.iter().filter(|column| column.is_numbered).map(|column| column.name.clone()));
        unknown.extend(
            generated
                .iter()
                .filter(|column| column.made_from.iter().any(|name| unknown.contains(name)))
                .map(|column| column.name.clone())
                .collect::<Vec<_>>(),
        );
        let own = filled.iter().map(|column| format!("s.{}", quote_ident(&column.name)));
        let meeting =
            Meeting::of(&facts, arrival).filter(|meeting| !meeting.changes || !defaulted.is_empty());
        let default = |column: &&Column| {
            let value = column.default.as_deref().filter(|_| !unknown.contains(&column.name));
            let value = value.unwrap_or("NULL");
            match &meeting {
                Some(meeting) if meeting.changes => as_column(&meeting.or_as_it_is(value, column), column),
                _ => as_column(value, column),
            }
        };
        let fields: Vec<String> = own.chain(defaulted.iter().map(default)).collect();
        let stored = quote_relation(&staging.relation);
        let from = meeting.as_ref().map_or_else(String::new, Meeting::sql);
        let fields_sql = match facts.columns.is_empty() {
            true => format!("SELECT s.* FROM {stored} AS s"),
            false => format!("SELECT s.{place}, {} FROM {stored} AS s{from}", fields.join(", ")),
        };
        let names = filled.iter().chain(&defaulted).map(|column| quote_ident(&column.name)).collect();
        let compute = |column: &&Column| {
            let value = column.generated.as_deref().filter(|_| !unknown.contains(&column.name));
            as_column(value.unwrap_or("NULL"), column)
        };
        let computed: Vec<(String, String)> =
            generated.iter().map(|column| (column.name.clone(), compute(column))).collect();
        let mut sql = fields_sql.clone();
        if !generated.is_empty() {
            let items: Vec<&str> = computed.iter().map(|(_, item)| item.as_str()).collect();
            let alias = quote_ident(&facts.relation.name);
            sql = format!("SELECT {alias}.*, {} FROM ({sql}) AS {alias}", items.join(", "));
        }
        Some(Rows { sql, waiting: stored, place, unknown, computed, fields_sql, fields: names, facts })
    }

    /// The rows as an item of FROM, under the name of their table, by which expressions may call a whole row.
    pub(super) fn from(&self) -> String {
        format!("({}) AS {}", self.sql, quote_ident(&self.facts.relation.name))
    }

    /// Each row must meet this.
    pub(super) fn condition(&self, expression: &str, code: &'static str, failing: String) -> Condition {
        let alias = quote_ident(&self.facts.relation.name);
        Condition {
            from: format!("({}) AS {alias}", self.fields_sql),
            alias,
            place: self.place.clone(),
            fields: self.fields.clone(),
            computed: self.computed.iter().map(|(_, item)| item.clone()).collect(),
            expression: expression.to_owned(),
            code,
            failing,
        }
    }

    /// Of several records of a key one counts: the first or last of those that were not refused. Which that
    /// is, a load that leaves out records knows when no more are refused; only then it takes the others away.
    /// See [`crate::arrival::duplicates`].
    pub(super) fn counts(&self, arrival: &Arrival) -> Option<String> {
        let order = match arrival.keep {
            _ if !arrival.has_key() => return None,
            Keep::Error => return None,
            Keep::First => "",
            Keep::Last => " DESC",
        };
        let (place, waiting) = (&self.place, &self.waiting);
        let unique = self.facts.uniques.iter().find(|unique| unique.is_on(&arrival.key))?;
        let (same, by_key) = unique.repeats(unique.parts.iter().map(KeyPart::quoted), place);
        Some(format!(
            "{place} IN (SELECT d.place FROM (SELECT {place} AS place, ({same}) IS NOT TRUE AS counts FROM {waiting} \
                 WINDOW w AS (ORDER BY {by_key}, {place}{order})) AS d \
             WHERE d.counts)"
        ))
    }

    /// Some of these columns' values are not known.
    pub(super) fn unknown_of<'a>(&self, columns: &'a [String]) -> Option<&'a String> {
        columns.iter().find(|name| self.unknown.contains(*name))
    }
}

/// How a row `s` that waits and the row `t` of the table that has its key meet.
struct Meeting {
    /// It is changed; otherwise the row that waits does not come.
    changes: bool,
    table: String,
    /// A column of the key, which is not NULL where there is such a row.
    first: String,
    same_key: String,
}

impl Meeting {
    /// `None` where rows are not told apart.
    fn of(facts: &Facts, arrival: &Arrival) -> Option<Meeting> {
        let unique = facts.uniques.iter().find(|unique| arrival.has_key() && unique.is_on(&arrival.key))?;
        let same = |part: &KeyPart| {
            let equals = part.equals.as_deref().unwrap_or("=");
            format!("t.{0} {equals} s.{0}", part.expression)
        };
        let only = if facts.is_partitioned { "" } else { "ONLY " };
        Some(Meeting {
            changes: arrival.mode == Mode::Merge,
            table: format!("{only}{}", quote_relation(&facts.relation)),
            first: unique.parts.first()?.expression.clone(),
            same_key: unique.parts.iter().map(same).collect::<Vec<_>>().join(" AND "),
        })
    }

    /// What follows FROM, behind the rows that wait.
    fn sql(&self) -> String {
        let Meeting { changes, table, same_key, .. } = self;
        match changes {
            true => format!(" LEFT JOIN {table} AS t ON {same_key}"),
            false => format!(" WHERE NOT EXISTS (SELECT FROM {table} AS t WHERE {same_key})"),
        }
    }

    fn or_as_it_is(&self, value: &str, column: &Column) -> String {
        let name = quote_ident(&column.name);
        format!("CASE WHEN t.{} IS NULL THEN {value} ELSE t.{name} END", self.first)
    }
}

fn as_column(value: &str, column: &Column) -> String {
    format!("({value})::{} AS {}", column.type_name, quote_ident(&column.name))
}
