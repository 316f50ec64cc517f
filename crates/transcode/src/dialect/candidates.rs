//! The dialects worth scoring: combinations of the delimiters, quotes and escapes that the sample holds.

use super::Given;
use super::windows::Window;
use howdah_model::{Dialect, Eol, Escape};
use std::collections::BTreeMap;

/// A dialect, and how much must speak for it before it is believed.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) dialect: Dialect,
    /// Halvings of its odds before any data is seen: commas are common, colons mostly belong to times.
    pub(super) doubt: f64,
    /// Text is full of it: believed only together with typed cells or in wide records.
    pub(super) weak: bool,
}

/// Delimiters of one character, with their doubts.
const SINGLE: [(&str, f64); 23] = [
    (",", 0.0),
    ("\t", 0.0),
    (";", 0.0),
    ("|", 0.0),
    ("\x1f", 0.0),
    ("\x1e", 0.0),
    ("\x1c", 0.0),
    ("\x1d", 0.0),
    ("\x01", 0.0),
    ("\x02", 0.0),
    ("^", 0.5),
    ("~", 0.5),
    ("¦", 0.5),
    ("§", 0.5),
    ("¬", 0.5),
    ("│", 0.5),
    (":", 2.0),
    (" ", 2.0),
    ("#", 4.0),
    ("&", 4.0),
    ("*", 4.0),
    ("!", 4.0),
    ("=", 4.0),
];

/// Those that dates, words and paths have inside: they are looked at only where a table has told how many
/// fields there are.
const OF_KNOWN_WIDTH: [(&str, f64); 2] = [("-", 4.0), ("/", 4.0)];

/// From this doubt on, text is full of a delimiter.
const WEAK_DOUBT: f64 = 2.0;

/// Text is full of this delimiter.
pub(super) fn is_usual_in_text(delimiter: &str) -> bool {
    let sign = match delimiter.trim_end_matches(' ') {
        "" if !delimiter.is_empty() => " ",
        sign => sign,
    };
    SINGLE.iter().any(|(single, doubt)| *single == sign && *doubt >= WEAK_DOUBT)
}

/// What may stand in a delimiter of several characters.
const PUNCTUATION: &[u8] = b"|:;~^#$&*!@%=<>+-_,\x01\x02\x1c\x1d\x1e\x1f";

/// Delimiters of several characters that are looked at, the most frequent ones.
const LONG_DELIMITERS_MAX: usize = 3;

/// What the sample holds, counted once for all candidates.
struct Contents {
    lines: usize,
    counts: [usize; 256],
    /// Quotes that open fields, perhaps.
    quotes: Vec<u8>,
    any_quote: bool,
    long: Vec<String>,
}

/// All candidates, the plainest first: of equals the first one wins.
pub(super) fn candidates(windows: &[Window], given: &Given, eol: Option<Eol>) -> Vec<Candidate> {
    let contents = Contents::new(windows);
    let mut all = Vec::new();
    let is_column = given.delimiter.is_none() && is_drawn_column(windows);
    let delimiters = match is_column {
        true => vec![(String::new(), 0.0, false)],
        false => delimiters(windows, &contents, given),
    };
    for (delimiter, doubt, weak) in delimiters {
        // A table that has told how many fields there are may be one of tabs that line up.
        let tabs_repeat = delimiter == "\t"
            && are_runs_usual(windows, b"\t\t")
            && (given.width.is_some() || !are_fields_between_tabs(windows));
        for (quote, escape, further) in quotes(windows, &contents, given, &delimiter) {
            let dialect = Dialect {
                delimiter: delimiter.clone(),
                quote,
                escape,
                eol,
                // COPY's text format would read `\N` as a letter.
                nulls: vec!["\\N".to_owned()],
                ..Dialect::csv()
            };
            let dialect = Dialect { trim: is_column, ..dialect };
            let plain = Candidate { dialect, doubt: doubt + further, weak };
            let variants = with_blanks(windows, &plain, tabs_repeat);
            all.push(plain);
            all.extend(variants);
        }
    }
    all.sort_by(|a, b| a.doubt.total_cmp(&b.doubt));
    all
}

