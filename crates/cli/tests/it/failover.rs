//! A standby that was behind takes the place of the primary: what it lacks is loaded again, and a job that it
//! does not know is not called done.

use crate::gate::{move_gate_behind, open_gate, shut_gate_behind};
use crate::guards::wait_for_words;
use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv};
use howdah_testkit::{Database, HowdahCommand, Running, Server, ServerOptions, side_by_side};
use std::path::Path;
use std::time::{Duration, Instant};

const ROWS: u64 = 20_000;
const LOST: &str = "the server has lost commits that it had acknowledged";

/// A primary and its standby, and the scene on each.
struct Pair {
    primary: Server,
    standby: Server,
    before: Scene,
    after: Scene,
}

impl Pair {
    fn new(major: u32, plain: &[u8]) -> Pair {
        // The standby is at most as full as the primary says.
        let options = ServerOptions::default().replicated();
        let primary = Server::private(major, &options);
        let before = Scene::new(&primary, &[plain]);
        before.slow_down("BEFORE", Duration::from_millis(60));
        let standby = primary.standby(&options);
        let after = Scene { database: before.database.on(&standby) };
        Pair { primary, standby, before, after }
    }

    fn load(&self, source: &Path) -> HowdahCommand {
        let ports = format!("port={},{}", self.primary.port(), self.standby.port());
        let to = self.before.database.conninfo().replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1");
        let to = to.replace(&format!("port={}", self.primary.port()), &ports);
        let load =
            self.before.load_to(&to).args(["--chunk-size", "64kB", "--jobs", "2", "--retry-for", "10min"]);
        load.arg(source)
    }

