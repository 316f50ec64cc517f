//! Fields in quotes that hold several lines, and what they prove.
//!
//! Bits alone are misled by such fields: what stands in the lines of a long text may cut them more regularly
//! than delimiters cut the records, and windows hold few whole records, or begin and end inside one. But
//! quotes that open where a field begins and close lines further on where it ends, and leave records of one
//! width, are no chance: other quotes would close in the midst of fields, and the lines between them would be
//! records themselves.
//!
//! Enters: the windows. Leaves: the candidates of which this holds, and which parts of the windows are whole
//! records.

use super::WINDOW_BYTES;
use super::candidates::Candidate;
use super::cell_types::{Class, Kind};
use super::rows::Reader;
use super::table::{Line, Lines, Profile, agreement, usual_width};
use super::windows::{Window, Windows};
use howdah_model::{Dialect, Escape};
use std::ops::Range;

/// A candidate that long fields prove.
pub(super) struct Proof {
    pub(super) candidate: Candidate,
    /// What is whole records, of each window.
    pub(super) parts: Vec<Range<usize>>,
}

/// Of so many records one may be flawed.
const RECORDS_WITH_FLAW: usize = 20;

/// Of so many records one may have another width.
const RECORDS_WITH_OTHER_WIDTH: usize = 10;

/// So many records say little: a header and one more.
const FEW_RECORDS: usize = 2;

/// Looked at are the lines of so many long fields.
const FIELDS_MAX: usize = 50;

/// Fields of several lines that prove a single column, which has no other records to compare with.
const SINGLE_COLUMN_FIELDS_MIN: usize = 3;

/// What long fields say.
#[derive(Default)]
pub(super) struct LongFields {
    /// For the most part there are none.
    pub(super) proofs: Vec<Proof>,
    /// A field does not end in the head, before which there are few records or none.
    pub(super) is_open: bool,
    /// And its lines are no records, so that something is wrong if it has no end.
    pub(super) is_unsure: bool,
}

impl LongFields {
    pub(super) fn new(windows: &Windows, candidates: impl Fn() -> Vec<Candidate>) -> LongFields {
        let has_odd = |quote: u8| windows.all().any(|window| has_odd_line(window, quote));
        // Few files have such lines, and the others cost no more than this look.
        let odd: Vec<u8> = [b'"', b'\''].into_iter().filter(|quote| has_odd(*quote)).collect();
        let mut fields = LongFields::default();
        if odd.is_empty() {
            return fields;
        }
        let candidates = candidates();
        let may_prove =
            |candidate: &&Candidate| candidate.dialect.quote.is_some_and(|quote| odd.contains(&quote));
        for candidate in candidates.iter().filter(may_prove) {
            let Some(mut tried) = Tried::new(candidate) else { continue };
            fields.proofs.extend(tried.proof(windows));
            let is_proven = tried.is_proven();
            fields.is_open |= tried.is_head_open && !is_proven;
            fields.is_unsure |= tried.is_unsure && !is_proven;
        }
        fields
    }
}

/// A line holds an odd number of quotes, as the first line of a long field does.
fn has_odd_line(window: &Window, quote: u8) -> bool {
    let (mut at, mut quotes) = (window.from, 0usize);
    for found in memchr::memchr3_iter(quote, b'\n', b'\r', &window.text[at..]) {
        at = window.from + found;
        if window.text[at] == quote {
            quotes += 1;
        } else if quotes % 2 == 1 {
            return true;
        }
    }
    quotes % 2 == 1
}

/// A field that a window cuts at its end.
#[derive(Clone, Copy)]
struct Open {
    /// Before its own one.
    records: usize,
    /// Before it, in its record.
    fields: usize,
    /// Its lines are no records: fewer are than of records.
    is_text: bool,
    /// Fewer than half are.
    is_surely_text: bool,
}

/// A candidate whose records are looked at.
struct Tried<'c> {
    candidate: &'c Candidate,
    reader: Reader,
    /// The same without quotes.
    plain: Reader,
    width: usize,
    classes: Vec<Option<Class>>,
    records: usize,
    other_widths: usize,
    flawed: usize,
    /// Long fields whose lines are no records.
    proving: usize,
    /// Those whose lines may be.
    doubtful: usize,
    /// A field that fits the records does not end in the head.
    is_head_open: bool,
    /// Its lines are no records.
    is_unsure: bool,
}

