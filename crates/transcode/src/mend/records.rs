//! The records of a file, one after the other, strictly or mended.

use super::kept::Kept;
use super::lenient::{Ahead, Lenient, Mended};
use super::line::Misread;
use super::window::Window;
use super::{Counts, Shape, broken_bytes};
use crate::cells::{Cells, Flaw, Next, Record};
use crate::dialect::declared_names::{self, NAMES_CHANGE};
use crate::dialect::{TABLE_END_BYTES, TableEnd};
use crate::fault::{BYTE_ORDER_MARK, Fault};
use crate::split;
use howdah_model::{Dialect, Error, ErrorKind, Escape, Mend, Nul, Omitted, Place, Result};
use std::io::Read;
use std::sync::Arc;

/// The least to read on for, when a record does not end in the window.
const MORE_BYTES: usize = 4096;

/// How far behind its first flaw a record is read on for its end, when it is to be mended. What is farther is
/// its line alone: each line may begin such a record, and reading it costs about 4 microseconds then.
const ASTRAY_BYTES: usize = 4 << 10;

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    /// Its number, counted from 1; records left out and blank lines count, comments do not.
    pub(super) record: u64,
    /// The offset of its first byte in the file.
    pub(super) byte: u64,
}

/// What [`Records::next`] comes to.
pub(super) enum Found {
    /// A record to be stored.
    Record(At),
    /// One that is not.
    Kept(Kept),
}

pub(super) struct Records<R> {
    window: Window<R>,
    cells: Cells,
    width: usize,
    record_bytes_max: usize,
    /// What each field fills.
    columns: Vec<Option<String>>,
    /// The names that comments may declare again.
    names: Vec<String>,
    /// The dialect is COPY's text, in which a line `\.` ends the data.
    has_marker: bool,
    record: Record,
    record_no: u64,
    /// Records from here on are not read.
    border_byte: u64,
    end: Option<TableEnd>,
    lenient: Option<Lenient>,
    /// Records that do not fit, or are beyond mending, are kept, each in its place.
    skips: bool,
    /// The length of the record found last.
    length: usize,
    nul: Nul,
    omitted: Omitted,
    counts: Arc<Counts>,
}

/// A record as the dialect cuts it.
enum Cut {
    Record {
        length: usize,
        flaw: Option<Flaw>,
    },
    /// It has this flaw and does not end anywhere near.
    Astray(Flaw),
    /// It is longer than any may be.
    TooLong,
}

impl<R: Read> Records<R> {
    pub(super) fn new(shape: &Shape, plain: R, counts: Arc<Counts>) -> Result<Records<R>> {
        let window = Window::new(plain, shape.data_start_byte, shape.data_end_byte);
        Records::of(shape, window, 0, u64::MAX, counts)
    }

    /// Those that start before the border, of bytes that begin with the record behind `start`.
    pub(super) fn between(
        shape: &Shape,
        plain: R,
        start: At,
        border_byte: u64,
        counts: Arc<Counts>,
    ) -> Result<Records<R>> {
        Records::of(shape, Window::at(plain, start.byte), start.record, border_byte, counts)
    }

    fn of(
        shape: &Shape,
        window: Window<R>,
        record_no: u64,
        border_byte: u64,
        counts: Arc<Counts>,
    ) -> Result<Records<R>> {
        let width = shape.fields.len();
        let lenient = shape.lenient.then(|| Lenient::new(&shape.dialect, width, shape.nul)).transpose()?;
        Ok(Records {
            window,
            cells: Cells::of_table(&shape.dialect, width)?,
            width,
            record_bytes_max: shape.record_bytes_max,
            columns: shape.fields.iter().map(|field| field.column.clone()).collect(),
            names: shape.names.clone(),
            has_marker: is_copy_text(&shape.dialect),
            record: Record::default(),
            record_no,
            border_byte,
            end: shape.end.clone(),
            lenient,
            skips: shape.skips,
            length: 0,
            nul: shape.nul,
            omitted: Omitted::default(),
            counts,
        })
    }

