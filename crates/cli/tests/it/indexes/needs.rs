//! What this role, or this server, could not build again is not dropped.

use super::{open_entries, schema};
use crate::gate::{remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, side_by_side};
use std::path::PathBuf;

const ROWS: u64 = 500;

/// The table `a.t` of a role that may make tables in `a`, and has no business in the schema `ext`.
struct Owned {
    database: Database,
    role: String,
    _files: Files,
    source: PathBuf,
}

impl Owned {
    fn new(major: u32, sql: &str) -> Owned {
        Owned::with_rows(major, sql, ROWS)
    }

    fn with_rows(major: u32, sql: &str, rows: u64) -> Owned {
        let files = Files::new();
        let source = files.put("a.csv", &csv(11, 1, rows));
        let database = Server::shared(major).database();
        let role = format!("app_{}", database.name());
        database.sql(&format!(
            "CREATE ROLE {role} LOGIN; CREATE SCHEMA howdah AUTHORIZATION {role}; CREATE SCHEMA ext; CREATE SCHEMA a; \
             GRANT USAGE, CREATE ON SCHEMA a TO {role}; \
             CREATE TABLE a.t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE FUNCTION a.pure(text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS 'SELECT lower($1)'; \
             CREATE INDEX pure ON a.t (a.pure(note)); {}; ALTER TABLE a.t OWNER TO {role}",
            sql.replace("@role@", &role)
        ));
        Owned { database, role, _files: files, source }
    }

    fn to(&self) -> String {
        self.database.conninfo().replace("user=postgres", &format!("user={}", self.role))
    }

    fn load(&self, to: &str) -> HowdahCommand {
        howdah("load").args(["--format", "csv", "--header", "--table", "a.t", "--to", to]).arg(&self.source)
    }

    fn rebuild(&self) -> HowdahCommand {
        self.load(&self.to()).args(["--indexes", "rebuild"])
    }
}

/// Each names something in `ext`: a function, one in a predicate, a collation, an operator class, a type, a
/// configuration in a constant.
const NAMED_IN_EXT: &str = "\
    CREATE FUNCTION ext.f(text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS 'SELECT lower($1)'; \
    CREATE UNIQUE INDEX kept_1 ON a.t (ext.f(note), id); \
    CREATE FUNCTION ext.g(text) RETURNS bool LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS 'SELECT true'; \
    CREATE INDEX kept_2 ON a.t (id) WHERE ext.g(note); \
    CREATE COLLATION ext.c (provider = libc, locale = 'C'); CREATE INDEX kept_3 ON a.t (note COLLATE ext.c); \
    CREATE OPERATOR CLASS ext.o FOR TYPE text USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, \
        OPERATOR 5 >, FUNCTION 1 bttextcmp(text, text); \
    CREATE INDEX kept_4 ON a.t (note ext.o); \
    CREATE TYPE ext.e AS (a text); CREATE INDEX kept_5 ON a.t ((ROW(note)::ext.e)); \
    CREATE TEXT SEARCH CONFIGURATION ext.s (COPY = simple); CREATE INDEX kept_6 ON a.t USING gin (to_tsvector('ext.s', note))";

/// An exclusion constraint by an operator that only its class leads to.
const EXCLUDED_IN_EXT: &str = "\
    CREATE OPERATOR ext.@@@ (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text, COMMUTATOR = OPERATOR(ext.@@@)); \
    CREATE OPERATOR CLASS a.o FOR TYPE text USING hash AS OPERATOR 1 ext.@@@, FUNCTION 1 hashtext(text); \
    ALTER TABLE a.t ADD CONSTRAINT kept_7 EXCLUDE USING hash (note a.o WITH OPERATOR(ext.@@@)) WHERE (id < 0)";

