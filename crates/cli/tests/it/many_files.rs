//! Jobs of many small files: what each of them costs, and how they are told.

use crate::scene::{Files, PATIENCE, howdah};
use crate::web::Web;
use howdah_testkit::{MAJORS, Server};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of a file of a few kilobytes, the server would take longer to plan what stands around its rows than to
/// store them. (Smaller ones share a transaction.)
#[test]
fn what_each_file_runs_is_prepared_once_a_session() {
    const FILES: usize = 9;
    const ROWS: usize = 6_000;
    let files = Files::new();
    for no in 0..FILES {
        files.put(
            &format!("part{no}.csv"),
            format!("id,amount\n{}", format!("{no},1.5\n").repeat(ROWS)).as_bytes(),
        );
    }
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE t (id int, amount numeric);
         CREATE TABLE seen (pid int, statement text, runs bigint);
         CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO seen SELECT pg_backend_pid(), statement, generic_plans + custom_plans
                              FROM pg_prepared_statements WHERE NOT from_sql;
             RETURN NULL; END $$;
         CREATE TRIGGER look AFTER INSERT ON t EXECUTE FUNCTION look()",
    );
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--jobs", "1"]);
    let load = load.args(["--encode", "binary"]);
    load.arg(files.path()).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), (ROWS * FILES).to_string());
    // The claim, and the comparison of the columns with those that binary rows were written for.
    for statement in ["INSERT INTO \"howdah\".chunk", "SELECT pg_catalog.count(*) FROM ROWS FROM"] {
        let runs = format!(
            "SELECT max(runs) || ' in ' || count(DISTINCT pid) FROM seen WHERE starts_with(statement, '{statement}')"
        );
        assert_eq!(database.value(&runs), format!("{FILES} in 1"), "{statement}");
    }
}

/// The plan of a job of a thousand tables is megabytes, which the ledger would write as often.
#[test]
fn the_tables_of_a_job_are_noted_at_once() {
    const TABLES: usize = 5;
    let files = Files::new();
    files.put("first.csv", b"id,name\n1,a\n");
    std::fs::create_dir(files.path().join("in")).unwrap();
    for no in 0..TABLES {
        files.put(&format!("in/t{no}.csv"), format!("id,name\n{no},b\n").as_bytes());
    }
    for major in MAJORS {
        let database = Server::shared(major).database();
        let load = howdah("load").args(["--to", &database.conninfo(), "--create"]);
        load.clone()
            .args(["--table", "first"])
            .arg(files.path().join("first.csv"))
            .run(PATIENCE)
            .expect_code(0);
        database.sql(
            "CREATE TABLE writes (tables jsonb);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF OLD.plan IS DISTINCT FROM NEW.plan THEN INSERT INTO writes VALUES (NEW.plan -> 'tables'); END IF;
                 RETURN NULL; END $$;
             CREATE TRIGGER note AFTER UPDATE ON howdah.job FOR EACH ROW EXECUTE FUNCTION note()",
        );
        load.arg(files.path().join("in/{table}.csv")).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM writes"), "1", "PostgreSQL {major}");
        let noted = "SELECT count(*) FROM writes, jsonb_array_elements(tables) AS t
                     WHERE (t #>> '{table,relation,name}')::regclass = (t #>> '{table,oid}')::oid";
        assert_eq!(database.value(noted), TABLES.to_string(), "PostgreSQL {major}");
    }
}

/// Each of them answers at its next try; all of them one after the other never would.
#[test]
fn a_server_that_refuses_now_and_then_is_asked_again_for_the_rest_of_the_files() {
    const FILES: usize = 40;
    let asked = AtomicUsize::new(0);
    let is_refused = move || asked.fetch_add(1, Ordering::Relaxed) % 5 == 4;
    let web = Web::new().refusing(move |_, _| is_refused().then_some(503));
    let urls = (0..FILES).map(|no| web.put(&format!("{no}.csv"), format!("id\n{no}\n").as_bytes()));
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--header"]);
    load.args(urls).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(DISTINCT id) || ' of ' || count(*) FROM t"), "40 of 40");
}
