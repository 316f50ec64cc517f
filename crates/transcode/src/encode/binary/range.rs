//! Ranges: `range_recv` takes a byte of flags, and each bound that there is behind its length. It brings
//! ranges of whole numbers and days into their one form as input does.
//!
//! The text is that of `range_parse` in PostgreSQL's `rangetypes.c`: `empty`, or two bounds in brackets or
//! parentheses. A bound that is not there is infinite, quotes keep what would end it, and spaces belong to
//! it.

use super::out::Out;

const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

/// Writes the value without its length; `write_bound` writes a bound behind its own.
pub(super) fn write(
    value: &[u8],
    out: &mut Out,
    mut write_bound: impl FnMut(&[u8], &mut Out) -> Option<()>,
) -> Option<()> {
    if value.eq_ignore_ascii_case(b"empty") {
        return out.put([EMPTY]);
    }
    let (mut flags, rest) = match value.split_first()? {
        (b'[', rest) => (LOWER_INCLUSIVE, rest),
        (b'(', rest) => (0, rest),
        _ => return None,
    };
    let at = out.length();
    out.put([0])?;
    let mut unquoted = Vec::new();
    let (lower, rest) = split_bound(rest, &mut unquoted)?;
    match lower {
        Some(lower) => write_bound(lower, out)?,
        None => flags = LOWER_INFINITE,
    }
    let (upper, rest) = split_bound(rest.strip_prefix(b",")?, &mut unquoted)?;
    flags |= match (rest, upper) {
        (b")" | b"]", None) => UPPER_INFINITE,
        (b"]", Some(_)) => UPPER_INCLUSIVE,
        (b")", Some(_)) => 0,
        _ => return None,
    };
    if let Some(upper) = upper {
        write_bound(upper, out)?;
    }
    out.put_at(at, [flags])
}

/// A bound, which none is infinite, and what stands behind it. Its quotes are undone in `unquoted`, where it
/// has any.
fn split_bound<'a: 'b, 'b>(
    text: &'a [u8],
    unquoted: &'b mut Vec<u8>,
) -> Option<(Option<&'b [u8]>, &'a [u8])> {
    let is_end = |byte: &u8| matches!(byte, b',' | b')' | b']');
    let end = text.iter().position(|byte| is_end(byte) || matches!(byte, b'"' | b'\\' | b'(' | b'['))?;
    let (plain, rest) = text.split_at_checked(end)?;
    if is_end(rest.first()?) {
        return Some(((end > 0).then_some(plain), rest));
    }
    // Quotes are certain where they stand around the whole bound.
    let mut rest = rest.strip_prefix(b"\"").filter(|_| end == 0)?;
    unquoted.clear();
    loop {
        let at = memchr::memchr2(b'"', b'\\', rest)?;
        unquoted.extend_from_slice(rest.get(..at)?);
        match rest.get(at..)? {
            [b'\\', byte, after @ ..] | [b'"', byte @ b'"', after @ ..] => {
                unquoted.push(*byte);
                rest = after;
            }
            [b'"', after @ ..] => return Some((Some(unquoted), after)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags and the bounds.
    fn read(value: &str) -> Option<(u8, Vec<String>)> {
        let mut bytes = [0; 256];
        let mut out = Out::new(&mut bytes);
        write(value.as_bytes(), &mut out, |bound, out| out.sized(|out| out.extend(bound)))?;
        let length = out.length();
        let (mut rest, mut bounds) = (&bytes[1..length], Vec::new());
        while let Some((length, after)) = rest.split_first_chunk() {
            let (bound, after) = after.split_at(usize::try_from(i32::from_be_bytes(*length)).unwrap());
            bounds.push(String::from_utf8(bound.to_vec()).unwrap());
            rest = after;
        }
        Some((bytes[0], bounds))
    }

    #[test]
    fn bounds_are_in_or_out_or_infinite() {
        let bounds = |bounds: &[&str]| bounds.iter().map(|bound| (*bound).to_owned()).collect::<Vec<_>>();
        assert_eq!(read("Empty"), Some((EMPTY, vec![])));
        assert_eq!(read("[1,5)"), Some((LOWER_INCLUSIVE, bounds(&["1", "5"]))));
        assert_eq!(read("( 1,5 ]"), Some((UPPER_INCLUSIVE, bounds(&[" 1", "5 "]))));
        assert_eq!(read("[,]"), Some((LOWER_INFINITE | UPPER_INFINITE, vec![])));
        assert_eq!(read("(,5)"), Some((LOWER_INFINITE, bounds(&["5"]))));
        assert_eq!(read("[1,)"), Some((LOWER_INCLUSIVE | UPPER_INFINITE, bounds(&["1"]))));
        assert_eq!(read("[\"a\"\"b\\\"\",\"\"]"), Some((6, bounds(&["a\"b\"", ""]))));
        for uncertain in [
            "",
            "[",
            "[1",
            "[1,",
            "[1,2",
            "1,2",
            "[1,2]]",
            "[1,2,3]",
            "[1]",
            "[1,2] ",
            " [1,2]",
            "[\"1,2]",
            "[1\\,2]",
            "[\"1\"2,3]",
            "[1\"2\",3]",
            "[\"1\\",
            "(1,(2)",
            "[[1,2]",
            "emptyy",
        ] {
            assert_eq!(read(uncertain), None, "{uncertain}");
        }
    }
}
