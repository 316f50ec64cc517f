//! Tables that are emptied between two runs of a job: its receipts are not taken for rows.

use crate::gate::{open_gate, remove_gate, shut_gate_behind};
use crate::scene::{END_SESSIONS, Files, PATIENCE, Scene, csv};
use howdah_testkit::{HowdahCommand, MAJORS, Server};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const ROWS: u64 = 20_000;

/// A job that was killed when some of its rows were in, and what loads the rest.
struct Killed {
    scene: Scene,
    files: Files,
    source: PathBuf,
    options: Vec<String>,
}

impl Killed {
    fn new(major: u32, options: &[&str]) -> Killed {
        Killed::into(major, "", options)
    }

    /// `t` has a key, and is a partition of `t_all` or has one, `t_leaf`, where that is the name of its
    /// `kin`.
    fn into(major: u32, kin: &str, options: &[&str]) -> Killed {
        let plain = csv(97, 1, ROWS);
        let files = Files::new();
        let source = files.put("a.csv", &plain);
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql(match kin {
            "t_all" => {
                "ALTER TABLE t ALTER id SET NOT NULL; CREATE TABLE t_all (LIKE t) PARTITION BY RANGE (id); ALTER TABLE t_all ADD PRIMARY KEY (id); \
                 ALTER TABLE t_all ATTACH PARTITION t FOR VALUES FROM (MINVALUE) TO (MAXVALUE)"
            }
            "t_leaf" => {
                "ALTER TABLE t ALTER id SET NOT NULL; ALTER TABLE t RENAME TO t_leaf; CREATE TABLE t (LIKE t_leaf, PRIMARY KEY (id)) PARTITION BY RANGE (id); \
                 ALTER TABLE t ATTACH PARTITION t_leaf FOR VALUES FROM (MINVALUE) TO (MAXVALUE)"
            }
            "t" => "ALTER TABLE t ADD PRIMARY KEY (id)",
            _ => "SELECT",
        });
        shut_gate_behind(&scene.database, 4);
        let options = ["--chunk-size", "64kB", "--jobs", "2"].iter().chain(options);
        let options = options.map(|word| (*word).to_owned()).collect();
        let killed = Killed { scene, files, source, options };
        let (scene, mut running) = (&killed.scene, killed.command("load").spawn());
        assert!(scene.wait_for_chunks(4, || running.is_running()), "{}", running.stderr_so_far());
        running.kill();
        scene.database.sql(END_SESSIONS);
        remove_gate(&scene.database);
        killed
    }

    fn command(&self, verb: &str) -> HowdahCommand {
        let of_file = ["--format", "csv", "--header", "--table", "t"];
        self.scene.verb(verb).args(of_file).args(&self.options).arg(&self.source)
    }

    /// Another job empties the table for its own rows.
    fn other(&self, rows: u64) -> PathBuf {
        self.files.put("other.csv", &csv(98, 1_000_000, rows))
    }

    fn refused(&self, words: &str) {
        for verb in ["plan", "load"] {
            let refused = self.command(verb).run(PATIENCE).expect_code(1).stderr;
            assert!(
                refused.contains(words) && refused.contains("hint: --force loads again"),
                "{verb}: {refused}"
            );
        }
    }

    fn forced(&self) {
        let done = self.command("load").arg("--force").run(PATIENCE).expect_code(0).stderr;
        assert!(done.contains("was emptied since an earlier run of this job"), "{done}");
        assert!(done.contains("check  read 20,000 = stored 20,000"), "{done}");
    }
}

#[test]
fn a_job_does_not_go_on_behind_a_truncate_by_somebody() {
    for major in MAJORS {
        for emptied in ["TRUNCATE t", "DELETE FROM t"] {
            let killed = Killed::new(major, &[]);
            killed.scene.database.sql(emptied);
            killed.refused("public.t is empty, though job");
            assert_eq!(killed.scene.database.value("SELECT count(*) FROM t"), "0");
            killed.forced();
            killed.scene.assert_exact(&format!("PostgreSQL {major}, {emptied}"));
            killed.scene.assert_done(emptied);
        }
    }
}

