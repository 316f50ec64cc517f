//! `howdah check`: everything that the table would have against the files is told, with its place, and
//! nothing is kept.

mod cases;
mod defaults;
mod entries;
mod forged;
mod kinds;
mod others;
mod random;

use crate::scene::{PATIENCE, howdah};
use howdah_testkit::{Database, Finished, HowdahCommand};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// `howdah check` of files into `t`, with small chunks.
fn check(database: &Database, sources: &[&Path]) -> HowdahCommand {
    let command = howdah("check")
        .args(["--json", "--quiet", "--chunk-size", "32kB", "--jobs", "2", "--table", "t"])
        .args(["--to", &database.conninfo()]);
    sources.iter().fold(command, HowdahCommand::arg)
}

fn told(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", done.stdout, done.stderr))
}

/// Runs it to its end, with this exit code.
fn report(command: &HowdahCommand, code: i32) -> Value {
    told(&command.clone().run(PATIENCE).expect_code(code))
}

/// A kind of error, and one of its places: SQLSTATE, column, constraint, record.
type Told = (String, Option<String>, Option<String>, Option<u64>);

/// All places that the report tells.
fn places(report: &Value) -> BTreeSet<Told> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let of_finding = |finding: &Value| -> Vec<Told> {
        let kind = |place: &Value| {
            let sqlstate = text(&finding["sqlstate"]).unwrap_or_default();
            (sqlstate, text(&finding["column"]), text(&finding["constraint"]), place["record"].as_u64())
        };
        finding["first"].as_array().unwrap().iter().map(kind).collect()
    };
    report["findings"].as_array().unwrap().iter().flat_map(of_finding).collect()
}

/// What must be the same before and after: relations with their files, rows of `t`, triggers, constraints,
/// sequences.
fn state(database: &Database) -> Vec<Vec<Option<String>>> {
    let (rows, digest) = database.digest("t");
    let mut state = database.rows(
        "SELECT 'relation', oid::text, relname::text, reltuples::text, relfilenode::text, reloptions::text FROM pg_class \
         WHERE relnamespace = 'public'::regnamespace \
         UNION ALL SELECT 'constraint', oid::text, conname::text, convalidated::text, NULL, NULL FROM pg_constraint \
         WHERE connamespace = 'public'::regnamespace \
         UNION ALL SELECT 'trigger', oid::text, tgname::text, tgenabled::text, NULL, NULL FROM pg_trigger \
         WHERE tgrelid::regclass::text NOT LIKE 'howdah.%' \
         UNION ALL SELECT 'sequence', schemaname::text, sequencename::text, last_value::text, NULL, NULL FROM pg_sequences \
         WHERE schemaname = 'public' ORDER BY 1, 2, 3",
    );
    state.push(vec![Some(rows.to_string()), Some(digest)]);
    state
}

/// No staging table, no job, and nothing in any table of the ledger but its version.
#[track_caller]
fn assert_forgotten(database: &Database) {
    for table in ["job", "file", "chunk", "reject", "step", "undo", "tuned"] {
        assert_eq!(database.value(&format!("SELECT count(*) FROM howdah.{table}")), "0", "{table}");
    }
    let left = "SELECT coalesce(string_agg(relname, ', '), '') FROM pg_class WHERE relnamespace = 'howdah'::regnamespace \
                AND (relname LIKE 'check%' OR relname LIKE 'staging%')";
    assert_eq!(database.value(left), "");
}
