//! Arrays: `array_recv` takes the count of dimensions, whether there are NULLs, the elements' type, each
//! dimension's length and lower bound, and the elements behind their lengths.
//!
//! Certain is text in braces with as many levels everywhere: elements in quotes with backslashes before
//! whatever is more than itself, or bare ones without. `array_in` in PostgreSQL's `arrayfuncs.c` was written
//! anew in 17; what is certain is what both read alike. Explicit bounds, ragged levels and empty levels
//! inside others are left to the server. A bare NULL is taken as one, as `array_nulls` has it by default.

use super::out::Out;

/// `MAXDIM`
const LEVELS_MAX: usize = 6;
/// Two words for each dimension.
const DIMENSION_BYTES: usize = 8;

/// What the server knows of the elements.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    pub(super) oid: u32,
    /// Stands between them.
    pub(super) delimiter: u8,
}

/// Writes the value without its length; `write_element` writes an element behind its own.
pub(super) fn write(
    value: &[u8],
    elements: Elements,
    out: &mut Out,
    mut write_element: impl FnMut(&[u8], &mut Out) -> Option<()>,
) -> Option<()> {
    let levels = count_levels(value)?;
    let Elements { oid, delimiter } = elements;
    let mut walk = Walk { rest: value, delimiter, has_null: false, unescaped: Vec::new() };
    let start = out.length();
    if walk.is_empty_array() {
        out.put(0_i32.to_be_bytes())?;
        out.put(0_i32.to_be_bytes())?;
        return out.put(oid.to_be_bytes());
    }
    out.put(i32::try_from(levels).ok()?.to_be_bytes())?;
    out.put([0; 4])?;
    out.put(oid.to_be_bytes())?;
    let dimensions = out.length();
    for _ in 0..levels {
        // The length is known at the end; the lower bound is 1.
        out.put([0, 0, 0, 0, 0, 0, 0, 1])?;
    }
    let lengths = walk.elements(levels, out, &mut write_element)?;
    for (level, length) in lengths.iter().take(levels).enumerate() {
        out.put_at(dimensions + level * DIMENSION_BYTES, length.to_be_bytes())?;
    }
    out.put_at(start + 4, i32::from(walk.has_null).to_be_bytes())
}

/// How many braces open before the first element.
fn count_levels(value: &[u8]) -> Option<usize> {
    let levels = value
        .iter()
        .filter(|byte| !is_space(**byte))
        .take_while(|byte| **byte == b'{')
        .take(LEVELS_MAX + 1)
        .count();
    (1..=LEVELS_MAX).contains(&levels).then_some(levels)
}

/// `array_isspace`
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// What is left of the text.
struct Walk<'a> {
    rest: &'a [u8],
    delimiter: u8,
    has_null: bool,
    /// The last quoted element that had backslashes.
    unescaped: Vec<u8>,
}

impl<'a> Walk<'a> {
    /// Whether the whole text is `{}`.
    fn is_empty_array(&self) -> bool {
        let mut bytes = self.rest.iter().filter(|byte| !is_space(**byte));
        bytes.next() == Some(&b'{') && bytes.next() == Some(&b'}') && bytes.next().is_none()
    }

    /// Writes all elements; the length of each dimension, from the outermost.
    fn elements(
        &mut self,
        levels: usize,
        out: &mut Out,
        write_element: &mut impl FnMut(&[u8], &mut Out) -> Option<()>,
    ) -> Option<[i32; LEVELS_MAX]> {
        // Of the level itself, once one has been closed; and of the one that is open.
        let (mut lengths, mut counts) = ([0_i32; LEVELS_MAX], [0_i32; LEVELS_MAX]);
        let mut depth = 0;
        loop {
            // Down to the elements.
            while depth < levels {
                self.expect(b'{')?;
                *counts.get_mut(depth)? = 0;
                depth += 1;
            }
            self.element(out, write_element)?;
            // Up through every level that ends here.
            loop {
                let level = depth.checked_sub(1)?;
                let count = counts.get_mut(level)?;
                *count = count.checked_add(1)?;
                if self.take(self.delimiter) {
                    break;
                }
                self.expect(b'}')?;
                let length = lengths.get_mut(level)?;
                if *length != 0 && *length != *count {
                    return None;
                }
                *length = *count;
                depth = level;
                if depth == 0 {
                    self.skip_space();
                    return self.rest.is_empty().then_some(lengths);
                }
            }
        }
    }

