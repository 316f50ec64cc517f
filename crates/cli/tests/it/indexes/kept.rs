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

/// A guard against CREATE INDEX without CONCURRENTLY, as event triggers are used for.
fn guard(event: &str, condition: &str) -> String {
    format!(
        "CREATE FUNCTION guard() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN {condition} \
             RAISE EXCEPTION 'not so'; {} END $$; \
         CREATE EVENT TRIGGER guard ON {event} EXECUTE FUNCTION guard()",
        if condition.is_empty() { "" } else { "END IF;" }
    )
}

#[test]
fn nothing_is_dropped_where_an_event_trigger_keeps_it_from_being_built_again() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(43, 1, ROWS));
    let of_commands =
        "IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE command_tag = 'CREATE INDEX') THEN";
    for major in MAJORS {
        for (table, event, condition) in [
            (PLAIN_SCHEMA, "ddl_command_start WHEN TAG IN ('CREATE INDEX')", ""),
            (PLAIN_SCHEMA, "ddl_command_end", "IF tg_tag = 'CREATE INDEX' THEN"),
            (PLAIN_SCHEMA, "ddl_command_end", of_commands),
            (
                "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text) PARTITION BY RANGE (id); \
                 CREATE TABLE part PARTITION OF t DEFAULT; INSERT INTO t VALUES (-1)",
                "ddl_command_start WHEN TAG IN ('CREATE INDEX')",
                "",
            ),
        ] {
            let what = format!("PostgreSQL {major}, {event}, {condition}");
            let database = Server::shared(major).database();
            // The ledger's tables have indexes of their own.
            database.sql("CREATE TABLE t (n integer)");
            let first = files.put("first.csv", b"n\n1\n");
            load(&database, &first).run(PATIENCE).expect_code(0);
            database.sql("DROP TABLE t");
            database.sql(&format!("{table}; {}", guard(event, condition)));
            let before = schema(&database);
            let told =
                load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(1).stderr;
            let words =
                ["CREATE INDEX, which puts them back, is refused", "hint: an event trigger has raised it"];
            assert!(words.iter().all(|words| told.contains(words)), "{what}: {told}");
            assert_eq!((schema(&database), open_entries(&database)), (before, 0), "{what}");
        }
    }
}

#[test]
fn an_event_trigger_that_lets_indexes_be_built_sees_no_trial() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(44, 1, ROWS));
    let database = Server::shared(18).database();
    database.sql(&format!(
        "{PLAIN_SCHEMA}; CREATE TABLE seen (command text); \
         CREATE FUNCTION see() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO public.seen SELECT object_identity FROM pg_event_trigger_ddl_commands(); END $$; \
         CREATE EVENT TRIGGER see ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION see()"
    ));
    let before = schema(&database);
    load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0);
    let seen = "SELECT string_agg(command, ' ' ORDER BY command) FROM seen WHERE command NOT LIKE 'howdah.%'";
    assert_eq!(database.value(seen), "public.t_note public.t_part public.t_pkey");
    assert_eq!((schema(&database), open_entries(&database)), (before, 0));
}

/// Others wait behind the lock of the table that is tried.
#[test]
fn an_event_trigger_that_takes_its_time_is_not_waited_for() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(45, 1, ROWS));
    for major in [13, 18] {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (n integer)");
        let first = files.put("first.csv", b"n\n1\n");
        load(&database, &first).run(PATIENCE).expect_code(0);
        database.sql("DROP TABLE t");
        let condition = "PERFORM pg_sleep(3600); IF true THEN";
        let event = "ddl_command_start WHEN TAG IN ('CREATE INDEX')";
        database.sql(&format!("{PLAIN_SCHEMA}; {}", guard(event, condition)));
        let before = schema(&database);
        let load = load(&database, &source);
        let told = load.clone().args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(1).stderr;
        let words = "CREATE INDEX, which puts them back, has not come to an end within 3 s";
        assert!(told.contains(words), "PostgreSQL {major}: {told}");
        assert!(told.contains("hint: an event trigger waits"), "PostgreSQL {major}: {told}");
        let told = load.args(["--mode", "replace"]).run(PATIENCE).expect_code(1).stderr;
        let words = "CREATE INDEX, which a new table needs, has not come to an end within 3 s";
        assert!(told.contains(words), "PostgreSQL {major}: {told}");
        assert_eq!((schema(&database), open_entries(&database)), (before, 0), "PostgreSQL {major}");
    }
}
