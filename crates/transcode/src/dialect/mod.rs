//! The dialect of a delimited file, found from a sample of its bytes.
//!
//! What enters is up to three windows of the file (head, middle, tail) and what options have fixed; what
//! leaves is a [`Finding`]: encoding, dialect, where the table begins and ends, its header, and what speaks
//! for all this. Refused are UTF-32 and documents that are no tables (JSON, XML, HTML, SQL), these only where
//! no delimiter is given; any other bytes have a finding. Values are never shown in evidence.
//!
//! In the order of the flow: [`encoding`](self) from the bytes; line endings; every candidate dialect scored
//! by the bits it takes to write the sample down under it (row patterns and cell types together, after van
//! den Burg, Nazábal and Sutton, 2019); what the score leaves open settled by rules; the table's place in
//! the file; NULL spellings. `docs/decisions/2026-11-21-dialect.md` has the reasons.

mod above;
mod blank_end;
mod blocks;
mod candidates;
mod cell_types;
mod cut_decimals;
pub(crate) mod declared_names;
mod describe;
mod document;
mod encoding;
mod eol;
mod escapes;
mod footer;
mod header;
mod long_fields;
mod nothing;
mod nulls;
mod preamble;
mod rank;
mod regions;
mod rows;
mod score;
mod settle;
mod table;
mod table_end;
mod undivided;
mod windows;

pub use blank_end::blank_end;
pub use cell_types::is_missing;
pub use encoding::Encoding;
pub use escapes::copy_escape;
pub use table_end::{TABLE_END_BYTES, TableEnd};

use crate::header::{FIELDS_MAX, too_many};
use eol::Endings;
use header::Nameless;
use howdah_model::{Dialect, Eol, Escape, Result, counted, plural, show_count};
use long_fields::{LongFields, Proof};
use nothing::Nothing;
pub use nulls::{NULL_OPTION, Spellings};
use rank::Ranked;
use regions::{Cut, Regions};
use rows::Reader;
use settle::FileEnd;
use std::sync::Arc;
use windows::{Window, Windows};

/// How much to read at the head, in the middle and at the tail of a file. A file of up to three times as much
/// is better given whole. Of so much [`find`] takes 6 to 18 ms of CPU for real files (flights, weather,
/// TPC-H, films, airports, 268 MB of quoted texts; two virtual cores, release build, mean of 20 runs each),
/// and a load of a small file is to take no longer for it than one notices.
pub const WINDOW_BYTES: usize = 64 << 10;

/// How much of the head to read at most where [it ends in a field](Finding::has_open_field), in steps of
/// sixteen times as much: more than most values are long. Of so much, a plan took 3.7 s of CPU (debug).
pub const LONG_HEAD_BYTES: usize = 256 * WINDOW_BYTES;

/// Windows of a file's plain bytes (decompressed, not recoded).
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample<'a> {
    /// From byte 0 on.
    pub head: &'a [u8],
    /// From anywhere behind the head; may be empty.
    pub middle: &'a [u8],
    /// The last bytes, not overlapping the head; may be empty.
    pub tail: &'a [u8],
    /// The head is all of the file; the other windows are not looked at.
    pub whole: bool,
    /// The file's length, if known. Without it nothing is cut off at the end of a file that is not whole.
    pub size_bytes: Option<u64>,
}

impl<'a> Sample<'a> {
    /// A file that is all there.
    pub fn of_whole(bytes: &'a [u8]) -> Sample<'a> {
        Sample { head: bytes, whole: true, size_bytes: Some(bytes.len() as u64), ..Sample::default() }
    }
}

/// What options have fixed; the rest is found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Between fields.
    pub delimiter: Option<String>,
    /// `Some(None)`: there are no quotes.
    pub quote: Option<Option<u8>>,
    /// How a quote becomes a datum.
    pub escape: Option<Escape>,
    /// What ends records.
    pub eol: Option<Eol>,
    /// Spellings of NULL.
    pub nulls: Option<Vec<String>>,
    /// There is a header, or none.
    pub header: Option<bool>,
    /// A name that PostgreSQL or the WHATWG knows.
    pub encoding: Option<String>,
    /// The columns that the fields fill, whatever a header says: a first record that may be data is only
    /// taken for a header if it names one of them.
    pub columns: Option<Vec<String>>,
    /// So many fields a record has, if a reading that is nearly as likely as any other gives it as many.
    pub width: Option<usize>,
    /// The words for NULL in all files that are cut alike: what one of them proves holds for each.
    pub spellings: Option<Arc<Spellings>>,
    /// All of the dialect but what ends records: another sample of such records has shown more.
    pub dialect: Option<Dialect>,
}

