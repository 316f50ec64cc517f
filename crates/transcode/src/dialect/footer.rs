//! Lines at the very end that are no data: blank ones, totals, notes.
//!
//! Only what surely is none is cut off: a short last record stays, and so does a category that is called
//! "Total" more than once.

use super::cell_types::{Class, Kind};
use super::header;
use super::rows::Reader;
use super::table::{Line, Lines, Profile, agreement};
use super::windows::Window;
use crate::cells::Record;
use std::ops::Range;

/// Longer footers are taken for data.
pub(super) const FOOTER_LINES_MAX: usize = 40;

/// Balances behind a table have no more lines, and it has so many records and columns of numbers, days or the
/// like at least: of fewer nothing is usual.
const BALANCE_LINES_MAX: usize = 3;
const BALANCED_LINES_MIN: usize = 3;
const TYPED_MIN: usize = 3;

/// What a note begins with.
const NOTES: &[&str] = &[
    "note",
    "notes",
    "source",
    "sources",
    "total",
    "totals",
    "footnote",
    "disclaimer",
    "copyright",
    "generated",
    "created",
    "exported",
    "prepared",
    "last updated",
    "updated",
    "end of",
    "eof",
    "data from",
    "data source",
    "quelle",
    "hinweis",
    "stand",
    "fuente",
    "nota",
    "remark",
    "remarks",
    "legend",
    "contact",
    "see ",
    "page ",
    "*",
    "†",
    "‡",
    "#",
    "(",
    "[",
    "--",
    "==",
    "©",
    "//",
];

/// What a line of totals is called.
const TOTALS: &[&str] = &[
    "total",
    "totals",
    "grand total",
    "sub-total",
    "subtotal",
    "sum",
    "sums",
    "overall total",
    "summe",
    "gesamt",
    "gesamtsumme",
    "insgesamt",
    "totale",
    "totaal",
    "suma",
];

/// The same, but in columns of text as good a value as any.
const MEANS: &[&str] = &["average", "mean", "avg"];

/// Below the name of the one column a line is drawn that is one of the first of the file.
const UNDERLINED_LINES: usize = 4;

/// More than any of these names takes.
const NAME_BYTES_MAX: usize = 32;

struct Footer<'a, 'w> {
    lines: &'a Lines,
    before: &'a [&'a Lines],
    profile: &'a Profile,
    reader: &'a mut Reader,
    window: &'a Window<'w>,
}

/// The name of a record of totals.
pub(super) fn total_name(kinds: &[Kind], record: &Record) -> Option<&'static str> {
    let first = kinds.iter().position(|kind| *kind != Kind::Empty)?;
    let value = record.value(first);
    if kinds[first] != Kind::Text || value.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = std::str::from_utf8(value).ok()?.trim().trim_end_matches([':', ' ']);
    TOTALS.iter().chain(MEANS).find(|total| total.eq_ignore_ascii_case(name)).copied()
}

