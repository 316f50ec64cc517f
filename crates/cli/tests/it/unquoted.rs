//! Files without any quoting, read as they are told to be.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;

#[test]
fn quotes_are_data_where_the_format_has_none() {
    let files = Files::new();
    let lines = "id|note\n1|5\" pipe\n2|\"quoted\"\n3|\n4|\\N\n5|a\\tb\n6|total\n";
    let source = files.put("a.csv", lines.as_bytes());
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int, note text)");
        let to = database.conninfo();
        let load = howdah("load").args(["--to", &to, "--table", "t", "--format", "csv", "--delimiter", "|"]);
        let load = load.args(["--quote", "none", "--header"]);
        load.clone().arg(&source).run(PATIENCE).expect_code(0);
        let rows = "SELECT string_agg(coalesce(note, 'NULL'), ' ; ' ORDER BY id) FROM t";
        assert_eq!(database.value(rows), "5\" pipe ; \"quoted\" ; NULL ; \\N ; a\\tb ; total");
        database.sql("TRUNCATE t");
        load.clone().args(["--null", "\\N"]).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(rows), "5\" pipe ; \"quoted\" ;  ; NULL ; a\\tb ; total");
    }
}

/// COPY would take it for a quote, and drop it.
#[test]
fn a_record_with_the_byte_that_stands_for_no_quote_is_refused() {
    let files = Files::new();
    let source = files.put("a.csv", b"1,a\n2,\x01b\x01\n3,c\n4,\x01d\x01\n5,\"e\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, note text)");
    let to = database.conninfo();
    let load = howdah("load").args(["--to", &to, "--table", "t", "--format", "csv", "--quote", "none"]);
    let refused = load.clone().arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("record 2, byte 4: it holds the byte 0x01"), "{refused}");
    assert!(refused.contains("hint: give a byte that the file does not hold: --quote '\\x02'"), "{refused}");
    database.sql("TRUNCATE t");
    load.args(["--on-error", "skip", "--force"]).arg(&source).run(PATIENCE).expect_code(3);
    assert_eq!(database.value("SELECT string_agg(note, ' ' ORDER BY id) FROM t"), "a c \"e");
    assert_eq!(
        database.value("SELECT string_agg(record::text, ' ' ORDER BY record) FROM howdah.reject"),
        "2 4"
    );
}
