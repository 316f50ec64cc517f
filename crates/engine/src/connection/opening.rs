//! Sessions that are being opened, and what ends with the wait for them.

use howdah_model::Result;
use howdah_target::session::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;
use tokio::task::JoinHandle;

/// A session that nobody uses, and since when.
pub(super) type Waiting = (Session, Instant);

/// A session that is being opened, and since when.
pub(super) type Opening = (JoinHandle<Result<Waiting>>, Instant);

/// Counts until it is dropped, with the session or without.
pub(super) struct BeingOpened(Arc<AtomicUsize>);

impl BeingOpened {
    pub(super) fn new(opening: &Arc<AtomicUsize>) -> BeingOpened {
        opening.fetch_add(1, Relaxed);
        BeingOpened(Arc::clone(opening))
    }
}

impl Drop for BeingOpened {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A session that is waited for: it is not opened any more once nobody does.
pub(super) struct Awaited(pub(super) JoinHandle<Result<Waiting>>);

impl Awaited {
    pub(super) async fn wait(mut self) -> std::result::Result<Result<Waiting>, tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.abort();
    }
}
