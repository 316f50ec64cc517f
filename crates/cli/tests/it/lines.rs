//! The line that an editor shows, beside the record's number.

use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::Server;

#[test]
fn the_line_of_a_bad_record_counts_header_and_quoted_newlines() {
    let files = Files::new();
    let text = b"a,b\n1,\"x\ny\"\nbad,z\n3,w\n";
    let macintosh: Vec<u8> = text.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect();
    let sources = [("a.csv", text.to_vec()), ("b.csv.gz", gzip(text)), ("c.csv", macintosh)];
    for (name, bytes) in sources {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (a int, b text)");
        let source = files.put(name, &bytes);
        let command = |verb: &str| {
            let typed = howdah(verb).args(["--json", "--to", &database.conninfo(), "--table", "t"]);
            typed.args(["--format", "csv", "--header"]).arg(&source)
        };
        let failed = command("load").run(PATIENCE).expect_code(1);
        let document: serde_json::Value = serde_json::from_str(&failed.stdout).unwrap();
        let place = ["line", "record", "byte"].map(|key| document["error"][key].as_u64());
        assert_eq!(place, [Some(4), Some(2), Some(12)], "{name} {document}");
        assert!(failed.stderr.contains(", line 4, record 2, byte 12, column a: "), "{}", failed.stderr);
        let status = howdah("status").args(["--json", "--to", &database.conninfo()]).run(PATIENCE);
        let remembered: serde_json::Value = serde_json::from_str(&status.expect_code(0).stdout).unwrap();
        assert_eq!(remembered[0]["error"], document["error"], "{name}");
        let job = remembered[0]["job_id"].as_str().unwrap();
        let status = howdah("status").args(["--to", &database.conninfo(), job]).run(PATIENCE);
        let shown = status.expect_code(0).stdout;
        assert!(shown.contains(", line 4, record 2, byte 12, column a: "), "{shown}");
        let checked = command("check").run(PATIENCE).expect_code(3);
        let document: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
        let first = &document["findings"][0]["first"][0];
        assert_eq!((&first["line"], &first["record"]), (&4.into(), &2.into()), "{name} {document}");
        let skipped = command("load").args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
        let document: serde_json::Value = serde_json::from_str(&skipped.stdout).unwrap();
        let out = &document["left_out"][0];
        assert_eq!((&out["line"], &out["record"]), (&4.into(), &2.into()), "{name} {document}");
    }
}

#[test]
fn the_account_of_a_load_tells_the_lines_of_what_it_has_left_out() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int, b text)");
    let source = files.put("a.csv", b"a,b\n1,\"x\ny\"\n2,z,u,v\n3,w\n4,\"p\nq\"\n");
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--header", "--lenient"]);
    let told = load.clone().arg(&source).run(PATIENCE).expect_code(3).stderr;
    assert!(told.contains("/a.csv, line 4, record 2, byte 12: expected 2"), "{told}");
    let piped = load.args(["--format", "csv", "-"]).stdin("a,b\n1,x,y\n");
    let told = piped.run(PATIENCE).stderr;
    assert!(!told.contains(", line "), "{told}");
}
