//! Takes numbers for the rows of chunks, by a session of its own.

use crate::Context;
use howdah_model::plan::NumberPlan;
use howdah_model::{ErrorKind, Event, Result};
use howdah_target::numbers;
use howdah_target::session::Session;
use howdah_transcode::number::Numbers;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;

/// Where numbers come from while a load runs.
#[derive(Debug, Default)]
pub struct NumberSource {
    session: Mutex<Option<Session>>,
    /// The server numbers the rows from now on.
    is_off: AtomicBool,
}

impl NumberSource {
    /// Numbers for so many rows; `None` where the server has to give them. Called from a thread that may block.
    pub fn take(
        &self,
        (context, handle): (&Context, &Handle),
        plan: &NumberPlan,
        count: u64,
    ) -> Option<Numbers> {
        if count == 0 || self.is_off.load(Relaxed) {
            return None;
        }
        let mut slot = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = slot.take().filter(|session| !session.is_closed());
        let taking = context.stop.guard(take(context, session, plan, count));
        match handle.block_on(taking) {
            Ok((session, first, increment)) => {
                *slot = Some(session);
                Some(Numbers { first, increment, count })
            }
            Err(error) => {
                // A connection that was lost may be had again for the next chunk; a stop has other words.
                let passes = matches!(error.kind(), ErrorKind::ConnectionLost | ErrorKind::Interrupted);
                if !passes && !self.is_off.swap(true, Relaxed) {
                    let message = format!("the server gives {} its values from now on: {error}", plan.column);
                    context.listener.on_event(&Event::Notice { message });
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
) -> Result<(Session, i64, i64)> {
    let session = match session {
        Some(session) => session,
        None => context.connection.open().await?,
    };
    let taking = numbers::take(&session, &plan.sequence, count);
    let (first, increment) = context.connection.attend(&session, taking).await?;
    Ok((session, first, increment))
}
