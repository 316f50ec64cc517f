//! Passwords and tokens that run out while a load is at work.

use crate::guards::wait_for_words;
use crate::scene::{END_SESSIONS, END_SLEEPERS, Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{HowdahCommand, Server, ServerOptions};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROWS: u64 = 150_000;

struct Stage {
    scene: Scene,
    files: Files,
    source: PathBuf,
    server: Server,
}

impl Stage {
    /// A table that more sessions fill faster, and a role whose password the server asks for.
    fn new(major: u32) -> Stage {
        let hba = vec!["host all keeper 127.0.0.1/32 scram-sha-256".to_owned()];
        let options = ServerOptions { hba, ..ServerOptions::default() };
        let server = Server::private(major, &options.set("password_encryption", "scram-sha-256"));
        let plain = csv(171, 1, ROWS);
        let files = Files::new();
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(&server, &[&plain]);
        scene.slow_rows_down("BEFORE", Duration::from_millis(120));
        let name = scene.database.name();
        scene.database.sql(&format!(
            "CREATE ROLE keeper LOGIN PASSWORD 'first'; ALTER TABLE t OWNER TO keeper; \
             GRANT CREATE ON SCHEMA public TO keeper; GRANT CREATE ON DATABASE {name} TO keeper"
        ));
        Stage { scene, files, source, server }
    }

    fn conninfo(&self) -> String {
        self.scene.database.conninfo().replace("user=postgres", "user=keeper")
    }

    fn load(&self) -> HowdahCommand {
        self.load_of(&self.source)
    }

    fn load_of(&self, source: &Path) -> HowdahCommand {
        self.scene.load_to(&self.conninfo()).args(["--json", "--chunk-size", "256kB"]).arg(source)
    }

    /// A command that prints the password in this file.
    fn command(&self, file: &Path) -> String {
        format!("cat '{}'", file.display())
    }
}

fn summary(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap()
}

#[test]
fn a_token_that_has_run_out_ends_no_load_whose_sessions_copy() {
    let stage = Stage::new(15);
    let running = stage.load().envs([("PGPASSWORD", "first")]).spawn();
    assert!(stage.scene.wait_for_chunks(1, || true));
    stage.scene.database.sql("ALTER ROLE keeper PASSWORD 'second'");
    let finished = running.wait(PATIENCE).expect_code(0);
    stage.scene.assert_exact("a token that ran out");
    let told = finished.stderr.lines().filter(|line| line.contains("opens no further session")).count();
    assert_eq!(told, 1, "{}", finished.stderr);
    let summary = summary(&finished.stdout);
    let warnings = summary["warnings"].as_array().unwrap();
    assert!(
        warnings.iter().any(|warning| warning.as_str().unwrap().contains("--password-command")),
        "{summary:#}"
    );
    assert!(!finished.stderr.contains("first"), "{}", finished.stderr);
}

/// Sessions of the role that copy.
const COPYING: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'keeper' AND query LIKE 'COPY %' AND state = 'active'";

#[test]
fn sessions_that_were_refused_for_a_moment_come_back() {
    let stage = Stage::new(15);
    let mut running = stage.load().args(["--jobs", "6"]).envs([("PGPASSWORD", "first")]).spawn();
    assert!(stage.scene.database.wait_for(COPYING, 6, || true));
    stage.scene.database.sql(&format!(
        "ALTER ROLE keeper NOLOGIN; SELECT pg_terminate_backend(pid) FROM ({}) copying",
        COPYING.replace("count(*)", "pid") + " LIMIT 5"
    ));
    wait_for_words(&mut running, "the server opens no further session");
    stage.scene.database.sql("ALTER ROLE keeper LOGIN");
    assert!(stage.scene.database.wait_for(COPYING, 6, || true), "{}", running.stderr_so_far());
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("the server opens further sessions again"), "{told}");
    stage.scene.assert_exact("a role that could not log in for a moment");
}

