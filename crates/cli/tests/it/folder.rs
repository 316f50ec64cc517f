//! A folder into which files come: between the runs of a job, and from day to day.

use crate::gate::{move_gate_behind, open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{HowdahCommand, MAJORS, Server};

const JOB: &str = "SELECT job_id FROM howdah.job ORDER BY started_at LIMIT 1";
const STORED: &str = "SELECT count(*) FROM t";

/// All files of the folder.
fn load(scene: &Scene, files: &Files) -> HowdahCommand {
    let pattern = files.path().join("*.csv");
    scene.load().args(["--chunk-size", "64kB", "--jobs", "1"]).arg(pattern)
}

/// A load of files `a` and `b` that was killed on its way; the third file comes after that.
fn killed(major: u32, options: &[&str]) -> (Scene, Files, [Vec<u8>; 3]) {
    let plain = [csv(81, 1, 9000), csv(82, 20_001, 9000), csv(83, 40_001, 500)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    files.put("b.csv", &plain[1]);
    let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1]]);
    shut_gate_behind(&scene.database, 3);
    let mut running = load(&scene, &files).args(options).spawn();
    assert!(scene.wait_for_chunks(3, || running.is_running()));
    running.kill();
    open_gate(&scene.database);
    files.put("c.csv", &plain[2]);
    (scene, files, plain)
}

#[test]
fn a_job_goes_on_with_its_own_files_when_others_have_come() {
    for (major, by_name) in MAJORS.into_iter().flat_map(|major| [(major, false), (major, true)]) {
        let name: &[&str] = if major == 15 { &["--job-id", "lake"] } else { &[] };
        let (scene, files, _) = killed(major, name);
        let what = format!("PostgreSQL {major}, resumed by name: {by_name}");
        let job = scene.database.value(JOB);
        let command = match by_name {
            true => scene.verb("resume").arg(&job),
            false => load(&scene, &files).args(name),
        };
        let told = command.run(PATIENCE).expect_code(0).stderr;
        let came = format!("1 file came since job {job} began, and is no part of it: when it is done, ");
        assert!(told.contains(&came), "{what}\n{told}");
        scene.assert_exact(&what);
        scene.assert_done(&what);
        if by_name {
            let again = scene.verb("resume").arg(&job).run(PATIENCE).expect_code(1).stderr;
            assert!(again.contains("this job finished"), "{again}");
            scene.assert_exact(&what);
        }
    }
}

#[test]
fn a_job_does_not_go_on_when_one_of_its_own_files_changed_or_is_gone() {
    for is_gone in [true, false] {
        let (scene, files, plain) = killed(18, &[]);
        let (job, stored) = (scene.database.value(JOB), scene.database.value(STORED));
        if is_gone {
            std::fs::remove_file(files.path().join("b.csv")).unwrap();
        } else {
            files.put("b.csv", &plain[0]);
        }
        let hint = format!(
            "hint: put the sources back as they were to finish that job; or --force loads all of them, as they are now, beside \
             the {stored} rows that the job has stored: remove these first"
        );
        for command in [load(&scene, &files), scene.verb("resume").arg(&job)] {
            let refused = command.run(PATIENCE).expect_code(1).stderr;
            let told = format!("/b.csv: the sources are not what job {job} read when it began at ");
            let how = if is_gone { ": this file is gone\n" } else { ": this file " };
            assert!(refused.contains(&told) && refused.contains(how), "{refused}");
            assert!(refused.contains(&hint), "{refused}");
            assert_eq!(scene.database.value(STORED), stored, "nothing is stored");
        }
        let forced = load(&scene, &files).arg("--force").run(PATIENCE).expect_code(0).stderr;
        let twice = format!("job {job}, which did not end, has stored {stored} rows of ");
        let doubles =
            forced.contains(&twice) && forced.contains(" in public.t: those of this load come beside them");
        // All that was stored is of the file that is gone, or it is not.
        assert!(doubles || is_gone, "{forced}");
    }
}

