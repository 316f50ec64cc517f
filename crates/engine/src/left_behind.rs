//! What a job has left behind whose process is gone: by kill -9, by loss of power, by a failover. The
//! ledger's journal has it, `howdah restore` puts it back, and so does the next load, as far as that is its
//! business.

use crate::Context;
use crate::indexes::{Builds, is_answered, put_back_entries};
use crate::statistics::Rebuilt;
use crate::tune::give_up_all;
use howdah_model::Result;
use howdah_target::ledger::{Believed, Held, Ledger, Origin, Undo};
use howdah_target::session::Session;
use std::collections::BTreeMap;
use std::time::Duration;

/// Indexes built side by side: as many as a load begins with at least.
const BUILDERS: u32 = 2;

/// In the order in which it is put back.
#[derive(Default)]
pub(crate) struct Left {
    /// Dropped, disabled, or made and not dropped.
    pub(crate) dropped: Vec<Undo>,
    /// Set to something else.
    pub(crate) tuned: Vec<Held>,
}

impl Left {
    /// Of this job or of all, in one round trip, and another where there may be some.
    ///
    /// # Errors
    /// Those of ledger and session.
    pub(crate) async fn read(ledger: &Ledger, session: &Session, job_id: Option<&str>) -> Result<Left> {
        if !ledger.may_have_left(session, job_id).await? {
            return Ok(Left::default());
        }
        let (dropped, tuned) =
            tokio::try_join!(ledger.open_undos(session, job_id), ledger.held(session, job_id))?;
        Ok(Left { dropped, tuned })
    }

    /// The roles, quoted, for whose sake it is not believed: asked where there is something to believe.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn doubted_for(&self, ledger: &Ledger, session: &Session) -> Result<Vec<String>> {
        if self.is_empty() { Ok(Vec::new()) } else { ledger.doubted_for(session, Believed::Journal).await }
    }

    pub(crate) fn len(&self) -> usize {
        self.dropped.len() + self.tuned.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// By the job that has left it.
    pub(crate) fn by_job(self) -> BTreeMap<String, Left> {
        let mut by_job: BTreeMap<String, Left> = BTreeMap::new();
        for undo in self.dropped {
            by_job.entry(undo.job_id.clone()).or_default().dropped.push(undo);
        }
        for held in self.tuned {
            by_job.entry(held.job_id.clone()).or_default().tuned.push(held);
        }
        by_job
    }

    /// Where the ledger came by a dump, the user should know by what the tables are found.
    pub(crate) fn tell_moved(&self, context: &Context) {
        let dropped = self.dropped.iter().map(|undo| undo.origin);
        let mut origins = dropped.chain(self.tuned.iter().map(|held| held.origin));
        if origins.any(|origin| origin == Origin::Elsewhere) {
            context.tell("the ledger has come from another database: tables are found by their names");
        }
    }

    /// Puts it back, whoever does so having taken the job, building indexes with more memory where `tuned`,
    /// and waiting so long for each lock. How many entries are closed though what they are of is not back, of
    /// what was dropped and of what was tuned; or what of it cannot be put back.
    pub(crate) async fn put_back(
        self,
        context: &Context,
        ledger: &Ledger,
        tuned: bool,
        lock_within_ms: u64,
        retry_for: Duration,
    ) -> (Result<usize>, Result<usize>) {
        let rebuilt = Rebuilt::of(&self.dropped);
        let how = Builds { sessions: BUILDERS, tuned, pausing: None, lock_within_ms };
        let dropped = put_back_entries(context, ledger, self.dropped, how, retry_for).await;
        if is_answered(&dropped) {
            rebuilt.analyze(context).await;
        }
        (dropped, give_up_all(context, ledger, self.tuned, retry_for).await)
    }
}