    /// The fields of the record that [`Records::next`] found last. Those missing at its end are NULL.
    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    /// The first byte behind the record read last.
    pub(super) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Records passed over so far.
    pub(super) fn omitted(&self) -> Omitted {
        self.omitted
    }

    /// What was read and not looked at.
    pub(super) fn into_rest(self) -> Vec<u8> {
        self.window.bytes().to_vec()
    }

    /// Moves to the next record that is to be stored, or kept; `None` at the end of the data.
    ///
    /// # Errors
    /// Strictly, the first record with a fault. Those of the input.
    pub(super) fn next(&mut self) -> Result<Option<Found>> {
        while let Some(cut) = self.cut()? {
            self.record_no += 1;
            let at = At { record: self.record_no, byte: self.window.offset() };
            let fault = match cut {
                Cut::TooLong => None,
                Cut::Astray(flaw) => Some(Fault::Flaw(flaw)),
                Cut::Record { length, flaw } => {
                    let Some(fault) = self.fault(length, flaw) else {
                        self.consume(length);
                        return Ok(Some(Found::Record(at)));
                    };
                    Some(fault)
                }
            };
            if self.is_other_table(fault)? {
                self.counts.set_other_table(at);
                return Ok(None);
            }
            let Some(lenient) = self.lenient.take() else {
                return self.refuse(&cut, fault, at).map(Some);
            };
            let mended = self.mend(&lenient, &cut, fault, at);
            self.lenient = Some(lenient);
            if let Some(found) = mended? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn consume(&mut self, length: usize) {
        self.length = length;
        self.window.consume(length);
    }

    /// The record has a fault and is not to be mended.
    fn refuse(&mut self, cut: &Cut, fault: Option<Fault>, at: At) -> Result<Found> {
        let refusal = self.refusal(fault, at);
        match (self.skips, cut, fault) {
            (true, Cut::Record { length, .. }, Some(fault)) => {
                self.consume(*length);
                Ok(Found::Kept(self.kept(at, &refusal, fault.sqlstate())))
            }
            _ => Err(refusal),
        }
    }

    /// The record found last, as it stands in the file.
    fn kept(&self, at: At, error: &Error, sqlstate: &str) -> Kept {
        Kept::new(at, error, sqlstate, self.window.consumed(self.length))
    }

    /// What is wrong with the record of this length, once its NUL bytes are as they are wanted.
    fn fault(&mut self, length: usize, flaw: Option<Flaw>) -> Option<Fault> {
        let fault = Fault::of(&self.window.bytes()[..length], &self.record, flaw, self.width, true);
        if !matches!(fault, Some(Fault::Nul { .. })) || self.nul == Nul::Reject {
            return fault;
        }
        broken_bytes::replace_nul(&self.cells, &mut self.record, broken_bytes::stand_in(self.nul));
        self.counts.add_mends(&[Mend::NulBytes]);
        Fault::of(&self.window.bytes()[..length], &self.record, flaw, self.width, true)
    }

    /// The record found last has a value that nobody understands: it is kept or left out.
    ///
    /// # Errors
    /// Strictly, that value.
    pub(super) fn misread(&mut self, at: At, misread: &Misread) -> Result<Option<Kept>> {
        if self.skips {
            return Ok(Some(self.kept(at, &misread.error(at), misread.sqlstate())));
        }
        if self.lenient.is_none() {
            return Err(misread.error(at));
        }
        self.leave_out(at, &misread.reason());
        Ok(None)
    }

    /// Another table begins with the record that has this fault.
    fn is_other_table(&mut self, fault: Option<Fault>) -> Result<bool> {
        let (Some(end), Some(Fault::Width { .. })) = (&self.end, fault) else { return Ok(false) };
        self.window.fill(TABLE_END_BYTES + 1)?;
        let bytes = self.window.bytes();
        Ok(end.is_at(&bytes[..bytes.len().min(TABLE_END_BYTES)], bytes.len() <= TABLE_END_BYTES))
    }

    /// Cuts the record at the beginning of the window, comments before it passed over.
    fn cut(&mut self) -> Result<Option<Cut>> {
        while self.window.offset() < self.border_byte {
            if self.lenient.is_some() && self.window.bytes().starts_with(BYTE_ORDER_MARK) {
                self.window.consume(BYTE_ORDER_MARK.len());
                self.counts.add_mends(&[Mend::ByteOrderMark]);
            }
            let held = self.window.bytes().len();
            let astray_bytes = if self.lenient.is_some() { ASTRAY_BYTES } else { usize::MAX };
            let bytes = self.window.bytes();
            let read = self.cells.read_near(bytes, self.window.ended(), &mut self.record, astray_bytes);
            let next = match read {
                Err(flaw) if flaw.at() <= self.record_bytes_max => return Ok(Some(Cut::Astray(flaw))),
                Err(_) => return Ok(Some(Cut::TooLong)),
                Ok(next) => next,
            };
            match next {
                Next::Record { length, .. } if length > self.record_bytes_max => {
                    return Ok(Some(Cut::TooLong));
                }
                Next::Record { length, .. } if self.is_marker(length) => {
                    self.look_behind_marker(length)?;
                    return Ok(None);
                }
                Next::Record { length, flaw } => {
                    self.refuse_other_names(length)?;
                    return Ok(Some(Cut::Record { length, flaw }));
                }
                Next::Comment(length) => {
                    self.refuse_other_names(length)?;
                    self.counts.add_comment();
                    self.window.consume(length);
                }
                Next::More if held > self.record_bytes_max => return Ok(Some(Cut::TooLong)),
                Next::More => self.window.fill(self.more(held))?,
                Next::End => return Ok(None),
            }
        }
        Ok(None)
    }

    /// # Errors
    /// `Unsupported` if the comment of this length, or what has the shape of a record, declares other names:
    /// what stands below would go to wrong columns. Where they are more or fewer, records with as many fields
    /// are refused for that, but where they are mended or kept.
    fn refuse_other_names(&self, length: usize) -> Result<()> {
        let declared = declared_names::of_line(&self.window.bytes()[..length]);
        let goes_on = self.lenient.is_some() || self.skips;
        let is_same =
            |names: &Vec<String>| *names == self.names || !goes_on && names.len() != self.names.len();
        if self.names.is_empty() || declared.is_none_or(|names| is_same(&names)) {
            return Ok(());
        }
        let byte = Some(self.window.offset());
        let place = Place { record: Some(self.record_no + 1), byte, ..Place::default() };
        let message =
            "the comment above the record declares other names than the header, or in another order";
        Err(Error::new(ErrorKind::Unsupported, message).at(place).with_hint(NAMES_CHANGE))
    }

    /// Doubling, so that a long record is looked at a few times only.
    fn more(&self, held: usize) -> usize {
        held.saturating_mul(2).min(self.record_bytes_max.saturating_add(1)).max(MORE_BYTES).max(held + 1)
    }

    fn is_marker(&self, length: usize) -> bool {
        self.has_marker
            && matches!(&self.window.bytes()[..length], [b'\\', b'.'] | [b'\\', b'.', b'\r' | b'\n', ..])
    }

    /// Takes note of the marker in sight, of so many bytes, if more than blank lines follow it.
    fn look_behind_marker(&mut self, length: usize) -> Result<()> {
        let at = At { record: self.record_no + 1, byte: self.window.offset() };
        loop {
            let held = self.window.bytes().len();
            let behind = self.window.bytes().get(length..).unwrap_or_default();
            if split::is_data(behind) || held > self.record_bytes_max {
                self.counts.set_end_marker(at);
                return Ok(());
            }
            if self.window.ended() {
                return Ok(());
            }
            self.window.fill(held + MORE_BYTES)?;
        }
    }

    fn refusal(&self, fault: Option<Fault>, at: At) -> Error {
        match fault {
            Some(fault) => {
                let column = fault.field().and_then(|no| self.columns.get(no)?.clone());
                fault.error(at.record, at.byte, column)
            }
            None => {
                let place = Place { record: Some(at.record), byte: Some(at.byte), ..Place::default() };
                Error::new(ErrorKind::RecordTooLong, too_long(self.record_bytes_max)).at(place).with_hint(
                    "an unclosed quote is the usual cause; if the record is really that long, raise --memory",
                )
            }
        }
    }

    /// Mends the record, keeps it, or leaves it out. What is longer than any record may be cannot be kept.
    fn mend(&mut self, lenient: &Lenient, cut: &Cut, fault: Option<Fault>, at: At) -> Result<Option<Found>> {
        let Some(line_bytes) = self.line()? else {
            self.leave_out(at, &too_long(self.record_bytes_max));
            self.skip_line()?;
            return Ok(None);
        };
        let (strict, flaw) = match *cut {
            Cut::Record { length, flaw } => (Some(length), flaw),
            Cut::Astray(flaw) => (None, Some(flaw)),
            // Only quotes take a record beyond its line.
            Cut::TooLong => (None, Some(Flaw::Unclosed(0))),
        };
        let ahead_bytes = Ahead::bytes(line_bytes, strict.filter(|_| flaw.is_none()));
        self.window.fill(ahead_bytes.saturating_add(1))?;
        let bytes = self.window.bytes();
        let ahead = Ahead {
            bytes: &bytes[..bytes.len().min(ahead_bytes)],
            at_end: bytes.len() <= ahead_bytes,
            line_bytes,
            strict,
            flaw,
        };
        let (length, mended) = lenient.mend(&ahead, &mut self.record);
        self.consume(length);
        match (mended, fault) {
            (Mended::Row(mends), _) => {
                self.counts.add_mends(&mends);
                Ok(Some(Found::Record(at)))
            }
            (Mended::Blank, _) => {
                self.omitted.blank += 1;
                self.counts.add_blank(at.record);
                Ok(None)
            }
            (Mended::Beyond, Some(fault)) if self.skips => {
                Ok(Some(Found::Kept(self.kept(at, &self.refusal(Some(fault), at), fault.sqlstate()))))
            }
            (Mended::Beyond, fault) => {
                let reason = fault.map_or_else(|| too_long(self.record_bytes_max), Fault::message);
                self.leave_out(at, &reason);
                Ok(None)
            }
        }
    }

    fn leave_out(&mut self, at: At, reason: &str) {
        self.omitted.left_out += 1;
        self.counts.add_left_out(at.record, at.byte, reason);
    }

    /// The bytes of the first line in the window, its line ending included, whatever the dialect says of
    /// quotes and line endings. `None` if it is longer than a record may be.
    fn line(&mut self) -> Result<Option<usize>> {
        loop {
            let bytes = self.window.bytes();
            let held = bytes.len();
            match memchr::memchr2(b'\n', b'\r', bytes) {
                Some(at) if at >= self.record_bytes_max => return Ok(None),
                Some(at) if bytes.get(at..at + 2) == Some(b"\r\n") => return Ok(Some(at + 2)),
                Some(at) if at + 1 < held || self.window.ended() => return Ok(Some(at + 1)),
                None if held > self.record_bytes_max => return Ok(None),
                None if self.window.ended() => return Ok(Some(held)),
                _ => self.window.fill(self.more(held))?,
            }
        }
    }

    /// Moves behind the next line ending, however far it is.
    fn skip_line(&mut self) -> Result<()> {
        loop {
            let held = self.window.bytes().len();
            if let Some(at) = memchr::memchr2(b'\n', b'\r', self.window.bytes()) {
                self.window.fill(at + 2)?;
                let pair = self.window.bytes().get(at..at + 2) == Some(b"\r\n");
                self.window.consume(at + 1 + usize::from(pair));
                return Ok(());
            }
            self.window.consume(held);
            self.window.fill(1)?;
            if self.window.bytes().is_empty() {
                return Ok(());
            }
        }
    }
}

fn is_copy_text(dialect: &Dialect) -> bool {
    dialect.quote.is_none() && dialect.escape == Escape::Backslash
}

fn too_long(limit: usize) -> String {
    format!("the record is longer than the {limit} bytes this memory budget allows")
}
