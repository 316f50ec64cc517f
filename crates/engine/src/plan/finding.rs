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

/// Tables looked for in one file.
const TABLES_MAX: usize = 100;

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
    /// Of the whole file, where that is known.
    pub(super) size_bytes: Option<u64>,
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
    /// As the data shows: the first table of the file, and with `--all-tables` those behind it, too.
    pub(super) async fn find_all(&self, source: &Source, told: &Told) -> Result<Vec<Head>> {
        let first = self.find(source, told).await?;
        let mut next = first.found.as_ref().and_then(|found| found.finding.plain.second_table_byte);
        // Only plain UTF-8 can be read from the middle of a file and counted in its own bytes.
        let countable = first.written.recode.is_none()
            && first.found.as_ref().is_some_and(|found| found.finding.encoding.name == "UTF8");
        if !self.all_tables || first.codec != Codec::None || !source.object.ranged() || !countable {
            return Ok(vec![first]);
        }
        let mut heads = vec![first];
        while let Some(from_byte) = next.filter(|_| heads.len() < TABLES_MAX) {
            let (head, behind) = self.find_behind(source, told, from_byte, heads.len() + 1).await?;
            heads.push(head);
            next = behind;
        }
        Ok(heads)
    }

    /// The table that begins at this byte, and where the one behind it does.
    async fn find_behind(
        &self,
        source: &Source,
        told: &Told,
        from_byte: u64,
        number: usize,
    ) -> Result<(Head, Option<u64>)> {
        let bytes = source.object.stored_bytes().unwrap_or(0);
        let end = bytes.min(from_byte.saturating_add(3 * WINDOW_BYTES as u64));
        let head = read(&source.object, from_byte, end).await?;
        let windows = Windows {
            head,
            middle: Vec::new(),
            tail: Vec::new(),
            whole: end == bytes,
            size_bytes: Some(bytes.saturating_sub(from_byte)),
        };
        let found = found_in(windows, given(told)).await?;
        let plain = found.finding.plain;
        let written = self.written(&found.finding).await?;
        let head = Head {
            opened: HeadReader::new(source.object.clone()).into_opened(),
            table: numbered(&source.table, number),
            codec: Codec::None,
            eol: found.finding.dialect.eol,
            data_start_byte: from_byte + plain.start_byte,
            data_end_byte: plain.end_byte.map(|end| from_byte + end),
            names: (found.finding.header_rows > 0).then(|| found.finding.names.clone()),
            written,
            found: Some(found),
        };
        Ok((head, plain.second_table_byte.map(|next| from_byte + next)))
    }

    /// The first table.
    async fn find(&self, source: &Source, told: &Told) -> Result<Head> {
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
        let found = found_in(windows, given(told)).await?;
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
        let connection = &self.context.connection;
        let readable = format.is_some()
            && connection.attend(self.session, encoding::reads_encoding(self.session, &name)).await?;
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

/// The work of another thread: no I/O.
async fn found_in(windows: Windows, given: Given) -> Result<Found> {
    let found = tokio::task::spawn_blocking(move || {
        let finding = dialect::find(&windows.sample(), &given)?;
        let columns = Columns::sampled(&finding, &windows);
        Ok(Found { finding, columns })
    });
    found
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, format!("finding the dialect failed: {error}")))?
}

/// `stations` -> `stations_2`; a quoted name stays one.
fn numbered(table: &str, number: usize) -> String {
    match table.strip_suffix('"') {
        Some(open) => format!("{open}_{number}\""),
        None => format!("{table}_{number}"),
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
    if bytes <= 3 * window {
        let rest = read(object, head.len() as u64, bytes).await?;
        let head = [head, rest].concat();
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

impl Found {
    /// What cannot be told apart, one sentence each.
    pub(super) fn unsure(&self) -> Vec<String> {
        let unsure = &self.finding.unsure;
        unsure.iter().map(|unsure| format!("{}; {} settles it", unsure.what, unsure.option)).collect()
    }
}
