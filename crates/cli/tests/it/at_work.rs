//! Loads of which only the server's side is left after a kill -9, at a statement that takes its time, or
//! whose lock was lost.

use crate::gate::{let_other_jobs_pass, open_gate, shut_gate_behind};
use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Fault, MAJORS, Proxy, Running, Server, side_by_side};
use std::time::{Duration, Instant};

const ROWS: u64 = 2000;
/// Far less than the statement takes that the killed run has left.
const SOON: Duration = Duration::from_secs(200);

/// The first session that inserts the first row sleeps over it.
const SLEEPY: &str = "\
    ALTER TABLE t ADD PRIMARY KEY (id); CREATE SEQUENCE naps; \
    CREATE FUNCTION sleepy() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN IF nextval(''naps'') = 1 THEN PERFORM pg_sleep(600); END IF; RETURN NEW; END'; \
    CREATE TRIGGER sleepy BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION sleepy()";
const SLEEPS: &str =
    "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";

fn wait_until(scene: &Scene, running: &mut Running, sql: &str) {
    let hit = scene.database.wait_for(sql, 1, || running.is_running());
    assert!(hit, "{sql}: {}", running.stderr_so_far());
}

#[test]
fn the_next_run_ends_what_a_killed_one_has_left_at_work() {
    let ways =
        [&["--mode", "merge", "--key", "id"][..], &["--atomic"], &["--mode", "insert-new", "--key", "id"]];
    for (major, way) in MAJORS.into_iter().flat_map(|major| ways.map(|way| (major, way))) {
        let (files, plain) = (Files::new(), csv(61, 1, ROWS));
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql(SLEEPY);
        let load = scene.load().args(way).arg(&source);
        let mut running = load.spawn();
        wait_until(&scene, &mut running, SLEEPS);
        running.kill();
        let began = Instant::now();
        let told = load.run(PATIENCE).expect_code(0).stderr;
        let what = format!("PostgreSQL {major}, {way:?}");
        assert!(began.elapsed() < SOON, "{what}: it took {:?}\n{told}", began.elapsed());
        assert_eq!(told.contains("still at work on the server: ended"), major < 14, "{what}\n{told}");
        scene.assert_exact(&what);
        scene.assert_done(&what);
    }
}

/// The server sees late that the client is gone: its session holds the job when the next run first asks who
/// does.
#[test]
fn a_killed_run_that_the_server_has_not_seen_dying_is_waited_for_and_ended() {
    // Later servers see it themselves while a statement is at work.
    let server = Server::shared(13);
    let (files, plain) = (Files::new(), csv(66, 1, ROWS));
    let source = files.put("a.csv", &plain);
    let (scene, proxy) = (Scene::new(server, &[&plain]), Proxy::before_server(server));
    scene.database.sql(SLEEPY);
    let load = scene.load_to(&scene.database.conninfo_through(&proxy));
    let mut running = load.arg("--atomic").arg(&source).spawn();
    wait_until(&scene, &mut running, SLEEPS);
    proxy.forget_all();
    running.kill();
    let began = Instant::now();
    let mut next = scene.load().arg("--atomic").arg(&source).spawn();
    let asks = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
        AND pid <> pg_backend_pid() AND query LIKE 'SELECT EXISTS (SELECT FROM %pg_locks%hashtextextended($1%'";
    wait_until(&scene, &mut next, asks);
    proxy.end_forgotten();
    let told = next.wait(PATIENCE).expect_code(0).stderr;
    assert!(began.elapsed() < SOON, "it took {:?}\n{told}", began.elapsed());
    assert!(told.contains("still at work on the server: ended"), "{told}");
    scene.assert_exact("seen late");
    scene.assert_done("seen late");
}

/// The server lets sessions be seen and ended by the role that they logged in as.
#[test]
fn what_is_left_at_work_is_ended_where_the_role_acts_as_another_one() {
    let (files, plain) = (Files::new(), csv(64, 1, ROWS));
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(13), &[&plain]);
    let (database, name) = (&scene.database, scene.database.name());
    database.sql(SLEEPY);
    database.sql(&format!(
        "CREATE ROLE acts_{name}; CREATE ROLE login_{name} LOGIN IN ROLE acts_{name}; \
         ALTER ROLE login_{name} SET role = acts_{name}; ALTER TABLE t OWNER TO acts_{name}; \
         ALTER SEQUENCE naps OWNER TO acts_{name}; GRANT CREATE ON DATABASE {name} TO acts_{name}"
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user=login_{name}"));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--atomic", "--to", &to]);
    let load = load.arg(&source);
    let mut running = load.spawn();
    wait_until(&scene, &mut running, SLEEPS);
    running.kill();
    let began = Instant::now();
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(began.elapsed() < SOON, "it took {:?}\n{told}", began.elapsed());
    assert!(told.contains("still at work on the server: ended"), "{told}");
    scene.assert_exact("acts as another");
    let owner =
        database.value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'howdah.job'::regclass");
    assert_eq!(owner, format!("acts_{name}"));
}

/// What a killed load has dropped comes back though its last statement still holds the table.
#[test]
fn restore_ends_what_a_killed_load_has_left_at_work() {
    side_by_side([13, 18], |major| {
        let (files, plain) = (Files::new(), csv(62, 1, ROWS));
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(Server::shared(major), &[]);
        scene.database.sql(SLEEPY);
        scene.database.sql("CREATE INDEX dropped ON t (part)");
        let mut running = scene.load().args(["--indexes", "rebuild"]).arg(&source).spawn();
        wait_until(&scene, &mut running, SLEEPS);
        running.kill();
        let began = Instant::now();
        scene.verb("restore").run(PATIENCE).expect_code(0);
        assert!(began.elapsed() < SOON, "PostgreSQL {major}: {:?}", began.elapsed());
        assert_eq!(scene.database.value("SELECT count(*) FROM pg_indexes WHERE indexname = 'dropped'"), "1");
    });
}

