//! A flag that ends a load from outside, seen by threads and by tasks.

use howdah_model::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// A server that is well answers a COMMIT much sooner, and whoever stops a load waits for it.
const COMMITTED_WITHIN: Duration = Duration::from_millis(500);

/// Raised once, by Ctrl-C or by a Python signal check; never lowered. Clones share the flag.
#[derive(Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Stop {
        Stop(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Asks everything to end.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }

    /// It was raised.
    pub fn raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is raised.
    pub async fn wait(&self) {
        // The sender lives in `self`, so waiting ends only by a raise.
        let _ = self.0.subscribe().wait_for(|raised| *raised).await;
    }

    /// `Err(Interrupted)` once raised; for loops in threads.
    pub fn check(&self) -> Result<()> {
        if self.raised() { Err(interrupted()) } else { Ok(()) }
    }

    /// Runs `work` unless the flag is or gets raised.
    pub fn guard<T>(&self, work: impl Future<Output = Result<T>>) -> impl Future<Output = Result<T>> {
        // On the heap: guarded work is large, and whatever awaits it would be as large, up to the stack.
        let work = Box::pin(work);
        async move {
            tokio::select! {
                biased;
                () = self.wait() => Err(interrupted()),
                done = work => done,
            }
        }
    }

    /// The same, but for work that sends a COMMIT: if `is_committing` when the flag is raised, the answer is
    /// waited for, for a while. What is in has to be counted.
    pub(crate) fn guard_commit<T>(
        &self,
        work: impl Future<Output = Result<T>>,
        is_committing: impl Fn() -> bool,
    ) -> impl Future<Output = Result<T>> {
        let mut work = Box::pin(work);
        async move {
            tokio::select! {
                biased;
                () = self.wait() => match is_committing() {
                    true => timeout(COMMITTED_WITHIN, work).await.unwrap_or_else(|_| Err(interrupted())),
                    false => Err(interrupted()),
                },
                done = &mut work => done,
            }
        }
    }

    /// Sleeps unless the flag is or gets raised.
    pub async fn sleep(&self, delay: Duration) -> Result<()> {
        let sleep = async {
            tokio::time::sleep(delay).await;
            Ok(())
        };
        self.guard(sleep).await
    }
}

/// The error every interrupted part returns. What else than the same command goes on with a load, the load
/// says.
pub(crate) fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "stopped by the user").with_hint("run the same command again")
}
