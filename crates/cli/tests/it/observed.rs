//! Types of a new table, found in a compressed file by as many threads as there are processors.

use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::{Database, HowdahCommand, Server};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const RECORDS: usize = 100_000;
/// From here on some columns have values that they had not before.
const LATE: usize = 99_000;

/// The types that are right for all records. Pieces that no thread has to itself would be right for fewer.
const TYPES: &str = "id integer, amount numeric, day text, flag text, stamp timestamp without time zone, seldom integer, \
                     late bigint, note text";

fn records() -> String {
    let mut text = "id,amount,day,flag,stamp,seldom,late,note\n".to_owned();
    for no in 1..=RECORDS {
        let is_late = no >= LATE;
        let amount = if is_late && no % 7 == 0 { format!("{no}.25") } else { no.to_string() };
        let day = if no == LATE + 1 {
            "soon".to_owned()
        } else {
            format!("2024-{:02}-{:02}", no % 12 + 1, no % 28 + 1)
        };
        let flag = if no == RECORDS { "maybe" } else { ["t", "f"][no % 2] };
        let seldom = if is_late { "7" } else { "" };
        let late = if no == LATE + 2 { 9_000_000_000 } else { no };
        let _ = writeln!(
            text,
            "{no},{amount},{day},{flag},2024-01-01 10:00:{:02},{seldom},{late},\"note, \"\"{no}\"\"\nof two lines\"",
            no % 60
        );
    }
    text
}

/// The first processor that this process may use.
fn one_processor() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    allowed.trim().split([',', '-']).next().unwrap().to_owned()
}

/// The same command with one thread for each kind of work.
fn on_one_processor(verb: &str) -> HowdahCommand {
    let taskset = HowdahCommand::new("taskset").args(["--cpu-list", &one_processor()]);
    taskset.arg(env!("CARGO_BIN_EXE_howdah")).arg(verb)
}

fn planned(command: HowdahCommand, database: &Database, source: &Path) -> Value {
    let plan = command.args(["--to", &database.conninfo(), "--create", "--table", "t", "--json"]).arg(source);
    let told: Value = serde_json::from_str(&plan.run(PATIENCE).expect_code(0).stdout).unwrap();
    told["tables"].clone()
}

#[test]
fn several_threads_find_the_types_of_a_compressed_file_that_one_finds() {
    let (files, text) = (Files::new(), records());
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    let sources = [
        files.put("one.csv.gz", &gzip(text.as_bytes())),
        // Of several members, of which none ends with a record.
        files.put("members.csv.gz", &[gzip(first), gzip(second)].concat()),
    ];
    let database = Server::shared(15).database();
    let plain = files.put("plain.csv", text.as_bytes());
    let expected = planned(on_one_processor("plan"), &database, &plain);
    for source in &sources {
        let alone = planned(on_one_processor("plan"), &database, source);
        let together = planned(howdah("plan"), &database, source);
        assert_eq!(together, alone, "{}", source.display());
        assert_eq!(together[0]["create"], expected[0]["create"], "{}", source.display());
        let load = howdah("load").args(["--to", &database.conninfo(), "--create", "--table", "t"]);
        load.arg(source).run(PATIENCE).expect_code(0);
        let types = "SELECT string_agg(format('%s %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum) \
                     FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0";
        assert_eq!(database.value(types), TYPES);
        assert_eq!(database.value("SELECT count(*) FROM t"), RECORDS.to_string());
        database.sql("DROP TABLE t");
    }
}
