//! Finds how a file is written, from a sample of its head, middle and tail, and what its columns hold.
//!
//! Options fix their part of the answer. A file of which only the beginning can be had without reading it all
//! (a pipe, a compressed file) is judged by a longer beginning.

use super::head::{HEADS_AT_ONCE, Head, HeadReader, Heads, Written};
use super::part::Part;
use super::scan::Columns;
use super::sources::Source;
use crate::feed::{Opened, plain_error};
use futures_util::future::join_all;
use howdah_model::{Codec, Error, ErrorKind, Escape, Format, Job, Place, Result, Told};
use howdah_source::Object;
use howdah_target::session::encoding;
use howdah_transcode::decompress;
use howdah_transcode::dialect::{self, Finding, Given, LONG_HEAD_BYTES, Sample, Span, WINDOW_BYTES};
use howdah_transcode::encode::{self, Malformed};
use std::io;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Plain bytes of a file that can only be read from its beginning.
const STREAM_HEAD_BYTES: usize = 4 * WINDOW_BYTES;

/// A head in which a field does not end is read on to so many times as much.
const LONGER_HEAD: usize = 16;

/// Tables looked for in one file.
const TABLES_MAX: usize = 100;

/// What was found in one file.
pub(super) struct Found {
    pub(super) finding: Finding,
    /// What the sampled values of each field are.
    pub(super) columns: Columns,
}

/// So much of a file in another encoding than UTF-8 is read to count what stands before a table in UTF-8:
/// more than of any file that is scanned whole.
const COUNTED_BYTES_MAX: u64 = 64 << 20;

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
    /// Of a file that can only be read from its beginning.
    fn of_head(head: Vec<u8>, whole: bool) -> Windows {
        Windows { head, middle: Vec::new(), tail: Vec::new(), whole, size_bytes: None }
    }

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

/// Long heads are in memory two at a time: each takes up to four times [`LONG_HEAD_BYTES`] while it is looked
/// at.
static LONG_HEADS: Semaphore = Semaphore::const_new(2);

/// Waits, once for each file, until its head may be long.
pub(super) async fn may_be_long(leave: &mut Option<SemaphorePermit<'static>>) {
    if leave.is_none() {
        // It is never closed.
        *leave = LONG_HEADS.acquire().await.ok();
    }
}

/// What the first table of a file told; nothing of it needs the server.
pub(super) struct Looked {
    pub(super) reader: HeadReader,
    pub(super) codec: Codec,
    pub(super) found: Found,
}

/// Looks at the files that will be looked at first, while there is no session yet. A look that fails is done
/// again when it is wanted, and its error told then.
pub(super) async fn look_ahead(sources: &[Source], job: &Job) -> Vec<Option<Looked>> {
    let Some(told) = &job.shaping.told else { return Vec::new() };
    let look = |source: &Source| {
        let (object, given) = (source.object.clone(), given(told, job.columns.as_deref()));
        async move {
            // A pipe gives its bytes once.
            if object.rereadable() { look_at(HeadReader::new(object), &given).await.ok() } else { None }
        }
    };
    join_all(sources.iter().take(HEADS_AT_ONCE).map(look)).await
}

/// Finds how an object is written that is read from its beginning.
pub(super) async fn look_at(mut reader: HeadReader, given: &Given) -> Result<Looked> {
    let object = reader.object().clone();
    let all = reader.fill(WINDOW_BYTES).await?;
    let stored = reader.stored();
    let codec = decompress::sniff(&stored[..stored.len().min(decompress::SNIFF_BYTES)])?;
    let found = if codec == Codec::None && (all || object.ranged()) {
        Part { object: &object, start_byte: 0 }.find(stored, all, given.clone()).await?
    } else {
        let (mut wanted, mut long) = (STREAM_HEAD_BYTES, None);
        loop {
            let (head, whole) = reader.plain(codec, wanted).await?;
            let found = found_in(Windows::of_head(head, whole), given.clone()).await?;
            let Some(bytes) = found.longer_head(wanted) else { break found };
            // Whoever writes to several pipes in turn does not go on with one before another is read.
            if object.rereadable() {
                may_be_long(&mut long).await;
            }
            wanted = bytes;
        }
    };
    Ok(Looked { reader, codec, found })
}

