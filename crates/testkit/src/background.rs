//! One tokio runtime behind the blocking calls of this crate.
//!
//! A future enters, its output leaves. Tests may themselves run inside a runtime, where blocking on another
//! one is forbidden; waiting on a channel is not.

use std::future::Future;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Runtime};

/// The runtime; it lives as long as the process.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a tokio runtime for the tests")
    })
}

/// Runs a future to its end and waits for it.
pub(crate) fn block_on<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime().spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().expect("the background task panicked; its message is above")
}
