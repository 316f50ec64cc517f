//! What `--lenient` must come through: files that are wrong on purpose.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, gzip};
use howdah_testkit::Server;
use std::fmt::Write as _;

#[test]
fn behind_an_end_of_data_marker_nothing_is_read_whichever_way_the_file_comes() {
    let mut text = String::new();
    for id in 0..9000 {
        if id == 1000 {
            text.push_str("\\.\n");
        }
        let _ = writeln!(text, "{id}\t\\N\ta\\tb\\\\c{}", id % 7);
    }
    let files = Files::new();
    let plain = files.put("a.txt", text.as_bytes());
    let zipped = files.put("a.txt.gz", &gzip(text.as_bytes()));
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, nothing text, note text)");
    for source in [plain.as_os_str(), zipped.as_os_str(), "-".as_ref()] {
        let command = load(&database)
            .args(["--lenient", "--force", "--quote", "none", "--escape", "\\", "--delimiter", "\t"])
            .args(["--header=false", "--table", "t", "--chunk-size", "64kB"])
            .arg(source);
        let command = if source == "-" { command.stdin(text.clone()) } else { command };
        command.run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) || ' ' || min(note) FROM t"), "1000 a\tb\\c0");
        database.sql("TRUNCATE t");
    }
}

#[test]
fn a_line_that_old_servers_take_for_the_end_of_the_data_loses_nothing() {
    let files = Files::new();
    let sources = [
        ("two", files.put("two.csv", b"a,b\n1,2\n\\.\n3,4\n5,6\n7,8\n")),
        ("one", files.put("one.csv", b"name\nfir\n\\.\noak\nelm\nyew\n")),
    ];
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE two (a text, b int); CREATE TABLE one (name text)");
    for (table, source) in &sources {
        let command = || load(&database).args(["--header", "--delimiter", ","]).arg(source);
        let refused = command().run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("record 2, "), "{}", refused.stderr);
        assert!(refused.stderr.contains("--lenient"), "{}", refused.stderr);
        database.sql(&format!("TRUNCATE {table}"));
        command().args(["--lenient", "--force"]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(&format!("SELECT count(*) FROM {table}")), "5");
    }
}
