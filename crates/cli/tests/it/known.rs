//! Files that another job has loaded, or is loading: while a load waits to begin, between its runs, and by
//! other names.

use crate::gate::{let_other_jobs_pass, open_gate, remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv};
use howdah_testkit::{HowdahCommand, MAJORS, Running, Server};
use std::io::Write as _;
use std::path::PathBuf;

const JOB: &str = "SELECT job_id FROM howdah.job ORDER BY started_at LIMIT 1";
const JOBS: &str = "SELECT count(*) FROM howdah.job";
const STORED: &str = "SELECT count(*) FROM t";

fn slow(scene: &Scene) -> HowdahCommand {
    scene.load().args(["--chunk-size", "64kB", "--jobs", "1"])
}

#[test]
fn a_file_that_another_load_brings_in_while_this_one_waits_for_a_pipe_is_not_loaded_twice() {
    let plain = csv(61, 1, 300);
    for known in ["refuse", "skip"] {
        let files = Files::new();
        let (source, pipe) = (files.put("a.csv", &plain), files.path().join("pipe"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Nobody waits for the other end to be opened.
        let mut writer = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let scene = Scene::new(Server::shared(15), &[&plain]);
        let waiting = scene.load().args(["--known", known]).args([&source, &pipe]).spawn();
        let connected = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
            AND pid <> pg_backend_pid() AND state = 'idle'";
        assert!(scene.database.wait_for(connected, 1, || true));
        scene.load().arg(&source).run(PATIENCE).expect_code(0);
        writer.write_all(&csv(62, 1001, 300)).unwrap();
        drop(writer);
        let refused = waiting.wait(PATIENCE).expect_code(1).stderr;
        let told = format!("1 of 2 files is in public.t already, by job {} of 20", scene.database.value(JOB));
        assert!(refused.contains(&told), "{refused}");
        let hint =
            if known == "skip" { "hint: run the same command again" } else { "hint: `--known skip` loads" };
        assert!(refused.contains(hint), "{refused}");
        scene.assert_exact(known);
        assert_eq!(scene.database.value(JOBS), "1", "nothing is noted");
    }
}

#[test]
fn a_file_that_another_load_is_at_work_on_is_not_loaded_beside_it() {
    let plain = [csv(63, 1, 9000), csv(64, 20_001, 300)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    let last = files.put("z.csv", &plain[1]);
    for major in MAJORS {
        let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1]]);
        shut_gate_behind(&scene.database, 1);
        let mut running = slow(&scene).arg(files.path()).spawn();
        assert!(scene.wait_for_chunks(1, || running.is_running()));
        let_other_jobs_pass(&scene.database);
        let job = scene.database.value(JOB);
        let beside = |options: &[&str]| scene.load().args(options).arg(&last).run(PATIENCE);
        for (known, hint) in [
            (&[][..], "hint: `--known skip` loads what is not in when that job has ended"),
            (&["--known", "skip"], "hint: run the same command again when that job has ended"),
        ] {
            let refused = beside(known).expect_code(1).stderr;
            let told = format!("error: the file is being loaded into public.t, by job {job} of 20");
            assert!(refused.contains(&told) && refused.contains(hint), "{refused}");
        }
        open_gate(&scene.database);
        running.wait(PATIENCE).expect_code(0);
        beside(&["--known", "skip"]).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
        scene.assert_done(&format!("PostgreSQL {major}"));
    }
}

