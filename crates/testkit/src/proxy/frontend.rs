//! Walks over what a PostgreSQL client sends, to find its COMMIT.
//!
//! Enters: the bytes of one connection, in any pieces. Leaves: where in these bytes a COMMIT message ends
//! (PostgreSQL documentation, "Frontend/Backend Protocol", message formats). Known forms: a simple query that
//! begins or ends with COMMIT, and the execution of a prepared one. Bytes of other protocols find nothing.

use std::collections::HashSet;
use std::ops::Range;

/// So much of a message is kept for looking at.
const KEPT_BYTES_MAX: usize = 256;
/// And so much of its end: COMMIT and what may stand around it.
const TAIL_BYTES_MAX: usize = 16;
/// Length and code; the first messages of a connection have no type byte.
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// The reader's place in a connection.
#[derive(Debug, Default)]
pub(super) struct FrontendReader {
    /// The start-up message has gone by: messages have a type byte now.
    started: bool,
    /// The bytes of the current message, as far as they are kept.
    kept: Vec<u8>,
    /// Its last bytes so far.
    tail: Vec<u8>,
    /// Bytes of the current message seen so far.
    seen: u64,
    /// Names of prepared statements that are a COMMIT.
    prepared: HashSet<Vec<u8>>,
    /// The portal bound last runs one of them.
    bound: bool,
}

impl FrontendReader {
    /// Reads on; returns where the first COMMIT that ends in these bytes begins and ends. It may have begun
    /// in earlier bytes: then the start is 0.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<Range<usize>> {
        let mut found = None;
        let mut at = 0;
        let mut start = 0;
        while at < bytes.len() {
            at += self.take(&bytes[at..]);
            if self.length().is_some_and(|length| self.seen >= length) {
                let is_commit = self.end_of_message();
                if is_commit && found.is_none() {
                    found = Some(start..at);
                }
                start = at;
            }
        }
        found
    }

    /// Takes bytes up to the end of the head, or of the message; returns how many.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let wanted = match self.length() {
            Some(length) => length - self.seen,
            None => self.head_bytes() as u64 - self.seen,
        };
        let taken = usize::try_from(wanted).unwrap_or(usize::MAX).min(bytes.len());
        let kept = taken.min(KEPT_BYTES_MAX.saturating_sub(self.kept.len()));
        self.kept.extend_from_slice(&bytes[..kept]);
        self.tail.extend_from_slice(&bytes[taken.saturating_sub(TAIL_BYTES_MAX)..taken]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES_MAX));
        self.seen += taken as u64;
        taken
    }

    fn head_bytes(&self) -> usize {
        if self.started { 5 } else { 4 }
    }

    /// The whole message's length, once its head is there.
    fn length(&self) -> Option<u64> {
        let type_bytes = self.head_bytes() - 4;
        let length = self.kept.get(type_bytes..self.head_bytes())?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        // Never shorter than the head: bytes of another protocol must not stop the walk.
        Some((u64::from(length) + type_bytes as u64).max(self.head_bytes() as u64))
    }

    /// Looks at a complete message; whether it makes the server commit.
    fn end_of_message(&mut self) -> bool {
        self.seen = 0;
        let message = std::mem::take(&mut self.kept);
        let tail = std::mem::take(&mut self.tail);
        if !self.started {
            let code = message.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
            self.started = !matches!(code, Some(SSL_REQUEST | GSS_REQUEST));
            return false;
        }
        let mut strings = message.get(5..).unwrap_or_default().split(|byte| *byte == 0);
        let mut next = || strings.next().unwrap_or_default();
        match message[0] {
            b'Q' => is_commit(next()) || ends_with_commit(&tail),
            b'P' => {
                let name = next().to_vec();
                if is_commit(next()) {
                    self.prepared.insert(name);
                } else {
                    self.prepared.remove(&name);
                }
                false
            }
            b'B' => {
                next();
                self.bound = self.prepared.contains(next());
                false
            }
            b'E' => self.bound,
            _ => false,
        }
    }
}

fn is_commit(sql: &[u8]) -> bool {
    sql.trim_ascii_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"commit"))
}

/// The last statement of a query is COMMIT. Behind it stands the zero that ends the text.
fn ends_with_commit(tail: &[u8]) -> bool {
    let tail = tail.strip_suffix(b"\0").unwrap_or(tail).trim_ascii_end();
    let tail = tail.strip_suffix(b";").unwrap_or(tail).trim_ascii_end();
    let Some(at) = tail.len().checked_sub(b"commit".len()) else { return false };
    let (before, word) = tail.split_at(at);
    word.eq_ignore_ascii_case(b"commit")
        && before.last().is_some_and(|byte| *byte == b';' || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn start_up() -> Vec<u8> {
        [&8u32.to_be_bytes()[..], &SSL_REQUEST.to_be_bytes(), &9u32.to_be_bytes(), &[0, 3, 0, 0], b"\0"]
            .concat()
    }

    #[test]
    fn a_commit_is_found_however_the_bytes_are_cut() {
        let before = [start_up(), message(b'd', &[b'x'; 1000]), message(b'Q', b"COMMENT ON\0")].concat();
        let commit = message(b'Q', b" commit\0");
        let stream = [&before[..], &commit, &message(b'Q', b"SELECT 1\0")].concat();
        for size in [1, 2, 7, 600, 5000] {
            let mut reader = FrontendReader::default();
            let mut ends = Vec::new();
            for (number, piece) in stream.chunks(size).enumerate() {
                ends.extend(reader.read(piece).map(|range| number * size + range.end));
            }
            assert_eq!(ends, [before.len() + commit.len()], "pieces of {size}");
        }
    }

    #[test]
    fn a_commit_behind_other_statements_of_a_query_is_found() {
        let is_found = |sql: &str| {
            let stream = [start_up(), message(b'd', b"; COMMIT\0"), message(b'Q', sql.as_bytes())].concat();
            [1, 16, 5000].map(|size| {
                let mut reader = FrontendReader::default();
                stream.chunks(size).any(|piece| reader.read(piece).is_some())
            })
        };
        let long = "x".repeat(1000);
        for sql in ["UPDATE job; COMMIT\0", "BEGIN;commit ;\n\0", &format!("SELECT '{long}';\nCOMMIT\0")] {
            assert_eq!(is_found(sql), [true; 3], "{sql}");
        }
        for sql in [
            "COMMENT ON COMMITS\0",
            "SELECT ; COMMIT DROP\0",
            "SELECT xcommit\0",
            &format!("SELECT '{long}'\0"),
        ] {
            assert_eq!(is_found(sql), [false; 3], "{sql}");
        }
    }

    #[test]
    fn a_prepared_commit_is_found_when_it_is_executed() {
        let mut reader = FrontendReader::default();
        assert_eq!(reader.read(&start_up()), None);
        assert_eq!(reader.read(&message(b'P', b"s1\0COMMIT\0\0\0")), None);
        assert_eq!(reader.read(&message(b'P', b"s2\0SELECT 1\0\0\0")), None);
        assert_eq!(reader.read(&message(b'B', b"\0s2\0\0\0")), None);
        assert_eq!(reader.read(&message(b'E', b"\0\0\0\0\0")), None);
        assert_eq!(reader.read(&message(b'B', b"\0s1\0\0\0")), None);
        assert_eq!(reader.read(&message(b'E', b"\0\0\0\0\0")), Some(0..10));
    }
}
