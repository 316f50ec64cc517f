//! Wide values are compressed by lz4 where the server has it and nobody has said otherwise.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Server};
use std::fmt::Write as _;

/// So many documents of some 6 kB, which compress.
fn documents() -> String {
    let mut text = "id,doc\n".to_owned();
    for no in 0..200 {
        let words: String = (0..700 + no * 7 % 300).map(|at| format!("word{} ", (no * at) % 83)).collect();
        let _ = writeln!(text, "{no},{words}");
    }
    text
}

/// The methods that the stored documents were compressed by.
fn methods(database: &Database) -> String {
    database.value("SELECT string_agg(DISTINCT pg_column_compression(doc), ' ') FROM t")
}

fn has_lz4(database: &Database) -> bool {
    let sql = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'";
    database.value(sql) == "true"
}

#[test]
fn wide_values_are_compressed_by_lz4_unless_somebody_has_said_how() {
    let files = Files::new();
    let (wide, narrow) =
        (files.put("wide.csv", documents().as_bytes()), files.put("n.csv", b"id,doc\n1,a\n2,b\n"));
    for version in [15, 18] {
        let database = Server::shared(version).database();
        database.sql("CREATE TABLE t (id int, doc text)");
        let lz4 = if has_lz4(&database) { "lz4" } else { "pglz" };
        let run = |options: &[&str]| {
            database.sql("TRUNCATE t");
            load(&database)
                .args(["--table", "t", "--force"])
                .args(options)
                .arg(&wide)
                .run(PATIENCE)
                .expect_code(0);
            assert_eq!(database.value("SELECT count(*) FROM t"), "200");
            methods(&database)
        };
        assert_eq!(run(&[]), lz4, "{version}");
        assert_eq!(run(&["--toast-compression", "keep"]), "pglz", "{version}");
        let plan = |source| {
            let plan =
                howdah("plan").args(["--to", &database.conninfo(), "--table", "t", "--force"]).arg(source);
            plan.run(PATIENCE).expect_code(0).stdout.contains("compressed by lz4")
        };
        assert_eq!((plan(&wide), plan(&narrow)), (lz4 == "lz4", false), "{version}");
        database.sql("ALTER TABLE t ALTER doc SET COMPRESSION pglz");
        assert_eq!(run(&[]), "pglz", "{version}");
        database.sql("ALTER TABLE t ALTER doc SET COMPRESSION default");
        database.sql(&format!("ALTER DATABASE {} SET default_toast_compression = pglz", database.name()));
        assert_eq!(run(&[]), "pglz", "{version}");
    }
}

#[test]
fn a_server_without_the_setting_loads_as_ever() {
    let files = Files::new();
    let source = files.put("wide.csv", documents().as_bytes());
    let database = Server::shared(13).database();
    load(&database).args(["--create", "--table", "t"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "200");
}
