//! Records of chunks that have gone by, out of their files: read once more, in order, one chunk in memory.
//!
//! Nothing comes of pipes, and of records that were rewritten or mended on their way: these do not stand in
//! the file as they were counted.

use crate::Context;
use crate::feed::{mending_shape, plain_utf8, recoding};
use crate::locate::reread::StoredFrom;
use crate::pipeline::Run;
use crate::spot::Spot;
use bytes::Bytes;
use howdah_model::{Care, Error, ErrorKind, FilePlan, Result};
use howdah_transcode::decompress;
use howdah_transcode::split::Rules;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::time::Duration;

/// Files that are read again.
pub(crate) struct Files<'a> {
    run: &'a Run,
    within: Duration,
    reader: Option<(u32, Reader)>,
    chunk: Option<Records>,
}

/// The records of one chunk.
struct Records {
    file_no: u32,
    chunk_no: u64,
    bytes: Bytes,
    rows: Vec<Range<usize>>,
}

impl Files<'_> {
    /// Each file is given up when it takes longer.
    pub(crate) fn new(run: &Run, within: Duration) -> Files<'_> {
        Files { run, within, reader: None, chunk: None }
    }

    /// The first byte of a record, and all of them, its line ending included.
    pub(crate) async fn record(&mut self, spot: &Spot) -> Option<(u64, Bytes)> {
        if !stands_as_counted(self.run, spot) {
            return None;
        }
        let is_it =
            |chunk: &Records| chunk.file_no == spot.file_no && chunk.chunk_no == spot.receipt.chunk_no;
        if !self.chunk.as_ref().is_some_and(is_it) {
            self.chunk = None;
            self.chunk = Some(self.read(spot).await?);
        }
        let chunk = self.chunk.as_ref()?;
        let range = chunk.rows.get(usize::try_from(spot.row).ok()?)?.clone();
        Some((spot.receipt.start_byte + range.start as u64, chunk.bytes.slice(range)))
    }

    /// Number and first byte of a record, as far as they can be told.
    pub(crate) async fn place(&mut self, spot: &Spot) -> (Option<u64>, Option<u64>) {
        match self.record(spot).await {
            Some((byte, _)) => (spot.record(), Some(byte)),
            None => spot.found(self.run).await,
        }
    }

    async fn read(&mut self, spot: &Spot) -> Option<Records> {
        let (run, receipt) = (self.run, spot.receipt);
        let file = run.plan.file(spot.file_no);
        let table = run.plan.table(file.table_no);
        let open =
            self.reader.take().filter(|(no, reader)| *no == spot.file_no && reader.at <= receipt.start_byte);
        let mut reader = match open {
            Some((_, reader)) => reader,
            None => self.open(file, receipt.start_byte).await.ok()?,
        };
        let (start, end) = (receipt.start_byte, receipt.end_byte);
        let reading =
            tokio::task::spawn_blocking(move || reader.chunk(start, end).map(|bytes| (reader, bytes)));
        let (reader, bytes) = reading.await.ok()?.ok()?;
        self.reader = Some((spot.file_no, reader));
        let rules = Rules::new(&table.format, run.plan.server_version, file.eol).ok()?;
        let rows = rules.ranges(&bytes);
        Some(Records { file_no: spot.file_no, chunk_no: receipt.chunk_no, bytes: bytes.into(), rows })
    }

    async fn open(&self, file: &FilePlan, start: u64) -> Result<Reader> {
        let context: &Context = &self.run.context;
        let object = context.sources.open(&file.location, file.version.as_deref()).await?;
        // Behind the beginning only what goes untouched can be read.
        let from = if file.ranged { start } else { 0 };
        let stored = StoredFrom::new(context, object, from, self.within);
        let (file, recoding) = (file.clone(), recoding(&self.run.plan, file));
        let opening = tokio::task::spawn_blocking(move || {
            let plain = decompress::decoder(file.codec, BufReader::new(stored))?;
            let plain = plain_utf8(&file, recoding, plain, from)?;
            Ok(Reader { plain, at: from })
        });
        opening.await.map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?
    }
}

fn stands_as_counted(run: &Run, spot: &Spot) -> bool {
    let file = run.plan.file(spot.file_no);
    let table = run.plan.table(file.table_no);
    let omitted = spot.receipt.omitted;
    file.rereadable
        && table.care != Care::Rewritten
        && mending_shape(&run.plan, spot.file_no).is_none()
        && omitted.left_out + omitted.blank == 0
}

/// The plain bytes of a file, forward only. To be read outside the runtime's threads.
struct Reader {
    plain: Box<dyn Read + Send>,
    at: u64,
}

impl Reader {
    fn chunk(&mut self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let skipped = start.saturating_sub(self.at);
        io::copy(&mut Read::by_ref(&mut self.plain).take(skipped), &mut io::sink())?;
        let mut bytes = Vec::new();
        let read = Read::by_ref(&mut self.plain).take(end - start).read_to_end(&mut bytes)? as u64;
        self.at = start + read;
        if read < end - start {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}
