//! Rows of a staging table come into their table side by side: in ranges of the key, so that no two sessions
//! touch the same row; and, where many rows of each page of the table may change, in turns.
//!
//! Turns: a row that is changed finds no room on a full page, goes elsewhere, and all indexes get a new
//! entry. What it leaves can be used as soon as its transaction is over and no older one is at work: the next
//! change on that page stays there, and no index hears of it (PostgreSQL: "Heap-Only Tuples"). So one row of
//! a page in three comes in the first turn, and the others find room. Between two turns of a range a session
//! does other ranges, so that the others' transactions end.

use super::{at_what, on_session, surroundings, way};
use crate::pipeline::Run;
use futures_util::{StreamExt, stream};
use howdah_model::{Changes, Jobs, Mode, Result};
use howdah_target::arrival::part::{self, Surroundings};
use howdah_target::arrival::statements::{Span, TURNS};
use howdah_target::arrival::table::Into;
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Sessions where nothing else says how many the server bears.
const SESSIONS_DEFAULT: u32 = 2;
/// More sessions meet in the same pages of indexes and in the WAL.
const SESSIONS_MAX: u32 = 8;
/// Staging tables of fewer pages (of 8 kB) are one range: opening a session takes longer than they do.
const PAGES_MIN: u64 = 128;
/// Ranges without turns for each of several sessions, as far as there are pages for them: new rows cost half
/// of what changed ones do, and mostly have the largest keys, so that of two ranges one was done when the
/// other was at half (docs/decisions/2026-11-22-merge.md).
const RANGES_OF_SESSION: u32 = 2;
/// Ranges for each session between two turns: while one does its other ranges, the transactions of the others
/// end. Eight took as long as four.
const RANGES_BETWEEN_TURNS: u32 = 4;
/// Pages of the staging table that a range has where it has turns: some 100,000 rows, so that what a turn has
/// read of the table is still in memory at the next. By reckoning: not measured on a table larger than
/// memory.
const PAGES_OF_RANGE: u64 = 1024;
/// Ranges of a table; a sample of some 20,000 rows tells their borders.
const RANGES_MAX: u64 = 1024;
/// Rows to come for each page of the table below which turns gain nothing: few pages see two of them. By
/// reckoning.
const ROWS_OF_PAGE_MIN: u64 = 2;
/// Pages of the staging table, some 100,000 rows, from which on images of pages are compressed in the WAL: it
/// takes the server's CPU 10 µs for each, which small merges wait for longer than they would for the disk.
const PAGES_COMPRESSED_MIN: u64 = 1024;
/// One new row in so many, and the next turns no longer look rows up one by one: where nearly all are there,
/// the table's statistics still hold, and looking up is cheaper than reading the range. By reckoning.
const MANY_NEW: u64 = 10;

/// How the rows are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    ranges: u32,
    turns: u32,
}

impl Cut {
    /// Of so many sessions, pages and rows of the staging table, and pages of the table, if there may be
    /// turns.
    fn of(sessions: u32, pages: u64, rows: u64, table_pages: Option<u64>) -> Cut {
        let between = u64::from(sessions * RANGES_BETWEEN_TURNS);
        let many_for_each_page = table_pages.is_some_and(|pages| rows >= ROWS_OF_PAGE_MIN * pages);
        if many_for_each_page && pages >= between * PAGES_MIN {
            let ranges = (pages / PAGES_OF_RANGE).clamp(between, RANGES_MAX);
            return Cut { ranges: u32::try_from(ranges).unwrap_or(1), turns: TURNS };
        }
        let most = u32::try_from(pages / PAGES_MIN).unwrap_or(SESSIONS_MAX);
        let wanted = if sessions == 1 { 1 } else { sessions * RANGES_OF_SESSION };
        Cut { ranges: wanted.min(most).clamp(1, SESSIONS_MAX), turns: 1 }
    }

    fn parts(self) -> u32 {
        self.ranges * self.turns
    }