/// Files `a` and `b` are in the table; the third one has come since.
fn next_day(major: u32) -> (Scene, Files, [Vec<u8>; 3]) {
    let plain = [csv(84, 1, 300), csv(85, 2001, 300), csv(86, 4001, 300)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    files.put("b.csv", &plain[1]);
    let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1]]);
    load(&scene, &files).run(PATIENCE).expect_code(0);
    files.put("c.csv", &plain[2]);
    (scene, files, plain)
}

#[test]
fn a_folder_that_grows_is_not_loaded_twice() {
    for major in MAJORS {
        let (scene, files, plain) = next_day(major);
        let what = format!("PostgreSQL {major}");
        let job = scene.database.value(JOB);
        let told = format!("2 of 3 files are in public.t already, by job {job} of 20");
        let refused = load(&scene, &files).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(&format!("error: {told}")), "{refused}");
        let hint = "hint: `--known skip` loads only the others, `--known load` loads all of them";
        assert!(refused.contains(hint), "{refused}");
        scene.assert_exact(&what);
        assert_eq!(scene.database.value("SELECT count(*) FROM howdah.job"), "1", "nothing is noted");

        let plan = scene.verb("plan").args(["--format", "csv", "--header", "--table", "t"]);
        let planned = plan.arg(files.path().join("*.csv")).run(PATIENCE).expect_code(0).stdout;
        assert!(planned.contains(&told) && planned.contains("load would refuse them"), "{planned}");
        assert!(planned.contains(&format!("b.csv is in public.t, by job {job}")), "{planned}");

        scene.want(&plain[2]);
        let skip = load(&scene, &files).args(["--known", "skip"]);
        let skipped = skip.run(PATIENCE).expect_code(0).stderr;
        assert!(skipped.contains(&format!("left out: {told}")), "{skipped}");
        scene.assert_exact(&what);
        let nothing = skip.clone().arg("--json").run(PATIENCE).expect_code(0);
        assert!(
            nothing.stderr.contains("nothing new: all 3 files are in public.t already, the latest by job")
        );
        let summary: serde_json::Value = serde_json::from_str(&nothing.stdout).unwrap();
        assert_eq!((&summary["status"], &summary["rows_read"]), (&"done".into(), &0.into()), "{summary}");
        scene.assert_exact(&what);

        let twice = load(&scene, &files).args(["--known", "load"]).run(PATIENCE).expect_code(0).stderr;
        assert!(
            twice.contains("warning: rows come once more: all 3 files are in public.t already"),
            "{twice}"
        );
        assert_eq!(scene.database.value(STORED), "1800");
        assert_eq!(scene.database.value("SELECT count(DISTINCT id) FROM t"), "900");
    }
}

#[test]
fn a_load_of_what_is_new_goes_on_with_that_when_it_was_killed() {
    let (scene, files, _) = next_day(18);
    let (c, d) = (csv(87, 4001, 9000), csv(88, 20_001, 300));
    files.put("c.csv", &c);
    scene.want(&c);
    let before = scene.chunks();
    shut_gate_behind(&scene.database, 2);
    let skip = load(&scene, &files).args(["--known", "skip"]);
    let mut running = skip.spawn();
    assert!(scene.wait_for_chunks(before + 2, || running.is_running()));
    running.kill();
    open_gate(&scene.database);
    files.put("d.csv", &d);
    // What is known came before, not since.
    let told = load(&scene, &files).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("1 file came since job"), "{told}");
    assert!(told.contains("the same command with --known skip loads what came"), "{told}");
    scene.assert_exact("c");
    scene.want(&d);
    skip.run(PATIENCE).expect_code(0);
    scene.assert_exact("d");
    assert_eq!(scene.database.value("SELECT count(*) FROM howdah.job WHERE status = 'done'"), "3");
}

