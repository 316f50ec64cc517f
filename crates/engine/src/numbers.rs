//! Takes numbers for the rows of chunks, by a session of its own.

use crate::Context;
use crate::feed::Asker;
use howdah_model::plan::NumberPlan;
use howdah_model::{ErrorKind, Relation, Result};
use howdah_target::numbers;
use howdah_target::session::Session;
use howdah_transcode::number::Numbers;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where numbers come from while a load runs.
#[derive(Debug, Default)]
pub(crate) struct NumberSource {
    taking: Mutex<Taking>,
    /// The server numbers the rows from now on.
    is_off: AtomicBool,
}

#[derive(Debug, Default)]
struct Taking {
    session: Option<Session>,
    /// The last value that was taken from each sequence. Chunks that hold it may have yet to be stored when
    /// the server crashes and forgets it.
    last: HashMap<Relation, i64>,
}

impl NumberSource {
    /// Numbers for so many rows; `None` where the server has to give them. Called from a thread that may
    /// block.
    pub(crate) fn take(&self, asker: &Asker<'_>, plan: &NumberPlan, count: u64) -> Option<Numbers> {
        if count == 0 || self.is_off.load(Relaxed) {
            return None;
        }
        let mut taking = self.taking.lock();
        let session = taking.session.take().filter(|session| !session.is_closed());
        let last = taking.last.get(&plan.sequence).copied();
        let context = asker.context();
        let taken = context.stop.guard(take(context, session, plan, count, last));
        match asker.wait(taken) {
            Ok((session, first, increment)) => {
                taking.session = Some(session);
                let more = i64::try_from(count - 1).unwrap_or(i64::MAX);
                taking
                    .last
                    .insert(plan.sequence.clone(), first.saturating_add(more.saturating_mul(increment)));
                Some(Numbers { first, increment, count })
            }
            Err(error) => {
                // A connection that was lost may be had again for the next chunk; a stop has other words.
                let passes = matches!(error.kind(), ErrorKind::ConnectionLost | ErrorKind::Interrupted);
                if !passes && !self.is_off.swap(true, Relaxed) {
                    let message = format!("the server gives {} its values from now on: {error}", plan.column);
                    context.tell(message);
                }
                None
            }
        }
    }
}

async fn take(
    context: &Context,
    session: Option<Session>,
    plan: &NumberPlan,
    count: u64,
    last: Option<i64>,
) -> Result<(Session, i64, i64)> {
    let session = match session {
        Some(session) => session,
        None => context.connection.open().await?,
    };
    let taking = numbers::take(&session, &plan.sequence, count, last);
    let (first, increment) = context.connection.attend(&session, taking).await?;
    Ok((session, first, increment))
}