impl Heads<'_> {
    /// As the data shows: the first table of the file, and with `--all-tables` those behind it, too.
    pub(super) async fn find_all(
        &self,
        source: &Source,
        looked: Option<Looked>,
        told: &Told,
    ) -> Result<Vec<Head>> {
        let looked = match looked {
            Some(looked) => looked,
            None => look_at(HeadReader::new(source.object.clone()), &given(told, self.columns)).await?,
        };
        let opened = looked.reader.into_opened();
        let first = self.head_of(opened, source.table.clone(), looked.codec, looked.found).await?;
        let mut next = first.second_table_byte();
        if !self.all_tables || next.is_none() {
            return Ok(vec![first]);
        }
        if !source.object.rereadable() {
            return Err(read_once());
        }
        // No byte order mark says it again; ASCII is UTF8, whatever the tables behind are in.
        let encoding = first.found.as_ref().map(|found| found.finding.encoding.name.clone());
        let encoding = told.encoding.clone().or(encoding.filter(|name| name != "UTF8"));
        let told = Told { encoding, ..told.clone() };
        let (mut reader, mut heads) = (HeadReader::new(source.object.clone()), vec![first]);
        while let Some(from_byte) = next {
            if heads.len() == TABLES_MAX {
                return Err(too_many());
            }
            let head = self.find_behind(source, &told, &mut reader, from_byte, heads.len() + 1).await?;
            next = head.second_table_byte();
            heads.push(head);
        }
        Ok(heads)
    }

    /// The table that begins at this plain byte.
    async fn find_behind(
        &self,
        source: &Source,
        told: &Told,
        reader: &mut HeadReader,
        from_byte: u64,
        number: usize,
    ) -> Result<Head> {
        reader.fill(decompress::SNIFF_BYTES).await?;
        let stored = reader.stored();
        let codec = decompress::sniff(&stored[..stored.len().min(decompress::SNIFF_BYTES)])?;
        let (mut found, before) = if codec == Codec::None && source.object.ranged() {
            let part = Part { object: &source.object, start_byte: from_byte };
            let found = part.find(Vec::new(), false, given(told, self.columns)).await?;
            let before = read_before(&source.object, &found.finding, from_byte).await?;
            (found, before)
        } else {
            self.find_behind_in_order(told, reader, codec, from_byte).await?
        };
        let utf8_before = match found.finding.encoding.name.as_str() {
            "UTF8" => from_byte,
            _ => utf8_bytes(&found.finding, &before)?,
        };
        shift(&mut found.finding.plain, from_byte);
        shift(&mut found.finding.utf8, utf8_before);
        let opened = HeadReader::new(source.object.clone()).into_opened();
        self.head_of(opened, numbered(&source.table, number), codec, found).await
    }

    /// What stands before the table is read, too: compressed bytes cannot be read from the middle.
    async fn find_behind_in_order(
        &self,
        told: &Told,
        reader: &mut HeadReader,
        codec: Codec,
        from_byte: u64,
    ) -> Result<(Found, Vec<u8>)> {
        let before_bytes = usize::try_from(from_byte).unwrap_or(usize::MAX);
        let mut wanted = STREAM_HEAD_BYTES;
        loop {
            let (mut before, whole) = reader.plain(codec, before_bytes.saturating_add(wanted)).await?;
            let head = before.split_off(before_bytes.min(before.len()));
            let found = found_in(Windows::of_head(head, whole), given(told, self.columns)).await?;
            let Some(bytes) = found.longer_head(wanted) else { return Ok((found, before)) };
            wanted = bytes;
        }
    }

    pub(super) async fn head_of(
        &self,
        opened: Opened,
        table: String,
        codec: Codec,
        found: Found,
    ) -> Result<Head> {
        let finding = &found.finding;
        let written = self.written(finding).await?;
        Ok(Head {
            opened,
            table,
            codec,
            eol: finding.dialect.eol,
            data_start_byte: finding.plain.start_byte,
            data_end_byte: finding.plain.end_byte,
            names: (finding.header_rows > 0).then(|| finding.names.clone()),
            written,
            found: Some(Box::new(found)),
            records: Vec::new(),
            keeps_sample: true,
        })
    }

    async fn server_reads(&self, encoding: &str) -> Result<bool> {
        let mut known = self.readable.lock().await;
        if let Some(reads) = known.get(encoding) {
            return Ok(*reads);
        }
        let asking = encoding::reads_encoding(self.session, encoding);
        let reads = self.context.connection.attend(self.session, asking).await?;
        known.insert(encoding.to_owned(), reads);
        Ok(reads)
    }

    /// What COPY is told, where it can be told, and who rewrites the encoding.
    async fn written(&self, finding: &Finding) -> Result<Written> {
        let name = finding.encoding.name.clone();
        let format = finding.dialect.to_format();
        // Spelling NULL in one way, the client has to know the fields.
        let format = format.or_else(|| finding.dialect.to_format_but_null().filter(|_| name == "UTF8"));
        let readable = format.is_some() && self.server_reads(&name).await?;
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
pub(super) async fn found_in(windows: Windows, given: Given) -> Result<Found> {
    let found = tokio::task::spawn_blocking(move || {
        let finding = dialect::find(&windows.sample(), &given)?;
        let columns = Columns::sampled(&finding, &windows);
        Ok(Found { finding, columns })
    });
    found
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, format!("finding the dialect failed: {error}")))?
}

