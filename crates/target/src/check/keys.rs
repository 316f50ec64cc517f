//! A unique key as queries of a check spell it.

use super::facts::{KeyPart, Unique};
use crate::sql::quote_ident;

impl Unique {
    /// `"k1"`, `"k2"` ...
    pub(super) fn names(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.parts.len()).map(|no| format!("k{no}"))
    }

    pub(super) fn fields(&self) -> String {
        let field = |(name, KeyPart { expression, collation, .. }): (String, &KeyPart)| {
            let collate = collation.as_ref().map(|name| format!(" COLLATE {name}")).unwrap_or_default();
            format!("{expression}{collate} AS {name}")
        };
        self.names().zip(&self.parts).map(field).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn filter(&self) -> String {
        self.predicate.as_ref().map(|predicate| format!(" WHERE {predicate}")).unwrap_or_default()
    }

    /// No part of the key is NULL.
    pub(super) fn is_whole(&self, of: &str) -> String {
        self.names().map(|name| format!("{of}.{name} IS NOT NULL")).collect::<Vec<_>>().join(" AND ")
    }

    /// Of a row among all in the order of the index, of columns of these names and of this place: it has the
    /// key of the one before, by the index's own operators, which may tell more values apart than the type's
    /// (which PARTITION BY would go by), or fewer. And the order of the key, for window `w`.
    pub(super) fn repeats(&self, names: impl Iterator<Item = String>, place: &str) -> (String, String) {
        let (mut same, mut order) = (vec![format!("pg_catalog.lag({place}) OVER w IS NOT NULL")], Vec::new());
        for (name, part) in names.zip(&self.parts) {
            let (equals, less) = (part.equals.as_deref().unwrap_or("="), part.less.as_deref().unwrap_or("<"));
            let before = format!("pg_catalog.lag({name}) OVER w");
            same.push(match self.nulls_alike {
                true => format!("({before} {equals} {name} OR ({before} IS NULL AND {name} IS NULL))"),
                false => format!("{before} {equals} {name}"),
            });
            order.push(format!("{name} USING {less}"));
        }
        (same.join(" AND "), order.join(", "))
    }

    /// It is on exactly these columns, as the table has them.
    pub(super) fn is_on(&self, key: &[String]) -> bool {
        let mut own: Vec<String> = self.parts.iter().map(KeyPart::quoted).collect();
        let mut wanted: Vec<String> = key.iter().map(|name| quote_ident(name)).collect();
        own.sort();
        wanted.sort();
        self.predicate.is_none() && !self.is_collated_otherwise && own == wanted
    }
}

impl KeyPart {
    /// The server quotes only where it must.
    pub(super) fn quoted(&self) -> String {
        match self.expression.starts_with('"') {
            true => self.expression.clone(),
            false => quote_ident(&self.expression),
        }
    }

    /// It is this column.
    pub(super) fn is(&self, column: &str) -> bool {
        self.quoted() == quote_ident(column)
    }
}
