//! What a table refuses of rows that come in from a staging table is told with the record, where records are told apart by a key.

use super::load;
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{Database, MAJORS, Server};

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
