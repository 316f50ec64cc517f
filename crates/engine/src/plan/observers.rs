//! The values of a file shown to its columns by several threads.
//!
//! One thread reads the records, in order, and cuts them into pieces. Each piece goes to an observer, which
//! begins with what was known when the piece was read; what it found is joined in the order of the pieces.
//! What is known of a column is a function of the set of its values, so that this is what one thread would
//! have found.

use super::scan::Columns;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope, available_parallelism};

/// Reading the records takes a third to a half of the time that looking at their values does: more observers
/// would wait.
const OBSERVERS_MAX: usize = 4;
/// Plain bytes for which an observer is worth a thread.
const OBSERVER_BYTES: usize = 1 << 20;
/// Pieces read ahead for each observer.
const PIECES_AHEAD: usize = 2;

/// How many threads look at the values of so many plain bytes: none but the one that reads them, or two at
/// least.
pub(super) fn observers(plain_bytes: usize) -> usize {
    let cpus = available_parallelism().map_or(1, usize::from);
    cpus.min(OBSERVERS_MAX).min(plain_bytes / OBSERVER_BYTES)
}

/// A piece to look at, from what was known before it.
struct Piece {
    lines: Arc<Vec<u8>>,
    known: Columns,
    found: SyncSender<Columns>,
}

/// Shows the values of these pieces of COPY text (whole lines) to the columns, with the help of so many
/// observers.
pub(super) fn show(columns: &mut Columns, mut pieces: impl Iterator<Item = Vec<u8>>, observers: usize) {
    // It rules out most of what will be, and whoever begins without it tries all that again.
    if let Some(first) = pieces.next() {
        columns.take_lines(&first, |_| true);
    }
    std::thread::scope(|scope| {
        let (give, take) = channel();
        let take = Arc::new(Mutex::new(take));
        let started = (0..observers).take_while(|_| start(scope, Arc::clone(&take))).count();
        let mut under_way = VecDeque::new();
        for lines in pieces {
            if started == 0 {
                columns.take_lines(&lines, |_| true);
                continue;
            }
            let (lines, (found, finding)) = (Arc::new(lines), sync_channel(1));
            let piece = Piece { lines: Arc::clone(&lines), known: columns.known(), found };
            under_way.push_back((lines, finding));
            let is_taken = give.send(piece).is_ok();
            let is_far = under_way.len() > started * PIECES_AHEAD;
            if !is_taken || is_far && !join(columns, &mut under_way) {
                // An observer has panicked, and leaving the scope tells.
                return;
            }
        }
        while join(columns, &mut under_way) {}
    });
}

/// Starts an observer; where the system gives no thread, those that there are do its work.
fn start<'scope>(scope: &'scope Scope<'scope, '_>, take: Arc<Mutex<Receiver<Piece>>>) -> bool {
    let observe = move || {
        let next = || take.lock().recv().ok();
        while let Some(Piece { lines, mut known, found }) = next() {
            known.take_lines(&lines, |_| true);
            // Nobody waits for it any more where another observer has panicked.
            let _ = found.send(known);
        }
    };
    Builder::new().name("observer".to_owned()).spawn_scoped(scope, observe).is_ok()
}

/// Joins what was found in the first piece under way; `false` if there is none, or nothing will be found.
fn join(columns: &mut Columns, under_way: &mut VecDeque<(Arc<Vec<u8>>, Receiver<Columns>)>) -> bool {
    let Some((lines, finding)) = under_way.pop_front() else { return false };
    let Ok(found) = finding.recv() else { return false };
    columns.join(&lines, &found);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use howdah_transcode::dialect::{self, Finding, Given, Sample};

    /// Values of one sort, mostly: what comes late rules out kinds late.
    fn value(rng: &mut Rng, sort: usize) -> String {
        let sort = if rng.u8(0..60) == 0 { rng.usize(0..12) } else { sort };
        match sort {
            0 => rng.i32(-500..500).to_string(),
            1 => format!("{:.2}", f64::from(rng.i32(-99_999..99_999)) / 100.0),
            2 => format!("{:02}/{:02}/2024", rng.u32(1..20), rng.u32(1..14)),
            3 => format!("2024-{:02}-{:02}", rng.u32(1..13), rng.u32(1..29)),
            4 => format!("2024-01-{:02}T10:00:00Z", rng.u32(1..29)),
            5 => format!("{}.{:03},{}", rng.u32(1..999), rng.u32(0..999), rng.u32(0..99)),
            6 => rng.choice(["t", "f", "true", "N", "0"]).unwrap().to_owned(),
            7 => rng.choice(["", "\"\"", "NA", "\\N", "-"]).unwrap().to_owned(),
            8 => format!("\"{}\nä, \"\"{}\"", rng.u8(..), rng.u8(..)),
            9 => format!("{:02}:{:02}", rng.u32(0..26), rng.u32(0..62)),
            10 => format!("a\"{}", rng.u8(..)),
            _ => format!("10.0.{}.{}", rng.u8(..), rng.u8(..)),
        }
    }

    fn file(rng: &mut Rng) -> (Finding, String) {
        let sorts: Vec<usize> = (0..rng.usize(1..8)).map(|_| rng.usize(0..12)).collect();
        let header: Vec<String> = (0..sorts.len()).map(|no| format!("column_{no}")).collect();
        let mut text = header.join(",") + "\n";
        for _ in 0..rng.usize(50..400) {
            let values: Vec<String> = sorts.iter().map(|sort| value(rng, *sort)).collect();
            text += &match rng.u8(0..100) {
                0 => header.join(","),
                1 => values[1..].join(","),
                _ => values.join(","),
            };
            text += "\n";
        }
        let given = Given {
            delimiter: Some(",".to_owned()),
            quote: Some(Some(b'"')),
            header: Some(true),
            ..Given::default()
        };
        let sample = Sample { head: text.as_bytes(), middle: b"", tail: b"", whole: true, size_bytes: None };
        (dialect::find(&sample, &given).unwrap(), text)
    }

    #[test]
    fn many_observers_find_what_one_reader_finds() {
        let (mut rng, mut narrowed_late) = (Rng::with_seed(11), 0);
        for _ in 0..200 {
            let (finding, text) = file(&mut rng);
            let found = |piece_bytes, observers| {
                let found = Columns::of_pieces(&finding, text.as_bytes(), piece_bytes, observers);
                let seen = (found.states, found.among, found.witnesses, found.characters_max);
                (seen, found.quoted_empty, found.complete)
            };
            let alone = found(usize::MAX, 0);
            for observers in [0, 1, 3] {
                assert_eq!(found(rng.usize(20..3000), observers), alone, "{observers} of {text}");
            }
            narrowed_late += usize::from(alone.0.2.iter().any(|witnesses| witnesses.len() > 1));
        }
        assert!(narrowed_late > 100, "{narrowed_late}");
    }

    #[test]
    fn a_thread_more_is_for_files_that_are_worth_it() {
        assert_eq!(observers(100 << 10), 0);
        assert!(observers(64 << 20) <= OBSERVERS_MAX);
    }
}