/// One session holds the job, one may watch.
#[test]
fn a_role_with_too_few_sessions_is_loaded_with_those_that_it_has() {
    let stage = Stage::new(18);
    stage.scene.database.sql("CREATE INDEX t_note ON t (note); CREATE INDEX t_part ON t (part); ALTER ROLE keeper CONNECTION LIMIT 3");
    let load = stage.load().args(["--jobs", "6", "--retry-for", "1s", "--indexes", "rebuild"]);
    let finished = load.envs([("PGPASSWORD", "first")]).run(PATIENCE).expect_code(0);
    stage.scene.assert_exact("a role with few sessions");
    let told = &finished.stderr;
    assert_eq!(told.matches("the server opens no further session").count(), 1, "{told}");
    assert!(told.contains("too many connections for role"), "{told}");
    assert!(!told.contains("--password-command"), "{told}");

    stage.scene.database.sql("TRUNCATE t; TRUNCATE wanted; ALTER ROLE keeper CONNECTION LIMIT 2");
    let few = csv(172, 1, 20_000);
    stage.scene.want(&few);
    let load = stage.load_of(&stage.files.put("b.csv", &few)).args(["--jobs", "6", "--retry-for", "1s"]);
    load.envs([("PGPASSWORD", "first")]).run(PATIENCE).expect_code(0);
    stage.scene.assert_exact("a role with two sessions");
}

/// Chunks with bad records wait for the first one, which has lost its session and gets no other.
#[test]
fn the_session_that_there_is_goes_to_the_first_chunk() {
    let stage = Stage::new(18);
    stage.scene.database.sql(
        "CREATE TABLE going (); GRANT SELECT ON going TO keeper;
         CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
             IF NOT EXISTS (SELECT FROM going) THEN PERFORM pg_sleep(600); END IF; RETURN NEW; END';
         CREATE TRIGGER hold BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION hold()",
    );
    let record =
        |id: u32| format!("{id},{},1.5,{}\n", if id % 100 == 7 { "x" } else { "1" }, "note ".repeat(10));
    let text: String = (1..=9_000).filter(|id| id % 1000 != 0).map(record).collect();
    let source = stage.files.put("bad.csv", format!("id,part,amount,note\n{text}").as_bytes());
    let load = stage.scene.load_to(&stage.conninfo()).args(["--chunk-size", "64kB", "--jobs", "2"]);
    let load = load.args(["--on-error", "skip"]).arg(&source).envs([("PGPASSWORD", "first")]);
    let running = load.spawn();
    let sleeping =
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'keeper' AND wait_event = 'PgSleep'";
    assert!(stage.scene.database.wait_for(sleeping, 1, || true));
    stage.scene.database.sql(&format!(
        "ALTER ROLE keeper CONNECTION LIMIT 2; INSERT INTO going DEFAULT VALUES; {END_SLEEPERS}"
    ));
    running.wait(PATIENCE).expect_code(3);
    let first = "SELECT chunk_no FROM howdah.chunk ORDER BY stored_at LIMIT 1";
    assert_eq!(stage.scene.database.value(first), "0");
}

/// The sessions that hold the job and that copy are all that it may have: the one that watches is refused.
#[test]
fn a_full_role_is_not_asked_for_sessions_without_pause() {
    let stage = Stage::new(18);
    stage.scene.database.sql("ALTER ROLE keeper CONNECTION LIMIT 2");
    let holder = stage.scene.database.connect();
    let load = stage.load().args(["--jobs", "1"]).envs([("PGPASSWORD", "first")]);
    let running = load.spawn();
    assert!(stage.scene.wait_for_chunks(1, || true));
    holder.sql("BEGIN; LOCK TABLE t");
    let refused = || stage.server.log().matches("too many connections for role").count();
    let (before, held) = (refused(), Duration::from_secs(8));
    assert!(before > 0);
    std::thread::sleep(held);
    let refused = refused() - before;
    holder.sql("ROLLBACK");
    running.wait(PATIENCE).expect_code(0);
    stage.scene.assert_exact("a full role");
    assert!(refused <= 6, "{refused} logins were refused within {held:?}");
}

