//! What generated columns demand of rows: that they can be computed, and that what comes of it fits.

use super::super::facts::Column;
use super::OfTable;
use crate::sql::quote_ident;
use howdah_model::sqlstate;

impl OfTable<'_> {
    /// Generated columns that are stored are computed when a row is, and may fail.
    pub(super) fn generated(&mut self) {
        let facts = self.facts();
        let is_stored =
            |name: &String| facts.columns.iter().any(|column| column.name == *name && !column.is_virtual);
        for (name, _) in self.rows.computed.iter().filter(|(name, _)| is_stored(name)) {
            let column = quote_ident(name);
            let reason = format!("generated column {name} cannot be computed");
            let sql = self.where_not(&format!("pg_catalog.num_nulls({column}) < 0"));
            // Never false: it only may fail.
            let met = format!("pg_catalog.num_nulls({column}) >= 0");
            let condition = self.rows.condition(&met, sqlstate::CHECK_VIOLATION, reason.clone());
            let rule = self.add(sqlstate::CHECK_VIOLATION, name, reason, sql);
            (rule.column, rule.constraint) = (rule.constraint.take(), None);
            rule.condition = Some(condition);
        }
    }

    /// The server cuts nothing but spaces off a value that it computes for `varchar(3)`; the cast by which
    /// the rows are completed does.
    pub(super) fn too_long_for_generated(&mut self) {
        if !self.in_full {
            return;
        }
        let rows = self.rows;
        let is_known = |column: &&Column| {
            let is_computed = rows.computed.iter().any(|(name, _)| *name == column.name);
            is_computed && !column.is_virtual && !rows.unknown.contains(&column.name)
        };
        let narrow = rows
            .facts
            .columns
            .iter()
            .filter(is_known)
            .filter_map(|column| Some((column, column.generated.as_ref()?, column.characters_max?)));
        for (column, value, characters_max) in narrow {
            let reason = format!("value too long for generated column {}, {}", column.name, column.type_name);
            let met = format!(
                "coalesce(pg_catalog.btrim(pg_catalog.substr(({value})::pg_catalog.text, {}), ' ') = '', true)",
                characters_max.saturating_add(1)
            );
            let failing = format!("generated column {} cannot be computed", column.name);
            let condition = self.rows.condition(&met, sqlstate::STRING_DATA_RIGHT_TRUNCATION, failing);
            let sql = self.where_not(&format!("NOT ({met})"));
            let rule = self.add(sqlstate::STRING_DATA_RIGHT_TRUNCATION, &column.name, reason, sql);
            (rule.column, rule.constraint) = (rule.constraint.take(), None);
            rule.condition = Some(condition);
        }
    }
}
