//! CSV that is hard to split: every field is quoted, and quotes, commas and newlines abound inside.
//!
//! About two newlines in three are data, not ends of records. A record is about 200 bytes.

use crate::Rows;
use crate::random::Random;
use crate::row::push_number;
use crate::words::TITLE_WORDS;

/// The rows: `id`, `subject`, `body`.
#[derive(Debug)]
pub struct Quoted {
    random: Random,
    row: u64,
}

impl Quoted {
    /// An endless supply.
    #[must_use]
    pub fn new(seed: u64) -> Quoted {
        Quoted { random: Random::new(seed, 101), row: 0 }
    }

    fn push_text(&mut self, out: &mut Vec<u8>, words: u32) {
        out.push(b'"');
        for _ in 0..words {
            let word = self.random.pick(TITLE_WORDS).as_bytes();
            match self.random.below(12) {
                0 => {
                    out.extend_from_slice(b"\"\"");
                    out.extend_from_slice(word);
                    out.extend_from_slice(b"\"\"");
                }
                1 => out.extend_from_slice(b",\n"),
                2 => {
                    out.extend_from_slice(word);
                    out.push(b',');
                }
                _ => out.extend_from_slice(word),
            }
            out.push(b' ');
        }
        out.push(b'"');
    }
}

impl Rows for Quoted {
    fn header(&self) -> String {
        "id,subject,body\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.row += 1;
        out.push(b'"');
        push_number(out, self.row);
        out.extend_from_slice(b"\",");
        self.push_text(out, 4);
        out.push(b',');
        let words = 16 + self.random.below(16);
        self.push_text(out, words);
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Limit, write_rows};

    #[test]
    fn most_newlines_are_data_and_quotes_are_balanced() {
        let mut bytes = Vec::new();
        let written = write_rows(&mut bytes, &mut Quoted::new(1), Limit::Bytes(200_000)).unwrap();
        assert!(written.plain_bytes >= 200_000 && written.plain_bytes == bytes.len() as u64);
        assert_eq!(bytes.iter().filter(|&&byte| byte == b'"').count() % 2, 0);
        let newlines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let inside = newlines - written.rows - 1;
        assert!(inside > written.rows, "{inside} newlines inside {} rows", written.rows);
    }
}
