//! Candidates in the order of their scores, and what the distances between them say about chance.

use super::Given;
use super::candidates::{candidates, is_usual_in_text};
use super::escapes::escape_delimiters;
use super::long_fields::Proof;
use super::score::{Score, USUAL_DELIMITERS, few_are_marked, score, text_bits};
use super::windows::{Window, Windows};
use howdah_model::{Dialect, Eol, Escape};

/// A dialect with its score.
#[derive(Debug, Clone)]
pub(super) struct Ranked {
    pub(super) dialect: Dialect,
    pub(super) score: Score,
    doubt: f64,
    /// Halvings of the odds: bits and doubt, on one scale.
    halvings: f64,
}

/// All candidates are scored on so much of the head, and half as much of each other place: enough for a few
/// hundred records, and 40 candidates take some 20 ms.
const EXCERPT_BYTES: usize = 24 << 10;

/// Lines that the head's part has at least, however long they are.
const EXCERPT_LINES: usize = 8;

/// The best ones are scored again on everything.
const FINALISTS: usize = 5;

/// All candidates, the best first; never empty. Where long fields prove some, these alone.
pub(super) fn rank(windows: &Windows, given: &Given, eol: Option<Eol>, proofs: &[Proof]) -> Vec<Ranked> {
    let proven = proofs.iter().map(|proof| (&proof.candidate.dialect, proof.candidate.doubt, false));
    let proven = ranked(proven, &everything(windows));
    if !proven.is_empty() {
        return proven;
    }
    let excerpts = excerpts(windows);
    let candidates = candidates(&excerpts, given, eol);
    let seen_bytes = |windows: &[Window]| -> usize { windows.iter().map(|w| w.text.len() - w.from).sum() };
    let all_bytes: usize = windows.all().map(|window| window.text.len() - window.from).sum();
    let mut ranked = ranked(candidates.iter().map(|c| (&c.dialect, c.doubt, c.weak)), &excerpts);
    if seen_bytes(&excerpts) < all_bytes && ranked.len() > 1 {
        ranked.truncate(FINALISTS);
        let finalists: Vec<(Dialect, f64)> = ranked.into_iter().map(|one| (one.dialect, one.doubt)).collect();
        // Nothing is weak any more: what was, has been left behind.
        let finalists = finalists.iter().map(|(dialect, doubt)| (dialect, *doubt, false));
        return self::ranked(finalists, &everything(windows));
    }
    ranked
}

fn everything<'w>(windows: &'w Windows) -> Vec<Window<'w>> {
    windows.all().map(Window::borrow).collect()
}

/// All candidates, by what they make of this part alone.
pub(super) fn rank_part(part: Window, given: &Given, eol: Option<Eol>) -> Vec<Ranked> {
    let part = [part];
    let candidates = candidates(&part, given, eol);
    ranked(candidates.iter().map(|c| (&c.dialect, c.doubt, c.weak)), &part)
}

/// Halvings of the odds of a reading without quotes or with flaws, where one with quotes has none.
const UNPROVEN_DOUBT: f64 = 1000.0;

/// One cell in quotes may be the only one of its column by chance.
const QUOTED_THROUGHOUT_MIN: usize = 2;

impl Ranked {
    /// Quotes are where they may be, and every record has the usual width.
    fn is_right_with_quotes(&self) -> bool {
        let score = &self.score;
        let is_even = score.width > 1 && score.records > 1 && score.regular == score.records;
        self.dialect.quote.is_some() && is_even && score.flawed == 0 && score.quoted > 0
    }

    /// The usual quotes stand nowhere but around fields, as who writes csv uses them: lines inside of a field
    /// may be records by chance, and more of them than there are records.
    fn has_sure_quotes(&self) -> bool {
        let score = &self.score;
        let are_regular =
            score.width > 1 && (score.records - score.regular) * RECORDS_WITH_ODD_ONE <= score.records;
        self.dialect.quote == Some(b'"') && score.flawed == 0 && score.quoted > 0 && are_regular
    }

    /// The delimiter and how many records have the usual width, if double quotes are quotes and none is
    /// astray.
    fn usual_quotes(&self) -> Option<(String, usize)> {
        let is_usual = self.dialect.quote == Some(b'"') && self.score.width > 1 && self.score.flawed == 0;
        is_usual.then(|| (self.dialect.delimiter.clone(), self.score.regular))
    }

