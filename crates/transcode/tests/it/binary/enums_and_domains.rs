//! Types that a database has of its own: enums, domains over types that are written, and arrays of both.

use super::containers::{array, lengths};
use super::words::text;
use super::{near, same_as_csv_in, same_as_csv_where};
use fastrand::Rng;
use howdah_model::BinaryType;
use howdah_testkit::{Database, asked};

/// `NAMEDATALEN`, less the byte that ends it.
const LABEL_BYTES_MAX: usize = 63;
/// So many values come for one that is refused: to find that takes many loads.
const ONE_REFUSED_OF: u32 = 700;

/// Labels that are easily taken for others, and random ones.
fn labels() -> Vec<String> {
    let (long, longer) = ("\u{e9}".repeat(31), "x".repeat(LABEL_BYTES_MAX));
    let odd = [
        "fine",
        "Fine",
        "fine ",
        " fine",
        "fin",
        "so so",
        "NULL",
        "null",
        "\\N",
        "\\.",
        "{}",
        "{fine}",
        "a,b",
        "a\"b",
        "\"fine\"",
        "it's",
        "back\\slash",
        "two\nlines",
        "a\tb",
        "a\rb",
        "\u{1f418}",
        "e\u{301}",
        "\u{e9}",
        &long,
        &longer,
        &longer[1..],
    ];
    let mut labels: Vec<String> = odd.map(str::to_owned).into();
    let mut rng = Rng::with_seed(asked("HOWDAH_BINARY_SEED", 0));
    while labels.len() < 60 {
        let mut label = text(&mut rng);
        while label.len() > LABEL_BYTES_MAX {
            label.pop();
        }
        if !label.is_empty() && !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

fn make_enum(database: &Database) {
    let quoted: Vec<String> =
        labels().iter().map(|label| format!("'{}'", label.replace('\'', "''"))).collect();
    database.sql(&format!("CREATE TYPE mood AS ENUM ({})", quoted.join(", ")));
}

fn label(rng: &mut Rng, labels: &[String]) -> String {
    let label = rng.choice(labels).unwrap().clone();
    match rng.u32(0..ONE_REFUSED_OF) {
        0 => near(rng, label, "fieFx \"\\,\u{e9}"),
        1 => label + "x",
        _ => label,
    }
}

/// As an element of an array, quoted unless it needs none and sometimes then.
fn quoted(rng: &mut Rng, value: &str) -> String {
    let is_plain = !value.is_empty()
        && !value.eq_ignore_ascii_case("null")
        && value.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '-');
    if is_plain && rng.bool() {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An array of the elements of this type, by its name.
fn array_of(database: &Database, name: &str, element: BinaryType) -> BinaryType {
    let oid = database.value(&format!("SELECT '{name}'::regtype::oid"));
    BinaryType::Array { element_oid: oid.parse().unwrap(), element: Box::new(element) }
}

#[test]
fn labels_of_enums() {
    let labels = labels();
    let prepare = |database: &Database| {
        make_enum(database);
        true
    };
    same_as_csv_where(prepare, "mood", &BinaryType::Text, |rng| label(rng, &labels));
}

#[test]
fn arrays_of_enums() {
    let labels = labels();
    let prepare = |database: &Database| {
        make_enum(database);
        Some(array_of(database, "mood", BinaryType::Text))
    };
    same_as_csv_in(prepare, "mood[]", |rng| {
        let lengths = lengths(rng);
        array(rng, &lengths, &mut |rng| match rng.u8(0..20) {
            0 => "NULL".to_owned(),
            _ => {
                let label = label(rng, &labels);
                quoted(rng, &label)
            }
        })
    });
}

/// What the domains say, their own and that of what they are made of, decides on the value as their type has
/// rounded or padded it.
const DOMAINS_SQL: &str = "\
    CREATE DOMAIN amount AS numeric(9,2) NOT NULL CHECK (VALUE >= 0); \
    CREATE DOMAIN small AS amount CHECK (VALUE < 1000); \
    CREATE DOMAIN code AS varchar(5) CHECK (VALUE <> 'no'); \
    CREATE DOMAIN padded AS char(5) CHECK (VALUE <> 'no'); \
    CREATE DOMAIN moment AS timestamp(1) CHECK (VALUE < '2100-01-01'); \
    CREATE DOMAIN cheerful AS mood NOT NULL CHECK (VALUE <> 'so so'); \
    CREATE DOMAIN few AS code[] CHECK (cardinality(VALUE) < 8)";

fn make_domains(database: &Database) {
    make_enum(database);
    database.sql(DOMAINS_SQL);
}

fn is_refused(rng: &mut Rng) -> bool {
    rng.u32(0..ONE_REFUSED_OF) == 0
}

/// Rounds to 1000 at times.
fn amount(rng: &mut Rng) -> String {
    let sign = if is_refused(rng) { "-" } else { "" };
    let whole = if is_refused(rng) { 999 } else { rng.u32(0..999) };
    format!("{sign}{whole}.{:04}", if rng.bool() { rng.u32(9_940..10_000) } else { rng.u32(0..10_000) })
}

fn code(rng: &mut Rng) -> String {
    match rng.u32(0..ONE_REFUSED_OF) {
        0 => "no".to_owned(),
        1 => "no ".to_owned(),
        2 => "\u{e9}".repeat(6),
        _ => {
            let length = rng.usize(0..6);
            let word: String =
                (0..length).map(|_| rng.choice(['a', '"', '\\', ',', '\u{e9}', ' ']).unwrap()).collect();
            word + &" ".repeat(rng.usize(0..4))
        }
    }
}

fn moment(rng: &mut Rng) -> String {
    let year = if is_refused(rng) { 2099 } else { rng.u32(1900..2099) };
    format!("{year}-12-31 23:59:59.{:03}", rng.u32(0..1000))
}

#[test]
fn domains_with_lengths_and_checks() {
    let labels = labels();
    let prepare = |database: &Database| {
        make_domains(database);
        true
    };
    same_as_csv_where(prepare, "amount", &BinaryType::Numeric, amount);
    same_as_csv_where(prepare, "small", &BinaryType::Numeric, amount);
    same_as_csv_where(prepare, "code", &BinaryType::Text, code);
    same_as_csv_where(prepare, "padded", &BinaryType::Text, code);
    same_as_csv_where(prepare, "moment", &BinaryType::Timestamp, moment);
    same_as_csv_where(prepare, "cheerful", &BinaryType::Text, |rng| {
        if is_refused(rng) {
            return "so so".to_owned();
        }
        label(rng, &labels).replace("so so", "fine")
    });
}

/// NULLs within them included, which some domains refuse.
#[test]
fn arrays_of_domains() {
    for (sql_type, element, written, value) in [
        ("small[]", "small", BinaryType::Numeric, amount as fn(&mut Rng) -> String),
        ("few", "code", BinaryType::Text, code),
        ("moment[]", "moment", BinaryType::Timestamp, moment),
    ] {
        let prepare = |database: &Database| {
            make_domains(database);
            Some(array_of(database, element, written.clone()))
        };
        same_as_csv_in(prepare, sql_type, |rng| {
            let length = if is_refused(rng) { 8 } else { rng.usize(0..7) };
            let is_null =
                |rng: &mut Rng| if element == "small" { is_refused(rng) } else { rng.u8(0..9) == 0 };
            let elements: Vec<String> = (0..length)
                .map(|_| match is_null(rng) {
                    true => "NULL".to_owned(),
                    false => {
                        let value = value(rng);
                        quoted(rng, &value)
                    }
                })
                .collect();
            format!("{{{}}}", elements.join(","))
        });
    }
}
