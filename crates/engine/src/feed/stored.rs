//! The stored bytes of one object as a `BufRead` for the decoders, with retries that go on at the byte
//! where reading broke.
//!
//! Objects far away are read ahead by a task, so that the decoder does not wait for the network; local files
//! and pipes are read in the thread that decodes.

use crate::Context;
use crate::done;
use crate::pipeline::{Run, unwanted};
use crate::retry::{self, Patience};
use bytes::{Buf, Bytes};
use howdah_model::{Error, ErrorKind, Event, Plan, Result, Stage};
use howdah_source::{BlockStream, Object};
use howdah_transcode::decompress::{self, BgzfEnd, SNIFF_BYTES};
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Blocks read ahead of the decoder: enough to cover the time between two requests, small against the budget.
const BLOCKS_AHEAD: usize = 4;

/// What was read of an object while planning; a pipe cannot be read twice.
pub struct Opened {
    /// The object.
    pub object: Object,
    /// The first stored blocks.
    pub head: VecDeque<Bytes>,
    /// The stream that goes on after them; `None` opens a new one when needed.
    pub stream: Option<BlockStream>,
    /// The first stored bytes that the plan saw, where nothing else tells whether what comes next time is the
    /// same file.
    pub seen: Bytes,
    /// The first bytes say that parts of the file might be decoded ahead.
    pub may_have_parts: bool,
}

/// Reads the blocks of one object in order, opening it again at the same byte after transient failures.
struct Blocks {
    run: Arc<Run>,
    file_no: u32,
    opened: Opened,
    offset: u64,
    patience: Patience,
    end: BgzfEnd,
    lacks_end: Arc<AtomicBool>,
}

impl Blocks {
    /// The next one, unless a chunk has failed: those that are wanted all the same lie before it, and are
    /// read.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let run = Arc::clone(&self.run);
        unless(run.halt.until_unwanted(self.file_no, u64::MAX), self.next_patiently()).await
    }

    async fn next_patiently(&mut self) -> Result<Option<Bytes>> {
        if let Some(block) = self.opened.head.pop_front() {
            return Ok(Some(self.count(block)));
        }
        loop {
            match self.run.context.stop.guard(self.opened.next_block(self.offset)).await {
                Ok(Some(block)) => {
                    self.opened.expect(self.offset, &block)?;
                    self.patience.reset();
                    return Ok(Some(self.count(block)));
                }
                Ok(None) => {
                    self.opened.expect(self.offset, &[])?;
                    self.lacks_end.store(self.end.is_missing(), Relaxed);
                    return Ok(None);
                }
                // What would come when it is asked again may be another file, of which the first half was
                // read.
                Err(error)
                    if self.offset > 0
                        && self.opened.is_nameless()
                        && !self.opened.object.tells_changes() =>
                {
                    return Err(error.with_hint(
                        "nothing tells whether the source is still the same (it has no ETag or Last-Modified): run the same \
                         command again, which compares what is stored with what comes",
                    ));
                }
                Err(error) => {
                    self.opened.stream = None;
                    wait_to_retry(&self.run, &mut self.patience, error).await?;
                }
            }
        }
    }

    fn count(&mut self, block: Bytes) -> Bytes {
        let bytes = block.len() as u64;
        self.offset += bytes;
        self.end.pass(&block);
        count_read(&self.run, self.file_no, bytes);
        block
    }
}

impl Opened {
    /// Nothing has been read.
    pub fn new(object: Object) -> Opened {
        Opened { object, head: VecDeque::new(), stream: None, seen: Bytes::new(), may_have_parts: false }
    }

    /// It can be read again, and nothing tells whether it is the same then.
    pub(crate) fn is_nameless(&self) -> bool {
        self.object.rereadable() && self.object.version().is_none()
    }

    /// Of an object that may be read again, as much as is kept all the same.
    pub(crate) fn kept_bytes(&self) -> u64 {
        if self.object.rereadable() { self.head.iter().map(|block| block.len() as u64).sum() } else { 0 }
    }

    /// All stored bytes of an object, where they were kept.
    pub(super) fn all_bytes(&self) -> Option<Bytes> {
        let bytes: usize = self.head.iter().map(Bytes::len).sum();
        let is_all = bytes > 0 && self.object.stored_bytes() == u64::try_from(bytes).ok();
        is_all.then(|| match self.head.front() {
            Some(first) if self.head.len() == 1 => first.clone(),
            _ => self.head.iter().flatten().copied().collect(),
        })
    }