#[test]
fn of_loads_that_begin_at_once_one_brings_in_what_they_share() {
    let plain = [csv(65, 1, 100), csv(66, 1001, 100), csv(67, 2001, 100)];
    let files = Files::new();
    let [a, b, c] = ["a.csv", "b.csv", "c.csv"].map(|name| files.path().join(name));
    for (path, bytes) in [&a, &b, &c].into_iter().zip(&plain) {
        std::fs::write(path, bytes).unwrap();
    }
    for major in MAJORS {
        let scene = Scene::new(Server::shared(major), &[]);
        for round in 0..4 {
            scene.database.sql("TRUNCATE t; DROP SCHEMA IF EXISTS howdah CASCADE");
            let loads = [[&a, &b], [&b, &c], [&c, &a]].map(|paths| scene.load().args(paths).spawn());
            let ended = loads.map(|load| load.wait(PATIENCE));
            let what: Vec<_> = ended.iter().map(|ended| ended.stderr.as_str()).collect();
            let what = format!("PostgreSQL {major}, round {round}\n{}", what.join("\n"));
            assert_eq!(scene.database.value("SELECT count(*) - count(DISTINCT id) FROM t"), "0", "{what}");
            assert!(ended.iter().any(|ended| ended.code == Some(0)), "{what}");
        }
    }
}

/// A load of three files that was killed in the first; another one has loaded the second since.
fn overtaken(major: u32, options: &[&str]) -> (Scene, Files, HowdahCommand) {
    let plain = [csv(68, 1, 9000), csv(69, 20_001, 300), csv(70, 40_001, 200)];
    let files = Files::new();
    let paths: Vec<PathBuf> =
        ["a.csv", "b.csv", "c.csv"].iter().zip(&plain).map(|(name, bytes)| files.put(name, bytes)).collect();
    let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1], &plain[2]]);
    shut_gate_behind(&scene.database, 2);
    let load = slow(&scene).arg(files.path()).args(options);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(2, || running.is_running()));
    running.kill();
    remove_gate(&scene.database);
    scene.load().arg(&paths[1]).run(PATIENCE).expect_code(0);
    (scene, files, load)
}

#[test]
fn a_job_that_goes_on_does_not_load_again_what_others_have_loaded_since() {
    for major in MAJORS {
        let (scene, _files, load) = overtaken(major, &[]);
        let what = format!("PostgreSQL {major}");
        let (job, stored) = (scene.database.value(JOB), scene.database.value(STORED));
        let resume = scene.verb("resume").arg(&job);
        for (command, hint) in [
            (load.clone(), "hint: `--known skip` goes on without them"),
            (resume, "hint: the `howdah load` command of job"),
        ] {
            let refused = command.run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains("error: 1 of 3 files is in public.t already, by job "), "{refused}");
            assert!(refused.contains(hint), "{refused}");
            assert_eq!(scene.database.value(STORED), stored, "{what}");
        }
        let verify = if major == 15 { "count" } else { "checksum" };
        let skip = load.clone().args(["--known", "skip", "--verify", verify]);
        let done = skip.run(PATIENCE).expect_code(0).stderr;
        assert!(done.contains("left out: 1 of 3 files is in public.t already"), "{done}");
        scene.assert_exact(&what);
        let of_job = format!("SELECT status || ' ' || runs FROM howdah.job WHERE job_id = '{job}'");
        assert_eq!(scene.database.value(&of_job), "done 2", "{what}");
        let again = load.run(PATIENCE).expect_code(1).stderr;
        assert!(again.contains("this job finished at"), "{again}");
    }
}

#[test]
fn a_job_goes_on_with_files_that_its_beginner_wanted_once_more() {
    for options in [&["--known", "load"][..], &["--force"], &["--force", "--atomic"]] {
        let (scene, _files, _) = overtaken(18, options);
        let job = scene.database.value(JOB);
        let resume = scene.verb("resume").arg(job);
        let refused = resume.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("1 of 3 files is in public.t already"), "it came since: {refused}");
        // Before the job began it was known to who began it.
        scene
            .database
            .sql("UPDATE howdah.job SET finished_at = started_at - interval '1 hour' WHERE status = 'done'");
        resume.run(PATIENCE).expect_code(0);
        assert_eq!(scene.database.value(STORED), "9800", "{options:?}");
    }
}

