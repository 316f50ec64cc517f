//! What a piece of a file does to the state, found without knowing the state it starts from.
//!
//! This lets pieces be read in parallel: each thread finds the transition of its own piece, and only
//! applying them is sequential. Where it would need more than the quoting at the start (an end-of-data
//! marker in sight, encodings that embed ASCII), it says so, and the piece must be scanned instead.

use super::block::{BLOCK_BYTES, any_marker, counting_quotes, is_marker, positions};
use super::state::{Phase, State};
use super::{Rules, Scan};
use howdah_model::{Eol, FormatKind};

/// The start states that need telling apart are: outside quotes, inside quotes, directly behind an escape.
const STARTS: [State; 3] = [State::INSIDE, State::QUOTED, State { after_escape: true, ..State::QUOTED }];

/// The longest end-of-data marker, `\.` and `\r\n`. A piece ending in a part of one is left to the scan.
const MARKER_BYTES: usize = 4;

/// What a piece does to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The states after the piece, by [`STARTS`].
    ends: Option<[State; 3]>,
}

impl Transition {
    const UNKNOWN: Transition = Transition { ends: None };

    /// The state after the piece: exactly [`Scan::state`] of a scan from `from`. `None` if only that scan
    /// can tell.
    pub fn apply(&self, from: State) -> Option<State> {
        if from.ended() {
            return Some(from);
        }
        let ends = self.ends?;
        if from.in_marker() {
            return None;
        }
        Some(match (from.in_quote, from.after_escape) {
            (false, _) => ends[0],
            (true, false) => ends[1],
            (true, true) => ends[2],
        })
    }
}

impl Rules {
    /// One pass over a piece whose start state is not known. For text it looks only for markers and at the
    /// end; for csv it counts quotes.
    pub fn transition(&self, bytes: &[u8]) -> Transition {
        // What happens in less than a block may depend on the bytes before it.
        if self.walks_always() || bytes.len() < BLOCK_BYTES {
            return Transition::UNKNOWN;
        }
        let ends = match self.kind {
            FormatKind::Text => self.text_ends(bytes),
            FormatKind::Csv => self.csv_ends(bytes),
        };
        Transition { ends }
    }

    /// Text knows no quotes: all start states lead to one.
    fn text_ends(&self, bytes: &[u8]) -> Option<[State; 3]> {
        let (before, last) = bytes.split_at(bytes.len() - MARKER_BYTES);
        let backslashes_before = before.iter().rev().take_while(|&&byte| byte == b'\\').count();
        // A marker may be cut in two here, or the bytes before may decide what is escaped.
        let unclear = last.contains(&b'\\') || backslashes_before == before.len();
        if unclear || memchr::memmem::find_iter(bytes, b"\\.").any(|at| is_marker(bytes, at)) {
            return None;
        }
        let first_is_data = backslashes_before % 2 == 1;
        let mut scan = Scan::new(State::INSIDE);
        scan.walk(self, bytes, bytes.len() - MARKER_BYTES + usize::from(first_is_data)..bytes.len());
        Some([scan.state; 3])
    }

    /// Follows the quotes from all three start states at once.
    fn csv_ends(&self, bytes: &[u8]) -> Option<[State; 3]> {
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        let mut quoting = STARTS.map(|state| (state.in_quote, state.after_escape));
        let mut after_line = true;
        for (index, block) in blocks.iter().enumerate() {
            if self.csv_marker() {
                let line_ends = positions(block, if self.eol == Some(Eol::Cr) { b'\r' } else { b'\n' });
                let starts = line_ends << 1 | u64::from(after_line);
                if starts != 0
                    && any_marker(bytes, index * BLOCK_BYTES, block, starts & positions(block, b'\\'))
                {
                    return None;
                }
                after_line = line_ends >> 63 == 1;
            }
            let quotes = positions(block, self.quote);
            match self.escape {
                None => toggle(&mut quoting, quotes),
                Some(escape) => toggle_escaped(&mut quoting, quotes, positions(block, escape)),
            }
        }
        let rest_start = bytes.len() - rest.len();
        let mut ends = [State::START; 3];
        for (end, (in_quote, after_escape)) in ends.iter_mut().zip(quoting) {
            *end = self.csv_end(bytes, rest_start, State::inside(in_quote, after_escape))?;
        }
        Some(ends)
    }

    /// Walks the bytes behind the last whole block.
    fn csv_end(&self, bytes: &[u8], rest_start: usize, at_rest: State) -> Option<State> {
        let mut scan = Scan::new(at_rest);
        if !at_rest.in_quote {
            scan.state = self.unquoted_state(&bytes[..rest_start]);
        }
        if self.csv_marker() && bytes[bytes.len() - MARKER_BYTES..].contains(&b'\\') {
            return None;
        }
        scan.walk(self, bytes, rest_start..bytes.len());
        scan.end_marker.is_none().then_some(scan.state)
    }

    /// The state outside quotes behind these bytes, which do not end in a marker or a part of one.
    fn unquoted_state(&self, bytes: &[u8]) -> State {
        match (self.eol, bytes) {
            (Some(Eol::CrLf), [.., b'\r', b'\n'])
            | (Some(Eol::Lf), [.., b'\n'])
            | (Some(Eol::Cr), [.., b'\r']) => State::START,
            (Some(Eol::CrLf), [.., b'\r']) => State { phase: Phase::AfterCr, ..State::INSIDE },
            _ => State::INSIDE,
        }
    }
}

/// Quote equals escape: every quote toggles, from whatever start.
#[inline]
fn toggle(quoting: &mut [(bool, bool); 3], quotes: u64) {
    let odd = quotes.count_ones() % 2 == 1;
    for (in_quote, after_escape) in quoting {
        *in_quote ^= odd;
        *after_escape = false;
    }
}

/// Quote and escape differ. The start states soon fall together, and equal ones are followed once.
#[inline]
fn toggle_escaped(quoting: &mut [(bool, bool); 3], quotes: u64, escapes: u64) {
    let before = *quoting;
    for index in 0..quoting.len() {
        let (in_quote, after_escape) = before[index];
        quoting[index] = match before[..index].iter().position(|earlier| *earlier == before[index]) {
            Some(earlier) => quoting[earlier],
            None => {
                let (counting, next) = counting_quotes(quotes, escapes, in_quote, after_escape);
                (in_quote ^ (counting.count_ones() % 2 == 1), next)
            }
        };
    }
}
