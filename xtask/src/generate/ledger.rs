//! `docs/reference/ledger.md`: the tables and columns of the ledger, from the statements that make it and the
//! comments in them.

use std::fmt::Write;

const SCHEMA: &str = include_str!("../../../crates/target/src/ledger/schema.sql");

const INTRODUCTION: &str = "\
# The ledger

The tables of the schema `howdah` (or what `--ledger` names) in the target database. They are plain tables, made by the first
load, with these comments on them, for queries of yours to read; nobody but howdah should write to them, but for what
[resume](../guides/resume.md#the-history) and [troubleshooting](../guides/troubleshooting.md) say. A later version of howdah may
have other columns: a ledger of another version is refused
([decision](../decisions/2026-11-29-ledger-schema.md)). Who may read and write them: [privileges](../guides/privileges.md#the-ledger).

Other tables in the schema hold rows that wait (staging tables), and are dropped when the job ends. Loads into UNLOGGED tables add
`unlogged_mark`, an UNLOGGED table itself, which has one row for each transaction that stored rows in one: a crash empties both
([why](../concepts/exactly-once.md#unlogged-tables)).
";

/// A table or column: its name, what stands behind the name (the type), and its comment.
struct Named {
    name: String,
    kind: String,
    comment: String,
}

pub(super) fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for table in tables(SCHEMA) {
        // Writing to a String cannot fail, here and below.
        let _ = write!(
            page,
            "\n## {}\n\n{}.\n\n| column | type | meaning |\n| --- | --- | --- |\n",
            table.name, table.comment
        );
        for column in columns(SCHEMA, &table.name) {
            let _ = writeln!(page, "| `{}` | {} | {} |", column.name, column.kind, column.comment);
        }
    }
    page
}

fn tables(schema: &str) -> Vec<Named> {
    let made =
        schema.lines().filter_map(|line| line.strip_prefix("CREATE TABLE @schema@.")?.strip_suffix(" ("));
    let named = |name: &str| Named {
        name: name.to_owned(),
        kind: String::new(),
        comment: comment(schema, &format!("TABLE @schema@.{name} ")),
    };
    made.map(named).collect()
}

/// What the lines between the parentheses of CREATE TABLE define, but for constraints of the table.
fn columns(schema: &str, table: &str) -> Vec<Named> {
    let begin = format!("CREATE TABLE @schema@.{table} (");
    let lines = schema.lines().skip_while(|line| *line != begin).skip(1).take_while(|line| *line != ");");
    // Names of columns are in small letters; what continues a line before it stands further right.
    let defined = lines
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_lowercase()));
    defined
        .filter_map(|line| line.split_once(' '))
        .map(|(name, rest)| Named {
            name: name.to_owned(),
            kind: kind(rest),
            comment: comment(schema, &format!("COLUMN @schema@.{table}.{name} ")),
        })
        .collect()
}

/// The type alone: what follows it (NOT NULL, CHECK, DEFAULT ...) begins with a capital.
fn kind(definition: &str) -> String {
    let words =
        definition.split_whitespace().take_while(|word| !word.starts_with(|c: char| c.is_uppercase()));
    words.collect::<Vec<_>>().join(" ").trim_end_matches(',').to_owned()
}

/// The comment on something, with the apostrophes that SQL doubles.
fn comment(schema: &str, on: &str) -> String {
    let begin = format!("COMMENT ON {on}IS '");
    let found = schema.lines().find_map(|line| line.strip_prefix(&begin)?.strip_suffix("';"));
    found.unwrap_or_default().replace("''", "'").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_and_column_has_its_comment() {
        let all = tables(SCHEMA);
        assert_eq!(all.len(), SCHEMA.matches("CREATE TABLE").count());
        for table in &all {
            assert!(!table.comment.is_empty(), "{}", table.name);
            for column in columns(SCHEMA, &table.name) {
                assert!(
                    !column.comment.is_empty() && !column.kind.is_empty(),
                    "{}.{}",
                    table.name,
                    column.name
                );
            }
        }
        let shown: usize = all.iter().map(|table| columns(SCHEMA, &table.name).len()).sum();
        assert_eq!(shown, SCHEMA.matches("COMMENT ON COLUMN").count());
    }
}