    /// Single quotes stand around a value here and there, and none is doubled in them: who writes values in
    /// quotes does so in all of a column, or where one holds what delimits. `'tis`, `6'`, `''` are values.
    fn holds_apostrophes(&self) -> bool {
        let score = &self.score;
        self.dialect.quote == Some(b'\'')
            && score.escaped == 0
            && score.quoted_throughout < QUOTED_THROUGHOUT_MIN
    }

    /// The only record there is, cut at something that text is full of.
    pub(super) fn is_one_record_of_words(&self) -> bool {
        self.score.records == 1 && is_usual_in_text(&self.dialect.delimiter)
    }

    /// Every record has the usual width, and values or quotes say that fields are fields.
    pub(super) fn is_sure_table(&self) -> bool {
        let score = &self.score;
        let told = score.typed_columns > 0 || score.quoted_permille() > 500;
        score.width > 1 && score.regular == score.records && told && self.doubt < 2.0
    }
}

fn ranked<'a>(candidates: impl Iterator<Item = (&'a Dialect, f64, bool)>, windows: &[Window]) -> Vec<Ranked> {
    let baseline: f64 = windows.iter().map(|window| text_bits(&window.text[window.from..])).sum();
    let (scale, comments) = (scale(baseline), few_are_marked(windows));
    let mut all: Vec<Ranked> = candidates
        .filter_map(|(dialect, doubt, weak)| Some((dialect, doubt, weak, score(dialect, windows, comments)?)))
        .filter(|(_, _, weak, score)| !weak || is_believable(score))
        .map(|(dialect, doubt, _, score)| {
            let halvings = score.bits / scale + doubt;
            Ranked { dialect: dialect.clone(), score, doubt, halvings }
        })
        .collect();
    let delimits = |one: &Ranked| one.score.width > 1 || one.dialect.delimiter.is_empty();
    // A delimiter that delimits nothing is none, unless it is the only one, as where it is given.
    if all.iter().any(delimits) {
        all.retain(delimits);
    }
    weigh_quotes(&mut all);
    weigh_escapes(&mut all, windows);
    let tables: Vec<Usual> = all.iter().filter_map(Usual::of).collect();
    let cut = all.iter_mut().filter(|one| tables.iter().any(|table| table.is_cut_by(one)));
    cut.for_each(|one| one.halvings += UNPROVEN_DOUBT);
    all.sort_by(|a, b| a.halvings.total_cmp(&b.halvings));
    all
}

/// Makes readings improbable that what the others know of quotes speaks against.
fn weigh_quotes(all: &mut [Ranked]) {
    if all.iter().any(|one| one.score.proves_quotes()) {
        // Documents in one field (JSON) are cut as regularly by what delimits inside them.
        let others = all.iter_mut().filter(|one| one.dialect.quote.is_none() || one.score.flawed > 0);
        others.for_each(|one| one.halvings += UNPROVEN_DOUBT);
    }
    let quoted: Vec<String> = all
        .iter()
        .filter(|one| one.is_right_with_quotes())
        .map(|one| one.dialect.delimiter.clone())
        .collect();
    let sure: Vec<String> =
        all.iter().filter(|one| one.has_sure_quotes()).map(|one| one.dialect.delimiter.clone()).collect();
    let torn = |one: &&mut Ranked| {
        let delimiter = &one.dialect.delimiter;
        let is_odd = one.score.regular < one.score.records;
        one.dialect.quote.is_none() && (is_odd && quoted.contains(delimiter) || sure.contains(delimiter))
    };
    all.iter_mut().filter(torn).for_each(|one| one.halvings += UNPROVEN_DOUBT);
    let usual: Vec<(String, usize)> = all.iter().filter_map(Ranked::usual_quotes).collect();
    let apostrophes = all.iter_mut().filter(|one| {
        let are_as_regular = |(delimiter, regular): &(String, usize)| {
            *delimiter == one.dialect.delimiter && *regular >= one.score.regular
        };
        one.holds_apostrophes() && usual.iter().any(are_as_regular)
    });
    apostrophes.for_each(|one| one.halvings += UNPROVEN_DOUBT);
}

