//! Tables that are emptied, replaced or exchanged while a load is at work on them.

use crate::gate::{let_other_jobs_pass, move_gate_behind, open_gate, shut_gate_behind};
use crate::guards::wait_for_words;
use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv, howdah, while_waiting};
use howdah_testkit::{HowdahCommand, Running, Server};
use std::path::Path;
use std::time::Duration;

const ROWS: u64 = 10_000;

/// A load that has stored some of its rows and stores the rest when the gate is opened.
fn at_work(scene: &Scene, source: &Path) -> Running {
    shut_gate_behind(&scene.database, 1);
    let mut running = slow(scene).arg(source).spawn();
    assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
    let_other_jobs_pass(&scene.database);
    running
}

fn slow(scene: &Scene) -> HowdahCommand {
    scene.load().args(["--chunk-size", "64kB", "--jobs", "1"])
}

#[test]
fn a_table_that_others_put_in_its_place_does_not_pass_for_it() {
    let plain = csv(91, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let running = at_work(&scene, &source);
    scene.database.sql("BEGIN; CREATE TABLE u (LIKE t INCLUDING ALL); ALTER TABLE t RENAME TO t_old; ALTER TABLE u RENAME TO t; COMMIT");
    open_gate(&scene.database);
    let failed = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(
        failed.contains("public.t is another table by now: it was dropped, renamed or replaced"),
        "{failed}"
    );
    let again = slow(&scene).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(again.contains("was dropped or made anew"), "{again}");
    scene.database.sql("TRUNCATE t");
    slow(&scene).arg(&source).arg("--force").run(PATIENCE).expect_code(0);
    scene.assert_exact("by --force");
}

/// Values of the rows before would be gone, or under another name.
#[test]
fn columns_that_others_put_in_the_place_of_those_that_are_filled_do_not_pass_for_them() {
    let plain = csv(191, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let anew = "ALTER TABLE t DROP COLUMN note; ALTER TABLE t ADD COLUMN note text";
    let exchanged =
        "ALTER TABLE t RENAME id TO x; ALTER TABLE t RENAME part TO id; ALTER TABLE t RENAME x TO part";
    let harmless = "ALTER TABLE t ADD COLUMN more int; ALTER TABLE t ALTER part TYPE bigint; \
                    ALTER TABLE t RENAME id TO x; ALTER TABLE t RENAME x TO id";
    for (major, changed, words) in [
        (13, anew, "column note of public.t is another one by now"),
        (18, exchanged, "columns part, id of public.t are other ones by now"),
        (15, harmless, ""),
    ] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let running = at_work(&scene, &source);
        scene.database.sql(changed);
        open_gate(&scene.database);
        if words.is_empty() {
            running.wait(PATIENCE).expect_code(0);
            continue;
        }
        let failed = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(failed.contains(words) && failed.contains("hint: take the rows of the job out"), "{failed}");
        let again = slow(&scene).arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(again.contains("dropped and made anew, or renamed"), "{again}");
        scene.database.sql("TRUNCATE t");
        slow(&scene).arg(&source).arg("--force").run(PATIENCE).expect_code(0);
        let rows = "SELECT count(*) FROM (SELECT id, part, amount, note FROM t EXCEPT ALL SELECT * FROM wanted) AS r";
        assert_eq!(scene.database.value(rows), "0", "PostgreSQL {major}");
        assert_eq!(scene.database.value("SELECT count(*) FROM t"), ROWS.to_string());
    }
}

/// The same of a job that was killed.
#[test]
fn a_job_does_not_go_on_with_other_columns() {
    let plain = csv(192, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for made in [false, true] {
        let scene = Scene::new(Server::shared(15), &[&plain]);
        let mut load =
            scene.verb("load").args(["--table", "t", "--chunk-size", "64kB", "--jobs", "1"]).arg(&source);
        if made {
            scene.database.sql("DROP TABLE t");
            load = load.arg("--create");
        }
        shut_gate_behind(&scene.database, 1);
        let mut running = load.spawn();
        assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
        running.kill();
        scene.database.sql(END_SESSIONS);
        open_gate(&scene.database);
        scene.database.sql("ALTER TABLE t DROP COLUMN amount; ALTER TABLE t ADD COLUMN amount numeric");
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("column amount of public.t, in which job"), "{refused}");
        assert!(refused.contains("hint: --force loads everything again"), "{refused}");
    }
}

/// Who replaces a table that was given to another role meanwhile is told where to look.
#[test]
fn a_table_that_goes_to_another_owner_is_not_replaced_and_the_hint_says_so() {
    let plain = csv(193, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let name = scene.database.name();
    let role = format!("former_{name}");
    scene.database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {name} TO {role}; GRANT USAGE, CREATE ON SCHEMA public TO {role}; \
         ALTER TABLE t OWNER TO {role}"
    ));
    shut_gate_behind(&scene.database, 1);
    let to = scene.database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load =
        scene.load_to(&to).args(["--chunk-size", "64kB", "--jobs", "1", "--mode", "replace"]).arg(&source);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
    scene.database.sql("ALTER TABLE t OWNER TO postgres");
    open_gate(&scene.database);
    let failed = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(
        failed.contains("permission denied") && failed.contains("hint: the owner of the table"),
        "{failed}"
    );
    let again = load.run(PATIENCE).expect_code(1).stderr;
    assert!(again.contains("it belongs to another role"), "{again}");
    scene.database.sql(&format!("ALTER TABLE t OWNER TO {role}"));
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("given back");
}