impl Tried<'_> {
    fn new(candidate: &Candidate) -> Option<Tried<'_>> {
        let plain = Dialect { quote: None, escape: Escape::None, ..candidate.dialect.clone() };
        Some(Tried {
            candidate,
            reader: Reader::new(&candidate.dialect).ok()?,
            plain: Reader::new(&plain).ok()?,
            width: 0,
            classes: Vec::new(),
            records: 0,
            other_widths: 0,
            flawed: 0,
            proving: 0,
            doubtful: 0,
            is_head_open: false,
            is_unsure: false,
        })
    }

    fn proof(&mut self, windows: &Windows) -> Option<Proof> {
        let head = windows.head.borrow();
        if head.text.len() > WINDOW_BYTES && !self.begins_well(&head) {
            return None;
        }
        let lines = Lines::read(&mut self.reader, &head);
        let open = self.open_line(&lines, &head);
        self.learn(&lines, open);
        let (part, open) = self.count(&lines, &head);
        self.look_at_open(&head, open);
        // Later windows are not worth it where the head speaks against the quotes.
        if !self.is_believable() {
            return None;
        }
        let mut parts = vec![part];
        parts.extend(windows.all().skip(1).map(|window| self.later(window)));
        let is_first_open = self.is_unsure
            && open.is_some_and(|open| open.is_surely_text)
            && self.records > 0
            && self.proving + self.doubtful == 0;
        let holds = self.is_proven() || is_first_open && self.is_believable();
        holds.then(|| Proof { candidate: self.candidate.clone(), parts })
    }

    /// The beginning of a long head does not speak against the quotes: most candidates need not be looked at
    /// any further.
    fn begins_well(&mut self, head: &Window) -> bool {
        let begin = head.view(0, WINDOW_BYTES);
        let lines = Lines::read(&mut self.reader, &begin);
        let end = self.open_line(&lines, &begin).unwrap_or(lines.len());
        let flawed = lines.lines[..end].iter().filter(|line| line.flawed).count();
        flawed * RECORDS_WITH_FLAW <= end.max(RECORDS_WITH_FLAW)
    }

    /// What a field means that does not end in the head.
    fn look_at_open(&mut self, head: &Window, open: Option<Open>) {
        // Text is full of what a weak candidate takes for a delimiter.
        let Some(open) = open.filter(|_| !self.candidate.weak) else { return };
        let fits = open.records == 0 || (self.width > 1 && open.fields < self.width && self.is_believable());
        self.is_unsure = fits && open.is_text;
        // What could be records may be lines of a long field all the same, where little else is known.
        self.is_head_open = !head.at_end && fits && (open.is_text || open.records <= FEW_RECORDS);
    }

    fn is_proven(&self) -> bool {
        let regular = self.records.saturating_sub(self.other_widths + self.flawed);
        let proves = match self.width {
            1 => self.flawed == 0 && self.proving >= SINGLE_COLUMN_FIELDS_MIN,
            // A header and one record agree by chance only if there is nothing else.
            _ => {
                self.proving > 0
                    && (regular > FEW_RECORDS || regular == FEW_RECORDS && regular == self.records)
            }
        };
        // What may be lines of the first long field has been counted as records.
        let is_open = self.is_head_open && !self.is_unsure;
        proves && self.proving > self.doubtful && !is_open && self.is_believable()
    }

    fn is_believable(&self) -> bool {
        let others = self.other_widths.saturating_sub(1);
        (self.width > 1 || self.candidate.dialect.delimiter.is_empty())
            && others * RECORDS_WITH_OTHER_WIDTH <= self.records
            && self.flawed * RECORDS_WITH_FLAW <= self.records
    }

    /// The width of the records, and what their columns hold. Before the line of a field that does not end
    /// they are records; if that is the first one, all lines are asked.
    fn learn(&mut self, lines: &Lines, open: Option<usize>) {
        let end = open.filter(|no| *no > 0).unwrap_or(lines.len());
        self.width = usual_width(lines.lines[..end].iter());
        let mut profile = Profile::new(self.width);
        // The first record may be a header.
        profile.add(lines, 1.min(end)..end);
        self.classes = profile.classes();
    }

    /// Counts the records of a window that begins with one; the part that they take, and the field that does
    /// not end in the window.
    fn count(&mut self, lines: &Lines, window: &Window) -> (Range<usize>, Option<Open>) {
        let no = self.open_line(lines, window);
        let open = no.map(|no| {
            let fields = self.reader.record.len();
            let (is_text, is_surely_text) = self.is_text(&window.text[lines.lines[no].start..]);
            Open { records: no, fields, is_text, is_surely_text }
        });
        let cut = no.filter(|_| open.is_some_and(|open| open.is_text));
        let own = &lines.lines[..cut.unwrap_or(lines.len())];
        // Titles say nothing about records.
        let first = own.iter().position(|line| line.width == self.width && !line.flawed).unwrap_or(0);
        for line in own[first..].iter().filter(|line| !line.is_blank() && !line.marked) {
            self.records += 1;
            self.flawed += usize::from(line.flawed);
            self.other_widths += usize::from(!line.flawed && line.width != self.width);
            let bytes = &window.text[line.start..line.start + line.length];
            let is_long = memchr::memchr2(b'\n', b'\r', bytes.trim_ascii_end()).is_some();
            if is_long
                && !line.flawed
                && line.width == self.width
                && self.proving + self.doubtful < FIELDS_MAX
            {
                let doubtful = self.are_records(bytes);
                self.doubtful += usize::from(doubtful);
                self.proving += usize::from(!doubtful);
            }
        }
        let end = cut.map_or_else(|| lines.end(window), |no| lines.lines[no].start);
        (window.from..end, open)
    }

    /// The first line that begins a field which does not end in the window.
    fn open_line(&mut self, lines: &Lines, window: &Window) -> Option<usize> {
        lines.lines.iter().position(|line| line.broken && self.reader.is_open(&window.text[line.start..]))
    }

    /// Without quotes, the first line of a long field, the last one and most of those between them are
    /// records.
    fn are_records(&mut self, bytes: &[u8]) -> bool {
        let records = self.read_plain(bytes);
        // Under a single column every line is a record.
        self.width > 1
            && records.first() == Some(&true)
            && records.last() == Some(&true)
            && are_most(&records)
    }

    /// Whether the lines of a field that a window cuts are no records, and whether fewer than half are.
    fn is_text(&mut self, bytes: &[u8]) -> (bool, bool) {
        let whole = memchr::memrchr2(b'\n', b'\r', bytes).map_or(0, |at| at + 1);
        let records = self.read_plain(&bytes[..whole]);
        let half = records.iter().filter(|is_record| **is_record).count() * 2 >= records.len();
        (self.width == 1 || !are_most(&records), self.width == 1 || !half)
    }

    /// Which lines, blank ones aside, are records without quotes.
    fn read_plain(&mut self, bytes: &[u8]) -> Vec<bool> {
        let lines = Lines::read(&mut self.plain, &Window::of_text(bytes, true));
        let is_record = |no: usize| {
            let kinds = lines.kinds(no);
            // A time of day among numbers is a line of a log.
            let is_of_other_class = |(kind, class): (&Kind, &Option<Class>)| {
                class.is_some() && kind.class().is_some_and(|own| Some(own) != *class)
            };
            lines.lines[no].width == self.width
                && agreement(kinds, &self.classes).1 == 0
                && !kinds.iter().zip(&self.classes).any(is_of_other_class)
        };
        (0..lines.len()).filter(|no| !lines.lines[*no].is_blank()).map(is_record).collect()
    }

    /// Counts the records of a window that may begin inside a field.
    fn later(&mut self, window: &Window) -> Range<usize> {
        let mut own = window.borrow();
        own.begins_inside = false;
        let outside = Lines::read(&mut self.reader, &own);
        let is_odd = |line: &&Line| line.flawed || line.width != self.width;
        let odd = |lines: &Lines| lines.lines.iter().filter(|line| !line.is_blank()).filter(is_odd).count();
        let count = outside.lines.iter().filter(|line| !line.is_blank()).count();
        let odd_outside = odd(&outside);
        if odd_outside == 0 {
            return self.count(&outside, &own).0;
        }
        let Some(begin) = self.reader.behind_open_field(&own, own.from) else {
            // Without a quote there is nothing but lines of a field, or records.
            let is_text = odd_outside * RECORDS_WITH_OTHER_WIDTH > count;
            return if is_text { own.text.len()..own.text.len() } else { self.count(&outside, &own).0 };
        };
        let from = std::mem::replace(&mut own.from, begin);
        let inside = Lines::read(&mut self.reader, &own);
        if odd(&inside) > odd_outside {
            own.from = from;
            return self.count(&outside, &own).0;
        }
        self.count(&inside, &own).0
    }
}

/// As many as of records that are none of a long field.
fn are_most(marks: &[bool]) -> bool {
    marks.iter().filter(|mark| !**mark).count() * RECORDS_WITH_OTHER_WIDTH <= marks.len() && !marks.is_empty()
}
