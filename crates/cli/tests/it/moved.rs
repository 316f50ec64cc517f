//! A database is dumped with its ledger and restored: its jobs find their tables there by their names. Or it
//! is replicated.

use crate::gate::{remove_gate, shut_gate_behind};
use crate::indexes::dumped::dumped_into;
use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Database, HowdahCommand, Server};
use std::path::{Path, PathBuf};

const JOB: &str = "SELECT job_id FROM howdah.job";

fn load(database: &Database, options: &[&str], source: &Path) -> HowdahCommand {
    let of_file = ["--format", "csv", "--header", "--table", "t", "--chunk-size", "64kB", "--jobs", "2"];
    howdah("load")
        .args(["--to", &database.conninfo()])
        .args(of_file)
        .args(options.iter().copied())
        .arg(source)
}

/// A job that was killed when some of its rows were stored.
fn killed(major: u32, options: &[&str]) -> (Scene, Files, PathBuf) {
    let plain = csv(71, 1, 6000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(major), &[&plain]);
    scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
    shut_gate_behind(&scene.database, 2);
    let mut running = load(&scene.database, options, &source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    scene.database.sql(END_SESSIONS);
    remove_gate(&scene.database);
    (scene, files, source)
}

fn copy_of(database: &Database, server: &Server) -> Database {
    let copy = server.database();
    // Other tables have the OIDs that the ledger names, or may have.
    copy.sql("CREATE SCHEMA earlier; CREATE TABLE earlier.t (id bigint); DROP SCHEMA earlier CASCADE");
    dumped_into(database, &copy);
    copy
}

#[test]
fn a_job_goes_on_in_a_database_restored_from_a_dump() {
    for major in [13, 18] {
        let (scene, _files, source) = killed(major, &[]);
        let server = Server::shared(major);
        let (again, resumed) = (copy_of(&scene.database, server), copy_of(&scene.database, server));
        let without_rows = copy_of(&scene.database, server);
        load(&scene.database, &[], &source).run(PATIENCE).expect_code(0);
        scene.assert_exact("where it began");
        let wanted = scene.database.digest("t");
        let verified = load(&again, &["--verify", "count"], &source).run(PATIENCE).expect_code(1).stderr;
        assert!(verified.contains("cannot be told any more, as --verify asks"), "{verified}");
        let told = load(&again, &[], &source).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("the ledger has come from another database: the tables of job"), "{told}");
        assert_eq!(again.digest("t"), wanted, "PostgreSQL {major}\n{told}");
        let job = scene.database.value(&format!("{JOB} WHERE job_id <> 'other' ORDER BY started_at LIMIT 1"));
        let resume = howdah("resume").args(["--to", &resumed.conninfo()]).arg(&job);
        let told = resume.run(PATIENCE).expect_code(0).stderr;
        assert_eq!(resumed.digest("t"), wanted, "PostgreSQL {major}\n{told}");
        // From now on it is a job of that database.
        load(&again, &[], &source).run(PATIENCE).expect_code(1);
        without_rows.sql("TRUNCATE t");
        let refused = load(&without_rows, &[], &source).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("public.t is empty, though job"), "{refused}");
    }
}

#[test]
fn what_waits_in_a_staging_table_is_not_relied_on_in_another_database() {
    let options = ["--mode", "merge", "--key", "id"];
    let (scene, _files, source) = killed(15, &options);
    let copy = copy_of(&scene.database, Server::shared(15));
    let refused = load(&copy, &options, &source).run(PATIENCE).expect_code(1).stderr;
    let message = "is another one here, as the ledger has come from another database";
    assert!(refused.contains(message) && refused.contains("drops the rows that wait"), "{refused}");
    howdah("restore").args(["--to", &copy.conninfo()]).arg(copy.value(JOB)).run(PATIENCE).expect_code(0);
    load(&copy, &options, &source).run(PATIENCE).expect_code(0);
    load(&scene.database, &options, &source).run(PATIENCE).expect_code(0);
    scene.assert_exact("where it began");
    assert_eq!(copy.digest("t"), scene.database.digest("t"));
}

/// Somebody takes the rows away as they come.
#[test]
fn a_finished_job_of_an_empty_table_is_refused_in_a_database_restored_from_a_dump() {
    for major in [13, 18] {
        let plain = csv(72, 1, 100);
        let files = Files::new();
        let source = files.put("a.csv", &plain);
        let database = Scene::new(Server::shared(major), &[&plain]).database;
        load(&database, &[], &source).run(PATIENCE).expect_code(0);
        database.sql("TRUNCATE t");
        let copy = copy_of(&database, Server::shared(major));
        let refused = load(&copy, &[], &source).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("error: this job finished at 20"), "{refused}");
        assert_eq!(copy.value("SELECT count(*) FROM t"), "0", "PostgreSQL {major}");
    }
}

/// As it is where ledger and tables have come by logical replication, which does not carry the state of
/// sequences.
#[test]
fn a_ledger_whose_sequences_are_behind_goes_on() {
    const BEHIND: &str = "SELECT setval(pg_get_serial_sequence('howdah.undo', 'number'), 1, false), \
        setval(pg_get_serial_sequence('howdah.reject', 'number'), 1, false), \
        setval(pg_get_serial_sequence('howdah.tuned', 'number'), 1, false)";
    let files = Files::new();
    let bad = |id: u64| {
        files.put(&format!("{id}.csv"), format!("id,part,amount,note\n{id},1,1,\n{id},x,1,\n").as_bytes())
    };
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[]);
        scene.database.sql("CREATE INDEX t_id ON t (id)");
        let load = |id: u64| scene.load().args(["--on-error", "skip"]).arg(bad(id));
        let numbers = || scene.database.value("SELECT max(number) FROM howdah.undo");
        let rebuild = |id: u64| {
            scene
                .load()
                .args(["--indexes", "rebuild", "--tune", "table"])
                .arg(files.put("i.csv", &csv(id, id, 9)))
        };
        rebuild(10).run(PATIENCE).expect_code(0);
        load(1).run(PATIENCE).expect_code(3);
        let before = numbers();
        scene.database.sql(BEHIND);
        load(2).run(PATIENCE).expect_code(3);
        scene.database.sql(BEHIND);
        rebuild(20).run(PATIENCE).expect_code(0);
        assert_ne!(numbers(), before, "PostgreSQL {major}");

        // A role that may not set them is told who may.
        let role = format!("loader_{}", scene.database.name());
        scene.database.sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT ALL ON t TO {role}; GRANT USAGE ON SCHEMA howdah TO {role}; \
             GRANT ALL ON ALL TABLES IN SCHEMA howdah TO {role}; {BEHIND}"
        ));
        let to = scene.database.conninfo().replace("user=postgres", &format!("user={role}"));
        let shared = scene.load_to(&to).args(["--on-error", "skip"]).arg(bad(3));
        let told = shared.run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("gives numbers that are taken"), "PostgreSQL {major}: {told}");
        let statement = "SELECT setval(pg_get_serial_sequence('\"howdah\".reject', 'number'), max(number)) FROM \"howdah\".reject";
        assert!(told.contains(statement), "PostgreSQL {major}: {told}");
        scene.database.sql(statement);
        shared.run(PATIENCE).expect_code(3);
    }
}
