//! What the fields of a file hold: the values of its sample, or of all of it, as they would be stored.

use super::finding::Windows;
use super::observers;
use crate::values;
use crate::widen::count_characters;
use howdah_model::{Escape, Mend, Reading};
use howdah_transcode::cells::{Cells, Next, Record};
use howdah_transcode::dialect::{Finding, TableEnd};
use howdah_transcode::encode::{self, Malformed};
use howdah_transcode::infer::{self, Among, ColumnState};
use howdah_transcode::mend::{self, Counts, Field, Shape};
use howdah_transcode::repeated_header::RepeatedHeader;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// COPY text looked at at a time.
const PIECE_BYTES: usize = 256 << 10;
/// COPY text kept: some hundred records of most files.
const SAMPLE_BYTES: usize = 64 << 10;
/// Records shown.
const PREVIEW_RECORDS: usize = 5;
/// Longer records are passed over while planning; the load says what is wrong with them.
const RECORD_BYTES_MAX: usize = 16 << 20;
/// A window is given up when so many times its bytes were read in records that do not fit.
const WINDOW_READS_MAX: usize = 8;
/// Records read in several ways, for their quotes or line endings, until planning gives up on seeing all
/// values. One takes 10 to 100 microseconds, so that no file keeps a plan waiting for more than two seconds.
const TANGLED_RECORDS_MAX: u64 = 20_000;
/// Longer values are no witnesses: there is one for each kind at most, and they are kept.
const WITNESS_BYTES_MAX: usize = 1000;
/// Plain bytes between two looks at how many there were.
const LOOK_EVERY_BYTES: usize = 16 << 10;

/// The values seen of each field.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    pub(super) states: Vec<ColumnState>,
    /// The days and numbers among them.
    pub(super) among: Vec<Among>,
    /// Of each field the values that ruled out kinds, some at most.
    pub(super) witnesses: Vec<Vec<Vec<u8>>>,
    /// Of each field, how many characters its longest value has.
    pub(super) characters_max: Vec<usize>,
    /// Of each field, whether it is empty in quotes somewhere, which `states` do not know of until
    /// [`Columns::take_empty`] says that this is a value.
    pub(super) quoted_empty: Vec<bool>,
    /// The empty field is NULL where it has no quotes.
    empty_is_null: bool,
    /// No field is quoted, and backslashes may be those of COPY's text format.
    may_be_text: bool,
    /// Records that say the names of the header again, which hold no values.
    header: Option<Arc<RepeatedHeader>>,
    /// They are all the values there are.
    pub(super) complete: bool,
    /// The first records as COPY text, each value as it is spelled.
    pub(super) sample: Vec<u8>,
    /// The first few of them.
    pub(super) preview: Vec<Vec<Option<String>>>,
}

impl Columns {
    /// How the values of field `no` are spelled, where a column of this type would not read them as they are.
    pub(super) fn reading(&self, no: usize, type_name: &str) -> Option<Reading> {
        infer::reading_for(self.states.get(no)?, self.among.get(no)?, type_name)
    }

    /// Columns whose readings put years of two digits far into the future.
    pub(super) fn far_years(&self, fields: &[Option<String>], readings: &[Option<Reading>]) -> Vec<String> {
        let seen = self.states.iter().zip(&self.among);
        let far = fields.iter().zip(readings).zip(seen).filter_map(|((field, reading), (state, among))| {
            let reading = reading.as_ref()?;
            field.as_ref().filter(|_| among.has_far_years(state, reading))
        });
        far.map(|column| {
            format!(
                "years of two digits from 50 to 69 in {column} are read as 2050 to 2069, as PostgreSQL does; --types {column}=text keeps \
                 them as they are written"
            )
        })
        .collect()
    }

    /// Field `no` of the first records is this word wherever it is not NULL, once at least.
    pub(super) fn sample_holds_only(&self, no: usize, word: &str) -> bool {
        let (mut was_seen, mut are_all) = (false, true);
        values::of_copy_text(&self.sample, |field_no, value| {
            if field_no == no {
                was_seen = true;
                are_all &= value == word.as_bytes();
            }
        });
        was_seen && are_all
    }

