//! Rows that leave the tables of the server: to another server, or where a trigger of a view puts them. What
//! keeps them may have committed when a crash takes the receipt.

use crate::gate::{open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{MAJORS, Server, ServerOptions};

/// Notes for each row whether its transaction waits for the disk.
const NOTES: &str = "\
    CREATE TABLE noted (a int, waits text); \
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        INSERT INTO public.noted VALUES (NEW.a, pg_catalog.current_setting('synchronous_commit')); RETURN NEW; END $$";

#[test]
fn chunks_whose_rows_go_elsewhere_wait_for_the_disk() {
    let files = Files::new();
    let source = files.put("a.csv", b"a,b\n1,x\n2,y\n");
    for major in [13, 18] {
        let server = Server::shared(major);
        let database = server.database();
        database.sql(&format!(
            "{NOTES}; CREATE VIEW seen AS SELECT 1 AS a, 'x'::text AS b; \
             CREATE TRIGGER n INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION note(); \
             CREATE TABLE far (a int, b text); CREATE EXTENSION postgres_fdw; \
             CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', port '{}', dbname '{}'); \
             CREATE USER MAPPING FOR CURRENT_USER SERVER loop OPTIONS (user 'postgres'); \
             CREATE FOREIGN TABLE near (a int, b text) SERVER loop OPTIONS (table_name 'far'); \
             CREATE TRIGGER n BEFORE INSERT ON near FOR EACH ROW EXECUTE FUNCTION note(); \
             CREATE TABLE parts (a int, b text) PARTITION BY LIST (a); CREATE TABLE plain (a int, b text); \
             CREATE FOREIGN TABLE part PARTITION OF parts DEFAULT SERVER loop OPTIONS (table_name 'far'); \
             CREATE TRIGGER n BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION note(); \
             CREATE TRIGGER n BEFORE INSERT ON plain FOR EACH ROW EXECUTE FUNCTION note()",
            server.socket_folder().display(),
            server.port(),
            database.name()
        ));
        for (table, waits) in [("seen", "on"), ("near", "on"), ("parts", "on"), ("plain", "off")] {
            database.sql("TRUNCATE noted");
            let load = howdah("load").args(["--to", &database.conninfo(), "--table", table]).arg(&source);
            load.run(PATIENCE).expect_code(0);
            let noted = database.value("SELECT string_agg(a || ' ' || waits, ', ' ORDER BY a) FROM noted");
            assert_eq!(noted, format!("1 {waits}, 2 {waits}"), "PostgreSQL {major}: {table}");
        }
        assert_eq!(database.value("SELECT count(*) FROM far"), "4", "PostgreSQL {major}");
    }
}

#[test]
fn rows_that_went_elsewhere_are_not_sent_again_for_want_of_a_receipt() {
    let plain = csv(71, 1, 3000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let server = Server::private(18, &ServerOptions::default());
    let scene = Scene::new(&server, &[&plain]);
    scene.database.sql(
        "CREATE TABLE sink (LIKE t); CREATE VIEW seen AS SELECT * FROM sink; \
         CREATE FUNCTION put() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO public.sink SELECT NEW.*; RETURN NEW; END $$; \
         CREATE TRIGGER put INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION put()",
    );
    shut_gate_behind(&scene.database, 2);
    let load =
        howdah("load").args(["--format", "csv", "--header", "--table", "seen", "--chunk-size", "16kB"]);
    let mut running = load.args(["--to", &scene.database.conninfo()]).arg(&source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    // As a failover to a standby that was behind does.
    scene.database.sql("DELETE FROM howdah.chunk WHERE chunk_no = 0");
    open_gate(&scene.database);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("rows went into public.seen, which may keep them elsewhere"), "{told}");
    assert_eq!(scene.database.value("SELECT count(*) FROM sink"), "3000");
}

/// Round trip by round trip, a load is as slow as the network is long.
#[test]
fn rows_that_go_to_another_server_one_by_one_are_warned_of() {
    let files = Files::new();
    let source = files.put("a.csv", b"a,b\n1,x\n2,y\n");
    for major in [15, 18] {
        let server = Server::shared(major);
        let database = server.database();
        database.sql(&format!(
            "CREATE TABLE far (a int, b text); CREATE EXTENSION postgres_fdw; \
             CREATE SERVER \"Lo op\" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', port '{}', dbname '{}'); \
             CREATE USER MAPPING FOR CURRENT_USER SERVER \"Lo op\" OPTIONS (user 'postgres'); \
             CREATE FOREIGN TABLE near (a int, b text) SERVER \"Lo op\" OPTIONS (table_name 'far'); \
             CREATE TABLE parts (a int, b text) PARTITION BY LIST (a); \
             CREATE FOREIGN TABLE part PARTITION OF parts DEFAULT SERVER \"Lo op\" OPTIONS (table_name 'far')",
            server.socket_folder().display(),
            server.port(),
            database.name()
        ));
        let told = |verb: &str, table: &str| {
            let command = howdah(verb).args(["--to", &database.conninfo(), "--table", table, "--force"]);
            let finished = command.arg(&source).run(PATIENCE).expect_code(0);
            finished.stdout + &finished.stderr
        };
        let wanted = match major {
            15 => "load into that server itself (--to)",
            _ => "ALTER SERVER \"Lo op\" OPTIONS (ADD batch_size '1000')",
        };
        for table in ["near", "parts"] {
            for verb in ["plan", "load"] {
                let told = told(verb, table);
                assert!(told.contains(wanted), "PostgreSQL {major}, {verb} {table}: {told}");
            }
        }
        if major >= 16 {
            database.sql("ALTER SERVER \"Lo op\" OPTIONS (ADD batch_size '1000')");
            assert!(!told("load", "parts").contains("batch_size"));
            database.sql("ALTER FOREIGN TABLE near OPTIONS (ADD batch_size '10')");
            let told = told("load", "near");
            let wanted = "10 at a time (batch_size of postgres_fdw): \
                          ALTER FOREIGN TABLE \"public\".\"near\" OPTIONS (SET batch_size '1000')";
            assert!(told.contains(wanted), "{told}");
        }
    }
}

/// `--mode insert-new` and `merge` are refused for it.
#[test]
fn a_key_that_a_foreign_table_has_is_told_with_what_helps_there() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n7\n8\n");
    let server = Server::shared(15);
    let database = server.database();
    database.sql(&format!(
        "CREATE TABLE far (a int PRIMARY KEY); INSERT INTO far VALUES (7); CREATE EXTENSION postgres_fdw; \
         CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', port '{}', dbname '{}'); \
         CREATE USER MAPPING FOR CURRENT_USER SERVER loop OPTIONS (user 'postgres'); \
         CREATE FOREIGN TABLE near (a int) SERVER loop OPTIONS (table_name 'far')",
        server.socket_folder().display(),
        server.port(),
        database.name()
    ));
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "near"]).arg(&source);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("23505") && told.contains("--mode insert-new and merge are for the table itself"),
        "{told}"
    );
    load.args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
    assert_eq!(database.value("SELECT string_agg(a::text, ',' ORDER BY a) FROM far"), "7,8");
}

