//! Whether the type modifier of a column leaves a value as it is: `timestamp(0)` rounds, `numeric(10,2)`
//! rounds, `varchar(3)` cuts blanks off. What it changes may lie in another partition than what the file has.

use super::hash::signed;
use super::key::Numeric;
use howdah_model::BinaryType;
use howdah_model::route::{KeyKind, PartitionKey};

/// `VARHDRSZ`, which modifiers of `varchar` and `numeric` have on top.
const HEADER: i32 = 4;

/// What a modifier leaves as it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exact {
    All,
    /// Multiples of so many microseconds.
    MultiplesOf(i64),
    /// Numbers with so many digits behind the point.
    Decimals(i32),
    /// So many characters.
    Characters(usize),
    /// Nobody knows.
    Nothing,
}

impl Exact {
    pub(super) fn of(key: &PartitionKey) -> Exact {
        let typmod = key.typmod;
        if typmod < 0 || key.kind == KeyKind::Padded {
            // Blanks at the end of `char(n)` do not count.
            return Exact::All;
        }
        let exact = match (key.kind, &key.binary) {
            (KeyKind::Int8, BinaryType::Time | BinaryType::Timestamp | BinaryType::TimestampTz) => {
                let lost = u32::try_from(typmod).ok().and_then(|digits| 6_u32.checked_sub(digits));
                lost.map(|lost| Exact::MultiplesOf(10_i64.pow(lost)))
            }
            // `numeric_typmod_scale` in PostgreSQL's `numeric.c`: eleven bits with a sign.
            (KeyKind::Numeric, _) => Some(Exact::Decimals((((typmod - HEADER) & 0x7ff) ^ 1024) - 1024)),
            (KeyKind::Bytes, BinaryType::Text) => {
                usize::try_from(typmod - HEADER).ok().map(Exact::Characters)
            }
            _ => None,
        };
        exact.unwrap_or(Exact::Nothing)
    }

    /// The value in binary form stays as it is.
    pub(super) fn holds(self, binary: &[u8]) -> bool {
        match self {
            Exact::All => true,
            Exact::MultiplesOf(unit) => signed(binary).is_some_and(|number| number % unit == 0),
            Exact::Decimals(scale) => Numeric::of(binary).is_some_and(|number| number.decimals() <= scale),
            // Bytes that begin no character but go on with one.
            Exact::Characters(most) => {
                binary.len() <= most || binary.iter().filter(|byte| **byte & 0xc0 != 0x80).count() <= most
            }
            Exact::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::BinaryEncoder;
    use howdah_model::Format;

    fn is_exact(kind: KeyKind, binary: BinaryType, typmod: i32, text: &str) -> bool {
        let reader = BinaryEncoder::new(&Format::text(), None, &[BinaryType::Text], "UTC").unwrap();
        let mut bytes = Vec::new();
        reader.write_value(&binary, text.as_bytes(), &mut bytes).unwrap();
        Exact::of(&PartitionKey { field_no: 0, binary, kind, typmod }).holds(&bytes)
    }

    #[test]
    fn what_a_modifier_changes_is_told() {
        let time = |typmod, text| is_exact(KeyKind::Int8, BinaryType::Timestamp, typmod, text);
        assert!(
            time(0, "2024-01-31 23:59:59")
                && time(3, "1999-01-31 23:59:59.125")
                && time(-1, "2024-01-31 23:59:59.7")
        );
        assert!(
            !time(0, "2024-01-31 23:59:59.7")
                && !time(0, "1999-01-31 23:59:59.7")
                && !time(3, "2024-01-31 23:59:59.1251")
        );
        let number = |scale: i32, text| {
            is_exact(KeyKind::Numeric, BinaryType::Numeric, ((10 << 16) | (scale & 0x7ff)) + 4, text)
        };
        assert!(
            number(2, "1.25")
                && number(2, "1.2500")
                && number(2, "-100")
                && number(2, "0")
                && number(0, "10000")
        );
        assert!(!number(2, "1.255") && !number(0, "0.5") && !number(2, "0.00001"));
        assert!(number(-2, "1200") && number(-2, "120000000") && !number(-2, "1250"));
        let text = |text| is_exact(KeyKind::Bytes, BinaryType::Text, 3 + 4, text);
        assert!(text("abc") && text("äää") && !text("abc "));
    }
}