/// Lines of a drawn column that are looked at.
const DRAWN_LINES: usize = 60;

/// psql has drawn one column: a line of one stroke below its name, which reaches beyond all values, and a
/// blank before each of these.
fn is_drawn_column(windows: &[Window]) -> bool {
    let Some(head) = windows.first().filter(|window| !window.begins_inside) else { return false };
    let mut lines = head.text[head.from..].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let (Some(name), Some(stroke)) = (lines.next(), lines.next()) else { return false };
    let is_stroke = stroke.len() > 2 && stroke.iter().all(|byte| *byte == b'-');
    // Of characters beyond ASCII the bytes say little.
    let is_above_stroke = |line: &[u8]| line.len() < stroke.len() || !line.is_ascii();
    let is_value = |line: &[u8]| match line.first() {
        None | Some(b'(') => true,
        first => first == Some(&b' ') && is_above_stroke(line),
    };
    name.starts_with(b" ") && is_above_stroke(name) && is_stroke && lines.take(DRAWN_LINES).all(is_value)
}

fn delimiters(windows: &[Window], contents: &Contents, given: &Given) -> Vec<(String, f64, bool)> {
    if let Some(delimiter) = &given.delimiter {
        return vec![(delimiter.clone(), 0.0, false)];
    }
    let frequent = |delimiter: &str| match delimiter.as_bytes() {
        [byte] => contents.counts[usize::from(*byte)],
        bytes => windows.iter().map(|window| memchr::memmem::find_iter(&window.text, bytes).count()).sum(),
    };
    // Records may hold many lines, but few hold more than twenty without quotes.
    let found = |delimiter: &str| {
        let frequent = frequent(delimiter);
        frequent > 0 && (frequent * 20 >= contents.lines || beside_quote(windows, contents, delimiter))
    };
    // Few files have one column.
    let mut all = vec![(String::new(), 1.5, false)];
    let known = given.width.map(|_| OF_KNOWN_WIDTH).into_iter().flatten();
    for (delimiter, doubt) in SINGLE.into_iter().chain(known) {
        if found(delimiter) {
            let is_told_by_table = given.width.is_some() && matches!(delimiter, ":" | "-" | "/");
            all.push((delimiter.to_owned(), doubt, doubt >= WEAK_DOUBT && !is_told_by_table));
        }
    }
    for delimiter in &contents.long {
        all.push((delimiter.clone(), 0.5, false));
    }
    for pair in [", ", "; ", "| ", ": "] {
        let (alone, with_blank) = (frequent(&pair[..1]), frequent(pair));
        if with_blank * 20 >= contents.lines && with_blank * 10 >= alone * 7 && with_blank > 0 {
            all.push((pair.to_owned(), if pair == ": " { 2.5 } else { 0.5 }, pair == ": "));
        }
    }
    all
}

/// A field in quotes may begin behind the delimiter, or end before it; or it begins a record whose end is not
/// there, and the delimiter stands in the line above.
fn beside_quote(windows: &[Window], contents: &Contents, delimiter: &str) -> bool {
    let delimiter = delimiter.as_bytes();
    let holds = |text: &[u8], bytes: &[u8]| memchr::memmem::find(text, bytes).is_some();
    let any_holds = |bytes: &[u8]| windows.iter().any(|window| holds(&window.text, bytes));
    let first_line = || {
        let head = windows.first().filter(|window| !window.begins_inside)?;
        head.text[head.from..].split(|byte| matches!(byte, b'\n' | b'\r')).next()
    };
    contents.quotes.iter().any(|quote| {
        any_holds(&[delimiter, &[*quote]].concat())
            || any_holds(&[&[*quote], delimiter].concat())
            || any_holds(&[b'\n', *quote]) && first_line().is_some_and(|line| holds(line, delimiter))
    })
}

