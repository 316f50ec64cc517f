//! Encodings in which a multi-byte character may contain ASCII bytes, and how long their characters are.
//!
//! PostgreSQL allows them for clients only. Lengths are those of `pg_encoding_mblen` in `wchar.c`.

/// Encodings with the same character lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Half-width kana (0xA1 to 0xDF) are single bytes, all other high bytes begin a pair.
    ShiftJis,
    /// Every high byte begins a pair. A four-byte character of GB18030 is two pairs.
    Pairs,
    /// As extended Unix code: 0x8F begins a triple, other high bytes a pair.
    Johab,
}

impl Family {
    /// Bytes that follow `first` in the same character.
    pub(super) fn bytes_after(self, first: u8) -> u8 {
        match (self, first) {
            (_, 0..0x80) | (Family::ShiftJis, 0xA1..=0xDF) => 0,
            (Family::Johab, 0x8F) => 2,
            _ => 1,
        }
    }
}

/// The family of an encoding by any name PostgreSQL knows it under (`pg_encname_tbl`): letters and digits
/// count, case does not. `None` for all encodings that embed no ASCII.
pub(super) fn family(encoding: &str) -> Option<Family> {
    let name: String =
        encoding.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match name.as_str() {
        "sjis" | "shiftjis" | "mskanji" | "win932" | "windows932" | "shiftjis2004" => Some(Family::ShiftJis),
        "big5" | "win950" | "windows950" | "gbk" | "win936" | "windows936" | "gb18030" | "uhc" | "win949"
        | "windows949" => Some(Family::Pairs),
        "johab" => Some(Family::Johab),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_as_the_server_matches_them() {
        assert_eq!(family("Shift_JIS-2004"), Some(Family::ShiftJis));
        assert_eq!(family("GB18030"), Some(Family::Pairs));
        assert_eq!(family("UTF8"), None);
        assert_eq!(family("EUC_JP"), None);
    }
}
