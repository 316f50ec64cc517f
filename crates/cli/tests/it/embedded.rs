//! The embedded server: where rows go that no server is named for.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::HowdahCommand;
use serde_json::Value;

/// An embedded server of its own, stopped in the end.
struct Embedded(Files);

impl Embedded {
    fn new() -> Embedded {
        Embedded(Files::new())
    }

    fn verb(&self, verb: &str) -> HowdahCommand {
        let servers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/pg18/bin");
        let programs = std::fs::canonicalize(servers).expect("run cargo xtask servers first");
        howdah(verb).envs([("HOWDAH_DATA", self.0.path().join("data")), ("HOWDAH_PG_BIN", programs)])
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.verb("pg").arg("stop").run(PATIENCE);
    }
}

#[test]
fn a_load_that_names_no_server_says_where_its_rows_go() {
    let embedded = Embedded::new();
    let source = embedded.0.put("trees.csv", b"id,name\n1,fir\n2,oak\n");
    let data = embedded.0.path().join("data/pg/18/data");
    let notice = format!("no server is named: this is the embedded server in {}", data.display());
    let told = embedded.verb("load").arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(&notice) && told.contains("--to names another"), "{told}");
    assert!(told.contains("\nserver postgresql://postgres@") && told.contains(":5432/howdah\n"), "{told}");
    let load = embedded.verb("load").args(["--force", "--json", "--quiet"]).arg(&source);
    let done = load.run(PATIENCE).expect_code(0);
    assert!(!done.stderr.contains("no server is named"), "{}", done.stderr);
    let summary: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(summary["server"].as_str().unwrap().ends_with(":5432/howdah"), "{summary}");
}

/// To the server a comma stands between two folders; what else its programs misread is refused at once.
#[test]
fn the_data_may_be_in_a_folder_with_a_comma() {
    let embedded = Embedded::new();
    let source = embedded.0.put("trees.csv", b"id,name\n1,fir\n2,oak\n");
    let there =
        |name: &str, verb: &str| embedded.verb(verb).envs([("HOWDAH_DATA", embedded.0.path().join(name))]);
    there("a,b", "load").arg(&source).run(PATIENCE).expect_code(0);
    let url = there("a,b", "pg").arg("url").run(PATIENCE).expect_code(0).stdout;
    there("a,b", "pg").arg("stop").run(PATIENCE).expect_code(0);
    let socket = url.split([' ', '\'', '=']).find(|word| word.starts_with("/tmp/howdah-")).expect(&url);
    std::fs::remove_dir_all(socket).unwrap();
    let refused = there("a\"b", "load").arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("misread '\"' in a path"), "{refused}");
    assert!(!embedded.0.path().join("a\"b").exists());
}

/// Who only looks leaves no server behind.
#[test]
fn commands_that_store_nothing_make_no_server() {
    let embedded = Embedded::new();
    let source = embedded.0.put("trees.csv", b"id,name\n1,fir\n2,oak\n");
    for verb in ["plan", "check", "bench"] {
        let refused = embedded.verb(verb).arg(&source).run(PATIENCE).expect_code(2).stderr;
        assert!(
            refused.contains("no server is named, and no embedded server has been made yet"),
            "{refused}"
        );
        assert!(refused.contains("`howdah pg start` makes the embedded server"), "{refused}");
    }
    let data = embedded.0.path().join("data");
    assert!(!data.exists(), "{}", data.display());
    embedded.verb("pg").arg("start").run(PATIENCE).expect_code(0);
    embedded.verb("plan").arg(&source).run(PATIENCE).expect_code(0);
    embedded.verb("check").arg(&source).run(PATIENCE).expect_code(0);
    embedded.verb("bench").args(["--rounds", "1"]).arg(&source).run(PATIENCE).expect_code(0);
}

/// What it remembers is in its ledger alone.
#[test]
fn a_command_that_only_looks_says_that_it_has_started_the_server() {
    let embedded = Embedded::new();
    let source = embedded.0.put("trees.csv", b"id,name\n1,fir\n2,oak\n");
    let started = "started just now (`howdah pg stop` ends it)";
    let told = embedded.verb("load").arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(started), "{told}");
    let looks = embedded.verb("status").run(PATIENCE).expect_code(0);
    assert!(looks.stderr.contains("no server is named") && !looks.stderr.contains(started), "{looks:?}");
    embedded.verb("pg").arg("stop").run(PATIENCE).expect_code(0);
    let looks = embedded.verb("status").run(PATIENCE).expect_code(0);
    assert!(looks.stderr.contains(started) && looks.stdout.contains("trees"), "{looks:?}");
    let asked = embedded.verb("pg").arg("status").run(PATIENCE).expect_code(0).stdout;
    assert!(asked.contains("running"), "{asked}");
}

#[test]
fn the_embedded_server_is_the_same_by_its_own_address() {
    let embedded = Embedded::new();
    let source = embedded.0.put("trees.csv", b"id,name\n1,fir\n2,oak\n");
    let address = embedded.verb("pg").arg("start").run(PATIENCE).expect_code(0).stdout;
    let load = embedded.verb("load").args(["--to", address.trim()]).arg(&source);
    // Without --create.
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("no server is named"), "{told}");
}
