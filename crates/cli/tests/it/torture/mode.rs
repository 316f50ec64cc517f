//! What a load does to the rows that are there, and to records that do not fit.

use super::faults::Fault;
use super::shape::Shape;
use super::written::Written;
use fastrand::Rng;

/// How rows reach the table, and what becomes of bad records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) arrival: Arrival,
    /// All at once.
    pub(super) atomic: bool,
    pub(super) on_error: OnError,
}

/// How rows reach the table. A further mode is a variant here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// They are added.
    Append,
    /// The table is emptied first.
    Truncate { freeze: bool },
    /// Another table takes its place.
    Replace,
    /// They change rows of the same key; rows without a record may go.
    Merge { key: &'static str, keep: Keep, deletes: bool },
    /// They are added where there is no row of the same key.
    InsertNew { key: &'static str, keep: Keep },
    /// The load makes the table.
    Make { freeze: bool },
}

/// Which of several records of a key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// There is but one.
    Only,
    First,
    Last,
}

/// What becomes of records that do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnError {
    /// There are none.
    Stop,
    /// They are kept aside.
    Skip,
    /// They are mended or left out.
    Lenient,
}

/// So many rows are there before a load, with ids from 1 on.
pub(super) const OLD_ROWS: u64 = 500;
const OLD_SQL: &str = "INSERT INTO t (id, part, score, amount, day, note) \
    SELECT i, i % 256, -i, i / 100.0, '2023-01-01', 'old' FROM generate_series(1, 500) i;";
const OLD_STAY_SQL: &str = "INSERT INTO wanted (id, part, score, amount, day, note) \
    SELECT id, part, score, amount, day, note FROM t;";
/// Some rows of the files are there already, with other values.
const OTHER_VALUES_SQL: &str = "INSERT INTO t (id, part, score, amount, day, note) \
    SELECT id, part, score + 1, amount, NULL, 'other' FROM wanted WHERE id >= 1000 AND id % 3 = 0;";

impl Mode {
    pub(super) const APPEND: Mode = Mode { arrival: Arrival::Append, atomic: false, on_error: OnError::Stop };

    pub(super) fn draw(random: &mut Rng, shape: Shape, written: Written, fault: Fault) -> Mode {
        let mut arrival = Arrival::draw(random, shape);
        // Two tables, and the indexes of both, are there at once where there is no room: left to chance, a
        // night may not see that.
        if fault == Fault::DiskFull && shape.can_be_replaced() && random.u8(..3) == 0 {
            arrival = Arrival::Replace;
        }
        if shape == Shape::Kin && arrival == Arrival::Append {
            // Chunks of the one table may come before those rows of the other that they refer to.
            return Mode { arrival, atomic: true, on_error: OnError::Stop };
        }
        let can_be_atomic =
            matches!(arrival, Arrival::Append | Arrival::Merge { .. } | Arrival::InsertNew { .. })
                && !shape.is_dated();
        let on_error = match random.u8(..10) {
            // What is too long or too large widens the column, and what a column is there for is not known
            // before.
            _ if !arrival.can_leave_out() || shape.is_evolved() => OnError::Stop,
            // What refers to a bad record is bad as well.
            _ if shape == Shape::Kin => OnError::Stop,
            0..4 if shape != Shape::Absent => OnError::Skip,
            4..6 if !written.is_told() => OnError::Lenient,
            _ => OnError::Stop,
        };
        let atomic = can_be_atomic && random.u8(..3) == 0;
        let mode = Mode { arrival, atomic, on_error };
        // Queries would have to tell what a trigger makes of a row.
        let asks = mode.is_staged() && on_error == OnError::Skip && shape.is_amended();
        Mode { on_error: if asks { OnError::Stop } else { on_error }, ..mode }
    }

    /// Options of the command.
    pub(super) fn arguments(self) -> Vec<&'static str> {
        let mut words = self.arrival.arguments();
        words.extend(self.atomic.then_some("--atomic"));
        match self.on_error {
            OnError::Stop => {}
            OnError::Skip => words.extend(["--on-error", "skip"]),
            OnError::Lenient => words.push("--lenient"),
        }
        words
    }

    /// Rows wait until all of them are there.
    pub(super) fn is_staged(self) -> bool {
        self.atomic
            || matches!(self.arrival, Arrival::Replace | Arrival::Merge { .. } | Arrival::InsertNew { .. })
    }
}

