//! The statements by which rows of a staging table come into their table. All names are quoted; no value
//! stands in them.

use super::table::{Column, Into, KeyColumn};
use crate::sql::{quote_columns, quote_ident, quote_relation};

/// In so many turns the rows of a range are brought in where that pays: records that stand side by side in a
/// file have different ones. See `docs/decisions/2026-11-22-merge.md` for what it gains and why it is three.
pub const TURNS: u32 = 3;

/// The row `t` is none that the open transaction has written, nor a subtransaction of it: a PL/pgSQL block
/// with EXCEPTION is one, with a number of its own behind that of the transaction. What is seen and in
/// progress is our own. Rows keep the number that they had when they were frozen, also for billions of
/// transactions: one that would be in the future, of which the server tells no state, is such an old one, if
/// [`PASS_OWN_SQL`] came right before.
const OF_OTHERS: &str = " AND CASE WHEN t.xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid THEN false \
     WHEN pg_catalog.age(t.xmin) >= 0 THEN true \
     WHEN (pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8 - pg_catalog.age(t.xmin))::pg_catalog.text::pg_catalog.xid8 \
          >= pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) THEN true \
     ELSE pg_catalog.pg_xact_status((pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8 \
          - pg_catalog.age(t.xmin))::pg_catalog.text::pg_catalog.xid8) <> 'in progress' END";

/// Behind this, all numbers of own subtransactions are before the end of the snapshot: one that writes
/// something, here a message that nobody gets, and is rolled back moves it behind itself.
pub(super) const PASS_OWN_SQL: &str = "SAVEPOINT howdah_own; \
     SELECT pg_catalog.pg_logical_emit_message(true, 'howdah', ''::pg_catalog.text); \
     ROLLBACK TO SAVEPOINT howdah_own; RELEASE SAVEPOINT howdah_own";

/// Rows whose first key column is at or behind one value and before another, both as text; all of them or
/// those of one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// The first value; `None` for all from the beginning.
    pub from: Option<String>,
    /// The first value that is not part of it any more; `None` for all to the end.
    pub to: Option<String>,
    /// Below [`TURNS`]; `None` for all.
    pub turn: Option<u32>,
    /// Of these, those whose place is the first number or behind it, and before the second.
    pub places: Option<(i64, i64)>,
    /// Rows of the table are looked up by their key, one by one.
    pub looked_up: bool,
}

impl Span {
    /// The range of this number of those that the borders cut.
    pub fn of_range(no: u32, borders: &[String]) -> Span {
        let border = |no: u32| borders.get(no as usize).cloned();
        Span { from: no.checked_sub(1).and_then(border), to: border(no), ..Span::default() }
    }

    /// What the statements of this span take as `$1` and `$2`.
    pub(super) fn values(&self) -> Vec<&String> {
        self.from.iter().chain(&self.to).collect()
    }
}

impl Into {
    /// `"t"` with its partitions, or ONLY the table itself without tables that inherit from it: a key is
    /// unique in one table alone.
    pub(super) fn target(&self) -> String {
        let only = if self.partitioned { "" } else { "ONLY " };
        format!("{only}{}", quote_relation(&self.relation))
    }

    fn staging(&self) -> String {
        quote_relation(&self.staging.relation)
    }

    /// The columns that the files fill.
    pub(super) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    pub(super) fn key_names(&self) -> Vec<String> {
        self.key.iter().map(|column| column.name.clone()).collect()
    }

    /// The row `t` of the table has the key of the row `s` of the staging table.
    pub(super) fn same_key(&self) -> String {
        let same = |column: &KeyColumn| {
            let name = quote_ident(&column.name);
            format!("t.{name} {} s.{name}", column.operators[0])
        };
        self.key.iter().map(same).collect::<Vec<_>>().join(" AND ")
    }