    /// From now on nothing of the primary reaches the standby.
    fn cut(&self) {
        self.after.database.sql("ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=1'");
        self.after.database.sql("SELECT pg_reload_conf()");
        let receiving = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'";
        let deadline = Instant::now() + PATIENCE;
        while self.after.database.value(receiving) != "0" {
            assert!(Instant::now() < deadline, "the standby goes on receiving");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn fail_over(&self) {
        self.primary.stop_immediate();
        self.after.database.sql("SELECT pg_promote()");
    }
}

fn wait_for_chunks(scene: &Scene, chunks: u64, running: &mut Running) {
    assert!(scene.wait_for_chunks(chunks, || running.is_running()), "{}", running.stderr_so_far());
}

#[test]
fn what_the_new_primary_lacks_is_loaded_again() {
    let plain = csv(81, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    side_by_side([(13, "append"), (18, "truncate")], |(major, mode)| {
        let pair = Pair::new(major, &plain);
        shut_gate_behind(&pair.before.database, 3);
        let mut running = pair.load(&source).args(["--mode", mode]).spawn();
        wait_for_chunks(&pair.after, 3, &mut running);
        pair.cut();
        let chunks = pair.before.chunks() + 3;
        move_gate_behind(&pair.before.database, chunks);
        wait_for_chunks(&pair.before, chunks, &mut running);
        pair.fail_over();
        open_gate(&pair.after.database);
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("check  read 20,000 = stored 20,000"), "PostgreSQL {major}\n{told}");
        let named = "another server took the place of the one that this load began on, and lacks ";
        assert!(told.contains(named) && !told.contains("crashed"), "PostgreSQL {major}\n{told}");
        pair.after.assert_exact(&format!("PostgreSQL {major}\n{told}"));
        pair.after.assert_done(&format!("PostgreSQL {major}\n{told}"));
    });
}

/// The new primary knows neither the job nor that the table was emptied for it.
#[test]
fn a_job_that_is_lost_begins_anew_and_empties_the_table_again() {
    let plain = csv(82, 1, ROWS);
    let files = Files::new();
    let pair = Pair::new(15, &plain);
    pair.load(&files.put("old.csv", &csv(83, 1_000_000, 10))).run(PATIENCE).expect_code(0);
    let source = files.put("a.csv", &plain);
    let old = "SELECT count(*) FROM t WHERE id >= 1000000";
    let deadline = Instant::now() + PATIENCE;
    while pair.after.database.value(old) != "10" || pair.after.chunks() != 1 {
        assert!(Instant::now() < deadline, "the standby does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
    pair.cut();
    let load = pair.load(&source).args(["--mode", "truncate"]);
    shut_gate_behind(&pair.before.database, 4);
    let mut running = load.spawn();
    wait_for_chunks(&pair.before, 4, &mut running);
    pair.fail_over();
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("is not in the ledger \"howdah\" any more: the server has lost it"), "{told}");
    assert_ne!(pair.after.database.value(old), "0");
    load.run(PATIENCE).expect_code(0);
    pair.after.assert_exact("begun anew");
}

/// Rows wait in staging tables, and the table is held when they are to come in: what the new primary lacks is
/// missed, though some of them, which others of their key overrule or the table refuses, would not be missed.
#[test]
fn what_is_lost_of_rows_that_wait_is_loaded_again() {
    let plain = csv(86, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let cases = [
        (13, &["--mode", "merge", "--key", "id", "--keep", "last"][..]),
        (18, &["--mode", "merge", "--key", "id", "--on-error", "skip"]),
        (15, &["--atomic", "--on-error", "skip"]),
    ];
    side_by_side(cases, |(major, options)| {
        let pair = Pair::new(major, &plain);
        pair.before.database.sql("CREATE UNIQUE INDEX ON t (id)");
        shut_gate_behind(&pair.before.database, 3);
        let load = pair.load(&source).args(options.iter().copied()).args(["--lock-timeout", "10min"]);
        let told = std::thread::scope(|scope| {
            scope.spawn(|| {
                pair.before.database.try_sql("BEGIN; LOCK TABLE t IN SHARE MODE; SELECT pg_sleep(600)")
            });
            let mut running = load.spawn();
            wait_for_chunks(&pair.after, 3, &mut running);
            pair.cut();
            open_gate(&pair.before.database);
            let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 't'::regclass";
            let deadline = Instant::now() + PATIENCE;
            while pair.before.database.value(waits) == "0" {
                assert!(running.is_running() && Instant::now() < deadline, "{}", running.stderr_so_far());
                std::thread::sleep(Duration::from_millis(10));
            }
            pair.fail_over();
            open_gate(&pair.after.database);
            running.wait(PATIENCE).expect_code(0).stderr
        });
        assert!(told.contains(LOST), "{options:?}\n{told}");
        pair.after.assert_exact(&format!("{options:?}\n{told}"));
        pair.after.assert_done(&format!("{options:?}\n{told}"));
    });
}

/// When the standby is cut off from what the primary stores.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// It has never heard of the ledger, nor of an index of the table.
    BeforeAll,
    /// It has not heard of the job.
    BeforeTheJob,
    /// It has the job, and no table in which rows wait.
    BeforeTheStaging,
    /// It has some of the rows.
    WithinTheRows,
    /// It lacks what was built and merged behind them.
    BehindTheRows,
}

/// Tables in which rows wait are not made yet.
fn hold_staging(database: &Database) {
    database.sql(
        "CREATE TABLE held_staging AS SELECT 1; \
         CREATE FUNCTION hold_staging() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF to_regclass('howdah.job') IS NULL THEN RETURN; END IF; \
             WHILE EXISTS (SELECT FROM public.held_staging) AND current_query() ~ '(howdah_new|staging)_[0-9a-f]{16}' \
             LOOP PERFORM pg_sleep(0.01); END LOOP; END $$; \
         CREATE EVENT TRIGGER hold_staging ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION hold_staging()",
    );
}

/// Fails over while the load waits for the table behind its last row; what it tells, and how it ends.
fn strike_at_the_end(pair: &Pair, load: &HowdahCommand, cut: Cut) -> (Option<i32>, String) {
    let (before, after) = (&pair.before.database, &pair.after.database);
    let knows_job = matches!(cut, Cut::WithinTheRows | Cut::BehindTheRows);
    if cut == Cut::BeforeTheJob {
        let wait = "SELECT count(*) FROM howdah.job WHERE status = 'done'";
        assert!(after.wait_for(wait, 1, || true));
        pair.cut();
    }
    shut_gate_behind(before, 3);
    let file = before.connect();
    if cut == Cut::BeforeTheStaging {
        hold_staging(before);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| before.try_sql("BEGIN; LOCK TABLE t IN SHARE MODE; SELECT pg_sleep(600)"));
        let mut running = load.spawn();
        if cut == Cut::BeforeTheStaging {
            let naps = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%CREATE%' AND wait_event = 'PgSleep'";
            assert!(before.wait_for(naps, 1, || running.is_running()), "{}", running.stderr_so_far());
            let job = "SELECT count(*) FROM howdah.job WHERE status = 'running'";
            assert!(after.wait_for(job, 1, || running.is_running()), "{}", running.stderr_so_far());
            pair.cut();
            before.sql("DELETE FROM held_staging");
        }
        wait_for_chunks(if knows_job { &pair.after } else { &pair.before }, 3, &mut running);
        if cut == Cut::WithinTheRows {
            pair.cut();
        }
        if cut == Cut::BehindTheRows {
            // It is told behind the last row how many there are.
            file.sql("BEGIN; LOCK TABLE howdah.file IN SHARE MODE");
        }
        open_gate(before);
        let waits_for = |table: &str| {
            format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{table}'::regclass")
        };
        if cut == Cut::BehindTheRows {
            assert!(
                before.wait_for(&waits_for("howdah.file"), 1, || running.is_running()),
                "{}",
                running.stderr_so_far()
            );
            wait_for_chunks(&pair.after, pair.before.chunks(), &mut running);
            pair.cut();
            file.sql("COMMIT");
        }
        assert!(before.wait_for(&waits_for("t"), 1, || running.is_running()), "{}", running.stderr_so_far());
        pair.fail_over();
        if knows_job {
            open_gate(after);
        }
        if cut == Cut::BeforeTheStaging {
            after.sql("DELETE FROM held_staging; DELETE FROM gate");
        }
        let done = running.wait(PATIENCE);
        (done.code, done.stderr)
    })
}

/// Whatever the new primary lacks, nobody else is blamed, and where the load cannot go on, the same command
/// can.
#[test]
fn who_takes_over_behind_the_rows_gets_all_of_them() {
    let plain = csv(90, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let none = files.put("none.csv", b"id,part,amount,note\n");
    let replace = &["--mode", "replace"][..];
    let merge = &["--mode", "merge", "--key", "id"][..];
    let atomic = &["--atomic"][..];
    let cases = [
        (replace, Cut::BeforeAll),
        (replace, Cut::BeforeTheJob),
        (replace, Cut::BeforeTheStaging),
        (replace, Cut::WithinTheRows),
        (replace, Cut::BehindTheRows),
        (merge, Cut::BeforeTheJob),
        (merge, Cut::BeforeTheStaging),
        (atomic, Cut::BeforeTheStaging),
    ];
    let cases: Vec<_> = cases.into_iter().zip([13, 18].into_iter().cycle()).collect();
    for cases in cases.chunks(4) {
        side_by_side(cases.to_vec(), |((options, cut), major)| {
            let pair = Pair::new(major, &plain);
            if cut == Cut::BeforeAll {
                pair.cut();
            }
            pair.before.database.sql("CREATE UNIQUE INDEX t_id ON t (id)");
            if cut == Cut::BeforeTheJob {
                pair.load(&none).run(PATIENCE).expect_code(0);
            }
            let load = pair.load(&source).args(options.iter().copied()).args(["--lock-timeout", "10min"]);
            let (code, told) = strike_at_the_end(&pair, &load, cut);
            let what = format!("PostgreSQL {major}, {options:?}, {cut:?}\n{told}");
            let is_lost = matches!(cut, Cut::BeforeAll | Cut::BeforeTheJob);
            assert_eq!(code == Some(1), is_lost, "{what}");
            if is_lost {
                assert!(
                    told.contains("any more: the server has lost it")
                        && told.contains("hint: run the same command again"),
                    "{what}"
                );
                assert!(
                    !told.contains(LOST)
                        && !told.contains("is gone")
                        && !told.contains("wait in staging tables"),
                    "{what}"
                );
                if cut == Cut::BeforeAll {
                    pair.after.database.sql("CREATE UNIQUE INDEX t_id ON t (id)");
                }
                load.run(PATIENCE).expect_code(0);
            }
            pair.after.assert_exact(&what);
            if cut != Cut::BeforeTheJob {
                pair.after.assert_done(&what);
            }
        });
    }
}

/// What the server loses while indexes are built is missed when the job is to be closed. Behind the last row,
/// before the index is built; `also` is lost with it. No session lives through what loses commits.
fn lose_the_first_chunk(scene: &Scene, running: &mut Running, also: &str) {
    wait_for_words(running, "dropped from");
    // The lock lets rows come and keeps the index from being built.
    let holder = scene.database.connect();
    holder.sql("BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE");
    open_gate(&scene.database);
    holder.sql(&format!(
        "DO $$ BEGIN FOR i IN 1..60000 LOOP \
             EXIT WHEN EXISTS (SELECT FROM howdah.file WHERE rows_stored = 20000); PERFORM pg_sleep(0.01); \
         END LOOP; END $$; \
         DELETE FROM t WHERE id <= (SELECT rows FROM howdah.chunk WHERE chunk_no = 0); {also}; \
         DELETE FROM howdah.chunk WHERE chunk_no = 0; {END_SESSIONS}; COMMIT"
    ));
}

#[test]
fn what_is_lost_while_indexes_are_built_is_loaded_again() {
    let plain = csv(84, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.database.sql("CREATE INDEX ON t (id)");
    shut_gate_behind(&scene.database, 1);
    let load = scene.load().args(["--indexes", "rebuild", "--chunk-size", "64kB", "--lock-timeout", "200ms"]);
    let mut running = load.arg(&source).spawn();
    lose_the_first_chunk(&scene, &mut running, "");
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("loading these again"), "{told}");
    scene.assert_exact("loaded again");
    scene.assert_done("loaded again");
}

/// So is a record that is refused, and listed once.
#[test]
fn what_is_refused_again_after_a_loss_is_listed_once() {
    let good = csv(89, 1, ROWS);
    let header = good.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let plain = [&good[..header], b"x,1,1.5,-\n", &good[header..]].concat();
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&good]);
    scene.database.sql("CREATE INDEX ON t (id)");
    shut_gate_behind(&scene.database, 1);
    let load = scene.load().args(["--indexes", "rebuild", "--chunk-size", "64kB", "--lock-timeout", "200ms"]);
    let mut running = load.args(["--on-error", "skip", "--json"]).arg(&source).spawn();
    let also = "DELETE FROM howdah.reject; DELETE FROM howdah.chunk_part WHERE chunk_no = 0";
    lose_the_first_chunk(&scene, &mut running, also);
    let done = running.wait(PATIENCE).expect_code(3);
    let told: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(told["warnings"].to_string().contains(LOST), "{told}\n{}", done.stderr);
    assert_eq!(
        (&told["rows_rejected"], told["left_out"].as_array().unwrap().len()),
        (&1.into(), 1),
        "{told}"
    );
    scene.assert_exact("loaded again");
}

