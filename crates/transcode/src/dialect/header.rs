//! Is a line the columns' names? Told from the lines below it: names are text where the columns hold
//! numbers, days or addresses. Where all columns hold text, words, lengths and repetition must tell, and the
//! answer may be unsure.

use super::cell_types::{Class, Kind, is_marked, kind};
use super::cut_decimals;
use super::declared_names;
use super::rows::Reader;
use super::table::{Line, Lines, Profile, agreement};
use super::windows::Window;
use crate::cells::{Cells, Next, Record};
use howdah_model::Dialect;
use std::collections::BTreeSet;
use std::ops::Range;
use sure_names::are_sure_names;

pub(super) use by_words::{has_word, is_identifier};

mod by_words;
mod shapes;
mod sure_names;

/// What speaks for a header; positive for, negative against. Below 1 either way it is unsure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Verdict {
    pub(super) weight: f64,
    /// Typed columns told, not words.
    pub(super) by_types: bool,
}

impl Verdict {
    pub(super) fn is_header(self) -> bool {
        self.weight > 0.0
    }
}

/// So many values of another kind than their columns are names.
const OTHERS_MIN: usize = 2;

/// More header lines than this are not looked for.
pub(super) const HEADER_LINES_MAX: usize = 6;

/// Lines below a header that its words are compared with.
pub(super) const COMPARED_LINES: usize = 200;

/// What speaks against names where the only ones in columns of numbers would be values with a mark: as much
/// as a usual name speaks for them, for `city,<18,>=18` may be one.
const MARKED: f64 = -1.5;

/// What speaks for years in a row as the names of columns of words.
const YEARS: f64 = 2.0;

/// Which header line a line would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The first one that names columns.
    First,
    /// One below it.
    Further,
}

/// Weighs line `no` against the profile of what is below it. A line with a value of its column's type is a
/// record, and so is one with a field that comes again below: a record that is taken for a header is lost.
pub(super) fn verdict(
    lines: &Lines,
    no: usize,
    place: Place,
    profile: &Profile,
    reader: &mut Reader,
    window: &Window,
) -> Verdict {
    let (kinds, classes) = (lines.kinds(no), profile.classes());
    let (same, text) = agreement(kinds, &classes);
    let typed = classes.iter().flatten().count();
    let marked = marked_values(lines, no, &classes, reader, window);
    // A number with a mark is neither a value of its column nor a name.
    let text = text - marked.numbers.min(text);
    let text =
        text + if place == Place::First { others_that_name(lines, no, &classes, reader, window) } else { 0 };
    if typed > 0 && same + text > 0 {
        let (numbers, truths) = match place {
            Place::First => values_that_name(lines, no, profile, reader, window),
            Place::Further => (0, 0),
        };
        let (same, text) = (same.saturating_sub(numbers + truths), text + numbers);
        let is_record = text == 0
            || same > 0
            || comes_again(lines, no, place, &classes, reader, window)
                && !(place == Place::First && are_sure_names(lines, no, text, &classes, reader, window));
        let weight = if is_record { -1.0 - same as f64 } else { 1.0 + text as f64 };
        return Verdict { weight, by_types: true };
    }
    if place == Place::First && years_name_words(lines, no, profile, reader, window) {
        return Verdict { weight: YEARS, by_types: true };
    }
    let words = by_words::weight(lines, no, &classes, reader, window);
    let weight = if marked.numbers + marked.missing > 0 { words + MARKED } else { words };
    Verdict { weight, by_types: false }
}

/// What a line holds in columns of numbers that is no plain number, and hardly a name.
struct Marked {
    /// `<0.5`, `1.2*`.
    numbers: usize,
    /// `n/a`, `-`.
    missing: usize,
}

fn marked_values(
    lines: &Lines,
    no: usize,
    classes: &[Option<Class>],
    reader: &mut Reader,
    window: &Window,
) -> Marked {
    let kinds = lines.kinds(no);
    let may_be = |column: &usize| {
        classes[*column] == Some(Class::Number) && matches!(kinds[*column], Kind::Text | Kind::Missing)
    };
    let columns: Vec<usize> = (0..kinds.len().min(classes.len())).filter(may_be).collect();
    if columns.is_empty() {
        return Marked { numbers: 0, missing: 0 };
    }
    let values = lines.values(no, reader, window);
    let marked = columns.into_iter().filter(|column| is_marked(values[*column].as_bytes()));
    let (missing, numbers): (Vec<usize>, Vec<usize>) =
        marked.partition(|column| kinds[*column] == Kind::Missing);
    Marked { numbers: numbers.len(), missing: missing.len() }
}