/// The same dialect where blanks around delimiters mean nothing, if there are many.
fn with_blanks(windows: &[Window], plain: &Candidate, tabs_repeat: bool) -> Vec<Candidate> {
    let delimiter = plain.dialect.delimiter.as_bytes();
    let variant = |doubt, change: fn(&mut Dialect)| {
        let mut dialect = plain.dialect.clone();
        change(&mut dialect);
        Candidate { dialect, doubt: plain.doubt + doubt, weak: plain.weak }
    };
    match delimiter {
        b" " => {
            let wide = variant(-0.5, |dialect| {
                dialect.delimiter = "  ".to_owned();
                (dialect.repeats, dialect.trim) = (true, true);
            });
            let wide = Candidate { weak: false, ..wide };
            if are_runs_usual(windows, b"  ") {
                vec![variant(0.0, |dialect| dialect.repeats = true), wide]
            } else {
                Vec::new()
            }
        }
        b"\t" if tabs_repeat => vec![variant(2.0, |dialect| dialect.repeats = true)],
        [byte] if plain.doubt < 4.0 && blanks_around(windows, *byte, plain.dialect.quote) => {
            vec![variant(1.0, |dialect| dialect.trim = true)]
        }
        _ => Vec::new(),
    }
}

/// Two delimiters in a row, in a third of the lines.
fn are_runs_usual(windows: &[Window], run: &[u8]) -> bool {
    let (mut lines, mut with_run) = (0usize, 0usize);
    for window in windows {
        for line in window.text[window.from..].split(|byte| matches!(byte, b'\n' | b'\r')) {
            lines += usize::from(!line.is_empty());
            with_run += usize::from(memchr::memmem::find(line, run).is_some());
        }
    }
    with_run * 3 >= lines && with_run > 0
}

/// Of so many lines one may have another number of tabs where the others have as many.
const LINES_WITH_ODD_ONE: usize = 10;

/// Tabs in a row have empty fields between them: lines that are lined up by tabs have as many as their values
/// are short, so that it is not so where nearly all have as many. It is so again where no tab stands alone,
/// or where names would be missing above the empty fields: the first line has words alone, and tabs in a row.
fn are_fields_between_tabs(windows: &[Window]) -> bool {
    let (mut by_count, mut lines, mut lone) = (BTreeMap::<usize, usize>::new(), 0usize, false);
    let mut names_are_missing = None;
    for window in windows {
        for line in window.text[window.from..].split(|byte| matches!(byte, b'\n' | b'\r')) {
            let gaps = || line.split(|byte| *byte != b'\t').map(<[u8]>::len).filter(|tabs| *tabs > 0);
            let tabs: usize = gaps().sum();
            if tabs == 0 {
                continue;
            }
            *by_count.entry(tabs).or_default() += 1;
            lines += 1;
            lone |= gaps().any(|tabs| tabs == 1) || gaps().count() == 1;
            names_are_missing
                .get_or_insert(gaps().any(|tabs| tabs > 1) && !line.iter().any(u8::is_ascii_digit));
        }
    }
    let usual = by_count.into_values().max().unwrap_or(0);
    let are_even = (lines - usual) * LINES_WITH_ODD_ONE <= lines;
    are_even && lone && names_are_missing == Some(false)
}

/// Fewer records, a header among them, do not show that all columns are aligned, or some.
const ALIGNED_RECORDS_MIN: usize = 3;
const PADDED_RECORDS_MIN: usize = 6;

/// How often the fields of a column have blanks at their ends.
#[derive(Clone, Copy, Default)]
struct Blanks {
    fields: usize,
    before: usize,
    behind: usize,
    either: usize,
}