/// Whoever takes all rows away waits for those who bring some, however the two are begun.
#[test]
fn nobody_empties_or_replaces_a_table_that_others_load_into() {
    let (first, second) = (csv(92, 1, ROWS), csv(93, 1_000_000, ROWS));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    for (major, takes) in
        [(13, ["--mode", "truncate"]), (15, ["--mode", "replace"]), (18, ["--mode=truncate", "--freeze"])]
    {
        let scene = Scene::new(Server::shared(major), &[&second]);
        let running = at_work(&scene, &sources[0]);
        let mut taking = slow(&scene).args(takes).arg(&sources[1]).spawn();
        wait_for_words(&mut taking, "yet: job ");
        open_gate(&scene.database);
        let brought = running.wait(PATIENCE).expect_code(0).stderr;
        assert!(brought.contains("check  read 10,000 = stored 10,000"), "{takes:?}\n{brought}");
        taking.wait(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("{takes:?}"));
    }
}

/// The second of two that empty the table empties it of the rows of the first, not of some of them.
#[test]
fn two_that_empty_the_same_table_come_one_after_the_other() {
    let files = Files::new();
    let plains = [csv(94, 1, ROWS), csv(95, 1_000_000, ROWS)];
    let sources = [files.put("first.csv", &plains[0]), files.put("second.csv", &plains[1])];
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[]);
        scene.slow_down("BEFORE", Duration::from_millis(20));
        let loads =
            sources.each_ref().map(|source| slow(&scene).args(["--mode", "truncate"]).arg(source).spawn());
        loads.into_iter().for_each(|load| drop(load.wait(PATIENCE).expect_code(0)));
        let rows = "SELECT count(*) || ' ' || count(DISTINCT id / 1000000) FROM t";
        assert_eq!(scene.database.value(rows), format!("{ROWS} 1"), "PostgreSQL {major}");
    }
}

/// Another run of its job that ends, or the loss of the lock that tells of it, does not make a load one that
/// is not at work.
#[test]
fn a_load_is_at_work_whatever_becomes_of_other_runs_and_of_its_lock() {
    let (first, second) = (csv(96, 1, ROWS), csv(97, 1_000_000, ROWS));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    let scene = Scene::new(Server::shared(15), &[&second]);
    let running = at_work(&scene, &sources[0]);
    let mut beside = slow(&scene).arg(&sources[0]).spawn();
    let runs = || scene.database.value("SELECT runs FROM howdah.job");
    while runs() != "2" && beside.is_running() {
        std::thread::sleep(Duration::from_millis(5));
    }
    beside.interrupt();
    beside.wait(PATIENCE).expect_code(130);
    assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "running");
    let holder = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 \
        AND (classid::int8 << 32) | objid::int8 \
            = hashtextextended('howdah/' || (SELECT job_id FROM howdah.job), x'686f77646168'::int8)";
    assert_eq!(scene.database.value(holder), "1");
    let mut taking = slow(&scene).args(["--mode", "truncate"]).arg(&sources[1]).spawn();
    wait_for_words(&mut taking, "yet: job ");
    open_gate(&scene.database);
    running.wait(PATIENCE).expect_code(0);
    taking.wait(PATIENCE).expect_code(0);
    scene.assert_exact("behind the other");
}