/// Where all records have one width if backslashes escape delimiters, and another one if they do not, the
/// backslashes decide.
fn weigh_escapes(all: &mut [Ranked], windows: &[Window]) {
    let is_even = |one: &Ranked| {
        one.score.records > 1 && one.score.regular == one.score.records && one.score.flawed == 0
    };
    let escapes = |one: &Ranked| one.dialect.quote.is_none() && one.dialect.escape == Escape::Backslash;
    let even: Vec<(usize, usize)> = all
        .iter()
        .enumerate()
        .filter(|(_, one)| escapes(one) && is_even(one))
        .map(|(no, one)| (no, one.score.width))
        .collect();
    for (escaping_no, width) in even {
        let delimiter = all[escaping_no].dialect.delimiter.clone();
        let is_plain = |one: &Ranked| {
            one.dialect.delimiter == delimiter
                && is_even(one)
                && one.score.quoted == 0
                && one.score.width > width
        };
        if !all.iter().any(is_plain) {
            continue;
        }
        match escape_delimiters(windows, &delimiter) {
            Some(true) => {
                all.iter_mut().filter(|one| is_plain(one)).for_each(|one| one.halvings += UNPROVEN_DOUBT);
            }
            Some(false) => all[escaping_no].halvings += UNPROVEN_DOUBT,
            None => {}
        }
    }
}

/// Of so many records one may be odd. With 20, one odd one among ten records let a delimiter inside values
/// win in 12 of 220 random files, with 10 in none.
const RECORDS_WITH_ODD_ONE: usize = 10;

/// A usual delimiter that nearly all records have as often.
struct Usual {
    /// In [`USUAL_DELIMITERS`].
    no: usize,
    begins_regular: bool,
    /// Some of its fields hold numbers, days or the like.
    has_types: bool,
    /// All records have it as often.
    divides_all: bool,
    /// The same, and it cuts no document of JSON.
    keeps_documents: bool,
}

impl Usual {
    fn of(one: &Ranked) -> Option<Usual> {
        let (score, delimiter) = (&one.score, one.dialect.delimiter.trim_end_matches(' '));
        let no = USUAL_DELIMITERS.iter().position(|usual| *usual == delimiter)?;
        let odd = score.records - score.regular;
        let is_table = score.width > 1 && score.records > 1 && odd * RECORDS_WITH_ODD_ONE <= score.records;
        is_table.then_some(Usual {
            no,
            begins_regular: score.begins_regular,
            has_types: score.typed_columns > 0,
            divides_all: odd == 0,
            keeps_documents: odd == 0 && score.cut_documents == 0,
        })
    }

    /// Blanks and the like, as often in each text of a column, cut what this delimits: the header is none
    /// under them, or records have this delimiter between words. Each record gains some bits by them, so that
    /// no odds beforehand are enough.
    fn is_cut_by(&self, other: &Ranked) -> bool {
        let score = &other.score;
        let loses_header = self.begins_regular && !score.begins_regular;
        // Logs have columns of numbers and moments, and a comma in the same place of each text.
        let of_words = score.typed_columns * 2 < score.width;
        let nearly_all = |some: usize| (score.records - some) * RECORDS_WITH_ODD_ONE <= score.records;
        let between_words = nearly_all(score.between_words[self.no]);
        let delimiter = other.dialect.delimiter.as_str();
        let usual_in_text = is_usual_in_text(delimiter);
        // Texts have no tabs.
        let has_tabs = USUAL_DELIMITERS[self.no] == "\t" && between_words && !delimiter.contains('\t');
        // Behind a comma in a text there is a blank (`12 Old Street, Oslo`).
        let is_comma_of_texts =
            delimiter == "," && other.dialect.trim && score.typed_columns == 0 && self.divides_all;
        let cuts_tabs = has_tabs && (usual_in_text || delimiter.len() > 1 || is_comma_of_texts);
        let cuts_documents = self.keeps_documents && score.cut_documents * 2 > score.records;
        let cuts_words = delimiter == " " && of_words && between_words;
        let cuts_values = loses_header && (usual_in_text || self.has_values_cut_by(other));
        cuts_values || cuts_words || cuts_tabs || cuts_documents || self.is_lined_up_by(other)
    }

    /// Blanks line up what this delimits, and divides all lines alike
    /// (`0041; LATIN CAPITAL LETTER A   # Lu`). A comma does so in names and fractions, too.
    fn is_lined_up_by(&self, other: &Ranked) -> bool {
        let delimiter = other.dialect.delimiter.as_str();
        let is_wide = delimiter.len() > 1 && delimiter.bytes().all(|byte| byte == b' ');
        let is_sign = matches!(USUAL_DELIMITERS[self.no], ";" | "|");
        let between_words = other.score.between_words[self.no];
        is_wide && is_sign && self.divides_all && between_words == other.score.records
    }

