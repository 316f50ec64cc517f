//! What a load does to the rows that are there. A further mode is a variant here and nothing elsewhere.

use fastrand::Rng;

/// How rows reach the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are added.
    Append,
}

impl Mode {
    pub(super) fn draw(_random: &mut Rng) -> Mode {
        Mode::Append
    }

    /// Options of the command.
    pub(super) fn arguments(self) -> Vec<String> {
        match self {
            Mode::Append => Vec::new(),
        }
    }

    /// Run when `t` is there and `model.wanted` holds the rows of the files: what was in `t` before, and what that
    /// and the files must come to.
    pub(super) fn prepare_sql(self) -> &'static str {
        match self {
            // Ids of files begin at 1,000.
            Mode::Append => {
                "INSERT INTO t (id, part, score, amount, day, note) \
                     SELECT i, i % 256, -i, i / 100.0, '2023-01-01', 'old' FROM generate_series(1, 500) i; \
                 INSERT INTO model.wanted (id, part, score, amount, day, note) \
                     SELECT id, part, score, amount, day, note FROM t"
            }
        }
    }
}
