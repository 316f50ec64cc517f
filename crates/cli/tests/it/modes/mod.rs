//! What rows are to those that are there: merged by their key, come all at once, into an emptied or a new
//! table.

mod atomic;
mod beside;
mod defaults;
mod entries;
mod freeze;
mod gone;
mod kept_one;
mod kills;
mod leaf_triggers;
mod led;
mod limited;
mod lost;
mod meanwhile;
mod merge;
mod once;
mod pairs;
mod place;
mod ranges;
mod refused;
mod replace;
mod replace_skip;
mod rivals;
mod several;
mod skip;
mod skip_verified;
mod strangers;
mod truncate;
mod turns;
mod unasked;
mod upsert;
mod waiting;

use crate::guards::wait_for_words;
use crate::scene::{END_SLEEPERS, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// `howdah load` of a csv file with a header into `t`.
fn load(database: &Database, sources: &[&Path]) -> HowdahCommand {
    let to = database.conninfo();
    let command = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    sources.iter().fold(command, HowdahCommand::arg)
}

/// Runs it to a good end; `[inserted, updated, unchanged, deleted, duplicates]` of the only table.
fn changes(command: &HowdahCommand) -> [u64; 5] {
    let finished = command.clone().args(["--json", "--quiet"]).run(PATIENCE).expect_code(0);
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    let changes = &told["tables"][0]["changes"];
    ["inserted", "updated", "unchanged", "deleted", "duplicates"]
        .map(|key| changes[key].as_u64().unwrap_or_else(|| panic!("{key}: {}", finished.stdout)))
}

/// No staging table, no open entry of the journal, no other table beside.
#[track_caller]
fn assert_nothing_left(database: &Database, what: &str) {
    let left = "SELECT coalesce(string_agg(c.oid::regclass::text, ', '), '') FROM pg_class c \
                JOIN pg_namespace n ON n.oid = c.relnamespace \
                WHERE (n.nspname = 'howdah' AND c.relname ~ '^(staging|borders)') OR c.relname LIKE '%howdah%'";
    assert_eq!(database.value(left), "", "{what}");
    let open = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL";
    assert_eq!(database.value(open), "0", "{what}");
}

/// The longest that a writer waits while a load replaces a table, and another has written and leaves its
/// transaction open until the load has said that it waits for it, and has tried again for a while.
fn longest_wait_of_writers(
    database: &Database,
    [left_open, write]: [&str; 2],
    command: &HowdahCommand,
    told: &str,
    code: i32,
) -> Duration {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| database.try_sql(&format!("BEGIN; {left_open}; SELECT pg_sleep(600)")));
        let naps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        assert!(database.wait_for(naps, 1, || true));
        let writer = scope.spawn(|| {
            let (mut longest, began) = (Duration::ZERO, Instant::now());
            while !over.load(Relaxed) && began.elapsed() < PATIENCE {
                let start = Instant::now();
                database.sql(write);
                longest = longest.max(start.elapsed());
            }
            longest
        });
        let mut running = command.spawn();
        wait_for_words(&mut running, told);
        std::thread::sleep(Duration::from_secs(2));
        database.sql(END_SLEEPERS);
        let finished = running.wait(PATIENCE);
        over.store(true, Relaxed);
        finished.expect_code(code);
        writer.join().unwrap()
    })
}