    /// What stands once in each value (`16|87`, `Smith, John`) cuts all records but the names above them, and
    /// may well make more numbers of them. A title may have a usual delimiter by chance as often as the
    /// records do: but texts have no control characters, and seldom do numbers alone come of what delimits
    /// nothing.
    fn has_values_cut_by(&self, other: &Ranked) -> bool {
        let is_control = other.dialect.delimiter.chars().all(char::is_control);
        let all_typed = other.score.typed_columns == other.score.width;
        !is_control && (self.has_types || !all_typed)
    }
}

/// Bits that halve the odds. Cells are not independent, so the more of them the less does each say: the root
/// of what the sample takes as text.
fn scale(baseline_bits: f64) -> f64 {
    (baseline_bits.max(1.0).sqrt() / 4.0).max(1.0)
}

/// What text is full of delimits only where the cells are no text, or many.
fn is_believable(score: &Score) -> bool {
    let regular = score.regular * 10 >= score.records * 8;
    score.typed_columns > 0 || score.quoted_permille() > 300 || (score.width > 2 && regular)
}

/// Halvings of the odds up to which another reading is nearly as likely as the best one.
const NEARLY_AS_LIKELY: f64 = 10.0;

/// Puts the first reading with this width before the others, if it has no exception and is nearly as likely
/// as the best one. It comes out twice as likely as that, so that it is told to be unsure.
pub(super) fn prefer(ranked: &mut [Ranked], width: usize) {
    let Some(best) = ranked.first().map(|best| best.halvings) else { return };
    let is_wanted = |one: &Ranked| {
        let score = &one.score;
        let is_even = score.width == width && score.regular == score.records && score.flawed == 0;
        is_even && one.halvings - best <= NEARLY_AS_LIKELY
    };
    if let Some(no) = ranked.iter().position(is_wanted).filter(|no| *no > 0) {
        ranked[..=no].rotate_right(1);
        ranked[0].halvings = best - 1.0;
    }
}

/// The chance that the first one is right, and the first one that is really another.
pub(super) fn chance(ranked: &[Ranked]) -> (f64, Option<(Dialect, f64)>) {
    let Some(best) = ranked.first() else { return (1.0, None) };
    let odds = |one: &Ranked| (best.halvings - one.halvings).exp2();
    let others = || {
        ranked[1..].iter().filter(|one| {
            let same_cut = one.dialect.delimiter.trim_matches(' ')
                == best.dialect.delimiter.trim_matches(' ')
                && one.score.width == best.score.width
                && (one.score.bits - best.score.bits).abs() < best.score.bits / 500.0;
            !same_cut
        })
    };
    let sum = 1.0 + others().map(odds).sum::<f64>();
    let second = others().next().map(|one| (one.dialect.clone(), odds(one) / sum));
    (1.0 / sum, second)
}

/// Pieces from the head, the middle and the tail. A file that is no longer than they are together is one
/// piece: none begins inside its quotes, or has records of another one.
fn excerpts<'w>(windows: &'w Windows) -> Vec<Window<'w>> {
    let half = EXCERPT_BYTES / 2;
    let length = windows.head.text.len();
    if windows.head.at_end && length <= EXCERPT_BYTES + 2 * half {
        return vec![windows.head.borrow()];
    }
    let mut excerpts = vec![windows.head.begin(EXCERPT_BYTES)];
    if windows.head.at_end {
        excerpts.extend(windows.head.part(length / 2, half));
        excerpts.extend(windows.head.part(length.saturating_sub(half), half));
    }
    excerpts.extend(windows.middle.as_ref().and_then(|window| window.part(window.from, half)));
    excerpts.extend(
        windows
            .tail
            .as_ref()
            .and_then(|window| window.part(window.text.len().saturating_sub(half).max(window.from), half)),
    );
    excerpts
}

impl Window<'_> {
    /// So many bytes at least, and so many lines.
    fn begin(&self, bytes: usize) -> Window<'_> {
        let lines = memchr::memchr2_iter(b'\n', b'\r', &self.text).nth(EXCERPT_LINES);
        let bytes = lines.unwrap_or(self.text.len()).max(bytes);
        self.view(0, bytes.min(self.text.len()))
    }

    /// From the first line ending behind `from` on; nothing if that is not there, or already seen.
    fn part(&self, from: usize, bytes: usize) -> Option<Window<'_>> {
        let from = from.max(self.from);
        let mut part = self.view(from, (from + bytes).min(self.text.len()));
        if from > self.from {
            part.skip_to_record();
        }
        (part.from < part.text.len()).then_some(part)
    }
}
