//! Looks at the beginning of each file: how it is compressed, how its first record ends, what its header
//! says.
//!
//! A pipe's head is kept and read again from memory by the load, and so is that of a URL which may give
//! another file the next time, and a small object of which this is all; of everything else only these bytes
//! are fetched.

use super::finding::{Found, Looked};
use super::sources::Source;
use crate::Context;
use crate::feed::{Opened, PIPES_AT_ONCE_MAX, plain_error};
use crate::retry::patiently;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use howdah_model::{Codec, Dialect, Eol, Error, ErrorKind, Event, Format, FormatKind, Header, Result, Told};
use howdah_source::Object;
use howdah_target::session::{Session, encoding};
use howdah_transcode::encode::{self, Malformed};
use howdah_transcode::split::Rules;
use howdah_transcode::{decompress, header};
use std::collections::{BTreeMap, VecDeque};
use std::io::{Cursor, Read};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Stored bytes fetched of a file at first: one round trip to a store, and longer than nearly any header.
const HEAD_BYTES: usize = 64 << 10;
/// Where looking for the end of the first record gives up. COPY itself takes records up to 1 GB, but the
/// budget of a load is smaller; the splitter says so with the record's place.
const HEAD_BYTES_MAX: usize = 64 << 20;
/// Files looked at side by side: enough to hide the distance to an object store.
pub(super) const HEADS_AT_ONCE: usize = 16;
/// A pipe whose beginning has not come by then is said to be waited for.
const LATE_AFTER: Duration = Duration::from_secs(5);
/// As often as so many files more were looked at it is told how many were: each second or so from a store far
/// away.
const TOLD_EVERY: usize = 100;
/// Of so many files the first records are kept, and small objects whatever room there is: a job may have a
/// hundred thousand.
const SAMPLES_MAX: usize = 64;
/// Of a URL that nothing tells from another file these are compared: more than most headers and first
/// records.
const SEEN_BYTES: usize = 4 << 10;
/// A block of lz4 holds up to 4 MiB, and one of bzip2 900 kB, which are decompressed all at once: so much is
/// read beyond what is wanted before a file is judged by less.
const BLOCK_BYTES_MAX: usize = 8 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a look at a file tells.
pub(super) struct Head {
    pub(super) opened: Opened,
    pub(super) table: String,
    pub(super) codec: Codec,
    pub(super) eol: Option<Eol>,
    pub(super) data_start_byte: u64,
    pub(super) data_end_byte: Option<u64>,
    pub(super) names: Option<Vec<String>>,
    pub(super) written: Written,
    /// What was found beyond what options say; `None` when they say everything. A kilobyte, and there may be
    /// tens of thousands of files.
    pub(super) found: Option<Box<Found>>,
    /// The first records, where options say everything.
    pub(super) records: Vec<u8>,
    /// What is only there to be looked at is kept.
    pub(super) keeps_sample: bool,
}

/// How a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// As the splitter and the server meet it.
    pub(super) format: Format,
    /// The encoding that the client has to rewrite as UTF-8.
    pub(super) recode: Option<String>,
    /// As it was found.
    pub(super) dialect: Option<Dialect>,
}

impl Head {
    pub(super) fn object(&self) -> &Object {
        &self.opened.object
    }

    /// The names in a header that was found. The ledger's jsonb takes no NUL, and no column has such a name.
    pub(super) fn found_names(&self) -> Vec<String> {
        let names = self.found.as_ref().and(self.names.clone()).unwrap_or_default();
        if names.iter().any(|name| name.contains('\0')) { Vec::new() } else { names }
    }

    pub(super) fn into_opened(self) -> Opened {
        self.opened
    }

    /// Where the next table of the file begins, in plain bytes.
    pub(super) fn second_table_byte(&self) -> Option<u64> {
        self.found.as_ref()?.finding.plain.second_table_byte
    }

    /// The first records, whole ones but perhaps for the last, with their format and line endings.
    pub(super) fn sample(&self) -> (Format, Option<Eol>, &[u8]) {
        match &self.found {
            Some(found) => (Format::text(), Some(Eol::Lf), &found.columns.sample),
            None => (self.written.format.clone(), self.eol, &self.records),
        }
    }

    /// Lets go of what is only there to be looked at, but for so many records: a job may have a hundred
    /// thousand files.
    pub(super) fn forget_sample(&mut self, but_records: usize) {
        if self.keeps_sample {
            return;
        }
        self.records = Vec::new();
        if let Some(found) = &mut self.found {
            found.columns.sample = Vec::new();
            found.columns.preview.truncate(but_records);
        }
    }

    /// The first records as they would be stored.
    pub(super) fn preview(&self) -> Vec<Vec<Option<String>>> {
        self.found.as_ref().map(|found| found.columns.preview.clone()).unwrap_or_default()
    }
}

