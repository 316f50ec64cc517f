//! Hands one value from piece to piece in order, whichever thread works on which piece.
//!
//! The splitters of one file work on its ranges side by side; what range `k + 1` must know of range `k` (the
//! state at the border, the number of records so far) goes through a turnstile.

use howdah_model::Result;
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// How often a waiting thread looks whether its work is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A value and the number of the piece it is for.
pub(super) struct Turnstile<T> {
    turn: Mutex<(u64, T)>,
    passed: Condvar,
}

impl<T: Clone> Turnstile<T> {
    /// The value for the first piece.
    pub(super) fn new(piece: u64, value: T) -> Turnstile<T> {
        Turnstile { turn: Mutex::new((piece, value)), passed: Condvar::new() }
    }

    /// Waits for the value of this piece.
    ///
    /// # Errors
    /// What `wanted` returns, when it returns an error while waiting.
    pub(super) fn wait(&self, piece: u64, wanted: impl Fn() -> Result<()>) -> Result<T> {
        let mut turn = self.turn.lock();
        loop {
            if turn.0 == piece {
                return Ok(turn.1.clone());
            }
            wanted()?;
            self.passed.wait_for(&mut turn, LOOK_EVERY);
        }
    }

    /// Hands a value to the next piece. Only the holder of the current piece may call this, once.
    pub(super) fn pass(&self, next_piece: u64, value: T) {
        *self.turn.lock() = (next_piece, value);
        self.passed.notify_all();
    }
}
