//! Finds how a file is written, from a sample of its head, middle and tail, and what its columns hold.
//!
//! Options fix their part of the answer. A file of which only the beginning can be had without reading it all (a
//! pipe, a compressed file) is judged by a longer beginning.

use super::head::{Head, HeadReader, Heads, Written, plain_head};
use super::scan::Columns;
use super::sources::Source;
use howdah_model::{Codec, Error, ErrorKind, Escape, Format, Result, Told};
use howdah_source::Object;
use howdah_target::session::encoding;
use howdah_transcode::decompress;
use howdah_transcode::dialect::{self, Finding, Given, Sample, WINDOW_BYTES};

/// Plain bytes of a file that can only be read from its beginning.
const STREAM_HEAD_BYTES: usize = 4 * WINDOW_BYTES;

/// What was found in one file.
pub(super) struct Found {
    pub(super) finding: Finding,
    /// What the sampled values of each field are.
    pub(super) columns: Columns,
}

/// Plain bytes of a file, not of all of it when it is long.
pub(super) struct Windows {
    pub(super) head: Vec<u8>,
    pub(super) middle: Vec<u8>,
    pub(super) tail: Vec<u8>,
    /// The head is all there is.
    pub(super) whole: bool,
    size_bytes: Option<u64>,
}

impl Windows {
    fn sample(&self) -> Sample<'_> {
        Sample {
            head: &self.head,
            middle: &self.middle,
            tail: &self.tail,
            whole: self.whole,
            size_bytes: self.size_bytes,
        }
    }
}

impl Heads<'_> {
    /// As the data shows.
    pub(super) async fn find(&self, source: &Source, told: &Told) -> Result<Head> {
        let mut reader = HeadReader::new(source.object.clone());
        let all = reader.fill(WINDOW_BYTES).await?;
        let stored = reader.stored();
        let codec = decompress::sniff(&stored[..stored.len().min(decompress::SNIFF_BYTES)])?;
        let windows = if codec == Codec::None && (all || source.object.ranged()) {
            windows_of(&source.object, stored, all).await?
        } else {
            let all = reader.fill(STREAM_HEAD_BYTES).await?;
            let (head, whole) = plain_head(codec, None, &reader.stored(), STREAM_HEAD_BYTES, all)?;
            Windows { head, middle: Vec::new(), tail: Vec::new(), whole, size_bytes: None }
        };
        let given = given(told);
        let found = tokio::task::spawn_blocking(move || look(&windows, &given)).await;
        let found = found.map_err(|error| {
            Error::new(ErrorKind::Internal, format!("finding the dialect failed: {error}"))
        })??;
        let finding = &found.finding;
        let written = self.written(finding).await?;
        Ok(Head {
            opened: reader.into_opened(),
            table: source.table.clone(),
            codec,
            eol: finding.dialect.eol,
            data_start_byte: finding.plain.start_byte,
            data_end_byte: finding.plain.end_byte,
            names: (finding.header_rows > 0).then(|| finding.names.clone()),
            written,
            found: Some(found),
        })
    }

    /// What COPY is told, where it can be told, and who rewrites the encoding.
    async fn written(&self, finding: &Finding) -> Result<Written> {
        let name = finding.encoding.name.clone();
        let format = finding.dialect.to_format();
        let readable = format.is_some() && encoding::reads_encoding(self.session, &name).await?;
        let recode = (!readable && name != "UTF8").then(|| name.clone());
        let encoding = if recode.is_some() { "UTF8".to_owned() } else { name };
        let format = format.unwrap_or_else(Format::text);
        Ok(Written {
            format: Format { encoding: Some(encoding), ..format },
            recode,
            dialect: Some(finding.dialect.clone()),
        })
    }
}

/// Reads the middle and the tail of a file whose head was read. Windows never overlap.
async fn windows_of(object: &Object, head: Vec<u8>, whole: bool) -> Result<Windows> {
    let window = WINDOW_BYTES as u64;
    let bytes = object.stored_bytes().unwrap_or(head.len() as u64);
    if whole || bytes <= window {
        let size_bytes = Some(head.len() as u64);
        return Ok(Windows { head, middle: Vec::new(), tail: Vec::new(), whole: true, size_bytes });
    }
    let tail_start = bytes.saturating_sub(window).max(window);
    // Even, so that characters of two bytes stay whole.
    let middle_start = (bytes / 2).saturating_sub(window / 2).max(window) & !1;
    let tail = read(object, tail_start & !1, bytes).await?;
    let middle_end = (middle_start + window).min(tail_start & !1);
    let middle = read(object, middle_start, middle_end).await?;
    Ok(Windows { head, middle, tail, whole: false, size_bytes: Some(bytes) })
}

async fn read(object: &Object, start: u64, end: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
    if !bytes.is_empty() {
        let count = object.read_at(start, &mut bytes).await?;
        bytes.truncate(count);
    }
    Ok(bytes)
}

/// What to find, and what not, since it was said.
fn given(told: &Told) -> Given {
    Given {
        delimiter: told.delimiter.clone(),
        quote: told.quote,
        escape: told.escape.map(|escape| match escape {
            b'\\' => Escape::Backslash,
            _ => Escape::Doubled,
        }),
        nulls: told.null.clone().map(|null| vec![null]),
        header: told.header,
        encoding: told.encoding.clone(),
        ..Given::default()
    }
}

/// The work of a thread: no I/O.
fn look(windows: &Windows, given: &Given) -> Result<Found> {
    let finding = dialect::find(&windows.sample(), given)?;
    let columns = Columns::sampled(&finding, windows);
    Ok(Found { finding, columns })
}

impl Found {
    /// What the finding rests on, and what stays unsure, one sentence each.
    pub(super) fn evidence(&self) -> Vec<String> {
        let unsure =
            self.finding.unsure.iter().map(|unsure| format!("{}; {} settles it", unsure.what, unsure.option));
        self.finding.evidence.iter().cloned().chain(unsure).collect()
    }
}