#[test]
fn a_job_does_not_go_on_behind_another_that_has_emptied_the_table() {
    for (major, options) in [(13, &[][..]), (15, &["--freeze"]), (18, &[])] {
        let killed = Killed::new(major, &["--mode", "truncate"]);
        let other = killed.other(10);
        let truncate = killed.scene.load().args(["--mode", "truncate"]).args(options);
        truncate.arg(&other).run(PATIENCE).expect_code(0);
        killed.refused("has emptied public.t since job");
        assert_eq!(killed.scene.database.value("SELECT count(*) FROM t"), "10");
        // The job empties the table itself, and does so once more.
        killed.forced();
        killed.scene.assert_exact(&format!("PostgreSQL {major}"));
    }
}

/// The other one has called the table otherwise: by a partition of it, what it is a partition of, or another
/// schema.
#[test]
fn a_job_does_not_go_on_behind_another_that_has_taken_rows_out_under_another_name() {
    let delete = &["--mode", "merge", "--key", "id", "--delete-missing"][..];
    let truncate = &["--mode", "truncate"][..];
    let cases = [
        ("t_all", "t_all", delete, "has deleted rows of public.t (--delete-missing) since job"),
        ("t_leaf", "t_leaf", delete, "has deleted rows of public.t (--delete-missing) since job"),
        ("t_leaf", "t_leaf", truncate, "has emptied a partition of public.t since job"),
        ("t", "other.t", delete, "has deleted rows of public.t (--delete-missing) since job"),
        ("t", "other.t", truncate, "has emptied public.t since job"),
    ];
    for (no, (kin, table, mode, told)) in cases.into_iter().enumerate() {
        let killed = Killed::into([13, 15, 18][no % 3], kin, &[]);
        let (database, other) = (&killed.scene.database, killed.other(10));
        if table == "other.t" {
            database.sql("CREATE SCHEMA other; ALTER TABLE t SET SCHEMA other");
        }
        let format = ["--format", "csv", "--header", "--table", table];
        killed.scene.verb("load").args(format).args(mode).arg(&other).run(PATIENCE).expect_code(0);
        if table == "other.t" {
            database.sql("ALTER TABLE other.t SET SCHEMA public");
        }
        for verb in ["plan", "load"] {
            let refused = killed.command(verb).run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains(told), "{table} {mode:?} {verb}\n{refused}");
        }
        assert_eq!(database.value("SELECT count(*) FROM t"), "10", "{table} {mode:?}");
    }
}

/// What comes by keys is merged again from the rows that wait.
#[test]
fn merged_parts_that_were_taken_out_are_merged_again() {
    let plain = csv(99, 1, ROWS);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for (major, mode) in [(15, "merge"), (18, "insert-new")] {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        scene.database.sql("ALTER TABLE t ADD PRIMARY KEY (id)");
        let load = scene.load().args(["--mode", mode, "--key", "id", "--jobs", "2"]).arg(&source);
        // The part with the last row never comes.
        scene.database.sql(
            "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NEW; END'; \
             CREATE TRIGGER late BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 20000) EXECUTE FUNCTION late()",
        );
        let mut running = load.spawn();
        let parts = "SELECT count(*) FROM howdah.step WHERE name = 'part'";
        let come = || scene.database.try_rows(parts).is_ok_and(|rows| rows[0][0].as_deref() != Some("0"));
        while !come() {
            assert!(running.is_running(), "{}", running.stderr_so_far());
            std::thread::sleep(Duration::from_millis(10));
        }
        running.kill();
        scene.database.sql(END_SESSIONS);
        scene.database.sql("DROP TRIGGER late ON t; TRUNCATE t");
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("public.t is empty, though job"), "{mode}: {refused}");
        load.arg("--force").run(PATIENCE).expect_code(0);
        scene.assert_exact(mode);
        scene.assert_done(mode);
    }
}