#[test]
fn an_index_that_names_a_schema_which_the_role_may_not_use_is_kept() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::new(major, &format!("{NAMED_IN_EXT}; {EXCLUDED_IN_EXT}"));
        let database = &owned.database;
        let before = schema(database);
        let told = owned.rebuild().run(PATIENCE).expect_code(0).stderr;
        let indexes = (1..=6).map(|no| format!("the index kept_{no}"));
        for kept in indexes.chain(["the exclusion constraint kept_7".to_owned()]) {
            let reason = format!("{kept} of a.t is kept: putting it back needs USAGE on the schema ext");
            assert!(told.contains(&reason), "PostgreSQL {major}: {kept}: {told}");
        }
        assert!(told.contains("dropped from a.t") && told.contains("index pure"), "{major}: {told}");
        assert!(schema(database) == before && open_entries(database) == 0, "{major}: {told}");
        assert_eq!(database.value("SELECT count(*) FROM a.t"), ROWS.to_string(), "{major}");
        database.sql(&format!("GRANT USAGE ON SCHEMA ext TO {}; TRUNCATE a.t", owned.role));
        let before = schema(database);
        let told = owned.rebuild().arg("--force").run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("is kept") && told.contains("exclusion constraint kept_7"), "{major}: {told}");
        assert_eq!(schema(database), before, "{major}");
    });
}

#[test]
fn an_index_whose_function_the_role_may_not_execute_goes_on_refusing_rows() {
    side_by_side(MAJORS, |major| {
        for sql in [
            "CREATE FUNCTION a.f(text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS 'SELECT lower($1)'; \
             REVOKE EXECUTE ON FUNCTION a.f FROM PUBLIC; CREATE UNIQUE INDEX kept ON a.t (a.f(note), id)",
            "CREATE FUNCTION a.f(text, text) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'texteq'; \
             REVOKE EXECUTE ON FUNCTION a.f FROM PUBLIC; \
             CREATE OPERATOR a.=== (FUNCTION = a.f, LEFTARG = text, RIGHTARG = text); \
             CREATE INDEX kept ON a.t (id) WHERE note OPERATOR(a.===) note",
        ] {
            let owned = Owned::new(major, sql);
            let before = schema(&owned.database);
            let told = owned.rebuild().run(PATIENCE).expect_code(1).stderr;
            let reason =
                "the index kept of a.t is kept: putting it back needs EXECUTE on the function a.f(text";
            assert!(
                told.contains(reason) && told.contains("permission denied for function f"),
                "{major}: {told}"
            );
            assert!(schema(&owned.database) == before && open_entries(&owned.database) == 0, "{major}");
            assert_eq!(owned.database.value("SELECT count(*) FROM a.t"), "0");
            // Indexes are built with the rights of the table's owner, whoever asks for that.
            let load = owned.load(&owned.database.conninfo()).args(["--indexes", "rebuild"]);
            let told = load.run(PATIENCE).expect_code(0).stderr;
            assert!(told.contains(reason) && told.contains(&owned.role), "{major}: {told}");
            assert_eq!(schema(&owned.database), before, "{major}");
        }
    });
}

/// PL/pgSQL, whose body finds `g` by the `search_path`.
const BY_PATH: &str = "\
    CREATE FUNCTION a.g(text) RETURNS text LANGUAGE internal IMMUTABLE STRICT AS 'lower'; \
    CREATE FUNCTION a.f(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN g($1); END'; \
    CREATE INDEX kept ON a.t (a.f(note)); CREATE INDEX built ON a.t (a.g(note)); \
    ALTER ROLE @role@ SET search_path = a";

#[test]
fn an_index_whose_function_needs_the_search_path_is_kept_where_builds_have_none() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::new(major, BY_PATH);
        let before = schema(&owned.database);
        let told = owned.rebuild().run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("index built") && told.contains("index pure"), "{major}: {told}");
        let reason = "the index kept of a.t is kept: it is built under a search_path of pg_catalog alone from PostgreSQL 17 on, and its \
                      function a.f(text) has none of its own (ALTER FUNCTION ... SET search_path)";
        assert_eq!(told.contains(reason), major >= 17, "{major}: {told}");
        assert!(schema(&owned.database) == before && open_entries(&owned.database) == 0, "{major}");
        assert_eq!(owned.database.value("SELECT count(*) FROM a.t"), ROWS.to_string());
    });
}

#[test]
fn a_body_that_was_read_when_it_was_made_needs_no_search_path() {
    let owned = Owned::new(
        18,
        "SET search_path = a, public; \
         CREATE FUNCTION a.g(text) RETURNS text LANGUAGE internal IMMUTABLE STRICT AS 'lower'; \
         CREATE FUNCTION a.f(text) RETURNS text IMMUTABLE RETURN g($1); CREATE INDEX built ON a.t (a.f(note)); \
         CREATE FUNCTION a.h(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN g($1); END'; \
         CREATE FUNCTION a.i(text) RETURNS text IMMUTABLE RETURN h($1); CREATE INDEX kept ON a.t (a.i(note))",
    );
    owned.database.sql(&format!("ALTER ROLE {} SET search_path = a", owned.role));
    let before = schema(&owned.database);
    let told = owned.rebuild().run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("index built") && told.contains("the index kept of a.t is kept"), "{told}");
    assert!(told.contains("its function a.h(text)"), "{told}");
    assert_eq!(schema(&owned.database), before);
}

