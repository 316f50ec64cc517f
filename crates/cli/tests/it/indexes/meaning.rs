//! What comes back means what it meant: whatever role and database have set, and whoever has renamed tables
//! meanwhile.

use super::kills::wait_for;
use super::{PLAIN_SCHEMA, load, open_entries, restore, schema};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, csv, while_waiting};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};

/// Indexes with constants that are written and read in many ways.
const CONSTANTS: &str = "\
    CREATE TABLE t (id bigint, part integer, amount numeric, note text, tags text[], bytes bytea, span interval, price money, \
        share float8, day date); \
    CREATE INDEX a ON t (id) WHERE tags <> '{NULL,\"NULL\",b}'; CREATE INDEX b ON t (id) WHERE bytes <> '\\x005c'; \
    CREATE INDEX c ON t (id) WHERE span > '-1 day +02:03:04'; CREATE INDEX d ON t (id) WHERE price > '1234.56'::money; \
    CREATE INDEX e ON t (id) WHERE share > 0.1::float8 + 0.2; CREATE INDEX f ON t (id) WHERE day > '2024-02-03'::date; \
    CREATE INDEX g ON t (id, (note || E'it''s\\\\')); CREATE UNIQUE INDEX h ON t (id) INCLUDE (part) WHERE note <> E'a\\\\b'";

/// All of them other than usual.
const ODD: &[(&str, &str)] = &[
    ("array_nulls", "off"),
    ("bytea_output", "escape"),
    ("datestyle", "'SQL, DMY'"),
    ("intervalstyle", "sql_standard"),
    ("extra_float_digits", "-10"),
    ("quote_all_identifiers", "on"),
    ("standard_conforming_strings", "off"),
    ("backslash_quote", "off"),
    ("transform_null_equals", "on"),
    ("xmloption", "document"),
];

fn set(database: &Database, is_odd: bool) {
    for (name, value) in ODD {
        let set = if is_odd { format!("SET {name} = {value}") } else { format!("RESET {name}") };
        database.sql(&format!("ALTER DATABASE {} {set}", database.name()));
    }
}

#[test]
fn constants_come_back_whatever_is_set() {
    for (major, odd_before, odd_after) in [(13, true, true), (15, false, true), (18, true, false)] {
        let files = Files::new();
        let source = files.put("a.csv", &csv(16, 1, 5000));
        let database = Server::shared(major).database();
        database.sql(CONSTANTS);
        let before = schema(&database);
        set(&database, odd_before);
        let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB"]);
        shut_gate_behind(&database, 0);
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, "SELECT count(*) FROM howdah.undo", 8));
        running.kill();
        remove_gate(&database);
        assert!(open_entries(&database) > 0, "{major}");
        set(&database, odd_after);
        restore(&database).run(PATIENCE).expect_code(0);
        set(&database, odd_before);
        load.run(PATIENCE).expect_code(0);
        set(&database, false);
        assert_eq!(schema(&database), before, "{major}");
        assert_eq!(open_entries(&database), 0, "{major}");
    }
}

#[test]
fn a_key_that_comes_back_changes_no_table_that_inherits() {
    for major in MAJORS {
        let files = Files::new();
        let source = files.put("a.csv", &csv(16, 1, 5000));
        let database = Server::shared(major).database();
        database.sql(&format!("{PLAIN_SCHEMA}; CREATE TABLE child () INHERITS (t)"));
        // From 18 on the NOT NULL of a key is inherited.
        let _ = database.try_sql("ALTER TABLE child ALTER id DROP NOT NULL");
        let before = schema(&database);
        load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM howdah.undo"), "0", "{major}");
        assert_eq!(schema(&database), before, "{major}");
    }
}

#[test]
fn an_index_does_not_come_back_to_a_table_that_has_got_the_name() {
    side_by_side(MAJORS, |major| {
        let files = Files::new();
        let source = files.put("a.csv", &csv(16, 1, 20_000));
        let database = Server::shared(major).database();
        database.sql(&format!("{PLAIN_SCHEMA}; CREATE TABLE other (LIKE t)"));
        let before = schema(&database);
        let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB"]);
        shut_gate_behind(&database, 1);
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, "SELECT count(*) FROM howdah.chunk", 1));
        running.kill();
        remove_gate(&database);
        let open = open_entries(&database);
        let change = "ALTER TABLE t RENAME TO old; ALTER TABLE other RENAME TO t";
        let restoring =
            while_waiting(&database, ("LOCK TABLE t", "t"), change, || restore(&database).spawn());
        let told = restoring.wait(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("the table public.t is now public.old"), "{major}: {told}");
        assert_eq!(
            database.value("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"),
            "0",
            "{major}"
        );
        assert_eq!(open_entries(&database), open, "{major}: {told}");
        database.sql("ALTER TABLE t RENAME TO other; ALTER TABLE old RENAME TO t");
        restore(&database).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "{major}");
    });
}