/// What looking at the heads needs to know.
pub(super) struct Heads<'a> {
    pub(super) context: &'a Context,
    /// A load follows.
    pub(super) to_load: bool,
    pub(super) session: &'a Session,
    /// How long failures that may pass are tried again.
    pub(super) patience: Duration,
    /// The files' format as the splitter meets it.
    pub(super) format: &'a Format,
    /// The columns by position: the names in headers do not matter.
    pub(super) columns: Option<&'a [String]>,
    /// The encoding that the client has to rewrite as UTF-8.
    pub(super) recode: Option<&'a str>,
    /// The rest is to be found from the data.
    pub(super) told: Option<&'a Told>,
    /// Further tables of a file are loaded, too.
    pub(super) all_tables: bool,
    /// There is one source.
    pub(super) alone: bool,
    /// What the server has said of encodings: it need not be asked for each of a hundred thousand files.
    pub(super) readable: tokio::sync::Mutex<BTreeMap<String, bool>>,
    /// What may still be kept of small objects for the load.
    pub(super) room_bytes: AtomicU64,
}

/// UNLOAD writes one beside the parts, and a prefix or a folder takes it along.
fn of_manifest(error: Error, location: &str) -> Error {
    let is_manifest = location.rsplit('/').next().is_some_and(|name| name.contains("manifest"));
    if error.kind() != ErrorKind::Unsupported || !is_manifest {
        return error;
    }
    error.with_hint(
        "a manifest lists the files of an export and is none of them: leave it out by a pattern that only the others match ('PREFIX0*')",
    )
}

