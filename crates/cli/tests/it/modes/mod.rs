//! What rows are to those that are there: merged by their key, come all at once, into an emptied or a new table.

mod atomic;
mod freeze;
mod kills;
mod lost;
mod meanwhile;
mod merge;
mod refused;
mod replace;
mod replace_skip;
mod rivals;
mod skip;
mod truncate;
mod turns;
mod unasked;
mod waiting;

use crate::scene::{PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand};
use serde_json::Value;
use std::path::Path;

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
                WHERE (n.nspname = 'howdah' AND c.relname LIKE 'staging%') OR c.relname LIKE '%howdah%'";
    assert_eq!(database.value(left), "", "{what}");
    let open = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL";
    assert_eq!(database.value(open), "0", "{what}");
}
