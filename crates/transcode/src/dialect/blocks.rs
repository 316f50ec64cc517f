//! The first of several tables in one file, where the lines between them are blank.
//!
//! A file is one table for the most part, and its dialect is that of all its lines. Where it is not, no
//! dialect explains all lines: the best one sees a single column, or many lines of another width. Then each
//! block of lines between blank ones is asked alone, and the first one that is a table without exception is
//! taken.

use super::Given;
use super::rank::{Ranked, rank_part};
use super::windows::{Window, Windows};
use howdah_model::Eol;

/// A table of its own has so many lines: metadata has fewer.
const BLOCK_LINES_MIN: usize = 5;

/// No further than this are blocks looked for; together they cost as much as one more round of all
/// candidates.
const LOOK_BYTES: usize = 24 << 10;

/// Candidates under which the first block that is a table has no exception, the best first. `None` if the
/// best dialect of the whole sample explains it, or there are no such blocks.
pub(super) fn first_table(
    windows: &Windows,
    given: &Given,
    eol: Option<Eol>,
    ranked: &[Ranked],
) -> Option<Vec<Ranked>> {
    let best = ranked.first()?;
    let explained = best.score.width > 1 && best.score.regular * 10 >= best.score.records * 8;
    if explained {
        return None;
    }
    let blocks = blocks(&windows.head);
    let longest = blocks.iter().map(|block| block.lines).max()?;
    // One block is the whole sample, which has been asked.
    if blocks.len() < 2 {
        return None;
    }
    let long = |block: &&Block| block.lines >= BLOCK_LINES_MIN && block.lines * 2 >= longest;
    blocks.iter().filter(long).find_map(|block| {
        let mut part = windows.head.view(block.start, block.end);
        part.at_end = true;
        let ranked = rank_part(part, given, eol);
        ranked.first().filter(|best| best.is_sure_table()).is_some().then_some(ranked)
    })
}

/// Lines without a blank one among them.
struct Block {
    start: usize,
    end: usize,
    lines: usize,
}

fn blocks(window: &Window) -> Vec<Block> {
    let text = &window.text[..window.text.len().min(LOOK_BYTES)];
    let mut blocks = Vec::new();
    let mut block = Block { start: 0, end: 0, lines: 0 };
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if at == LOOK_BYTES && !line.ends_with(b"\n") {
            break;
        }
        if line.trim_ascii().is_empty() {
            let next = Block { start: at, end: at, lines: 0 };
            blocks.push(std::mem::replace(&mut block, next));
        } else {
            (block.end, block.lines) = (at, block.lines + 1);
        }
    }
    blocks.push(block);
    blocks.retain(|block| block.lines > 0);
    blocks
}
