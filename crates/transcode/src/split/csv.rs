//! Records of csv, 64 bytes at a time.
//!
//! Quotes toggle, so the parity of quotes up to a byte says whether it is data. Blocks in which a marker
//! may end the data go to the [walker](super::walk).

use super::block::{Block, any_marker, counting_quotes, fill, parity, positions, record_ends};
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
    if !matches!(before.phase, Phase::Plain | Phase::AfterCr) {
        return false;
    }
    let quotes = positions(block, rules.quote);
    let (quotes, after_escape) = match rules.escape {
        None => (quotes, false),
        Some(escape) => {
            counting_quotes(quotes, positions(block, escape), before.in_quote, before.after_escape)
        }
    };
    let quoted = parity(quotes) ^ fill(before.in_quote);
    let (ends, carriage_returns) = record_ends(rules.eol, block, quoted, before.phase == Phase::AfterCr);
    if rules.csv_marker() {
        let starts = ends << 1 | u64::from(before.empty);
        if starts != 0 && any_marker(bytes, at, block, starts & positions(block, b'\\')) {
            return false;
        }
    }
    scan.borders(at, ends);
    scan.state = State::inside(quoted >> 63 == 1, after_escape);
    scan.state.empty = ends >> 63 == 1;
    if carriage_returns >> 63 == 1 {
        scan.state.phase = Phase::AfterCr;
    }
    true
}
