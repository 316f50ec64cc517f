//! `howdah bench`: numbers for the user's own file, and nothing left behind.

use crate::memory::MEMORY_BYTES_MAX;
use crate::scene::{Files, PATIENCE, csv, gzip, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, ServerOptions};
use std::time::{Duration, Instant};

const ROWS: u64 = 5_000;

/// What a table may have that a measurement must not change: a sequence, indexes, a foreign key, rows.
const TABLE: &str = "CREATE TABLE other (part integer PRIMARY KEY); INSERT INTO other VALUES (7); \
    CREATE TABLE t (no serial, id bigint PRIMARY KEY, part integer, amount numeric CHECK (amount >= 0), note text, \
                    FOREIGN KEY (part) REFERENCES other); \
    CREATE INDEX by_amount ON t (amount); INSERT INTO t (id, part) VALUES (-1, 7)";

fn bench(database: &Database) -> HowdahCommand {
    howdah("bench").args(["--to", &database.conninfo()])
}

/// Neither a schema of ours nor a ledger is there, and the table is as it was.
#[track_caller]
fn assert_untouched(database: &Database) {
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'howdah%'";
    assert_eq!(database.value(schemas), "0");
    let table = "SELECT string_agg(t::text, ' ') || ' ' || (SELECT last_value FROM t_no_seq) FROM t";
    assert_eq!(database.value(table), "(1,-1,7,,) 1");
}

fn number(document: &serde_json::Value, path: &str) -> f64 {
    document.pointer(path).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{path}: {document}"))
}

#[test]
fn the_table_is_not_touched_and_both_sides_have_their_figures() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(1, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(TABLE);
        let finished =
            bench(&database).args(["--table", "t", "--rounds", "2", "--json"]).arg(&source).run(PATIENCE);
        let finished = finished.expect_code(0);
        assert_untouched(&database);
        let document: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(document["table"], "public.t");
        assert_eq!(document["rows"], ROWS);
        for side in ["copy", "howdah"] {
            assert_eq!(document[side].as_array().unwrap().len(), 2, "{document}");
            let figure = |name: &str| number(&document, &format!("/{side}_figures/{name}"));
            assert!(figure("wall_seconds/min") > 0.0);
            assert!(figure("wall_seconds/median") >= figure("wall_seconds/min"));
            assert!(figure("client_cpu_seconds/median") > 0.0);
            assert!(figure("bytes_per_second") > 0.0);
            if cfg!(target_os = "linux") {
                assert!(figure("server_cpu_seconds/max") > 0.0, "{document}");
            }
        }
        // The command as a whole may hold this.
        if cfg!(target_os = "linux") {
            let peak_bytes = number(&document, "/howdah_figures/peak_memory_bytes/max") as u64;
            assert!((1 << 20..MEMORY_BYTES_MAX).contains(&peak_bytes), "{document}");
        }
        assert!(document["copy_figures"]["peak_memory_bytes"].is_null(), "{document}");
        assert!(number(&document, "/ratio/median") > 0.0);
        assert_eq!(number(&document, "/summary/rows_stored") as u64, ROWS);
        let told = &finished.stderr;
        assert!(told.contains("dropped at the end") && told.contains("is dropped"), "{told}");
    }
}

/// They would stop at the first row for a table that they have not got.
#[test]
fn subscribers_to_all_tables_are_not_stopped() {
    let server = Server::private(18, &ServerOptions::default().set("wal_level", "logical"));
    let (database, files) = (server.database(), Files::new());
    database.sql(TABLE);
    database.sql("CREATE PUBLICATION everything FOR ALL TABLES");
    let source = files.put("a.csv", &csv(1, 1, 10));
    let refused = bench(&database).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("the publication everything is of all tables"), "{refused}");
    assert!(refused.contains("hint: measure on a server without"), "{refused}");
    assert_untouched(&database);
}

#[test]
fn without_a_table_one_is_made_from_the_data() {
    let database = Server::shared(15).database();
    let files = Files::new();
    let source = files.put("a.csv.gz", &gzip(&csv(2, 1, ROWS)));
    let finished = bench(&database).args(["--rounds", "1", "--quiet"]).arg(&source).run(PATIENCE);
    let finished = finished.expect_code(0);
    for word in ["one COPY", "howdah", "ratio", "memory", "limit", "5,000 rows", "a table made from the data"]
    {
        assert!(finished.stdout.contains(word), "{word} is missing:\n{}", finished.stdout);
    }
    assert_eq!(finished.stderr, "");
    assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relkind = 'r' AND oid >= 16384"), "0");
}