#[test]
fn a_command_that_prints_the_password_opens_sessions_after_it_has_changed() {
    let stage = Stage::new(18);
    stage.scene.database.sql("CREATE INDEX t_note ON t (note); CREATE INDEX t_part ON t (part)");
    let file = stage.files.put("token", b"first\nsomething else\n");
    let load = stage.load().args(["--indexes", "rebuild", "--password-command", &stage.command(&file)]);
    let running = load.spawn();
    assert!(stage.scene.wait_for_chunks(1, || true));
    stage.scene.database.sql("ALTER ROLE keeper PASSWORD 'second'");
    stage.files.put("token", b"second\r\n");
    let finished = running.wait(PATIENCE).expect_code(0);
    stage.scene.assert_exact("a password that changed");
    assert_eq!(
        stage.scene.database.value("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"),
        "2"
    );
    let summary = summary(&finished.stdout);
    let steps = summary["sessions_trace"].as_array().unwrap();
    let sessions = |key: &str| steps.iter().map(|step| step[key].as_u64().unwrap()).max().unwrap();
    assert!(sessions("after") > steps[0]["before"].as_u64().unwrap(), "{summary:#}");
    assert!(!finished.stderr.contains("opens no further session"), "{}", finished.stderr);

    let named = [("HOWDAH_PASSWORD_COMMAND", stage.command(&file))];
    let status = howdah("status").args(["--to", &stage.conninfo()]).envs(named);
    status.run(PATIENCE).expect_code(0);
}

#[test]
fn a_command_that_fails_for_a_while_ends_no_load_that_has_begun() {
    let stage = Stage::new(18);
    let file = stage.files.put("token", b"first\n");
    let load = stage.load().args(["--jobs", "1", "--password-command", &stage.command(&file)]);
    let mut running = load.spawn();
    assert!(stage.scene.wait_for_chunks(1, || true));
    std::fs::remove_file(&file).unwrap();
    stage.scene.database.sql("ALTER ROLE keeper PASSWORD 'second'");
    stage.scene.database.sql(END_SESSIONS);
    wait_for_words(&mut running, "the password command has ended with exit status: 1");
    stage.files.put("token", b"second\n");
    running.wait(PATIENCE).expect_code(0);
    stage.scene.assert_exact("a command that failed for a while");
}

#[test]
fn a_command_that_prints_no_password_says_why_and_tells_no_password() {
    let stage = Stage::new(15);
    for (command, wanted) in [
        (
            "echo s3cret; echo no token for you >&2; echo s3cret >&2; exit 7",
            "exit status: 7, and says: no token for you",
        ),
        ("true", "it prints nothing"),
        ("printf '\\377\\n'", "is no UTF-8"),
        ("kill -9 $$", "signal: 9"),
    ] {
        let finished = stage.load().args(["--password-command", command]).run(PATIENCE).expect_code(1);
        assert!(finished.stderr.contains("the password command"), "{command}: {}", finished.stderr);
        assert!(finished.stderr.contains(wanted), "{command}: {}", finished.stderr);
        assert!(!finished.stderr.contains("s3cret"), "{command}: {}", finished.stderr);
    }
    let wrong = stage.load().args(["--password-command", "echo s3cret"]).run(PATIENCE).expect_code(1);
    assert!(wrong.stderr.contains("password authentication failed"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("s3cret"), "{}", wrong.stderr);
    assert_eq!(stage.scene.database.value("SELECT count(*) FROM t"), "0");
}

/// Who has typed the command means it, and learns that the other password is not tried.
#[test]
fn a_password_that_a_typed_command_takes_the_place_of_is_warned_of() {
    let scene = Scene::new(Server::shared(15), &[]);
    let to = format!("{} password=hidden", scene.database.conninfo());
    let status = |to: &str| {
        let status = howdah("status").args(["--to", to, "--password-command", "echo other"]);
        status.run(PATIENCE).expect_code(0).stderr
    };
    let told = status(&to);
    assert!(told.contains("and is not used: --password-command prints the one that is"), "{told}");
    assert!(!told.contains("hidden"), "{told}");
    assert_eq!(status(&scene.database.conninfo()), "");
}