/// What the data cannot tell, and the option that does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsure {
    /// In words, lower case, no full stop.
    pub what: String,
    /// The option's name.
    pub option: &'static str,
}

/// The table's place in a file, in bytes from its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte of the first data record.
    pub start_byte: u64,
    /// One past the last data record, where something follows that is no data; `None`: the end of the file.
    pub end_byte: Option<u64>,
    /// The first byte of a second table, its title included.
    pub second_table_byte: Option<u64>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// How characters are written.
    pub encoding: Encoding,
    /// How records and fields are written.
    pub dialect: Dialect,
    /// The chance that the dialect is right, above 0 and at most 1.
    pub probability: f64,
    /// What speaks for it, a line each.
    pub evidence: Vec<String>,
    /// The next best dialect that cuts the data otherwise, and its chance.
    pub runner_up: Option<(Dialect, f64)>,
    /// What cannot be told.
    pub unsure: Vec<Unsure>,
    /// With these quotes backslashes may escape, which the sample does not show and which nothing in it
    /// contradicts; with none, those of COPY's text format.
    pub may_escape_with: Vec<Option<u8>>,
    /// Records of the header; 0 without one.
    pub header_rows: u32,
    /// The names in the header, those of several records joined by a space; empty without a header.
    pub names: Vec<String>,
    /// The header has fewer names than records have fields, and nobody knows which fields have none.
    pub lacks_names: bool,
    /// So it may be, or one word stands above the records, because the delimiter cuts decimal commas.
    pub cuts_decimals: bool,
    /// A field in quotes, or the first record, does not end in the head of the sample, and tells little so: a
    /// longer head, up to [`LONG_HEAD_BYTES`], may tell more.
    pub has_open_field: bool,
    /// Where the last record that is whole ends in the plain bytes of the head, if a longer field follows.
    pub head_end_byte: Option<u64>,
    /// Fields of a record; 0 if there are no records.
    pub width: usize,
    /// For each field: its values at the beginning are numbers, days or the like. Empty without records.
    pub typed: Vec<bool>,
    /// The words that may stand for NULL, and where.
    pub spellings: Spellings,
    /// Records before the header (or before the data), blank ones included.
    pub preamble_records: u64,
    /// Records behind the table's last one that are no data: blank ones, totals, notes. A second table aside.
    pub footer_records: u64,
    /// Of both, those that have as many fields as a record of the table, hold delimiters alone, or stand
    /// right behind its last one.
    pub record_like: u64,
    /// Where the table is, in the file's plain bytes.
    pub plain: Span,
    /// Where the table is in what [`to_utf8`](crate::encode::to_utf8) makes of the file; the same as `plain`
    /// if the file is UTF-8. Of a file that is not UTF-8 and was not seen whole, `end_byte` is `None`: cut
    /// the plain bytes there, and recode what is left.
    pub utf8: Span,
    /// A second table begins here: the byte of `utf8` for a recoded file, else of `plain`.
    pub second_table: Option<u64>,
}

/// What says whether there is a header.
const HEADER_OPTION: &str = "--header";

/// The same where there is one, of one record or of several.
const HEADER_RECORDS_OPTION: &str = "--header, which takes one record,";

impl Finding {
    /// Words alone say that there is a header, or that its further records belong to it, and none of them is
    /// usual for names.
    pub fn is_header_doubtful(&self) -> bool {
        let further = self.unsure.iter().any(|unsure| unsure.option == HEADER_RECORDS_OPTION);
        self.header_rows > 0 && (further || self.is_header_unsure() || self.has_nameless_header())
    }

    /// The first record may be a header or data.
    pub fn is_header_unsure(&self) -> bool {
        self.unsure.iter().any(|unsure| unsure.option == HEADER_OPTION)
    }