/// The last commit before the end of the job waits until the standby is cut off, and the end of the job until
/// that standby is the primary, which knows nothing of that commit.
fn lose_the_last_commit(pair: &Pair, load: &HowdahCommand, (table, event): (&str, &str)) -> String {
    let (before, after) = (&pair.before.database, &pair.after.database);
    shut_gate_behind(before, 3);
    before.sql(
        "DROP TRIGGER pause ON t; CREATE TABLE held AS SELECT 1 AS one; \
         CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             WHILE EXISTS (SELECT FROM public.held) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL; END $$",
    );
    let mut running = load.spawn();
    wait_for_chunks(&pair.after, 3, &mut running);
    before.sql(&format!(
        "CREATE CONSTRAINT TRIGGER held AFTER {event} ON howdah.{table} DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW WHEN (NEW.name <> 'parts' AND to_jsonb(NEW) ->> 'kind' IS DISTINCT FROM 'staging') EXECUTE FUNCTION held()"
    ));
    open_gate(before);
    let activity = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let mut wait_for = |what: &str| {
        let is_there = before.wait_for(&format!("{activity} AND {what}"), 1, || running.is_running());
        assert!(is_there, "{what}\n{}", running.stderr_so_far());
    };
    wait_for(&format!(
        "wait_event = 'PgSleep' AND pid IN (SELECT pid FROM pg_locks \
         WHERE relation = 'howdah.{table}'::regclass AND mode = 'RowExclusiveLock')"
    ));
    pair.cut();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            before.try_sql("BEGIN; LOCK TABLE howdah.job IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep(600)")
        });
        wait_for("query LIKE 'BEGIN; LOCK TABLE howdah.job%'");
        before.sql("DELETE FROM held");
        wait_for("wait_event_type = 'Lock' AND query LIKE '%.job SET status = ''done''%'");
        pair.fail_over();
    });
    after.sql("DELETE FROM held");
    open_gate(after);
    running.wait(PATIENCE).expect_code(0).stderr
}