    /// Takes empty fields in quotes for values of field `no`, if it has some.
    pub(super) fn take_empty(&mut self, no: usize) {
        let is_there = self.quoted_empty.get_mut(no).is_some_and(std::mem::take);
        if is_there {
            self.take_value(no, b"");
        }
    }

    fn observe(&mut self, no: usize, value: &[u8]) {
        match self.quoted_empty.get_mut(no) {
            Some(quoted_empty) if value.is_empty() && self.empty_is_null => *quoted_empty = true,
            // COPY's NULL, which the sample had not, makes no column one of text; the load refuses it in any
            // other.
            Some(_) if self.may_be_text && value == b"\\N" => {}
            _ => self.take_value(no, value),
        }
    }

    fn take_value(&mut self, no: usize, value: &[u8]) {
        if let (Some(state), Some(among)) = (self.states.get_mut(no), self.among.get_mut(no)) {
            if let Some(longest) = self.characters_max.get_mut(no).filter(|longest| value.len() > **longest) {
                *longest = (*longest).max(count_characters(value));
            }
            let kinds = state.kinds();
            among.observe(state, value);
            if state.kinds() < kinds
                && value.len() <= WITNESS_BYTES_MAX
                && let Some(witnesses) = self.witnesses.get_mut(no)
            {
                witnesses.push(value.to_vec());
            }
        }
    }

    /// Those of the sample.
    pub(super) fn sampled(finding: &Finding, windows: &Windows) -> Columns {
        let mut columns = Columns::none(finding);
        // The lines of a long field that the head cuts are no records.
        let end = finding.head_end_byte.and_then(|end| usize::try_from(end).ok());
        let head = &windows.head[..end.unwrap_or(windows.head.len()).min(windows.head.len())];
        let head = whole_lines(head, windows.whole);
        let all = columns.take_data(finding, head, Cut::of(head.len()));
        columns.take_window(finding, &windows.middle, false);
        columns.take_window(finding, before_footer(finding, windows), true);
        Columns { complete: windows.whole && all, ..columns }
    }

    /// Those of all plain bytes, as far as they can be read.
    pub(super) fn of_all(finding: &Finding, plain: &[u8]) -> Columns {
        let mut columns = Columns::none(finding);
        let complete = columns.take_data(finding, plain, Cut::of(plain.len()));
        Columns { complete, ..columns }
    }

    #[cfg(test)]
    pub(super) fn of_pieces(
        finding: &Finding,
        plain: &[u8],
        piece_bytes: usize,
        observers: usize,
    ) -> Columns {
        let mut columns = Columns::none(finding);
        let complete = columns.take_data(finding, plain, Cut { piece_bytes, observers });
        Columns { complete, ..columns }
    }

    fn none(finding: &Finding) -> Columns {
        let width = finding.width;
        let (states, among) = (vec![ColumnState::default(); width], vec![Among::default(); width]);
        let (witnesses, characters_max) = (vec![Vec::new(); width], vec![0; width]);
        let empty_is_null = finding.dialect.quote.is_some() && finding.dialect.nulls == [""];
        let quoted_empty = vec![false; width];
        Columns {
            states,
            among,
            witnesses,
            characters_max,
            quoted_empty,
            empty_is_null,
            header: RepeatedHeader::in_copy_text(&finding.names).map(Arc::new),
            may_be_text: finding.may_escape_with.contains(&None),
            ..Columns::default()
        }
    }

    /// Those of the table in bytes from the beginning of the file; says whether it was read to its end.
    fn take_data(&mut self, finding: &Finding, plain: &[u8], cut: Cut) -> bool {
        let end = finding.plain.end_byte.and_then(|end| usize::try_from(end).ok()).unwrap_or(usize::MAX);
        // The same as in plain bytes where the file is UTF-8.
        let shape = Shape { data_start_byte: finding.utf8.start_byte, ..shape(finding) };
        self.take(&shape, utf8(finding, &plain[..plain.len().min(end)]), cut)
    }

