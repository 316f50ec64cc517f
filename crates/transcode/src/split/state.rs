//! The state of the record automaton between two bytes.
//!
//! It is a handful of flags that can be kept, compared and handed to whoever reads the next piece.

/// Where in a record the automaton stands between two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub(super) phase: Phase,
    /// The record has no byte yet, or none before the backslash of a phase that may become a marker.
    pub(super) empty: bool,
    /// csv: an odd number of quotes that count.
    pub(super) in_quote: bool,
    /// csv: the last byte was an escape that counts.
    pub(super) after_escape: bool,
    /// Bytes still to come of a multi-byte character.
    pub(super) character_bytes_left: u8,
}

/// What the last bytes were, as far as the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing in particular.
    Plain,
    /// An unquoted `\r` in a file of `\r\n`.
    AfterCr,
    /// text: a backslash that counts; csv: a backslash at the start of a record.
    Backslash,
    /// The same, followed by `.`.
    BackslashDot,
    /// The same, followed by `\r` in a file of `\r\n`.
    BackslashDotCr,
    /// Behind an end-of-data marker.
    Ended,
}

impl State {
    /// Before the first byte of a record.
    pub const START: State = State {
        phase: Phase::Plain,
        empty: true,
        in_quote: false,
        after_escape: false,
        character_bytes_left: 0,
    };

    /// Inside a record, outside of quotes.
    pub const INSIDE: State = State { empty: false, ..State::START };

    /// No byte of a record has been seen since the last one ended. Behind an end-of-data marker: no
    /// record was cut off by it.
    pub fn at_record_start(self) -> bool {
        self.empty && self.character_bytes_left == 0 && matches!(self.phase, Phase::Plain | Phase::Ended)
    }

    /// An end-of-data marker has been passed; nothing more is data.
    pub fn ended(self) -> bool {
        self.phase == Phase::Ended
    }

    /// The bytes so far may be the beginning of an end-of-data marker.
    pub(super) fn in_marker(self) -> bool {
        matches!(self.phase, Phase::Backslash | Phase::BackslashDot | Phase::BackslashDotCr)
    }

    /// The last byte was an unquoted `\r` in a file of `\r\n`.
    pub(super) fn is_after_cr(self) -> bool {
        matches!(self.phase, Phase::AfterCr | Phase::BackslashDotCr)
    }

    /// The last bytes were `\.` where this may be a marker.
    pub(super) fn is_after_backslash_dot(self) -> bool {
        matches!(self.phase, Phase::BackslashDot | Phase::BackslashDotCr)
    }

    /// The state inside a record with this quoting.
    pub(super) fn inside(in_quote: bool, after_escape: bool) -> State {
        State { in_quote, after_escape, ..State::INSIDE }
    }
}