/// How many numbers and how many truths in a line are names though their columns hold such values.
fn values_that_name(
    lines: &Lines,
    no: usize,
    profile: &Profile,
    reader: &mut Reader,
    window: &Window,
) -> (usize, usize) {
    let (kinds, classes) = (lines.kinds(no), &profile.classes());
    let values = lines.values(no, reader, window);
    let columns = numbers_that_name(&values, kinds, profile);
    // Years in a row that stand in the next line, too, are values, and so are those in columns of years,
    // unless a usual name stands beside them.
    let next = numbers_that_name(&lines.values(no + 1, reader, window), lines.kinds(no + 1), profile);
    let has_word = values.iter().any(|value| has_word(value));
    let are_values = !next.is_empty() || !has_word && hold_years(lines, no + 1, &columns, reader, window);
    let numbers = if are_values { 0 } else { columns.len() };
    // `y` and `no` are names as well as truths: they do not speak against other names.
    let truth =
        |(kind, class): &(&Kind, &Option<Class>)| **kind == Kind::Boolean && **class == Some(Class::Boolean);
    let has_names = agreement(kinds, classes).1 > 0;
    let truths = if has_names { kinds.iter().zip(classes).filter(truth).count() } else { 0 };
    (numbers, truths)
}

/// A field comes again below in its column, as names do only where all of the line comes again, or where they
/// are usual words. Further lines of names are not looked at.
fn comes_again(
    lines: &Lines,
    no: usize,
    place: Place,
    classes: &[Option<Class>],
    reader: &mut Reader,
    window: &Window,
) -> bool {
    let (values, kinds) = (lines.values(no, reader, window), lines.kinds(no));
    let first = place == Place::First;
    let may_be_name = |column: usize| {
        let (value, is_text) = (&values[column], classes.get(column).is_none_or(Option::is_none));
        first && is_text && has_word(value) && !value.contains(' ')
    };
    let is_word = |column: &usize| matches!(kinds[*column], Kind::Text | Kind::Boolean);
    let told: Vec<usize> =
        (0..values.len().min(kinds.len())).filter(is_word).filter(|column| !may_be_name(*column)).collect();
    let is_names = |no: &usize| {
        let kinds = lines.kinds(*no);
        first && kinds.len() == values.len() && kinds.iter().all(|kind| *kind == Kind::Text)
    };
    let names = (no + 1..lines.len()).take(HEADER_LINES_MAX).take_while(is_names).count();
    (no + 1 + names..lines.len()).take(COMPARED_LINES).any(|below| {
        let others = lines.values(below, reader, window);
        let is_repeated = first && others == values;
        !is_repeated
            && others.len() == values.len()
            && told.iter().any(|column| others[*column] == values[*column])
    })
}

/// The columns that numbers name: years in a row, or rising numbers behind an empty corner.
fn numbers_that_name(values: &[String], kinds: &[Kind], profile: &Profile) -> Vec<usize> {
    // Of a year without a number there is a column, too.
    let may_count = |column: usize| match profile.class(column) {
        Some(class) => class == Class::Number,
        None => column < profile.width() && !profile.is_text(column),
    };
    let columns: Vec<usize> = (0..values.len().min(kinds.len()))
        .filter(|column| kinds[*column].class() == Some(Class::Number) && may_count(*column))
        .collect();
    // One column of numbers and one of nothing are a beginning and an end that is open.
    if columns.iter().filter(|column| profile.class(**column).is_some()).count() < 2 {
        return Vec::new();
    }
    let parsed = |column: usize| Some((column, values[column].parse::<f64>().ok()?));
    let (columns, numbers): (Vec<usize>, Vec<f64>) = columns.into_iter().filter_map(parsed).unzip();
    let each = |agree: fn(f64, f64) -> bool| numbers.windows(2).all(|pair| agree(pair[0], pair[1]));
    let years =
        numbers.len() > 1 && numbers.iter().copied().all(is_year) && each(|a, b| (a - b).abs() == 1.0);
    let corner = values.first().is_some_and(String::is_empty) && numbers.len() + 1 == values.len();
    let rising = numbers.len() > 2 && each(|a, b| a < b);
    if years || (corner && rising) { columns } else { Vec::new() }
}

/// How many days and times in a line name columns of numbers, as in a table with a column for each day, and
/// how many numbers columns of truths, 0 and 1 aside, which are truths as well. One may be a value that is
/// astray; of several that differ no record is made.
fn others_that_name(
    lines: &Lines,
    no: usize,
    classes: &[Option<Class>],
    reader: &mut Reader,
    window: &Window,
) -> usize {
    let kinds = lines.kinds(no);
    let is_other = |column: &usize| {
        matches!(
            (kinds[*column].class(), classes[*column]),
            (Some(Class::Moment), Some(Class::Number | Class::Boolean))
                | (Some(Class::Number), Some(Class::Boolean))
        )
    };
    let mut columns: Vec<usize> = (0..kinds.len().min(classes.len())).filter(is_other).collect();
    if columns.len() < OTHERS_MIN {
        return 0;
    }
    let values = lines.values(no, reader, window);
    columns.retain(|column| !matches!(values[*column].as_str(), "0" | "1"));
    if columns.len() < OTHERS_MIN {
        return 0;
    }
    let different: BTreeSet<&String> = columns.iter().map(|column| &values[*column]).collect();
    if different.len() == columns.len() { columns.len() } else { 0 }
}