    /// Shows the values of the records in a window to the columns. It begins and perhaps ends anywhere,
    /// inside quotes, too: what is no whole record says nothing.
    fn take_window(&mut self, finding: &Finding, window: &[u8], at_end: bool) {
        let Ok(cells) = Cells::new(&finding.dialect) else { return };
        let header = RepeatedHeader::in_records(&finding.dialect, &finding.names).ok().flatten();
        let is_header = |record: &[u8]| header.as_ref().is_some_and(|header| header.is_repeated(record));
        let mut text = Vec::new();
        // What cannot be decoded ends the window.
        let _ = utf8(finding, window).read_to_end(&mut text);
        let mut left = whole_lines(behind_first_line(&text), at_end);
        let (mut record, mut reads_left) = (Record::default(), WINDOW_READS_MAX * left.len());
        while !is_marker(finding, left) && reads_left > 0 {
            // The careful reader drops it; its record is one of values.
            left = left.strip_prefix("\u{feff}".as_bytes()).unwrap_or(left);
            let passed = match cells.read(left, true, &mut record) {
                Next::Record { length, flaw: None }
                    if record.len() == finding.width && can_be_stored(&left[..length]) =>
                {
                    let is_value = |no: &usize| !record.is_null(*no) && !values::is_null_word(&record, *no);
                    let fields = if is_header(&left[..length]) { 0 } else { record.len() };
                    for no in (0..fields).filter(is_value) {
                        self.observe(no, record.value(no));
                    }
                    length
                }
                Next::Record { length, .. } => {
                    reads_left = reads_left.saturating_sub(length);
                    left.len() - behind_first_line(left).len()
                }
                Next::Comment(length) => length,
                Next::More | Next::End => return,
            };
            left = &left[passed..];
        }
    }

    /// Shows the values of these lines of COPY text to those of the columns that are wanted.
    pub(super) fn take_lines(&mut self, lines: &[u8], is_wanted: impl Fn(usize) -> bool) {
        let header = self.header.clone();
        let mut take = |lines: &[u8]| {
            values::of_copy_text(lines, |no, value| {
                if is_wanted(no) {
                    self.observe(no, value);
                }
            });
        };
        match header.filter(|header| header.may_be_among(lines)) {
            Some(header) => {
                let lines = lines.split_inclusive(|&byte| byte == b'\n');
                lines.filter(|line| !header.is_repeated(line)).for_each(take);
            }
            None => take(lines),
        }
    }

    /// What is known so far, for an observer of what comes next.
    pub(super) fn known(&self) -> Columns {
        Columns {
            states: self.states.clone(),
            among: self.among.clone(),
            witnesses: vec![Vec::new(); self.witnesses.len()],
            characters_max: self.characters_max.clone(),
            quoted_empty: self.quoted_empty.clone(),
            empty_is_null: self.empty_is_null,
            may_be_text: self.may_be_text,
            header: self.header.clone(),
            ..Columns::default()
        }
    }

    /// Takes in what an observer has found in the lines that come next. Which values rule out kinds depends
    /// on those before them, which the observer did not know all: where any did, the lines are looked at once
    /// more.
    pub(super) fn join(&mut self, lines: &[u8], found: &Columns) {
        let seen = self.states.iter_mut().zip(&mut self.among).zip(found.states.iter().zip(&found.among));
        let narrowed: Vec<bool> = seen
            .map(|((state, among), (found_state, found_among))| {
                let (mut joined, mut joined_among) = (state.clone(), among.clone());
                joined_among.join(&mut joined, found_among, found_state);
                let is_narrowed = joined.kinds() < state.kinds();
                if !is_narrowed {
                    (*state, *among) = (joined, joined_among);
                }
                is_narrowed
            })
            .collect();
        for (longest, found) in self.characters_max.iter_mut().zip(&found.characters_max) {
            *longest = (*longest).max(*found);
        }
        for (is_there, found) in self.quoted_empty.iter_mut().zip(&found.quoted_empty) {
            *is_there |= found;
        }
        if narrowed.contains(&true) {
            self.take_lines(lines, |no| narrowed.get(no).is_some_and(|narrowed| *narrowed));
        }
    }

