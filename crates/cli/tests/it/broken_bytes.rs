//! Bytes that are no character are told with file, record, byte and column, whoever finds them.

use crate::auto::load;
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;

#[test]
fn the_column_of_a_broken_byte_is_told() {
    let files = Files::new();
    let plain = b"id,\"full, name\",town\n1,\"ada\n\",Rome\n2,\"b, \xffb\",Oslo\n";
    // Several spellings of NULL: the client reads all records.
    let spelled = b"id,\"full, name\",town\n1,ada,n/a\n1,,Rome\n2,\"b, \xffb\",Oslo\n4,NULL,\n5,NULL,N/A\n";
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, full_name text, town text)");
    let told = ["--format", "csv", "--header", "--columns", "id,full_name,town"];
    let found = ["--encoding", "UTF8"];
    for (name, bytes, options, record) in [
        ("told.csv", &plain[..], &told[..], 2),
        ("found.csv", &plain[..], &found[..], 2),
        ("spelled.csv", &spelled[..], &found[..], 3),
    ] {
        let source = files.put(name, bytes);
        let command = load(&database).args(["--table", "t"]).args(options).arg(&source);
        let refused = command.run(PATIENCE).expect_code(1);
        for words in [format!("{name}, record {record}, byte "), "column full_name".to_owned()] {
            assert!(refused.stderr.contains(&words), "{words}\n{}", refused.stderr);
        }
        // Mending would lose what another encoding reads.
        let is_hinted = refused.stderr.contains("hint: give --encoding LATIN1 or WIN1252");
        assert_eq!(is_hinted, options == found, "{}", refused.stderr);
        database.sql("TRUNCATE t");
    }
}

#[test]
fn rows_of_a_file_that_is_mended_are_counted_before_the_file_is_done() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,name\n1,a\n2,b\0c\n3,d\n");
    let database = Server::shared(15).database();
    let done = load(&database).args(["--create", "--nul", "strip"]).arg(&source).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains("a.csv: 3 rows from 22 B"), "{}", done.stderr);
}
