//! Files with many bad records among good ones.

use super::{ROWS, told};
use crate::gate::{open_gate, shut_gate_behind};
use crate::indexes::{CHUNKS, wait_for};
use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::Server;
use std::path::PathBuf;

/// Some keys are there, some repeat others, some of which are refused themselves; some lead nowhere.
fn contrary_records() -> String {
    let mut text = String::new();
    let mut random = 12_345_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for id in 1..=ROWS {
        let key = if next(40) == 0 { next(ROWS) + 1 } else { id };
        let code = if next(50) == 0 { next(20).to_string() } else { String::new() };
        let boss = if next(60) == 0 { 2 + next(3) } else { 1 };
        let amount = next(100);
        text += &format!("{key},{code},{amount},{boss}\n");
    }
    text
}

/// Where many records break constraints the server is asked about all at once: the same are stored as by one
/// INSERT after the other.
#[test]
fn many_records_that_break_constraints_are_those_that_inserts_refuse() {
    let files = Files::new();
    let plain = files.put("t.csv", contrary_records().as_bytes());
    // Its chunks come in order, as INSERTs do.
    let packed = files.put("t.csv.gz", &gzip(contrary_records().as_bytes()));
    for major in [13, 15, 18] {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE boss (id int PRIMARY KEY); INSERT INTO boss VALUES (1);
             CREATE TABLE t (id int PRIMARY KEY, code text, amount int CHECK (amount < 95) CHECK (amount <> 7),
                 boss int REFERENCES boss DEFERRABLE INITIALLY DEFERRED);
             CREATE UNIQUE INDEX ON t (lower(code), amount) WHERE code <> '';
             INSERT INTO t SELECT no * 100, '', 1, 1 FROM generate_series(1, 50) no;
             CREATE TABLE model (LIKE t INCLUDING ALL);
             ALTER TABLE model ADD FOREIGN KEY (boss) REFERENCES boss;
             INSERT INTO model TABLE t;
             CREATE TABLE raw (no int GENERATED ALWAYS AS IDENTITY, id int, code text, amount int, boss int)",
        );
        let copied: String = contrary_records()
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split(',').collect();
                format!("({}, '{}', {}, {})", fields[0], fields[1], fields[2], fields[3])
            })
            .collect::<Vec<_>>()
            .join(", ");
        database.sql(&format!("INSERT INTO raw (id, code, amount, boss) VALUES {copied}"));
        database.sql(
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM raw ORDER BY no LOOP
                 BEGIN INSERT INTO model VALUES (r.id, r.code, r.amount, r.boss);
                 EXCEPTION WHEN integrity_constraint_violation THEN NULL; END;
             END LOOP; END $$",
        );
        for (chunk, source) in [("4MB", &plain), ("64kB", &packed)] {
            database.sql(
                "CREATE TABLE u (LIKE t INCLUDING ALL); ALTER TABLE u ADD FOREIGN KEY (boss) REFERENCES boss",
            );
            database.sql("INSERT INTO u SELECT no * 100, '', 1, 1 FROM generate_series(1, 50) no");
            let run = howdah("load").args([
                "--to",
                &database.conninfo(),
                "--json",
                "--on-error",
                "skip",
                "--null",
                "none",
            ]);
            let run = run.args([
                "--chunk-size",
                chunk,
                "--jobs",
                "1",
                "--format",
                "csv",
                "--table",
                "u",
                "--force",
            ]);
            let done = run.arg(source).run(PATIENCE).expect_code(3);
            let differences = "SELECT count(*) FROM ((TABLE u EXCEPT ALL TABLE model) UNION ALL (TABLE model EXCEPT ALL TABLE u)) d";
            assert_eq!(database.value(differences), "0", "on PostgreSQL {major}, {chunk}: {}", done.stderr);
            let kinds = database.rows(
                "SELECT sqlstate, count(*) > 20, bool_or(message ~ '^(violates|repeats|a row)') FROM howdah.reject
                 GROUP BY 1 ORDER BY 1",
            );
            let told: Vec<_> =
                kinds.iter().map(|row| row.iter().flatten().cloned().collect::<Vec<_>>().join(" ")).collect();
            assert_eq!(told, ["23503 t t", "23505 t t", "23514 t t"], "on PostgreSQL {major}, {chunk}");
            database.sql("DROP TABLE u; DELETE FROM howdah.reject");
        }
    }
}

