//! Jobs of many small files: what each of them costs, and how they are told.

use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::Server;

/// Of a small file, the server would take longer to plan what stands around its rows than to store them.
#[test]
fn what_each_file_runs_is_prepared_once_a_session() {
    const FILES: usize = 9;
    let files = Files::new();
    for no in 0..FILES {
        files.put(&format!("part{no}.csv"), format!("id,amount\n{no},1.5\n{no},2.5\n").as_bytes());
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
    assert_eq!(database.value("SELECT count(*) FROM t"), (2 * FILES).to_string());
    // The claim, and the comparison of the columns with those that binary rows were written for.
    for statement in ["INSERT INTO \"howdah\".chunk", "SELECT pg_catalog.count(*) FROM ROWS FROM"] {
        let runs = format!(
            "SELECT max(runs) || ' in ' || count(DISTINCT pid) FROM seen WHERE starts_with(statement, '{statement}')"
        );
        assert_eq!(database.value(&runs), format!("{FILES} in 1"), "{statement}");
    }
}
