//! Values that their types read by the modifier of the column, and names among numbers: the server's COPY
//! says of each row whether it is taken.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;

/// A column, and values some of which it takes.
const COLUMNS: &[(&str, &[&str])] = &[
    ("interval day to hour", &["5", "1 2", "1 2:30", "P1D", "x", "1 day"]),
    ("interval minute to second(2)", &["5:6", "1.239", "1 2:3:4.567", "y"]),
    ("interval day to hour[]", &["{5}", "{1 2,3}", "{z}"]),
    ("numeric(5,2)", &["123.456", "1234", "NaN", "1e2", " 7 ", "1_0"]),
    ("varchar(3)", &["abc", "abc  ", "abcd"]),
    ("bit(3)", &["101", "10", "b101", "x5", "1011"]),
    ("timestamp(0)", &["2024-01-02 03:04:05.6", "Jan 2 2024 3pm", "2024-02-30", "infinity"]),
    ("regclass", &["1259", "pg_class", "no_such", "4294967295", "-1", "12x"]),
    ("regtype", &["23", "int4", "no_such", "a b c"]),
    ("spanned", &["5", "1 2", "w"]),
];

#[test]
fn rows_are_left_out_that_copy_refuses_and_no_others() {
    let files = Files::new();
    let mut text = String::new();
    for (column, (_, values)) in COLUMNS.iter().enumerate() {
        for (no, value) in values.iter().cycle().take(8 * values.len()).enumerate() {
            let fields = (0..COLUMNS.len()).map(|other| if other == column { value } else { "\\N" });
            let fields: Vec<&str> = fields.collect();
            text += &format!("{}\t{}\n", column * 1000 + no, fields.join("\t"));
        }
    }
    let source = files.put("a.tsv", text.as_bytes());
    for major in [13, 15, 18] {
        let database = Server::shared(major).database();
        let columns: Vec<String> =
            COLUMNS.iter().enumerate().map(|(no, (name, _))| format!("c{no} {name}")).collect();
        let columns = columns.join(", ");
        database.sql(&format!(
            "CREATE DOMAIN spanned AS interval day to hour; \
             CREATE TABLE t (id int, {columns}); CREATE TABLE wanted (id int, {columns})"
        ));
        for line in text.lines() {
            let _ = database.copy_in("COPY wanted FROM STDIN", format!("{line}\n"));
        }
        let done = howdah("load")
            .args([
                "--json",
                "--format",
                "text",
                "--on-error",
                "skip",
                "--max-errors",
                "1000",
                "--table",
                "t",
            ])
            .args(["--to", &database.conninfo()])
            .arg(&source)
            .run(PATIENCE);
        assert_eq!(done.code, Some(3), "{major}: {}", done.stderr);
        let missing = "SELECT coalesce(string_agg(wanted::text, ' '), '') FROM wanted \
                       WHERE NOT EXISTS (SELECT FROM t WHERE t.id = wanted.id)";
        assert_eq!(database.value(missing), "", "{major}");
        assert_eq!(database.digest("t"), database.digest("wanted"), "{major}");
    }
}
