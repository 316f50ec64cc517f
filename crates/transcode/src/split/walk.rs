//! The record automaton, one byte at a time.
//!
//! This is the full truth about records; the fast scanners take over only where blocks of 64 bytes tell as
//! much, and hand back to this one wherever an end-of-data marker may stand. It refuses nothing: bytes at
//! which COPY would stop are reported as strays and passed over.

use super::Rules;
use super::state::{Phase, State};
use howdah_model::{Eol, FormatKind};

/// What a byte meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A part of the record, or of what follows the end of the data.
    Inside,
    /// The last byte of a record.
    Border,
    /// The last byte of an end-of-data marker of this many bytes, its line ending included.
    EndMarker { length: usize },
    /// An unquoted `\n` that does not end a record of this file.
    StrayLf,
    /// An unquoted `\r` that does not end a record of this file. In a file of `\r\n` it is found one byte
    /// later.
    StrayCr,
}

/// The automaton on its way.
#[derive(Debug)]
pub(super) struct Walker<'r> {
    rules: &'r Rules,
    pub(super) state: State,
}

impl<'r> Walker<'r> {
    pub(super) fn new(rules: &'r Rules, state: State) -> Walker<'r> {
        Walker { rules, state }
    }

    /// Takes the next byte.
    #[inline]
    pub(super) fn step(&mut self, byte: u8) -> Step {
        if self.state.phase == Phase::Ended {
            return Step::Inside;
        }
        if self.state.character_bytes_left > 0 {
            self.state.character_bytes_left -= 1;
            return Step::Inside;
        }
        if let Some(step) = self.finish_marker(byte) {
            return step;
        }
        let step = match self.rules.kind {
            FormatKind::Csv => self.step_csv(byte),
            FormatKind::Text => self.step_text(byte),
        };
        if let Some(family) = self.rules.embedded_ascii {
            self.state.character_bytes_left = family.bytes_after(byte);
        }
        step
    }

    /// The line ending behind `\.`, which counts before quotes do. `None` if this is no marker (any more).
    fn finish_marker(&mut self, byte: u8) -> Option<Step> {
        let length = match (self.state.phase, self.rules.eol, byte) {
            (Phase::BackslashDot, Some(Eol::Lf) | None, b'\n') => 3,
            (Phase::BackslashDot, Some(Eol::Cr) | None, b'\r') => 3,
            (Phase::BackslashDotCr, _, b'\n') => 4,
            (Phase::BackslashDot, Some(Eol::CrLf), b'\r') => {
                self.state.phase = Phase::BackslashDotCr;
                return Some(Step::Inside);
            }
            _ => return None,
        };
        if !self.state.empty && !self.rules.loose_marker {
            return None;
        }
        self.state = State { phase: Phase::Ended, empty: self.state.empty, ..State::START };
        Some(Step::EndMarker { length })
    }

    fn step_csv(&mut self, byte: u8) -> Step {
        let before = self.state;
        let after_cr = before.is_after_cr();
        if after_cr && byte == b'\n' {
            return self.end_record();
        }
        self.quote(byte);
        self.state.phase = match before.phase {
            Phase::Plain if before.empty && byte == b'\\' && self.rules.csv_marker() => Phase::Backslash,
            Phase::Backslash if byte == b'.' => Phase::BackslashDot,
            _ => Phase::Plain,
        };
        self.state.empty = self.state.in_marker();
        let step = if self.state.in_quote { Step::Inside } else { self.line_ending(byte) };
        if after_cr { Step::StrayCr } else { step }
    }

    /// What the byte does to quoting.
    fn quote(&mut self, byte: u8) {
        let state = &mut self.state;
        let is_escape = self.rules.escape == Some(byte);
        if is_escape && state.in_quote {
            state.after_escape = !state.after_escape;
        }
        if byte == self.rules.quote && !state.after_escape {
            state.in_quote = !state.in_quote;
        }
        if !is_escape {
            state.after_escape = false;
        }
    }

    fn step_text(&mut self, byte: u8) -> Step {
        let before = self.state;
        if before.phase == Phase::Backslash {
            self.state.phase = if byte == b'.' { Phase::BackslashDot } else { Phase::Plain };
            self.state.empty = before.empty && byte == b'.';
            return Step::Inside;
        }
        let after_cr = before.is_after_cr();
        if after_cr && byte == b'\n' {
            return self.end_record();
        }
        let is_backslash = byte == b'\\';
        self.state.phase = if is_backslash { Phase::Backslash } else { Phase::Plain };
        self.state.empty = is_backslash && before.empty && before.phase == Phase::Plain;
        let step = self.line_ending(byte);
        if after_cr { Step::StrayCr } else { step }
    }

    /// What an unquoted byte does to the line.
    fn line_ending(&mut self, byte: u8) -> Step {
        match (byte, self.rules.eol) {
            (b'\n', Some(Eol::Lf)) | (b'\r', Some(Eol::Cr)) => self.end_record(),
            (b'\r', Some(Eol::CrLf)) => {
                self.state.phase = Phase::AfterCr;
                Step::Inside
            }
            (b'\n', _) => Step::StrayLf,
            (b'\r', _) => Step::StrayCr,
            _ => Step::Inside,
        }
    }

    fn end_record(&mut self) -> Step {
        self.state = State::START;
        Step::Border
    }
}