/// A foreign key to a table in `ext`, and one of a table there. The server looks for keys with the rights of
/// their table's owner.
const TIED: [(&str, &str, i32); 2] = [
    (
        "CREATE TABLE ext.p (part integer PRIMARY KEY); INSERT INTO ext.p SELECT generate_series(0, 255); \
         ALTER TABLE ext.p OWNER TO @role@; ALTER TABLE a.t ADD CONSTRAINT kept FOREIGN KEY (part) REFERENCES ext.p",
        "the foreign key kept of a.t is kept: putting it back needs USAGE on the schema ext",
        1,
    ),
    (
        "CREATE TABLE ext.q (id bigint); ALTER TABLE ext.q OWNER TO @role@; \
         ALTER TABLE ext.q ADD CONSTRAINT kept FOREIGN KEY (id) REFERENCES a.t",
        "t_pkey of a.t is kept: the foreign key kept of ext.q hangs on it: putting it back needs USAGE on the schema ext",
        0,
    ),
];

#[test]
fn a_foreign_key_that_names_a_schema_which_the_role_may_not_use_is_kept() {
    side_by_side(MAJORS, |major| {
        for (sql, reason, code) in TIED {
            let owned = Owned::new(major, sql);
            let before = schema(&owned.database);
            let told = owned.rebuild().run(PATIENCE).expect_code(code).stderr;
            assert!(told.contains(reason) && told.contains("at the end: index pure"), "{major}: {told}");
            assert!(schema(&owned.database) == before && open_entries(&owned.database) == 0, "{major}");
            let rows = if code == 0 { ROWS } else { 0 };
            assert_eq!(owned.database.value("SELECT count(*) FROM a.t"), rows.to_string(), "{major}");
        }
    });
}

#[test]
fn what_a_role_may_no_more_put_back_tells_the_grant_that_helps() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::new(
            major,
            "CREATE FUNCTION ext.f(text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS 'SELECT lower($1)'; \
             CREATE UNIQUE INDEX kept ON a.t (ext.f(note), id); GRANT USAGE ON SCHEMA ext TO @role@",
        );
        let (database, role) = (&owned.database, &owned.role);
        let before = schema(database);
        // Makes the ledger.
        owned.load(&owned.to()).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0);
        database.sql("TRUNCATE a.t");
        shut_gate_behind(database, 0);
        let mut running = owned.rebuild().arg("--force").spawn();
        assert!(super::wait_for(database, &mut running, "SELECT count(*) FROM howdah.undo", 3));
        running.kill();
        remove_gate(database);
        database.sql(&format!("REVOKE USAGE ON SCHEMA ext FROM {role}"));
        let restore = || howdah("restore").args(["--to", &owned.to()]).run(PATIENCE);
        let told = restore().expect_code(1).stderr;
        let hint = format!("hint: the owner can run GRANT USAGE ON SCHEMA ext TO {role}, then ");
        assert!(told.contains(&hint), "{major}: {told}");
        database.sql(&format!("GRANT USAGE ON SCHEMA ext TO {role}"));
        restore().expect_code(0);
        assert!(schema(database) == before && open_entries(database) == 0, "{major}");
    });
}

/// An index whose sort takes twice as much as fits the memory and the temporary files that the server allows.
const LIMITED: &str = "\
    CREATE COLLATION a.by_libc (provider = libc, locale = 'C.UTF-8'); \
    CREATE UNIQUE INDEX kept ON a.t (note COLLATE a.by_libc, id); \
    DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET maintenance_work_mem = ''1MB''', current_database()); \
                EXECUTE format('ALTER DATABASE %I SET temp_file_limit = ''1MB''', current_database()); END $$";
const LIMITED_ROWS: u64 = 30_000;

