//! What it costs client and server together to move records, in the two forms in which they can be sent.

use howdah_model::BinaryType;

/// Records to be sent.
pub(super) struct Sent<'a> {
    pub(super) records: u64,
    /// As they stand in the file.
    pub(super) text_bytes: u64,
    /// As binary rows.
    pub(super) binary_bytes: u64,
    pub(super) types: &'a [BinaryType],
}

/// CPU nanoseconds, client and server, as COPY text.
pub(super) fn of_text(sent: &Sent) -> u64 {
    let values: u64 = sent.types.iter().map(text_value_ns).sum();
    sent.records * values + sent.text_bytes * 3
}

/// The same in binary.
pub(super) fn of_binary(sent: &Sent) -> u64 {
    let values: u64 = sent.types.iter().map(binary_value_ns).sum();
    sent.records * values + sent.binary_bytes
}

fn text_value_ns(of: &BinaryType) -> u64 {
    match of {
        BinaryType::Text => 10,
        _ => 60,
    }
}

fn binary_value_ns(of: &BinaryType) -> u64 {
    match of {
        BinaryType::Text => 40,
        _ => 30,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cheaper_in_binary(types: &[BinaryType], text_bytes: u64, binary_bytes: u64) -> bool {
        let sent = Sent { records: 1, text_bytes, binary_bytes, types };
        of_binary(&sent) < of_text(&sent)
    }

    #[test]
    fn typed_columns_are_cheaper_in_binary_and_characters_as_text() {
        use BinaryType::{Date, Int4, Numeric, Text, Timestamp};
        assert!(cheaper_in_binary(&[Int4, Numeric, Date, Timestamp], 45, 50));
        assert!(!cheaper_in_binary(&[Text, Text, Text, Text], 40, 52));
    }
}