    fn element(
        &mut self,
        out: &mut Out,
        write_element: &mut impl FnMut(&[u8], &mut Out) -> Option<()>,
    ) -> Option<()> {
        self.skip_space();
        if let Some(inside) = self.rest.strip_prefix(b"\"") {
            return self.quoted(inside, out, write_element);
        }
        let ends = |byte: u8| byte == self.delimiter || matches!(byte, b'{' | b'}' | b'"' | b'\\');
        let end = self.rest.iter().position(|byte| ends(*byte))?;
        let (bare, rest) = self.rest.split_at_checked(end)?;
        if rest.first().is_none_or(|byte| *byte != self.delimiter && *byte != b'}') {
            return None;
        }
        self.rest = rest;
        let blanks = bare.iter().rev().take_while(|byte| is_space(**byte)).count();
        let bare = bare.get(..bare.len() - blanks)?;
        if bare.eq_ignore_ascii_case(b"null") {
            self.has_null = true;
            return out.null();
        }
        if bare.is_empty() { None } else { write_element(bare, out) }
    }

    /// An element whose quote is passed.
    fn quoted(
        &mut self,
        inside: &'a [u8],
        out: &mut Out,
        write_element: &mut impl FnMut(&[u8], &mut Out) -> Option<()>,
    ) -> Option<()> {
        let mut end = memchr::memchr2(b'"', b'\\', inside)?;
        if inside.get(end) == Some(&b'"') {
            self.rest = inside.get(end + 1..)?;
            return write_element(inside.get(..end)?, out);
        }
        self.unescaped.clear();
        let mut left = inside;
        while left.get(end) == Some(&b'\\') {
            self.unescaped.extend_from_slice(left.get(..end)?);
            self.unescaped.push(*left.get(end + 1)?);
            left = left.get(end + 2..)?;
            end = memchr::memchr2(b'"', b'\\', left)?;
        }
        self.unescaped.extend_from_slice(left.get(..end)?);
        self.rest = left.get(end + 1..)?;
        write_element(&self.unescaped, out)
    }

    fn skip_space(&mut self) {
        while let Some((byte, rest)) = self.rest.split_first()
            && is_space(*byte)
        {
            self.rest = rest;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dimensions with their lengths, and the elements.
    fn read(value: &str) -> Option<(Vec<i32>, Vec<Option<String>>)> {
        let mut bytes = [0; 1024];
        let mut out = Out::new(&mut bytes);
        write(value.as_bytes(), Elements { oid: 25, delimiter: b',' }, &mut out, |element, out| {
            out.sized(|out| out.extend(element))
        })?;
        let length = out.length();
        let mut words = bytes[..length].chunks(4).map(|word| i32::from_be_bytes(word.try_into().unwrap()));
        let (levels, has_null) = (words.next().unwrap(), words.next().unwrap());
        assert_eq!(words.next(), Some(25));
        let lengths: Vec<i32> =
            (0..levels).map(|_| (words.next().unwrap(), words.next().unwrap()).0).collect();
        let mut rest = &bytes[12 + 8 * lengths.len()..length];
        let mut elements = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let (element, after) = after.split_at(usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0));
            rest = after;
            let is_null = i32::from_be_bytes(*length) < 0;
            elements.push((!is_null).then(|| String::from_utf8(element.to_vec()).unwrap()));
        }
        assert_eq!(has_null != 0, elements.contains(&None));
        Some((lengths, elements))
    }

    #[test]
    fn elements_stand_in_braces() {
        let some = |elements: &[&str]| elements.iter().map(|one| Some((*one).to_owned())).collect::<Vec<_>>();
        assert_eq!(read("{}"), Some((vec![], vec![])));
        assert_eq!(read(" { } "), Some((vec![], vec![])));
        assert_eq!(read("{a}"), Some((vec![1], some(&["a"]))));
        assert_eq!(read(" { a b ,\"c\\\"\\\\,\" ,\"\"}"), Some((vec![3], some(&["a b", "c\"\\,", ""]))));
        assert_eq!(read("{Null,\"null\"}"), Some((vec![2], vec![None, Some("null".to_owned())])));
        assert_eq!(read("{{1,2},{3,4},{5,6}}"), Some((vec![3, 2], some(&["1", "2", "3", "4", "5", "6"]))));
        assert_eq!(read("{{{{{{x}}}}}}"), Some((vec![1; 6], some(&["x"]))));
    }

    #[test]
    fn what_is_unusual_is_left_to_the_server() {
        for uncertain in [
            "",
            "a",
            "{",
            "}",
            "{a",
            "{a}}",
            "{a}b",
            "{,}",
            "{a,}",
            "{,a}",
            "{a\\,b}",
            "{a\"b\"}",
            "{\"a\"b}",
            "{\"a}",
            "{\"a\\",
            "{{}}",
            "{{1},{}}",
            "{{1},{1,2}}",
            "{{1},2}",
            "{1,{2}}",
            "{{1}{2}}",
            "{{1},NULL}",
            "{{{{{{{x}}}}}}}",
            "[0:1]={1,2}",
        ] {
            assert_eq!(read(uncertain), None, "{uncertain}");
        }
    }
}
