//! Whose a file of rejected records is: one of another command, or one that is mended by now, is not replaced
//! unasked.

use super::{load, told};
use crate::gate::{open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, Server};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const HEAD: &str = "\"id\",\"n\"\n";

struct Stopped {
    files: Files,
    database: Database,
    bad: PathBuf,
    job: String,
}

impl Stopped {
    /// A load that has come upon a bad record more than is borne.
    fn new() -> Stopped {
        let (files, database) = (Files::new(), Server::shared(15).database());
        database.sql("CREATE TABLE t (id int, n int)");
        let mut text = "id,n\nx,7\n".to_owned();
        text += &"1,5\n".repeat(10_000);
        text += "y,7\nz,8\n";
        let (source, bad) = (files.put("a.csv", text.as_bytes()), files.path().join("bad.csv"));
        let load = load(&database).args(["--table", "t", "--max-errors", "2"]);
        let failed = load.arg("--reject-file").arg(&bad).arg(&source).run(PATIENCE).expect_code(1);
        let job = told(&failed)["job"].as_str().unwrap().to_owned();
        // Of which chunk is up to the sessions.
        let written = std::fs::read_to_string(&bad).unwrap();
        assert!(written.starts_with(HEAD) && written.lines().count() > 1, "{written}{}", failed.stderr);
        Stopped { files, database, bad, job }
    }

    fn resume(&self) -> (String, String) {
        let resume = howdah("resume").args(["--to", &self.database.conninfo(), "--json", &self.job]);
        let done = resume.args(["--max-errors", "3"]).run(PATIENCE).expect_code(3);
        assert_eq!(told(&done)["rows_rejected"], 3);
        (done.stderr.clone(), std::fs::read_to_string(&self.bad).unwrap())
    }

    #[track_caller]
    fn assert_left(&self, content: &str) {
        let (said, left) = self.resume();
        assert_eq!(left, content, "{said}");
        let told = "bad.csv is left as it is: another command has written it, or it is mended by now";
        let command = format!("written elsewhere by `howdah status {} --to ", self.job);
        assert!(said.contains(told) && said.contains(&command), "{said}");
    }
}

#[test]
fn what_an_earlier_run_of_a_job_has_written_is_replaced_when_it_is_resumed() {
    let stopped = Stopped::new();
    let (said, written) = stopped.resume();
    assert_eq!(written, format!("{HEAD}x,7\ny,7\nz,8\n"), "{said}");
    assert!(!said.contains("is left as it is"), "{said}");
}

#[test]
fn a_newer_file_of_a_check_is_left_when_an_older_job_is_resumed() {
    let stopped = Stopped::new();
    let source = stopped.files.put("b.csv", b"id,n\n5,ten\n");
    let check = howdah("check").args(["--to", &stopped.database.conninfo(), "--table", "t"]);
    check.arg("--reject-file").arg(&stopped.bad).arg(&source).run(PATIENCE).expect_code(3);
    stopped.assert_left(&format!("{HEAD}5,ten\n"));
}

#[test]
fn a_file_that_is_mended_by_now_is_left_when_its_job_is_resumed() {
    let stopped = Stopped::new();
    let mended = format!("{HEAD}0,7\n");
    std::fs::write(&stopped.bad, &mended).unwrap();
    stopped.assert_left(&mended);
}

/// Nothing is rejected by then, so that nothing would be written in its place.
#[test]
fn a_newer_file_is_not_removed_when_an_older_job_is_resumed() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int CHECK (n < 5))");
    let (source, bad) = (files.put("a.csv", b"id,n\n1,5\n2,7\n"), files.path().join("bad.csv"));
    let load = load(&database).args(["--table", "t", "--max-errors", "1", "--reject-file"]).arg(&bad);
    let job = told(&load.arg(&source).run(PATIENCE).expect_code(1))["job"].as_str().unwrap().to_owned();
    database.sql("ALTER TABLE t DROP CONSTRAINT t_n_check");
    std::fs::write(&bad, "id,n\nx,y\n").unwrap();
    let resume = howdah("resume").args(["--to", &database.conninfo(), &job]);
    let said = resume.run(PATIENCE).expect_code(0).stderr;
    assert!(said.contains("or it is mended by now; nothing is rejected here"), "{said}");
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), "id,n\nx,y\n");
}

/// The command that comes to its end later knows nothing of that file.
#[test]
fn what_another_command_writes_while_a_load_or_a_check_runs_is_left() {
    for verb in ["load", "check"] {
        let (files, database) = (Files::new(), Server::shared(18).database());
        database.sql("CREATE TABLE t (id int, n int)");
        let (source, bad) = (files.put("a.csv", b"id,n\n1,5\nx,7\n"), files.put("bad.csv", b"older\n"));
        shut_gate_behind(&database, 0);
        let mut running = command(verb, &database, &bad, &source).spawn();
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND wait_event = 'PgSleep'";
        let began = Instant::now();
        while database.value(waits) == "0" && began.elapsed() < PATIENCE && running.is_running() {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::write(&bad, "of another command\n").unwrap();
        open_gate(&database);
        let said = running.wait(PATIENCE).expect_code(3).stderr;
        assert!(said.contains("bad.csv is left as it is: another command has written it"), "{verb}: {said}");
        assert_eq!(std::fs::read_to_string(&bad).unwrap(), "of another command\n", "{verb}: {said}");
    }
}

/// Two that write at once would take the file away from one another; what a killed one has left is in
/// nobody's way.
#[test]
fn a_file_that_another_command_is_writing_is_left_to_it() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (id int, n int)");
    let (source, bad) = (files.put("a.csv", b"id,n\n1,5\nx,7\n"), files.path().join("bad.csv"));
    let unfinished = std::fs::File::create(files.path().join("bad.csv.unfinished")).unwrap();
    unfinished.lock().unwrap();
    let done = command("load", &database, &bad, &source).run(PATIENCE).expect_code(3).stderr;
    assert!(
        done.contains("bad.csv is left as it is: another command has written it") && !bad.exists(),
        "{done}"
    );
    let job = database.value("SELECT job_id FROM howdah.job");
    let status = howdah("status").args(["--to", &database.conninfo(), &job, "--reject-file"]).arg(&bad);
    let busy = status.run(PATIENCE).expect_code(1).stderr;
    assert!(
        busy.contains("another command is writing it") && files.path().join("bad.csv.unfinished").exists(),
        "{busy}"
    );
    drop(unfinished);
    status.run(PATIENCE).expect_code(0);
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), format!("{HEAD}x,7\n"));
}

fn command(verb: &str, database: &Database, bad: &Path, source: &Path) -> HowdahCommand {
    let command = howdah(verb).args(["--to", &database.conninfo(), "--table", "t", "--reject-file"]);
    let command = command.arg(bad).arg(source);
    if verb == "load" { command.args(["--on-error", "skip"]) } else { command }
}