/// Rows that went with the table, or were taken out of it, are not there twice.
#[test]
fn files_of_a_table_that_was_emptied_since_are_loaded() {
    for major in MAJORS {
        let (scene, files, plain) = next_day(major);
        scene.want(&plain[2]);
        scene.database.sql("TRUNCATE t");
        load(&scene, &files).run(PATIENCE).expect_code(0);
        scene.assert_exact(&format!("PostgreSQL {major}: by somebody"));
    }
    let (scene, files, plain) = next_day(15);
    let truncate = scene.load().args(["--mode", "truncate"]).arg(files.path().join("c.csv"));
    truncate.run(PATIENCE).expect_code(0);
    std::fs::remove_file(files.path().join("c.csv")).unwrap();
    files.put("d.csv", &plain[2]);
    scene.want(&plain[2]);
    scene.want(&plain[2]);
    load(&scene, &files).run(PATIENCE).expect_code(0);
    scene.assert_exact("by another job");
}

#[test]
fn what_nobody_knows_and_what_is_not_doubled_is_not_asked_for() {
    let (scene, files, _) = next_day(18);
    let merge = ["--mode", "merge", "--key", "id"];
    for (options, wanted) in [
        (&["--known", "skip", "--ledger", "none"][..], "--known refuse and skip need a ledger"),
        (&["--job-id", "lake", "--ledger", "none"], "--job-id needs a ledger"),
        (&["--job-id", ""], "--job-id: expected a name for the job, got nothing"),
        (&["--known", "skip", "--force"], "--force loads all files once more"),
        (&[&["--known", "skip"], &merge[..]].concat(), "--known is for --mode append"),
    ] {
        let refused = load(&scene, &files).args(options).run(PATIENCE).expect_code(2).stderr;
        assert!(refused.contains(wanted), "{refused}");
    }
    scene.database.sql("CREATE UNIQUE INDEX ON t (id)");
    load(&scene, &files).args(merge).run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value(STORED), "900");
}

/// Of the first of three files all is in, of the second, which has a bad record, nothing.
#[test]
fn a_file_that_was_mended_is_loaded_where_nothing_of_it_is_in() {
    for (major, by_name) in MAJORS.into_iter().zip([false, true, false]) {
        let plain = [csv(87, 1, 6000), csv(88, 20_001, 300), csv(89, 40_001, 200)];
        let files = Files::new();
        files.put("a.csv", &plain[0]);
        files.put("b.csv", &[&plain[1][..], b"x,1,1.0,bad\n"].concat());
        files.put("c.csv", &plain[2]);
        let scene = Scene::new(Server::shared(major), &[&plain[0], &plain[1], &plain[2]]);
        load(&scene, &files).run(PATIENCE).expect_code(1);
        let (job, stored) = (scene.database.value(JOB), scene.database.value(STORED));
        assert_ne!(stored, "0");
        files.put("b.csv", &plain[1]);
        let what = format!("PostgreSQL {major}, resumed by name: {by_name}");
        let command = if by_name { scene.verb("resume").arg(&job) } else { load(&scene, &files) };
        // Killed once more when the ledger has its new files, and after that the same job by these.
        shut_gate_behind(&scene.database, scene.chunks());
        let mut running = command.spawn();
        assert!(scene.database.wait_for("SELECT runs FROM howdah.job", 2, || running.is_running()), "{what}");
        running.kill();
        open_gate(&scene.database);
        let told = command.run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("has changed since"), "{told}");
        scene.assert_exact(&what);
        scene.assert_done(&what);
        assert_eq!(scene.database.value("SELECT count(*) FROM howdah.job"), "1", "{what}");
        let again = load(&scene, &files).run(PATIENCE).expect_code(1).stderr;
        assert!(again.contains("this job finished"), "{again}");
    }
}