/// The end of a job is not noted where the new primary lacks what had brought its rows in, or what had been
/// put back.
#[test]
fn what_is_lost_just_before_the_end_is_done_again() {
    let plain = csv(87, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let cases = [
        (15, ("step", "INSERT"), &["--atomic"][..]),
        (18, ("step", "INSERT"), &["--mode", "merge", "--key", "id"]),
        (13, ("step", "INSERT"), &["--mode", "replace"]),
        (15, ("undo", "UPDATE"), &["--indexes", "rebuild"]),
    ];
    side_by_side(cases, |(major, lost, options)| {
        let pair = Pair::new(major, &plain);
        pair.before.database.sql("CREATE UNIQUE INDEX t_id ON t (id)");
        let told = lose_the_last_commit(&pair, &pair.load(&source).args(options.iter().copied()), lost);
        let what = format!("{options:?}\n{told}");
        assert!(told.contains(LOST), "{what}");
        pair.after.assert_exact(&what);
        pair.after.assert_done(&what);
        let indexes = "SELECT count(*) FROM pg_indexes WHERE tablename = 't' AND indexname = 't_id'";
        assert_eq!(pair.after.database.value(indexes), "1", "{what}");
        let left = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL";
        assert_eq!(pair.after.database.value(left), "0", "{what}");
    });
}

/// What was set there is on the old primary still.
#[test]
fn settings_that_the_old_primary_keeps_are_told() {
    let plain = csv(87, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let pair = Pair::new(15, &plain);
    shut_gate_behind(&pair.before.database, 3);
    let load = pair.load(&source).args(["--tune", "server"]);
    let mut running = load.spawn();
    wait_for_chunks(&pair.after, 3, &mut running);
    pair.fail_over();
    open_gate(&pair.after.database);
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    let conf = std::fs::read_to_string(pair.primary.data_dir().join("postgresql.auto.conf")).unwrap();
    assert!(conf.contains("max_wal_size"), "{conf}");
    assert!(told.contains("keeps in its postgresql.auto.conf what was set there for the load ("), "{told}");
    assert!(told.contains("ALTER SYSTEM RESET max_wal_size"), "{told}");
    pair.after.assert_exact(&told);
}

/// The load is at ANALYZE, for which it waits, and all is said to be stored.
#[test]
fn a_job_whose_end_is_lost_is_not_called_done() {
    let plain = csv(87, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let pair = Pair::new(18, &plain);
    pair.cut();
    // Where it is asked for, ANALYZE waits for the lock; else it leaves the table out.
    let load = pair.load(&source).args(["--after", "analyze"]);
    std::thread::scope(|scope| {
        let hold = "BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE; SELECT pg_sleep(600)";
        scope.spawn(|| pair.before.database.try_sql(hold));
        let naps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        assert!(pair.before.database.wait_for(naps, 1, || true));
        let mut running = load.spawn();
        wait_for_chunks(&pair.before, 1, &mut running);
        let done = "SELECT count(*) FROM howdah.job WHERE status = 'done'";
        assert!(
            pair.before.database.wait_for(done, 1, || running.is_running()),
            "{}",
            running.stderr_so_far()
        );
        pair.fail_over();
        let told = running.wait(PATIENCE).expect_code(1).stderr;
        let by_now = told.contains("and does not know it as done: rows of it may be missing there");
        // Where the answer to the commit that closes the job is lost, it is closed once more.
        assert!(
            by_now || told.contains("is not in the ledger \"howdah\" any more: the server has lost it"),
            "{told}"
        );
    });
    assert_eq!(pair.after.database.value("SELECT count(*) FROM t"), "0");
    load.run(PATIENCE).expect_code(0);
    pair.after.assert_exact("loaded again");
}