#[test]
fn a_job_that_has_stored_nothing_yet_does_not_load_what_others_have_loaded_since() {
    let plain = csv(71, 1, 300);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.database.sql("ALTER TABLE t ADD CHECK (id < 0)");
    scene.load().args(["--null", "-"]).arg(&source).run(PATIENCE).expect_code(1);
    scene.database.sql("ALTER TABLE t DROP CONSTRAINT t_id_check");
    scene.load().arg(&source).run(PATIENCE).expect_code(0);
    let again = scene.load().args(["--null", "-"]).arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(again.contains("the file is in public.t already"), "{again}");
    scene.assert_exact("with other options");
}

#[test]
fn rows_that_wait_in_a_staging_table_do_not_come_beside_those_that_others_have_loaded_since() {
    let (scene, files, load) = overtaken(18, &["--atomic"]);
    let job = scene.database.value(JOB);
    scene.load().arg(files.path().join("a.csv")).run(PATIENCE).expect_code(0);
    for known in ["refuse", "skip"] {
        let refused = load.clone().args(["--known", known]).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(&format!("wait in a staging table of job {job}")), "{refused}");
    }
    assert_eq!(scene.database.value(STORED), "9300");
    scene.verb("restore").arg(&job).run(PATIENCE).expect_code(0);
    load.args(["--known", "skip"]).run(PATIENCE).expect_code(0);
    scene.assert_exact("without what waited");
}

#[test]
fn a_file_is_known_by_whatever_path_it_was_loaded() {
    let plain = csv(72, 1, 300);
    let files = Files::new();
    let [real, link] = ["real", "link"].map(|name| files.path().join(name));
    std::fs::create_dir(&real).unwrap();
    std::fs::write(real.join("a.csv"), &plain).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    for major in MAJORS {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.load().arg(link.join("a.csv")).run(PATIENCE).expect_code(0);
        let again = || scene.load().args(["--null", "-"]).arg(&real).run(PATIENCE).expect_code(1).stderr;
        assert!(again().contains("the file is in public.t already"), "{}", again());
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

#[test]
fn files_of_a_table_that_was_made_anew_are_left_out_with_a_warning() {
    let plain = [csv(75, 1, 300), csv(76, 1001, 300)];
    let files = Files::new();
    let [a, b] = [("a.csv", &plain[0]), ("b.csv", &plain[1])].map(|(name, bytes)| files.put(name, bytes));
    let scene = Scene::new(Server::shared(15), &[&plain[0], &plain[1]]);
    scene.load().arg(&a).run(PATIENCE).expect_code(0);
    let skip = || scene.load().args(["--known", "skip", "--null", "-"]);
    let told = skip().arg(&a).run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("warning"), "{told}");
    scene.database.sql(
        "ALTER TABLE t RENAME TO old; CREATE TABLE t (LIKE old); INSERT INTO t SELECT * FROM old LIMIT 1; DROP TABLE old",
    );
    let since =
        "; the table was dropped or made anew since, and may lack their rows: `--known load` loads them";
    let told = skip().arg("--json").arg(&a).run(PATIENCE).expect_code(0);
    assert!(told.stderr.contains("warning: nothing new: the file is in public.t already"), "{}", told.stderr);
    assert!(told.stdout.contains(since), "{}", told.stdout);
    let told = skip().arg("--json").args([&a, &b]).run(PATIENCE).expect_code(0);
    assert!(
        told.stderr.contains("warning: left out: 1 of 2 files is in public.t already"),
        "{}",
        told.stderr
    );
    assert!(told.stdout.contains(since), "{}", told.stdout);
    let told = scene.load().args(["--if-done", "ok"]).arg(&a).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("has stored its rows was dropped or made anew since, and may lack them"), "{told}");
    assert_eq!(scene.database.value(STORED), "301");
    // A load that replaces its table makes it anew itself.
    scene.load().args(["--mode", "replace"]).arg(&a).run(PATIENCE).expect_code(0);
    let told = skip().arg(&a).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("nothing new") && !told.contains("warning"), "{told}");
}