    /// What was read is read again, from a new stream.
    pub fn let_go(&mut self) {
        self.head.clear();
        self.stream = None;
    }

    /// The block at `offset`, none at the end, must hold what the plan saw there.
    fn expect(&self, offset: u64, block: &[u8]) -> Result<()> {
        let seen =
            usize::try_from(offset).ok().and_then(|offset| self.seen.get(offset..)).unwrap_or_default();
        if seen.is_empty() || (!block.is_empty() && seen.iter().zip(block).all(|(seen, now)| seen == now)) {
            return Ok(());
        }
        let message = "expected the first bytes that the plan was made from, got others";
        Err(Error::new(ErrorKind::SourceChanged, message)
            .in_file(self.object.location())
            .with_hint("load this URL alone, or save what it gives as a file and load that"))
    }

    /// The next block after the head, from `offset` when the stream has to be opened.
    pub async fn next_block(&mut self, offset: u64) -> Result<Option<Bytes>> {
        if self.stream.is_none() {
            self.stream = Some(self.object.stream(offset).await?);
        }
        match &mut self.stream {
            Some(stream) => stream.next().await,
            None => Ok(None),
        }
    }
}

/// All files of a plan in the versions that it has, to be read once more.
///
/// # Errors
/// Those of the sources that will not pass; `Interrupted`.
pub(crate) async fn open_all(context: &Context, plan: &Plan) -> Result<Vec<Opened>> {
    let retry_for = Duration::from_millis(plan.job.retry_for_ms);
    let mut opened = Vec::new();
    for file in &plan.files {
        let open = || context.sources.open(&file.location, file.version.as_deref());
        opened.push(Opened::new(retry::patiently(context, retry_for, open).await?));
    }
    Ok(opened)
}

/// Adds stored bytes to the counters and tells the listener.
pub(super) fn count_read(run: &Run, file_no: u32, bytes: u64) {
    run.tally.file(file_no).bytes_read.fetch_add(bytes, Relaxed);
    run.context.listener.on_event(&Event::Read { file_no, bytes });
}

/// Waits before the next try of a load's step and counts it.
pub(crate) async fn wait_to_retry(run: &Run, patience: &mut Patience, error: Error) -> Result<()> {
    retry::wait(&run.context, patience, error).await?;
    run.tally.retries.fetch_add(1, Relaxed);
    Ok(())
}

/// Does `work` while it is wanted: whoever waits must not keep a load from ending that has failed.
pub(crate) async fn unless<T>(
    is_unwanted: impl Future<Output = ()>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        () = is_unwanted => Err(unwanted()),
    }
}

/// Fills `out` from `offset` of a ranged object, retrying; returns how much there was. Counts nothing: what
/// is behind a range is read once more by the next one.
pub(super) async fn read_at(run: &Run, object: &Object, offset: u64, out: &mut [u8]) -> Result<usize> {
    let mut patience = Patience::new(Duration::from_millis(run.plan.job.retry_for_ms));
    let start = Instant::now();
    let mut filled = 0;
    loop {
        let before = filled;
        match run.context.stop.guard(object.read_on(offset, out, &mut filled)).await {
            Ok(()) => {
                run.tally.spend(Stage::Read, start.elapsed());
                return Ok(filled);
            }
            Err(error) => {
                // A link that lets a few megabytes through at a time gets there.
                if filled > before {
                    patience.reset();
                }
                wait_to_retry(run, &mut patience, error).await?;
            }
        }
    }
}

/// The decoder's input.
pub(super) struct StoredBytes {
    from: From,
    block: Bytes,
    waited_ns: Arc<AtomicU64>,
    lacks_end: Arc<AtomicBool>,
}

enum From {
    Here(Box<Blocks>, Handle),
    Ahead(mpsc::Receiver<Result<Option<Bytes>>>),
    /// The end was reached.
    End,
}

