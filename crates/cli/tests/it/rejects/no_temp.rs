//! A role that may make no temporary tables skips bad records all the same, each way they are found.

use super::kept;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;
use std::fmt::Write as _;

/// More than two chunks.
const ROWS: u64 = 10_000;

/// Every tenth record repeats a key, breaks a CHECK, refers to nothing, is raised by a trigger, or cannot be
/// read.
fn records() -> (String, usize) {
    let (mut text, mut bad) = ("id,part,day,note\n".to_owned(), 0);
    for id in 1..=ROWS {
        bad += usize::from(id % 10 == 0);
        let _ = match id % 100 {
            10 | 60 => writeln!(text, "{},1,2024-01-02,twice", id - 1),
            20 | 70 => writeln!(text, "{id},-1,2024-01-02,low"),
            30 | 80 => writeln!(text, "{id},999,2024-01-02,alone"),
            40 | 90 => writeln!(text, "{id},1,2024-01-02,raise"),
            50 | 0 => writeln!(text, "{id},1,2024-02-31,no day"),
            _ => writeln!(text, "{id},1,2024-01-02,good"),
        };
    }
    (text, bad)
}

#[test]
fn who_may_make_no_temporary_tables_skips_bad_records_all_the_same() {
    let files = Files::new();
    let (text, bad) = records();
    let source = files.put("a.csv", text.as_bytes());
    for major in [13, 15, 18] {
        for table in ["", "PARTITION BY RANGE (id)"] {
            let database = Server::shared(major).database();
            let role = format!("no_temp_{}", database.name());
            database.sql(&format!(
                "CREATE TABLE other (part int PRIMARY KEY); INSERT INTO other VALUES (1), (-1); \
                 CREATE TABLE t (id bigint PRIMARY KEY, part int REFERENCES other CHECK (part > 0), day date, note text) {table}; \
                 CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS \
                     'BEGIN IF NEW.note = ''raise'' THEN RAISE ''stop''; END IF; RETURN NEW; END'; \
                 CREATE TRIGGER stop BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION stop(); \
                 CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT ON t TO {role}; GRANT SELECT ON other TO {role}; \
                 REVOKE ALL ON DATABASE {0} FROM PUBLIC; GRANT CONNECT, CREATE ON DATABASE {0} TO {role}",
                database.name()
            ));
            if !table.is_empty() {
                database.sql("CREATE TABLE p PARTITION OF t DEFAULT");
            }
            let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
            let done = howdah("load")
                .args([
                    "--format",
                    "csv",
                    "--header",
                    "--table",
                    "t",
                    "--on-error",
                    "skip",
                    "--max-errors",
                    "100%",
                    "--to",
                    &to,
                ])
                .args(["--chunk-size", "128kB"])
                .arg(&source)
                .run(PATIENCE);
            assert_eq!(done.code, Some(3), "PostgreSQL {major} {table}: {}", done.stderr);
            assert_eq!(kept(&database).len(), bad, "PostgreSQL {major} {table}");
            let good = ROWS as usize - bad;
            assert_eq!(
                database.value("SELECT count(*) FROM t"),
                good.to_string(),
                "PostgreSQL {major} {table}"
            );
        }
    }
}