impl Heads<'_> {
    /// Looks at every file.
    pub(super) async fn read_all(&self, sources: Vec<Source>) -> Result<Vec<Head>> {
        // Whoever writes to several pipes in turn gets on when all of them are read.
        let pipes = sources.iter().filter(|source| !source.object.rereadable()).count();
        let at_once = pipes.clamp(HEADS_AT_ONCE, PIPES_AT_ONCE_MAX);
        let (mut looked_at, all) = (0, sources.len());
        let mut heads: Vec<Head> = stream::iter(sources.into_iter().enumerate())
            .map(|(no, mut source)| async move {
                let mut looked = source.looked.take().map(|looked| *looked);
                let location = source.object.location().to_owned();
                // A pipe gives its bytes once: what broke there stays broken.
                let patience = if source.object.rereadable() { self.patience } else { Duration::ZERO };
                let looking = patiently(self.context, patience, || self.look(&source, looked.take()));
                let looked = self.tell_if_late(&source.object, looking).await;
                let mut heads = looked.map_err(|error| of_manifest(error, &location).in_file(location))?;
                // No server waits until other files are loaded.
                for head in &mut heads {
                    head.keeps_sample = no < SAMPLES_MAX;
                    if let Some(found) = head.found.as_mut().filter(|_| no >= SAMPLES_MAX) {
                        found.finding.spellings.keep_words();
                    }
                    self.let_go(head);
                    // The first record may turn out to be a header.
                    head.forget_sample(usize::from(head.names.is_none()));
                }
                Ok(heads)
            })
            .buffered(at_once)
            .inspect_ok(|_| {
                looked_at += 1;
                self.tell_how_far(looked_at, all);
            })
            .try_concat()
            .await?;
        self.settle_siblings(&mut heads).await?;
        Ok(heads)
    }

    /// A hundred thousand objects of a store far away take minutes.
    fn tell_how_far(&self, looked_at: usize, all: usize) {
        let is_done = looked_at == all;
        if all > TOLD_EVERY && (is_done || looked_at.is_multiple_of(TOLD_EVERY)) {
            let what = (!is_done).then(|| format!("looking at the files: {looked_at} of {all}"));
            self.context.listener.on_event(&Event::Phase { what });
        }
    }

    /// Closes what need not stay open. Of some objects that are small all that was read stays.
    pub(super) fn let_go(&self, head: &mut Head) {
        let (object, keeps) = (head.object(), head.keeps_sample);
        let is_kept = object.version().is_some() && (keeps || self.has_room(head.opened.kept_bytes()));
        if object.rereadable() && !self.alone && !is_kept {
            head.opened.let_go();
        }
    }

    /// Takes so much of the room for small objects, if that is left.
    fn has_room(&self, bytes: u64) -> bool {
        let take = |room: u64| room.checked_sub(bytes);
        bytes > 0 && self.room_bytes.fetch_update(Relaxed, Relaxed, take).is_ok()
    }

    /// A pipe whose writer waits until another one is read to its end would be waited for without a word.
    async fn tell_if_late<T>(&self, object: &Object, looking: impl Future<Output = T>) -> T {
        let mut looking = pin!(looking);
        if object.rereadable() {
            return looking.await;
        }
        if let Ok(looked) = tokio::time::timeout(LATE_AFTER, looking.as_mut()).await {
            return looked;
        }
        let name = if object.location() == "-" { "standard input" } else { object.location() };
        let message =
            format!("waiting for the writer of {name}: nothing is loaded before all sources have begun");
        self.context.tell(message);
        looking.await
    }

    async fn look(&self, source: &Source, looked: Option<Looked>) -> Result<Vec<Head>> {
        match self.told {
            Some(told) => self.find_all(source, looked, told).await,
            None => Ok(vec![self.read(source).await?]),
        }
    }

    /// As COPY is told to read it.
    async fn read(&self, source: &Source) -> Result<Head> {
        let mut reader = HeadReader::new(source.object.clone());
        let mut wanted = HEAD_BYTES;
        loop {
            let all = reader.fill(wanted).await?;
            let stored = reader.stored();
            let codec = decompress::sniff(&stored[..stored.len().min(decompress::SNIFF_BYTES)])?;
            let (plain, plain_all) = plain_head(codec, self.recode, &stored, wanted, all)?;
            let first = Rules::first_record(self.format, self.session.server_version(), &plain, plain_all)?;
            if first.is_none() && !plain_all && wanted < HEAD_BYTES_MAX {
                wanted *= 4;
                continue;
            }
            if first.is_none() && !plain_all && self.format.header != Header::None {
                let message = format!("the header is longer than {HEAD_BYTES_MAX} bytes");
                return Err(Error::new(ErrorKind::RecordTooLong, message)
                    .with_hint("an unclosed quote is the usual cause"));
            }
            let end = first.as_ref().map_or(0, |first| first.end);
            let (names, data_start_byte) = match self.format.header {
                Header::None => (None, 0),
                Header::Names | Header::Match => {
                    let text = self.header_text(&plain[..end]).await?;
                    self.refuse_marker(&text)?;
                    // COPY reads no names that do not matter. An empty file has not even an empty one.
                    let skipped =
                        self.format.header == Header::Names && (self.columns.is_some() || plain.is_empty());
                    ((!skipped).then(|| self.names(&text)).transpose()?, end as u64)
                }
            };
            return Ok(Head {
                opened: reader.into_opened(),
                table: source.table.clone(),
                codec,
                eol: first.and_then(|first| first.eol),
                data_start_byte,
                data_end_byte: None,
                names,
                written: Written {
                    format: self.format.clone(),
                    recode: self.recode.map(str::to_owned),
                    dialect: None,
                },
                found: None,
                records: first_records(&plain, data_start_byte),
                keeps_sample: true,
            });
        }
    }

    /// The header in UTF-8. Only the server knows all encodings, so it converts what is not ASCII.
    async fn header_text(&self, record: &[u8]) -> Result<String> {
        let record = record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record);
        match &self.format.encoding {
            Some(name) if self.recode.is_none() && !record.is_ascii() => {
                let converted = encoding::to_utf8(self.session, record, name);
                self.context.connection.attend(self.session, converted).await
            }
            // COPY takes a NUL in no encoding.
            _ => std::str::from_utf8(record)
                .ok()
                .filter(|text| !text.contains('\0'))
                .map(str::to_owned)
                .ok_or_else(|| Error::new(ErrorKind::Record, "the header is not valid UTF8")),
        }
    }

    /// text: `\.` in a line is an error to COPY, in a header too. (One that ends the data is not in the
    /// record.)
    fn refuse_marker(&self, text: &str) -> Result<()> {
        let mut bytes = text.bytes();
        while self.format.kind == FormatKind::Text
            && let Some(byte) = bytes.next()
        {
            if byte == b'\\' && bytes.next() == Some(b'.') {
                return Err(Error::new(ErrorKind::Record, "end-of-copy marker corrupt in the header"));
            }
        }
        Ok(())
    }

    fn names(&self, text: &str) -> Result<Vec<String>> {
        header::fields(&Format { encoding: None, ..self.format.clone() }, text.as_bytes())
    }
}

/// A part of the plain head that is worth keeping.
fn first_records(plain: &[u8], data_start_byte: u64) -> Vec<u8> {
    let records = usize::try_from(data_start_byte).ok().and_then(|start| plain.get(start..));
    let records = records.unwrap_or_default();
    records[..records.len().min(HEAD_BYTES)].to_vec()
}

/// The first plain bytes, and whether they are all there are.
pub(super) fn plain_head(
    codec: Codec,
    recode: Option<&str>,
    stored: &[u8],
    wanted: usize,
    all: bool,
) -> Result<(Vec<u8>, bool)> {
    let mut decoder = decompress::decoder(codec, Cursor::new(stored))?;
    if let Some(encoding) = recode {
        decoder = encode::to_utf8(encoding, decoder, Malformed::Marked)?;
    }
    let mut plain = Vec::new();
    let limit = wanted as u64;
    match decoder.take(limit).read_to_end(&mut plain) {
        Ok(_) => {
            let ended = all && (plain.len() as u64) < limit;
            Ok((plain, ended))
        }
        // Cut off by us in the middle of a frame: what came out so far is good.
        Err(_) if !all => Ok((plain, false)),
        Err(error) => Err(plain_error(error)),
    }
}

