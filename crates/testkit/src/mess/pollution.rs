//! The kinds of mess, and how each is made.

use super::table::{Clean, Kind};
use super::{BROKEN, Draft, percent, pick};
use fastrand::Rng;

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessKind {
    /// Nothing but its dialect.
    Clean,
    /// A title line, and sometimes a blank one.
    Title,
    /// Comments before the header.
    Comments,
    /// Names and values of metadata, padded with empty fields.
    PaddedPreamble,
    /// Blank lines at the front.
    BlankBefore,
    /// Blank lines at the end.
    BlankAfter,
    /// Records of delimiters alone at the end, which are records.
    DelimitersAfter,
    /// A row of totals at the end.
    Totals,
    /// A note at the end.
    Footnote,
    /// A second table of another width.
    SecondTable,
    /// A second header row.
    HeaderRows,
    /// There is one record.
    OneRow,
    /// Records that end in different ways.
    MixedEndings,
    /// The last record does not end.
    NoFinalNewline,
    /// NULL has a spelling.
    NullSpelling,
    /// A record lacks fields at its end.
    ShortRow,
    /// A record lacks a delimiter: two of its fields are one.
    MissingDelimiter,
    /// A record has empty fields more at its end.
    SurplusEnd,
    /// A record has one more delimiter somewhere.
    SurplusInside,
    /// A quote stands inside a value and nothing escapes it.
    StrayQuote,
    /// A value begins or ends with one quote more.
    ExtraQuote,
    /// A quote opens and nothing closes it.
    UnclosedQuote,
    /// A record has another delimiter.
    OtherDelimiter,
    /// Bytes that are no character.
    BrokenBytes,
    /// NUL bytes.
    NulBytes,
    /// A record has fields too many and none is empty.
    BeyondMending,
}

impl MessKind {
    /// All kinds.
    pub const ALL: [MessKind; 26] = [
        MessKind::Clean,
        MessKind::Title,
        MessKind::Comments,
        MessKind::PaddedPreamble,
        MessKind::BlankBefore,
        MessKind::BlankAfter,
        MessKind::DelimitersAfter,
        MessKind::Totals,
        MessKind::Footnote,
        MessKind::SecondTable,
        MessKind::HeaderRows,
        MessKind::OneRow,
        MessKind::MixedEndings,
        MessKind::NoFinalNewline,
        MessKind::NullSpelling,
        MessKind::ShortRow,
        MessKind::MissingDelimiter,
        MessKind::SurplusEnd,
        MessKind::SurplusInside,
        MessKind::StrayQuote,
        MessKind::ExtraQuote,
        MessKind::UnclosedQuote,
        MessKind::OtherDelimiter,
        MessKind::BrokenBytes,
        MessKind::NulBytes,
        MessKind::BeyondMending,
    ];

    /// Only mending gives the table back.
    pub(super) fn wants_lenient(self) -> bool {
        self >= MessKind::ShortRow
    }

    /// Pollutes the draft; `false` if it cannot be polluted in this way.
    pub(super) fn pollute(self, draft: &mut Draft, rng: &mut Rng) -> bool {
        match self {
            MessKind::Clean => true,
            MessKind::Title => title(draft, rng),
            MessKind::Comments => comments(draft, rng),
            MessKind::PaddedPreamble => padded_preamble(draft, rng),
            MessKind::BlankBefore => put_in_front(draft, vec![String::new(); rng.usize(1..4)]),
            MessKind::BlankAfter => put_behind(draft, vec![String::new(); rng.usize(1..6)]),
            MessKind::DelimitersAfter => delimiters_after(draft, rng),
            MessKind::Totals => totals(draft),
            MessKind::Footnote => footnote(draft, rng),
            MessKind::SecondTable => second_table(draft, rng),
            MessKind::HeaderRows => header_rows(draft, rng),
            MessKind::OneRow => one_row(draft),
            MessKind::MixedEndings => mixed_endings(draft, rng),
            MessKind::NoFinalNewline => {
                draft.final_newline = false;
                true
            }
            MessKind::NullSpelling => null_spelling(draft, rng),
            MessKind::ShortRow => short_row(draft, rng),
            MessKind::MissingDelimiter => missing_delimiter(draft, rng),
            MessKind::SurplusEnd => surplus_end(draft, rng),
            MessKind::SurplusInside => surplus_inside(draft, rng),
            MessKind::StrayQuote => stray_quote(draft, rng),
            MessKind::ExtraQuote => extra_quote(draft, rng),
            MessKind::UnclosedQuote => unclosed_quote(draft, rng),
            MessKind::OtherDelimiter => other_delimiter(draft, rng),
            MessKind::BrokenBytes => broken_bytes(draft, rng),
            MessKind::NulBytes => nul_bytes(draft, rng),
            MessKind::BeyondMending => beyond_mending(draft, rng),
        }
    }
}