/// Rows of the first file are in the table; how the second one is loaded takes them out.
fn taken_out(major: u32, table: &str, (setup, first, second): (&str, &str, &str), options: &[&str]) {
    let plain = [csv(73, 1, 300), csv(74, 1001, 300)];
    let files = Files::new();
    let [a, b] = [("a.csv", &plain[0]), ("b.csv", &plain[1])].map(|(name, bytes)| files.put(name, bytes));
    let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1]]);
    scene.database.sql(setup);
    let to = |table: &str| {
        let format = ["--format", "csv", "--header", "--table", table];
        scene.verb("load").args(format)
    };
    to(first).arg(&a).run(PATIENCE).expect_code(0);
    to(second).args(options).arg(&b).run(PATIENCE).expect_code(0);
    // Another job than the first one, which is done.
    to(first).args(["--known", "skip", "--null", "-"]).arg(&a).run(PATIENCE).expect_code(0);
    let rows = format!("SELECT count(*) || ' ' || count(DISTINCT id) FROM {table}");
    assert_eq!(scene.database.value(&rows), "600 600", "PostgreSQL {major} {options:?}");
}

#[test]
fn files_whose_rows_another_job_has_taken_out_are_not_left_out() {
    let columns = "(id bigint, part integer, amount numeric, note text)";
    let dotted = format!("CREATE TABLE \"x.y\" {columns}");
    let partitions = format!(
        "CREATE TABLE p {columns} PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000); \
         CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (9999); INSERT INTO p1 VALUES (999)"
    );
    let partition = format!(
        "CREATE TABLE q {columns} PARTITION BY RANGE (id); CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (0) TO (9999); \
         CREATE UNIQUE INDEX ON q (id)"
    );
    for major in MAJORS {
        let dotted = (dotted.as_str(), "public.\"x.y\"", "public.\"x.y\"");
        taken_out(major, "\"x.y\"", dotted, &["--mode", "truncate"]);
        taken_out(major, "p", (&partitions, "p1", "p"), &["--mode", "truncate"]);
        let merge = ["--mode", "merge", "--key", "id", "--delete-missing"];
        taken_out(major, "t", ("CREATE UNIQUE INDEX ON t (id)", "t", "t"), &merge);
        taken_out(major, "q", (&partition, "q", "q1"), &merge);
    }
}

/// What has taken them out has called the table otherwise.
#[test]
fn files_whose_rows_were_taken_out_are_not_left_out_when_the_table_has_another_name() {
    let files = Files::new();
    let [a, b] = [("a.csv", 1), ("b.csv", 1001)].map(|(name, first)| files.put(name, &csv(76, first, 300)));
    for (major, options) in
        [(13, &["--mode=truncate"][..]), (18, &["--mode=merge", "--key=id", "--delete-missing"])]
    {
        let scene = Scene::new(Server::shared(major), &[]);
        scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id); CREATE SCHEMA other");
        scene.load().arg(&a).run(PATIENCE).expect_code(0);
        scene.load().args(options).arg(&b).run(PATIENCE).expect_code(0);
        scene.database.sql("ALTER TABLE t SET SCHEMA other");
        let into =
            scene.verb("load").args(["--format", "csv", "--header", "--table", "other.t", "--known", "skip"]);
        into.arg(&a).run(PATIENCE).expect_code(0);
        assert_eq!(scene.database.value("SELECT count(*) FROM other.t"), "600", "PostgreSQL {major}");
    }
}

#[test]
fn what_only_a_warning_hangs_on_does_not_end_a_forced_load() {
    let (scene, files, _) = overtaken(15, &[]);
    scene.database.sql("UPDATE howdah.job SET plan = plan - 'tables' WHERE status <> 'done'");
    let forced = scene.load().args(["--null", "-", "--force"]).arg(files.path().join("a.csv"));
    forced.run(PATIENCE).expect_code(0);
}