    /// What the ledger's number of parts says: only with turns there are more than the most sessions.
    fn from_parts(parts: u32) -> Cut {
        match parts > SESSIONS_MAX {
            true => Cut { ranges: parts.div_ceil(TURNS), turns: TURNS },
            false => Cut { ranges: parts, turns: 1 },
        }
    }

    /// The parts in the order in which they are done, each with its number in the ledger, its range and its
    /// turn.
    fn in_order(self, sessions: u32) -> Vec<(u32, u32, Option<u32>)> {
        let width = sessions * RANGES_BETWEEN_TURNS;
        let mut order = Vec::with_capacity(self.parts() as usize);
        for first in (0..self.ranges).step_by(width as usize) {
            for turn in 0..self.turns {
                let ranges = first..(first + width).min(self.ranges);
                let turn_of_part = (self.turns > 1).then_some(turn);
                order.extend(ranges.map(|range| (range * self.turns + turn, range, turn_of_part)));
            }
        }
        order
    }
}

/// How the rows of one staging table come into their table.
struct Cutting {
    cut: Cut,
    borders: Vec<String>,
    /// So few that those of the table are looked up one by one.
    looked_up: bool,
    compress_wal: bool,
}

/// Brings them in. Parts that are in already, the ledger knows.
pub(super) async fn by_parts(run: &Run, ledger: &Ledger, into: &Into, rows: u64) -> Result<()> {
    let sessions = sessions(run);
    let cutting = async |session: &Session| cutting(run, ledger, into, rows, session).await;
    let Cutting { cut, borders, looked_up, compress_wal } = &on_session(run, cutting).await?;
    let verb = if way(run, into).mode == Mode::Merge { "are merged into" } else { "come into" };
    let parts = cut.parts();
    run.tell(format!(
        "rows {verb} {} in {parts} {}",
        into.relation,
        if parts == 1 { "part" } else { "parts" }
    ));
    let around = surroundings(run, ledger);
    let around = Surroundings { compress_wal: around.compress_wal && *compress_wal, ..around };
    let progress = Progress::default();
    let progress = &progress;
    let work = stream::iter(cut.in_order(sessions)).map(|(no, range, turn)| async move {
        let span = Span { turn, looked_up: *looked_up, ..Span::of_range(range, borders) };
        progress.note(one_part(run, around, into, no, span, progress).await)?;
        let done = progress.done.fetch_add(1, Ordering::Relaxed) + 1;
        if parts > SESSIONS_MAX && !progress.failed.load(Ordering::Relaxed) {
            run.is_at(format!("{}: {done} of {parts} parts are in", at_what(run.plan.job.arrival.mode)));
        }
        Ok(())
    });
    let done: Vec<Result<()>> = work.buffer_unordered(sessions as usize).collect().await;
    done.into_iter().collect()
}

async fn cutting(run: &Run, ledger: &Ledger, into: &Into, rows: u64, session: &Session) -> Result<Cutting> {
    let pages = into.staged_pages(session).await?;
    // Rows that come on top have pages to themselves, and records that nobody has numbered have no turn. A
    // row may take what another one gives up, which then must not come later.
    let has_turns =
        run.plan.job.arrival.mode == Mode::Merge && into.staging.place.is_some() && !into.is_unique_besides;
    // A range of keys that lie all over the table reads all pages of it in each turn.
    let is_scattered = into.is_scattered(session).await?;
    let has_turns = has_turns && !is_scattered;
    let table_pages = into.table_pages(session).await?;
    let wanted = match into.comes_together {
        true => 1,
        false => Cut::of(sessions(run), pages, rows, has_turns.then_some(table_pages)).parts(),
    };
    let parts = ledger.cut_into_parts(session, &run.plan.job_id, &into.relation, wanted).await?;
    let cut = Cut::from_parts(parts);
    let borders = into.borders(session, cut.ranges).await?;
    // A sample without a row cuts nothing.
    let ranges = u32::try_from(borders.len()).unwrap_or(0) + 1;
    Ok(Cutting {
        cut: Cut { ranges, ..cut },
        borders,
        // What a turn has brought, the next may join with all its range: see `Progress::many_new`.
        looked_up: cut.turns == 1 && into.is_looked_up(pages, table_pages, is_scattered),
        compress_wal: pages >= PAGES_COMPRESSED_MIN,
    })
}

