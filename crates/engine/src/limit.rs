//! The one thing that held a load back: a stage that took longer than all the copying, be it before the first
//! row or behind the last, or what the sessions that copied were seen at. Where the server waited for us,
//! what our threads were at tells why.

use howdah_model::units::show_count;
use howdah_model::{Limit, LimitOf, Stage, Summary};
use std::collections::BTreeMap;

/// A stage without copying that took less is not worth a word.
const STAGE_SECONDS_MIN: f64 = 1.0;
/// Threads that were busy for less than this part of the copying were not what it waited for.
const BUSY_MIN: f64 = 0.5;

/// Told from a summary that is complete but for this.
pub(crate) fn of(summary: &Summary) -> Option<Limit> {
    let wall_seconds = summary.wall_seconds.max(1e-9);
    if summary.paused_seconds > wall_seconds / 2.0 {
        let what = "pauses: a disk was full, or a replica or slot behind".to_owned();
        return Some(Limit { what, share: summary.paused_seconds / wall_seconds, of: LimitOf::Time });
    }
    let before = planning(summary.planning_seconds, wall_seconds, summary.files.len());
    before.or_else(|| longest_stage(&summary.stages, wall_seconds)).or_else(|| {
        let largest = summary.files.iter().max_by_key(|file| file.bytes_read);
        let location = largest.map_or("", |file| file.location.as_str());
        of_copying(&summary.waits, &summary.stages, wall_seconds, location)
    })
}

/// Planning, where it took longer than all the rest.
fn planning(planning_seconds: f64, wall_seconds: f64, files: usize) -> Option<Limit> {
    let of_what = match files {
        0 | 1 => "the source and its table".to_owned(),
        files => format!("{} sources and their tables", show_count(files as u64)),
    };
    let what = format!("planning, before the first row: looking at {of_what}");
    let share = planning_seconds / (planning_seconds + wall_seconds);
    let is_longest = planning_seconds >= wall_seconds.max(STAGE_SECONDS_MIN);
    is_longest.then_some(Limit { what, share, of: LimitOf::Time })
}

const BESIDE_COPYING: [(Stage, &str); 7] = [
    (Stage::Indexes, "dropping and building indexes and keys"),
    (Stage::Apply, "bringing rows from staging tables into their tables"),
    (Stage::Verify, "comparing what is stored with what was read"),
    (Stage::Finish, "what comes behind the last row: durability, and the last look at the ledger"),
    (
        Stage::Vacuum,
        "VACUUM behind the last row; --after analyze or none leaves it to autovacuum, where that is on",
    ),
    (
        Stage::Analyze,
        "ANALYZE behind the last row, by which the planner knows the table; --after none leaves it to autovacuum, where that is on",
    ),
    (Stage::Checkpoint, "CHECKPOINT behind the last row, which --after asks for"),
];

fn seconds_of(stages: &BTreeMap<Stage, f64>, stage: Stage) -> f64 {
    stages.get(&stage).copied().unwrap_or(0.0)
}

fn copying_seconds(stages: &BTreeMap<Stage, f64>, wall_seconds: f64) -> f64 {
    wall_seconds - BESIDE_COPYING.iter().map(|(stage, _)| seconds_of(stages, *stage)).sum::<f64>()
}

/// The stage that took longer than all the copying, if there is one.
fn longest_stage(stages: &BTreeMap<Stage, f64>, wall_seconds: f64) -> Option<Limit> {
    let seconds = |stage| seconds_of(stages, stage);
    let copying = copying_seconds(stages, wall_seconds);
    let longest = BESIDE_COPYING.into_iter().max_by(|one, other| seconds(one.0).total_cmp(&seconds(other.0)));
    let (stage, what) = longest.filter(|(stage, _)| seconds(*stage) >= copying.max(STAGE_SECONDS_MIN))?;
    Some(Limit { what: what.to_owned(), share: seconds(stage) / wall_seconds, of: LimitOf::Time })
}

/// Told from the wait events of the sessions that copied, if they were seen
/// (<https://www.postgresql.org/docs/current/monitoring-stats.html#WAIT-EVENT-TABLE>).
fn of_copying(
    waits: &BTreeMap<String, f64>,
    stages: &BTreeMap<Stage, f64>,
    wall_seconds: f64,
    location: &str,
) -> Option<Limit> {
    let mut causes: Vec<(&str, f64)> = Vec::new();
    for (wait, share) in waits {
        let cause = cause(wait);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += share,
            None => causes.push((cause, *share)),
        }
    }
    let (cause, share) = causes.into_iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let what = if cause == CLIENT { of_client(stages, wall_seconds, location) } else { cause.to_owned() };
    Some(Limit { what, share, of: LimitOf::Sessions })
}

const CLIENT: &str = "the client";

fn cause(wait: &str) -> &'static str {
    match wait {
        "CPU" => "the server's CPU",
        "Client:ClientRead" => CLIENT,
        "Lock:extend" => "the lock for extending the table",
        "LWLock:WALInsert" | "LWLock:WALWrite" => "WAL, written by one session at a time",
        "IPC:SyncRep" => "the synchronous replica",
        // `IO:WALWrite` until PostgreSQL 16, `IO:WalWrite` since.
        _ if wait.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("IO:WAL")) => "writing WAL",
        _ if wait.starts_with("IO:") => "the server's storage",
        _ if wait.starts_with("LWLock:") || wait.starts_with("Buffer") => {
            "the server's buffer and other internal locks"
        }
        // Whose they are, the wait event does not tell.
        _ if wait.starts_with("Lock:") => "locks of tables or rows, of other sessions or the load's own",
        _ => "other waits of the server",
    }
}

