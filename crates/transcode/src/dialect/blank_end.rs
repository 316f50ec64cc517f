//! Blank lines behind the last record of a file of one column, whose end is not seen before it is read.

use super::WINDOW_BYTES;
use super::footer::FOOTER_LINES_MAX;

/// Where the blank lines at the end of these bytes begin, the last lines of a file of one column, and how
/// many they are. `None` if there are none, or others among the records above them: then they are records,
/// too, as in a file whose tail was seen.
pub fn blank_end(bytes: &[u8]) -> Option<(usize, u64)> {
    let from = bytes.len().saturating_sub(WINDOW_BYTES);
    let tail = &bytes[from..];
    let ending = if tail.contains(&b'\n') { b'\n' } else { b'\r' };
    let whole = if from == 0 { 0 } else { memchr::memchr(ending, tail)? + 1 };
    let lines: Vec<&[u8]> = tail[whole..].split_inclusive(|byte| *byte == ending).collect();
    let is_blank = |line: &&&[u8]| line.trim_ascii().is_empty();
    let is_empty = |line: &&[u8]| matches!(line.trim_ascii(), b"" | b"\"\"");
    let blank = lines.iter().rev().take_while(is_blank).count();
    let (records, behind) = lines.split_at(lines.len() - blank);
    if blank == 0 || records.is_empty() || records.iter().any(is_empty) {
        return None;
    }
    let left_out = &behind[blank.saturating_sub(FOOTER_LINES_MAX)..];
    let left_out_bytes: usize = left_out.iter().map(|line| line.len()).sum();
    Some((bytes.len() - left_out_bytes, left_out.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_behind_the_last_record_are_counted() {
        for (bytes, end) in [
            ("a\nb\n", None),
            ("a\nb\n\n", Some((4, 1))),
            ("a\r\nb\r\n\r\n \r\n", Some((6, 2))),
            ("a\rb\r\r", Some((4, 1))),
            ("a\n\nb\n\n", None),
            ("a\n\"\"\nb\n\n", None),
            ("a\nb\n\"\"\n", None),
            ("\n\n", None),
        ] {
            assert_eq!(blank_end(bytes.as_bytes()), end, "{bytes:?}");
        }
        let long = "word\n".repeat(WINDOW_BYTES);
        assert_eq!(blank_end(format!("{long}\n").as_bytes()), Some((long.len(), 1)));
    }
}