#[test]
fn a_file_that_was_mended_is_told_and_one_that_is_written_otherwise_is_refused() {
    let plain = [csv(87, 1, 6000), csv(88, 20_001, 300)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    files.put("b.csv", &[&plain[1][..], b"x,1,1.0,bad\n"].concat());
    let scene = Scene::new(Server::shared(18), &[&plain[0], &plain[1]]);
    load(&scene, &files).run(PATIENCE).expect_code(1);
    let stored = scene.database.value(STORED);
    let turned = String::from_utf8(plain[1].clone()).unwrap().replacen("id,part", "part,id", 1);
    files.put("b.csv", turned.as_bytes());
    let refused = load(&scene, &files).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("/b.csv: this file has changed since job "), "{refused}");
    assert_eq!(scene.database.value(STORED), stored, "{refused}");
    files.put("b.csv", &plain[1]);
    let told = load(&scene, &files).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("; nothing of it is in, and it is read as it is now"), "{told}");
    scene.assert_exact("mended");
    scene.assert_done("mended");
}

#[test]
fn many_mended_files_are_told_at_once() {
    let plain = [csv(87, 1, 6000), csv(88, 20_001, 300), csv(89, 40_001, 200)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    for name in ["b.csv", "c.csv"] {
        files.put(name, b"id,part,amount,note\nx,1,1.0,bad\n");
    }
    let scene = Scene::new(Server::shared(18), &[&plain[0], &plain[1], &plain[2]]);
    load(&scene, &files).run(PATIENCE).expect_code(1);
    assert_ne!(scene.database.value(STORED), "0");
    files.put("b.csv", &plain[1]);
    files.put("c.csv", &plain[2]);
    let told = load(&scene, &files).run(PATIENCE).expect_code(0).stderr;
    let times = told.matches("have changed since job ").count();
    assert!(times == 1 && told.contains(".csv and 1 more have changed since job "), "{told}");
    scene.assert_exact("mended");
    scene.assert_done("mended");
}

/// Loaded anew, what is in the other tables would be there twice.
#[test]
fn where_a_table_was_emptied_a_mended_file_is_told_as_changed_and_begins_anew_where_all_were() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int, b text); CREATE TABLE t2 (LIKE t); CREATE TABLE t3 (LIKE t)");
    let rows = |count: u32| (0..count).map(|no| format!("{no},some text\n")).collect::<String>();
    files.put("t.csv", rows(9000).as_bytes());
    files.put("t2.csv", b"bad,some text\n");
    files.put("t3.csv", rows(8000).as_bytes());
    let run = |code| {
        let load = howdah("load").args(["--to", &database.conninfo(), "--format", "csv", "--jobs", "1"]);
        let load = load.args(["--chunk-size", "64kB"]).arg(files.path().join("{table}.csv"));
        load.run(PATIENCE).expect_code(code).stderr
    };
    let stored = "SELECT (SELECT count(*) FROM t) || ' ' || (SELECT count(*) FROM t2) || ' ' || (SELECT count(*) FROM t3)";
    run(1);
    assert_eq!(database.value(stored), "9000 0 8000");
    files.put("t2.csv", rows(1).as_bytes());
    database.sql("TRUNCATE t");
    let refused = run(1);
    assert!(refused.contains("/t2.csv: the sources are not what job "), "{refused}");
    assert!(
        refused.contains("beside the 17000 rows that the job has stored: remove these first"),
        "{refused}"
    );
    assert_eq!(database.value(stored), "0 0 8000");
    database.sql("TRUNCATE t3");
    run(0);
    assert_eq!(database.value(stored), "9000 1 8000");
}

/// As without a name: what has changed is said, and where nothing of the job is left it begins anew.
#[test]
fn a_named_job_tells_which_file_has_changed_and_begins_anew_where_its_rows_are_gone() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE n (a int, b text)");
    let rows = |count: u32| (0..count).map(|no| format!("{no},some text\n")).collect::<String>();
    files.put("a.csv", rows(6000).as_bytes());
    files.put("c.csv", (rows(9000) + "bad,some text\n").as_bytes());
    let run = |code| {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "n", "--job-id", "nightly"]);
        let load = load.args(["--format", "csv", "--jobs", "1", "--chunk-size", "64kB"]);
        load.arg(files.path().join("*.csv")).run(PATIENCE).expect_code(code).stderr
    };
    run(1);
    assert_ne!(database.value("SELECT count(*) FROM n"), "0");
    files.put("c.csv", rows(9000).as_bytes());
    let refused = run(1);
    assert!(
        refused.contains("/c.csv: the sources are not what job nightly read when it began at "),
        "{refused}"
    );
    assert!(refused.contains("or --force loads all of them, as they are now, beside the "), "{refused}");
    database.sql("TRUNCATE n");
    run(0);
    assert_eq!(database.value("SELECT count(*) FROM n"), "15000");
    let again = run(1);
    assert!(again.contains("this job finished"), "{again}");
}