#[test]
fn an_index_whose_sort_takes_more_temporary_files_than_the_role_may_have_is_kept() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::with_rows(major, LIMITED, LIMITED_ROWS);
        let (database, role) = (&owned.database, &owned.role);
        let before = schema(database);
        let rebuilt = |to: &str| {
            let load = owned.load(to).args(["--indexes", "rebuild", "--tune", "none", "--force"]);
            let told = load.run(PATIENCE).expect_code(0).stderr;
            assert_eq!(schema(database), before, "{major}: {told}");
            assert_eq!(
                database.value("SELECT count(*) FROM a.t"),
                LIMITED_ROWS.to_string(),
                "{major}: {told}"
            );
            database.sql("TRUNCATE a.t");
            told
        };
        let told = rebuilt(&owned.to());
        let reason = ", which slows rows down: building it may take ";
        let kept = "warning: the index kept of a.t is kept";
        assert!(told.contains(kept) && told.contains(reason), "{major}: {told}");
        assert!(
            told.contains(" kB of temporary files, and temp_file_limit allows this role 1024 kB"),
            "{major}: {told}"
        );
        let is_built =
            |told: &str| !told.contains("is kept") && told.contains("the index kept of a.t is built");
        if major >= 15 {
            database.sql(&format!("GRANT SET ON PARAMETER temp_file_limit TO {role}"));
            let told = rebuilt(&owned.to());
            database.sql(&format!("REVOKE SET ON PARAMETER temp_file_limit FROM {role}"));
            assert!(is_built(&told), "{major}: {told}");
        }
        let told = rebuilt(&database.conninfo());
        assert!(is_built(&told), "{major}: {told}");
    });
}

#[test]
fn an_index_that_the_limit_of_temporary_files_stops_tells_who_lifts_that() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::with_rows(major, LIMITED, LIMITED_ROWS);
        let (database, role) = (&owned.database, &owned.role);
        let before = schema(database);
        // A role that may do more has dropped it.
        shut_gate_behind(database, 1);
        let load = owned.load(&database.conninfo()).args(["--indexes", "rebuild", "--jobs", "1"]);
        let load = load.args(["--chunk-size", "64kB"]);
        let mut running = load.spawn();
        assert!(super::wait_for(database, &mut running, super::CHUNKS, 1), "{}", running.stderr_so_far());
        running.kill();
        remove_gate(database);
        database.sql(&format!(
            "INSERT INTO a.t SELECT n, n, n, repeat(md5(n::text), 2) FROM generate_series(1000000, 1030000) n; \
             GRANT USAGE ON SCHEMA howdah TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA howdah TO {role}"
        ));
        let restore = || howdah("restore").args(["--to", &owned.to()]).run(PATIENCE);
        let told = restore().expect_code(1).stderr;
        let alter =
            format!("ALTER ROLE \"{role}\" IN DATABASE \"{}\" SET temp_file_limit = -1", database.name());
        let hint = format!("hint: a superuser can run {alter}, then `howdah restore ");
        assert!(told.contains(&hint) && told.contains("53400"), "{major}: {told}");
        database.sql(&alter);
        restore().expect_code(0);
        assert!(schema(database) == before && open_entries(database) == 0, "{major}");
    });
}

#[test]
fn a_new_tables_index_finds_functions_by_the_search_path_as_far_as_builds_have_one() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::new(major, BY_PATH);
        let database = &owned.database;
        owned.load(&owned.to()).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0);
        let replace = owned.load(&owned.to()).args(["--mode", "replace"]);
        if major >= 17 {
            let told = replace.run(PATIENCE).expect_code(1).stderr;
            let reason = "the function a.f(text) does not find what it names";
            let hint = "hint: run ALTER FUNCTION a.f(text) SET search_path = pg_catalog, \"a\"; or ";
            assert!(told.contains(reason) && told.contains(hint), "{major}: {told}");
            assert_eq!(database.value("SELECT count(*) FROM howdah.job WHERE finished_at IS NULL"), "0");
            database.sql("ALTER FUNCTION a.f(text) SET search_path = pg_catalog, a");
        }
        let before = schema(database);
        let told = replace.run(PATIENCE).expect_code(0).stderr;
        assert_eq!(schema(database), before, "{major}: {told}");
        assert_eq!(database.value("SELECT count(*) FROM a.t"), ROWS.to_string());
    });
}