/// TRUNCATE empties them since PostgreSQL 14; staging tables are not for them.
#[test]
fn a_foreign_table_is_emptied_and_told_with_its_own_way_out() {
    let files = Files::new();
    let source = files.put("a.csv", b"a,b\n1,x\n2,y\n");
    for major in MAJORS {
        let server = Server::shared(major);
        let database = server.database();
        database.sql(&format!(
            "CREATE TABLE far (a int, b text); INSERT INTO far VALUES (7, 'old'); CREATE VIEW seen AS SELECT * FROM far; {NOTES}; \
             CREATE TRIGGER n INSTEAD OF INSERT ON seen FOR EACH ROW EXECUTE FUNCTION note(); \
             CREATE EXTENSION postgres_fdw; \
             CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', port '{}', dbname '{}'); \
             CREATE USER MAPPING FOR CURRENT_USER SERVER loop OPTIONS (user 'postgres'); \
             CREATE FOREIGN TABLE near (a int, b text) SERVER loop OPTIONS (table_name 'far')",
            server.socket_folder().display(),
            server.port(),
            database.name()
        ));
        let load = |table: &str, option: &[&str]| {
            let load = howdah("load").args(["--to", &database.conninfo(), "--table", table]).args(option);
            load.arg(&source).run(PATIENCE)
        };
        let count = || database.value("SELECT string_agg(a::text, ' ' ORDER BY a) FROM far");
        for (table, hint) in [
            (
                "near",
                "hint: load into the table itself, on the server that has it (--to), or leave out --atomic",
            ),
            ("seen", "hint: name the table behind it, or leave out --atomic"),
        ] {
            let refused = load(table, &["--atomic"]).expect_code(1).stderr;
            assert!(refused.contains(hint), "PostgreSQL {major}: {refused}");
        }
        let emptied = load("near", &["--mode", "truncate"]);
        if major >= 14 {
            emptied.expect_code(0);
            assert_eq!(count(), "1 2", "PostgreSQL {major}");
        } else {
            let refused = emptied.expect_code(1).stderr;
            assert!(refused.contains("public.near cannot be emptied"), "{refused}");
            assert_eq!(count(), "7", "PostgreSQL {major}");
        }
    }
}