/// The place of a table that stands behind so many bytes.
fn shift(span: &mut Span, bytes: u64) {
    span.start_byte += bytes;
    for byte in [&mut span.end_byte, &mut span.second_table_byte].into_iter().flatten() {
        *byte += bytes;
    }
}

/// How long these plain bytes are in UTF-8.
fn utf8_bytes(finding: &Finding, plain: &[u8]) -> Result<u64> {
    if finding.encoding.name == "UTF8" {
        return Ok(plain.len() as u64);
    }
    let mut utf8 = encode::to_utf8(&finding.encoding.name, plain, Malformed::Marked)?;
    io::copy(&mut utf8, &mut io::sink()).map_err(plain_error)
}

fn read_once() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "several tables follow one another in a source that can be read only once",
    )
    .with_hint("save it as a file and load that, or leave --all-tables out to load the first table alone")
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "more than {TABLES_MAX} tables follow one another, and --all-tables takes up to {TABLES_MAX}"
        ),
    )
    .with_hint("cut the file between two tables")
}

/// `stations` -> `stations_2`; a quoted name stays one.
fn numbered(table: &str, number: usize) -> String {
    match table.strip_suffix('"') {
        Some(open) => format!("{open}_{number}\""),
        None => format!("{table}_{number}"),
    }
}

/// What stands before this byte of a file, of which all is needed to count it in another encoding.
async fn read_before(object: &Object, finding: &Finding, byte: u64) -> Result<Vec<u8>> {
    let is_long = byte > COUNTED_BYTES_MAX;
    if finding.encoding.name == "UTF8" || (is_long && !finding.encoding.recoded) {
        // Counted are types in all of a small file and the beginning of what the client recodes.
        return Ok(Vec::new());
    }
    if is_long {
        let limit = COUNTED_BYTES_MAX >> 20;
        let message =
            format!("a table begins behind {limit} MiB of a file in an encoding that the server cannot read");
        return Err(Error::new(ErrorKind::Unsupported, message)
            .at(Place { byte: Some(byte), ..Place::default() })
            .with_hint("convert the file to UTF-8, or cut it between the tables"));
    }
    Part { object, start_byte: 0 }.read(0, byte).await
}

/// What to find, and what not, since it was said.
pub(super) fn given(told: &Told, columns: Option<&[String]>) -> Given {
    Given {
        delimiter: told.delimiter.clone(),
        quote: told.quote,
        escape: told.escape.map(|escape| match escape {
            b'\\' => Escape::Backslash,
            _ => Escape::Doubled,
        }),
        nulls: told
            .null
            .iter()
            .next()
            .map(|null| std::iter::once(null).chain(&told.also_null).cloned().collect()),
        dialect: told.dialect.clone(),
        header: told.header,
        encoding: told.encoding.clone(),
        columns: columns.map(<[String]>::to_vec),
        ..Given::default()
    }
}

impl Found {
    /// How many bytes to read of the head, if this finding from `head_bytes` of it wants more.
    pub(super) fn longer_head(&self, head_bytes: usize) -> Option<usize> {
        let is_wanted = self.finding.has_open_field && head_bytes < LONG_HEAD_BYTES;
        is_wanted.then(|| head_bytes.saturating_mul(LONGER_HEAD).min(LONG_HEAD_BYTES))
    }

    /// The sample speaks against the backslashes of COPY's text format, which later records may hold by
    /// chance.
    pub(super) fn has_foreign_escapes(&self) -> bool {
        !self.finding.may_escape_with.contains(&None) && self.finding.dialect.escape != Escape::Backslash
    }

    /// What cannot be told apart, one sentence each.
    pub(super) fn unsure(&self) -> Vec<String> {
        let unsure = &self.finding.unsure;
        unsure.iter().map(|unsure| format!("{}; {} settles it", unsure.what, unsure.option)).collect()
    }
}
