//! What the server would not build again, or otherwise than it was, stays where it is.

use super::{PLAIN_SCHEMA, load, open_entries, schema};
use crate::scene::{Files, PATIENCE, csv};
use howdah_testkit::{Database, MAJORS, Server};

const ROWS: u64 = 2000;

/// On what each foreign key hangs, which no dump tells.
fn hangs_on(database: &Database) -> String {
    database.value(
        "SELECT string_agg(conname || ' on ' || conindid::regclass, ', ' ORDER BY conname) FROM pg_constraint \
         WHERE contype = 'f' AND connamespace = 'public'::regnamespace",
    )
}

/// The server lets a foreign key hang on the first by OID of several unique indexes of the same columns.
#[test]
fn a_foreign_key_hangs_on_the_key_that_it_hung_on() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(41, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE UNIQUE INDEX a_cover ON t (id DESC) INCLUDE (note); \
             CREATE UNIQUE INDEX t_some ON t (part, id); CREATE INDEX t_part ON t (part); \
             CREATE TABLE child (id bigint REFERENCES t); \
             CREATE TABLE pair (a integer, b integer, PRIMARY KEY (a, b)); CREATE UNIQUE INDEX twin ON pair (b, a); \
             INSERT INTO pair SELECT n, n FROM generate_series(0, 255) n; \
             ALTER TABLE t ADD FOREIGN KEY (part, part) REFERENCES pair; \
             CREATE TABLE sole (part integer PRIMARY KEY); CREATE UNIQUE INDEX other ON sole (part) WHERE part > 0; \
             INSERT INTO sole SELECT generate_series(0, 255); ALTER TABLE t ADD FOREIGN KEY (part) REFERENCES sole",
        );
        let (before, hung_on) = (schema(&database), hangs_on(&database));
        let told =
            load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(hangs_on(&database), hung_on, "PostgreSQL {major}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        for words in [
            "primary key t_pkey of public.t is kept: the foreign key child_id_fkey of public.child hangs on it: \
             it might come back hanging on the index a_cover",
            "foreign key t_part_part_fkey of public.t is kept: it might come back hanging on the index twin",
            "foreign key t_part_fkey",
            "index t_some",
        ] {
            assert!(told.contains(words), "PostgreSQL {major}: {words}: {told}");
        }
        let kept = told.lines().filter(|line| line.contains(" is kept")).count();
        assert_eq!(kept, 2, "PostgreSQL {major}: {told}");
    }
}

/// An index whose function, or operator's function, was made anew without IMMUTABLE works on, and CREATE
/// INDEX refuses the very same.
#[test]
fn an_index_whose_function_is_not_immutable_any_more_is_kept() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(42, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        let norm = |immutable: &str| {
            format!(
                "CREATE OR REPLACE FUNCTION norm(text) RETURNS text LANGUAGE plpgsql {immutable} SET search_path = '' \
                 AS 'BEGIN RETURN lower($1); END'; \
                 CREATE OR REPLACE FUNCTION alike(text, text) RETURNS boolean LANGUAGE plpgsql {immutable} SET search_path = '' \
                 AS 'BEGIN RETURN $1 = $2; END'"
            )
        };
        database.sql(&format!(
            "{PLAIN_SCHEMA}; {}; CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = alike); \
             CREATE INDEX by_norm ON t (norm(note)); CREATE INDEX by_part ON t (part) WHERE note === 'x'; \
             CREATE INDEX by_lower ON t (lower(note)); {}",
            norm("IMMUTABLE"),
            norm("")
        ));
        let before = schema(&database);
        let told =
            load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
        assert_eq!((schema(&database), open_entries(&database)), (before, 0), "PostgreSQL {major}: {told}");
        for (name, function) in [("by_norm", "public.norm(text)"), ("by_part", "public.alike(text,text)")] {
            let words = format!(
                "index {name} of public.t is kept: its function {function} is not IMMUTABLE any more"
            );
            assert!(told.contains(&words), "PostgreSQL {major}: {words}: {told}");
        }
        assert!(told.contains("the index by_lower of public.t is built"), "PostgreSQL {major}: {told}");
    }
}
