//! Single records: the first of a file, the first of a chunk, and the one a server's error means.
//!
//! Short runs of the [walker](super::walk); no speed is needed here.

use super::state::State;
use super::walk::{Step, Walker};
use super::{Rules, marker_start};
use howdah_model::{Eol, Format, FormatKind, Result};
use std::ops::Range;

/// The first record of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstRecord {
    /// How it ends, and so how all records must end. `None`: the file ends without a line ending, or with
    /// an end-of-data marker.
    pub eol: Option<Eol>,
    /// One past its last byte, the line ending included.
    pub end: usize,
    /// An end-of-data marker follows at `end`: there is no more data.
    pub ended: bool,
}

/// One record of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) start: usize,
    /// Its bytes without the line ending.
    pub(crate) content: Range<usize>,
    /// What COPY says if a byte of it makes COPY stop.
    pub(crate) offence: Option<&'static str>,
}

/// A byte at which COPY of the whole file stops, although COPY of the chunk alone might not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offence {
    /// The record of the chunk it lies in, counted from 0.
    pub record: u64,
    /// Its offset in the chunk.
    pub byte: usize,
    /// What COPY says about it.
    pub message: &'static str,
    /// COPY's hint.
    pub hint: &'static str,
}

impl Rules {
    /// The end of the first record in `bytes`, which begin where a file or its data begins, and how it
    /// ends. This is what a COPY of the file would fix for all records. `None`: more bytes are needed.
    ///
    /// # Errors
    /// As [`Rules::new`].
    pub fn first_record(
        format: &Format,
        server_version: u32,
        bytes: &[u8],
        at_end_of_file: bool,
    ) -> Result<Option<FirstRecord>> {
        // Without an agreed line ending the walker reports the first one as a stray byte.
        let rules = Rules::new(format, server_version, None)?;
        let mut walker = Walker::new(&rules, State::START);
        for (at, &byte) in bytes.iter().enumerate() {
            let found = match (walker.step(byte), bytes.get(at + 1)) {
                (Step::StrayLf, _) => (Some(Eol::Lf), at + 1),
                (Step::StrayCr, None) if !at_end_of_file => return Ok(None),
                (Step::StrayCr, Some(b'\n')) => (Some(Eol::CrLf), at + 2),
                (Step::StrayCr, _) => (Some(Eol::Cr), at + 1),
                (Step::EndMarker { length }, _) => {
                    // The marker lies in `bytes`, so it begins at or behind 0.
                    let end = usize::try_from(marker_start(at, length)).unwrap_or(0);
                    return Ok(Some(FirstRecord { eol: None, end, ended: true }));
                }
                (Step::Inside | Step::Border, _) => continue,
            };
            return Ok(Some(FirstRecord { eol: found.0, end: found.1, ended: false }));
        }
        Ok(at_end_of_file.then_some(FirstRecord { eol: None, end: bytes.len(), ended: false }))
    }

    /// Makes sure that the server, which sees only this chunk, learns the line ending of the file from the
    /// chunk's first record.
    ///
    /// # Errors
    /// The byte at which COPY of the whole file would have stopped.
    pub fn check_first_line(&self, chunk: &[u8]) -> Result<(), Offence> {
        let Some(eol) = self.eol else { return Ok(()) };
        let mut walker = Walker::new(self, State::START);
        for (at, &byte) in chunk.iter().enumerate() {
            let before = walker.state;
            match walker.step(byte) {
                // The server refuses a marker here whatever the line ending, and says so better.
                Step::Inside | Step::Border if self.is_misplaced_marker(before, byte) => return Ok(()),
                Step::Inside => {}
                Step::EndMarker { .. } => return Ok(()),
                Step::StrayLf => return Err(self.stray(b'\n', 0, at)),
                Step::StrayCr if eol == Eol::CrLf => return Err(self.stray(b'\r', 0, at - 1)),
                Step::StrayCr => return Err(self.stray(b'\r', 0, at)),
                // The server would take `\r\n` for the line ending of the file.
                Step::Border if eol == Eol::Cr && chunk.get(at + 1) == Some(&b'\n') => {
                    return Err(self.stray(b'\n', 1, at + 1));
                }
                Step::Border => return Ok(()),
            }
        }
        match chunk {
            // Nothing follows that could complete the line ending.
            [.., b'\r'] if walker.state.is_after_cr() => Err(self.stray(b'\r', 0, chunk.len() - 1)),
            _ => Ok(()),
        }
    }

    /// text: `byte` shows that the `\.` before it is no end-of-data marker but an error.
    fn is_misplaced_marker(&self, before: State, byte: u8) -> bool {
        let ends_line = matches!(byte, b'\n' | b'\r');
        let after_dot = self.kind == FormatKind::Text && before.is_after_backslash_dot();
        after_dot && (!ends_line || !before.empty && !self.loose_marker)
    }