    /// The rows `t` and `s` differ in how some column is stored. Where equality calls values the same that
    /// are written differently (1.0 and 1.00), or there is none (json), their images are compared.
    pub(super) fn differs(&self) -> String {
        let others: Vec<&Column> = self.others().filter(|column| column.plain_as.is_none()).collect();
        let distinct = |column: &Column| {
            let (name, cast) = (quote_ident(&column.name), column.plain_as.as_ref()?);
            Some(format!("t.{name}{cast} IS DISTINCT FROM s.{name}{cast}"))
        };
        let mut differences: Vec<String> = self.others().filter_map(distinct).collect();
        if !others.is_empty() {
            let row = |of: &str| {
                let fields: Vec<String> =
                    others.iter().map(|column| format!("{of}.{}", quote_ident(&column.name))).collect();
                format!("ROW({})::pg_catalog.record", fields.join(", "))
            };
            differences.push(format!("{} OPERATOR(pg_catalog.*<>) {}", row("t"), row("s")));
        }
        differences.join(" OR ")
    }

    /// Changes rows of the table whose key a row of this span has and that differ from it, if so asked only
    /// those that the open transaction has not written; `None` where the files fill the key alone.
    pub(super) fn update_sql(&self, span: &Span, only_others: bool) -> Option<String> {
        self.others().next()?;
        let set = |column: &Column| {
            let name = quote_ident(&column.name);
            format!("{name} = s.{name}")
        };
        let set: Vec<String> = self.others().map(set).collect();
        Some(format!(
            "UPDATE {} AS t SET {} FROM {} AS s WHERE {} AND {} AND {} AND ({}){}",
            self.target(),
            set.join(", "),
            self.staging(),
            self.waiting(span),
            self.within_table(span),
            self.same_key(),
            self.differs(),
            if only_others { OF_OTHERS } else { "" }
        ))
    }

    /// Counts rows of the table that differ from that of this span with their key, though they were to be
    /// changed: what the open transaction has written is what a trigger has made of it. `None` where nothing
    /// is changed.
    pub(super) fn count_held_back_sql(&self, span: &Span) -> Option<String> {
        self.others().next()?;
        Some(format!(
            "SELECT pg_catalog.count(*) FROM {} AS t, {} AS s WHERE {} AND {} AND {} AND ({}){OF_OTHERS}",
            self.target(),
            self.staging(),
            self.waiting(span),
            self.within_table(span),
            self.same_key(),
            self.differs()
        ))
    }

    /// Inserts rows of this span whose key is not there.
    pub(super) fn insert_missing_sql(&self, span: &Span) -> String {
        format!(
            "INSERT INTO {} ({}){} SELECT {} FROM {} ON CONFLICT ({}) DO NOTHING",
            quote_relation(&self.relation),
            quote_columns(&self.names()),
            self.overriding(),
            self.fields(),
            self.missing(span),
            self.arbiter()
        )
    }