/// The server writes names of its own functions without their schema, and one of a user's schema may fit the
/// arguments better.
#[test]
fn an_index_comes_back_with_the_functions_and_operators_that_it_had() {
    side_by_side(MAJORS, |major| {
        let files = Files::new();
        let source = files.put("a.csv", &csv(17, 1, 100));
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint, part integer, amount numeric, note text, tags text[], span int4range, doc json); \
             ALTER TABLE t ADD CONSTRAINT apart EXCLUDE USING gist (span WITH &&) WHERE (array_length(tags, 1) > 1); \
             CREATE INDEX a ON t (array_length(tags, 1)); CREATE INDEX b ON t (id) WHERE tags[1] || part IS NULL; \
             CREATE FUNCTION same(json, json) RETURNS boolean IMMUTABLE LANGUAGE sql SET search_path = pg_catalog AS 'SELECT $1::text = $2::text'; \
             CREATE OPERATOR = (LEFTARG = json, RIGHTARG = json, FUNCTION = same); \
             CREATE INDEX c ON t ((NULLIF(doc, '{}') IS NULL)); \
             CREATE FUNCTION array_length(text[], integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 42'; \
             CREATE FUNCTION overlap(int4range, int4range) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false'; \
             CREATE OPERATOR && (LEFTARG = int4range, RIGHTARG = int4range, FUNCTION = overlap); \
             CREATE FUNCTION joined(text, integer) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT 42'; \
             CREATE OPERATOR || (LEFTARG = text, RIGHTARG = integer, FUNCTION = joined)",
        );
        let before = schema(&database);
        let told =
            load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(
            database.value("SELECT count(*) FROM howdah.undo WHERE kind IN ('index', 'constraint')"),
            "4",
            "{major}: {told}"
        );
        assert_eq!(schema(&database), before, "{major}");
        database.sql("ALTER TABLE t DROP CONSTRAINT apart");
        let before = schema(&database);
        load(&database, &source).args(["--mode", "replace", "--force"]).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "{major}");
    });
}

/// What has come while the rows came, nobody could look for before.
#[test]
fn an_index_does_not_come_back_with_an_operator_that_was_not_there() {
    side_by_side(MAJORS, |major| {
        let files = Files::new();
        let source = files.put("a.csv", &csv(19, 1, 100));
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint, part integer, amount numeric, note text, tags text[]); \
             CREATE FUNCTION half(numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2'; \
             CREATE INDEX tagged ON t (id) WHERE tags @> '{x}'; CREATE INDEX halved ON t (half(amount)); \
             ALTER TABLE t ADD CONSTRAINT apart EXCLUDE (id WITH =) WHERE (tags @> '{y}')",
        );
        let before = schema(&database);
        shut_gate_behind(&database, 0);
        let mut running = load(&database, &source).args(["--indexes", "rebuild"]).spawn();
        assert!(wait_for(&database, &mut running, "SELECT count(*) FROM howdah.undo", 1));
        database.sql(
            "CREATE FUNCTION has(text[], text[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'; \
             CREATE OPERATOR @> (LEFTARG = text[], RIGHTARG = text[], FUNCTION = has)",
        );
        remove_gate(&database);
        let told = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("somebody has made meanwhile"), "{major}: {told}");
        let back = "SELECT string_agg(relname, ' ') FROM pg_class JOIN pg_index ON indexrelid = oid WHERE indrelid = 't'::regclass";
        assert_eq!(database.value(back), "halved", "{major}: {told}");
        database.sql("DROP OPERATOR @> (text[], text[]); DROP FUNCTION has(text[], text[])");
        restore(&database).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "{major}");
        assert_eq!(open_entries(&database), 0, "{major}");
    });
}

/// The journal names it in full: by the `search_path` alone, another one would be found where it is gone or
/// hidden from the role.
#[test]
fn an_index_comes_back_with_no_function_of_another_schema() {
    side_by_side(MAJORS, |major| {
        let files = Files::new();
        let source = files.put("a.csv", &csv(18, 1, 20_000));
        let database = Server::shared(major).database();
        database.sql(&format!(
            "{PLAIN_SCHEMA}; CREATE SCHEMA one; CREATE SCHEMA two; \
             CREATE FUNCTION one.mark(text) RETURNS text IMMUTABLE STRICT LANGUAGE internal AS 'upper'; \
             CREATE FUNCTION two.mark(text) RETURNS text IMMUTABLE STRICT LANGUAGE internal AS 'lower'; \
             CREATE INDEX marked ON t (one.mark(note)); ALTER DATABASE {} SET search_path = one, two, public",
            database.name()
        ));
        let before = schema(&database);
        let load = load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB"]);
        shut_gate_behind(&database, 1);
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, "SELECT count(*) FROM howdah.chunk", 1));
        running.kill();
        remove_gate(&database);
        database.sql("ALTER FUNCTION one.mark RENAME TO other");
        let told = restore(&database).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("function one.mark(text) does not exist"), "{major}: {told}");
        database.sql("ALTER FUNCTION one.other RENAME TO mark");
        restore(&database).run(PATIENCE).expect_code(0);
        assert!(schema(&database) == before && open_entries(&database) == 0, "{major}");
    });
}