const EMPTIED_BY_OTHER: &str = "TRUNCATE t; INSERT INTO howdah.step (job_id, target, name, part_no, done_at) \
    VALUES ('other', 'public.t', 'truncate', 0, clock_timestamp())";

#[test]
fn a_load_whose_table_another_job_has_emptied_does_not_count_as_done() {
    let plain = csv(98, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let running = at_work(&scene, &source);
    scene.database.sql(EMPTIED_BY_OTHER);
    open_gate(&scene.database);
    let failed = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("job other has emptied public.t since"), "{failed}");
    assert!(failed.contains("hint: take what came after that out of it"), "{failed}");
    assert_eq!(scene.database.value("SELECT status FROM howdah.job"), "failed");
}

/// The plan has seen the rows of the first run, and when the second one begins they are gone.
#[test]
fn a_table_that_another_job_empties_between_plan_and_begin_is_noticed() {
    let plain = csv(99, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    at_work(&scene, &source).kill();
    open_gate(&scene.database);
    let held = "LOCK TABLE howdah.job IN SHARE MODE";
    let again = slow(&scene).arg(&source);
    let again = while_waiting(&scene.database, (held, "howdah.job"), EMPTIED_BY_OTHER, || again.spawn());
    let failed = again.wait(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("job other has emptied public.t since"), "{failed}");
    assert!(failed.contains("hint: --force loads again"), "{failed}");
    slow(&scene).arg(&source).arg("--force").run(PATIENCE).expect_code(0);
    scene.assert_exact("by --force");
}

#[test]
fn a_partition_and_its_table_are_emptied_when_loads_into_the_other_are_over() {
    let (first, second) = (csv(100, 1, ROWS), csv(101, 1_000_000, ROWS));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    for (loaded, taken) in [("t", "t_all"), ("t_all", "t")] {
        let scene = Scene::new(Server::shared(15), &[&second]);
        scene.database.sql(
            "ALTER TABLE t RENAME TO t_all; CREATE TABLE t (LIKE t_all) PARTITION BY RANGE (id); \
             ALTER TABLE t ATTACH PARTITION t_all FOR VALUES FROM (MINVALUE) TO (MAXVALUE)",
        );
        shut_gate_behind(&scene.database, 1);
        let to = scene.database.conninfo();
        let into = |table: &str| {
            howdah("load")
                .args(["--format", "csv", "--header", "--chunk-size", "64kB", "--jobs", "1"])
                .args(["--to", &to, "--table", table])
        };
        let mut running = into(loaded).arg(&sources[0]).spawn();
        assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
        let_other_jobs_pass(&scene.database);
        let mut taking = into(taken).args(["--mode", "truncate"]).arg(&sources[1]).spawn();
        wait_for_words(&mut taking, "yet: job ");
        open_gate(&scene.database);
        running.wait(PATIENCE).expect_code(0);
        taking.wait(PATIENCE).expect_code(0);
        scene.assert_exact(taken);
    }
}

const SLEEPING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";

/// What it has emptied and stored is seen by nobody before its end.
#[test]
fn a_file_that_comes_frozen_into_an_emptied_table_is_not_loaded_beside_it() {
    let plain = csv(102, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        shut_gate_behind(&scene.database, 1);
        let mut running = slow(&scene).args(["--mode=truncate", "--freeze"]).arg(&source).spawn();
        let is_there = scene.database.wait_for(SLEEPING, 1, || running.is_running());
        assert!(is_there, "{}", running.stderr_so_far());
        let_other_jobs_pass(&scene.database);
        let beside = slow(&scene).args(["--known", "skip"]).arg(&source);
        let refused = beside.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("the file is being loaded into public.t, by job"), "{refused}");
        open_gate(&scene.database);
        running.wait(PATIENCE).expect_code(0);
        beside.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

/// That one begins, and stands in the ledger only then.
#[test]
fn a_table_is_not_emptied_beside_a_load_that_begins() {
    let (first, second) = (csv(103, 1, ROWS), csv(107, 1_000_000, ROWS));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    let scene = Scene::new(Server::shared(15), &[&second]);
    slow(&scene).arg(files.put("none.csv", b"id,part,amount,note\n")).run(PATIENCE).expect_code(0);
    scene.database.sql(
        "CREATE TABLE held AS SELECT 1; CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             WHILE EXISTS (SELECT FROM public.held) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$; \
         CREATE TRIGGER hold BEFORE INSERT ON howdah.job FOR EACH ROW \
             WHEN (NEW.plan #>> '{job,arrival,mode}' IS DISTINCT FROM 'truncate') EXECUTE FUNCTION hold()",
    );
    let mut begins = slow(&scene).arg(&sources[0]).spawn();
    assert!(scene.database.wait_for(SLEEPING, 1, || begins.is_running()), "{}", begins.stderr_so_far());
    let mut empties = slow(&scene).args(["--mode", "truncate"]).arg(&sources[1]).spawn();
    wait_for_words(&mut empties, "yet: another load (server process ");
    scene.database.sql("DELETE FROM held");
    begins.wait(PATIENCE).expect_code(0);
    empties.wait(PATIENCE).expect_code(0);
    scene.assert_exact("behind the other");
}

/// As where it had lost all its sessions for a moment.
#[test]
fn a_load_of_whose_rows_another_job_has_deleted_some_does_not_count_as_done() {
    let plain = csv(104, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for major in [13, 18] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
        let running = at_work(&scene, &source);
        scene.database.sql(
            "DELETE FROM t WHERE id < 100; INSERT INTO howdah.step (job_id, target, name, part_no, deleted, done_at) \
             VALUES ('other', 'public.t', 'delete', 0, 99, clock_timestamp())",
        );
        open_gate(&scene.database);
        let failed = running.wait(PATIENCE).expect_code(1).stderr;
        assert!(
            failed.contains("job other has deleted rows of public.t (--delete-missing) since job"),
            "{failed}"
        );
        assert!(failed.contains("hint: --mode insert-new with the key"), "{failed}");
        let again = slow(&scene).arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(
            again.contains("job other has deleted rows of public.t (--delete-missing) since job"),
            "{again}"
        );
        let missing = scene.load().args(["--mode", "insert-new", "--key", "id"]).arg(&source);
        missing.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

/// Who waits is told whom for, and where; whoever is not to wait is refused before it has done anything.
#[test]
fn loads_that_take_rows_out_and_others_wait_for_each_other_from_their_beginning() {
    let (first, second) = (csv(108, 1, ROWS), csv(109, 1_000_000, 100));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    let takes = [
        (13, &["--mode=merge", "--key=id", "--delete-missing"][..]),
        (15, &["--mode=merge", "--key=id", "--delete-missing", "--atomic"]),
        (18, &["--mode=replace"]),
    ];
    for (major, takes) in takes {
        for (first, second) in [(&[][..], takes), (takes, &["--indexes=keep"])] {
            let scene = Scene::new(Server::shared(major), &[]);
            scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
            shut_gate_behind(&scene.database, 1);
            let mut running = slow(&scene).args(first).arg(&sources[0]).spawn();
            assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
            let job = scene.database.value("SELECT job_id FROM howdah.job");
            let told = format!("yet: job {job} (server process ");
            let second = slow(&scene).args(second).arg(&sources[1]);
            let refused = second.clone().args(["--retry-for", "0s"]).run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains(&told), "{refused}");
            assert!(
                refused.contains("hint: run the same command again when that load has ended"),
                "{refused}"
            );
            assert_eq!(scene.database.value("SELECT count(*) FROM howdah.job"), "1");
            let mut second = second.spawn();
            wait_for_words(&mut second, &told);
            open_gate(&scene.database);
            running.wait(PATIENCE).expect_code(0);
            second.wait(PATIENCE).expect_code(0);
            let left = if first.is_empty() { "100" } else { "10100" };
            assert_eq!(scene.database.value("SELECT count(*) FROM t"), left, "PostgreSQL {major} {takes:?}");
        }
    }
}

/// Its first run has been killed, and had begun before them.
#[test]
fn rows_that_came_since_a_job_began_which_takes_them_out_are_told() {
    let (first, second) = (csv(115, 1, ROWS), csv(117, 1_000_000, 100));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    for takes in [&["--mode=replace"][..], &["--mode=merge", "--key=id", "--delete-missing"]] {
        let scene = Scene::new(Server::shared(15), &[&first]);
        scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
        shut_gate_behind(&scene.database, 1);
        let taking = slow(&scene).args(takes).arg(&sources[0]);
        let mut running = taking.spawn();
        assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
        running.kill();
        open_gate(&scene.database);
        scene.load().args(["--job-id", "between"]).arg(&sources[1]).run(PATIENCE).expect_code(0);
        let told = taking.run(PATIENCE).expect_code(0).stderr;
        let warning =
            "since this job began, rows have come into public.t by between: they are taken out of it";
        assert!(told.contains(warning), "{takes:?}\n{told}");
        scene.assert_exact(&format!("{takes:?}"));
    }
}

/// The table of the plan is gone when the load comes to its turn.
#[test]
fn a_load_that_waits_for_one_that_replaces_its_table_loads_into_the_new_one() {
    let (first, second) = (csv(113, 1, ROWS), csv(114, 1_000_000, ROWS));
    let files = Files::new();
    let sources = [files.put("first.csv", &first), files.put("second.csv", &second)];
    let scene = Scene::new(Server::shared(15), &[&first, &second]);
    shut_gate_behind(&scene.database, 1);
    let mut replacing = slow(&scene).args(["--mode", "replace"]).arg(&sources[0]).spawn();
    assert!(scene.wait_for_chunks(1, || replacing.is_running()), "{}", replacing.stderr_so_far());
    let_other_jobs_pass(&scene.database);
    let mut waiting = slow(&scene).arg(&sources[1]).spawn();
    wait_for_words(&mut waiting, "empties or replaces public.t, or deletes rows of it");
    open_gate(&scene.database);
    replacing.wait(PATIENCE).expect_code(0);
    let told = waiting.wait(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("others have made, changed or replaced a table of this load since it was planned"),
        "{told}"
    );
    scene.assert_exact("one behind the other");
}

/// It has come to its end before the transaction of the other one has.
#[test]
fn a_file_of_whose_rows_another_job_has_deleted_some_while_they_came_is_not_known() {
    let plain = csv(106, 1, 300);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.load().arg(&source).run(PATIENCE).expect_code(0);
    scene.database.sql(
        "DELETE FROM t WHERE id > 1; UPDATE howdah.job SET finished_at = finished_at + interval '1 hour'; \
         INSERT INTO howdah.step (job_id, target, name, part_no, deleted) VALUES ('other', 'public.t', 'delete', 0, 299)",
    );
    scene.load().args(["--known", "skip", "--null", "-"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value("SELECT count(*) FROM t"), "301");
}

/// This is done to the table while a load with these options is at work, which ends well; what it says.
fn meanwhile(scene: &Scene, source: &Path, options: &[&str], sql: &str) -> String {
    shut_gate_behind(&scene.database, 2);
    let mut running = slow(scene).args(options).arg(source).spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()), "{}", running.stderr_so_far());
    scene.database.sql(sql);
    open_gate(&scene.database);
    running.wait(PATIENCE).expect_code(0).stderr
}

const TAKEN: &str = "others have taken rows out of it since the job began";

#[test]
fn a_table_that_others_empty_under_a_load_is_told_with_what_brings_its_rows_back() {
    let plain = csv(110, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for (major, options) in [(13, vec![]), (18, vec!["--mode", "truncate"])] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let told = meanwhile(&scene, &source, &options, "TRUNCATE t");
        let held = scene.database.value("SELECT count(*) FROM t");
        let warning =
            format!("warning: public.t holds {held} rows, and this job has stored {ROWS} there: {TAKEN}");
        assert!(told.contains(&warning), "PostgreSQL {major}\n{told}");
        assert!(told.contains("the same command with --force"), "{told}");
        if options.is_empty() {
            scene.database.sql("TRUNCATE t");
        }
        slow(&scene).args(&options).arg("--force").arg(&source).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

/// The run that ends the job finds the table as it is by then.
#[test]
fn a_table_that_others_empty_under_a_run_that_is_killed_is_told_by_the_next() {
    let plain = csv(116, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for sql in ["TRUNCATE t", "SELECT"] {
        let scene = Scene::new(Server::shared(15), &[&plain]);
        shut_gate_behind(&scene.database, 1);
        let mut running = slow(&scene).arg(&source).spawn();
        assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
        scene.database.sql(sql);
        move_gate_behind(&scene.database, 2);
        assert!(scene.wait_for_chunks(2, || running.is_running()), "{}", running.stderr_so_far());
        running.kill();
        open_gate(&scene.database);
        let told = slow(&scene).arg(&source).run(PATIENCE).expect_code(0).stderr;
        let held = scene.database.value("SELECT count(*) FROM t");
        let warning =
            format!("warning: public.t holds {held} rows, and this job has stored {ROWS} there: {TAKEN}");
        assert_eq!(told.contains(&warning), sql != "SELECT", "{told}");
    }
}

#[test]
fn a_partition_that_others_empty_under_a_load_is_told() {
    let plain = csv(111, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::partitioned(Server::shared(15), &[&plain]);
    let told = meanwhile(&scene, &source, &[], "TRUNCATE t_rest");
    assert!(told.contains(TAKEN), "{told}");
}

#[test]
fn a_table_that_others_write_anew_under_a_load_has_lost_nothing() {
    let plain = csv(112, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for sql in ["VACUUM FULL t", "ALTER TABLE t ALTER note TYPE varchar USING note || ''"] {
        let scene = Scene::new(Server::shared(18), &[&plain]);
        let told = meanwhile(&scene, &source, &[], sql);
        assert!(!told.contains("warning"), "{sql}\n{told}");
        scene.assert_exact(sql);
    }
}

#[test]
fn a_table_that_is_dropped_under_a_load_is_named_with_what_is_to_be_done() {
    let plain = csv(113, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let running = at_work(&scene, &source);
    scene.database.sql("CREATE TABLE anew (LIKE t); DROP TABLE t");
    open_gate(&scene.database);
    let failed = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(failed.contains("public.t is not there any more: it was dropped, renamed or moved"), "{failed}");
    assert!(
        failed.contains("hint: if it was renamed or moved, give it its name and schema back"),
        "{failed}"
    );
    scene.database.sql("ALTER TABLE anew RENAME TO t");
    slow(&scene).arg("--force").arg(&source).run(PATIENCE).expect_code(0);
    scene.assert_exact("made anew");
}

/// No run of the job can end what a killed one has left.
#[test]
fn rows_that_wait_for_a_dropped_table_are_told_by_status_and_dropped_by_restore() {
    let plain = csv(114, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    shut_gate_behind(&scene.database, 1);
    let mut running = slow(&scene).arg("--atomic").arg(&source).spawn();
    assert!(scene.wait_for_chunks(1, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    let other = files.put("b.csv", &csv(115, ROWS + 1, ROWS));
    let mut running = slow(&scene).arg("--atomic").arg(&other).spawn();
    let waiting = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL";
    assert!(scene.database.wait_for(waiting, 2, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    scene.database.sql("DROP TABLE t");
    open_gate(&scene.database);
    let again = slow(&scene).arg("--atomic").arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(again.contains("table t does not exist"), "{again}");
    let jobs = scene
        .database
        .value("SELECT string_agg(DISTINCT job_id, ' ') FROM howdah.undo WHERE undone_at IS NULL");
    let third = files.put("c.csv", &csv(116, 1, 10));
    let create = howdah("load").args(["--table", "t", "--create", "--to", &scene.database.conninfo()]);
    let made = create.arg(&third).run(PATIENCE).expect_code(0).stderr;
    assert_eq!(jobs.split(' ').count(), 2);
    for job_id in jobs.split(' ') {
        let waits =
            format!("rows of job {job_id} wait for it in a staging table, which `howdah restore {job_id} ");
        assert!(again.contains(&waits) && made.contains(&waits), "{waits}\n{again}\n{made}");
    }
    let status = scene.verb("status").run(PATIENCE).expect_code(0).stdout;
    assert!(status.contains("more wait in staging tables  (to restore)"), "{status}");
    scene.verb("restore").run(PATIENCE).expect_code(0);
    let open = "SELECT count(*) FROM howdah.undo WHERE undone_at IS NULL";
    assert_eq!(scene.database.value(open), "0");
}
