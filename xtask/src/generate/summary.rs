//! `docs/reference/summary.md`: the document that `howdah load --json` prints. The meanings are written here;
//! a test compares the keys with those of a real summary, so that none is added or renamed unnoticed.

use howdah_model::summary::Status;
use howdah_model::{
    Changes, DateOrder, FileSummary, LeftOut, Limit, LimitOf, Mend, ReadValues, Reading, SessionsStep, Stage,
    StepReason, Summary, TableSummary, Verified, Verify,
};
use std::collections::BTreeMap;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# The summary

`howdah load --json` and `howdah resume --json` print one JSON document on standard output when the load has ended, also
when it failed or was stopped under way. A last key `error` is null when all is well, else an object with `kind`,
`message`, `file`, `line`, `record`, `byte`, `column`, `sqlstate` and `hint`. A load that is refused or stopped before its first chunk
(no such file, no such table, finished before) prints only [`status` and `error`](json.md#where-a-command-fails). Keys are never
renamed or removed; new ones may come, so skip those you do not know.
";

/// Key and meaning, in the order of the document.
const KEYS: &[(&str, &str)] = &[
    (
        "job",
        "The job's name in the ledger; what `howdah status` and `howdah resume` take. Where `--known skip` finds nothing new, the latest job that has loaded any of the files",
    ),
    ("status", "`done`, `failed` or `interrupted`"),
    ("server", "Where the rows went: `postgresql://USER@HOST:PORT/DATABASE`, without a password"),
    ("rows_read", "Records found in the sources so far, those of skipped chunks included"),
    (
        "rows_stored",
        "Rows that the tables have taken, those of earlier runs of the same job included; with a key all records that were not rejected, of which `tables[].changes` says what became",
    ),
    ("rows_stored_before", "Of `rows_stored`, those that an earlier or simultaneous run had stored"),
    (
        "rows_waiting",
        "Rows in staging tables, where the load failed or was stopped before they came into their tables",
    ),
    (
        "rows_rejected",
        "Records left out, those of earlier runs of the same job included: by `--lenient`, or kept in the ledger by `--on-error skip`; exit code 3 when there are any",
    ),
    ("rows_rejected_before", "Of `rows_rejected`, those that an earlier run had left out"),
    ("comments", "Lines passed over because they begin as comments do in their file, and have not its shape"),
    (
        "mended",
        "Kind -> records mended by this run, with `--lenient` or `--nul`, and all that were left out: `short_row`, `surplus_empty`, `stray_quote`, `other_quotes`, `other_delimiter`, `other_line_ending`, `broken_bytes`, `byte_order_mark`, `nul_bytes`, `blank_row`, `left_out`",
    ),
    (
        "left_out[].file",
        "The file of a record that was left out or that the table refused; the first of each file are listed",
    ),
    ("left_out[].record", "Its number, from 1, the header not counted"),
    (
        "left_out[].line",
        "The line in which it begins, from 1, as an editor counts; null where that cannot be told soon, as of pipes and behind the first GiB",
    ),
    (
        "left_out[].byte",
        "Its first byte in the plain file; null where that cannot be told, as of files in UTF-16",
    ),
    ("left_out[].column", "The column whose value the table refused; null where none is named"),
    (
        "left_out[].sqlstate",
        "PostgreSQL's code for the reason; null for records that were left out unseen by the table",
    ),
    ("left_out[].reason", "Why; without values"),
    (
        "warnings[]",
        "Sentences, each about something that is not as may be expected though the load went on: a file holds a second table, which is not loaded; its rows were loaded before; a sequence stays behind, or statistics were not renewed. The wording may change. Also on standard error, even with `--quiet`",
    ),
    (
        "unsure[]",
        "Sentences, each about something that the data did not tell, so that it was guessed: the file (of the first 20 ones) or the table, what was taken, and the option that settles it. The wording may change. Also on standard error, even with `--quiet`",
    ),
    ("read[].table", "The table of a column whose values are spelled in another way than PostgreSQL's"),
    ("read[].column", "The column"),
    ("read[].reading", "How they are spelled"),
    ("read[].values", "How many there were"),
    ("bytes_read", "Bytes read by this run, as stored (compressed where the file is)"),
    (
        "planning_seconds",
        "From the beginning of planning to the start of loading: the server reached, files and tables looked at, the job begun",
    ),
    ("wall_seconds", "From the start of loading to the end of this run; planning is not in it"),
    (
        "stages.read",
        "Seconds spent waiting for a file, an object store or a pipe. All stages are summed over threads and sessions",
    ),
    (
        "stages.decompress",
        "Seconds spent decompressing, and converting encodings that the server cannot read",
    ),
    ("stages.split", "Seconds spent finding where records end"),
    ("stages.encode", "Seconds spent rewriting records; 0 where the bytes go untouched"),
    ("stages.copy", "Seconds from BEGIN to the last row taken, the claim in the ledger included"),
    ("stages.commit", "Seconds spent waiting for the answer to COMMIT"),
    ("stages.indexes", "Seconds spent dropping indexes, keys and foreign keys, and building them again"),
    ("stages.finish", "Seconds spent in the barrier and the last look at the ledger"),
    (
        "stages.vacuum",
        "Seconds spent in VACUUM when all rows are in: of tables that autovacuum was kept from, or by `--after vacuum`",
    ),
    ("stages.analyze", "Seconds spent in ANALYZE when all rows are in (`--after`)"),
    ("stages.checkpoint", "Seconds spent in CHECKPOINT (`--after checkpoint`)"),
    ("stages.apply", "Seconds spent bringing rows from staging tables into their tables (--mode, --atomic)"),
    ("stages.verify", "Seconds spent comparing what is stored with the sources (--verify)"),
    ("sessions", "The largest number of sessions that copied at once"),
    (
        "sessions_trace[].seconds",
        "When the number of sessions was thought over, from the first bytes that the server took. `sessions_trace` is empty with `--jobs N`, and where a load was over before; of more than 200 steps it holds the first hundred and the last",
    ),
    ("sessions_trace[].before", "So many sessions had been measured"),
    ("sessions_trace[].after", "So many copied from then on"),
    (
        "sessions_trace[].mb_per_second",
        "Plain bytes of the sources that the server took meanwhile, in 1,000,000 a second; 0 where the number was changed without a measurement (`refused`, `ceiling`)",
    ),
    (
        "sessions_trace[].wait",
        "What the sessions were seen at most meanwhile, as in `waits`; null where nobody looked",
    ),
    ("sessions_trace[].wait_share", "Its share of what they were seen at (0 to 1)"),
    (
        "sessions_trace[].reason",
        "`measured`: the first number of a search. `faster`: more sessions were, `no_gain`: they were not. `as_fast`: fewer sessions were, `slower`: they were slower. Why one more was not tried: `queues`, they mostly wait for one another; `no_chunks`, the sources bring no more; `cpus_full`; `ceiling`, memory or the connections left to others allow no more. `refused`: the server had no room",
    ),
    ("sessions_trace[].settled", "The search was over with this step; it began again 20 s later"),
    (
        "waits",
        "What the copying sessions were seen doing: `Type:Event` of `pg_stat_activity`, or `CPU`, with its share of all samples (0 to 1). Empty for loads too short to be sampled",
    ),
    (
        "limit.what",
        "The one thing that held the load back, for people; the wording may change. `limit` is null for loads too short to be seen",
    ),
    ("limit.share", "How much of it (0 to 1)"),
    (
        "limit.of",
        "What that is a share of: the `time` of this run, or what the copying `sessions` were seen at",
    ),
    ("retries", "Failures that might pass and were tried again"),
    (
        "tuned[]",
        "Settings that were changed while rows came, `parallel_workers` also until indexes were built again, each `NAME of WHAT = VALUE`; they are put back. Those of the load's own sessions are not listed",
    ),
    ("paused_seconds", "For how long no chunk was begun because a disk was nearly full or a replica behind"),
    ("files[].location", "The file, object or URL, without credentials; `-` is standard input"),
    ("files[].table", "The table it goes to, `schema.name`"),
    ("files[].rows_read", "As above, of this file"),
    ("files[].rows_stored", "As above, of this file"),
    ("files[].rows_rejected", "As above, of this file"),
    ("files[].bytes_read", "As above, of this file"),
    ("files[].done", "All of it is in the table"),
    ("tables[].table", "`schema.name`"),
    ("tables[].rows_read", "As above, of all files that go to this table"),
    ("tables[].rows_stored", "As above, of all files that go to this table"),
    (
        "tables[].changes.inserted",
        "Rows that came on top. `changes` is null where rows come into the table as they are read, and until all are in; it counts what all runs of the job did",
    ),
    ("tables[].changes.updated", "Rows that were there and were changed"),
    (
        "tables[].changes.unchanged",
        "Records that say what is there already, or whose key is there with `--mode insert-new`",
    ),
    ("tables[].changes.deleted", "Rows that `--delete-missing` deleted"),
    (
        "tables[].changes.duplicates",
        "Records that did not count, because another one has the same key (`--keep`)",
    ),
    (
        "tables[].changes.held_back",
        "Rows that were to be changed, or deleted, which a trigger or a row-level security policy has prevented",
    ),
    (
        "verified.by",
        "`count` or `checksum`. `verified` is null where `--verify` was not given, and where a difference was found, which is an error of the kind `differs`",
    ),
    (
        "verified.rows",
        "Rows of this job that were found in the tables, by all runs of it; with a key, records for which the table has what counts of their key",
    ),
    (
        "verified.checksum",
        "The sum of the hashes of all of them modulo 2^64, in hexadecimal; null where they were only counted, and where rows that waited in a staging table were left out after they were compared (`by` is `checksum` then): the sum would be that of other rows. It says nothing to other versions of PostgreSQL",
    ),
    ("verified.rows_of_others", "Rows of the tables that this job has not stored"),
];

pub(super) fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| key | meaning |\n| --- | --- |\n");
    for (key, meaning) in KEYS {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{key}` | {meaning} |");
    }
    page.push_str("\n## Example\n\nTwo files, the second of them resumed:\n\n```json\n");
    page.push_str(&serde_json::to_string_pretty(&example()).unwrap_or_default());
    page.push_str("\n```\n\nIn a script:\n\n");
    page.push_str("    howdah load data/*.csv --table t --json --quiet | jq -e '.status == \"done\"'\n");
    page
}

fn step() -> SessionsStep {
    SessionsStep {
        seconds: 1.5,
        before: 2,
        after: 2,
        mb_per_second: 92.5,
        wait: Some("CPU".to_owned()),
        wait_share: 0.75,
        reason: StepReason::CpusFull,
        settled: true,
    }
}

fn verified() -> Verified {
    Verified {
        by: Verify::Checksum,
        rows: 673_552,
        checksum: Some("41d29a6e08c5b7f3".to_owned()),
        rows_of_others: 0,
    }
}

/// A day in the example that could be another one.
const UNSURE: &str = "public.flights: no value seen of day tells day from month, and they are read as DateStyle says: month first; --types day=date:d/m/y or day=date:m/d/y settles it";

/// Seconds of each stage in the example.
const STAGES: [(Stage, f64); 13] = [
    (Stage::Read, 0.05),
    (Stage::Decompress, 0.5),
    (Stage::Split, 0.05),
    (Stage::Encode, 0.0),
    (Stage::Copy, 1.5),
    (Stage::Commit, 0.02),
    (Stage::Indexes, 0.4),
    (Stage::Finish, 0.01),
    (Stage::Apply, 0.0),
    (Stage::Verify, 0.8),
    (Stage::Vacuum, 0.0),
    (Stage::Analyze, 0.09),
    (Stage::Checkpoint, 0.0),
];

fn example() -> Summary {
    let file = |name: &str, rows, rejected, bytes_read| FileSummary {
        location: format!("/data/{name}"),
        table: "public.flights".to_owned(),
        rows_read: rows + rejected,
        rows_stored: rows,
        rows_rejected: rejected,
        bytes_read,
        done: true,
    };
    Summary {
        job: "3f6c0a9d5be21c44".to_owned(),
        status: Status::Done,
        server: "postgresql://loader@db.example:5432/air".to_owned(),
        rows_read: 673_553,
        rows_stored: 673_552,
        rows_stored_before: 168_388,
        rows_waiting: 0,
        rows_rejected: 1,
        rows_rejected_before: 0,
        comments: 0,
        mended: BTreeMap::from([(Mend::ShortRow, 3), (Mend::LeftOut, 1)]),
        left_out: vec![LeftOut {
            file: "/data/2014.csv.gz".to_owned(),
            record: Some(1041),
            line: Some(1042),
            byte: Some(97_112),
            column: None,
            sqlstate: None,
            reason: "expected 19 fields, got 23".to_owned(),
        }],
        warnings: vec!["/data/2013.csv holds several tables: the first one is loaded".to_owned()],
        unsure: vec![UNSURE.to_owned()],
        read: vec![ReadValues {
            table: "public.flights".to_owned(),
            column: "day".to_owned(),
            reading: Reading::Date(DateOrder::Dmy),
            values: 673_552,
        }],
        bytes_read: 41_500_000,
        planning_seconds: 0.2,
        wall_seconds: 1.9,
        stages: BTreeMap::from(STAGES),
        sessions: 2,
        sessions_trace: vec![step()],
        waits: BTreeMap::from([("CPU".to_owned(), 0.75), ("IO:DataFileExtend".to_owned(), 0.25)]),
        limit: Some(Limit { what: "the server's CPU".to_owned(), share: 0.75, of: LimitOf::Sessions }),
        retries: 0,
        tuned: vec!["autovacuum_enabled of public.flights = false".to_owned()],
        paused_seconds: 0.0,
        files: vec![file("2013.csv", 336_776, 0, 31_100_000), file("2014.csv.gz", 336_776, 1, 10_400_000)],
        tables: vec![TableSummary {
            changes: Some(Changes { inserted: 673_552, ..Changes::default() }),
            table: "public.flights".to_owned(),
            rows_read: 673_553,
            rows_stored: 673_552,
        }],
        verified: Some(verified()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// `a`, `b.c` and `d[].e` for every leaf.
    pub(in crate::generate) fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            // Their keys are wait events, kinds of mends and kinds of readings.
            Value::Object(_) if matches!(path, "waits" | "mended" | "read[].reading") => {
                found.insert(path.to_owned());
            }
            Value::Object(object) => {
                for (key, value) in object {
                    let dot = if path.is_empty() { "" } else { "." };
                    keys(value, &format!("{path}{dot}{key}"), found);
                }
            }
            Value::Array(values) => {
                values.iter().for_each(|value| keys(value, &format!("{path}[]"), found));
            }
            _ => drop(found.insert(path.to_owned())),
        }
    }

    #[test]
    fn the_keys_on_the_page_are_those_of_the_document() {
        let mut found = BTreeSet::new();
        keys(&serde_json::to_value(example()).unwrap(), "", &mut found);
        let written: BTreeSet<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(found, written);
    }
}
