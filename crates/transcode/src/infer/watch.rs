//! Watching the values of a column whose type was chosen from a sample, while they are loaded.
//!
//! Each chunk has its own watch; before the chunk is sent, what it saw is joined into the column's state,
//! and [`ColumnState::finish`] says whether the type must become wider first. Values that the type would
//! take and change (`007` by an integer) are surprises, too.

use super::column::ColumnState;
use super::verdict::Inferred;

/// Takes in values as [`ColumnState`] does, and nothing at all where no value can change the type.
#[derive(Debug, Clone)]
pub struct Watch {
    state: ColumnState,
    settled: bool,
}

impl Watch {
    /// For a column of this type, which [`ColumnState::finish`] gave for a sample.
    pub fn new(chosen: &Inferred) -> Watch {
        Watch { state: ColumnState::default(), settled: chosen.settled }
    }

    /// Takes in one value that is not NULL.
    #[inline]
    pub fn observe(&mut self, value: &[u8]) {
        if !self.settled {
            self.state.observe(value);
        }
    }

    /// What it saw, to be joined into the state of the column.
    pub fn state(&self) -> &ColumnState {
        &self.state
    }
}