#[test]
fn what_copy_has_no_words_for_is_measured_alone() {
    let database = Server::shared(15).database();
    let files = Files::new();
    let source = files.put("a.txt", "id||day\n1||31/12/2024\n2||01/02/2024\n".as_bytes());
    let bench = bench(&database).args(["--rounds", "1", "--delimiter", "||", "--json"]).arg(&source);
    let finished = bench.run(PATIENCE).expect_code(0);
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert!(document["copy_figures"].is_null() && document["ratio"].is_null(), "{document}");
    let refused = document["copy_refused"].as_str().unwrap();
    assert!(refused.ends_with("no words for a delimiter that is not one byte"), "{document}");
    assert!(number(&document, "/howdah_figures/wall_seconds/median") > 0.0);
}

/// Of a file that is not seen whole nobody knows whether the empty field is NULL, too.
#[test]
fn copy_is_told_the_one_word_for_null_that_was_seen() {
    let database = Server::shared(15).database();
    let files = Files::new();
    let rows: String =
        (0..40_000).map(|no| format!("{no},{}\n", if no % 9 == 0 { "NA" } else { "7" })).collect();
    let source = files.put("a.csv", format!("id,n\n{rows}").as_bytes());
    let finished = bench(&database).args(["--rounds", "1"]).arg(&source).run(PATIENCE).expect_code(0).stdout;
    assert!(finished.contains("ratio"), "{finished}");
    assert!(finished.contains("COPY      is told NULL 'NA' alone, as --null 'NA' tells both"), "{finished}");
    // What COPY refuses is told with its place.
    let source = files.put("b.csv", format!("id,n\n{rows}7,\n{rows}").as_bytes());
    let finished = bench(&database).args(["--rounds", "1"]).arg(&source).run(PATIENCE).expect_code(0).stdout;
    assert!(finished.contains("howdah is measured alone"), "{finished}");
}

#[test]
fn an_error_is_told_and_leaves_nothing_behind() {
    let database = Server::shared(15).database();
    database.sql(TABLE);
    let files = Files::new();
    let good = String::from_utf8(csv(3, 1, ROWS)).unwrap();
    let source = files.put("a.csv", format!("{good}{},x,1.5,\n", ROWS + 1).as_bytes());
    let bench = bench(&database).args(["--table", "t", "--format", "csv", "--header"]).arg(&source);
    let finished = bench.run(PATIENCE).expect_code(1);
    assert!(finished.stderr.contains(&format!("record {}", ROWS + 1)), "{}", finished.stderr);
    assert_untouched(&database);
}

#[test]
fn a_pipe_a_second_file_and_a_table_out_of_nothing_are_refused() {
    let database = Server::shared(15).database();
    database.sql(TABLE);
    let piped = bench(&database).args(["--table", "t", "--format", "csv", "-"]).stdin("1,2\n").run(PATIENCE);
    assert!(piped.expect_code(2).stderr.contains("a pipe cannot be read twice"));
    let files = Files::new();
    for name in ["a.csv", "b.csv"] {
        files.put(name, &csv(4, 1, 10));
    }
    let two = bench(&database).args(["--table", "t"]).arg(files.path()).run(PATIENCE).expect_code(2);
    assert!(two.stderr.contains("of one file and one table, got 2"), "{}", two.stderr);
    let source = files.path().join("a.csv");
    let unseen = bench(&database).args(["--format", "csv"]).arg(&source).run(PATIENCE).expect_code(2);
    assert!(unseen.stderr.contains("--table names none"), "{}", unseen.stderr);
    let tuned = bench(&database).args(["--tune", "server"]).arg(&source).run(PATIENCE).expect_code(2);
    assert!(tuned.stderr.contains("--tune server is for loads"), "{}", tuned.stderr);
    assert_untouched(&database);
}