/// It has left its job by then.
#[test]
fn restore_leaves_a_load_alone_that_renews_statistics() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(65, 1, ROWS));
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[]);
        scene.database.sql("CREATE TABLE u (part int)");
        let other = scene.database.connect();
        other.sql("BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE");
        let mut running = scene.load().args(["--after", "analyze"]).arg(&source).spawn();
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
            AND pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND query LIKE '%ANALYZE%'";
        let hit = scene.database.wait_for(waits, 1, || running.is_running());
        assert!(hit, "PostgreSQL {major}\n{}", running.stderr_so_far());
        scene.database.sql(
            "INSERT INTO howdah.undo (job_id, kind, schema_name, table_name, table_oid, name, definition, statements, ledger_oid) \
             SELECT job_id, 'index', 'public', 'u', 'u'::regclass, 'dropped', 'CREATE INDEX dropped ON public.u USING btree (part)', \
                    ARRAY['CREATE INDEX dropped ON public.u USING btree (part)'], 'howdah.undo'::regclass FROM howdah.job",
        );
        let told = scene.verb("restore").run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("was killed"), "PostgreSQL {major}\n{told}");
        assert_eq!(scene.database.value("SELECT count(*) FROM pg_indexes WHERE indexname = 'dropped'"), "1");
        other.sql("COMMIT");
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("was not done"), "PostgreSQL {major}\n{told}");
    }
}

#[test]
fn a_load_whose_lock_of_the_job_was_lost_is_not_taken_for_dead() {
    side_by_side(MAJORS, |major| {
        let (files, plain) = (Files::new(), csv(63, 1, ROWS));
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("CREATE INDEX dropped ON t (part)");
        scene.database.sql(crate::tune::GATE);
        let mut running = scene.load().args(["--indexes", "rebuild"]).arg(&source).spawn();
        wait_until(&scene, &mut running, SLEEPS);
        for _ in 0..3 {
            let holder = "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN howdah.job j ON \
                (l.classid::int8 << 32) | l.objid::int8 = hashtextextended('howdah/' || j.job_id, x'686f77646168'::int8) \
                WHERE l.locktype = 'advisory' AND l.objsubid = 1";
            assert_eq!(scene.database.value(holder), "t");
            let refused = scene.verb("restore").run(PATIENCE).expect_code(1).stderr;
            assert!(
                refused.contains("is at work: it puts back what it has dropped when it ends"),
                "{refused}"
            );
        }
        scene.database.sql("DELETE FROM gate");
        let done = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(done.contains("check  read 2,000 = stored 2,000"), "{done}");
        scene.assert_exact(&format!("PostgreSQL {major}"));
        assert_eq!(scene.database.value("SELECT count(*) FROM pg_indexes WHERE indexname = 'dropped'"), "1");
    });
}

/// A load of two files, with these options, that loses all its sessions behind the first, and what comes back
/// to it when another one of the second has come to its end or has not.
fn away(major: u32, (mode, ends): (&[&str], bool)) {
    // Each is one chunk; either may come first.
    let plain = [csv(64, 1, 3000), csv(65, 20_001, 2000)];
    let files = Files::new();
    let paths = [files.put("a.csv", &plain[0]), files.put("b.csv", &plain[1])];
    let server = Server::shared(major);
    let (scene, proxy) = (Scene::new(server, &[&plain[0], &plain[1]]), Proxy::before_server(server));
    shut_gate_behind(&scene.database, 1);
    let load = scene.load_to(&scene.database.conninfo_through(&proxy));
    let load = load.args(["--jobs", "1", "--retry-for", "10min"]).args(mode).args(&paths);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
    wait_until(&scene, &mut running, SLEEPS);
    let_other_jobs_pass(&scene.database);
    proxy.set(Fault::Refuse);
    proxy.cut_all();
    scene.database.sql(END_SESSIONS);
    let nobody = "SELECT (count(*) = 0)::int FROM pg_locks WHERE locktype = 'advisory' \
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    wait_until(&scene, &mut running, nobody);
    if !ends {
        scene.database.sql("ALTER TABLE t ADD CONSTRAINT full_up CHECK (id % 20000 < 1500) NOT VALID");
    }
    let waits = "SELECT location FROM howdah.file f WHERE NOT EXISTS \
        (SELECT FROM howdah.chunk c WHERE c.job_id = f.job_id AND c.file_no = f.file_no)";
    let second = scene.database.value(waits);
    let other = scene.load().args(["--chunk-size", "64kB", "--jobs", "1"]).arg(second);
    other.run(PATIENCE).expect_code(if ends { 0 } else { 1 });
    scene.database.sql("ALTER TABLE t DROP CONSTRAINT IF EXISTS full_up");
    open_gate(&scene.database);
    proxy.set(Fault::Pass);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    let words =
        if ends { "1 of 2 files is in public.t already, by job" } else { "which did not end, has stored" };
    assert!(told.contains(words), "{told}");
    let what = format!("PostgreSQL {major} {mode:?}, {ends}");
    if !ends {
        other.run(PATIENCE).expect_code(0);
    }
    load.args(["--known", "skip"]).run(PATIENCE).expect_code(0);
    scene.assert_exact(&what);
}

#[test]
fn a_load_that_was_away_does_not_store_what_others_have_begun_to_load_meanwhile() {
    side_by_side([13, 15, 18], |major| away(major, (&[], major != 15)));
    away(18, (&["--atomic"], true));
}