/// The line behind the last one of `range` that is data. `before` are lines of the same table in windows
/// before this one.
pub(super) fn find(
    lines: &Lines,
    range: Range<usize>,
    profile: &Profile,
    reader: &mut Reader,
    window: &Window,
    before: &[&Lines],
) -> usize {
    let mut footer = Footer { lines, before, profile, reader, window };
    let first_blank = range.clone().find(|no| lines.lines[*no].is_blank());
    let last_filled = range.clone().rev().find(|no| !lines.lines[*no].is_blank());
    let blank_inside = first_blank.zip(last_filled).is_some_and(|(blank, filled)| blank < filled);
    // In a file of one column a blank line may be a record.
    let blanks_are_data = profile.width() == 1 && blank_inside;
    let width = profile.width();
    let empty_records = width > 1 && lines.have_empty_records(range.clone(), width);
    let head = before.first().copied().unwrap_or(lines);
    let is_underlined = width == 1 && head.lines.iter().take(UNDERLINED_LINES).any(|line| line.ruled);
    // Above another table, a total or a note such a line keeps the two apart.
    let mut ends_file = range.end == lines.len();
    let is_cut_off = |no: usize| no + 1 == range.end && lines.ends_early(no, window);
    let mut end = range.end;
    let lowest = range.start.max(range.end.saturating_sub(FOOTER_LINES_MAX));
    while end > lowest {
        let no = end - 1;
        if lines.lines[no].is_blank() {
            let is_record = ends_file && is_empty_record(lines, range.start..no + 1, width);
            if blanks_are_data || is_record || (empty_records && lines.lines[no].width == width) {
                break;
            }
            end = no;
            continue;
        }
        // What a stray quote makes of a line tells nothing.
        if lines.lines[no].broken {
            break;
        }
        // The lower edge of a table drawn in characters, and what its program says below it.
        let is_edge = |no: usize| lines.lines[no].ruled && width > 1 && lines.lines[no].width == 1;
        let is_below_edge = is_underlined || no > lowest && is_edge(no - 1);
        if is_edge(no) || is_below_edge && footer.counts_records(&lines.lines[no]) {
            (end, ends_file) = (no, false);
            continue;
        }
        // Everything below a blank line, if none of it is data. Where such records stand among the others
        // they set nothing apart.
        let sets_apart = |line: &Line| line.is_blank() && !(empty_records && line.is_empty_record(width));
        let block = (lowest..no).rev().find(|above| sets_apart(&lines.lines[*above]));
        let is_note = |no: usize| !lines.lines[no].broken && footer.is_no_record(no);
        let block_is_notes = block.is_some_and(|blank| (blank + 1..end).all(is_note))
            || block.is_some_and(|blank| footer.is_unlike_records(blank + 1..end, range.start));
        if let Some(blank) = block.filter(|blank| block_is_notes && *blank > range.start) {
            (end, ends_file) = (blank, false);
        } else if no > range.start
            && (footer.is_note(no) && !(is_cut_off(no) && footer.is_below_data(no, range.start))
                || footer.is_total(no, range.start, false) && !footer.is_record_of_no_sum(no, range.start))
        {
            (end, ends_file) = (no, false);
        } else {
            break;
        }
    }
    end
}

/// The last line of `range` is a record of empty fields, and such or others stand above it without a gap.
fn is_empty_record(lines: &Lines, range: Range<usize>, width: usize) -> bool {
    let mut upwards = lines.lines[range].iter().rev();
    let is_empty = upwards.next().is_some_and(|line| line.is_empty_record(width));
    let above = upwards.find(|line| !line.is_empty_record(width));
    is_empty && above.is_none_or(|line| !line.is_blank())
}

impl Footer<'_, '_> {
    /// Far from the shape of a record. For lines behind a blank one.
    fn is_no_record(&mut self, no: usize) -> bool {
        let (line, width) = (&self.lines.lines[no], self.profile.width());
        if width == 1 {
            return self.is_note(no);
        }
        let (same, _) = agreement(self.lines.kinds(no), &self.profile.classes());
        let short = line.width * 2 <= width || (line.filled * 2 <= width && line.left);
        // A delimiter that text is full of cuts notes into many.
        let text = line.width != width && self.lines.kinds(no).iter().all(|kind| *kind == Kind::Text);
        let short = short || (text && self.first_is_note(no));
        line.is_blank()
            || self.counts_records(line)
            || (same == 0 && short)
            || (short && self.first_is_note(no))
            || self.is_total(no, 0, true)
    }

    /// `3 rows selected.`, which blanks may cut as they cut records.
    fn counts_records(&self, line: &Line) -> bool {
        let written = self.window.text.get(line.start..line.start + line.length).unwrap_or_default();
        let written = written.trim_ascii();
        let bare = written.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")).unwrap_or(written);
        let mut words = bare.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let is_count = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
        let what = words.next().unwrap_or_default();
        is_count
            && [&b"row"[..], b"rows", b"row(s)", b"record", b"records", b"record(s)"]
                .iter()
                .any(|name| what.eq_ignore_ascii_case(name))
            && words.count() <= 4
    }

