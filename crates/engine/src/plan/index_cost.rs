//! What it costs the server to keep an index while rows come, and to build it behind them; and what triggers
//! cost.
//!
//! Measured by `bench/index_costs.py`: PostgreSQL 15, two cores of an AMD EPYC, 1 GB of `shared_buffers`, one
//! session, medians of three; the table is in docs/decisions/2026-11-22-indexes.md. Nobody knows in which
//! order the keys will come, and keys that rise cost a fifth of those that jump, so figures are geometric
//! means over orders. Several sessions that keep an index get in each other's way, and builds run side by
//! side: what is counted here is the least that is gained.

use howdah_target::undo::capture::Index;

/// Of the cost of keeping, so much must be saved: figures are no better than that.
const GAIN_MIN: f64 = 0.1;
/// Less, of all that is dropped of a table, is not worth a lock on it.
const GAIN_MIN_S: f64 = 0.5;

/// CPU seconds of the server for both ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    pub(super) keep_s: f64,
    pub(super) build_s: f64,
}

/// Both ways, for an index of a table with so many rows and so many to come; `None` for what was not
/// measured.
pub(super) fn of_index(index: &Index, rows_there: f64, rows_to_come: f64) -> Option<Costs> {
    let (keep_ns, build_ns) = of_row(&index.method, index.long_keys)?;
    Some(Costs {
        keep_s: rows_to_come * keep_ns / 1e9,
        build_s: (rows_there + rows_to_come) * build_ns / 1e9 + of_parts_s(parts(index)),
    })
}

/// Dropping an index of one partition, noting it in the journal, building it and attaching it, whatever it
/// holds: 300 to 1,000 parts of 10 rows took 10 to 36 ms each.
const PART_S: f64 = 0.02;

/// How many indexes of partitions belong to an index of the whole table.
pub(super) fn parts(index: &Index) -> usize {
    if index.of_partition { 0 } else { index.oids.len().saturating_sub(1) }
}

/// What so many of them take beside the rows.
pub(super) fn of_parts_s(parts: usize) -> f64 {
    parts as f64 * PART_S
}

/// Nanoseconds a row, kept and built.
fn of_row(method: &str, long_keys: bool) -> Option<(f64, f64)> {
    match (method, long_keys) {
        ("btree", false) => Some((950.0, 430.0)),
        ("btree", true) => Some((1700.0, 900.0)),
        ("hash", _) => Some((1600.0, 1455.0)),
        ("gin", _) => Some((6900.0, 5800.0)),
        ("gist", _) => Some((3720.0, 1571.0)),
        ("spgist", _) => Some((2600.0, 2514.0)),
        ("brin", _) => Some((210.0, 155.0)),
        _ => None,
    }
}

/// A key of an empty table might be worth building behind so many rows, whatever its columns are.
pub(super) fn may_be_worth_it(rows_to_come: f64) -> bool {
    [false, true].into_iter().filter_map(|long_keys| of_row("btree", long_keys)).any(|(keep_ns, build_ns)| {
        let costs = Costs { keep_s: rows_to_come * keep_ns / 1e9, build_s: rows_to_come * build_ns / 1e9 };
        is_worth_it(&costs, gain_s(&costs))
    })
}

/// Nanoseconds a row that a foreign key takes to check.
const FOREIGN_KEY_NS: f64 = 3570.0;

/// The same for a foreign key of a table that was empty.
pub(super) fn of_foreign_key(rows_to_come: f64) -> Costs {
    Costs { keep_s: rows_to_come * FOREIGN_KEY_NS / 1e9, build_s: rows_to_come * 240.0 / 1e9 }
}

/// CPU seconds of a foreign key that is checked row by row.
pub(super) fn of_checks_s(rows_to_come: f64) -> f64 {
    rows_to_come * FOREIGN_KEY_NS / 1e9
}

/// CPU seconds that it takes to call a trigger in PL/pgSQL for each row, whatever it does then.
pub(super) fn of_trigger_s(before: bool, rows_to_come: f64) -> f64 {
    let call_ns = if before { 840.0 } else { 550.0 };
    rows_to_come * call_ns / 1e9
}

/// CPU seconds that building anew saves, where figures are good enough to tell; else none.
pub(super) fn gain_s(costs: &Costs) -> f64 {
    let Costs { keep_s, build_s } = costs;
    let gain_s = keep_s - build_s;
    if gain_s > GAIN_MIN * keep_s { gain_s } else { 0.0 }
}

/// Building anew saves something, and together with the others of the table enough.
pub(super) fn is_worth_it(costs: &Costs, gain_of_table_s: f64) -> bool {
    gain_s(costs) > 0.0 && gain_of_table_s > GAIN_MIN_S
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth_it(method: &str, there: f64, to_come: f64) -> bool {
        let (keep_ns, build_ns) = of_row(method, false).unwrap();
        let costs = Costs { keep_s: to_come * keep_ns / 1e9, build_s: (there + to_come) * build_ns / 1e9 };
        is_worth_it(&costs, gain_s(&costs))
    }

    #[test]
    fn a_few_rows_on_top_of_many_keep_and_many_into_an_empty_table_rebuild() {
        assert!(!worth_it("btree", 4e6, 4e4));
        assert!(worth_it("btree", 0.0, 4e6));
        assert!(!worth_it("btree", 0.0, 1e4));
    }

    /// One lock is for all of them.
    #[test]
    fn many_that_save_little_each_are_built_together() {
        let little = Costs { keep_s: 0.05, build_s: 0.02 };
        assert!(!is_worth_it(&little, gain_s(&little)));
        assert!(is_worth_it(&little, 20.0 * gain_s(&little)));
        let nothing = Costs { keep_s: 0.05, build_s: 0.049 };
        assert!(!is_worth_it(&nothing, 20.0));
    }

    #[test]
    fn what_is_as_quickly_kept_is_kept() {
        assert!(!worth_it("hash", 0.0, 1e8) && !worth_it("spgist", 0.0, 1e8));
        assert_eq!(of_row("ivfflat", true), None);
    }

    #[test]
    fn foreign_keys_of_many_rows_are_validated_at_once() {
        let is_worth_it = |rows| gain_s(&of_foreign_key(rows)) > GAIN_MIN_S;
        assert!(is_worth_it(1e6) && !is_worth_it(1e4));
    }
}