    /// Shows the values of these bytes to the columns, as far as they can be read. What cannot be read here,
    /// the load meets again and reports. Says whether they were read to their end.
    fn take(&mut self, shape: &Shape, plain: impl Read + Send, cut: Cut) -> bool {
        let counts = Arc::new(Counts::new(shape.fields.len()));
        let plain = Patient { plain, counts: Arc::clone(&counts) };
        let Ok(lines) = mend::reader(shape, plain, counts) else { return false };
        let mut pieces = Pieces { lines, bytes: cut.piece_bytes, held: Vec::new(), read: None };
        let mut first = pieces.next();
        if let Some(first) = &first {
            self.preview = values::preview(first, PREVIEW_RECORDS);
            self.sample = whole_lines(&first[..first.len().min(SAMPLE_BYTES)], false).to_vec();
        }
        observers::show(self, first.take().into_iter().chain(&mut pieces), cut.observers);
        pieces.read == Some(true)
    }
}

/// How the lines of a file are shown to its columns.
#[derive(Clone, Copy)]
struct Cut {
    piece_bytes: usize,
    observers: usize,
}

impl Cut {
    /// Of so many plain bytes.
    fn of(plain_bytes: usize) -> Cut {
        Cut { piece_bytes: PIECE_BYTES, observers: observers::observers(plain_bytes) }
    }
}

/// COPY text in pieces of whole lines.
struct Pieces<R> {
    lines: R,
    bytes: usize,
    /// The beginning of the line that the last piece was cut off at.
    held: Vec<u8>,
    /// Nothing more comes: whether it was read to its end.
    read: Option<bool>,
}

impl<R: Read> Iterator for Pieces<R> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while self.read.is_none() {
            let before = self.held.len();
            let mut piece = Read::by_ref(&mut self.lines).take(self.bytes as u64);
            let failed = piece.read_to_end(&mut self.held).is_err();
            if failed || self.held.len() == before {
                self.read = Some(!failed);
            }
            let end = self.held.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            if end > 0 {
                let rest = self.held.split_off(end);
                return Some(std::mem::replace(&mut self.held, rest));
            }
        }
        None
    }
}

/// The bytes of a file until too many of its records are tangled; then an error.
struct Patient<R> {
    plain: R,
    counts: Arc<Counts>,
}

impl<R: Read> Read for Patient<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let kinds = [Mend::StrayQuote, Mend::OtherQuotes, Mend::OtherLineEnding, Mend::LeftOut];
        let tangled: u64 = kinds.into_iter().map(|kind| self.counts.mended(kind)).sum();
        if tangled > TANGLED_RECORDS_MAX {
            return Err(io::Error::other("too many records are tangled"));
        }
        let room = out.len().min(LOOK_EVERY_BYTES);
        self.plain.read(&mut out[..room])
    }
}

/// Every field kept, as it is spelled; records that do not fit are passed over.
fn shape(finding: &Finding) -> Shape {
    Shape {
        dialect: finding.dialect.clone(),
        fields: vec![Field::as_it_is(); finding.width],
        names: Vec::new(),
        data_start_byte: 0,
        data_end_byte: None,
        lenient: true,
        skips: false,
        nul: howdah_model::Nul::Strip,
        end: Some(TableEnd::of(finding)),
        record_bytes_max: RECORD_BYTES_MAX,
        read: infer::read,
    }
}

/// The bytes in UTF-8. Where that fails in the middle, what came before is enough for a sample.
fn utf8<'a>(finding: &Finding, bytes: &'a [u8]) -> Box<dyn Read + Send + 'a> {
    match finding.encoding.name.as_str() {
        "UTF8" => Box::new(Cursor::new(bytes)),
        name => encode::to_utf8(name, Box::new(Cursor::new(bytes)), Malformed::Marked)
            .unwrap_or_else(|_| Box::new(io::empty())),
    }
}

