//! Records of text, 64 bytes at a time.
//!
//! A line ending ends a record unless a backslash makes it data. Blocks in which a marker may end the data
//! go to the [walker](super::walk).

use super::block::{Block, any_marker, escaped, positions, record_ends};
use super::state::{Phase, State};
use super::{Rules, Scan};

/// Scans all of `bytes` from `scan.state`. The rules have an [`Eol`].
pub(super) fn scan(rules: &Rules, bytes: &[u8], scan: &mut Scan) {
    scan.blocks(rules, bytes, scan_block);
}

/// Scans one block, or says no and changes nothing if the walker must.
#[inline]
fn scan_block(rules: &Rules, bytes: &[u8], at: usize, block: &Block, scan: &mut Scan) -> bool {
    let before = scan.state;
    let first_is_escaped = before.phase == Phase::Backslash;
    if first_is_escaped && block[0] == b'.'
        || !matches!(before.phase, Phase::Plain | Phase::AfterCr | Phase::Backslash)
    {
        return false;
    }
    let backslashes = positions(block, b'\\');
    let (data, next_is_escaped) = escaped(backslashes, first_is_escaped);
    if any_marker(bytes, at, block, backslashes & !data) {
        return false;
    }
    let (ends, carriage_returns) = record_ends(rules.eol, block, data, before.phase == Phase::AfterCr);
    scan.borders(at, ends);
    scan.state = State::INSIDE;
    if next_is_escaped {
        scan.state.phase = Phase::Backslash;
        scan.state.empty = ends >> 62 & 1 == 1;
    } else if carriage_returns >> 63 == 1 {
        scan.state.phase = Phase::AfterCr;
    } else {
        scan.state.empty = ends >> 63 == 1;
    }
    true
}
