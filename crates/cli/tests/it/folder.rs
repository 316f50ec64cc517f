//! A folder into which files come: between the runs of a job, and from day to day.

use crate::scene::{Files, PATIENCE, Scene, csv};
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
    scene.slow_down("AFTER", std::time::Duration::from_millis(30));
    let mut running = load(&scene, &files).args(options).spawn();
    assert!(scene.wait_for_chunks(3, || running.is_running()));
    running.kill();
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
            assert!(refused.contains(&format!("the sources are not what job {job} read")), "{refused}");
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
