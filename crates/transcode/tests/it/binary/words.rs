//! Text of all kinds, `"char"`, `name`, `bytea`, `uuid`, `json` and `jsonb`.

use super::{near, same_as_csv};
use fastrand::Rng;
use howdah_model::BinaryType;

const LETTERS: &str = "ab\"'\\,;\n\r\t {}[]:0\u{1}\u{e9}\u{20ac}\u{1f418}";

pub(super) fn text(rng: &mut Rng) -> String {
    let letters: Vec<char> = LETTERS.chars().collect();
    let length = rng.choice([0, 1, 3, 8, 70, 300]).unwrap();
    (0..rng.usize(0..=length)).map(|_| *rng.choice(&letters).unwrap()).collect()
}

#[test]
fn characters_as_they_are() {
    for sql_type in ["text", "varchar", "bpchar"] {
        same_as_csv(sql_type, &BinaryType::Text, text);
    }
}

#[test]
fn characters_that_are_too_many_are_refused_as_the_server_does() {
    // Blanks beyond the limit are cut off; anything else is an error.
    for sql_type in ["varchar(5)", "char(5)"] {
        same_as_csv(sql_type, &BinaryType::Text, |rng| {
            let spaces = " ".repeat(rng.usize(0..8));
            let length = if rng.u16(0..2000) == 0 { 6 } else { rng.usize(0..6) };
            "\u{e9}".repeat(length) + &spaces
        });
    }
}

#[test]
fn names_and_single_characters() {
    same_as_csv("name", &BinaryType::Name, |rng| {
        "n".repeat(rng.usize(0..80)) + rng.choice(["", "\u{e9}"]).unwrap()
    });
    same_as_csv("\"char\"", &BinaryType::Char, text);
}

#[test]
fn bytes() {
    same_as_csv("bytea", &BinaryType::Bytea, |rng| {
        let hex: String = (0..rng.usize(0..40)).map(|_| format!("{:02x}", rng.u8(..))).collect();
        match rng.u8(0..4) {
            0 => text(rng),
            1 => near(rng, format!("\\x{}", hex.to_uppercase()), "0aAgG \\"),
            _ => near(rng, format!("\\x{hex}"), "0aAgG \\"),
        }
    });
}

#[test]
fn uuids() {
    same_as_csv("uuid", &BinaryType::Uuid, |rng| {
        let hex = format!("{:032x}", rng.u128(..));
        let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        let written = match rng.u8(0..4) {
            0 => hex.clone(),
            1 => format!("{{{a}-{b}-{c}-{d}-{e}}}"),
            2 => format!("{a}-{b}-{c}-{d}-{e}").to_uppercase(),
            _ => format!("{a}-{b}-{c}-{d}-{e}"),
        };
        near(rng, written, "0aAgG-{} ")
    });
}

#[test]
fn documents() {
    const DOCUMENTS: [&str; 8] = [
        "null",
        "[]",
        "{\"a\": 1.50, \"b\": [true, \"\\u00e9\"], \"a\": 2}",
        " 1e5 ",
        "\"\u{1f418}\"",
        "[1, 2,3]",
        "{\"deep\": {\"er\": [[[]]]}}",
        "-0.0",
    ];
    for (sql_type, binary_type) in [("json", BinaryType::Text), ("jsonb", BinaryType::Jsonb)] {
        same_as_csv(sql_type, &binary_type, |rng| {
            let document = (*rng.choice(DOCUMENTS).unwrap()).to_owned();
            // Most near misses are no documents: a few are enough.
            if rng.u16(0..1000) > 0 { document } else { near(rng, document, "{}[]\",:0e") }
        });
    }
}