fn put_in_front(draft: &mut Draft, lines: Vec<String>) -> bool {
    draft.first_row += lines.len();
    draft.lines.splice(0..0, lines);
    draft.clean.width() > 1
}

fn put_behind(draft: &mut Draft, lines: Vec<String>) -> bool {
    draft.lines.extend(lines);
    true
}

fn title(draft: &mut Draft, rng: &mut Rng) -> bool {
    let title =
        pick(rng, &["Survey of the northern plots", "Stock list", "Readings, 2nd quarter", "Table 4"]);
    let title = draft.drawn.field(Some(title), Kind::Word);
    let mut lines = vec![title];
    lines.extend(percent(rng, 50).then(String::new));
    draft.drawn.delimiter != " " && put_in_front(draft, lines)
}

fn comments(draft: &mut Draft, rng: &mut Rng) -> bool {
    let mark = pick(rng, &["#", "%", "//"]);
    let texts = ["exported from the register", "units: cm, mm and m", "", "checked"];
    let lines = (0..rng.usize(1..4)).map(|_| format!("{mark} {}", pick(rng, &texts)).trim_end().to_owned());
    let lines = lines.collect();
    put_in_front(draft, lines)
}

fn padded_preamble(draft: &mut Draft, rng: &mut Rng) -> bool {
    if draft.clean.width() < 4 || draft.drawn.delimiter == " " {
        return false;
    }
    let pairs = [("Register", "north"), ("Version", "3"), ("Printed", "2024-05-06"), ("Checked", "yes")];
    let padding = draft.drawn.delimiter.repeat(draft.clean.width() - 2);
    let first = rng.usize(..pairs.len());
    let pairs = pairs.iter().cycle().skip(first).take(rng.usize(1..4));
    let lines = pairs.map(|(name, value)| format!("{name}{}{value}{padding}", draft.drawn.delimiter));
    let lines = lines.collect();
    put_in_front(draft, lines)
}

fn delimiters_after(draft: &mut Draft, rng: &mut Rng) -> bool {
    let (width, count) = (draft.clean.width(), rng.usize(1..5));
    if draft.drawn.delimiter.trim() != draft.drawn.delimiter {
        return false;
    }
    let line = draft.drawn.delimiter.repeat(width - 1);
    draft.clean.rows.extend(vec![vec![None; width]; count]);
    put_behind(draft, vec![line; count])
}

fn totals(draft: &mut Draft) -> bool {
    let kinds = &draft.clean.kinds;
    if kinds[0].is_number() || !kinds.iter().any(|kind| kind.is_number()) || draft.drawn.delimiter == " " {
        return false;
    }
    let field = |(no, kind): (usize, &Kind)| match kind {
        _ if no == 0 => "Total".to_owned(),
        Kind::Number => "98231".to_owned(),
        Kind::Fraction => "7312.55".to_owned(),
        _ => String::new(),
    };
    let fields: Vec<String> = kinds.iter().enumerate().map(field).collect();
    let line = fields.join(draft.drawn.delimiter);
    put_behind(draft, vec![line])
}