    fn names_one_of(&self, columns: &[String]) -> bool {
        self.names.iter().any(|name| columns.iter().any(|column| column.eq_ignore_ascii_case(name.trim())))
    }

    /// What was taken for a header differs from the records below it, as a first record of words may among
    /// others that come again and again, but no type tells, and none of its words is a usual name.
    fn has_nameless_header(&self) -> bool {
        let is_name = |name: &String| header::has_word(name) || header::is_identifier(name);
        self.header_rows > 0 && !self.typed.contains(&true) && !self.names.iter().any(is_name)
    }

    /// Where the engine finds the table: in UTF-8 if the file is recoded before it is split, else in its
    /// plain bytes.
    pub fn span(&self) -> Span {
        if self.encoding.recoded { self.utf8 } else { self.plain }
    }
}

/// Finds the dialect. The same bytes give the same finding.
///
/// # Errors
/// `Usage` if what is given makes no dialect or nobody knows the encoding; `Unsupported` for UTF-32 and for
/// documents that are no tables; `Columns` if there are too many.
pub fn find(sample: &Sample, given: &Given) -> Result<Finding> {
    let encoding = encoding::find(sample, given.encoding.as_deref())?;
    let mut windows = Windows::new(sample, &encoding.encoding);
    document::refuse_others(&windows.head, sample.head, given)?;
    let mut finding = Finding {
        encoding: encoding.encoding,
        dialect: chosen(given),
        probability: 1.0,
        evidence: encoding.evidence.into_iter().collect(),
        runner_up: None,
        unsure: encoding.unsure.into_iter().collect(),
        may_escape_with: Vec::new(),
        header_rows: 0,
        names: Vec::new(),
        lacks_names: false,
        cuts_decimals: false,
        has_open_field: false,
        head_end_byte: None,
        width: 0,
        typed: Vec::new(),
        spellings: Spellings::default(),
        preamble_records: 0,
        footer_records: 0,
        record_like: 0,
        plain: Span::default(),
        utf8: Span::default(),
        second_table: None,
    };
    // What is given must make a dialect, whatever the data.
    Reader::new(&finding.dialect)?;
    // Who says how records are written says that there are some.
    let is_told = given.header.is_some() || given.delimiter.is_some();
    if let Some(nothing) = Nothing::of(&windows).filter(|nothing| !is_told || *nothing == Nothing::Blanks) {
        finding.place_nothing(&windows);
        finding.unsure.extend(nothing.unsure());
        return Ok(finding);
    }
    let width = finding.find_dialect(&mut windows, given);
    if finding.is_copy_text() {
        windows.cut_end_marker();
    }
    finding.find_table(&windows, given, width)?;
    if finding.width > FIELDS_MAX {
        return Err(too_many("records have", finding.width, &finding.dialect.delimiter));
    }
    finding.refuse_drawing(&windows.head.text, given)?;
    // The rest of a record that was cut in two has fewer fields, too.
    let may_be_data = finding.is_header_unsure() || finding.has_nameless_header() || finding.lacks_names;
    let is_data = |columns: &Vec<String>| may_be_data && !finding.names_one_of(columns);
    match given.header {
        None if given.columns.as_ref().is_some_and(is_data) => {
            let mut finding = find(sample, &Given { header: Some(false), ..given.clone() })?;
            let what = "the first record is taken for data, since columns are given, and may be a header";
            finding.unsure.push(Unsure { what: what.to_owned(), option: HEADER_OPTION });
            Ok(finding)
        }
        _ => Ok(finding),
    }
}

/// The dialect of RFC 4180 but for what is given.
fn chosen(given: &Given) -> Dialect {
    let csv = Dialect::csv();
    if let Some(dialect) = &given.dialect {
        return Dialect { eol: given.eol.or(csv.eol), ..dialect.clone() };
    }
    Dialect {
        delimiter: given.delimiter.clone().unwrap_or(csv.delimiter),
        quote: given.quote.unwrap_or(csv.quote),
        escape: given.escape.unwrap_or(csv.escape),
        eol: given.eol.or(csv.eol),
        nulls: given.nulls.clone().unwrap_or(csv.nulls),
        ..csv
    }
}

