//! What a table refuses of rows that come in from a staging table is told with the record, where records are
//! told apart by a key.

use super::load;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};

const TEXT: &[u8] = b"id,n,code,o,at\n1,1,a,1,\"[1,5)\"\n2,2,b,1,\"[11,15)\"\n3,3,c,1,\"[21,25)\"\n";

fn scene(major: u32, bad: &str) -> (Files, Database) {
    let (files, database) = (Files::new(), Server::shared(major).database());
    files.put("a.csv", &[TEXT, b"4,", bad.as_bytes(), b"\n5,5,e,1,\"[51,55)\"\n"].concat());
    database.sql(
        "CREATE TABLE other (id int PRIMARY KEY); INSERT INTO other VALUES (1); \
         CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, code text UNIQUE, o int REFERENCES other, at int4range, \
             CONSTRAINT positive CHECK (n > 0), CONSTRAINT apart EXCLUDE USING gist (at WITH &&))",
    );
    (files, database)
}

#[test]
fn a_record_that_a_table_refuses_as_it_is_merged_is_named() {
    for major in MAJORS {
        for (bad, sqlstate) in [
            (",d,1,", "23502"),
            ("-4,d,1,", "23514"),
            ("4,b,1,", "23505"),
            ("4,d,7,", "23503"),
            ("4,d,1,\"[14,16)\"", "23P01"),
        ] {
            let (files, database) = scene(major, bad);
            let source = files.path().join("a.csv");
            for mode in ["merge", "insert-new"] {
                let failed = load(&database, &[&source]).args(["--mode", mode, "--key", "id"]).run(PATIENCE);
                let said = failed.expect_code(1).stderr;
                let names = [
                    format!("error: file {}, ", source.display()),
                    "record 4".to_owned(),
                    format!("(SQLSTATE {sqlstate})"),
                ];
                assert!(names.iter().all(|name| said.contains(name)), "PostgreSQL {major}, {mode}: {said}");
                assert_eq!(database.value("SELECT count(*) FROM t"), "0");
            }
        }
    }
}

/// Three thousand rows, of which two are refused, and a table that has the first two thousand already.
fn scene_of_two_bad(major: u32) -> (Files, Database, usize) {
    let (files, database) = (Files::new(), Server::shared(major).database());
    let n = |id: i32| if id == 1_234 || id == 2_900 { -1 } else { id };
    let rows: Vec<String> = (1..=3_000).map(|id| format!("{id},{}\n", n(id))).collect();
    let text = format!("id,n\n{}", rows.concat());
    files.put("a.csv", text.as_bytes());
    let (role, name) = (format!("loader_{}", database.name()), database.name());
    database.sql(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 2000) g; \
         CREATE ROLE {role} LOGIN; GRANT ALL ON t TO {role}; GRANT CREATE, TEMP ON DATABASE {name} TO {role}; \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF new.n < 0 THEN RAISE EXCEPTION ''no''; END IF; RETURN new; END'; \
         CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF new.n < 0 THEN RETURN NULL; END IF; RETURN new; END'; \
         CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN IF (SELECT min(n) FROM t) < 0 THEN RAISE EXCEPTION ''no''; END IF; RETURN NULL; END'"
    ));
    (files, database, text.find("1234,-1").unwrap())
}

/// No query finds these: rows are tried by halves.
#[test]
fn a_record_that_a_trigger_or_a_policy_refuses_is_named() {
    side_by_side(MAJORS, |major| {
        let (files, database, byte) = scene_of_two_bad(major);
        let source = files.path().join("a.csv");
        let to = database.conninfo().replace("user=postgres", &format!("user=loader_{}", database.name()));
        let merge = ["--mode", "merge", "--key", "id"].as_slice();
        let policy =
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (true) WITH CHECK (n >= 0)";
        for (made, told) in [
            (policy, "(SQLSTATE 42501)"),
            (
                "ALTER TABLE t DISABLE ROW LEVEL SECURITY; \
                 CREATE TRIGGER g BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION refuse()",
                "(SQLSTATE P0001)",
            ),
            (
                "DROP TRIGGER g ON t; CREATE TRIGGER g AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION refuse()",
                "(SQLSTATE P0001)",
            ),
            (
                "DROP TRIGGER g ON t; TRUNCATE t; CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION leave_out()",
                "1 row did not come into public.t",
            ),
        ] {
            database.sql(made);
            let before = database.digest("t");
            for options in [merge.to_vec(), [merge, &["--atomic", "--on-error", "skip"]].concat()] {
                let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
                let said =
                    load.args(options.iter().copied()).arg(&source).run(PATIENCE).expect_code(1).stderr;
                let file = format!("error: file {}, ", source.display());
                let record = format!("record 1234, byte {byte}: ");
                let what = format!("PostgreSQL {major}, {made}, {options:?}: {said}");
                assert!([&*file, &*record, told].iter().all(|part| said.contains(part)), "{what}");
                assert_eq!(database.digest("t"), before, "{what}");
            }
        }
        // Whoever judges by all rows that come has none to name.
        database.sql("DROP TRIGGER g ON t; CREATE TRIGGER g AFTER INSERT ON t EXECUTE FUNCTION judge()");
        let said =
            load(&database, &[&source]).args(merge.iter().copied()).run(PATIENCE).expect_code(1).stderr;
        assert!(said.contains("error: the rows cannot come into public.t"), "PostgreSQL {major}: {said}");
    });
}