/// The server says so when the first row comes. What is old may be kept so, while rows come for other
/// partitions.
#[test]
fn foreign_tables_that_take_no_rows_are_told_in_the_plan() {
    let files = Files::new();
    let (new, both) = (files.put("a.csv", b"a,b\n2,x\n"), files.put("b.csv", b"a,b\n2,y\n1,y\n"));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE EXTENSION file_fdw; CREATE EXTENSION postgres_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; \
             CREATE SERVER closed FOREIGN DATA WRAPPER postgres_fdw OPTIONS (updatable 'false'); \
             CREATE TABLE t (a int, b text) PARTITION BY LIST (a); CREATE TABLE now PARTITION OF t DEFAULT; \
             CREATE FOREIGN TABLE old PARTITION OF t FOR VALUES IN (1) SERVER files OPTIONS (filename '/dev/null'); \
             CREATE FOREIGN TABLE far (a int, b text) SERVER closed",
        );
        let run = |verb: &str, table: &str, source| {
            howdah(verb).args(["--to", &database.conninfo(), "--table", table]).arg(source).run(PATIENCE)
        };
        for table in ["old", "far"] {
            let refused = run("plan", table, &new).expect_code(1).stderr;
            let wanted = format!("public.{table} is a foreign table that takes no INSERT");
            assert!(refused.contains(&wanted) && refused.contains("hint: "), "PostgreSQL {major}: {refused}");
        }
        let told = run("plan", "t", &new).expect_code(0).stdout;
        let wanted =
            "rows are refused that belong into public.old: it is a foreign table that takes no INSERT";
        assert!(told.contains(wanted), "PostgreSQL {major}: {told}");
        run("load", "t", &new).expect_code(0);
        let refused = run("load", "t", &both).expect_code(1).stderr;
        assert!(
            refused.contains("hint: a partition that is a foreign table"),
            "PostgreSQL {major}: {refused}"
        );
        assert_eq!(database.value("SELECT count(*) FROM now"), "1", "PostgreSQL {major}");
    }
}

/// What it takes only its wrapper says, which the server has to load for that.
#[test]
fn a_foreign_table_whose_wrapper_is_not_installed_is_told_as_such() {
    let files = Files::new();
    let source = files.put("a.csv", b"a,b\n1,x\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE FUNCTION gone() RETURNS fdw_handler LANGUAGE c AS '$libdir/file_fdw', 'file_fdw_handler'; \
         UPDATE pg_proc SET probin = '$libdir/no_such_library' WHERE proname = 'gone'; \
         CREATE FOREIGN DATA WRAPPER gone HANDLER gone; CREATE SERVER s FOREIGN DATA WRAPPER gone; \
         CREATE FOREIGN TABLE t (a int, b text) SERVER s",
    );
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t"]).arg(&source);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("error: t cannot be asked whether it takes rows: the server says: could not"),
        "{told}"
    );
    let hint = "hint: install on the server what its foreign data wrapper is part of, made for this version of PostgreSQL";
    assert!(told.contains(hint), "{told}");
    // A library, though none that a server loads.
    database.sql("UPDATE pg_proc SET probin = '$libdir/../libpgtypes.so.3' WHERE proname = 'gone'");
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("(SQLSTATE XX000)") && told.contains(hint), "{told}");
}
