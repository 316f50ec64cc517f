//! Where records end, exactly as the server's COPY would say.
//!
//! Plain bytes of a file go in, in pieces cut anywhere; borders between records, their number and the
//! place of an end-of-data marker come out. Fields are not looked at, and nothing is refused here: a byte
//! sequence that COPY refuses stays inside the chunk that the server will refuse, at the same record.
//!
//! # The rules
//! They are those of `CopyReadLineText` in PostgreSQL's `copyfromparse.c` (`copy.c` up to version 13),
//! read in the sources and tried on servers of versions 13, 15, 17 and 18:
//! - The first line of the input fixes how every line ends: `\n`, `\r` or `\r\n`. Any other unquoted
//!   line-ending byte later is an error.
//! - csv: a quote byte opens and closes quoting wherever it stands, also in the middle of a field. If the
//!   escape byte differs from the quote it counts only inside quotes, and only directly before a quote or
//!   another escape. Line endings inside quotes are data. An unclosed quote runs to the end of the file.
//! - text: a backslash makes the next byte data, a line ending too.
//! - An empty line is a record. So is a last line without a line ending.
//! - Encodings whose multi-byte characters may contain ASCII bytes are read character by character.
//!
//! # What differs between server versions
//! - csv, up to 17: a line that consists of `\.` ends the data, unless it stands inside quotes or is the
//!   last line and has no line ending. From 18 on it is data.
//! - text, all versions: a line that consists of `\.` ends the data.
//! - text, up to 17: `\.` directly before a line ending also ends the data when the line begins with
//!   something else, which then is the last record. (COPY FROM STDIN drops the rest of the stream without
//!   a word; COPY from a server-side file goes on after it. howdah streams, so the first is what counts.)
//!   From 18 on that is an error.
//! - text, all versions: `\.` before anything but a line ending is an error, at the end of the file too.
//! - Up to 13 lines are split before the encoding is converted, later versions convert first. Borders
//!   agree for every valid input.
//!
//! # Why chunks need [`Rules::check_first_line`]
//! Each chunk is a COPY of its own, so the server learns the line ending anew from its first record. If
//! that record contains a stray line-ending byte, the server would take this as the line ending and could
//! accept what a COPY of the whole file refuses. Stray bytes in later records the server finds itself.
//!
//! # Speed
//! `examples/split_throughput` measures it. One core of an Intel Xeon, pieces of 128 KiB that have just been
//! read: quoted csv 6 to 11 GB/s, text 7 to 9. 268 MB of quoted csv from the memory of that machine 3, of
//! text 5: so pieces should be scanned right after they are read.

pub(crate) mod block;
mod csv;
mod embedded_ascii;
mod lines;
mod ranges;
mod state;
mod text;
mod walk;

pub use lines::{FirstRecord, Offence};
pub use state::State;

use block::{BLOCK_BYTES, Block};
use howdah_model::{Eol, Error, ErrorKind, Format, FormatKind, Result};
use walk::{Step, Walker};

/// The first version in which `\.` is data in csv and an error inside a text line.
pub const VERSION_MARKER_STRICT: u32 = 180_000;

/// What decides where records end.
#[derive(Debug, Clone)]
pub struct Rules {
    kind: FormatKind,
    quote: u8,
    /// `None` where it equals the quote: doubling then closes and reopens the quotes, which moves no border.
    escape: Option<u8>,
    eol: Option<Eol>,
    /// The server is older than [`VERSION_MARKER_STRICT`].
    loose_marker: bool,
    /// The second byte of a character may look like any ASCII byte.
    embedded_ascii: Option<embedded_ascii::Family>,
}

/// What one pass over a piece of a file found. Offsets count from the beginning of the piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan {
    /// The state after the last byte.
    pub state: State,
    /// Records that ended in this piece by a line ending. At the end of the file there is one more if
    /// `state` is not [`State::at_record_start`].
    pub records: u64,
    /// One past the first record ending in this piece.
    pub first_border: Option<usize>,
    /// One past the last record ending in this piece.
    pub last_border: Option<usize>,
    /// Where an end-of-data marker begins: nothing from there on is data. Negative (by at most 3) if it
    /// began in the piece before. After it the state stays [`State::ended`].
    pub end_marker: Option<isize>,
}

/// How the record that was unfinished at the beginning of some bytes goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// It ends before this offset, its line ending included.
    Border(usize),
    /// The data ends at this offset, counted as [`Scan::end_marker`].
    EndMarker(isize),
    /// It goes on beyond these bytes; this is the state after them.
    Unfinished(State),
}

impl Rules {
    /// The rules for files of this format on this server (`server_version_num`). `eol` is that of the
    /// file's first record ([`Rules::first_record`]), `None` if the file has no complete record.
    ///
    /// # Errors
    /// `Usage` if quote and delimiter are the same byte; `Unsupported` for quotes that COPY allows but with
    /// which a chunk may mean something else than in its file (line endings; before version 18, `\`).
    pub fn new(format: &Format, server_version: u32, eol: Option<Eol>) -> Result<Rules> {
        let loose_marker = server_version < VERSION_MARKER_STRICT;
        if format.kind == FormatKind::Csv {
            refuse_quotes(format, loose_marker)?;
        }
        Ok(Rules {
            kind: format.kind,
            quote: format.quote,
            escape: (format.escape != format.quote).then_some(format.escape),
            eol,
            loose_marker,
            embedded_ascii: format.encoding.as_deref().and_then(embedded_ascii::family),
        })
    }

    /// How the records of the file end, as given to [`Rules::new`].
    pub fn eol(&self) -> Option<Eol> {
        self.eol
    }

