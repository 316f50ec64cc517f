//! Names above columns of text, where no number, day or the like tells: their words, how they are written,
//! and what the values below them have in common.

use super::super::cell_types::{Class, Kind};
use super::super::rows::Reader;
use super::super::table::Lines;
use super::super::windows::Window;
use super::COMPARED_LINES;
use super::shapes::{are_alike, is_no_name};

/// What speaks at least against names of which one comes again as a value: more than all else for them.
const RECURS: f64 = -6.0;

/// What speaks for such names where another one stands above nothing: that is unsure. A record that would
/// have the only value of a column is as seldom as a name among the values.
const RECURS_BESIDE_NOTHING: f64 = -0.5;

/// So many records show that a column holds nothing.
const EMPTY_RECORDS_MIN: usize = 10;

/// Words that name columns in many a file; part of a name split at anything but letters.
const WORDS: &[&str] = &[
    "id",
    "name",
    "date",
    "time",
    "year",
    "month",
    "day",
    "type",
    "code",
    "value",
    "city",
    "country",
    "state",
    "address",
    "email",
    "phone",
    "title",
    "description",
    "status",
    "category",
    "count",
    "amount",
    "price",
    "total",
    "first",
    "last",
    "age",
    "sex",
    "gender",
    "lat",
    "lon",
    "latitude",
    "longitude",
    "number",
    "no",
    "key",
    "url",
    "comment",
    "comments",
    "notes",
    "note",
    "region",
    "zip",
    "postcode",
    "street",
    "class",
    "group",
    "color",
    "colour",
    "size",
    "user",
    "username",
    "lang",
    "language",
    "label",
    "text",
    "nom",
    "datum",
    "fecha",
    "nombre",
    "nummer",
    "ort",
    "stadt",
    "land",
    "preis",
    "menge",
    "qty",
    "quantity",
    "product",
    "company",
    "department",
    "author",
    "kind",
    "level",
    "rank",
    "score",
    "source",
    "target",
    "parent",
    "index",
    "uuid",
    "column",
    "field",
];

/// The most that speaks for a header in whose words nothing does: that is unsure. `Alice,admin` stands above
/// `Bob,user` and more users as a name would, and is the first record.
const UNNAMED_MAX: f64 = 1.0;

/// What speaks for a header without a typed column that could tell.
pub(super) fn weight(
    lines: &Lines,
    no: usize,
    classes: &[Option<Class>],
    reader: &mut Reader,
    window: &Window,
) -> f64 {
    let names = lines.values(no, reader, window);
    let kinds = lines.kinds(no);
    let filled = names.iter().filter(|name| !name.is_empty()).count();
    if filled == 0 || kinds.iter().any(|kind| kind.class().is_some() && *kind != Kind::Boolean) {
        return -3.0;
    }
    // A header without a line below it has words alone to speak for it.
    let mut weight: f64 = 0.5;
    // The column of row numbers has often no name.
    let corner = filled + 1 == names.len() && names[0].is_empty();
    weight += if filled == names.len() || corner { 0.5 } else { -0.5 };
    let mut sorted: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        weight -= 1.5;
    }
    if names.iter().any(|name| name.len() > 60) {
        weight -= 2.0;
    }
    if names.iter().any(|name| is_no_name(name)) {
        weight -= 2.0;
    }
    let words = names.iter().filter(|name| has_word(name)).count();
    let identifiers = names.iter().filter(|name| is_identifier(name)).count();
    weight += 1.5 * words.min(2) as f64 + 0.5 * identifiers.min(2) as f64;
    let body = against_body(lines, no, &names, classes, reader, window);
    if body.is_open {
        return RECURS_BESIDE_NOTHING;
    }
    weight += body.weight;
    if words + identifiers > 0 || body.is_other { weight } else { weight.min(UNNAMED_MAX) }
}

/// What the columns below say of the names above them.
struct Body {
    weight: f64,
    /// A name is written otherwise than all values of its column.
    is_other: bool,
    /// A name comes again as a value, and another one stands above a column of nothing.
    is_open: bool,
}

/// A word that names columns is part of it.
pub(in super::super) fn has_word(name: &str) -> bool {
    let mut parts = name.split(|c: char| !c.is_alphabetic()).filter(|part| !part.is_empty());
    name.len() <= 40 && parts.any(|part| WORDS.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

/// `first_name`, `FirstName`: words that are joined.
pub(in super::super) fn is_identifier(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let camel =
        name.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    plain && (name.contains('_') || camel)
}

/// Names compared with the columns below: a name does not come again as a value, and does not look like one.
fn against_body(
    lines: &Lines,
    no: usize,
    names: &[String],
    classes: &[Option<Class>],
    reader: &mut Reader,
    window: &Window,
) -> Body {
    let mut bodies: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    // Usual names that all come again together are a header again, as in files that were put together.
    let usual = names.iter().filter(|name| has_word(name) || is_identifier(name)).count() * 2 >= names.len();
    let is_again = |values: &Vec<String>| names.len() > 1 && usual && values == names;
    for below in (no + 1..lines.len()).take(COMPARED_LINES) {
        let values = lines.values(below, reader, window);
        if values.len() == names.len() && !is_again(&values) {
            for (body, value) in bodies.iter_mut().zip(values) {
                body.push(value);
            }
        }
    }
    // The only line of a file may as well be a record.
    if bodies.iter().all(Vec::is_empty) {
        return Body { weight: -0.5, is_other: false, is_open: false };
    }
    let (mut weight, mut recurs, mut is_other) = (0.0_f64, false, false);
    let mut names_nothing = false;
    for ((name, body), class) in names.iter().zip(&mut bodies).zip(classes) {
        if name.is_empty() || body.is_empty() || class.is_some() {
            continue;
        }
        let again = body.contains(name);
        let alike = are_alike(name, body);
        let lower = |text: &String| text.chars().all(|c| !c.is_uppercase());
        let case_differs = body.len() > 1 && body.iter().all(|value| lower(value) != lower(name));
        recurs |= again && (!has_word(name) || name.contains(' '));
        names_nothing |= body.len() >= EMPTY_RECORDS_MIN && body.iter().all(String::is_empty);
        body.sort_unstable();
        let values = body.len();
        body.dedup();
        // One value is as long as itself.
        let same_length = body.len() > 2 && body.iter().all(|value| value.len() == body[0].len());
        let length_differs = same_length && body[0].len() != name.len();
        if again || alike {
            weight -= 2.0;
        } else {
            weight += if body.len() * 2 <= values && values > 3 { 0.7 } else { 0.0 };
            weight += if length_differs { 1.0 } else { 0.0 };
            weight += if case_differs { 0.7 } else { 0.0 };
            is_other |= length_differs || case_differs;
        }
    }
    // Columns that look named speak for less than one value that comes again.
    let is_open = recurs && names_nothing;
    Body { weight: if recurs { weight.min(RECURS) } else { weight }, is_other, is_open }
}