/// The server waited for rows: the largest of what our threads did is why, unless they had little to do
/// either.
fn of_client(stages: &BTreeMap<Stage, f64>, wall_seconds: f64, location: &str) -> String {
    let seconds = |stage| seconds_of(stages, stage);
    let (split, encode) = (seconds(Stage::Split), seconds(Stage::Encode));
    let of_threads = [
        (seconds(Stage::Read), source(location)),
        (seconds(Stage::Decompress), "the client: decompressing".to_owned()),
        (split + encode, "the client: splitting and rewriting records".to_owned()),
    ];
    let busy: f64 = of_threads.iter().map(|(seconds, _)| seconds).sum();
    let copying = copying_seconds(stages, wall_seconds);
    let longest = of_threads.into_iter().max_by(|one, other| one.0.total_cmp(&other.0));
    match longest.filter(|_| busy >= copying * BUSY_MIN) {
        Some((_, what)) => what,
        None => "the way from the client to the server: sending".to_owned(),
    }
}

/// What most bytes came from.
fn source(location: &str) -> String {
    match location {
        "-" => "the source: waiting for standard input".to_owned(),
        location => match location.split_once("://") {
            Some((scheme, _)) => format!("the source: waiting for {scheme}"),
            None => "the source: reading files".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_took_longer_than_the_copying_is_what_held_the_load_back() {
        let limit = |indexes: f64, finish: f64, wall_seconds: f64| {
            // Summed over sessions, it may be more than all the time.
            let copy = (Stage::Copy, 100.0);
            longest_stage(
                &BTreeMap::from([copy, (Stage::Indexes, indexes), (Stage::Finish, finish)]),
                wall_seconds,
            )
        };
        let built = limit(50.0, 5.0, 80.0).unwrap();
        assert_eq!(
            (built.what.as_str(), built.share, built.of),
            ("dropping and building indexes and keys", 0.625, LimitOf::Time)
        );
        assert!(limit(1.0, 12.0, 20.0).unwrap().what.starts_with("what comes behind the last row"));
        let stages = BTreeMap::from([(Stage::Finish, 2.0), (Stage::Vacuum, 1.0), (Stage::Analyze, 12.0)]);
        let analyzed = longest_stage(&stages, 17.0).unwrap().what;
        assert!(analyzed.starts_with("ANALYZE") && analyzed.contains("--after none"), "{analyzed}");
        assert_eq!(limit(20.0, 5.0, 80.0), None);
        assert_eq!(limit(0.3, 0.1, 0.5), None, "too short to be worth a word");
    }

    #[test]
    fn planning_that_took_longer_than_the_load_is_what_held_it_back() {
        let what = |planning_seconds, wall_seconds, files| {
            planning(planning_seconds, wall_seconds, files).map(|limit| (limit.what, limit.share))
        };
        let told = "planning, before the first row: looking at 20,000 sources and their tables";
        assert_eq!(what(3.0, 1.0, 20_000), Some((told.to_owned(), 0.75)));
        assert!(what(2.0, 1.0, 1).unwrap().0.ends_with("looking at the source and its table"));
        assert_eq!(what(2.0, 3.0, 20_000), None);
        assert_eq!(what(0.9, 0.1, 20_000), None, "too short to be worth a word");
    }

    #[test]
    fn what_the_server_waited_for_is_told_by_what_the_threads_were_at() {
        let limit = |location: &str, stages: &[(Stage, f64)], waits: &[(&str, f64)]| {
            let waits = waits.iter().map(|(wait, share)| ((*wait).to_owned(), *share)).collect();
            of_copying(&waits, &stages.iter().copied().collect(), 10.0, location).unwrap().what
        };
        let waits = [("Client:ClientRead", 0.7), ("CPU", 0.3)];
        let read = [(Stage::Read, 9.0), (Stage::Decompress, 2.0)];
        assert_eq!(limit("s3://b/a.csv", &read, &waits), "the source: waiting for s3");
        assert_eq!(limit("/a.csv", &read, &waits), "the source: reading files");
        let decompress = [(Stage::Read, 1.0), (Stage::Decompress, 9.0), (Stage::Split, 0.5)];
        assert_eq!(limit("s3://b/a.csv.xz", &decompress, &waits), "the client: decompressing");
        let idle = [(Stage::Read, 0.5), (Stage::Decompress, 1.0)];
        assert_eq!(limit("/a.csv", &idle, &waits), "the way from the client to the server: sending");
        assert_eq!(limit("/a.csv", &read, &[("IPC:SyncRep", 0.6), ("CPU", 0.4)]), "the synchronous replica");
        assert_eq!(limit("/a.csv", &read, &[("CPU", 1.0)]), "the server's CPU");
        for wait in ["IO:WALSync", "IO:WalSync", "IO:WalInitWrite"] {
            assert_eq!(limit("/a.csv", &read, &[(wait, 1.0)]), "writing WAL", "{wait}");
        }
        assert_eq!(limit("/a.csv", &read, &[("IO:AioIoCompletion", 1.0)]), "the server's storage");
    }
}
