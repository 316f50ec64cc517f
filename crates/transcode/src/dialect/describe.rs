//! What was found, in words: one line for the load, several for the plan.

use super::cell_types::{Class, Kind};
use super::header::Nameless;
use super::score::Score;
use super::table::{Line, agreement};
use super::{Finding, HEADER_OPTION, Unsure};
use howdah_model::{Dialect, Eol, Escape, counted, plural, show_count};

impl Finding {
    /// The one line that is printed, for example
    /// `csv, delimiter ';', quote '"', CRLF, WIN1252, header in record 3 after 2 title lines (97 %)`.
    pub fn describe(&self) -> String {
        if self.width == 0 {
            return "no records".to_owned();
        }
        let mut parts = vec![dialect(&self.dialect, self.width), self.encoding.name.clone()];
        parts.push(match (self.header_rows, self.preamble_records) {
            (0, 0) => "no header".to_owned(),
            (0, before) => format!("no header, data from record {}", before + 1),
            (1, before) => format!("header in record {}", before + 1),
            (rows, before) => format!("header in records {} to {}", before + 1, before + u64::from(rows)),
        });
        if self.preamble_records > 0
            && let Some(last) = parts.last_mut()
        {
            last.push_str(&format!(" after {}", counted(&show_count(self.preamble_records), "title line")));
        }
        if self.footer_records > 0 {
            parts.push(format!("without the last {}", counted(&show_count(self.footer_records), "record")));
        }
        if self.second_table.is_some() {
            parts.push("the first of several tables".to_owned());
        }
        let percent = (self.probability * 100.0).floor().clamp(1.0, 99.0);
        format!("{} ({percent} %)", parts.join(", "))
    }
}

/// What the records of the sample have in common.
pub(super) fn records(score: &Score) -> String {
    let (regular, records) = (score.regular as u64, score.records as u64);
    format!(
        "{} of {} in the sample {} {}; {} of the columns {} numbers, days or the like",
        show_count(regular),
        counted(&show_count(records), "record"),
        plural(regular, "has", "have"),
        counted(score.width, "field"),
        score.typed_columns,
        plural(score.typed_columns, "holds", "hold")
    )
}

/// Nothing tells fields apart where no record is whole. Whoever has told the delimiter may know where records
/// end.
pub(super) fn no_record(head_bytes: usize, knows_delimiter: bool) -> Unsure {
    let bytes = show_count(head_bytes as u64);
    let what =
        format!("the first record does not end within {bytes} bytes, so that its fields are not found");
    Unsure { what, option: if knows_delimiter { "--eol" } else { "--delimiter" } }
}

/// The header has fewer names than records have fields.
pub(super) fn nameless(nameless: Nameless) -> Option<Unsure> {
    let what = match nameless {
        Nameless::Nothing => return None,
        Nameless::First => {
            "the header has one name less than records have fields: the first field is taken to have none"
        }
        Nameless::Unknown | Nameless::OrCutDecimals => {
            "the header has fewer names than records have fields: the last ones are taken to have none"
        }
    };
    Some(Unsure { what: what.to_owned(), option: "--columns" })
}

/// The first record was taken for one, and has text in half of the columns of numbers, days or the like, and
/// more.
pub(super) fn odd_first(kinds: &[Kind], classes: &[Option<Class>]) -> Option<Unsure> {
    let (same, text) = agreement(kinds, classes);
    let what = "the first record has text where others have numbers, days or the like, and may be a header";
    (text > 0 && text >= same).then(|| Unsure { what: what.to_owned(), option: HEADER_OPTION })
}

/// Records of the table's width before its first one, in which all fields are empty.
pub(super) fn empty_first(lines: &[Line], width: usize) -> Option<Unsure> {
    let empty = lines.iter().filter(|line| line.is_blank() && line.width == width).count() as u64;
    let (records, are) = (counted(&show_count(empty), "record"), plural(empty, "is", "are"));
    let what = format!("{records} of empty fields before the others {are} taken for none");
    (empty > 0).then_some(Unsure { what, option: "--format csv" })
}

pub(super) fn second_table(byte: u64) -> String {
    format!("a second table begins at byte {byte}")
}