/// Where the records that break constraints can be told one by one, COPY leaves them out of the chunks behind
/// the first, whatever form these are sent in; what nothing but storing tells is found all the same.
#[test]
fn copy_leaves_records_out_that_break_conditions_of_their_own() {
    let files = Files::new();
    let is_bad = |id: u64| id.is_multiple_of(50) || id % 1000 == 7 || id == 11_111;
    let text: String = (1..=ROWS)
        .map(|id| {
            let amount = if id.is_multiple_of(50) { 0 } else { id };
            let day = if id % 1000 == 7 { "2031-01-01" } else { "2024-01-01" };
            let note = if id == 11_111 { "taken" } else { "\"two\nlines \"\"quoted\"\", \\N\"" };
            format!("{id},{amount},{note}{id},{day}\n")
        })
        .collect();
    let source = files.put("t.csv", text.as_bytes());
    for (major, options) in [
        (13, &["--encode", "binary"][..]),
        (15, &[]),
        (15, &["--encode", "csv"]),
        (18, &["--encode", "text"]),
    ] {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int, amount int, note text, day date, extra int GENERATED BY DEFAULT AS IDENTITY,
                 CHECK (amount > 0), CHECK (t.day < '2030-01-01')) PARTITION BY RANGE (id);
             CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (5000);
             CREATE TABLE high PARTITION OF t FOR VALUES FROM (5000) TO (1000000);
             CREATE UNIQUE INDEX ON high (note); INSERT INTO t VALUES (500000, 1, 'taken11111', '2024-01-01');
             CREATE TABLE queries (query text);
             CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql
                 AS 'BEGIN INSERT INTO queries VALUES (current_query()); RETURN NULL; END';
             CREATE TRIGGER tell AFTER INSERT ON t EXECUTE FUNCTION tell()",
        );
        let run = howdah("load").args(["--to", &database.conninfo(), "--json", "--on-error", "skip"]);
        let run = run.args(["--chunk-size", "256kB", "--jobs", "1", "--format", "csv", "--table", "t"]);
        let run = run.args(["--columns", "id,amount,note,day"]).args(options).arg(&source);
        let done = run.run(PATIENCE).expect_code(3);
        let bad: Vec<String> = (1..=ROWS).filter(|id| is_bad(*id)).map(|id| id.to_string()).collect();
        let case = format!("PostgreSQL {major}, {options:?}: {}", done.stderr);
        assert_eq!(
            database.value("SELECT string_agg(record::text, ',' ORDER BY record) FROM howdah.reject"),
            bad.join(","),
            "{case}"
        );
        assert_eq!(
            database.value(
                "SELECT count(*) FROM howdah.reject \
                 WHERE split_part(convert_from(bytes, 'UTF8'), ',', 1) <> record::text"
            ),
            "0",
            "{case}"
        );
        assert_eq!(
            database.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM t WHERE id < 500000"),
            format!("{0} {0}", ROWS - bad.len() as u64),
            "{case}"
        );
        let filtered = "SELECT count(*) > 1 FROM queries WHERE query LIKE '%WHERE CASE WHEN%'";
        let sent_whole = options.contains(&"csv");
        assert_eq!(database.value(filtered), if sent_whole { "f" } else { "t" }, "{case}");
    }
}

/// What is known of the constraints is known of those that there were.
#[test]
fn a_constraint_that_is_dropped_meanwhile_refuses_nothing_more() {
    let files = Files::new();
    let text: String =
        (1..=ROWS).map(|id| format!("{id},{},note {id}\n", if id % 20 == 0 { 0 } else { id })).collect();
    let (source, nothing) = (files.put("t.csv", text.as_bytes()), files.put("none.csv", b""));
    for (constraint, kept) in
        [("c", "CHECK (amount > 0)"), ("f", "FOREIGN KEY (amount) REFERENCES amounts (amount)")]
    {
        let database = Server::shared(15).database();
        database.sql(&format!(
            "CREATE TABLE amounts (amount int PRIMARY KEY); INSERT INTO amounts SELECT generate_series(1, {ROWS}); \
             CREATE TABLE t (id int, amount int, note text); ALTER TABLE t ADD CONSTRAINT {constraint} {kept}"
        ));
        let load = |source: &PathBuf| {
            let to = database.conninfo();
            let run = howdah("load").args(["--to", &to, "--on-error", "skip", "--chunk-size", "64kB"]);
            run.args(["--jobs", "1", "--format", "csv", "--table", "t"]).arg(source)
        };
        load(&nothing).run(PATIENCE).expect_code(0);
        shut_gate_behind(&database, 3);
        let mut running = load(&source).spawn();
        let with_rejects = format!("{CHUNKS} WHERE rejected > 0");
        assert!(wait_for(&database, &mut running, &with_rejects, 3), "{kept}: {}", running.stderr_so_far());
        database.sql(&format!("ALTER TABLE t DROP CONSTRAINT {constraint}"));
        open_gate(&database);
        running.wait(PATIENCE).expect_code(3);
        let told = "SELECT (SELECT count(*) FROM t WHERE amount = 0) + (SELECT count(*) FROM howdah.reject)";
        assert_eq!(database.value(told), (ROWS / 20).to_string(), "{kept}");
        let last = "SELECT max(id) > min(record) AND count(*) > 100 FROM t, howdah.reject WHERE amount = 0";
        assert_eq!(database.value(last), "t", "{kept}");
        let both = "SELECT count(*) FROM t, howdah.reject r WHERE t.id = r.record";
        assert_eq!(database.value(both), "0", "{kept}");
    }
}

/// Of records that the client alone refuses, those behind the good ones are no sign of the wrong file.
#[test]
fn many_bad_records_among_good_ones_do_not_end_the_load() {
    let files = Files::new();
    // More than a thousand bad ones, and no more records than that takes.
    let rows = 2400;
    let wrong = |no: u64| no.is_multiple_of(2) || no == 1;
    let text: String =
        (1..=rows).map(|no| if wrong(no) { format!("{no}\n") } else { format!("{no},y\n") }).collect();
    let source = files.put("t.csv", text.as_bytes());
    for (options, table) in [
        (&["--encode", "csv"][..], "(a int, b text)"),
        (&[], "(a int, b text)"),
        (&[], "(a int CHECK (a <> 17), b xml)"),
    ] {
        let database = Server::shared(15).database();
        database.sql(&format!("CREATE TABLE t {table}"));
        let run =
            howdah("load").args(["--to", &database.conninfo(), "--json", "--on-error", "skip"]).args(options);
        let run = run.args(["--chunk-size", "4MB", "--format", "csv", "--table", "t"]).arg(&source);
        let summary = told(&run.run(PATIENCE).expect_code(3));
        let bad = rows / 2 + 1 + u64::from(table.contains("17"));
        assert_eq!(summary["rows_rejected"], bad, "{table}: {summary}");
        assert_eq!(database.value("SELECT count(*) FROM t"), (rows - bad).to_string());
    }
}