    /// None of these few lines behind a blank one has more than a few values of the columns' types, as each
    /// record has: balances.
    fn is_unlike_records(&self, block: Range<usize>, from: usize) -> bool {
        let (width, classes) = (self.profile.width(), self.profile.classes());
        let typed = classes.iter().flatten().count();
        let Some(first) = classes.iter().position(Option::is_some) else { return false };
        // A record that nobody has filled in yet has its day or number.
        let is_unlike = |no: usize| {
            let kinds = self.lines.kinds(no);
            kinds.len() == width
                && kinds[first].class() != classes[first]
                && agreement(kinds, &classes).0 * 2 < typed
        };
        let is_record = |no: usize| !self.lines.lines[no].is_blank() && !is_unlike(no);
        typed >= TYPED_MIN
            && block.len() <= BALANCE_LINES_MAX
            && block.clone().all(|no| !self.lines.lines[no].broken && is_unlike(no))
            && (from..block.start - 1).all(is_record)
            && block.start > from + BALANCED_LINES_MIN
    }

    /// A note without a blank line above it.
    fn is_note(&mut self, no: usize) -> bool {
        let (line, width): (&Line, usize) = (&self.lines.lines[no], self.profile.width());
        let first = self.lines.kinds(no).first().copied().unwrap_or(Kind::Empty);
        let alone = !self.is_record_otherwise(no) && line.filled == 1 && line.left && first == Kind::Text;
        let text = self.lines.kinds(no).iter().all(|kind| *kind == Kind::Text);
        let against = agreement(self.lines.kinds(no), &self.profile.classes()).1 > 0;
        // Of `Source: Office, 2024` the delimiter cuts off a number.
        let text = text || (first == Kind::Text && against && self.first_is_labelled(no));
        let cut_note = text && (line.width * 2 <= width || (line.width < width && against));
        let cut_note = cut_note && !self.is_record_otherwise(no);
        match width {
            // Of text alone, notes are not told from values.
            1 => alone && self.profile.class(0).is_some() && self.first_is_note(no),
            2 if line.width == 1 => alone && self.first_is_note(no),
            2 => alone && !self.others_are_alone(no) && self.first_begins_note(no),
            _ => {
                let alone = alone && (line.width == 1 || !self.others_are_alone(no));
                (alone || cut_note) && self.first_is_note(no)
            }
        }
    }

    /// The line above is no note either.
    fn is_below_data(&mut self, no: usize, from: usize) -> bool {
        no == from || !(self.lines.lines[no - 1].is_blank() || self.is_note(no - 1))
    }

    /// Another delimiter makes a record of it.
    fn is_record_otherwise(&self, no: usize) -> bool {
        let classes = self.profile.classes();
        let enough = classes.iter().flatten().count().max(1);
        let fits = |kinds: &[Kind]| {
            let (same, text) = agreement(kinds, &classes);
            same * 2 >= enough && text == 0
        };
        header::cut_otherwise(self.lines, no, self.profile.width(), self.reader, self.window, fits).is_some()
    }

    /// A record with one field filled stands among others, so that such a line is one too.
    fn others_are_alone(&self, no: usize) -> bool {
        let alone = |line: &Line| line.filled == 1 && line.width > 1;
        // Where the first column has a class, text alone is no such record.
        self.profile.class(0).is_none() && self.lines.have_among(0..no, self.profile.width(), alone)
    }

    fn first_is_note(&mut self, no: usize) -> bool {
        let values = self.lines.values(no, self.reader, self.window);
        let Some(first) = values.iter().find(|value| !value.is_empty()) else { return false };
        let text = first.to_lowercase();
        is_sentence(&text) || NOTES.iter().any(|note| starts_with_word(&text, note))
    }

    /// Its first word is one of notes, with a colon behind it.
    fn first_is_labelled(&mut self, no: usize) -> bool {
        let values = self.lines.values(no, self.reader, self.window);
        let text = values.first().map(|first| first.to_lowercase()).unwrap_or_default();
        text.split_once(':').is_some_and(|(label, _)| NOTES.contains(&label))
    }

    /// Its first words are those of notes, and more follow.
    fn first_begins_note(&mut self, no: usize) -> bool {
        let values = self.lines.values(no, self.reader, self.window);
        let text = values.first().map(|first| first.to_lowercase()).unwrap_or_default();
        text.split_whitespace().count() > 1 && NOTES.iter().any(|note| starts_with_word(&text, note))
    }

