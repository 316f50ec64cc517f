//! Small files that are read to their end while planning, so that the types of their columns need no second
//! thought.

use super::head::{Head, HeadReader, plain_head};
use super::scan;
use crate::Context;
use crate::retry::{self, Patience};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use howdah_model::{Codec, Error, ErrorKind, Job, Result};
use howdah_source::Object;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Files up to this size (as stored) are read whole to find the types of a new table, which are then final.
/// Measured: one core scans a file of this size in well under a second, less than the server needs to take
/// it.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// What they may become when decompressed.
const FILE_PLAIN_BYTES_MAX: usize = 64 << 20;
/// Of all files of a job so many bytes are read where a wrong guess is put right while rows come: with two
/// thousand files of 5 MB the first row would else wait for ten minutes.
const JOB_BYTES_MAX: u64 = 256 << 20;
/// Files asked for side by side: enough to hide the distance to an object store. Together they hold no more
/// than the largest.
const FILES_AT_ONCE: usize = 16;
/// Files decompressed and looked through side by side; each may take [`FILE_PLAIN_BYTES_MAX`].
const SCANS_AT_ONCE: usize = 2;

/// What one job reads of its files while it is planned.
pub(super) struct Wholes<'a> {
    context: &'a Context,
    /// How long a source that has answered once is asked again.
    retry_for: Duration,
    /// Stored bytes that are left of [`JOB_BYTES_MAX`].
    left_bytes: AtomicU64,
    /// Stored kilobytes in memory.
    reading: Semaphore,
    scanning: Semaphore,
}

/// Which files are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// As many as there is time for: columns get wider types while rows come.
    InTime,
    /// All: what is not seen now would end the load.
    All,
}

impl<'a> Wholes<'a> {
    pub(super) fn new(context: &'a Context, job: &Job) -> Wholes<'a> {
        Wholes {
            context,
            retry_for: Duration::from_millis(job.retry_for_ms),
            left_bytes: AtomicU64::new(JOB_BYTES_MAX),
            reading: Semaphore::new(usize::try_from(FILE_BYTES_MAX >> 10).unwrap_or(1)),
            scanning: Semaphore::new(SCANS_AT_ONCE),
        }
    }

    /// Reads those of these files to their end that are small and were not seen whole.
    pub(super) async fn scan(&self, heads: impl Iterator<Item = &mut Head>, extent: Extent) -> Result<()> {
        // Which are read does not depend on how fast they come.
        let wanted: Vec<&mut Head> = heads
            .filter(|head| is_open(head))
            .filter(|head| extent == Extent::All || take(&self.left_bytes, head.object().stored_bytes()))
            .collect();
        let scans = wanted.into_iter().map(|head| self.scan_one(head));
        stream::iter(scans).buffered(FILES_AT_ONCE).try_collect().await
    }

    async fn scan_one(&self, head: &mut Head) -> Result<()> {
        let object = head.object().clone();
        let kilobytes = object.stored_bytes().unwrap_or(FILE_BYTES_MAX).min(FILE_BYTES_MAX) >> 10;
        // Neither is ever closed, so the permits come.
        let _reading = self.reading.acquire_many(u32::try_from(kilobytes).unwrap_or(u32::MAX)).await.ok();
        let (stored, all) = self.read(&object).await.map_err(|error| error.in_file(object.location()))?;
        let _scanning = self.scanning.acquire().await.ok();
        let Some(found) = &mut head.found else { return Ok(()) };
        let (codec, finding) = (head.codec, found.finding.clone());
        let scanned = tokio::task::spawn_blocking(move || -> Result<Option<scan::Columns>> {
            if codec == Codec::None {
                return Ok(all.then(|| scan::Columns::of_all(&finding, &stored)));
            }
            let (plain, plain_all) = plain_head(codec, None, &stored, FILE_PLAIN_BYTES_MAX, all)?;
            Ok(plain_all.then(|| scan::Columns::of_all(&finding, &plain)))
        });
        let scanned = scanned
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, format!("inferring types failed: {error}")))?;
        if let Some(columns) = scanned.map_err(|error| error.in_file(object.location()))? {
            found.columns = columns;
            head.forget_sample(0);
        }
        Ok(())
    }

    /// The stored bytes of a small object, and whether they are all.
    async fn read(&self, object: &Object) -> Result<(Bytes, bool)> {
        let mut patience = Patience::new(self.retry_for);
        let mut reader = HeadReader::new(object.clone());
        let wanted = object.stored_bytes().unwrap_or(FILE_BYTES_MAX).min(FILE_BYTES_MAX);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        loop {
            let before = reader.reached();
            match self.context.stop.guard(reader.fill(wanted)).await {
                Ok(all) => return Ok((reader.into_stored(), all)),
                Err(error) => {
                    if object.version().is_none() {
                        // The next answer may be another file.
                        reader = HeadReader::new(object.clone());
                    } else if reader.reached() > before {
                        patience.reset();
                    }
                    retry::wait(self.context, &mut patience, error).await?;
                }
            }
        }
    }
}

/// It is small, and values were left out of what was seen of it.
fn is_open(head: &Head) -> bool {
    let object = head.object();
    let is_small = object.stored_bytes().is_some_and(|bytes| bytes <= FILE_BYTES_MAX) && object.rereadable();
    is_small && head.found.as_ref().is_some_and(|found| !found.columns.complete)
}

/// Takes these bytes from those that are left, if they are.
fn take(left_bytes: &AtomicU64, bytes: Option<u64>) -> bool {
    let bytes = bytes.unwrap_or(u64::MAX);
    left_bytes.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_reads_whole_as_many_files_as_there_is_time_for() {
        let left_bytes = AtomicU64::new(JOB_BYTES_MAX);
        let whole = (0..2_000).filter(|_| take(&left_bytes, Some(5 << 20))).count();
        assert_eq!(whole, 51);
        assert!(take(&left_bytes, Some(1 << 20)) && !take(&left_bytes, Some(1)) && !take(&left_bytes, None));
    }
}
