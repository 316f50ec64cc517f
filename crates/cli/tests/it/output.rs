//! What scripts rely on: exit codes, the JSON document, silence, plain lines, hints, and no secrets anywhere.

use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Finished, HowdahCommand, Server};

#[test]
fn json_has_its_documented_keys_and_nothing_else_is_on_stdout() {
    let plain = csv(61, 1, 3000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let finished =
        scene.load().args(["--json", "--chunk-size", "64kB"]).arg(&source).run(PATIENCE).expect_code(0);
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    let keys = [
        "job",
        "status",
        "rows_read",
        "rows_stored",
        "rows_rejected",
        "bytes_read",
        "planning_seconds",
        "wall_seconds",
        "stages",
        "retries",
        "tuned",
        "paused_seconds",
        "files",
        "tables",
    ];
    for key in keys {
        assert!(!json[key].is_null(), "{key}\n{json:#}");
    }
    assert_eq!((&json["status"], &json["rows_read"]), (&"done".into(), &3000.into()));
    assert_eq!((&json["rows_stored"], &json["rows_rejected"]), (&3000.into(), &0.into()));
    assert_eq!(json["files"][0]["rows_stored"], 3000);
    assert_eq!(json["tables"][0]["table"], "public.t");
}

#[test]
fn a_failed_load_prints_its_json_too_and_names_the_place() {
    let plain = csv(62, 1, 2000);
    let broken = [&plain[..], b"not a number,1,1.0,x\n"].concat();
    let files = Files::new();
    let source = files.put("a.csv", &broken);
    let scene = Scene::new(Server::shared(13), &[&plain]);
    let failed =
        scene.load().args(["--json", "--chunk-size", "64kB"]).arg(&source).run(PATIENCE).expect_code(1);
    let json: serde_json::Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!(json["status"], "failed");
    assert!(failed.stderr.contains("record 2001") && failed.stderr.contains("22P02"), "{}", failed.stderr);
    assert!(!failed.stderr.contains("not a number"), "a value in an error\n{}", failed.stderr);
    assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "failed");
}

#[test]
fn quiet_is_silent_and_otherwise_lines_are_plain() {
    let plain = csv(63, 1, 3000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let server = Server::shared(15);
    let scene = Scene::new(server, &[&plain]);
    let quiet = scene.load().arg("--quiet").arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let scene = Scene::new(server, &[&plain]);
    let loud = scene.load().arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(loud.stdout, "");
    assert!(!loud.stderr.contains(['\x1b', '\r']), "{:?}", loud.stderr);
    for words in ["a.csv: 3,000 rows from", "check  read 3,000 = stored 3,000"] {
        assert!(loud.stderr.contains(words), "{words}\n{}", loud.stderr);
    }
}

#[test]
fn mistakes_end_with_their_code_and_a_hint() {
    let plain = csv(64, 1, 10);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let expect = |code: i32, hint: bool, arguments: &[&str]| {
        let finished = scene.verb("load").args(arguments).run(PATIENCE).expect_code(code);
        assert!(finished.stderr.contains("error: "), "{arguments:?}\n{}", finished.stderr);
        assert_eq!(finished.stderr.contains("hint: "), hint, "{arguments:?}\n{}", finished.stderr);
    };
    let source = source.to_str().unwrap();
    expect(2, true, &[]);
    // The file's name names the table.
    expect(1, true, &[source]);
    expect(2, true, &["--format", "csv", source]);
    expect(2, true, &["--format", "csv", "--lenient", "--table", "t", source]);
    expect(2, false, &[source, "--table", "t", "--jobs", "0"]);
    expect(2, false, &[source, "--no-such-option"]);
    expect(1, true, &[source, "--table", "no_such_table"]);
    expect(1, false, &["/no/such/file.csv", "--table", "t"]);
    let nobody = ["load", "--to", "host=127.0.0.1 port=1 user=x dbname=x", "--table", "t", source];
    let refused = howdah(nobody[0]).args(&nobody[1..]).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("hint: check that the server runs there"), "{}", refused.stderr);
}

#[test]
fn no_password_is_in_any_output_or_in_the_ledger() {
    const PASSWORD: &str = "Tr0ub4dor&3";
    const ENCODED: &str = "Tr0ub4dor%263";
    let plain = csv(65, 1, 2000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let source = source.to_str().unwrap();
    let server = Server::shared(18);
    let scene = Scene::new(server, &[&plain]);
    let url =
        |port: u16, database: &str| format!("postgres://postgres:{ENCODED}@127.0.0.1:{port}/{database}");
    let (there, name) = (url(server.port(), scene.database.name()), scene.database.name());
    let keywords =
        format!("host=127.0.0.1 port={} user=postgres password={PASSWORD} dbname={name}", server.port());
    let load = ["--format", "csv", "--header", "--table", "t", source];
    let assert_clean = |finished: &Finished| {
        for text in [&finished.stdout, &finished.stderr] {
            assert!(!text.contains("Tr0ub4dor"), "{text}");
        }
    };
    let run = |verb: &str, to: &str, arguments: &[&str]| {
        let finished = howdah(verb).args(["--to", to]).args(arguments).run(PATIENCE);
        assert_clean(&finished);
        finished.code
    };
    assert_eq!(run("plan", &there, &load), Some(0));
    assert_eq!(run("plan", &there, &[&load[..], &["--json"]].concat()), Some(0));
    assert_eq!(run("load", &there, &load), Some(0));
    assert_eq!(run("load", &keywords, &load), Some(1));
    assert_eq!(run("load", &there, &[&load[..], &["--json", "--force"]].concat()), Some(0));
    assert_eq!(run("status", &there, &["--json"]), Some(0));
    assert_eq!(run("load", &url(1, name), &load), Some(1));
    assert_eq!(run("load", &url(server.port(), "no_such_database"), &load), Some(1));
    assert_eq!(run("load", &format!("{there}?sslmode=nonsense"), &load), Some(2));
    assert_eq!(run("load", &format!("postgres://postgres:{PASSWORD}@[bad/x"), &load), Some(2));
    let kept = scene.database.value("SELECT string_agg(j::text, '') FROM howdah.job j");
    assert!(!kept.contains("Tr0ub4dor"));
}

/// A result that is lost is no success; a terminal that can do nothing is told what any other is.
#[test]
fn results_that_cannot_be_written_are_failures_and_any_terminal_is_warned() {
    let plain = csv(66, 1, 100);
    let (files, scene) = (Files::new(), Scene::new(Server::shared(15), &[&plain]));
    let source = files.put("a.csv", &plain);
    let to = scene.database.conninfo();
    let run = |script: &str| {
        let arguments = ["-c", script, "sh", env!("CARGO_BIN_EXE_howdah"), source.to_str().unwrap(), &to];
        HowdahCommand::new("sh").args(arguments).run(PATIENCE)
    };
    let full = run("\"$1\" plan \"$2\" --to \"$3\" --table t --json > /dev/full").expect_code(1);
    assert!(full.stderr.contains("standard output cannot be written"), "{}", full.stderr);
    let load = |name: &str| {
        let load = "'$1' load '$2' --to '$3' --table t --known load --job-id".replace('\'', "\\\"");
        run(&format!("TERM=dumb script -qec \"{load} {name}\" /dev/null")).expect_code(0).stdout
    };
    load("one");
    let told = load("two");
    assert!(told.contains("rows come once more"), "{told}");
}