#[test]
fn a_role_that_may_not_make_a_schema_is_told_the_grant() {
    let database = Server::shared(15).database();
    database.sql(TABLE);
    let role = format!("guest_{}", database.name());
    database.sql(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT ON t TO {role}"));
    let files = Files::new();
    let source = files.put("a.csv", &csv(5, 1, 10));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let bench = || howdah("bench").args(["--to", &to, "--table", "t", "--rounds", "1"]).arg(&source);
    let refused = bench().run(PATIENCE).expect_code(1);
    let grant = format!("GRANT CREATE ON DATABASE \"{}\" TO \"{role}\"", database.name());
    assert!(refused.stderr.contains(&grant), "{}", refused.stderr);
    database.sql(&grant);
    bench().run(PATIENCE).expect_code(0);
    assert_untouched(&database);
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing_behind() {
    let database = Server::shared(15).database();
    database.sql(TABLE);
    // What LIKE takes along: each row takes its time.
    database.sql(
        "CREATE FUNCTION slow(bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS \
         'BEGIN PERFORM pg_sleep(0.005); RETURN true; END'; \
         ALTER TABLE t ADD CHECK (public.slow(id))",
    );
    let files = Files::new();
    let source = files.put("a.csv", &csv(6, 1, 1_000));
    // The first load is howdah's, the second the plain COPY.
    for table in ["loaded", "copied"] {
        let mut running = bench(&database).args(["--table", "t"]).arg(&source).spawn();
        let copies = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
             AND query LIKE 'COPY %\"{table}\"%'"
        );
        let deadline = Instant::now() + PATIENCE;
        while database.value(&copies) == "0" {
            assert!(running.is_running() && Instant::now() < deadline, "{}", running.stderr_so_far());
            std::thread::sleep(Duration::from_millis(5));
        }
        running.interrupt();
        let finished = running.wait(PATIENCE).expect_code(130);
        assert!(finished.stderr.contains("error: stopped by the user"), "{}", finished.stderr);
        assert!(!finished.stderr.contains("howdah resume"), "{}", finished.stderr);
        assert_untouched(&database);
    }
}

/// Nothing would follow them.
#[test]
fn options_about_jobs_of_the_ledger_are_refused() {
    let database = Server::shared(15).database();
    database.sql(TABLE);
    let files = Files::new();
    let source = files.put("a.csv", &csv(6, 1, 10));
    for typed in [
        &["--job-id", "x"][..],
        &["--rejects", "x"],
        &["--on-error", "skip", "--reject-file", "bad.csv"],
        &["--known", "skip"],
        &["--if-done", "ok"],
        &["--force"],
    ] {
        let measured = bench(&database).args(["--table", "t"]).args(typed.iter().copied()).arg(&source);
        let refused = measured.run(PATIENCE).expect_code(2).stderr;
        let name = typed[typed.len().saturating_sub(2)];
        assert!(refused.contains(&format!("error: {name} is about jobs of the ledger")), "{refused}");
        assert!(refused.contains("hint: leave it out"), "{refused}");
    }
    // Those of a job file are meant for the load.
    let job = files.put("job.toml", b"known = \"skip\"\nif-done = \"ok\"\n");
    for typed in [&["--mode", "truncate"][..], &["--ledger", "none"]] {
        let measured =
            bench(&database).args(["--table", "t", "--rounds", "1", "--job"]).arg(&job).args(typed);
        measured.arg(&source).run(PATIENCE).expect_code(0);
    }
    assert_untouched(&database);
}

/// The tables that are measured are gone by the time that somebody reads what is wrong with them.
#[test]
fn what_a_load_would_refuse_is_said_of_the_table_that_was_named() {
    let database = Server::shared(15).database();
    database.sql(TABLE);
    let files = Files::new();
    let source = files.put("a.csv", &csv(7, 1, 10));
    let measured =
        bench(&database).args(["--table", "t", "--mode", "merge", "--key", "part", "--rounds", "1"]);
    let refused = measured.arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("error: no unique index of public.t is on"), "{refused}");
    assert!(refused.contains("ON \"public\".\"t\" (\"part\")"), "{refused}");
    assert_untouched(&database);
}

#[test]
fn what_bench_refuses_it_does_not_offer() {
    let offered = howdah("bench").args(["--help"]).run(PATIENCE).expect_code(0).stdout;
    for refused in ["--reject-file", "--rejects", "--job-id", "--force", "--known", "--if-done"] {
        let is_offered = offered.lines().any(|line| line.split_whitespace().next() == Some(refused));
        assert!(!is_offered, "{refused}\n{offered}");
    }
    assert!(offered.contains("--on-error"));
}
