//! Tables that look like those of a ledger, made by a role that has nothing to do with the load.

use super::verb;
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, MAJORS, Server};

const COLUMNS: &str =
    "undone_at timestamptz, table_oid oid, schema_name text, table_name text, ledger_oid oid";

/// Tables of a ledger in `schema`, of which `undo` has other columns as well, and in each an open entry about
/// the table `t`.
fn ledger(schema: &str, more: &str) -> String {
    format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE {schema}.migration (version integer); \
         CREATE TABLE {schema}.undo ({COLUMNS}{more}); CREATE TABLE {schema}.tuned ({COLUMNS}); \
         INSERT INTO {schema}.undo (table_oid, ledger_oid) VALUES ('t'::regclass, '{schema}.undo'::regclass); \
         INSERT INTO {schema}.tuned (table_oid, ledger_oid) VALUES ('t'::regclass, '{schema}.tuned'::regclass); \
         GRANT USAGE ON SCHEMA {schema} TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO PUBLIC; "
    )
}

/// What the other role makes. Its functions say that anybody else has called them, and fail.
fn forgeries() -> String {
    let called = "'BEGIN IF current_user NOT LIKE ''other%'' THEN \
                          RAISE LOG ''forgery called as % in %'', current_user, current_database(); RAISE ''forgery called''; \
                      END IF; RETURN NULL; END'";
    [
        ledger("forged", ", kind text DEFAULT 'index'"),
        ledger("cast_away", ", kind text DEFAULT 'index'"),
        "CREATE TYPE cast_away.odd AS ENUM ('a'); ".to_owned(),
        format!("CREATE FUNCTION cast_away.called(cast_away.odd) RETURNS json LANGUAGE plpgsql AS {called}; "),
        "CREATE CAST (cast_away.odd AS json) WITH FUNCTION cast_away.called; \
         ALTER TABLE cast_away.undo ADD COLUMN odd cast_away.odd DEFAULT 'a'; "
            .to_owned(),
        ledger("policed", ", kind text DEFAULT 'index'"),
        format!("CREATE FUNCTION policed.called() RETURNS bool LANGUAGE plpgsql AS {called}; "),
        "CREATE POLICY called ON policed.undo USING (policed.called()); ALTER TABLE policed.undo ENABLE ROW LEVEL SECURITY; ".to_owned(),
        ledger("seen", ", kind text DEFAULT 'index'"),
        format!("CREATE FUNCTION seen.called() RETURNS oid LANGUAGE plpgsql AS {called}; "),
        "ALTER TABLE seen.tuned RENAME TO behind; \
         CREATE VIEW seen.tuned AS SELECT undone_at, seen.called() AS table_oid, schema_name, table_name, ledger_oid FROM seen.behind; \
         GRANT SELECT ON seen.tuned TO PUBLIC; "
            .to_owned(),
        // The server works out what an index says of constants whenever it plans a statement on the table.
        ledger("indexed", ", kind text DEFAULT 'index'"),
        format!("CREATE FUNCTION indexed.called(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS {called}; "),
        "TRUNCATE indexed.undo; CREATE INDEX ON indexed.undo (kind) WHERE indexed.called(1); ".to_owned(),
        ledger("lacking", ""),
        ledger("strange", ", kind integer"),
        ledger("inherited", ", kind text DEFAULT 'index'"),
        "CREATE TABLE inherited.child () INHERITS (inherited.undo); ".to_owned(),
        // A superuser's schema in which everybody may make tables.
        ledger("open_to_all", ", kind text DEFAULT 'index'").replace("GRANT USAGE ON SCHEMA open_to_all TO PUBLIC; ", ""),
    ]
    .concat()
}

fn prepared(major: u32) -> (Database, String, String) {
    let database = Server::shared(major).database();
    let (owner, other) = (format!("owner_{}", database.name()), format!("other_{}", database.name()));
    database.sql(&format!(
        "CREATE ROLE {owner} LOGIN; CREATE ROLE {other} LOGIN; GRANT CREATE ON DATABASE {db} TO {owner}, {other}; \
         GRANT CREATE ON SCHEMA public TO {owner}; CREATE SCHEMA open_to_all; GRANT ALL ON SCHEMA open_to_all TO PUBLIC; \
         CREATE TABLE t (id bigint, part integer, amount numeric, note text); ALTER TABLE t OWNER TO {owner}",
        db = database.name()
    ));
    (database, owner, other)
}

#[test]
fn what_another_role_passes_off_as_a_ledger_is_neither_run_nor_believed() {
    for major in MAJORS {
        let (database, owner, other) = prepared(major);
        database.sql(&format!("SET ROLE {other}; {}", forgeries()));
        let files = Files::new();
        for (user, ledger) in [("postgres", "first"), (owner.as_str(), "second")] {
            let to = database.conninfo().replace("user=postgres", &format!("user={user}"));
            let load =
                howdah("load").args(["--to", &to, "--table", "t", "--mode", "replace", "--ledger", ledger]);
            let load = load.arg(files.put(&format!("{user}.csv"), &csv(3, 1, 300)));
            let finished = load.run(PATIENCE);
            assert_eq!(finished.code, Some(0), "PostgreSQL {major}, {user}: {}", finished.stderr);
        }
        let called = Server::shared(major).log();
        let called: Vec<&str> = called
            .lines()
            .filter(|line| line.contains("LOG:  forgery") && line.contains(database.name()))
            .collect();
        assert!(called.is_empty(), "{called:#?}");
    }
}

/// Also where it belongs to no superuser: whoever owns the table could have changed it.
#[test]
fn the_ledger_of_the_owner_of_a_table_is_believed() {
    let (database, owner, other) = prepared(15);
    let mine = "own_ledger";
    let made = ledger(mine, ", kind text DEFAULT 'index'");
    database.sql(&format!("GRANT {owner} TO {other}; SET ROLE {other}; {made}"));
    let files = Files::new();
    let load = verb(
        &database,
        "load",
        &["--table", "t", "--mode", "replace"],
        Some(&files.put("a.csv", &csv(3, 1, 300))),
    );
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains(&format!("run howdah restore with {mine} as --ledger")), "{refused}");
    database.sql(&format!("REVOKE {owner} FROM {other}"));
    load.run(PATIENCE).expect_code(0);
}
