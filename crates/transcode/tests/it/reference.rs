//! COPY's line reading written down a second time, as plainly as possible: it sees the whole input, looks
//! ahead freely and learns the line ending from the first line, as the server does in one COPY FROM STDIN.

use howdah_model::{Eol, Format, FormatKind};
use std::ops::Range;

/// What one COPY makes of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) eol: Option<Eol>,
    /// Records without their line endings.
    pub(crate) records: Vec<Range<usize>>,
    /// The last record has a line ending (or there is none).
    pub(crate) last_is_ended: bool,
    pub(crate) marker: Option<usize>,
    /// COPY stops at the record after the last of `records`.
    pub(crate) refused: bool,
}

enum Line {
    Ended { length: usize, next: usize },
    EndOfInput { length: usize },
    Marker { at: usize },
    Error,
}

pub(crate) fn copy(format: &Format, version: u32, input: &[u8]) -> Outcome {
    let mut outcome =
        Outcome { eol: None, records: Vec::new(), last_is_ended: true, marker: None, refused: false };
    let mut start = 0;
    loop {
        match read_line(format, version, &mut outcome.eol, input, start) {
            Line::Ended { length, next } => {
                outcome.records.push(start..start + length);
                start = next;
                continue;
            }
            Line::EndOfInput { length: 0 } => {}
            Line::EndOfInput { length } => {
                outcome.records.push(start..start + length);
                outcome.last_is_ended = false;
            }
            Line::Marker { at } => {
                outcome.marker = Some(at);
                if at > start {
                    outcome.records.push(start..at);
                    outcome.last_is_ended = false;
                }
            }
            Line::Error => outcome.refused = true,
        }
        return outcome;
    }
}

fn read_line(format: &Format, version: u32, eol: &mut Option<Eol>, input: &[u8], start: usize) -> Line {
    let csv = format.kind == FormatKind::Csv;
    let peek = |at: usize| input.get(at).copied().unwrap_or(0);
    let (mut in_quote, mut last_was_escape) = (false, false);
    let mut at = start;
    while at < input.len() {
        let c = input[at];
        if csv {
            let escape = if format.quote == format.escape { None } else { Some(format.escape) };
            if in_quote && Some(c) == escape {
                last_was_escape = !last_was_escape;
            }
            if c == format.quote && !last_was_escape {
                in_quote = !in_quote;
            }
            if Some(c) != escape {
                last_was_escape = false;
            }
        }
        if c == b'\r' && !in_quote {
            let followed = peek(at + 1) == b'\n';
            return match *eol {
                None | Some(Eol::CrLf) if followed => {
                    *eol = Some(Eol::CrLf);
                    Line::Ended { length: at - start, next: at + 2 }
                }
                None | Some(Eol::Cr) => {
                    *eol = Some(Eol::Cr);
                    Line::Ended { length: at - start, next: at + 1 }
                }
                Some(Eol::CrLf | Eol::Lf) => Line::Error,
            };
        }
        if c == b'\n' && !in_quote {
            if matches!(*eol, Some(Eol::Cr | Eol::CrLf)) {
                return Line::Error;
            }
            *eol = Some(Eol::Lf);
            return Line::Ended { length: at - start, next: at + 1 };
        }
        let watched = if csv { version < 180_000 && at == start } else { true };
        if c == b'\\' && watched {
            if at + 1 == input.len() {
                return Line::EndOfInput { length: at + 1 - start };
            }
            if peek(at + 1) == b'.' {
                match (marker(*eol, peek(at + 2), peek(at + 3)), csv) {
                    (Marker::Yes, _) if version >= 180_000 && at > start => return Line::Error,
                    (Marker::Yes, _) => return Line::Marker { at },
                    (Marker::OtherLineEnding, _) | (Marker::Corrupt, false) => return Line::Error,
                    (Marker::Corrupt, true) => {}
                }
            } else if !csv {
                at += 1;
                at += character_bytes(format, input[at]) - 1;
                at += 1;
                continue;
            }
        }
        at += character_bytes(format, c);
    }
    Line::EndOfInput { length: input.len() - start }
}

enum Marker {
    Yes,
    OtherLineEnding,
    Corrupt,
}

fn marker(eol: Option<Eol>, c1: u8, c2: u8) -> Marker {
    match (eol, c1, c2) {
        (Some(Eol::CrLf), b'\r', b'\n') => Marker::Yes,
        (Some(Eol::CrLf), b'\r', b'\r') => Marker::OtherLineEnding,
        (Some(Eol::CrLf), ..) => Marker::Corrupt,
        (Some(Eol::Lf) | None, b'\n', _) | (Some(Eol::Cr) | None, b'\r', _) => Marker::Yes,
        (_, b'\n' | b'\r', _) => Marker::OtherLineEnding,
        _ => Marker::Corrupt,
    }
}

/// GBK, if the format has an encoding at all.
fn character_bytes(format: &Format, c: u8) -> usize {
    if format.encoding.is_some() && c >= 0x80 { 2 } else { 1 }
}
