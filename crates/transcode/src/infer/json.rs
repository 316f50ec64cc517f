//! Whether a value is a JSON object or array that `jsonb` takes, and keeps whole.
//!
//! RFC 8259, less what `jsonb` refuses: `\u0000`, halves of surrogate pairs, numbers beyond `numeric`,
//! and more nesting than a server's stack may hold.

use super::cursor::Cursor;
use std::borrow::Cow;

/// Levels of nesting. PostgreSQL's limit is its stack (some 6,000 levels with the default settings); real
/// documents stay far below, and this parser's own stack must hold them.
const DEPTH_MAX: usize = 100;

/// Digits of a number, and the greatest power of ten: far inside of what `numeric` holds.
const NUMBER_DIGITS_MAX: usize = 1000;

/// One datum of a jsonb holds less than 256 MB.
const VALUE_BYTES_MAX: usize = 128 << 20;

/// What an object or an array holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// An object has a key more than once: `jsonb` would keep the last value alone.
    pub(crate) repeats_keys: bool,
}

/// An object or an array, blanks around it or not.
pub(crate) fn document(value: &[u8]) -> Option<Document> {
    let inner = value.trim_ascii();
    let framed = matches!(inner, [b'{', .., b'}'] | [b'[', .., b']']);
    if !framed || value.len() > VALUE_BYTES_MAX || std::str::from_utf8(value).is_err() {
        return None;
    }
    let (mut cursor, mut document) = (Cursor(value), Document::default());
    (element(&mut cursor, 0, &mut document) && cursor.is_done()).then_some(document)
}

/// Takes a value and the blanks around it.
fn element(cursor: &mut Cursor<'_>, depth: usize, document: &mut Document) -> bool {
    blanks(cursor);
    let taken = match cursor.0.first() {
        Some(b'{') => depth < DEPTH_MAX && object(cursor, depth, document),
        Some(b'[') => depth < DEPTH_MAX && array(cursor, depth, document),
        Some(b'"') => string(cursor),
        Some(b't') => word(cursor, b"true"),
        Some(b'f') => word(cursor, b"false"),
        Some(b'n') => word(cursor, b"null"),
        Some(_) => number(cursor),
        None => false,
    };
    blanks(cursor);
    taken
}

fn object(cursor: &mut Cursor<'_>, depth: usize, document: &mut Document) -> bool {
    cursor.eat(b'{');
    blanks(cursor);
    if cursor.eat(b'}') {
        return true;
    }
    let mut keys = Vec::new();
    loop {
        blanks(cursor);
        let text = cursor.0;
        if !string(cursor) {
            return false;
        }
        keys.push(unescaped(&text[1..text.len() - cursor.0.len() - 1]));
        blanks(cursor);
        if !cursor.eat(b':') || !element(cursor, depth + 1, document) {
            return false;
        }
        if cursor.eat(b'}') {
            break;
        }
        if !cursor.eat(b',') {
            return false;
        }
    }
    keys.sort_unstable();
    document.repeats_keys |= keys.windows(2).any(|pair| pair[0] == pair[1]);
    true
}

/// A key as PostgreSQL compares it; its escapes are valid.
fn unescaped(key: &[u8]) -> Cow<'_, [u8]> {
    if !key.contains(&b'\\') {
        return Cow::Borrowed(key);
    }
    let (mut cursor, mut units) = (Cursor(key), Vec::new());
    let mut plain = Vec::new();
    while let Some((&byte, rest)) = cursor.0.split_first() {
        cursor.0 = rest;
        let escape = (byte == b'\\').then(|| cursor.0.first().copied()).flatten();
        match escape {
            Some(b'u') => {
                units.extend(code_unit(&mut cursor));
                continue;
            }
            Some(letter) => {
                cursor.0 = &cursor.0[1..];
                flush(&mut units, &mut plain);
                plain.push(match letter {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    itself => itself,
                });
            }
            None => {
                flush(&mut units, &mut plain);
                plain.push(byte);
            }
        }
    }
    flush(&mut units, &mut plain);
    Cow::Owned(plain)
}

/// Code units of UTF-16, halves of a pair together, become UTF-8.
fn flush(units: &mut Vec<u16>, plain: &mut Vec<u8>) {
    if !units.is_empty() {
        plain.extend_from_slice(String::from_utf16_lossy(units).as_bytes());
        units.clear();
    }
}

fn array(cursor: &mut Cursor<'_>, depth: usize, document: &mut Document) -> bool {
    cursor.eat(b'[');
    blanks(cursor);
    if cursor.eat(b']') {
        return true;
    }
    loop {
        if !element(cursor, depth + 1, document) {
            return false;
        }
        if cursor.eat(b']') {
            return true;
        }
        if !cursor.eat(b',') {
            return false;
        }
    }
}