/// Blanks stand beside the delimiters of every column: in a fourth of its fields, as where columns are
/// aligned, or before nearly all fields but the first of a line, or behind all but the last. Or they fill up
/// nearly all fields of some columns on one side, as of `char(n)`. Where some fields of a column have blanks
/// and others have none, they are part of the values.
fn blanks_around(windows: &[Window], delimiter: u8, quote: Option<u8>) -> bool {
    let mut by_width: BTreeMap<usize, Vec<Blanks>> = BTreeMap::new();
    for window in windows {
        for line in window.text[window.from..].split(|byte| matches!(byte, b'\n' | b'\r')) {
            let mut quoted = false;
            let fields: Vec<&[u8]> = line
                .split(|byte| {
                    quoted ^= Some(*byte) == quote;
                    *byte == delimiter && !quoted
                })
                .collect();
            let columns =
                by_width.entry(fields.len()).or_insert_with(|| vec![Blanks::default(); fields.len()]);
            for (blanks, field) in columns.iter_mut().zip(fields).filter(|(_, field)| !field.is_empty()) {
                let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
                let (before, behind) = (is_blank(field.first()), is_blank(field.last()));
                blanks.fields += 1;
                blanks.before += usize::from(before);
                blanks.behind += usize::from(behind);
                blanks.either += usize::from(before || behind);
            }
        }
    }
    by_width.remove(&1);
    let usual =
        by_width.into_values().max_by_key(|columns| columns.iter().map(|one| one.fields).sum::<usize>());
    let filled = usual.into_iter().flatten().filter(|one| one.fields > 0);
    let columns: Vec<Blanks> = filled.collect();
    let ([_, inner @ ..], [front @ .., _]) = (columns.as_slice(), columns.as_slice()) else { return false };
    let nearly_all = |some: usize, one: &Blanks| some * 10 >= one.fields * 9;
    let blanks: usize = columns.iter().map(|one| one.either).sum();
    let delimiters: usize = inner.iter().map(|one| one.fields).sum();
    // Of a few records any blank is a good part.
    let records = columns.iter().map(|one| one.fields).max().unwrap_or(0);
    // What fills fields up stands on one side of them.
    let is_even = |one: &Blanks| {
        one.either * 10 <= one.fields || nearly_all(one.before, one) || nearly_all(one.behind, one)
    };
    !inner.is_empty()
        && (records >= ALIGNED_RECORDS_MIN && columns.iter().all(|one| one.either * 4 >= one.fields)
            || inner.iter().all(|one| nearly_all(one.before, one))
            || front.len() > 1 && front.iter().all(|one| nearly_all(one.behind, one))
            || records >= PADDED_RECORDS_MIN && blanks * 4 >= delimiters && columns.iter().all(is_even))
}

/// Quote, escape, and the doubt they add.
fn quotes(
    windows: &[Window],
    contents: &Contents,
    given: &Given,
    delimiter: &str,
) -> Vec<(Option<u8>, Escape, f64)> {
    let quotes: Vec<Option<u8>> = match given.quote {
        Some(quote) => vec![quote],
        None if !contents.any_quote => vec![Some(b'"')],
        None => contents.quotes.iter().copied().map(Some).chain([None]).collect(),
    };
    let holds =
        |sequence: &[u8]| windows.iter().any(|window| memchr::memmem::find(&window.text, sequence).is_some());
    let mut all = Vec::new();
    for quote in quotes {
        let rare = if quote == Some(b'\'') { 1.0 } else { 0.0 };
        if let Some(escape) = given.escape {
            all.push((quote, escape, rare));
            continue;
        }
        match quote {
            Some(byte) => {
                all.push((quote, Escape::Doubled, rare));
                if holds(&[b'\\', byte]) {
                    all.push((quote, Escape::Backslash, rare + 0.5));
                }
            }
            // One quote astray is no reason to take those of other records for data.
            None => all.push((None, Escape::None, 2.0)),
        }
    }
    let escaped: Vec<u8> = std::iter::once(b'\\').chain(delimiter.bytes()).collect();
    let free = given.quote.is_none_or(|quote| quote.is_none()) && given.escape.is_none();
    if free && !delimiter.is_empty() && holds(&escaped) && backslashes_escape(windows, delimiter) {
        all.push((None, Escape::Backslash, 1.0));
    }
    all
}

