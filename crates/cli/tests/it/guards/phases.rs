//! Behind the last chunk a load pauses between parts and index builds.

use super::{PLAIN, load, wait_for_words};
use crate::scene::{Files, PATIENCE, csv, howdah};
use crate::tune::GATE;
use howdah_testkit::{Database, HowdahCommand, Server, ServerOptions};

/// The row must have gone on before the load gives up: on a busy machine that takes a while.
const LAG: [&str; 4] = ["--max-replica-lag", "1MB", "--pause-for", "8s"];

/// The load reaches the row that waits; then the standby falls behind, and the row goes on when the load has
/// said that it pauses.
fn pauses(
    load: &HowdahCommand,
    (database, standby): (&Database, &Server),
    words: &str,
) -> howdah_testkit::Running {
    let mut running = load.spawn();
    wait_for_words(&mut running, words);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    assert!(database.wait_for(waits, 1, || running.is_running()), "{}", running.stderr_so_far());
    database.on(standby).sql("SELECT pg_wal_replay_pause()");
    database.sql("CREATE TABLE other AS SELECT generate_series(1, 100000)");
    wait_for_words(&mut running, "paused: the replica standby is ");
    database.sql("DELETE FROM gate");
    running
}

#[test]
fn rows_that_wait_come_in_part_by_part_while_the_load_does_not_pause() {
    let server = Server::private(15, &ServerOptions::default().replicated());
    let standby = server.standby(&ServerOptions::default().replicated());
    let database = server.database();
    database.sql(&format!("{PLAIN}; CREATE TABLE u (LIKE t); ALTER TABLE t ADD PRIMARY KEY (id)"));
    database.sql(&format!("ALTER TABLE u ADD PRIMARY KEY (id); {GATE}"));
    let files = Files::new();
    files.put("t.csv", &csv(65, 1, 10));
    files.put("u.csv", &csv(65, 1, 10));
    let to = database.conninfo();
    let load =
        howdah("load").args(["--format", "csv", "--header", "--to", &to, "--mode", "merge", "--key", "id"]);
    let load = load.arg(files.path().join("{table}.csv")).args(["--jobs", "1"]).args(LAG);
    let running = pauses(&load, (&database, &standby), "rows are merged into public.t");
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("(--max-replica-lag): the load has paused for 8 s and gives up"), "{told}");
    assert_eq!(database.value("SELECT (SELECT count(*) FROM t) - (SELECT count(*) FROM u)"), "10", "{told}");
    database.on(&standby).sql("SELECT pg_wal_replay_resume()");
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM u"), "10");
}

#[test]
fn an_index_is_not_begun_while_the_load_pauses() {
    let server = Server::private(15, &ServerOptions::default().replicated());
    let standby = server.standby(&ServerOptions::default().replicated());
    let database = server.database();
    database
        .sql(&format!("{PLAIN}; CREATE INDEX t_part ON t (part); CREATE INDEX t_note ON t (note); {GATE}"));
    // The load tries whether it may make an index before it drops one.
    database.sql(
        "CREATE FUNCTION wait_built() RETURNS event_trigger LANGUAGE plpgsql AS \
             'BEGIN WHILE EXISTS (SELECT FROM gate, pg_event_trigger_ddl_commands() WHERE schema_name = ''public'') \
                          AND (SELECT count(*) FROM pg_index WHERE indrelid = ''public.t''::regclass) < 2 LOOP \
                        PERFORM pg_sleep(0.01); END LOOP; END'; \
         CREATE EVENT TRIGGER wait ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION wait_built()",
    );
    let files = Files::new();
    let source = files.put("a.csv", &csv(66, 2, 10));
    let load = load(&database, &source).args(["--indexes", "rebuild", "--jobs", "1"]).args(LAG);
    let running = pauses(&load, (&database, &standby), "dropped from public.t");
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert_eq!(told.matches("the load has paused for 8 s and gives up").count(), 1, "{told}");
    assert!(told.contains("howdah restore"), "{told}");
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass";
    assert_eq!(database.value(indexes), "1", "{told}");
    database.on(&standby).sql("SELECT pg_wal_replay_resume()");
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value(indexes), "2");
    assert_eq!(database.value("SELECT count(*) FROM t"), "10");
}