fn footnote(draft: &mut Draft, rng: &mut Rng) -> bool {
    let notes =
        ["Source: register of plots", "* estimated", "(end of list)", "Note: readings of spring and summer"];
    let mut lines: Vec<String> = percent(rng, 60).then(String::new).into_iter().collect();
    lines.push(pick(rng, &notes).to_owned());
    draft.drawn.delimiter != " " && put_behind(draft, lines)
}

fn second_table(draft: &mut Draft, rng: &mut Rng) -> bool {
    let mut other = Clean::draw(rng);
    other.rows.truncate(draft.clean.rows.len());
    if other.width() == draft.clean.width() || !draft.drawn.header || draft.drawn.delimiter == " " {
        return false;
    }
    draft.drawn.adapt(&mut other, rng);
    let mut lines = vec![String::new(), draft.drawn.header_line(&other.names)];
    lines.extend((0..other.rows.len()).map(|no| draft.drawn.record(&other, no)));
    put_behind(draft, lines)
}

fn header_rows(draft: &mut Draft, rng: &mut Rng) -> bool {
    if !draft.drawn.header || draft.clean.kinds.iter().filter(|kind| !kind.is_text()).count() < 2 {
        return false;
    }
    let unit = |rng: &mut Rng, kind: &Kind| match kind {
        Kind::Number => pick(rng, &["mm", "pieces", "cm"]),
        Kind::Fraction => pick(rng, &["m", "mg/l", "percent"]),
        Kind::Day | Kind::Time | Kind::Moment => pick(rng, &["local", "utc"]),
        Kind::Truth => "or not",
        _ => pick(rng, &["text", "name", "words"]),
    };
    let mut units: Vec<String> = draft.clean.kinds.iter().map(|kind| unit(rng, kind).to_owned()).collect();
    if draft.drawn.delimiter == " " {
        units.iter_mut().for_each(|unit| *unit = unit.replace(' ', "_"));
    }
    let line = draft.drawn.header_line(&units);
    draft.lines.insert(1, line);
    draft.first_row += 1;
    for (name, unit) in draft.clean.names.iter_mut().zip(&units) {
        *name = format!("{name} {unit}");
    }
    true
}

fn one_row(draft: &mut Draft) -> bool {
    draft.clean.rows.truncate(1);
    draft.lines.truncate(draft.first_row + 1);
    draft.drawn.header && draft.drawn.is_plain()
}

fn mixed_endings(draft: &mut Draft, rng: &mut Rng) -> bool {
    let both = [["\n", "\r\n"], ["\n", "\r"], ["\r\n", "\n"]][rng.usize(..3)];
    let share = *pick(rng, &[&3, &20, &50]);
    let mut endings: Vec<&'static str> =
        draft.lines.iter().map(|_| if percent(rng, share) { both[1] } else { both[0] }).collect();
    let (one, other) = (rng.usize(..endings.len()), rng.usize(..endings.len()));
    (endings[one], endings[other]) = (both[0], both[1]);
    draft.endings = Some(endings);
    one != other && !draft.lines.iter().any(|line| line.contains(['\n', '\r']))
}

fn null_spelling(draft: &mut Draft, rng: &mut Rng) -> bool {
    draft.drawn.null = pick(rng, &["NA", "n/a", "NULL", "null", "-", "N/A", "\\N", "None"]);
    let is_number = |no: usize| draft.clean.kinds[no].is_number();
    let gaps = (0..draft.clean.width()).filter(|no| is_number(*no));
    let gaps = gaps.flat_map(|no| draft.clean.rows.iter().map(move |row| row[no].is_none()));
    if gaps.filter(|gap| *gap).count() < 2 {
        return false;
    }
    (0..draft.clean.rows.len()).for_each(|no| draft.rewrite(no));
    true
}

/// Any row of the table, mostly not the first.
fn row(draft: &Draft, rng: &mut Rng) -> usize {
    rng.usize(..draft.clean.rows.len())
}

