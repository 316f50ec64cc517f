//! Asks the server from a thread that feeds, which waits for the answer, for as long as its chunk is wanted:
//! a lock that is waited for must not keep a load from ending that has failed.

use super::stored::unless;
use crate::Context;
use crate::pipeline::Run;
use crate::retry::patiently;
use howdah_model::{ChunkId, Result};
use std::time::Duration;
use tokio::runtime::Handle;

/// Who asks for the sake of one chunk.
pub(crate) struct Asker<'a> {
    run: &'a Run,
    handle: &'a Handle,
    chunk: ChunkId,
}

impl<'a> Asker<'a> {
    pub(super) fn new(run: &'a Run, handle: &'a Handle, chunk: ChunkId) -> Asker<'a> {
        Asker { run, handle, chunk }
    }

    pub(crate) fn context(&self) -> &'a Context {
        &self.run.context
    }

    /// How long a lock is waited for at a time.
    pub(crate) fn lock_timeout_ms(&self) -> u64 {
        self.run.plan.job.arrival.lock_timeout_ms
    }

    /// Does `work`, again and again while it fails in ways that may pass, as long as the job says and it is
    /// wanted.
    ///
    /// # Errors
    /// The last one of the work; [`crate::pipeline::unwanted`].
    pub(crate) fn wait_patiently<T, F: Future<Output = Result<T>>>(
        &self,
        work: impl FnMut() -> F,
    ) -> Result<T> {
        let retry_for = Duration::from_millis(self.run.plan.job.retry_for_ms);
        self.wait(patiently(self.context(), retry_for, work))
    }

    /// Does `work`, as long as it is wanted.
    ///
    /// # Errors
    /// Those of the work; [`crate::pipeline::unwanted`].
    pub(crate) fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let ChunkId { file_no, chunk_no } = self.chunk;
        self.handle.block_on(unless(self.run.halt.until_unwanted(file_no, chunk_no), work))
    }
}