impl Finding {
    fn place_nothing(&mut self, windows: &Windows) {
        let end = windows.head.plain_byte(windows.head.text.len()).unwrap_or(0);
        self.plain = Span { start_byte: end, ..Span::default() };
        self.utf8 = Span { start_byte: windows.head.text.len() as u64, ..Span::default() };
        self.evidence.push("the file holds no records".to_owned());
    }

    /// Finds the dialect; the width of its records, where those of the first of several tables have spoken
    /// alone.
    fn find_dialect(&mut self, windows: &mut Windows, given: &Given) -> Option<usize> {
        let endings = Endings::of_text(windows.all());
        let eol = given.eol.or(endings.only());
        if let Some(dialect) = &given.dialect {
            self.dialect = Dialect { eol, ..dialect.clone() };
            return None;
        }
        let mut given = given.clone();
        if given.delimiter.is_none() {
            given.delimiter = declared_names::delimiter(&windows.head.text);
        }
        let long = self.find_long_fields(windows, &given, eol);
        let is_proven = !long.is_empty();
        let mut ranked = rank::rank(windows, &given, eol, &long);
        let mut width = None;
        if !is_proven && let Some(first) = blocks::first_table(windows, &given, eol, &ranked) {
            width = first.first().map(|best| best.score.width);
            ranked = first;
        }
        if let Some(wanted) = given.width {
            rank::prefer(&mut ranked, wanted);
        }
        let (probability, runner_up) = rank::chance(&ranked);
        self.probability = probability;
        if let Some(best) = ranked.first() {
            self.dialect = best.dialect.clone();
            self.evidence.push(describe::records(&best.score));
            // The records of the other windows do not tell what the first one, perhaps a header, is.
            let ends_nowhere = memchr::memchr2(b'\n', b'\r', &windows.head.text).is_none();
            if !windows.head.at_end && (best.score.records == 0 || ends_nowhere) {
                self.has_open_field = true;
                self.unsure.push(describe::no_record(windows.head.text.len(), given.delimiter.is_some()));
            }
        }
        let settled = settle::settle(&mut self.dialect, windows, &given);
        self.unsure.extend(settled.unsure);
        self.may_escape_with = settled.may_escape_with;
        if given.quote.is_none() && given.escape.is_none() {
            self.find_end(windows);
        }
        // The chosen one may have become the same.
        self.runner_up = runner_up.filter(|(other, _)| !describe::read_alike(&self.dialect, other));
        if let Some((other, chance)) = &self.runner_up {
            self.evidence.push(describe::next_best(other, *chance));
            let is_one = ranked.first().is_some_and(Ranked::is_one_record_of_words);
            if probability < 0.8 || is_one {
                self.unsure.push(describe::unsure(&self.dialect, other));
            }
        }
        if given.delimiter.is_none() && self.unsure.iter().all(|unsure| unsure.option != "--delimiter") {
            self.unsure.extend(undivided::doubt(&self.dialect, windows));
        }
        if given.quote.is_none() && self.unsure.iter().all(|unsure| unsure.option != "--quote") {
            self.unsure.extend(settle::quotes_as_data(&self.dialect, windows));
            self.unsure.extend(settle::quotes_of_few(&self.dialect, windows));
        }
        width
    }

    fn find_end(&mut self, windows: &Windows) {
        let what = match settle::settle_end(&mut self.dialect, windows) {
            FileEnd::Whole => return,
            FileEnd::Doubtful => {
                "the file may end inside a field in quotes: a quote opens one in its last record"
            }
            FileEnd::CutOff => {
                "the file ends inside a field in quotes, unless the quote in its last record is a datum"
            }
        };
        self.unsure.push(Unsure { what: what.to_owned(), option: "--quote" });
    }

    /// What long fields prove. Of the windows those parts are kept that are whole records then.
    fn find_long_fields(&mut self, windows: &mut Windows, given: &Given, eol: Option<Eol>) -> Vec<Proof> {
        let fields = LongFields::new(windows, || {
            let everything: Vec<Window> = windows.all().map(Window::borrow).collect();
            candidates::candidates(&everything, given, eol)
        });
        self.has_open_field = fields.is_open;
        if fields.is_unsure && given.quote.is_none() {
            let bytes = show_count(windows.head.text.len() as u64);
            let what = format!("a quote opens a field that does not end within {bytes} bytes, or none");
            self.unsure.push(Unsure { what, option: "--quote" });
        }
        if let Some(first) = fields.proofs.first() {
            let end = first.parts.first().map(|part| part.end).filter(|end| *end < windows.head.text.len());
            self.head_end_byte = end.and_then(|end| windows.head.plain_byte(end));
            windows.keep(&first.parts);
        }
        fields.proofs
    }

