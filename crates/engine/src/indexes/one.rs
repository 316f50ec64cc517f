//! One entry of the journal: put back on a session of its own, and told. A build is broken off before it
//! fills a disk of the server: an index comes later, and a server that cannot write WAL stops.

use crate::Context;
use crate::pipeline::Run;
use crate::retry::patiently;
use crate::scarce::Scarce;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use howdah_target::ledger::{Ledger, Undo, UndoKind};
use howdah_target::session::Session;
use howdah_target::undo::put_back::{How, PutBack, put_back};
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// A build that is broken off waits until there is room, and is begun once more.
const TRIES: u32 = 2;

/// How often is looked whether a session is free while another is being opened: that asks nobody.
const SPARE_LOOK_EVERY: Duration = Duration::from_millis(20);

/// What all entries are put back with.
pub(super) struct Work<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) retry_for: Duration,
    /// There are too many to tell of each that it is back.
    pub(super) brief: bool,
    /// Commits wait for the disk.
    pub(super) durable: bool,
    pub(super) pausing: Option<&'a Run>,
    pub(super) lock_within_ms: u64,
    /// Sessions that wait for the next entry.
    pub(super) spare: Mutex<Vec<Session>>,
}

impl Work<'_> {
    /// Triggers take nothing that a load pauses for.
    fn pausing_for(&self, entry: &Undo) -> Option<&Run> {
        self.pausing.filter(|_| entry.change.kind != UndoKind::Trigger)
    }

    /// One that another entry has done with, or one that is opened, whichever is there first: where a pool is
    /// full, no other comes free than those.
    async fn session(&self, context: &Context) -> Result<Session> {
        tokio::select! {
            biased;
            spare = self.until_spare() => Ok(spare),
            opened = context.connection.open() => opened,
        }
    }

    async fn until_spare(&self) -> Session {
        loop {
            let spare = self.spare.lock().pop();
            match spare.filter(|session| !session.is_closed()) {
                Some(session) => return session,
                None if self.spare.lock().is_empty() => tokio::time::sleep(SPARE_LOOK_EVERY).await,
                None => {}
            }
        }
    }

    /// The inner error: it was broken off for want of room.
    async fn put_back(
        &self,
        context: &Context,
        entry: &Undo,
        workers_max: Option<u32>,
    ) -> Result<std::result::Result<PutBack, Scarce>> {
        let session = self.session(context).await?;
        let how = How { workers_max, durable: self.durable, lock_within_ms: self.lock_within_ms };
        let working = put_back(&session, self.ledger, entry, how);
        let connection = &context.connection;
        let done = match entry.change.kind {
            // It takes no room, and rows of others are to meet it.
            UndoKind::Trigger => connection.attend(&session, working).await.map(Ok),
            _ => connection.attend_unless_scarce(&session, working).await,
        };
        // One that has failed may have no connection any more.
        if matches!(done, Ok(Ok(_))) {
            self.spare.lock().push(session);
        }
        done
    }
}

/// Puts an entry of the journal back, and says so.
///
/// # Errors
/// Why the load has given up; Server, where a disk of the server has no room for it; those of the server.
pub(super) async fn put_back_one(
    context: &Context,
    work: &Work<'_>,
    entry: &Undo,
    workers_max: Option<u32>,
) -> Result<PutBack> {
    let pausing = work.pausing_for(entry);
    // Whoever does not wait for room finds none the next time.
    let tries = if pausing.is_some() { TRIES } else { 1 };
    let mut tried = 0;
    loop {
        // Who is stopped puts back at once.
        if let Some(run) = pausing
            && let Err(error) = run.when_open().await
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error);
        }
        let start = Instant::now();
        let put_back = || work.put_back(context, entry, workers_max);
        let scarce = match patiently(context, work.retry_for, put_back).await? {
            Ok(done) => {
                tell(context, work.brief, entry, &done, start.elapsed());
                return Ok(done);
            }
            Err(scarce) => scarce,
        };
        tried += 1;
        if tried == tries {
            return Err(without_room(entry, tries, &scarce));
        }
        context.tell(format!("{entry} is broken off: {scarce}"));
    }
}

fn without_room(entry: &Undo, tries: u32, scarce: &Scarce) -> Error {
    let times = if tries == 1 { String::new() } else { format!(" {tries} times") };
    let message = format!("{entry} was broken off{times}: {scarce}");
    Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate::DISK_FULL)
}

/// What became of it.
fn tell(context: &Context, brief: bool, entry: &Undo, done: &PutBack, took: Duration) {
    let (seconds, title) = (took.as_secs_f64(), entry.to_string());
    match (done, entry.change.kind) {
        (PutBack::Done, kind) if brief && (UndoKind::Index..UndoKind::Attach).contains(&kind) => {}
        (PutBack::Done, UndoKind::Staging) => context.tell(format!("{title} is dropped")),
        (PutBack::TableGone | PutBack::TableAnother, UndoKind::Staging) => {}
        (PutBack::Done, UndoKind::Trigger) => context.tell(format!("{title} is enabled again")),
        (PutBack::TriggerGone, _) => context.warn(format!("{title} is not enabled again: it is gone")),
        (PutBack::Done, UndoKind::Index) => context.tell(format!("{title} is built, in {seconds:.1} s")),
        (PutBack::Done, UndoKind::Validate) => {
            context.tell(format!("{title} is validated, in {seconds:.1} s"));
        }
        (
            PutBack::Done,
            UndoKind::Constraint | UndoKind::PartitionedIndex | UndoKind::PartitionedConstraint,
        ) => context.tell(format!("{title} is back")),
        (PutBack::Done, UndoKind::Workers | UndoKind::Attach | UndoKind::Marks | UndoKind::ForeignKey)
        | (PutBack::ByAnother, _) => {}
        (PutBack::NoPartition, _) => context.warn(format!(
            "{title} is not put back: the table is no partition of that index's table any more"
        )),
        // By a parent that was made with all its partitions, because there are new ones.
        (PutBack::WasThere, UndoKind::Attach) => {}
        (PutBack::WasThere, _) => context.tell(format!("{title} is there already, as it was")),
        (PutBack::MarkedAnother, _) => {
            context.tell(format!("{title}: what somebody has set instead meanwhile stays"));
        }
        (PutBack::Again(_), _) => context.tell(format!(
            "{title} waits: somebody has dropped what it goes on with, which is built once more"
        )),
        (PutBack::TableGone, _) => context.warn(format!("{title} is not put back: the table is gone")),
        (PutBack::TableAnother, _) => context.warn(format!(
            "{title} is not put back: the table is gone, and the one that has its name now is another one"
        )),
    }
}