    /// A record of somebody called Total, and no total: it is full, fits the columns, and none of its numbers
    /// is the sum or the mean of its column; or it has none, as the table. False where that cannot be told:
    /// part of the table was not seen, or the numbers can be read in two ways.
    fn is_record_of_no_sum(&mut self, no: usize, from: usize) -> bool {
        let (line, width, classes) = (self.lines.lines[no], self.profile.width(), self.profile.classes());
        let against = agreement(self.lines.kinds(no), &classes).1;
        if !self.before.is_empty() || line.width != width || line.filled != width || against > 0 {
            return false;
        }
        let kinds = self.lines.kinds(no);
        if !classes.contains(&Some(Class::Number)) {
            return kinds.iter().all(|kind| kind.class() != Some(Class::Number));
        }
        let of_numbers = (0..width).filter(|no| classes[*no] == Some(Class::Number));
        let mut columns: Vec<Column> = of_numbers.map(Column::at).collect();
        for above in from..no {
            let values = self.lines.values(above, self.reader, self.window);
            for column in columns.iter_mut().filter(|_| values.len() == width) {
                if self.lines.kinds(above)[column.at].class() != Some(Class::Number) {
                    continue;
                }
                let Some(amount) = amount(&values[column.at]) else { return false };
                column.add(&amount);
            }
        }
        let values = self.lines.values(no, self.reader, self.window);
        let is_no_sum =
            |column: &Column| amount(&values[column.at]).is_some_and(|amount| column.is_far_from(&amount));
        columns.iter().all(is_no_sum)
    }

    /// Totals, without a blank line above them or with one: where no earlier line from `from` on has their
    /// name.
    fn is_total(&self, no: usize, from: usize, behind_blank: bool) -> bool {
        let Some(name) = self.lines.lines[no].total else { return false };
        let kinds = self.lines.kinds(no);
        let typed = kinds.iter().filter(|kind| kind.is_value() && **kind != Kind::Text).count();
        // A word and a number in columns of text are a record as good as any; a word in a column of numbers
        // is not.
        let (same, text) = agreement(kinds, &self.profile.classes());
        let has_numbers = same > 0 || (typed > 0 && text > 0);
        let first = kinds.iter().position(|kind| *kind != Kind::Empty).unwrap_or(0);
        let may_be_value = MEANS.contains(&name) && !behind_blank && self.profile.class(first).is_none();
        let others = self.before.iter().flat_map(|lines| &lines.lines);
        let mut earlier = self.lines.lines[from..no].iter().chain(others);
        self.profile.width() > 1
            && has_numbers
            && !may_be_value
            && !earlier.any(|line| line.total == Some(name))
    }
}

/// Hundreds of such decimals are what sums of doubles are off by.
const SUM_IS_OFF_BY: f64 = 1e-9;

/// The numbers of a column, added up.
struct Column {
    at: usize,
    sum: f64,
    count: f64,
    /// The sum may be so far from that of what was rounded.
    off_by: f64,
}

impl Column {
    fn at(at: usize) -> Column {
        Column { at, sum: 0.0, count: 0.0, off_by: 0.0 }
    }

    /// Numbers with exponents are rounded to a few digits, as decimals hardly ever are.
    fn add(&mut self, amount: &Amount) {
        self.sum += amount.number;
        self.count += 1.0;
        self.off_by += if amount.has_exponent { amount.off_by } else { 0.0 };
    }

    /// That is neither the sum nor the mean.
    fn is_far_from(&self, amount: &Amount) -> bool {
        let near = amount.off_by * (1.0 + SUM_IS_OFF_BY) + self.sum.abs() * SUM_IS_OFF_BY;
        let count = self.count.max(1.0);
        (amount.number - self.sum).abs() > near + self.off_by
            && (amount.number - self.sum / count).abs() > near + self.off_by / count
    }
}

/// A number in whatever spelling.
struct Amount {
    number: f64,
    /// Half of its last digit.
    off_by: f64,
    has_exponent: bool,
}

