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