    fn is_copy_text(&self) -> bool {
        self.dialect.quote.is_none() && self.dialect.escape == Escape::Backslash
    }

    fn find_table(&mut self, windows: &Windows, given: &Given, width: Option<usize>) -> Result<()> {
        let mut reader = Reader::new(&self.dialect)?;
        let mut cut = Cut::new(&mut reader, windows);
        if self.dialect.eol.is_none() && given.eol.is_none() {
            let usual = table::usual_width(cut.all());
            self.dialect.eol = eol::settle(cut.with_windows(windows), usual);
            reader = Reader::new(&self.dialect)?;
            cut = Cut::new(&mut reader, windows);
        }
        let mut regions = regions::find(&cut, windows, &mut reader, given.header, width);
        let data = regions.start + regions.header_lines;
        let marked: Vec<_> = cut
            .with_windows(windows)
            .zip([data, 0, 0])
            .map(|((lines, window), from)| (lines, window, from))
            .collect();
        if given.dialect.is_none() {
            self.dialect.comment = settle::comment(&marked, regions.width);
            self.find_nulls(&cut, &regions, windows, given, &mut reader);
            self.dialect.unused = settle::unused(&self.dialect, windows);
        }
        if let Some((other, _)) = &mut self.runner_up {
            other.nulls.clone_from(&self.dialect.nulls);
        }
        self.place(&cut, &mut regions, windows);
        let header = regions.start..regions.start + regions.header_lines;
        let end = regions.end.unwrap_or(cut.head.len());
        let nameless;
        (self.names, nameless) =
            header::names(&cut.head, (header, end), regions.width, &mut reader, &windows.head);
        self.cuts_decimals = nameless == Nameless::OrCutDecimals;
        self.lacks_names = self.cuts_decimals || nameless == Nameless::Unknown;
        self.unsure.extend(describe::nameless(nameless).filter(|_| given.columns.is_none()));
        declared_names::refuse_change(&cut, windows, regions.start)?;
        self.width = regions.width.max(self.names.len());
        // Of the head alone: what is further on may be another table's.
        let mut profile = table::Profile::new(regions.width);
        profile.add(&cut.head, data..regions.end.unwrap_or(cut.head.len()).max(data));
        self.typed = profile.classes().iter().map(Option::is_some).collect();
        if regions.header_lines == 0 && given.header.is_none() {
            self.unsure.extend(describe::odd_first(cut.head.kinds(data), &profile.classes()));
        }
        self.look_above(&cut, &regions, &mut reader, &windows.head, given)?;
        self.typed.resize(self.width, false);
        self.header_rows = u32::try_from(regions.header_lines).unwrap_or(u32::MAX);
        self.preamble_records = regions.start as u64;
        self.footer_records = regions.footer_lines as u64;
        self.record_like = regions.record_like as u64;
        if given.delimiter.is_none() {
            self.unsure.extend(undivided::doubt_by_ruler(&self.dialect, self.width, windows));
        }
        self.explain(&regions);
        Ok(())
    }