    /// Characters of this format's encoding may contain bytes that look like ASCII.
    pub fn embeds_ascii(format: &Format) -> bool {
        format.encoding.as_deref().and_then(embedded_ascii::family).is_some()
    }

    /// One pass over a piece whose start state is known.
    pub fn scan(&self, from: State, bytes: &[u8]) -> Scan {
        let mut scan = Scan::new(from);
        match (self.walks_always(), self.kind) {
            (true, _) => scan.walk(self, bytes, 0..bytes.len()),
            (false, FormatKind::Csv) => csv::scan(self, bytes, &mut scan),
            (false, FormatKind::Text) => text::scan(self, bytes, &mut scan),
        }
        scan
    }

    /// A scan of `bytes` from [`State::INSIDE`] finds the same as one from this state. So it is at nearly
    /// every cut that is not inside quotes, and such a cut need not be known to read on from it.
    pub fn is_as_inside(state: State, bytes: &[u8]) -> bool {
        // A backslash at the start of a record may begin an end-of-data marker.
        state == State::INSIDE || state == State::START && bytes.first().is_some_and(|byte| *byte != b'\\')
    }

    /// Where the record that is unfinished in state `from` ends in `bytes`. Meant for the bytes beyond a
    /// range, so it stops at the first border.
    pub fn tail(&self, from: State, bytes: &[u8]) -> Tail {
        let mut walker = Walker::new(self, from);
        for (at, &byte) in bytes.iter().enumerate() {
            match walker.step(byte) {
                Step::Border => return Tail::Border(at + 1),
                Step::EndMarker { length } => return Tail::EndMarker(marker_start(at, length)),
                Step::Inside | Step::StrayLf | Step::StrayCr => {}
            }
        }
        Tail::Unfinished(walker.state)
    }

    /// The masks of [`block`] do not tell enough: characters contain ASCII bytes, or the file has no line
    /// ending.
    fn walks_always(&self) -> bool {
        self.embedded_ascii.is_some() || self.eol.is_none()
    }

    /// A line `\.` ends csv data.
    fn csv_marker(&self) -> bool {
        self.kind == FormatKind::Csv && self.loose_marker
    }
}

/// With a line ending for a quote, whether `\r\n` is one line ending depends on the records before it. With
/// `\` for a quote a quoted field may begin like an end-of-data marker, which old servers take it for,
/// depending on the line ending and on where their buffers end.
fn refuse_quotes(format: &Format, loose_marker: bool) -> Result<()> {
    let (quote, escape) = (format.quote, format.escape);
    if quote == format.delimiter {
        return Err(Error::new(ErrorKind::Usage, "delimiter and quote must be different bytes"));
    }
    if [quote, escape].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        let message = "quote and escape must not be a newline or a carriage return";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if quote == b'\\' && loose_marker {
        let message = "a backslash as the quote needs PostgreSQL 18 or newer";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(())
}

/// Behind an end-of-data marker: what is more than blank lines would be lost.
pub fn is_data(behind: &[u8]) -> bool {
    !behind.iter().all(u8::is_ascii_whitespace)
}

/// Where a marker of `length` bytes begins whose last byte is at `at`.
fn marker_start(at: usize, length: usize) -> isize {
    // Offsets of a slice fit isize.
    at as isize + 1 - length as isize
}

impl Scan {
    /// Of no bytes, in this state.
    pub fn new(from: State) -> Scan {
        Scan { state: from, records: 0, first_border: None, last_border: None, end_marker: None }
    }

    /// Adds what was found in the bytes behind, which begin at `at`.
    pub fn append(&mut self, next: &Scan, at: usize) {
        let moved = |border: Option<usize>| border.map(|border| border + at);
        self.state = next.state;
        self.records += next.records;
        self.first_border = self.first_border.or(moved(next.first_border));
        self.last_border = moved(next.last_border).or(self.last_border);
        self.end_marker =
            self.end_marker.or(next.end_marker.map(|marker| marker.saturating_add_unsigned(at)));
    }

    /// Scans all of `bytes` from its state: a block at a time where `scan_block` can, which else says no and
    /// changes nothing.
    #[inline]
    fn blocks(
        &mut self,
        rules: &Rules,
        bytes: &[u8],
        scan_block: impl Fn(&Rules, &[u8], usize, &Block, &mut Scan) -> bool,
    ) {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        for (index, block) in blocks.iter().enumerate() {
            let at = index * BLOCK_BYTES;
            if !scan_block(rules, bytes, at, block, self) {
                self.walk(rules, bytes, at..at + BLOCK_BYTES);
            }
        }
        self.walk(rules, bytes, bytes.len() - rest.len()..bytes.len());
    }

    /// Scans `range` of `bytes` byte by byte.
    fn walk(&mut self, rules: &Rules, bytes: &[u8], range: std::ops::Range<usize>) {
        let mut walker = Walker::new(rules, self.state);
        for at in range {
            match walker.step(bytes[at]) {
                Step::Border => self.border(at + 1),
                Step::EndMarker { length } => self.end_marker = Some(marker_start(at, length)),
                Step::Inside | Step::StrayLf | Step::StrayCr => {}
            }
        }
        self.state = walker.state;
    }

    /// Notes the record endings whose last bytes are the set bits of `ends`, in the block at `at`.
    #[inline]
    fn borders(&mut self, at: usize, ends: u64) {
        if ends != 0 {
            self.records += u64::from(ends.count_ones());
            self.last_border = Some(at + 64 - ends.leading_zeros() as usize);
            if self.first_border.is_none() {
                self.first_border = Some(at + ends.trailing_zeros() as usize + 1);
            }
        }
    }

    fn border(&mut self, border: usize) {
        self.records += 1;
        self.first_border = self.first_border.or(Some(border));
        self.last_border = Some(border);
    }
}