/// Nothing where comma or point may mean either.
fn amount(text: &str) -> Option<Amount> {
    let (text, exponent) = without_exponent(text);
    let mut digits: String = text.chars().filter(|c| c.is_ascii_digit() || matches!(c, '.' | ',')).collect();
    let signs: Vec<(usize, char)> = digits.char_indices().filter(|(_, c)| !c.is_ascii_digit()).collect();
    let decimal = match signs.as_slice() {
        [] => None,
        [(at, ',')] if at + 4 == digits.len() => return None,
        [(at, _)] => Some(*at),
        [.., (_, other), (at, last)] => (other != last).then_some(*at),
    };
    let decimals = decimal.map_or(0, |at| digits.len() - at - 1);
    digits.retain(|c| c.is_ascii_digit());
    let magnitude: f64 = digits.parse().ok()?;
    // The minus may stand behind the digits or a currency, too.
    let is_negative = text.contains(['-', '(', '\u{2212}']);
    let decimals = i32::try_from(decimals).ok()? - exponent.unwrap_or(0);
    let number = magnitude / 10f64.powi(decimals);
    Some(Amount {
        number: if is_negative { -number } else { number },
        off_by: 0.5 * 10f64.powi(-decimals),
        has_exponent: exponent.is_some(),
    })
}

/// `1.5E-03` is `1.5` and -3; the E of `12EUR` begins a word.
fn without_exponent(text: &str) -> (&str, Option<i32>) {
    let split = text.char_indices().find_map(|(at, c)| {
        let is_behind =
            matches!(c, 'e' | 'E') && text[..at].ends_with(|c: char| c.is_ascii_digit() || c == '.');
        let power = text[at..].get(1..).filter(|_| is_behind)?;
        let power: i16 = power.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
        Some((&text[..at], i32::from(power)))
    });
    split.map_or((text, None), |(mantissa, power)| (mantissa, Some(power)))
}

/// Four words or more, of letters for the most part.
fn is_sentence(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic() || *c == ' ').count();
    text.split_whitespace().count() >= 4 && letters * 10 >= text.chars().count() * 8
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let open = word.ends_with(|c: char| !c.is_alphanumeric());
    text.strip_prefix(word)
        .is_some_and(|rest| open || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use crate::dialect::{Finding, Given, Sample, find};

    fn of(text: &str, given: &Given) -> Finding {
        find(&Sample::of_whole(text.as_bytes()), given).unwrap()
    }

    #[test]
    fn records_that_fit_the_columns_are_data_whatever_their_first_word() {
        let no_header = Given { header: Some(false), ..Given::default() };
        for table in [
            "Note,ee\nnorth,aa\nsouth,bb\neast,cc\nSource,ee\nTotal,5\n",
            "name,remark\nnorth,aa\nsouth,\neast,cc\nwest,dd\nSource of it,\n",
            "Note,10,x\nsouth,20,y\neast,5,z\nwest,8,u\nNote,43,v\n",
            "Source to be,,,\nann,1,2,3\nbob,4,5,6\ncid,,,\ndan,7,8,9\n",
            "Note,2024-01-09,x\nsouth,2024-02-07,y\neast,2024-03-08,z\nTotal,2024-05-09,w\n",
            "Note,aa\nTotal,aa\n\nnorth,bb\nsouth,cc\neast,dd\nwest,ee\nhome,ff\nfar,gg\n",
        ] {
            let finding = of(table, &no_header);
            let (start, end) = (finding.plain.start_byte, finding.plain.end_byte);
            assert_eq!((start, end, finding.record_like), (0, None, 0), "{table:?}: {}", finding.describe());
        }
        // A line that ends with the file and without a line ending, as the others have it, may be half a
        // record.
        let cut_off = "title,year,genre\nAlien,1979,sf\nHeat,1995,crime\nUp,2009,anim\nThe Good the Bad and";
        let ends = |more: &str| of(&format!("{cut_off}{more}"), &Given::default()).plain.end_byte;
        let begin = cut_off.find("The Good").map(|byte| byte as u64);
        assert_eq!((ends(""), ends("\n"), ends("\nNote: as of May")), (None, begin, begin));
        // Numbers that fit make no record of totals, nor is there one where no other line is as empty.
        for (table, last) in [
            ("id,name,n\n1,ann,7\n2,bob,8\n3,cid,9\n", "Total,,24\n"),
            ("region,n\nnorth,7\nsouth,8\neast,9\n", "Total,24\n"),
            ("name,remark\nnorth,aa\nsouth,bb\neast,cc\nwest,dd\n", "Source of it,\n"),
        ] {
            let finding = of(&format!("{table}{last}"), &Given::default());
            assert_eq!(
                (finding.plain.end_byte, finding.record_like),
                (Some(table.len() as u64), 1),
                "{last:?}"
            );
        }
    }
}
