//! The record that a row of a chunk came from, where records do not pass as they are: the file is read
//! once more. A chunk of a plain file is read from where it begins, anything else from its first byte.
//!
//! Enters a row of a chunk, leaves a record's number and its first byte; nothing for a pipe, for a source
//! that has become unreadable, and for one that takes too long to read: the server's error can be told
//! without it.

use crate::Context;
use crate::feed::{Opened, Recoding, mending_shape, plain_utf8, recoding, rewriting_shape, watched_shape};
use crate::pipeline::Run;
use bytes::{Buf, Bytes};
use howdah_model::{Care, Error, ErrorKind, FilePlan, Origin, Result};
use howdah_source::Object;
use howdah_transcode::decompress;
use howdah_transcode::mend::{self, Shape, Span};
use std::io::{self, BufReader, Read};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Somebody waits for the error: where reading takes longer, it is told without the byte.
const WITHIN: Duration = Duration::from_secs(10);

/// Number and first byte of the record that the chunk's row, counted from 0, came from.
pub(crate) async fn place(run: &Run, origin: &Origin, row: u64) -> Option<(u64, u64)> {
    let file = run.plan.file(origin.file_no);
    let table = run.plan.table(file.table_no);
    if !file.rereadable {
        return None;
    }
    let rewriting = rewriting_shape(&run.plan, origin.file_no);
    let respelled = || watched_shape(&run.plan, origin.file_no).filter(|_| table.respells_null());
    let by_chunk = mending_shape(&run.plan, origin.file_no).or_else(respelled);
    let wanted = match (table.care, rewriting, by_chunk) {
        (Care::Rewritten, Some(shape), _) => Wanted::Line { shape, number: origin.first_record + row },
        (Care::Watched, _, Some(shape)) => Wanted::Row { shape, row, span: span(run, origin) },
        _ => return None,
    };
    let object = run.context.sources.open(&file.location, file.version.as_deref()).await.ok()?;
    // Behind the beginning only what goes untouched can be read.
    let from = if file.ranged { origin.start_byte } else { 0 };
    let stored = StoredFrom::new(&run.context, object, from, WITHIN);
    let (file, recoding) = (file.clone(), recoding(&run.plan, file));
    let looking = tokio::task::spawn_blocking(move || wanted.find(&file, recoding, stored, from));
    looking.await.ok()?.ok()?
}

fn span(run: &Run, origin: &Origin) -> Span {
    Span {
        start_byte: origin.start_byte,
        border_byte: run.plan.borders(origin.file_no).end_byte(origin.chunk_no),
        records_before: origin.first_record.saturating_sub(1),
    }
}

/// What is looked for.
enum Wanted {
    /// A line of the COPY text that the whole file is rewritten to.
    Line { shape: Shape, number: u64 },
    /// A row of a chunk whose records were mended, or NULL spelled anew in them.
    Row { shape: Shape, span: Span, row: u64 },
}

impl Wanted {
    /// Looks for it in bytes that begin at `from` of the file.
    fn find(
        self,
        file: &FilePlan,
        recoding: Recoding,
        stored: StoredFrom,
        from: u64,
    ) -> Result<Option<(u64, u64)>> {
        let plain = decompress::decoder(file.codec, BufReader::new(stored))?;
        let mut plain = plain_utf8(file, recoding, plain, from)?;
        match self {
            Wanted::Line { shape, number } => mend::locate(&shape, plain, number),
            Wanted::Row { shape, span, row } => {
                let skipped = span.start_byte.saturating_sub(from);
                io::copy(&mut Read::by_ref(&mut plain).take(skipped), &mut io::sink())
                    .map_err(crate::feed::plain_error)?;
                mend::locate_in_chunk(&shape, plain, span, row)
            }
        }
    }
}

/// The stored bytes of an object, from an offset on. To be read outside the runtime's threads.
pub(crate) struct StoredFrom {
    context: Context,
    opened: Opened,
    offset: u64,
    block: Bytes,
    handle: Handle,
    deadline: Instant,
}

impl StoredFrom {
    /// To be made within the runtime.
    pub(crate) fn new(context: &Context, object: Object, from: u64, within: Duration) -> StoredFrom {
        StoredFrom {
            context: context.clone(),
            opened: Opened::new(object),
            offset: from,
            block: Bytes::new(),
            handle: Handle::current(),
            deadline: Instant::now() + within,
        }
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        let next = tokio::time::timeout_at(self.deadline, self.opened.next_block(self.offset));
        let next = async {
            next.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::SourceTransient, "it takes too long")))
        };
        self.handle.block_on(self.context.stop.guard(next))
    }
}

impl Read for StoredFrom {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.block.is_empty() {
            if Instant::now() >= self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let Some(block) = self.next().map_err(io::Error::other)? else { return Ok(0) };
            self.offset += block.len() as u64;
            self.block = block;
        }
        let count = self.block.len().min(out.len());
        self.block.split_to(count).copy_to_slice(&mut out[..count]);
        Ok(count)
    }
}
