//! pgvector's `vector`: `vector_recv` takes the count of numbers, two bytes of zero, and the numbers as
//! `real`s. It checks the column's dimensions as input does.
//!
//! Certain are decimal numbers with commas between in brackets: `vector_in` in pgvector's `vector.c` reads
//! them with `strtof`, as `real` is read.

use super::{float, out::Out};

/// `VECTOR_MAX_DIM`
const DIMENSIONS_MAX: usize = 16_000;

/// Writes the value without its length.
pub(super) fn write(value: &[u8], out: &mut Out) -> Option<()> {
    let numbers = value.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let start = out.length();
    out.put([0; 4])?;
    let mut count = 0_usize;
    for number in numbers.split(|byte| *byte == b',') {
        out.put(float::parse_4(number)?.to_be_bytes())?;
        count += 1;
    }
    if count > DIMENSIONS_MAX {
        return None;
    }
    out.put_at(start, i16::try_from(count).ok()?.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::out::written;
    use super::*;

    #[test]
    fn numbers_stand_in_brackets() {
        let written = |value: &[u8]| written(|out| write(value, out));
        assert_eq!(written(b"[1, -2.5]"), Some(vec![0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0]));
        for uncertain in
            [b"".as_slice(), b"[]", b"1,2", b"[1,]", b"[nan]", b"[1e39]", b"[1 2]", b"[1]]", b"[", b"]"]
        {
            assert_eq!(written(uncertain), None);
        }
    }
}
