//! Bytes that PostgreSQL cannot store in text: those that are no character of UTF-8, and NUL.

use crate::cells::{Cells, Record};
use howdah_model::{Mend, Nul};

/// Puts `nul` in the place of NUL bytes, and U+FFFD in that of what is no character: one for each maximal
/// part of a character, as the Unicode Standard (section 3.9) recommends. Says what there was.
pub(super) fn replace(cells: &Cells, record: &mut Record, nul: Nul, mends: &mut Vec<Mend>) {
    let has_nul = record.text().contains(&0);
    let broken = record.values().any(|value| std::str::from_utf8(value).is_err());
    if has_nul {
        mends.push(Mend::NulBytes);
        replace_nul(cells, record, stand_in(nul));
    }
    if broken {
        mends.push(Mend::BrokenBytes);
        record.rewrite(cells, |value| String::from_utf8_lossy(value).into_owned().into_bytes());
    }
}

/// What stands in the place of a NUL byte in a record that is mended.
pub(super) fn stand_in(nul: Nul) -> &'static [u8] {
    match nul {
        Nul::Replace => "\u{fffd}".as_bytes(),
        Nul::Reject | Nul::Strip => b"",
    }
}

/// Puts these bytes in the place of each NUL.
pub(super) fn replace_nul(cells: &Cells, record: &mut Record, stand_in: &[u8]) {
    record.rewrite(cells, |value| {
        let parts: Vec<&[u8]> = value.split(|byte| *byte == 0).collect();
        parts.join(stand_in)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::Dialect;

    #[test]
    fn values_lose_nul_and_broken_characters_only() {
        let cells = Cells::new(&Dialect::csv()).unwrap();
        let (mut record, mut mends) = (Record::default(), Vec::new());
        cells.read(b"a\0b,\xE9t\xC3\xA9\xF0\x9F,\0,\"\0\"\n", true, &mut record);
        replace(&cells, &mut record, Nul::Reject, &mut mends);
        let values: Vec<_> =
            record.values().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        assert_eq!(values, ["ab", "\u{fffd}té\u{fffd}", "", ""]);
        assert_eq!(mends, [Mend::NulBytes, Mend::BrokenBytes]);
        assert!(record.is_null(2) && !record.is_null(3));
    }
}
