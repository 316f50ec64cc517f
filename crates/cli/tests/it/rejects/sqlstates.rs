//! Values that the server's types refuse with SQLSTATEs that are not those of data.

use super::kept;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;

/// Type, a value that it takes, one that it refuses.
const TYPES: &[(&str, &str, &str)] = &[
    ("tsvector", "a:1", "a:0"),
    ("tsquery", "a & b", "a &"),
    ("jsonpath", "$.a", "$."),
    ("hstore", "a=>1", "a=>"),
    ("ltree", "a.b", "a..b"),
    ("regclass", "pg_class", "no_such"),
    ("regtype", "int4", "no_such"),
    ("regrole", "pg_monitor", "no_such"),
    ("regproc", "now", "lower"),
    ("regnamespace", "public", "no..such"),
];

#[test]
fn a_value_is_left_out_whatever_sqlstate_its_type_refuses_it_with() {
    let files = Files::new();
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql("CREATE EXTENSION hstore; CREATE EXTENSION ltree");
        for (no, (name, good, bad)) in TYPES.iter().enumerate() {
            let refused = format!("SELECT '{bad}'::{name}");
            assert!(database.try_sql(&refused).is_err(), "{major}: {refused}");
            database.sql(&format!("CREATE TABLE t{no} (id int, v {name})"));
            let text = format!("1\t{good}\n2\t{bad}\n3\t{bad}\n4\t{good}\n");
            let source = files.put(&format!("{major}_{no}.tsv"), text.as_bytes());
            let done = howdah("load")
                .args(["--json", "--format", "text", "--on-error", "skip", "--table", &format!("t{no}")])
                .args(["--to", &database.conninfo()])
                .arg(&source)
                .run(PATIENCE);
            let what = format!("PostgreSQL {major}, {name}: {}", done.stderr);
            assert_eq!(done.code, Some(3), "{what}");
            assert_eq!(
                database.value(&format!("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t{no}")),
                "1 4",
                "{what}"
            );
            let rejects = kept(&database);
            assert_eq!(rejects.keys().copied().collect::<Vec<_>>(), [2, 3], "{what}");
            assert!(rejects.values().all(|(_, _, _, column)| column.as_deref() == Some("v")), "{what}");
            database.sql("DELETE FROM howdah.reject");
        }
    }
}
