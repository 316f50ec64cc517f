//! What a load does to the rows that are there, and to records that the table refuses. A further mode is a variant here
//! and nothing elsewhere.

use super::shape::Shape;
use fastrand::Rng;

/// How rows reach the table. Where a flag says so, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are added.
    Append { atomic: bool },
    /// They are added, but for those that a CHECK refuses.
    Skip,
    /// The same all at once, or by a key.
    SkipStaged { key: Option<&'static str>, atomic: bool },
    /// The table is emptied first.
    Truncate { freeze: bool },
    /// Another table takes its place, with all rows, or with those alone that a CHECK takes.
    Replace { skips: bool },
    /// They change rows of the same key.
    Merge { key: &'static str, atomic: bool },
    /// They are added where there is no row of the same key.
    InsertNew { key: &'static str, atomic: bool },
}

/// Ids of files begin at 1,000.
const OLD_SQL: &str = "INSERT INTO t (id, part, score, amount, day, note) \
    SELECT i, i % 256, -i, i / 100.0, '2023-01-01', 'old' FROM generate_series(1, 500) i;";
const OLD_STAY_SQL: &str = "INSERT INTO model.wanted (id, part, score, amount, day, note) \
    SELECT id, part, score, amount, day, note FROM t;";
/// Some rows of the files are there already, with other values.
const OTHER_VALUES_SQL: &str = "INSERT INTO t (id, part, score, amount, day, note) \
    SELECT id, part, score + 1, amount, NULL, 'other' FROM model.wanted WHERE id >= 1000 AND id % 3 = 0;";

impl Mode {
    pub(super) fn draw(random: &mut Rng, shape: Shape) -> Mode {
        let atomic = random.bool();
        match (random.u8(..14), shape.key()) {
            (0, _) => Mode::Append { atomic: true },
            (1 | 2, _) => Mode::Skip,
            (3, _) => Mode::Truncate { freeze: false },
            (10, _) => Mode::Truncate { freeze: true },
            (4 | 11, _) if shape.can_be_replaced() => Mode::Replace { skips: atomic },
            (5 | 6, Some(key)) => Mode::Merge { key, atomic },
            (7, Some(key)) => Mode::InsertNew { key, atomic },
            (8 | 9, key) => Mode::SkipStaged { key, atomic: atomic || key.is_none() },
            _ => Mode::Append { atomic: false },
        }
    }

    /// Options of the command.
    pub(super) fn arguments(self) -> Vec<String> {
        let (words, atomic): (&[&str], bool) = match self {
            Mode::Append { atomic } => (&[], atomic),
            Mode::Skip => (&["--on-error", "skip"], false),
            Mode::SkipStaged { key: None, atomic } => (&["--on-error", "skip"], atomic),
            Mode::SkipStaged { key: Some(key), atomic } => {
                (&["--on-error", "skip", "--mode", "merge", "--key", key], atomic)
            }
            Mode::Truncate { freeze: false } => (&["--mode", "truncate"], false),
            Mode::Truncate { freeze: true } => (&["--mode", "truncate", "--freeze"], false),
            Mode::Replace { skips: false } => (&["--mode", "replace"], false),
            Mode::Replace { skips: true } => (&["--mode", "replace", "--on-error", "skip"], false),
            Mode::Merge { key, atomic } => (&["--mode", "merge", "--key", key], atomic),
            Mode::InsertNew { key, atomic } => (&["--mode", "insert-new", "--key", key], atomic),
        };
        words.iter().copied().chain(atomic.then_some("--atomic")).map(str::to_owned).collect()
    }

    /// Run when `t` is there and `model.wanted` holds the rows of the files: what was in `t` before, and what that
    /// and the files must come to.
    pub(super) fn prepare_sql(self) -> String {
        match self {
            Mode::Append { .. } => format!("{OLD_SQL} {OLD_STAY_SQL}"),
            Mode::Skip => format!(
                "{OLD_SQL} {OLD_STAY_SQL} ALTER TABLE t ADD CONSTRAINT refuses CHECK (id < 1000 OR id % 1997 <> 0); \
                 DELETE FROM model.wanted WHERE id >= 1000 AND id % 1997 = 0;"
            ),
            Mode::SkipStaged { key: None, .. } => Mode::Skip.prepare_sql(),
            Mode::SkipStaged { .. } => format!("{} {OTHER_VALUES_SQL}", Mode::Skip.prepare_sql()),
            Mode::Truncate { .. } | Mode::Replace { skips: false } => OLD_SQL.to_owned(),
            Mode::Replace { skips: true } => format!(
                "{OLD_SQL} ALTER TABLE t ADD CONSTRAINT refuses CHECK (id < 1000 OR id % 1997 <> 0); \
                 DELETE FROM model.wanted WHERE id >= 1000 AND id % 1997 = 0;"
            ),
            Mode::Merge { .. } => format!("{OLD_SQL} {OLD_STAY_SQL} {OTHER_VALUES_SQL}"),
            Mode::InsertNew { .. } => format!(
                "{OLD_SQL} {OLD_STAY_SQL} {OTHER_VALUES_SQL} \
                 UPDATE model.wanted w SET (score, day, note) = (t.score, t.day, t.note) FROM t WHERE t.id = w.id;"
            ),
        }
    }

    /// Rows wait until all of them are there.
    pub(super) fn is_staged(self) -> bool {
        match self {
            Mode::Append { atomic } => atomic,
            Mode::Skip | Mode::Truncate { .. } => false,
            Mode::SkipStaged { .. } | Mode::Replace { .. } | Mode::Merge { .. } | Mode::InsertNew { .. } => {
                true
            }
        }
    }

    /// Each row that there is came by one INSERT into the table.
    pub(super) fn inserts_all(self) -> bool {
        matches!(self, Mode::Append { .. } | Mode::Skip | Mode::SkipStaged { key: None, .. })
    }

    /// The exit code of a load with nothing left to do.
    pub(super) fn done_code(self) -> i32 {
        let skips = matches!(self, Mode::Skip | Mode::SkipStaged { .. } | Mode::Replace { skips: true });
        if skips { 3 } else { 0 }
    }
}