fn short_row(draft: &mut Draft, rng: &mut Rng) -> bool {
    let no = row(draft, rng);
    let kept = rng.usize(1..draft.clean.width());
    let fields = draft.drawn.fields(&draft.clean, no);
    draft.lines[draft.first_row + no] = fields[..kept].join(draft.drawn.delimiter);
    draft.clean.rows[no][kept..].fill(None);
    // What is left must not look like a note or a blank line.
    let at_end = no + 1 == draft.clean.rows.len();
    draft.clean.rows[no].iter().flatten().count() >= if at_end { 2 } else { 1 }
        && draft.drawn.delimiter != " "
}

/// The fields behind move to the front, and NULL stands at the end: nothing says where the border was.
fn missing_delimiter(draft: &mut Draft, rng: &mut Rng) -> bool {
    let no = row(draft, rng);
    let mut fields = draft.drawn.fields(&draft.clean, no);
    let values = &mut draft.clean.rows[no];
    let at = rng.usize(..fields.len() - 1);
    let second = fields.remove(at + 1);
    fields[at] += &second;
    let (Some(first), Some(second)) = (values[at].clone(), values.remove(at + 1)) else { return false };
    values[at] = Some(first.clone() + &second);
    values.push(None);
    let joined = first + &second;
    let plain = draft.drawn.quote.is_none_or(|quote| !fields[at].contains(quote));
    draft.lines[draft.first_row + no] = fields.join(draft.drawn.delimiter);
    plain && !joined.contains(' ') && fields.len() > 1 && no > 0 && no + 1 < draft.clean.rows.len()
}

fn surplus_end(draft: &mut Draft, rng: &mut Rng) -> bool {
    let no = row(draft, rng);
    let surplus = draft.drawn.delimiter.repeat(rng.usize(1..4));
    draft.lines[draft.first_row + no] += &surplus;
    draft.drawn.delimiter.trim() == draft.drawn.delimiter
}

fn surplus_inside(draft: &mut Draft, rng: &mut Rng) -> bool {
    let no = row(draft, rng);
    let mut fields = draft.drawn.fields(&draft.clean, no);
    fields.insert(rng.usize(..fields.len()), String::new());
    draft.lines[draft.first_row + no] = fields.join(draft.drawn.delimiter);
    let full = draft.clean.rows[no].iter().all(Option::is_some);
    full && draft.drawn.delimiter.trim() == draft.drawn.delimiter
}

/// A row, a column of plain text in it, and a place between two letters.
fn inside_text(draft: &Draft, rng: &mut Rng) -> Option<(usize, usize, usize)> {
    let no = row(draft, rng);
    let column = rng.usize(..draft.clean.width());
    let value = draft.clean.rows[no][column].as_deref()?;
    let plain = |character: char| character.is_alphanumeric() || character == ' ';
    if !draft.clean.kinds[column].is_text() || !value.chars().all(plain) {
        return None;
    }
    let letters: Vec<usize> = value.char_indices().map(|(at, _)| at).collect();
    let between = |at: &usize| {
        let (front, back) = value.split_at(*at);
        front.ends_with(char::is_alphabetic) && back.starts_with(char::is_alphabetic)
    };
    let places: Vec<usize> = letters.into_iter().filter(between).collect();
    (!places.is_empty()).then(|| (no, column, places[rng.usize(..places.len())]))
}

/// Writes row `no` with `written` in the place of the value that becomes `value`.
fn put(draft: &mut Draft, no: usize, column: usize, value: String, written: String) {
    let mut fields = draft.drawn.fields(&draft.clean, no);
    fields[column] = written;
    draft.lines[draft.first_row + no] = fields.join(draft.drawn.delimiter);
    draft.clean.rows[no][column] = Some(value);
}

