//! The chunks of several small files in one transaction: what stands around the rows of a small file costs the server, and a link far
//! away, more than they do. What does not come in so comes by halves, until the chunk with which something was wrong is alone.

use super::{Worker, target, until_given_up};
use crate::attend::Asking;
use crate::cargo::Cargo;
use crate::feed::unless;
use crate::retry::{Directive, directive};
use howdah_model::{CopyChunk, Event, Origin, Result};
use howdah_target::commit::{Outcome, commit_together};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl Worker<'_> {
    /// Stores chunks that came together, or compares them, or leaves parts of them to be taken next; a chunk that came by itself comes
    /// back.
    pub(super) async fn store_together(&mut self, mut cargo: Cargo) -> Option<CopyChunk> {
        let run = self.run;
        if let Some(comparison) = &run.comparison {
            let mut parts = comparison.parts(run, cargo).into_iter();
            cargo = parts.next()?;
            parts.rev().for_each(|part| self.left.push_front(part));
        }
        let Some(rows) = cargo.as_one() else { return cargo.chunks.pop() };
        let origins: Vec<Origin> = cargo.chunks.iter().map(|chunk| chunk.origin).collect();
        if origins.iter().all(|origin| run.halt.wants(origin.file_no, origin.chunk_no)) {
            let storing =
                unless(until_given_up(run, &rows.origin), Box::pin(self.try_together(&rows, &origins)));
            let stored = run.context.stop.guard(storing).await;
            self.slot.end();
            // Given up, it has left no session.
            self.count_session();
            match stored {
                // Most often all of them are, and the answer to COMMIT was lost.
                Ok(Outcome::AlreadyStored) if run.comparison.is_none() => {
                    for chunk in cargo.chunks.into_iter().rev() {
                        self.left.push_front(Cargo::one(chunk));
                    }
                    return None;
                }
                Ok(mut outcome) => {
                    self.patience.reset();
                    for chunk in &cargo.chunks {
                        self.record(chunk, &outcome, &[]);
                        // What all have taken counts once.
                        if let Outcome::Stored { copy_time, commit_time, .. } = &mut outcome {
                            (*copy_time, *commit_time) = (Duration::ZERO, Duration::ZERO);
                        }
                    }
                    return None;
                }
                Err(error) if directive(&error) != Directive::GiveUp => {
                    run.tally.retries.fetch_add(1, Relaxed);
                    let retry = Event::Retry { reason: error.to_string(), delay: Duration::ZERO };
                    run.context.listener.on_event(&retry);
                    // That passes, if it does, while a chunk alone is tried again and again.
                    self.leave(cargo.split(1));
                    return None;
                }
                Err(_) => {}
            }
        }
        self.leave(cargo.halves());
        None
    }

    /// Before what is left behind them: a session stores rows in the order of files.
    fn leave(&mut self, (first, others): (Cargo, Option<Cargo>)) {
        others.into_iter().for_each(|others| self.left.push_front(others));
        self.left.push_front(first);
    }

    /// Given up at an await, as when the load is stopped, it leaves no session.
    async fn try_together(&mut self, rows: &CopyChunk, origins: &[Origin]) -> Result<Outcome> {
        let run = self.run;
        let mut session = self.take_session().await?;
        let target = target(run, rows);
        let backend = session.backend();
        self.slot.begin(backend);
        let progress = &self.slot.progress;
        let storing = async {
            match &run.comparison {
                Some(comparison) => {
                    let comparing =
                        comparison.compare_together(run, &mut session, &target, (rows, origins), progress);
                    Box::pin(comparing).await.map(|()| Outcome::AlreadyStored)
                }
                None => commit_together(&mut session, &target, rows, origins, progress).await,
            }
        };
        let mut asking = Asking::new(&run.context.connection, backend);
        let stored = tokio::select! {
            stored = storing => stored,
            () = self.slot.stalled.notified() => Err(self.slot.stall_error().into()),
        };
        asking.answered();
        self.keep_session(session);
        stored.map_err(|failed| failed.error)
    }
}