/// Two years in a row, or more, above columns that hold words and nothing else.
fn years_name_words(
    lines: &Lines,
    no: usize,
    profile: &Profile,
    reader: &mut Reader,
    window: &Window,
) -> bool {
    let kinds = lines.kinds(no);
    let columns: Vec<usize> =
        (0..kinds.len()).filter(|column| kinds[*column].class() == Some(Class::Number)).collect();
    let values = lines.values(no, reader, window);
    let years: Vec<f64> = columns.iter().filter_map(|column| values[*column].parse().ok()).collect();
    let are_years = years.len() == columns.len()
        && years.len() > 1
        && years.iter().copied().all(is_year)
        && years.windows(2).all(|pair| (pair[0] - pair[1]).abs() == 1.0);
    are_years && columns.into_iter().all(|column| profile.holds_words_alone(column))
}

fn is_year(number: f64) -> bool {
    (1800.0..2200.0).contains(&number) && number.fract() == 0.0
}

/// Of the lines from `from` on more than half have years in all of these columns.
fn hold_years(lines: &Lines, from: usize, columns: &[usize], reader: &mut Reader, window: &Window) -> bool {
    let (mut seen, mut years) = (0, 0);
    for no in (from..lines.len()).take(COMPARED_LINES) {
        let values = lines.values(no, reader, window);
        let year =
            |column: &usize| values.get(*column).and_then(|value| value.parse().ok()).is_some_and(is_year);
        seen += 1;
        years += usize::from(columns.iter().all(year));
    }
    !columns.is_empty() && years * 2 > seen
}

/// A field without a name, in a header that has fewer of them than records have fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Nameless {
    /// There is none, or it holds nothing.
    #[default]
    Nothing,
    /// The first one holds what looks like the names of rows, as R writes them.
    First,
    /// Nobody knows which.
    Unknown,
    /// Nor whether there is one: the delimiter may be the comma of fractions, too.
    OrCutDecimals,
}

/// The names of the columns from their header lines, `width` of them at least. `end` is behind the last
/// record.
pub(super) fn names(
    lines: &Lines,
    (header, end): (Range<usize>, usize),
    width: usize,
    reader: &mut Reader,
    window: &Window,
) -> (Vec<String>, Nameless) {
    let first = lines.lines.get(header.start).filter(|_| !header.is_empty());
    let written = first.and_then(|line| window.text.get(line.start..line.start + line.length));
    if let Some(declared) = written.and_then(declared_names::of_line).filter(|names| names.len() == width) {
        return (declared, Nameless::Nothing);
    }
    let header = without_documents(lines, header, reader, window);
    let mut names: Vec<String> = vec![String::new(); if header.is_empty() { 0 } else { width }];
    let (mut nameless, is_one) = (Nameless::Nothing, header.len() == 1);
    for no in header {
        let mut values = lines.values(no, reader, window);
        if let Some(otherwise) = otherwise(lines, no, width, reader, window) {
            values = otherwise;
        }
        if let (true, Some(quote)) = (lines.lines[no].broken, reader.dialect.quote) {
            values.iter_mut().for_each(|value| *value = value.trim_matches(char::from(quote)).to_owned());
        }
        // A delimiter too many leaves a field without a name.
        while let Some(empty) = values.iter().rposition(String::is_empty).filter(|_| values.len() > width) {
            values.remove(empty);
        }
        let below = (no + 1..end, width, width.saturating_sub(values.len()));
        let cuts_decimals = is_one && cut_decimals::may_be(lines, below, reader, window);
        if values.len() + 1 == width
            && !cuts_decimals
            && numbers_rows(lines, (no..end, width), reader, window)
        {
            values.insert(0, String::new());
        } else if is_one && values.len() < width {
            nameless = nameless_field(lines, (no + 1..end, width - values.len()), width, reader, window);
            if cuts_decimals && nameless != Nameless::Nothing {
                nameless = Nameless::OrCutDecimals;
            }
            if nameless == Nameless::First {
                values.insert(0, String::new());
            }
        }
        names.resize(names.len().max(values.len()), String::new());
        for (name, value) in names.iter_mut().zip(values) {
            if !value.is_empty() && !name.is_empty() {
                name.push(' ');
            }
            name.push_str(&value);
        }
    }
    (names, nameless)
}