/// A new file beside a mended one stands in the way of that; the hint says so, and holds.
#[test]
fn a_mended_file_comes_in_where_a_new_one_beside_it_is_moved_aside_as_the_hint_says() {
    let files = Files::new();
    let database = Server::shared(18).database();
    // Which file's chunks come first hangs on the moment: the bad record is refused when all others are in.
    database.sql(
        "CREATE TABLE n (a int, b text); CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN FOR i IN 1..60000 LOOP EXIT WHEN (SELECT count(*) FROM n) >= 6000; PERFORM pg_sleep(0.01); END LOOP; \
                RAISE EXCEPTION 'bad'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON n FOR EACH ROW WHEN (NEW.a < 0) EXECUTE FUNCTION refuse()",
    );
    let rows = |count: u32| (0..count).map(|no| format!("{no},some text\n")).collect::<String>();
    files.put("a.csv", rows(6000).as_bytes());
    files.put("b.csv", b"-1,some text\n");
    let run = |more: &[&str], code| {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "n", "--format", "csv"]);
        let load =
            load.args(["--jobs", "2", "--chunk-size", "64kB"]).args(more).arg(files.path().join("*.csv"));
        load.run(PATIENCE).expect_code(code).stderr
    };
    run(&[], 1);
    assert_eq!(database.value("SELECT count(*) FROM n"), "6000");
    files.put("b.csv", rows(500).as_bytes());
    files.put("c.csv", rows(70).as_bytes());
    let refused = run(&[], 1);
    assert!(refused.contains("/b.csv: the sources are not what job "), "{refused}");
    assert!(
        refused.contains("/c.csv came since: move it aside for one run, which goes on with "),
        "{refused}"
    );
    let (here, aside) = (files.path().join("c.csv"), files.path().join("c.aside"));
    std::fs::rename(&here, &aside).unwrap();
    run(&[], 0);
    assert_eq!(database.value("SELECT count(*) FROM n"), "6500");
    std::fs::rename(&aside, &here).unwrap();
    run(&["--known", "skip"], 0);
    assert_eq!(database.value("SELECT count(*) FROM n"), "6570");

    // Of a file that is in already, it would not help.
    database.sql("TRUNCATE n; DROP SCHEMA howdah CASCADE");
    files.put("b.csv", b"-1,some text\n");
    run(&[], 1);
    files.put("a.csv", rows(5000).as_bytes());
    files.put("d.csv", rows(10).as_bytes());
    let refused = run(&[], 1);
    assert!(
        refused.contains("the sources are not what job ") && !refused.contains("came since"),
        "{refused}"
    );
}

#[test]
fn a_file_that_was_mended_while_a_run_is_at_work_or_loaded_by_itself_since_is_not_loaded_twice() {
    let plain = [csv(87, 1, 6000), csv(88, 20_001, 300)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    files.put("b.csv", &[&plain[1][..], b"x,1,1.0,bad\n"].concat());
    let scene = Scene::new(Server::shared(18), &[&plain[0], &plain[1]]);
    shut_gate_behind(&scene.database, 1);
    let mut running = load(&scene, &files).spawn();
    assert!(scene.wait_for_chunks(1, || running.is_running()));
    files.put("b.csv", &plain[1]);
    let refused = load(&scene, &files).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("another run of it is at work with them as they were"), "{refused}");
    running.kill();
    open_gate(&scene.database);
    let alone = scene.load().arg(files.path().join("b.csv"));
    alone.run(PATIENCE).expect_code(0);
    let refused = load(&scene, &files).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("1 of 2 files is in public.t already"), "{refused}");
    let told = load(&scene, &files).args(["--known", "skip"]).run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("it is read as it is now"), "{told}");
    scene.assert_exact("loaded by itself");
}

