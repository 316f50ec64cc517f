//! Chunks that are read again together: those of small files that came in one transaction, which are summed
//! up together, too.

use super::Comparison;
use crate::cargo::Cargo;
use crate::pipeline::Run;
use howdah_model::{ChunkId, CopyChunk, Origin};
use howdah_target::commit::{ChunkError, ChunkTarget, CopyProgress};
use howdah_target::session::Session;
use howdah_target::verify::{self, Again, Sum};
use std::sync::atomic::Ordering::Relaxed;

/// What a chunk is summed up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summing {
    /// All that is read of a table, by its first number in the plan.
    Table(u32),
    /// Those that came in one transaction, by the first of them.
    Together(ChunkId),
    Alone(ChunkId),
}

impl Comparison {
    /// The cargo by what its chunks are summed up with; one of which not all records were stored comes by
    /// itself.
    pub(crate) fn parts(&self, run: &Run, cargo: Cargo) -> Vec<Cargo> {
        let is_whole = |origin: &Origin| {
            let receipt = self.receipts.get(&origin.file_no).and_then(|chunks| chunks.get(&origin.chunk_no));
            receipt.is_some_and(|receipt| receipt.omitted.rejected == 0)
        };
        cargo.by_key(|CopyChunk { origin, .. }| match is_whole(origin) {
            true => self.summed(run, origin),
            false => Summing::Alone(origin.chunk()),
        })
    }

    /// Compares chunks that [`Comparison::parts`] has left together, whose rows are one here.
    pub(crate) async fn compare_together(
        &self,
        run: &Run,
        session: &mut Session,
        target: &ChunkTarget<'_>,
        (rows, origins): (&CopyChunk, &[Origin]),
        progress: &CopyProgress,
    ) -> Result<(), ChunkError> {
        let again = Again {
            target,
            ledger: &self.ledger,
            stored_in: &self.stored_in[run.plan.file(rows.origin.file_no).table_no as usize],
            stored: Sum::default(),
            good: None,
            explain: false,
        };
        let compared = verify::read_again(session, again, rows, progress).await?;
        self.chunks.fetch_add(origins.len() as u64, Relaxed);
        self.add(self.summed(run, &rows.origin), compared.read);
        Ok(())
    }

    pub(super) fn summed(&self, run: &Run, origin: &Origin) -> Summing {
        let table_no = self.found.table_of(run, origin.file_no);
        match (self.read.contains_key(&table_no), self.found.together.get(&origin.chunk())) {
            (true, _) => Summing::Table(table_no),
            (false, Some(first)) => Summing::Together(*first),
            (false, None) => Summing::Alone(origin.chunk()),
        }
    }

    /// Adds what was read; false if it is compared by itself.
    pub(super) fn add(&self, to: Summing, more: Sum) -> bool {
        match to {
            Summing::Table(table_no) => {
                if let Some(read) = self.read.get(&table_no) {
                    let mut read = read.lock();
                    *read = read.and(more);
                }
            }
            Summing::Together(first) => {
                let mut together = self.read_together.lock();
                let read = together.entry(first).or_insert_with(|| Some(Sum::default()));
                *read = read.map(|read| read.and(more));
            }
            Summing::Alone(_) => return false,
        }
        true
    }
}