#[test]
fn a_function_that_names_what_every_build_finds_keeps_no_table_from_being_replaced() {
    let owned = Owned::new(
        18,
        "CREATE FUNCTION a.f(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN lower($1); END'; \
         CREATE INDEX built ON a.t (a.f(note)) WHERE a.f(note) <> 'x'",
    );
    let before = schema(&owned.database);
    owned.load(&owned.to()).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0);
    owned.load(&owned.to()).args(["--mode", "replace"]).run(PATIENCE).expect_code(0);
    assert_eq!(schema(&owned.database), before);
}

/// A plan is asked for to see what would happen. What the owner has written would run with the rights of
/// whoever asks.
#[test]
fn a_plan_calls_no_function_of_another_roles_index() {
    let owned = Owned::new(
        18,
        "CREATE FUNCTION a.f(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS \
         'BEGIN RAISE LOG ''% computes an index of %'', current_user, current_database(); RETURN lower($1); END'; \
         CREATE INDEX computed ON a.t (a.f(note))",
    );
    let (database, role) = (&owned.database, &owned.role);
    owned.load(&owned.to()).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0);
    let called = |who: &str| {
        Server::shared(18).log().contains(&format!("{who} computes an index of {}", database.name()))
    };
    let plan = |to: &str| {
        let plan = howdah("plan")
            .args(["--format", "csv", "--header", "--table", "a.t", "--mode", "replace", "--to", to]);
        plan.arg(&owned.source).run(PATIENCE).expect_code(0);
    };
    plan(&database.conninfo());
    assert!(!called("postgres"));
    // A member of the owner is another role, too.
    let member = format!("member_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {member} LOGIN IN ROLE {role}; GRANT CREATE, USAGE ON SCHEMA a, howdah TO {member}"
    ));
    plan(&database.conninfo().replace("user=postgres", &format!("user={member}")));
    assert!(!called(&member));
    let calls =
        Server::shared(18).log().matches(&format!("{role} computes an index of {}", database.name())).count();
    plan(&owned.to());
    let again =
        Server::shared(18).log().matches(&format!("{role} computes an index of {}", database.name())).count();
    assert!(again > calls);
}

#[test]
fn rights_that_a_new_tables_index_takes_are_asked_for_before_a_row_is_read() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::new(
            major,
            "CREATE FUNCTION a.f(text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS 'SELECT lower($1)'; \
             REVOKE EXECUTE ON FUNCTION a.f FROM PUBLIC; CREATE INDEX one ON a.t (a.f(note)); \
             CREATE FUNCTION ext.g(text) RETURNS bool LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS 'SELECT true'; \
             CREATE INDEX two ON a.t (id) WHERE ext.g(note)",
        );
        let (database, role) = (&owned.database, &owned.role);
        let before = schema(database);
        let replace = |to: &str| owned.load(to).args(["--mode", "replace"]);
        let told = replace(&owned.to()).run(PATIENCE).expect_code(1).stderr;
        let lacks = "this role lacks USAGE on the schema ext of an index; this role lacks EXECUTE on the function a.f(text) of an index";
        let grants =
            format!("GRANT USAGE ON SCHEMA ext TO {role}; GRANT EXECUTE ON FUNCTION a.f(text) TO {role}");
        assert!(
            told.contains(lacks) && told.contains(&format!("hint: run {grants}; or ")),
            "{major}: {told}"
        );
        // The new table belongs to whoever makes it until it takes the old one's place.
        replace(&database.conninfo()).args(["--ledger", "apart"]).run(PATIENCE).expect_code(0);
        database.sql("DROP SCHEMA apart CASCADE");
        assert_eq!(schema(database), before, "{major}");
        database.sql(&grants);
        let before = schema(database);
        replace(&owned.to()).arg("--force").run(PATIENCE).expect_code(0);
        assert_eq!(schema(database), before, "{major}");
    });
}

#[test]
fn a_new_tables_index_is_built_without_a_limit_of_temporary_files_where_the_role_may_lift_it() {
    side_by_side(MAJORS, |major| {
        let owned = Owned::with_rows(major, LIMITED, LIMITED_ROWS);
        let before = schema(&owned.database);
        let replace = owned.load(&owned.database.conninfo()).args(["--mode", "replace", "--tune", "none"]);
        replace.run(PATIENCE).expect_code(0);
        assert_eq!(schema(&owned.database), before, "{major}");
    });
}