/// Without the record that the window cuts off.
fn whole_lines(window: &[u8], whole: bool) -> &[u8] {
    if whole {
        return window;
    }
    let end = window.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    &window[..end]
}

fn behind_first_line(window: &[u8]) -> &[u8] {
    let Some(at) = window.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else { return &[] };
    let rest = &window[at..];
    rest.strip_prefix(b"\r\n").unwrap_or(&rest[1..])
}

/// The tail as far as the table goes.
fn before_footer<'w>(finding: &Finding, windows: &'w Windows) -> &'w [u8] {
    let tail = windows.tail.as_slice();
    let start_byte = windows.size_bytes.map(|size| size.saturating_sub(tail.len() as u64));
    let end_byte = finding.plain.end_byte.zip(start_byte);
    let length = end_byte.and_then(|(end, start)| usize::try_from(end.saturating_sub(start)).ok());
    &tail[..length.unwrap_or(tail.len()).min(tail.len())]
}

/// COPY's text ends with a line `\.`.
fn is_marker(finding: &Finding, bytes: &[u8]) -> bool {
    let is_text = finding.dialect.quote.is_none() && finding.dialect.escape == Escape::Backslash;
    is_text && matches!(bytes, [b'\\', b'.'] | [b'\\', b'.', b'\r' | b'\n', ..])
}

/// Characters of UTF-8, none of them a NUL.
fn can_be_stored(written: &[u8]) -> bool {
    !written.contains(&0) && std::str::from_utf8(written).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_transcode::dialect::{self, Given, Sample, WINDOW_BYTES};

    /// The types that windows of this file show.
    fn types(text: &str, middle_start: usize) -> Vec<String> {
        let bytes = text.as_bytes();
        let windows = Windows {
            head: bytes[..WINDOW_BYTES].to_vec(),
            middle: bytes[middle_start..middle_start + WINDOW_BYTES].to_vec(),
            tail: bytes[bytes.len() - WINDOW_BYTES..].to_vec(),
            whole: false,
            size_bytes: Some(bytes.len() as u64),
        };
        let Windows { head, middle, tail, .. } = &windows;
        let sample = Sample { head, middle, tail, whole: false, size_bytes: windows.size_bytes };
        let finding = dialect::find(&sample, &Given::default()).unwrap();
        let columns = Columns::sampled(&finding, &windows);
        columns.states.iter().map(|state| state.finish(false).type_name).collect()
    }

    #[test]
    fn planning_gives_up_on_a_file_of_tangled_records() {
        let good = "\"k\",\"v\"\n".repeat(200);
        let given = Given {
            delimiter: Some(",".to_owned()),
            quote: Some(Some(b'"')),
            header: Some(true),
            ..Given::default()
        };
        let columns = |text: &str| {
            let sample =
                Sample { head: good.as_bytes(), middle: b"", tail: b"", whole: true, size_bytes: None };
            Columns::of_all(&dialect::find(&sample, &given).unwrap(), text.as_bytes())
        };
        let tangled = |lines: usize| format!("{good}{}7,8\n", "a\"b,\"c\n".repeat(lines));
        assert!(columns(&tangled(300)).complete);
        assert!(!columns(&tangled(30_000)).complete);
    }

    #[test]
    fn what_a_window_cuts_off_says_nothing_of_types() {
        let mut text = "id,key,note\n".to_owned();
        for id in 100_000_u64..106_000 {
            let key = format!("{id:08x}-0000-4000-8000-{:012x}", id * 77_777);
            let note = if id % 50 == 7 { "\"two\nlines, or\n7,8,9\"" } else { "one" };
            text += &format!("{id},{key},{note}\n");
        }
        let line_start = text.find("102000,").unwrap();
        for middle_start in line_start..line_start + 60 {
            assert_eq!(types(&text, middle_start), ["int", "uuid", "text"], "{middle_start}");
        }
        let total = format!("{text}Total,,6000\n");
        assert_eq!(types(&total, line_start), ["int", "uuid", "text"]);
    }
}