impl Arrival {
    fn draw(random: &mut Rng, shape: Shape) -> Arrival {
        let keep = [Keep::Only, Keep::Only, Keep::First, Keep::Last][random.usize(..4)];
        // A row whose key is another one's is missing where others refer to it.
        let keep = if shape == Shape::Kin { Keep::Only } else { keep };
        let coin = random.bool();
        if shape == Shape::Absent {
            return Arrival::Make { freeze: coin };
        }
        match (random.u8(..10), shape.key()) {
            // What was in the table before, a crash may take.
            _ if shape == Shape::Unlogged => Arrival::Truncate { freeze: coin },
            (0, _) if !shape.is_referred_to() => Arrival::Truncate { freeze: false },
            (1, _) if !shape.is_dated() && !shape.is_referred_to() => Arrival::Truncate { freeze: true },
            (2, _) if shape.can_be_replaced() => Arrival::Replace,
            (3..6, Some(key)) => Arrival::Merge { key, keep, deletes: coin },
            (6, Some(key)) => Arrival::InsertNew { key, keep },
            _ => Arrival::Append,
        }
    }

    /// Records may be left out, and the model still knows what comes of it.
    fn can_leave_out(self) -> bool {
        !self.is_frozen()
            && self.keep() == Keep::Only
            && !matches!(self, Arrival::Merge { deletes: true, .. })
    }

    /// All rows of a table come in one transaction.
    pub(super) fn is_frozen(self) -> bool {
        matches!(self, Arrival::Truncate { freeze: true } | Arrival::Make { freeze: true })
    }

    pub(super) fn keep(self) -> Keep {
        match self {
            Arrival::Merge { keep, .. } | Arrival::InsertNew { keep, .. } => keep,
            _ => Keep::Only,
        }
    }

    /// By which a row is the one of a record.
    pub(super) fn key(self) -> Option<&'static str> {
        match self {
            Arrival::Merge { key, .. } | Arrival::InsertNew { key, .. } => Some(key),
            _ => None,
        }
    }

    fn arguments(self) -> Vec<&'static str> {
        let mut words = match self {
            Arrival::Append => vec![],
            Arrival::Truncate { .. } => vec!["--mode", "truncate"],
            Arrival::Replace => vec!["--mode", "replace"],
            Arrival::Merge { key, .. } => vec!["--mode", "merge", "--key", key],
            Arrival::InsertNew { key, .. } => vec!["--mode", "insert-new", "--key", key],
            Arrival::Make { .. } => vec!["--create"],
        };
        words.extend(self.is_frozen().then_some("--freeze"));
        words.extend(matches!(self, Arrival::Merge { deletes: true, .. }).then_some("--delete-missing"));
        match self.keep() {
            Keep::Only => {}
            Keep::First => words.extend(["--keep", "first"]),
            Keep::Last => words.extend(["--keep", "last"]),
        }
        words
    }

    /// Run when `t` is there and `wanted` holds the rows of the files: what was in `t` before, and what that
    /// and the files must come to.
    pub(super) fn prepare_sql(self) -> String {
        match self {
            Arrival::Make { .. } => String::new(),
            Arrival::Append => format!("{OLD_SQL} {OLD_STAY_SQL}"),
            Arrival::Truncate { .. } | Arrival::Replace => OLD_SQL.to_owned(),
            Arrival::Merge { deletes: true, .. } => format!("{OLD_SQL} {OTHER_VALUES_SQL}"),
            Arrival::Merge { .. } => format!("{OLD_SQL} {OLD_STAY_SQL} {OTHER_VALUES_SQL}"),
            Arrival::InsertNew { .. } => format!(
                "{OLD_SQL} {OLD_STAY_SQL} {OTHER_VALUES_SQL} \
                 UPDATE wanted w SET (score, day, note) = (t.score, t.day, t.note) FROM t WHERE t.id = w.id;"
            ),
        }
    }
}
