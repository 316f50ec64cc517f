//! Keys and other indexes on expressions, and those of some rows only: what computes them may fail for a row,
//! which then cannot be stored.

use super::super::facts::{KeyPart, Unique};
use super::OfTable;
use crate::sql::quote_ident;

impl OfTable<'_> {
    /// Asked as a condition, so that each row is looked at by itself where one fails.
    pub(super) fn computed_key(&mut self, key: &Unique) {
        self.computed(key, &format!("key {}", key.name));
    }

    /// The same of an index that is no key.
    pub(super) fn computed_index(&mut self, index: &Unique) {
        let what = format!("index {}", index.name);
        if !self.is_unknown(&what, &index.columns) {
            self.computed(index, &what);
        }
    }

    fn computed(&mut self, key: &Unique, what: &str) {
        let columns = &self.facts().columns;
        let is_column =
            |part: &KeyPart| columns.iter().any(|column| quote_ident(&column.name) == part.quoted());
        if key.predicate.is_none() && key.parts.iter().all(is_column) {
            return;
        }
        let expressions: Vec<&str> = key.parts.iter().map(|part| part.expression.as_str()).collect();
        // Never false: it only may fail.
        let is_computed = format!("pg_catalog.num_nulls({}) >= 0", expressions.join(", "));
        let met = match &key.predicate {
            Some(predicate) => format!("CASE WHEN {predicate} THEN {is_computed} ELSE true END"),
            None => is_computed,
        };
        self.condition(&key.name, what, &met);
    }
}