impl Contents {
    fn new(windows: &[Window]) -> Contents {
        let mut contents =
            Contents { lines: 1, counts: [0; 256], quotes: Vec::new(), any_quote: false, long: Vec::new() };
        for window in windows {
            for byte in window.text.iter() {
                contents.counts[usize::from(*byte)] += 1;
            }
        }
        let count = |byte: u8| contents.counts[usize::from(byte)];
        contents.lines = count(b'\n').max(count(b'\r')).max(1);
        for quote in [b'"', b'\''] {
            if windows.iter().any(|window| opens_fields(&window.text, quote)) {
                contents.quotes.push(quote);
            }
        }
        contents.any_quote = contents.quotes.contains(&b'\'') || count(b'"') > 0;
        if contents.any_quote && !contents.quotes.contains(&b'"') {
            contents.quotes.insert(0, b'"');
        }
        contents.long = long_delimiters(windows);
        contents
    }
}

/// Backslashes stand before what needs one (delimiters, line endings, backslashes) more often than before
/// letters that mean nothing behind one: not as in paths.
fn backslashes_escape(windows: &[Window], delimiter: &str) -> bool {
    let (mut needed, mut foreign) = (0usize, 0usize);
    for window in windows {
        let text = &window.text[window.from..];
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
            let behind = &text[at + found + 1..];
            match behind.first() {
                Some(b'\\' | b'\n' | b'\r' | b'"' | b'\'') => needed += 1,
                _ if behind.starts_with(delimiter.as_bytes()) => needed += 1,
                Some(b'N' | b'b' | b'f' | b'n' | b'r' | b't' | b'v') => {}
                _ => foreign += 1,
            }
            at += found + 2;
        }
    }
    needed > foreign
}

/// A quote stands where a field may begin: behind something that is neither a letter nor a digit, and
/// before something that is no blank.
fn opens_fields(text: &[u8], quote: u8) -> bool {
    memchr::memchr_iter(quote, text).any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != quote)
    })
}

/// Signs of values at the ends of a run belong to the values: `,$` is a comma before an amount.
fn without_signs(run: &[u8]) -> &[u8] {
    let sign = |byte: &u8| matches!(byte, b'$' | b'%' | b'+' | b'-' | b'@' | b'#' | b'*' | b'_' | b'=');
    if run.iter().all(|byte| run.first() == Some(byte)) {
        return run;
    }
    let from = run.iter().take_while(|byte| sign(byte)).count();
    let to = run.iter().rposition(|byte| !sign(byte)).map_or(from, |last| last + 1);
    &run[from..to]
}

/// Runs of punctuation that half the lines have.
fn long_delimiters(windows: &[Window]) -> Vec<String> {
    let mut found: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut lines = 0;
    for window in windows {
        let later = &window.text[window.from..];
        for line in later.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()).take(60)
        {
            lines += 1;
            let mut runs: Vec<&[u8]> = line
                .split(|byte| !PUNCTUATION.contains(byte))
                .map(without_signs)
                .filter(|run| (2..=5).contains(&run.len()))
                .flat_map(|run| {
                    // An empty field doubles the delimiter.
                    let half = &run[..run.len() / 2];
                    [run, if run.len() == 4 && *half == run[2..] { half } else { run }]
                })
                .collect();
            runs.sort_unstable();
            runs.dedup();
            for run in runs {
                *found.entry(run).or_default() += 1;
            }
        }
    }
    // Commas in a row are empty fields, and beside one of them are signs of values.
    let is_usual = |byte: &&u8| matches!(byte, b',' | b';');
    let of_fields = |run: &[u8]| {
        matches!(run.iter().filter(is_usual).count(), 1) || run.iter().all(|byte| is_usual(&byte))
    };
    let mut found: Vec<(&[u8], usize)> = found
        .into_iter()
        .filter(|(run, count)| count * 2 >= lines && run.len() > 1 && !of_fields(run))
        .collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let text = |(run, _): (&[u8], usize)| String::from_utf8_lossy(run).into_owned();
    found.into_iter().take(LONG_DELIMITERS_MAX).map(text).collect()
}
