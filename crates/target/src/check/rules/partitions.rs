//! What partitions demand of rows: that one takes them, and what it has that its table has not.

use super::super::facts::Leaf;
use super::OfTable;
use crate::sql::quote_ident;
use howdah_model::sqlstate;

/// Partitions whose bounds one query asks about: of more, the statement would be longer than is good for the
/// server.
const LEAVES_MAX: usize = 1000;

impl OfTable<'_> {
    /// The bounds of the table, being a partition, and those of its partitions.
    pub(super) fn partitions(&mut self) {
        if let Some(bounds) = &self.facts().bounds {
            let table = self.facts().relation.name.clone();
            self.condition(&table, "the partition's bounds", bounds);
        }
        let leaves = &self.facts().leaves;
        let takes: Option<Vec<&String>> = leaves.iter().map(|leaf| leaf.takes.as_ref()).collect();
        let Some(takes) = takes.filter(|_| self.facts().is_partitioned) else { return };
        let what = "whether a partition takes the rows".to_owned();
        if self.makes_partitions {
            self.in_no_range();
            return self.not_checked(what, "--create-partitions makes those that are missing");
        }
        if leaves.len() > LEAVES_MAX {
            return self.not_checked(what, format!("there are {} partitions", leaves.len()));
        }
        let misses: Vec<String> = takes.iter().map(|takes| format!("({takes}) IS NOT TRUE")).collect();
        let all_miss = if misses.is_empty() { "true".to_owned() } else { misses.join(" AND ") };
        let (sql, table) = (self.where_not(&all_miss), self.facts().relation.name.clone());
        self.add(sqlstate::CHECK_VIOLATION, &table, "no partition takes it".to_owned(), sql);
    }

    /// NULL lies in no range, so that no partition can be made for it. No trigger fills it in time: rows are
    /// routed before.
    fn in_no_range(&mut self) {
        let Some(column) = self.facts().ranged_by.clone() else { return };
        if self.is_unknown("whether a partition can be made", std::slice::from_ref(&column)) {
            return;
        }
        let name = quote_ident(&column);
        let sql = self.where_not(&format!("{name} IS NULL"));
        let (table, reason) =
            (self.facts().relation.name.clone(), format!("no partition takes NULL in column {column}"));
        self.add(sqlstate::CHECK_VIOLATION, &table, reason, sql);
        let leaves = &self.facts().leaves;
        if leaves.len() > LEAVES_MAX {
            return;
        }
        // For these days none is made: the client reads days of the years 1 to 9999.
        let far = format!("({name} < '0001-01-01' OR {name} >= '10000-01-01')");
        let misses = leaves
            .iter()
            .filter_map(|leaf| leaf.takes.as_ref())
            .map(|takes| format!("({takes}) IS NOT TRUE"));
        let far: Vec<String> = std::iter::once(far).chain(misses).collect();
        let sql = self.where_not(&far.join(" AND "));
        let reason = format!(
            "no partition takes it, and none is made for infinity and days outside the years 1 to 9999 in column {column}"
        );
        self.add(sqlstate::CHECK_VIOLATION, &table, reason, sql);
    }

    /// Partitions may demand a column that the table does not.
    pub(super) fn not_null_in_leaves(&mut self) {
        for (name, leaves) in self.facts().not_null_in_leaves() {
            if self.rows.unknown.contains(name) {
                continue;
            }
            let what = format!("NOT NULL of column {name} in partitions");
            if let Some(reason) = self.why_untold(&leaves) {
                self.not_checked(what, reason);
                continue;
            }
            let mut met = format!("{} IS NOT NULL", quote_ident(name));
            if leaves.iter().all(|leaf| leaf.takes.is_some()) {
                let takes = leaves.iter().filter_map(|leaf| leaf.takes.as_ref());
                let elsewhere: Vec<String> = takes.map(|takes| format!("({takes}) IS NOT TRUE")).collect();
                met += &format!(" OR ({})", elsewhere.join(" AND "));
            }
            let sql = self.where_not(&format!("NOT ({met})"));
            let condition = self.rows.condition(
                &met,
                sqlstate::NOT_NULL_VIOLATION,
                format!("{what} cannot be evaluated"),
            );
            let reason = format!("NULL in column {name}, which is NOT NULL in the partition that takes it");
            let rule = self.add(sqlstate::NOT_NULL_VIOLATION, name, reason, sql);
            rule.condition = Some(condition);
            (rule.column, rule.constraint) = (rule.constraint.take(), None);
        }
    }

    /// Why no query tells what these partitions demand of rows that go there.
    fn why_untold(&self, leaves: &[&Leaf]) -> Option<String> {
        if self.facts().is_changed {
            return Some("a BEFORE INSERT trigger may fill it".to_owned());
        }
        if leaves.len() > LEAVES_MAX {
            return Some(format!("there are {} of these", leaves.len()));
        }
        // Rather one too many: a bound is the server's text.
        let is_named = |name: &&String| {
            let name = name.replace('"', "\"\"");
            leaves.iter().any(|leaf| leaf.takes.as_ref().is_some_and(|takes| takes.contains(&name)))
        };
        let column = self.rows.unknown.iter().find(is_named)?;
        Some(format!("column {column} takes a number from a sequence when a row is stored"))
    }
}