#[test]
fn a_finished_job_is_loaded_once_more_where_that_is_asked_for() {
    let plain = csv(75, 1, 300);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain, &plain]);
    let load = scene.load().arg(&source);
    load.run(PATIENCE).expect_code(0);
    let once_more = load.clone().args(["--known", "load"]);
    let answered = once_more.clone().args(["--if-done", "ok"]).run(PATIENCE).expect_code(0).stderr;
    assert!(answered.contains("nothing is left to do"), "{answered}");
    let loaded = once_more.run(PATIENCE).expect_code(0).stderr;
    assert!(loaded.contains("warning: rows come once more: the file is in public.t already"), "{loaded}");
    scene.assert_exact("once more");
    let second = scene.database.value("SELECT job_id FROM howdah.job ORDER BY started_at DESC LIMIT 1");
    let resumed = scene.verb("resume").arg(second).run(PATIENCE).expect_code(1).stderr;
    assert!(resumed.contains("this job finished at"), "{resumed}");
}

#[test]
fn a_run_with_nothing_to_do_leaves_the_file_of_rejected_records_alone() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,part,amount,note\n1,2,3,x\nno,2,3,y\n");
    let rejects = files.path().join("rejects");
    let scene = Scene::new(Server::shared(18), &[]);
    let load = scene.load().args(["--on-error", "skip"]).arg("--reject-file").arg(&rejects).arg(&source);
    load.run(PATIENCE).expect_code(3);
    std::fs::write(&rejects, "mended by hand").unwrap();
    load.args(["--known", "skip"]).run(PATIENCE).expect_code(0);
    assert_eq!(std::fs::read_to_string(&rejects).unwrap(), "mended by hand");
}

#[test]
fn a_file_that_a_job_has_left_out_does_not_count_as_loaded_by_it() {
    let plain = [csv(76, 1, 9000), csv(77, 20_001, 200)];
    let files = Files::new();
    let [first, second] =
        [("a.csv", &plain[0]), ("b.csv", &plain[1])].map(|(name, bytes)| files.put(name, bytes));
    for major in MAJORS {
        let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1]]);
        scene.database.sql("ALTER TABLE t ADD CHECK (id < 20000)");
        let both = slow(&scene).args([&first, &second]);
        both.run(PATIENCE).expect_code(1);
        assert_ne!(scene.database.value(STORED), "0");
        scene.database.sql("ALTER TABLE t DROP CONSTRAINT t_id_check");
        let alone = scene.load().args(["--known", "skip"]).arg(&second);
        alone.run(PATIENCE).expect_code(0);
        let job = scene.database.value("SELECT job_id FROM howdah.job WHERE status = 'done'");
        both.args(["--known", "skip"]).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
        scene
            .database
            .sql(&format!("DELETE FROM t WHERE id > 20000; DELETE FROM howdah.job WHERE job_id = '{job}'"));
        alone.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}, once more"));
    }
}

#[test]
fn what_comes_once_more_is_what_was_in_when_the_job_began() {
    let plain = [csv(78, 1, 100), csv(79, 1001, 200), csv(80, 20_001, 9000)];
    let files = Files::new();
    let [a, b, c] = [("a.csv", &plain[0]), ("b.csv", &plain[1]), ("c.csv", &plain[2])]
        .map(|(name, bytes)| files.put(name, bytes));
    let scene = Scene::new(Server::shared(18), &[&plain[0], &plain[1], &plain[2]]);
    scene.load().arg(&a).run(PATIENCE).expect_code(0);
    scene.database.sql("UPDATE howdah.job SET finished_at = started_at - interval '1 hour'");
    scene.database.sql("ALTER TABLE t ADD CHECK (id < 0) NOT VALID");
    let both = slow(&scene).args([&a, &b]);
    for command in [both.clone().args(["--known", "load"]), both.clone()] {
        let refused = command.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("t_id_check"), "{refused}");
    }
    scene.database.sql("ALTER TABLE t DROP CONSTRAINT t_id_check");
    shut_gate_behind(&scene.database, 1);
    scene.database.sql("UPDATE gate SET job_id = 'other'");
    let mut other = slow(&scene).args(["--job-id", "other"]).args([&b, &c]).spawn();
    let stored = "SELECT count(*) FROM howdah.chunk WHERE job_id = 'other'";
    assert!(scene.database.wait_for(stored, 1, || other.is_running()), "{}", other.stderr_so_far());
    let refused = || both.run(PATIENCE).expect_code(1).stderr;
    let told = refused();
    assert!(told.contains("1 of 2 files is being loaded into public.t, by job other of 20"), "{told}");
    open_gate(&scene.database);
    other.wait(PATIENCE).expect_code(0);
    let told = refused();
    assert!(told.contains("1 of 2 files is in public.t already, by job other of 20"), "{told}");
    scene.assert_exact("none of them twice");
    let loaded = both.args(["--known", "load"]).run(PATIENCE).expect_code(0).stderr;
    assert!(loaded.contains("rows come once more"), "{loaded}");
    assert_eq!(scene.database.value(STORED), "9600");
}