impl StoredBytes {
    /// Begins reading at the first stored byte. Must be read from a thread outside the runtime.
    pub(super) fn new(run: &Arc<Run>, file_no: u32, opened: Opened, handle: &Handle) -> StoredBytes {
        let read_here = opened.object.local() || !opened.object.rereadable();
        let patience = Patience::new(Duration::from_millis(run.plan.job.retry_for_ms));
        let (run, end, lacks_end) = (Arc::clone(run), BgzfEnd::default(), Arc::default());
        let mut blocks = Box::new(Blocks {
            run,
            file_no,
            opened,
            offset: 0,
            patience,
            end,
            lacks_end: Arc::clone(&lacks_end),
        });
        let from = if read_here {
            From::Here(blocks, handle.clone())
        } else {
            let (ahead, receiver) = mpsc::channel(BLOCKS_AHEAD);
            handle.spawn(async move {
                loop {
                    let block = blocks.next().await;
                    let is_last = !matches!(block, Ok(Some(_)));
                    if ahead.send(block).await.is_err() || is_last {
                        break;
                    }
                }
            });
            From::Ahead(receiver)
        };
        StoredBytes { from, block: Bytes::new(), waited_ns: Arc::default(), lacks_end }
    }

    /// Whether the stored bytes, once all of them were read, have turned out to be of BGZF that may be cut
    /// short.
    pub(super) fn lacks_end(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lacks_end)
    }

    /// Time spent waiting for stored bytes, to be told from the time spent decoding.
    pub(super) fn waited_ns(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.waited_ns)
    }

    /// What is compressed otherwise than when the job began would be told as damaged, or as other records.
    pub(super) fn expect_codec(&mut self, run: &Run, file_no: u32) -> Result<()> {
        let head = self.fill_buf().map_err(decompress::error)?;
        // A writer may give a few bytes at first, which do not tell.
        let Some(head) = head.get(..SNIFF_BYTES) else { return Ok(()) };
        let expected = run.plan.file(file_no).codec;
        match decompress::sniff(head) {
            Ok(codec) if codec != expected => {
                let (expected, got) = (decompress::name(expected), decompress::name(codec));
                let message = format!("expected {expected} data, as when the job began, got {got} data");
                Err(Error::new(ErrorKind::SourceChanged, message)
                    .with_hint(done::other_bytes_hint(run, file_no)))
            }
            _ => Ok(()),
        }
    }

    fn next_block(&mut self) -> Result<Option<Bytes>> {
        let next = match &mut self.from {
            From::Here(blocks, handle) => handle.block_on(blocks.next()),
            // The end is told: a task that is gone without a word has not come to it.
            From::Ahead(receiver) => receiver.blocking_recv().unwrap_or_else(|| Err(died())),
            From::End => Ok(None),
        };
        if matches!(next, Ok(None)) {
            self.from = From::End;
        }
        next
    }
}

fn died() -> Error {
    Error::new(ErrorKind::Internal, "the task that reads the source ahead ended before the end of the source")
}

impl BufRead for StoredBytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.block.is_empty() {
            let start = Instant::now();
            let block = self.next_block();
            let waited_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.waited_ns.fetch_add(waited_ns, Relaxed);
            match block.map_err(io::Error::other)? {
                Some(block) => self.block = block,
                None => break,
            }
        }
        Ok(&self.block)
    }

    fn consume(&mut self, count: usize) {
        self.block.advance(count);
    }
}

impl Read for StoredBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let block = self.fill_buf()?;
        let count = block.len().min(out.len());
        out[..count].copy_from_slice(&block[..count]);
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(blocks: Vec<Result<Option<Bytes>>>) -> (Vec<u8>, [Option<ErrorKind>; 2]) {
        let (ahead, receiver) = mpsc::channel(BLOCKS_AHEAD);
        blocks.into_iter().for_each(|block| ahead.blocking_send(block).unwrap());
        drop(ahead);
        let mut stored = StoredBytes {
            from: From::Ahead(receiver),
            block: Bytes::new(),
            waited_ns: Arc::default(),
            lacks_end: Arc::default(),
        };
        let mut out = Vec::new();
        let kinds = [(); 2].map(|()| {
            let error = stored.read_to_end(&mut out).err()?;
            Some(error.get_ref().and_then(|error| error.downcast_ref::<Error>()).unwrap().kind())
        });
        (out, kinds)
    }

    #[test]
    fn a_source_whose_reader_is_gone_has_not_come_to_its_end() {
        let block = || Ok(Some(Bytes::from_static(b"abc")));
        let internal = Some(ErrorKind::Internal);
        assert_eq!(read(vec![block(), block()]), (b"abcabc".to_vec(), [internal, internal]));
        assert_eq!(read(vec![block(), Ok(None)]), (b"abc".to_vec(), [None, None]));
        let lost = Err(Error::new(ErrorKind::SourceTransient, ""));
        let transient = Some(ErrorKind::SourceTransient);
        assert_eq!(read(vec![block(), lost]), (b"abc".to_vec(), [transient, internal]));
    }
}