/// Deletes what no record has, unless the ledger knows that it is done. Of all tables of the load, no row
/// that the files hold may go with it.
pub(super) async fn delete_missing(run: &Run, ledger: &Ledger, into: &Into, all: &[Into]) -> Result<()> {
    run.when_open().await?;
    let all: &Vec<&Into> = &all.iter().collect();
    let delete = async |session: &Session| {
        part::commit_deletion(session, surroundings(run, ledger), way(run, into), all).await
    };
    on_session(run, delete).await?;
    run.steps.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// What the parts that are done say to those that are not.
#[derive(Default)]
struct Progress {
    /// The last one changed every row.
    all_change: AtomicBool,
    /// Some part was new in one row of [`MANY_NEW`] or more.
    many_new: AtomicBool,
    failed: AtomicBool,
    /// How many are done.
    done: AtomicU32,
}

impl Progress {
    fn note(&self, done: Result<Option<(u64, Changes)>>) -> Result<()> {
        match &done {
            Ok(Some((rows, changes))) => {
                self.all_change.store(changes.updated == *rows, Ordering::Relaxed);
                self.many_new.fetch_or(changes.inserted > *rows / MANY_NEW, Ordering::Relaxed);
            }
            Ok(None) => {}
            Err(_) => self.failed.store(true, Ordering::Relaxed),
        }
        done.map(|_| ())
    }
}

async fn one_part(
    run: &Run,
    around: Surroundings<'_>,
    into: &Into,
    no: u32,
    span: Span,
    progress: &Progress,
) -> Result<Option<(u64, Changes)>> {
    run.when_open().await?;
    if progress.failed.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let way = part::Way {
        all_change: progress.all_change.load(Ordering::Relaxed),
        many_new: progress.many_new.load(Ordering::Relaxed),
        ..way(run, into)
    };
    let once = async |session: &Session| part::commit_part(session, around, way, no, &span).await;
    let done = on_session(run, once).await?;
    run.steps.fetch_add(1, Ordering::Relaxed);
    Ok(done)
}

fn sessions(run: &Run) -> u32 {
    let sessions = match run.plan.job.jobs {
        Jobs::Fixed(sessions) => sessions,
        Jobs::Auto => {
            run.context.connection.server_cpus().unwrap_or_else(|| run.tally.sessions().max(SESSIONS_DEFAULT))
        }
    };
    sessions.min(run.gate.sessions_max()).clamp(1, SESSIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_tells_how_rows_are_cut() {
        for sessions in 1..=SESSIONS_MAX {
            for pages in [0, 100, 500, 2_000, 5_000, 100_000, 10_000_000] {
                for table_pages in [None, Some(0), Some(20_000), Some(100_000_000)] {
                    let cut = Cut::of(sessions, pages, pages * 100, table_pages);
                    assert_eq!(Cut::from_parts(cut.parts()), cut);
                }
            }
        }
    }

    #[test]
    fn every_part_comes_once_and_ranges_rest_between_turns() {
        let cut = Cut { ranges: 13, turns: TURNS };
        let order = cut.in_order(2);
        let mut numbers: Vec<u32> = order.iter().map(|(no, ..)| *no).collect();
        let at =
            |range: u32, turn: u32| order.iter().position(|part| (part.1, part.2) == (range, Some(turn)));
        assert!((1..TURNS).all(|turn| at(3, turn).unwrap() - at(3, turn - 1).unwrap() == 8));
        numbers.sort_unstable();
        assert_eq!(numbers, (0..cut.parts()).collect::<Vec<_>>());
        assert_eq!(Cut { ranges: 2, turns: 1 }.in_order(2), [(0, 0, None), (1, 1, None)]);
    }
}
