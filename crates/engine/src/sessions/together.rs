//! The chunks of several small files in one transaction: what stands around the rows of a small file costs
//! the server, and a link far away, more than they do. The chunk with a record that the server refuses comes
//! alone, and the others together again. Where the server does not tell which it is, they come by halves.

use super::{Worker, target, until_given_up};
use crate::attend::Asking;
use crate::cargo::Cargo;
use crate::feed::unless;
use crate::pipeline::Run;
use crate::retry::{Directive, directive, is_about_no_form};
use crate::scarce::Scarce;
use howdah_model::plan::Encode;
use howdah_model::{CopyChunk, Eol, Error, Event, Origin, sqlstate};
use howdah_target::commit::{ChunkError, Outcome, commit_together};
use howdah_target::salvage::is_about_a_row;
use howdah_transcode::split::Rules;
use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// So many chunks are always tried together: one with nothing wrong in it pays for the tries with others.
const TOGETHER_MIN: usize = 2;

impl Worker<'_> {
    /// Stores chunks that came together, or compares them, or leaves parts of them to be taken next; a chunk
    /// that came by itself comes back.
    pub(super) async fn store_together(&mut self, mut cargo: Cargo) -> Option<(CopyChunk, Option<Error>)> {
        let run = self.run;
        if let Some(comparison) = &run.comparison {
            let mut parts = comparison.parts(run, cargo).into_iter();
            cargo = parts.next()?;
            self.leave(parts);
        }
        if cargo.chunks.len() > self.together_max {
            let (first, others) = cargo.split(self.together_max);
            cargo = first;
            self.leave(others);
        }
        let Some(rows) = cargo.as_one() else { return cargo.only() };
        let origins: Vec<Origin> = cargo.chunks.iter().map(|chunk| chunk.origin).collect();
        if origins.iter().all(|origin| run.halt.wants(origin.file_no, origin.chunk_no)) {
            let slot = Arc::clone(&self.slot);
            let trying = async { Ok(Box::pin(self.try_together(&rows, &origins)).await) };
            let trying = unless(until_given_up(run, &rows.origin), trying);
            let stored = run.context.stop.guard_commit(trying, || slot.is_committing()).await;
            self.slot.end();
            // Given up, it has left no session.
            self.count_session();
            match stored.unwrap_or_else(|error| Err(error.into())) {
                // Most often all of them are, and the answer to COMMIT was lost.
                Ok(Ok(Outcome::AlreadyStored)) if run.comparison.is_none() => {
                    self.leave(cargo.chunks.into_iter().map(Cargo::one));
                    return None;
                }
                // There may be room for fewer of them.
                Ok(Err(_)) => {}
                Ok(Ok(mut outcome)) => {
                    self.patience.reset();
                    if cargo.chunks.len() >= self.together_max {
                        self.together_max = self.together_max.saturating_mul(2);
                    }
                    for chunk in &cargo.chunks {
                        self.record(chunk, &outcome, &[]);
                        // What all have taken counts once.
                        if let Outcome::Stored { copy_time, commit_time, .. } = &mut outcome {
                            (*copy_time, *commit_time) = (Duration::ZERO, Duration::ZERO);
                        }
                    }
                    return None;
                }
                Err(failed) if directive(&failed.error) != Directive::GiveUp => {
                    run.tally.retries.fetch_add(1, Relaxed);
                    let retry = Event::Retry { reason: failed.error.to_string(), delay: Duration::ZERO };
                    run.context.listener.on_event(&retry);
                    // That passes, if it does, while a chunk alone is tried again and again; if it is about a
                    // record further behind, that is not to be met by all before it once for each of them.
                    self.together_max = TOGETHER_MIN;
                    let (first, others) = cargo.split(1);
                    self.leave(once(first).chain(others));
                    return None;
                }
                Err(failed) if is_about_no_form(&failed.error) => {
                    for origin in &origins {
                        run.halt.fail_chunk(origin.file_no, origin.chunk_no, failed.error.clone());
                    }
                    return None;
                }
                Err(failed) if is_about_a_row(&failed.error) => {
                    self.leave_refused(cargo, failed);
                    return None;
                }
                Err(_) => {}
            }
        }
        let (first, others) = cargo.halves();
        self.leave(once(first).chain(others));
        None
    }

    /// Before what is left behind them: a session stores rows in the order of files.
    fn leave(&mut self, parts: impl IntoIterator<Item = Cargo, IntoIter: DoubleEndedIterator>) {
        parts.into_iter().rev().for_each(|part| self.left.push_front(part));
    }

    /// Chunks of which the server has refused a record. Their claims and rows were for nothing: the next one
    /// is expected to be as far away as this one was, and no more are tried at once until that has gone well.
    fn leave_refused(&mut self, cargo: Cargo, ChunkError { error, line }: ChunkError) {
        let chunks = cargo.chunks.len();
        // Of a row that fits no page the server names the last line of those that it stores at a time.
        let line = line.filter(|_| error.sqlstate() != Some(sqlstate::PROGRAM_LIMIT_EXCEEDED));
        match line.and_then(|line| chunk_of_line(self.run, &cargo, line)) {
            Some(no) => {
                self.together_max = no.max(TOGETHER_MIN);
                self.leave(cargo.around(no, error));
            }
            None => {
                self.together_max = (chunks / 2).max(TOGETHER_MIN);
                let (first, others) = cargo.halves();
                self.leave(once(first).chain(others));
            }
        }
    }

    /// Given up at an await, as when the load is stopped, it leaves no session. The inner error: it was
    /// broken off for want of room.
    async fn try_together(
        &mut self,
        rows: &CopyChunk,
        origins: &[Origin],
    ) -> Result<Result<Outcome, Scarce>, ChunkError> {
        let run = self.run;
        let mut session = self.take_session().await?;
        let _room = self.room.enter(false).await;
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
            stored = storing => stored.map(Ok),
            () = self.slot.stalled.notified() => Err(self.slot.stall_error().into()),
            scarce = self.until_broken_off() => Ok(Err(scarce)),
        };
        asking.answered();
        if matches!(stored, Ok(Err(_))) {
            session.abandon();
        }
        self.keep_session(session);
        stored
    }
}

/// The chunk that the server means by this line of what was sent.
fn chunk_of_line(run: &Run, cargo: &Cargo, line: u64) -> Option<usize> {
    let file = run.plan.file(cargo.chunks.first()?.origin.file_no);
    let table = run.plan.table(file.table_no);
    let rules = match table.encode {
        Encode::PassThrough => {
            Some(Rules::new(&table.format, run.plan.server_version, file.eol.or(Some(Eol::Lf))).ok()?)
        }
        Encode::CopyText => None,
    };
    cargo.chunk_of_line(line, rules.as_ref())
}