/// The first line alone where the last one holds a document of JSON in each field, as that of a survey does
/// which names its columns, words the questions and gives their identifiers: no name holds all of that.
fn without_documents(
    lines: &Lines,
    header: Range<usize>,
    reader: &mut Reader,
    window: &Window,
) -> Range<usize> {
    let are_documents = |no: usize| {
        let values = lines.values(no, reader, window);
        values.iter().all(|value| value.starts_with('{') && value.ends_with('}'))
    };
    match header.clone().skip(1).last().is_some_and(are_documents) {
        true => header.start..header.start + 1,
        false => header,
    }
}

/// So few records have names for the first field that differ by chance.
const NAMED_ROWS_MIN: usize = 3;

/// Which field has no name, where so many names are missing above records (`below`) that are all full.
fn nameless_field(
    lines: &Lines,
    (below, missing): (Range<usize>, usize),
    width: usize,
    reader: &mut Reader,
    window: &Window,
) -> Nameless {
    let (mut rows, mut are_text) = (Vec::new(), true);
    for no in below.take(COMPARED_LINES) {
        let is_record = |line: &&Line| !line.is_blank() && !line.broken && !line.ruled;
        let Some(line) = lines.lines.get(no).filter(is_record) else {
            continue;
        };
        let kinds = lines.kinds(no);
        if line.width != width || kinds.last() == Some(&Kind::Empty) {
            return Nameless::Nothing;
        }
        are_text &= kinds.first() == Some(&Kind::Text);
        rows.push(lines.values(no, reader, window).swap_remove(0));
    }
    let count = rows.len();
    rows.sort_unstable();
    rows.dedup();
    let are_names = missing == 1 && are_text && rows.len() == count && count >= NAMED_ROWS_MIN;
    match count {
        0 => Nameless::Nothing,
        _ if are_names => Nameless::First,
        _ => Nameless::Unknown,
    }
}

/// The fields of a line that another delimiter cuts into as many as the table has columns.
pub(super) fn cut_otherwise(
    lines: &Lines,
    no: usize,
    width: usize,
    reader: &Reader,
    window: &Window,
    accept: impl Fn(&[Kind]) -> bool,
) -> Option<Vec<String>> {
    let line = lines.lines.get(no).filter(|line| line.width * 2 <= width.max(3))?;
    let bytes = window.text.get(line.start..line.start + line.length)?;
    let own = &reader.dialect.delimiter;
    [",", ";", "\t", "|", ", ", " "].iter().filter(|delimiter| *delimiter != own).find_map(|delimiter| {
        let dialect = Dialect { delimiter: (*delimiter).to_owned(), eol: None, ..reader.dialect.clone() };
        let mut record = Record::default();
        let Next::Record { .. } = Cells::new(&dialect).ok()?.read(bytes, true, &mut record) else {
            return None;
        };
        let values = record.values().map(|value| String::from_utf8_lossy(value).trim().to_owned());
        // Titles have blanks too, and now and then as many as the table.
        let enough = if *delimiter == " " { 4 } else { 2 };
        let kinds: Vec<Kind> = record.values().map(kind).collect();
        let values: Vec<String> = values.collect();
        let sentence = *delimiter == " " && is_sentence(&values);
        (kinds.len() == width && width >= enough && !sentence && accept(&kinds)).then_some(values)
    })
}

/// Words of which the first one alone begins with a capital.
fn is_sentence(words: &[String]) -> bool {
    let mut first = words.iter().map(|word| word.chars().next());
    first.next().flatten().is_some_and(char::is_uppercase) && first.all(|c| c.is_some_and(char::is_lowercase))
}

/// The names in a line that another delimiter cuts.
pub(super) fn otherwise(
    lines: &Lines,
    no: usize,
    width: usize,
    reader: &Reader,
    window: &Window,
) -> Option<Vec<String>> {
    cut_otherwise(lines, no, width, reader, window, |kinds| kinds.iter().all(|kind| *kind == Kind::Text))
}

/// The lines below begin with 1, 2, 3: a column that R writes without a name. It may as well be one of
/// numbers that has a name, in records that all end with a delimiter too many.
fn numbers_rows(
    lines: &Lines,
    (from_header, width): (Range<usize>, usize),
    reader: &mut Reader,
    window: &Window,
) -> bool {
    let header = from_header.start;
    let below = header + 1..lines.len().min(header + 4);
    let is_full = |no: usize| {
        let kinds = lines.kinds(no);
        kinds.len() == width && kinds.last() != Some(&Kind::Empty)
    };
    !below.is_empty()
        && (header + 1..from_header.end.min(lines.len())).any(is_full)
        && below.enumerate().all(|(at, no)| {
            lines.values(no, reader, window).first().is_some_and(|value| *value == (at + 1).to_string())
        })
}