/// It was another version when the job began, which nobody knew; killed or not, the job has known of no rows
/// of this one.
#[test]
fn a_file_that_is_again_what_another_job_has_loaded_is_not_loaded_twice() {
    let plain = [csv(87, 1, 9000), csv(88, 20_001, 6000)];
    let files = Files::new();
    let [loaded, aside] = ["b.csv", "b.aside"].map(|name| files.path().join(name));
    files.put("b.csv", &plain[1]);
    let scene = Scene::new(Server::shared(18), &[&plain[0], &plain[1]]);
    scene.load().arg(&loaded).run(PATIENCE).expect_code(0);
    std::fs::rename(&loaded, &aside).unwrap();
    files.put("b.csv", &csv(89, 40_001, 6000));
    files.put("a.csv", &plain[0]);
    let before = scene.chunks();
    shut_gate_behind(&scene.database, 2);
    let mut running = load(&scene, &files).spawn();
    assert!(scene.wait_for_chunks(before + 2, || running.is_running()));
    running.kill();
    std::fs::rename(&aside, &loaded).unwrap();
    // Killed once more when the ledger has the file as it is now.
    let mut running = load(&scene, &files).args(["--known", "skip"]).spawn();
    let runs = "SELECT max(runs) FROM howdah.job";
    assert!(scene.database.wait_for(runs, 2, || running.is_running()));
    running.kill();
    open_gate(&scene.database);
    let refused = load(&scene, &files).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("1 of 2 files is in public.t already"), "{refused}");
    load(&scene, &files).args(["--known", "skip"]).run(PATIENCE).expect_code(0);
    scene.assert_exact("loaded by another job before");
}

/// A run may be killed while the mended file comes in; what is in of that binds the next one.
#[test]
fn a_file_that_was_mended_and_is_in_in_part_is_not_changed_again() {
    // The longer one comes first.
    let plain = [csv(87, 1, 9000), csv(88, 20_001, 6000)];
    let files = Files::new();
    files.put("a.csv", &plain[0]);
    let path = files.put("b.csv", &csv(89, 40_001, 6000));
    let scene = Scene::new(Server::shared(15), &[&plain[0], &plain[1]]);
    shut_gate_behind(&scene.database, 1);
    let kill_at = |no: u32| {
        let mut running = load(&scene, &files).spawn();
        let stored = format!("SELECT count(*) FROM howdah.chunk WHERE file_no = {no}");
        let mut chunks = scene.chunks() + 1;
        while scene.database.try_rows(&stored).map_or("0".to_owned(), |rows| rows[0][0].clone().unwrap())
            == "0"
        {
            move_gate_behind(&scene.database, chunks);
            assert!(scene.wait_for_chunks(chunks, || running.is_running()), "{}", running.stderr_so_far());
            chunks += 1;
        }
        running.kill();
    };
    kill_at(0);
    files.put("b.csv", &plain[1]);
    let mended_at = std::time::SystemTime::now();
    let set_time = || std::fs::File::options().append(true).open(&path).unwrap().set_modified(mended_at);
    set_time().unwrap();
    kill_at(1);
    let job = scene.database.value(JOB);
    files.put("b.csv", &csv(89, 40_001, 6000));
    for command in [load(&scene, &files), scene.verb("resume").arg(&job)] {
        let refused = command.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("/b.csv: the sources are not what job "), "{refused}");
    }
    files.put("b.csv", &plain[1]);
    set_time().unwrap();
    open_gate(&scene.database);
    load(&scene, &files).run(PATIENCE).expect_code(0);
    scene.assert_exact("mended once");
    scene.assert_done("mended once");
}