/// A load of a folder was killed whose table somebody has emptied behind an earlier one of some of its files.
fn emptied_before(major: u32, options: &[&str]) -> (Scene, Files, HowdahCommand) {
    let plain = [csv(91, 1, 200), csv(92, 1001, 300), csv(93, 20_001, 9000)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    files.put("b.csv", &plain[1]);
    let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1], &plain[2]]);
    let load = slow(&scene).arg(files.path()).args(options);
    load.run(PATIENCE).expect_code(0);
    scene.database.sql("TRUNCATE t");
    files.put("c.csv", &plain[2]);
    shut_gate_behind(&scene.database, 1);
    let mut running = load.spawn();
    assert!(scene.database.wait_for(STORED, 1, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    remove_gate(&scene.database);
    assert_eq!(scene.database.value("SELECT count(*) FROM t WHERE id < 20000"), "0");
    (scene, files, load)
}

#[test]
fn a_job_goes_on_with_files_whose_rows_were_gone_when_it_began() {
    for major in MAJORS {
        let (scene, _files, load) = emptied_before(major, &[]);
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}, again"));
        let (scene, _files, load) = emptied_before(major, &[]);
        load.args(["--known", "skip"]).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}, --known skip the second time"));
    }
    for options in [&[][..], &["--known", "skip"]] {
        let (scene, _files, _) = emptied_before(18, options);
        let job = "SELECT job_id FROM howdah.job WHERE status <> 'done'";
        let resume = scene.verb("resume").arg(scene.database.value(job));
        resume.run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("resumed, {options:?}"));
    }
    let (scene, _files, load) = emptied_before(18, &["--known", "skip"]);
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("--known skip");
}

#[test]
fn what_others_have_loaded_since_a_job_began_is_told_though_the_table_was_emptied_before() {
    let (scene, files, load) = emptied_before(18, &[]);
    scene.load().arg(files.path().join("a.csv")).args(["--known", "load"]).run(PATIENCE).expect_code(0);
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("1 of 3 files is in public.t already"), "{refused}");
    load.args(["--known", "skip"]).run(PATIENCE).expect_code(0);
    scene.assert_exact("without what came since");
}

#[test]
fn a_file_that_is_left_out_is_not_said_to_have_changed() {
    let (scene, files, load) = overtaken(15, &[]);
    files.put("a.csv", &csv(81, 40_001, 210));
    let refused = load.args(["--known", "skip"]).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("a.csv: the sources are not what job "), "{refused}");
    assert!(refused.contains("this file has ") && !refused.contains(" more "), "{refused}");
    assert_ne!(scene.database.value(STORED), "0");
}

pub(crate) fn signal(running: &Running, name: &str) {
    let pid = running.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}

/// Holds something in a transaction until `freed`, and does something meanwhile.
fn while_held<T>(scene: &Scene, (held, freed): (&str, &str), then: impl FnOnce() -> T) -> T {
    let sql = format!(
        "BEGIN; {held}; DO $$ BEGIN FOR i IN 1..60000 LOOP EXIT WHEN EXISTS ({freed}); PERFORM pg_sleep(0.01); \
         END LOOP; END $$; COMMIT"
    );
    let holds = "SELECT count(*) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event = 'PgSleep' AND query LIKE 'BEGIN; %'";
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| scene.database.sql(&sql));
        assert!(scene.database.wait_for(holds, 1, || !holder.is_finished()));
        let done = then();
        holder.join().unwrap();
        done
    })
}