#[test]
fn rows_that_were_taken_out_in_part_or_cannot_be_seen_do_not_keep_a_job_from_going_on() {
    let killed = Killed::new(15, &[]);
    let scene = &killed.scene;
    scene.database.sql("DELETE FROM t WHERE id NOT IN (SELECT id FROM t LIMIT 100)");
    killed.command("load").run(PATIENCE).expect_code(0);
    assert_eq!(scene.database.value("SELECT count(*) > 100 AND count(*) < 20000 FROM t"), "t");

    // Row-level security hides all rows from the role.
    let plain = csv(97, 1, ROWS);
    let source = killed.files.put("b.csv", &plain);
    let scene = Scene::new(Server::shared(18), &[&plain]);
    let (name, role) = (scene.database.name().to_owned(), format!("blind_{}", scene.database.name()));
    scene.database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE \"{name}\" TO {role}; GRANT INSERT, SELECT ON t TO {role}; \
         ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t FOR INSERT TO {role} WITH CHECK (true)"
    ));
    shut_gate_behind(&scene.database, 4);
    let to = scene.database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = scene.load_to(&to).args(["--chunk-size", "64kB", "--jobs", "2"]).arg(&source);
    let mut running = load.spawn();
    assert!(scene.wait_for_chunks(4, || running.is_running()), "{}", running.stderr_so_far());
    running.kill();
    scene.database.sql(END_SESSIONS);
    open_gate(&scene.database);
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("hidden rows");
}

#[test]
fn a_finished_job_is_loaded_again_into_an_empty_table_that_was_made_anew() {
    let plain = csv(97, 1, 100);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    for major in MAJORS {
        let scene = Scene::new(Server::shared(major), &[&plain]);
        let load = scene.load().arg(&source);
        let finished = |what: &str| {
            let refused = load.run(PATIENCE).expect_code(1).stderr;
            assert!(refused.contains("this job finished at"), "{what}: {refused}");
        };
        load.run(PATIENCE).expect_code(0);
        finished("it is there");
        let told = "its table is empty now: --force loads everything again";
        let once_more = || load.clone().args(["--json", "--if-done", "ok"]).run(PATIENCE).expect_code(0);
        assert!(!once_more().stderr.contains(told), "PostgreSQL {major}");
        // What has come in may have been moved on.
        scene.database.sql("CREATE TABLE kept AS SELECT * FROM t; TRUNCATE t");
        let warned = once_more();
        let document: Value = serde_json::from_str(&warned.stdout).unwrap();
        let in_document = document["warnings"].to_string();
        assert!(warned.stderr.contains(told) && in_document.contains(told), "PostgreSQL {major}: {warned:?}");
        finished("its rows were taken out");
        scene.database.sql("DROP TABLE t; CREATE TABLE t (LIKE kept)");
        load.run(PATIENCE).expect_code(0);
        scene.assert_exact("made anew");
        finished("it is there once more");
        // As by a dump.
        scene.database.sql("DROP TABLE t; ALTER TABLE kept RENAME TO t");
        finished("its rows are in a table made anew");
    }
}

/// The ledger has times of an hour from now: the server's clock was wrong, or a standby with another one has
/// taken over.
#[test]
fn what_came_behind_an_emptied_table_is_known_though_the_clock_went_back() {
    for major in MAJORS {
        let (first, second) = (csv(101, 1, 100), csv(102, 1_001, 200));
        let files = Files::new();
        let [first_file, second_file] =
            [("a.csv", &first), ("b.csv", &second)].map(|(name, text)| files.put(name, text));
        let scene = Scene::new(Server::shared(major), &[&second]);
        scene.load().args(["--mode", "truncate"]).arg(&first_file).run(PATIENCE).expect_code(0);
        scene.database.sql(
            "UPDATE howdah.job SET started_at = started_at + '1 h', finished_at = finished_at + '1 h'; \
             UPDATE howdah.step SET done_at = done_at + '1 h'; UPDATE howdah.chunk SET stored_at = stored_at + '1 h'",
        );
        scene.database.sql("TRUNCATE t");
        let options = if major == 15 { &["--atomic"][..] } else { &[] };
        let told = scene.load().args(options).arg(&second_file).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("s behind the latest time in the ledger"), "{told}");
        scene.assert_exact(&format!("PostgreSQL {major}"));
        let third_file = files.put("c.csv", &csv(103, 5_001, 10));
        let refused = scene.load().arg(&second_file).arg(&third_file).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("1 of 2 files is in public.t already"), "{refused}");
        let order = "SELECT string_agg(rows_stored::text, ' ' ORDER BY started_at) || \
                     bool_and(finished_at BETWEEN started_at AND clock_timestamp()) FROM howdah.job";
        assert_eq!(scene.database.value(order), "100 200true");
    }
}