    fn stray(&self, byte: u8, record: u64, at: usize) -> Offence {
        let (message, hint) = match (self.kind, byte) {
            (FormatKind::Csv, b'\n') => {
                ("unquoted newline found in data", "Use a quoted CSV field to represent newline.")
            }
            (FormatKind::Csv, _) => (
                "unquoted carriage return found in data",
                "Use a quoted CSV field to represent carriage return.",
            ),
            (FormatKind::Text, b'\n') => {
                ("literal newline found in data", "Use \"\\n\" to represent newline.")
            }
            (FormatKind::Text, _) => {
                ("literal carriage return found in data", "Use \"\\r\" to represent carriage return.")
            }
        };
        Offence { record, byte: at, message, hint }
    }

    /// The records of a chunk. Those behind an offence are not what COPY would see.
    pub(crate) fn records(&self, chunk: &[u8]) -> impl Iterator<Item = Record> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let record = self.record(chunk, start)?;
            start = record.1;
            Some(record.0)
        })
    }

    /// The record that begins at `start`, and where the next one begins.
    fn record(&self, chunk: &[u8], start: usize) -> Option<(Record, usize)> {
        let mut walker = Walker::new(self, State::START);
        let mut offence = None;
        for (at, &byte) in chunk.iter().enumerate().skip(start) {
            let before = walker.state;
            let step = walker.step(byte);
            if self.is_misplaced_marker(before, byte) {
                offence = offence.or(Some("end-of-copy marker is not alone on its line"));
            }
            let (end, next) = match step {
                Step::Inside => continue,
                Step::StrayLf | Step::StrayCr => {
                    let stray = if step == Step::StrayLf { b'\n' } else { b'\r' };
                    offence = offence.or(Some(self.stray(stray, 0, at).message));
                    continue;
                }
                Step::Border => (at + 1 - self.eol.map_or(0, eol_bytes), at + 1),
                // Something before the marker is a record; the marker itself is not.
                Step::EndMarker { .. } if before.empty => return None,
                Step::EndMarker { length } => (at + 1 - length, chunk.len()),
            };
            return Some((Record { start, content: start..end, offence }, next));
        }
        if walker.state.is_after_cr() {
            offence = offence.or(Some(self.stray(b'\r', 0, start).message));
        }
        // At the end of the file the server looks for a line ending behind it, too.
        if self.kind == FormatKind::Text && walker.state.is_after_backslash_dot() {
            offence = offence.or(Some("end-of-copy marker corrupt"));
        }
        let record = Record { start, content: start..chunk.len(), offence };
        (start < chunk.len()).then_some((record, chunk.len()))
    }

    /// Where the `n`-th record of a chunk begins, counted from 0. `None` if there are fewer.
    pub fn record_start(&self, chunk: &[u8], n: u64) -> Option<usize> {
        let mut walker = Walker::new(self, State::START);
        let mut records_ended = 0;
        for (at, &byte) in chunk.iter().enumerate() {
            if records_ended == n && walker.state.at_record_start() && !walker.state.ended() {
                return Some(at);
            }
            records_ended += u64::from(walker.step(byte) == Step::Border);
        }
        None
    }

    /// The record, counted from 0, that the server means by "line N" in the context of an error while it
    /// copies this chunk. It counts one line for each record and one more for each line ending inside
    /// quotes: `\n` in a file of `\n`, else `\r`, which also stands for "not known yet" in the first record
    /// of a COPY. `None` if the chunk has fewer lines.
    pub fn record_of_line(&self, chunk: &[u8], line: u64) -> Option<u64> {
        let mut walker = Walker::new(self, State::START);
        let (mut record, mut line_now) = (0, 1);
        for &byte in chunk {
            // To servers that read lines before they convert them (up to 13), a NUL inside quotes is an
            // escape where there is no other: the lines they count from here on are not those of the file.
            // They refuse this record, for the NUL if for nothing else.
            let lost = byte == 0 && walker.state.in_quote && self.escape.is_none();
            if line_now >= line || lost {
                return Some(record);
            }
            if walker.step(byte) == Step::Border {
                record += 1;
                line_now += 1;
            } else if walker.state.in_quote {
                let counted = if self.eol == Some(Eol::Lf) && record > 0 { b'\n' } else { b'\r' };
                line_now += u64::from(byte == counted);
            }
        }
        (line_now >= line && !walker.state.at_record_start()).then_some(record)
    }
}

fn eol_bytes(eol: Eol) -> usize {
    match eol {
        Eol::Lf | Eol::Cr => 1,
        Eol::CrLf => 2,
    }
}
