//! The statements by which rows of a staging table come into their table. All names are quoted; no value stands in them.

use super::table::{Column, Into};
use crate::sql::{quote_columns, quote_ident, quote_relation};
use std::ops::Range;

impl Into {
    /// `"t"` with its partitions, or ONLY the table itself without tables that inherit from it: a key is unique in
    /// one table alone.
    fn target(&self) -> String {
        let only = if self.partitioned { "" } else { "ONLY " };
        format!("{only}{}", quote_relation(&self.relation))
    }

    fn staging(&self) -> String {
        quote_relation(&self.staging.relation)
    }

    /// The columns that the files fill.
    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    pub(super) fn key_names(&self) -> Vec<String> {
        self.key.iter().map(|column| column.name.clone()).collect()
    }

    /// The row `t` of the table has the key of the row `s` of the staging table.
    fn same_key(&self) -> String {
        let same = |column: &super::table::KeyColumn| {
            let name = quote_ident(&column.name);
            format!("t.{name} {} s.{name}", column.equals)
        };
        self.key.iter().map(same).collect::<Vec<_>>().join(" AND ")
    }

    /// The rows `t` and `s` differ in how some column is stored. Where equality calls values the same that are written
    /// differently (1.0 and 1.00), or there is none (json), their images are compared.
    fn differs(&self) -> String {
        let (plain, others): (Vec<&Column>, Vec<&Column>) = self.others().partition(|column| column.is_plain);
        let distinct = |column: &&Column| {
            let name = quote_ident(&column.name);
            format!("t.{name} IS DISTINCT FROM s.{name}")
        };
        let mut differences: Vec<String> = plain.iter().map(distinct).collect();
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

    /// Changes rows of the table whose key a row of these pages has and that differ from it; `None` where the files fill
    /// the key alone.
    pub(super) fn update_sql(&self, pages: &Range<u64>) -> Option<String> {
        self.others().next()?;
        let set = |column: &Column| {
            let name = quote_ident(&column.name);
            format!("{name} = s.{name}")
        };
        let set: Vec<String> = self.others().map(set).collect();
        Some(format!(
            "UPDATE {} AS t SET {} FROM {} AS s WHERE {} AND {} AND ({})",
            self.target(),
            set.join(", "),
            self.staging(),
            of_pages(pages),
            self.same_key(),
            self.differs()
        ))
    }

    /// Inserts rows of these pages whose key is not there.
    pub(super) fn insert_missing_sql(&self, pages: &Range<u64>) -> String {
        format!(
            "INSERT INTO {} ({}){} SELECT {} FROM {} ON CONFLICT ({}) DO NOTHING",
            quote_relation(&self.relation),
            quote_columns(&self.names()),
            self.overriding(),
            self.fields(),
            self.missing(pages),
            quote_columns(&self.key_names())
        )
    }

    /// Counts rows of these pages whose key is not there.
    pub(super) fn count_missing_sql(&self, pages: &Range<u64>) -> String {
        format!("SELECT pg_catalog.count(*) FROM {}", self.missing(pages))
    }

    fn missing(&self, pages: &Range<u64>) -> String {
        format!(
            "{} AS s WHERE {} AND NOT EXISTS (SELECT FROM {} AS t WHERE {})",
            self.staging(),
            of_pages(pages),
            self.target(),
            self.same_key()
        )
    }

    /// Inserts all rows.
    pub(super) fn insert_all_sql(&self) -> String {
        format!(
            "INSERT INTO {} ({}){} SELECT {} FROM {} AS s",
            quote_relation(&self.relation),
            quote_columns(&self.names()),
            self.overriding(),
            self.fields(),
            self.staging()
        )
    }

    /// Deletes rows of the table whose key no row has.
    pub(super) fn delete_missing_sql(&self) -> String {
        format!(
            "DELETE FROM {} AS t WHERE NOT EXISTS (SELECT FROM {} AS s WHERE {})",
            self.target(),
            self.staging(),
            self.same_key()
        )
    }

    pub(super) fn count_sql(&self, pages: &Range<u64>) -> String {
        format!("SELECT pg_catalog.count(*) FROM {} AS s WHERE {}", self.staging(), of_pages(pages))
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

fn of_pages(pages: &Range<u64>) -> String {
    format!(
        "s.ctid >= '({},0)'::pg_catalog.tid AND s.ctid < '({},0)'::pg_catalog.tid",
        pages.start, pages.end
    )
}