    /// Lines to bytes.
    fn place(&mut self, cut: &Cut, regions: &mut Regions, windows: &Windows) {
        let (lines, head) = (&cut.head.lines, &windows.head);
        let mut data = regions.start + regions.header_lines;
        // A line drawn below the header and blank ones are no data, except where a record may be blank.
        // Without a header a drawn line is a value, where records are lines.
        let width = regions.width;
        let may_be_drawn = regions.header_lines > 0 || width > 1;
        let empty_records = cut
            .with_windows(windows)
            .zip([data, 0, 0])
            .any(|((lines, _), from)| lines.have_empty_records(from.min(lines.len())..lines.len(), width));
        let is_record =
            |line: &table::Line| line.is_empty_record(width) || (empty_records && line.width == width);
        let no_data = |line: &table::Line| {
            (line.ruled && may_be_drawn) || (line.is_blank() && width > 1 && !is_record(line))
        };
        let begins = data;
        while lines.get(data).is_some_and(no_data) {
            data += 1;
        }
        regions.end = regions.end.map(|end| end.max(data));
        let skipped = &lines[begins.min(data)..data.min(lines.len())];
        self.unsure.extend(describe::empty_first(skipped, width));
        regions.record_like +=
            skipped.iter().filter(|line| line.only_delimits && line.width != width).count();
        let read_bytes = lines.last().map_or(0, |line| line.start + line.length);
        let start_of = |no: usize| lines.get(no).map_or(read_bytes, |line| line.start);
        let shift = if self.encoding.recoded { 0 } else { self.encoding.bom_bytes as u64 };
        let is_utf8 = self.encoding.name == "UTF8";
        let utf8 = |text_byte: usize| text_byte as u64 + if is_utf8 { shift } else { 0 };
        let place = |no: usize| (head.plain_byte(start_of(no)).unwrap_or(0), utf8(start_of(no)));
        (self.plain.start_byte, self.utf8.start_byte) = place(data);
        if let Some((plain, utf8)) = regions.end.map(place) {
            (self.plain.end_byte, self.utf8.end_byte) = (Some(plain), Some(utf8));
        }
        if let Some((plain, utf8)) = regions.second.map(place) {
            (self.plain.second_table_byte, self.utf8.second_table_byte) = (Some(plain), Some(utf8));
        }
        if let Some((no, window)) = regions.tail_end.zip(windows.tail.as_ref()) {
            let start = cut.tail.lines.get(no).map_or(window.text.len(), |line| line.start);
            let end = window.plain_byte(start);
            self.plain.end_byte = end;
            self.utf8.end_byte = end.filter(|_| is_utf8);
        }
        self.second_table = self.span().second_table_byte;
    }

    fn explain(&mut self, regions: &Regions) {
        if regions.start > 0 {
            self.evidence.push(format!(
                "{} before the table {} another shape than its records",
                counted(regions.start, "line"),
                plural(regions.start, "has", "have")
            ));
            self.unsure.extend(regions.many_above.then(|| Unsure {
                what: format!("the {} before the table may be records", counted(regions.start, "line")),
                option: "--format csv, which takes all lines for records,",
            }));
        }
        if let Some(weight) = regions.header_weight {
            self.evidence.push(match regions.header_lines {
                0 => "the first record looks like the others: no header".to_owned(),
                1 => "the first record differs from those below it: a header".to_owned(),
                many => format!("the first {many} records differ from those below them: a header"),
            });
            // At 1.0 nothing speaks for a header but that it has no gap.
            if weight > -1.0 && weight <= 1.0 {
                let what = if regions.header_lines > 0 { "be data" } else { "be a header" };
                let what = format!("the first record may {what}: all columns hold text");
                self.unsure.push(Unsure { what, option: HEADER_OPTION });
            }
            if regions.header_lines > 1 {
                let what =
                    "of the records taken for the header those behind the first may be data".to_owned();
                self.unsure.push(Unsure { what, option: HEADER_RECORDS_OPTION });
            }
        }
        if regions.footer_lines > 0 {
            let are =
                plural(regions.footer_lines, "is blank, a total or a note", "are blank, totals or notes");
            self.evidence.push(format!("{} at the end {are}", counted(regions.footer_lines, "line")));
        }
        if let Some(byte) = self.plain.second_table_byte {
            self.evidence.push(describe::second_table(byte));
        }
    }

    /// Another table begins at this byte of the file, beyond the sample; the finding is that of what stands
    /// before it.
    pub fn end_before(&mut self, byte: u64) {
        let is_utf8 = self.encoding.name == "UTF8";
        self.plain.end_byte.get_or_insert(byte);
        self.plain.second_table_byte = Some(byte);
        if is_utf8 {
            (self.utf8.end_byte, self.utf8.second_table_byte) = (self.plain.end_byte, Some(byte));
        }
        self.second_table = Some(byte);
        self.evidence.push(describe::second_table(byte));
    }
}

#[cfg(test)]
mod tests;
