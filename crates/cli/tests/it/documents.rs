//! The documents that `--json` prints, also of what fails, have the keys that `docs/reference/json.md` lists.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpListener;

const PAGE: &str = include_str!("../../../../docs/reference/json.md");

/// The keys in the table below this heading.
fn listed(heading: &str) -> BTreeSet<&'static str> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let key = |line: &'static str| line.strip_prefix("| `")?.split('`').next();
    section.lines().filter_map(key).collect()
}

/// Adds the paths in a document that are listed, or that neither are nor lie in one that is.
fn keys(value: &Value, path: &str, listed: &BTreeSet<&str>, found: &mut BTreeSet<String>) {
    match value {
        _ if listed.contains(path) => drop(found.insert(path.to_owned())),
        Value::Object(object) => {
            let dot = if path.is_empty() { "" } else { "." };
            object.iter().for_each(|(key, value)| keys(value, &format!("{path}{dot}{key}"), listed, found));
        }
        Value::Array(values) => {
            values.iter().for_each(|value| keys(value, &format!("{path}[]"), listed, found));
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

#[test]
fn documents_have_the_keys_that_the_reference_lists() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,name\n1,fir\n2,oak\n");
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE a (id int PRIMARY KEY, name text); \
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
         CREATE TRIGGER see BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION see()",
    );
    let to = database.conninfo();
    howdah("load").args(["--to", &to]).arg(&source).run(PATIENCE).expect_code(0);
    // Of a job that is done nothing is to come, which would fire no trigger.
    let source = files.put("b.csv", b"id,name\n3,elm\n");
    let source = source.to_str().unwrap();
    for (verb, options) in [
        ("plan", &["--table", "a", source][..]),
        ("status", &[]),
        ("restore", &[]),
        ("bench", &["--rounds", "1", "--table", "a", source]),
    ] {
        let command = howdah(verb).args(["--json", "--to", &to]).args(options);
        let printed = command.run(PATIENCE).expect_code(0).stdout;
        let (listed, mut found) = (listed(&format!("howdah {verb}\n")), BTreeSet::new());
        keys(&serde_json::from_str(&printed).unwrap(), "", &listed, &mut found);
        assert_eq!(found, listed.iter().map(ToString::to_string).collect(), "howdah {verb}");
    }
}

#[track_caller]
fn assert_failure(printed: &str, status: &str, what: &str) {
    let document: Value = serde_json::from_str(printed).unwrap();
    let (listed, mut found) = (listed("Where a command fails\n"), BTreeSet::new());
    keys(&document, "", &listed, &mut found);
    assert_eq!(found, listed.iter().map(ToString::to_string).collect(), "{what}");
    assert_eq!(document["status"], status, "{what}");
}

#[test]
fn every_command_that_fails_prints_the_same_document() {
    let options = ["--table", "t", "a.csv"];
    for (verb, options) in [
        ("load", &options[..]),
        ("check", &options),
        ("plan", &options),
        ("bench", &options),
        ("status", &[]),
        ("restore", &[]),
        ("resume", &["some-job"]),
    ] {
        let command = howdah(verb).args(["--json", "--to", "host=127.0.0.1 sslmode=perhaps"]).args(options);
        assert_failure(&command.run(PATIENCE).expect_code(2).stdout, "failed", verb);
    }
}

#[test]
fn a_command_that_is_stopped_while_it_plans_was_interrupted() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,name\n1,fir\n");
    // It takes the connection and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("host=127.0.0.1 port={}", silent.local_addr().unwrap().port());
    for verb in ["load", "plan"] {
        let command = howdah(verb).args(["--json", "--table", "t", "--to", &to]).arg(&source);
        let running = command.spawn();
        let connection = silent.accept().unwrap();
        running.interrupt();
        let stopped = running.wait(PATIENCE).expect_code(130);
        drop(connection);
        assert_failure(&stopped.stdout, "interrupted", verb);
    }
}