/// Reads the first stored bytes of an object, more on demand.
pub(super) struct HeadReader {
    opened: Opened,
    offset: u64,
    ended: bool,
}

impl HeadReader {
    pub(super) fn new(object: Object) -> HeadReader {
        HeadReader::behind_head(Opened::new(object))
    }

    /// Goes on behind what was kept of an earlier look.
    pub(super) fn behind_head(opened: Opened) -> HeadReader {
        let offset = opened.head.iter().map(|block| block.len() as u64).sum();
        HeadReader { opened, offset, ended: false }
    }

    pub(super) fn object(&self) -> &Object {
        &self.opened.object
    }

    /// So many stored bytes have come.
    pub(super) fn reached(&self) -> u64 {
        self.offset
    }

    /// Reads until `wanted` bytes are there; `true` when the object has no more.
    pub(super) async fn fill(&mut self, wanted: usize) -> Result<bool> {
        while !self.ended && self.offset < wanted as u64 {
            let block = if self.opened.object.ranged() {
                self.read_range(wanted).await?
            } else {
                let block = self.opened.next_block(self.offset).await;
                // Asked again, it goes on from here.
                block.inspect_err(|_| self.opened.stream = None)?
            };
            match block {
                Some(block) => {
                    self.offset += block.len() as u64;
                    self.opened.head.push_back(block);
                }
                None => self.ended = true,
            }
        }
        Ok(self.ended || self.opened.object.stored_bytes() == Some(self.offset))
    }

    /// The first plain bytes, as many as are wanted, and whether they are all there are.
    pub(super) async fn plain(&mut self, codec: Codec, wanted: usize) -> Result<(Vec<u8>, bool)> {
        let stored_max = wanted.saturating_add(BLOCK_BYTES_MAX);
        let mut stored = wanted;
        loop {
            let all = self.fill(stored).await?;
            let (plain, whole) = plain_head(codec, None, &self.stored(), wanted, all)?;
            if all || plain.len() >= wanted || stored == stored_max {
                return Ok((plain, whole));
            }
            stored = stored.saturating_mul(2).min(stored_max);
        }
    }

    async fn read_range(&mut self, wanted: usize) -> Result<Option<Bytes>> {
        let missing = wanted - usize::try_from(self.offset).unwrap_or(wanted);
        let (mut bytes, mut filled) = (vec![0; missing], 0);
        let read = self.opened.object.read_on(self.offset, &mut bytes, &mut filled).await;
        bytes.truncate(filled);
        // What has come is there when the rest is asked for again.
        if read.is_err() && filled > 0 {
            self.offset += filled as u64;
            self.opened.head.push_back(Bytes::from(bytes));
            return read.map(|()| None);
        }
        read?;
        Ok((filled > 0).then(|| Bytes::from(bytes)))
    }

    pub(super) fn stored(&self) -> Vec<u8> {
        self.opened.head.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>().concat()
    }

    /// The same, not copied where they came at once.
    pub(super) fn into_stored(mut self) -> Bytes {
        match self.opened.head.pop_front() {
            Some(block) if self.opened.head.is_empty() => block,
            first => {
                let blocks: Vec<&[u8]> = first.iter().chain(&self.opened.head).map(AsRef::as_ref).collect();
                blocks.concat().into()
            }
        }
    }

    /// Only what gives its bytes once, or others the next time, keeps what was read; and what has no more,
    /// and is far away.
    pub(super) fn into_opened(self) -> Opened {
        let stored = self.stored();
        let first = |bytes: usize| &stored[..stored.len().min(bytes)];
        let may_have_parts = decompress::sniff(first(decompress::SNIFF_BYTES))
            .is_ok_and(|codec| decompress::begins_with_part(codec, &stored));
        let mut opened = self.opened;
        opened.may_have_parts = may_have_parts;
        if opened.is_nameless() {
            opened.seen = Bytes::copy_from_slice(first(SEEN_BYTES));
        } else if !opened.object.local()
            && stored.len() <= HEAD_BYTES
            && opened.object.stored_bytes() == Some(self.offset)
        {
            // Nothing need be asked for a second time. What was read of a request may be far less than there
            // was room for.
            (opened.head, opened.stream) = (VecDeque::from([stored.into_boxed_slice().into()]), None);
        } else if opened.object.rereadable() {
            opened.let_go();
        }
        opened
    }
}
