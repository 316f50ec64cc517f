//! Threads that decode parts of compressed files before the feeders that split them come to these.
//!
//! Feeders wait for none of them: a part that nobody has begun when it is wanted is decoded by its feeder. So
//! these threads take no buffers, hold up nobody, and help where a core is free.

use crate::pipeline::Run;
use crate::threads::no_thread;
use howdah_model::{Result, Stage};
use howdah_transcode::decompress::{Helpers, Piece};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// The threads; they end when this is dropped.
pub(super) struct Unpackers {
    offers: Arc<Offers>,
    count: usize,
}

/// What may be decoded, oldest first.
#[derive(Default)]
struct Offers {
    open: Mutex<Open>,
    changed: Condvar,
}

#[derive(Default)]
struct Open {
    /// Held by the reader that cut them: what it has handed on takes no memory here.
    pieces: VecDeque<Weak<Piece>>,
    closed: bool,
}

impl Unpackers {
    /// # Errors
    /// `Local` when no thread can be had.
    pub(super) fn start(run: &Arc<Run>, count: usize) -> Result<Arc<Unpackers>> {
        let unpackers = Arc::new(Unpackers { offers: Arc::default(), count });
        for no in 0..count {
            let (run, offers) = (Arc::clone(run), Arc::clone(&unpackers.offers));
            std::thread::Builder::new()
                .name(format!("unpacker-{no}"))
                .spawn(move || {
                    while let Some(piece) = offers.next() {
                        run.tally.time(Stage::Decompress, || piece.decode());
                    }
                })
                .map_err(|error| no_thread(&error))?;
        }
        Ok(unpackers)
    }
}

impl Drop for Unpackers {
    fn drop(&mut self) {
        self.offers.open.lock().closed = true;
        self.offers.changed.notify_all();
    }
}

impl Helpers for Unpackers {
    fn count(&self) -> usize {
        self.count
    }

    fn offer(&self, piece: Arc<Piece>) {
        let mut open = self.offers.open.lock();
        open.pieces.retain(|piece| piece.strong_count() > 0);
        open.pieces.push_back(Arc::downgrade(&piece));
        drop(open);
        self.offers.changed.notify_one();
    }
}

impl Offers {
    /// Waits for a piece that is still wanted; `None` when there will be no more.
    fn next(&self) -> Option<Arc<Piece>> {
        let mut open = self.open.lock();
        loop {
            if open.closed {
                return None;
            }
            match open.pieces.pop_front() {
                Some(piece) => match piece.upgrade() {
                    Some(piece) => return Some(piece),
                    None => continue,
                },
                None => self.changed.wait(&mut open),
            }
        }
    }
}