/// Nor who is stopped meanwhile, from PostgreSQL 14 on.
#[test]
fn who_waits_for_its_job_keeps_no_other_load_from_beginning() {
    let plain = [csv(82, 1, 100), csv(83, 1001, 200)];
    let files = Files::new();
    let [first, second] =
        [("a.csv", &plain[0]), ("b.csv", &plain[1])].map(|(name, bytes)| files.put(name, bytes));
    for (major, is_stopped) in [(13, false), (15, true), (18, false), (18, true)] {
        let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1]]);
        scene.database.sql("ALTER TABLE t ADD CHECK (id > 1000)");
        let waits = scene.load().arg(&first);
        waits.run(PATIENCE).expect_code(1);
        scene.database.sql("ALTER TABLE t DROP CONSTRAINT t_id_check");
        let until_second = ("SELECT FROM howdah.job FOR UPDATE", "SELECT FROM t WHERE id > 1000");
        let waiting = while_held(&scene, until_second, || {
            let mut waiting = waits.spawn();
            let blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'";
            assert!(scene.database.wait_for(blocked, 1, || waiting.is_running()));
            if is_stopped {
                signal(&waiting, "STOP");
            }
            scene.load().args(["--retry-for", "10min"]).arg(&second).run(PATIENCE).expect_code(0);
            waiting
        });
        signal(&waiting, "CONT");
        waiting.wait(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

#[test]
fn who_waits_for_loads_that_begin_is_told_so() {
    let plain = csv(84, 1, 100);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    scene.database.sql("CREATE TABLE freed ()");
    let turn = "SELECT pg_advisory_xact_lock(hashtextextended('howdah', x'686f77646168'::int8 + 2))";
    let load = scene.load().args(["--retry-for", "0s"]).arg(&source);
    while_held(&scene, (turn, "SELECT FROM freed"), || {
        let told = load.run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("other loads of this ledger are beginning"), "{told}");
        assert!(told.contains(", now by process "), "{told}");
        scene.database.sql("INSERT INTO freed DEFAULT VALUES");
    });
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("behind the other");
}

/// As with timers that start a load of whatever is there more often than it ends.
#[test]
fn a_load_that_leaves_out_what_is_in_ends_well_behind_one_that_ended_since_it_was_planned() {
    let plain = [csv(85, 1, 9000), csv(86, 20_001, 300)];
    let turn = "SELECT pg_advisory_xact_lock(hashtextextended('howdah', x'686f77646168'::int8 + 2))";
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'";
    for (major, comes_more) in [(13, false), (15, true), (18, false), (18, true)] {
        let files = Files::new();
        files.put("a.csv", &plain[0]);
        let loaded: Vec<&[u8]> = plain.iter().take(1 + usize::from(comes_more)).map(Vec::as_slice).collect();
        let scene = Scene::new(Server::shared(major), &loaded);
        scene.database.sql("CREATE TABLE freed ()");
        shut_gate_behind(&scene.database, 1);
        let load = slow(&scene).args(["--known", "skip"]).arg(files.path());
        let mut first = load.spawn();
        assert!(scene.wait_for_chunks(1, || first.is_running()));
        let_other_jobs_pass(&scene.database);
        if comes_more {
            files.put("b.csv", &plain[1]);
        }
        let second = while_held(&scene, (turn, "SELECT FROM freed"), || {
            let mut second = load.spawn();
            assert!(scene.database.wait_for(waits, 1, || second.is_running()), "{}", second.stderr_so_far());
            open_gate(&scene.database);
            first.wait(PATIENCE).expect_code(0);
            scene.database.sql("INSERT INTO freed DEFAULT VALUES");
            second
        });
        let told = second.wait(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("planning it anew"), "{told}");
        scene.assert_exact(&format!("PostgreSQL {major}, more: {comes_more}"));
    }
}