fn string(cursor: &mut Cursor<'_>) -> bool {
    if !cursor.eat(b'"') {
        return false;
    }
    while let Some((&byte, rest)) = cursor.0.split_first() {
        cursor.0 = rest;
        match byte {
            b'"' => return true,
            b'\\' if !escape(cursor) => return false,
            0..0x20 => return false,
            _ => {}
        }
    }
    false
}

/// What follows a backslash.
fn escape(cursor: &mut Cursor<'_>) -> bool {
    if cursor.one_of(b"\"\\/bfnrt").is_some() {
        return true;
    }
    match code_unit(cursor) {
        None | Some(0 | 0xdc00..=0xdfff) => false,
        Some(0xd800..=0xdbff) => cursor.eat(b'\\') && matches!(code_unit(cursor), Some(0xdc00..=0xdfff)),
        Some(_) => true,
    }
}

fn code_unit(cursor: &mut Cursor<'_>) -> Option<u16> {
    if !cursor.eat(b'u') {
        return None;
    }
    let (digits, rest) = cursor.0.split_at_checked(4)?;
    cursor.0 = rest;
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
    digits.iter().try_fold(0, |sum, byte| Some(sum * 16 + digit(byte)?))
}

fn number(cursor: &mut Cursor<'_>) -> bool {
    cursor.eat(b'-');
    let whole = cursor.digits();
    if whole.is_empty() || whole.len() > 1 && whole.starts_with(b"0") {
        return false;
    }
    let mut digits = whole.len();
    if cursor.eat(b'.') {
        let fraction = cursor.digits().len();
        if fraction == 0 {
            return false;
        }
        digits += fraction;
    }
    if cursor.one_of(b"eE").is_some() {
        cursor.one_of(b"+-");
        let power = cursor.digits();
        if !(1..=3).contains(&power.len()) {
            return false;
        }
    }
    digits <= NUMBER_DIGITS_MAX
}

fn word(cursor: &mut Cursor<'_>, word: &[u8]) -> bool {
    match cursor.0.strip_prefix(word) {
        Some(rest) => {
            cursor.0 = rest;
            true
        }
        None => false,
    }
}

/// JSON's blanks; no form feed among them.
fn blanks(cursor: &mut Cursor<'_>) {
    while cursor.one_of(b" \t\n\r").is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_what_jsonb_takes() {
        for good in [
            "{}",
            "[]",
            " [1, -2.5e3 ,\"a\\u00e9\\ud83d\\ude00\"] ",
            "{\"a\": {\"b\": [null, true, false]}}",
            "[\"\u{7f}\"]",
        ] {
            assert!(document(good.as_bytes()).is_some(), "{good}");
        }
        for bad in [
            "",
            "1",
            "\"a\"",
            "null",
            "{1,2}",
            "{a:1}",
            "[1,]",
            "[01]",
            "[1.]",
            "[.5]",
            "[+1]",
            "[1e]",
            "[1e9999]",
            "[\"\\u0000\"]",
            "[\"\\ud83d\"]",
            "[\"\\ude00\"]",
            "[\"\\x\"]",
            "[\"\n\"]",
            "[1] [2]",
            "[NaN]",
            "[\"]",
            "{\"a\"}",
            "[1\u{c}]",
            "[tru]",
        ] {
            assert!(document(bad.as_bytes()).is_none(), "{bad}");
        }
        assert!(document(b"[\"\xff\"]").is_none());
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(document(deep(100).as_bytes()).is_some() && document(deep(101).as_bytes()).is_none());
        assert!(document(deep(1_000_000).as_bytes()).is_none());
    }

    #[test]
    fn keys_that_come_again_are_seen() {
        let repeats = |text: &str| document(text.as_bytes()).unwrap().repeats_keys;
        for text in [
            "{\"a\": 1, \"b\": 2, \"a\": 1}",
            "[{\"b\": {\"\": 1, \"\": 2}}]",
            "{\"\\u00e9\\n\": 1, \"é\\u000a\": 2}",
            "{\"\\ud83d\\ude00\": 1, \"😀\": 2}",
            "{\"\\/\": 1, \"/\": 2}",
        ] {
            assert!(repeats(text), "{text}");
        }
        for text in
            ["{\"a\": {\"a\": 1}, \"A\": [{\"a\": 1}, {\"a\": 2}]}", "{\"\\\\n\": 1, \"\\n\": 2}", "[]"]
        {
            assert!(!repeats(text), "{text}");
        }
    }
}