/// Puts `piece` between two letters as it is, and `value` into the table.
fn insert(draft: &mut Draft, rng: &mut Rng, piece: &str, value: &str) -> bool {
    let Some((no, column, at)) = inside_text(draft, rng) else { return false };
    let old = draft.clean.rows[no][column].clone().unwrap_or_default();
    let written = draft.drawn.field(Some(&old), draft.clean.kinds[column]);
    let shift = usize::from(written.len() > old.len());
    let (front, back) = written.split_at(at + shift);
    let written = format!("{front}{piece}{back}");
    let value = format!("{}{value}{}", &old[..at], &old[at..]);
    put(draft, no, column, value, written);
    true
}

fn stray_quote(draft: &mut Draft, rng: &mut Rng) -> bool {
    let Some(quote) = draft.drawn.quote else { return false };
    let quote = quote.to_string();
    // Quotes elsewhere say that this is one.
    let others = draft.lines.iter().filter(|line| line.contains(&quote)).count();
    others >= 2 && insert(draft, rng, &quote, &quote)
}

fn extra_quote(draft: &mut Draft, rng: &mut Rng) -> bool {
    let (Some(quote), Some((no, column, _))) = (draft.drawn.quote, inside_text(draft, rng)) else {
        return false;
    };
    let others = draft.lines.iter().filter(|line| line.contains(quote)).count();
    let old = draft.clean.rows[no][column].clone().unwrap_or_default();
    let written = draft.drawn.field(Some(&old), draft.clean.kinds[column]);
    let is_quoted = written.len() > old.len();
    let (value, written) = match is_quoted && rng.bool() {
        true => (format!("{quote}{old}"), format!("{quote}{written}")),
        false => (format!("{old}{quote}"), format!("{written}{quote}")),
    };
    put(draft, no, column, value, written);
    others >= 2 && !draft.drawn.delimiter.contains(' ')
}

fn unclosed_quote(draft: &mut Draft, rng: &mut Rng) -> bool {
    let (Some(quote), Some((no, column, _))) = (draft.drawn.quote, inside_text(draft, rng)) else {
        return false;
    };
    let others = draft.lines.iter().filter(|line| line.contains(quote)).count();
    let old = draft.clean.rows[no][column].clone().unwrap_or_default();
    let open = format!("{quote}{old}");
    put(draft, no, column, open.clone(), open);
    others >= 2 && !draft.drawn.delimiter.contains(' ')
}

fn other_delimiter(draft: &mut Draft, rng: &mut Rng) -> bool {
    let no = row(draft, rng);
    let other = pick(rng, &[",", ";", "\t", "|"]);
    let mut fields = draft.drawn.fields(&draft.clean, no);
    let values = draft.clean.rows[no].iter().flatten();
    let clash = values.clone().any(|value| value.contains(other) || value.contains(draft.drawn.delimiter));
    let full = draft.clean.rows[no].iter().all(Option::is_some);
    if clash || !full || draft.drawn.delimiter.contains(other) || draft.drawn.delimiter.contains(' ') {
        return false;
    }
    draft.lines[draft.first_row + no] = std::mem::take(&mut fields).join(other);
    true
}

fn broken_bytes(draft: &mut Draft, rng: &mut Rng) -> bool {
    let broken = format!("{BROKEN}{}", rng.u8(..4));
    draft.drawn.is_utf8() && draft.clean.has_accents(6) && insert(draft, rng, &broken, "\u{fffd}")
}

fn nul_bytes(draft: &mut Draft, rng: &mut Rng) -> bool {
    let nuls = "\0".repeat(rng.usize(1..4));
    draft.drawn.is_utf8() && insert(draft, rng, &nuls, "")
}

fn beyond_mending(draft: &mut Draft, rng: &mut Rng) -> bool {
    let no = row(draft, rng);
    let more: Vec<String> = (0..rng.usize(2..5)).map(|at| format!("more{at}")).collect();
    let delimiter = draft.drawn.delimiter;
    let line = draft.first_row + no;
    draft.lines[line] = format!("{}{delimiter}{}", draft.lines[line], more.join(delimiter));
    draft.clean.rows.remove(no);
    draft.left_out = 1;
    // The last record could be taken for the beginning of something else.
    no < draft.clean.rows.len() && draft.clean.width() > 2
}
