//! `docs/reference/check.md`: the document that `howdah check --json` prints. The meanings are written here;
//! a test compares the keys with those of a real report.

use howdah_model::summary::Status;
use howdah_model::{BadPlace, CheckReport, CheckedFile, Finding, NotChecked};
use std::collections::BTreeMap;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# The report of a check

`howdah check --json` prints one JSON document on standard output, also when it failed or was stopped under way. Keys that
[the summary of a load](summary.md) has too mean the same. A last key `error` is null when all was read, else an object as there.
A check that is refused or stopped before it reads anything prints only [`status` and `error`](json.md#where-a-command-fails). Keys are
never renamed or removed; new ones may come, so skip those you do not know.
";

/// Key and meaning, in the order of the document.
const KEYS: &[(&str, &str)] = &[
    ("status", "`done` when all was read and asked, whatever was found; else `failed` or `interrupted`"),
    ("rows_read", "Records found in the sources"),
    ("rows_good", "Those that the tables would take"),
    ("rows_bad", "Those that they would not, each counted once; exit code 3 when there are any"),
    ("findings[].table", "The table, `schema.name`"),
    (
        "findings[].sqlstate",
        "PostgreSQL's code for the reason; null for records that could not be read at all",
    ),
    ("findings[].column", "The column; null where the reason is not about one"),
    ("findings[].constraint", "The constraint or index; null where there is none"),
    ("findings[].reason", "Why, without values; the wording may change"),
    ("findings[].records", "Records with this reason. One with several reasons is counted in each"),
    ("findings[].first[].file", "The file of one of the first ten"),
    (
        "findings[].first[].line",
        "The line in which it begins, from 1, as an editor counts: header and newlines within quotes count, too; null where that cannot be told",
    ),
    (
        "findings[].first[].record",
        "Its number, from 1, the header not counted; null where that cannot be told",
    ),
    (
        "findings[].first[].byte",
        "Its first byte in the plain file; null where that cannot be told, as of pipes and of files in UTF-16",
    ),
    (
        "findings[].first[].first_file",
        "The file of the first record with the same key; null for all that does not repeat a record of the files",
    ),
    ("findings[].first[].first_record", "The number of that record"),
    ("not_checked[].table", "The table of something that only storing rows would tell"),
    ("not_checked[].what", "What it is: a trigger, a key that a sequence fills, ..."),
    ("not_checked[].reason", "Why it is not checked; names the GRANT where a right is missing"),
    ("warnings[]", "As in the summary"),
    ("unsure[]", "As in the summary"),
    ("comments", "As in the summary"),
    ("mended", "As in the summary"),
    ("bytes_read", "Bytes read, as stored (compressed where the file is)"),
    ("wall_seconds", "From the start of reading to the end; planning is not in it"),
    ("retries", "Failures that might pass and were tried again"),
    ("files[].location", "The file, object or URL, without credentials; `-` is standard input"),
    ("files[].table", "The table it is meant for, `schema.name`"),
    ("files[].rows_read", "As above, of this file"),
    ("files[].rows_good", "As above, of this file"),
    ("files[].rows_bad", "As above, of this file"),
    ("files[].bytes_read", "As above, of this file"),
    ("files[].done", "All of it was read"),
];

pub(super) fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| key | meaning |\n| --- | --- |\n");
    for (key, meaning) in KEYS {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{key}` | {meaning} |");
    }
    page.push_str("\n## Example\n\n```json\n");
    page.push_str(&serde_json::to_string_pretty(&example()).unwrap_or_default());
    page.push_str("\n```\n");
    page
}

fn example() -> CheckReport {
    let table = || "public.orders".to_owned();
    let place = |record, byte, first: Option<u64>| BadPlace {
        file: "/data/orders.csv".to_owned(),
        line: Some(record + 1),
        record: Some(record),
        byte: Some(byte),
        first_file: first.map(|_| "/data/orders.csv".to_owned()),
        first_record: first,
    };
    let finding =
        |sqlstate: &str, column: Option<&str>, constraint: Option<&str>, reason: &str, first| Finding {
            table: table(),
            sqlstate: Some(sqlstate.to_owned()),
            column: column.map(str::to_owned),
            constraint: constraint.map(str::to_owned),
            reason: reason.to_owned(),
            records: 1,
            first: vec![first],
        };
    let unread = "the server says: date/time field value out of range: \"...\"";
    let repeats = "repeats a value of unique key orders_pkey within the files";
    CheckReport {
        status: Status::Done,
        rows_read: 20_000,
        rows_good: 19_998,
        rows_bad: 2,
        findings: vec![
            finding("22008", Some("day"), None, unread, place(1731, 97_112, None)),
            finding("23505", None, Some("orders_pkey"), repeats, place(1800, 99_031, Some(17))),
        ],
        not_checked: vec![NotChecked {
            table: table(),
            what: "trigger audit".to_owned(),
            reason: "it may change or refuse rows".to_owned(),
        }],
        warnings: vec![],
        unsure: vec![],
        comments: 0,
        mended: BTreeMap::new(),
        bytes_read: 1_122_003,
        wall_seconds: 0.31,
        retries: 0,
        files: vec![CheckedFile {
            location: "/data/orders.csv".to_owned(),
            table: table(),
            rows_read: 20_000,
            rows_good: 19_998,
            rows_bad: 2,
            bytes_read: 1_122_003,
            done: true,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::keys;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_keys_on_the_page_are_those_of_the_document() {
        let mut example = example();
        example.warnings.push(String::new());
        example.unsure.push(String::new());
        let mut found = BTreeSet::new();
        keys(&serde_json::to_value(example).unwrap(), "", &mut found);
        let written: BTreeSet<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(found, written);
    }
}
