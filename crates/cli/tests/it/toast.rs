//! Wide values are compressed by lz4 where the server has it and nobody has said otherwise.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, MAJORS, Server};
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

/// As [`documents`], with a column of values that no document is as long as.
fn two_columns() -> String {
    let text = documents();
    let field = |no: usize| if no == 0 { "raw".to_owned() } else { "y".repeat(9000) };
    text.lines().enumerate().map(|(no, line)| format!("{line},{}\n", field(no))).collect()
}

/// A table with two columns that say how their values are kept.
const KEPT: &str =
    "CREATE TABLE t (id int PRIMARY KEY, doc text, raw text); ALTER TABLE t ALTER raw SET STORAGE EXTERNAL";

fn make(version: u32) -> Database {
    let database = Server::shared(version).database();
    let pglz = if version >= 14 { "; ALTER TABLE t ALTER doc SET COMPRESSION pglz" } else { "" };
    database.sql(&format!("{KEPT}{pglz}"));
    database
}

#[track_caller]
fn expect_kept(database: &Database, what: &str) {
    let raw = "SELECT count(*) || ' ' || count(*) FILTER (WHERE pg_column_size(raw) = 9000) FROM t \
               WHERE octet_length(raw) = 9000";
    assert_eq!(database.value(raw), "200 200", "{what}");
    if database.value("SELECT current_setting('server_version_num')::int >= 140000") == "t" {
        assert_eq!(methods(database), "pglz", "{what}");
    }
}

/// They are stored as they were in the table that they have waited in, which the server looks at no more.
#[test]
fn values_that_come_by_insert_are_kept_as_their_columns_say() {
    let files = Files::new();
    let source = files.put("wide.csv", two_columns().as_bytes());
    let ways: [&[&str]; 6] = [
        &["--mode", "append"],
        &["--atomic"],
        &["--mode", "merge", "--key", "id"],
        &["--mode", "insert-new", "--key", "id"],
        &["--mode", "replace"],
        &["--mode", "replace", "--on-error", "skip"],
    ];
    for version in MAJORS {
        let database = make(version);
        for way in ways {
            // A merge changes some rows, and inserts the others.
            let before =
                if way.contains(&"merge") { "INSERT INTO t SELECT generate_series(1, 50)" } else { "" };
            database.sql(&format!("TRUNCATE t; {before}"));
            load(&database)
                .args(["--table", "t", "--force"])
                .args(way)
                .arg(&source)
                .run(PATIENCE)
                .expect_code(0);
            expect_kept(&database, &format!("PostgreSQL {version} {way:?}"));
        }
    }
}

#[test]
fn values_that_meet_policies_are_kept_as_their_columns_say() {
    let files = Files::new();
    let source = files.put("wide.csv", two_columns().as_bytes());
    for version in MAJORS {
        let database = make(version);
        let (name, role) = (database.name(), format!("wide_{}", database.name()));
        database.sql(&format!(
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t FOR INSERT WITH CHECK (true); \
             CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}; GRANT CREATE, TEMPORARY ON DATABASE {name} TO {role}"
        ));
        let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
        howdah("load").args(["--to", &to, "--table", "t"]).arg(&source).run(PATIENCE).expect_code(0);
        expect_kept(&database, &format!("PostgreSQL {version}"));
        database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
}

#[test]
fn values_of_chunks_with_many_bad_records_are_kept_as_their_columns_say() {
    let files = Files::new();
    let wide = two_columns();
    let mut text = String::new();
    for (no, line) in wide.lines().enumerate() {
        let _ = writeln!(text, "{line}");
        for again in 0..9 {
            let _ = writeln!(text, "{no},short {again},raw");
        }
    }
    let source = files.put("bad.csv", text.as_bytes());
    for version in MAJORS {
        let database = make(version);
        // Nothing but storing a row tells what it says.
        database.sql(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF NEW.doc LIKE ''short%'' THEN RAISE check_violation; END IF; RETURN NEW; END'; \
             CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()",
        );
        let command = load(&database).args(["--table", "t", "--header", "--on-error", "skip"]).arg(&source);
        command.run(PATIENCE).expect_code(3);
        assert_eq!(database.value("SELECT count(*) FROM t"), "200", "PostgreSQL {version}");
        expect_kept(&database, &format!("PostgreSQL {version}"));
    }
}