/// A dialect in words, without the encoding.
pub(super) fn dialect(dialect: &Dialect, width: usize) -> String {
    let text = dialect.quote.is_none() && dialect.escape == Escape::Backslash;
    let mut parts = vec![if text { "text" } else { "csv" }.to_owned()];
    parts.push(match dialect.delimiter.as_str() {
        delimiter if width == 1 || delimiter.is_empty() => "one column".to_owned(),
        delimiter if dialect.repeats => format!("delimiter {} repeated", visible(delimiter)),
        delimiter => format!("delimiter {}", visible(delimiter)),
    });
    if dialect.trim {
        parts.push("blanks around fields dropped".to_owned());
    }
    match (dialect.quote, dialect.escape) {
        (None, Escape::Backslash) => {}
        (None, _) => parts.push("no quotes".to_owned()),
        (Some(quote), escape) => {
            let escape = match escape {
                Escape::Doubled => "",
                Escape::Backslash => " escaped by backslash",
                Escape::None => " never escaped",
            };
            parts.push(format!("quote {}{escape}", visible(&char::from(quote).to_string())));
        }
    }
    parts.push(eol(dialect.eol).to_owned());
    if dialect.nulls != [""] {
        let nulls: Vec<String> = dialect.nulls.iter().map(|null| format!("\"{null}\"")).collect();
        parts.push(format!("NULL {}", nulls.join(" or ")));
    }
    if let Some(comment) = &dialect.comment {
        parts.push(format!("comments {}", visible(comment)));
    }
    parts.join(", ")
}

fn eol(eol: Option<Eol>) -> &'static str {
    match eol {
        Some(Eol::Lf) => "LF",
        Some(Eol::CrLf) => "CRLF",
        Some(Eol::Cr) => "CR",
        None => "mixed line endings",
    }
}

/// As it would be typed, control characters as `\x1f`.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// The dialect behind the chosen one, and its chance. How it spells NULL was not looked for.
pub(super) fn next_best(other: &Dialect, chance: f64) -> String {
    let other = Dialect { nulls: vec![String::new()], ..other.clone() };
    format!("next best: {} ({:.0} %)", dialect(&other, 0), chance * 100.0)
}

/// They mean the same, spellings of NULL aside: no quote is doubled where there are none.
pub(super) fn read_alike(one: &Dialect, other: &Dialect) -> bool {
    let meant = |dialect: &Dialect| {
        let escape = match (dialect.quote, dialect.escape) {
            (None, Escape::Doubled) => Escape::None,
            (_, escape) => escape,
        };
        Dialect { escape, nulls: Vec::new(), ..dialect.clone() }
    };
    meant(one) == meant(other)
}

/// What speaks against the choice between two dialects, and the option that settles it.
pub(super) fn unsure(chosen: &Dialect, other: &Dialect) -> Unsure {
    let (what, option) = if other.delimiter.is_empty() {
        ("a record may be one field as well".to_owned(), "--delimiter")
    } else if chosen.delimiter != other.delimiter {
        (format!("{} may be the delimiter as well", visible(&other.delimiter)), "--delimiter")
    } else if other.quote.is_none() && other.escape == Escape::Backslash {
        ("backslashes may escape delimiters, as in COPY's text format".to_owned(), "--format text")
    } else if chosen.quote.is_none() && chosen.escape == Escape::Backslash {
        ("backslashes before delimiters may be data".to_owned(), "--format csv")
    } else if chosen.quote != other.quote {
        let quote = other.quote.map_or("none".to_owned(), |quote| visible(&char::from(quote).to_string()));
        (format!("the quote may be {quote} as well"), "--quote")
    } else if chosen.trim != other.trim {
        let what = if chosen.trim { "be part of them" } else { "mean nothing" };
        (format!("blanks around fields may {what}"), "--format csv, which keeps them,")
    } else if chosen.repeats != other.repeats {
        ("delimiters in a row may have empty fields between them".to_owned(), "--format csv")
    } else {
        ("another escape explains the quotes almost as well".to_owned(), "--escape")
    };
    Unsure { what, option }
}