    /// The columns with collation and operator class: without, all unique indexes on these columns would be
    /// meant, by one of which two keys may be the same that the key tells apart, and rows go unnoticed.
    fn arbiter(&self) -> String {
        let column = |column: &KeyColumn| {
            format!("{}{} {}", quote_ident(&column.name), column.collate(), column.operator_class)
        };
        self.key.iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// Changes rows and inserts those whose key is not there, as of one moment, and tells how many: only
    /// behind both do triggers AFTER INSERT and the checks of foreign keys see the rows. `None` where nothing
    /// is changed.
    pub(super) fn update_and_insert_sql(&self, span: &Span) -> Option<String> {
        let (update, insert) = (self.update_sql(span, false)?, self.insert_missing_sql(span));
        Some(format!(
            "WITH u AS ({update} RETURNING 1), i AS ({insert} RETURNING 1) \
             SELECT (SELECT pg_catalog.count(*) FROM u), (SELECT pg_catalog.count(*) FROM i)"
        ))
    }

    /// Counts rows of this span whose key is not there.
    pub(super) fn count_missing_sql(&self, span: &Span) -> String {
        format!("SELECT pg_catalog.count(*) FROM {}", self.missing(span))
    }

    fn missing(&self, span: &Span) -> String {
        format!(
            "{} AS s WHERE {} AND NOT EXISTS (SELECT FROM {} AS t WHERE {} AND {})",
            self.staging(),
            self.waiting(span),
            self.target(),
            self.within_table(span),
            self.same_key()
        )
    }

    /// Inserts all rows of this span, which no key tells apart.
    pub(super) fn insert_all_sql(&self, span: &Span) -> String {
        format!(
            "INSERT INTO {} ({}){} SELECT {} FROM {} AS s WHERE {}",
            quote_relation(&self.relation),
            quote_columns(&self.names()),
            self.overriding(),
            self.fields(),
            self.staging(),
            self.waiting(span)
        )
    }

    /// Deletes rows of the table whose key no row has.
    pub(super) fn delete_missing_sql(&self) -> String {
        format!("DELETE FROM {}", self.surplus())
    }

    /// Counts them.
    pub(super) fn count_surplus_sql(&self) -> String {
        format!("SELECT pg_catalog.count(*) FROM {}", self.surplus())
    }

    fn surplus(&self) -> String {
        format!(
            "{} AS t WHERE NOT EXISTS (SELECT FROM {} AS s WHERE {})",
            self.target(),
            self.staging(),
            self.same_key()
        )
    }

    pub(super) fn count_sql(&self, span: &Span) -> String {
        format!("SELECT pg_catalog.count(*) FROM {} AS s WHERE {}", self.staging(), self.waiting(span))
    }

    /// The key of this row is within the span. Said of both rows of a join, it spares each part the rest of
    /// the table.
    fn within(&self, of: &str, span: &Span) -> String {
        let Some(first) = self.key.first() else { return "true".to_owned() };
        let compare = |operator: &str, number: usize| {
            let name = quote_ident(&first.name);
            // A domain may have another collation than its column: neither would come before the other.
            let (type_name, collate) = (&first.type_name, first.collate());
            format!("{of}.{name} {operator} ${number}::pg_catalog.text::{type_name}{collate}")
        };
        let from = span.from.as_ref().map(|_| compare(&first.operators[1], 1));
        let to = span.to.as_ref().map(|_| compare(&first.operators[2], 1 + usize::from(span.from.is_some())));
        let both: Vec<String> = from.into_iter().chain(to).collect();
        if both.is_empty() { "true".to_owned() } else { both.join(" AND ") }
    }

    /// The row `t` of the table may have a key of the span. Not said where rows are looked up: a planner who
    /// expects next to none in the range, since the statistics are older than they are, would go through all
    /// of it for each key.
    fn within_table(&self, span: &Span) -> String {
        if span.looked_up { "true".to_owned() } else { self.within("t", span) }
    }

    /// The row `s` of the staging table belongs to the span.
    fn waiting(&self, span: &Span) -> String {
        let mut waiting = self.within("s", span);
        let Some(place) = self.staging.place.as_ref().map(|place| quote_ident(&place.name)) else {
            return waiting;
        };
        if let Some(turn) = span.turn {
            waiting += &format!(" AND s.{place} % {TURNS}::pg_catalog.int8 = {turn}");
        }
        if let Some((from, to)) = span.places {
            waiting +=
                &format!(" AND s.{place} >= {from}::pg_catalog.int8 AND s.{place} < {to}::pg_catalog.int8");
        }
        waiting
    }

    fn fields(&self) -> String {
        let fields: Vec<String> =
            self.names().iter().map(|name| format!("s.{}", quote_ident(name))).collect();
        fields.join(", ")
    }

    /// As COPY does, whose values are taken whatever the column says.
    fn overriding(&self) -> &'static str {
        if self.overriding { " OVERRIDING SYSTEM VALUE" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_leave_nothing_out() {
        let borders: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let spans: Vec<Span> = (0..4).map(|no| Span::of_range(no, &borders)).collect();
        assert_eq!((spans[0].from.as_deref(), spans[3].to.as_deref()), (None, None));
        assert!(spans.windows(2).all(|two| two[0].to.is_some() && two[0].to == two[1].from));
        assert_eq!(Span::of_range(0, &[]), Span::default());
    }
}
