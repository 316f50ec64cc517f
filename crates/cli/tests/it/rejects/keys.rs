//! Rows in binary that break keys are told by their keys.

use crate::scene::{Files, PATIENCE, gzip, howdah};
use fastrand::Rng;
use howdah_testkit::{Database, Server};
use std::fmt::Write as _;
use std::time::Duration;

const ROWS: u64 = 12_000;
/// Four chunks of 64 kB, each of more rows than the 1,000 from which on the server is asked about keys.
const MODEL_ROWS: u64 = 6_000;

/// What a table may demand. `boss` leads to one row alone.
const TABLES: [&str; 8] = [
    "(id int PRIMARY KEY, code text, amount numeric, boss int, day timestamp)",
    "(id bigint PRIMARY KEY, code varchar(9), amount numeric(9, 2), boss int REFERENCES boss, day timestamp(0))",
    "(id int UNIQUE, code text, amount numeric, boss int NOT NULL, day timestamp, UNIQUE (code, day) DEFERRABLE)",
    "(id int, code text, amount numeric UNIQUE, boss int REFERENCES boss DEFERRABLE INITIALLY DEFERRED, day date)",
    "(id int, code text PRIMARY KEY, amount float8, boss int REFERENCES boss, day timestamptz)",
    "(id int, code text, amount numeric, boss int REFERENCES boss, day timestamp(0), UNIQUE (id, day))",
    "(id int PRIMARY KEY, code varchar(9) UNIQUE, amount numeric, boss int, day timestamp)",
    "(id int, code text, amount numeric CHECK (amount <> 777), boss int REFERENCES boss, day timestamp, UNIQUE (code, day), UNIQUE (id))",
];

/// Keys that are there, keys that repeat others, near and far, some of which are refused themselves; values
/// that are equal and are written in two ways.
fn records(seed: u64) -> Vec<String> {
    let mut random = Rng::with_seed(seed);
    let mut records = Vec::new();
    for no in 1..=MODEL_ROWS {
        let id = match random.u8(..90) {
            0 => (no.saturating_sub(random.u64(1..30)) + 1).to_string(),
            1 => random.u64(1..=MODEL_ROWS + 2000).to_string(),
            2 => format!("00{}", random.u64(1..=no)),
            3 => String::new(),
            _ => (no + 1000).to_string(),
        };
        let other = if random.u8(..60) == 0 { random.u64(1..=no) } else { no };
        let zeros = ["", ".0", ".00"][random.usize(..3)];
        let boss = if random.u8(..70) == 0 { 2 } else { 1 };
        let mut record = String::new();
        let _ = writeln!(
            record,
            "{id},c{other},{other}{zeros},{boss},2024-01-{:02} 10:00:0{}.{}",
            1 + other % 28,
            other % 10,
            random.u8(..3)
        );
        records.push(record);
    }
    records
}

/// Stores the records one after the other.
fn insert_one_by_one(database: &Database, text: &str) {
    database.sql(
        "CREATE TABLE raw (no int GENERATED ALWAYS AS IDENTITY, id text, code text, amount text, boss text, day text)",
    );
    database
        .copy_in("COPY raw (id, code, amount, boss, day) FROM STDIN (FORMAT csv)", text.to_owned())
        .unwrap();
    database.sql(
        "DO $$ DECLARE r record; BEGIN SET CONSTRAINTS ALL IMMEDIATE;
         FOR r IN SELECT * FROM raw ORDER BY no LOOP
             BEGIN EXECUTE pg_catalog.format('INSERT INTO model VALUES (%L, %L, %L, %L, %L)', r.id, r.code, r.amount, r.boss, r.day);
             EXCEPTION WHEN integrity_constraint_violation THEN NULL; END;
         END LOOP; END $$",
    );
}

#[test]
fn rows_in_binary_that_break_keys_are_those_that_inserts_refuse() {
    let files = Files::new();
    let seed = std::env::var("HOWDAH_KEYS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    for (no, (table, major)) in TABLES.iter().zip([13, 15, 18].into_iter().cycle()).enumerate() {
        let text = records(seed.wrapping_add(no as u64)).concat();
        let place = format!("HOWDAH_KEYS_SEED={seed}, PostgreSQL {major}: {table}");
        // The chunks of what is compressed come in order, as INSERTs do.
        let plain = files.put("t.csv", text.as_bytes());
        let packed = files.put("t.csv.gz", &gzip(text.as_bytes()));
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE boss (id int PRIMARY KEY); INSERT INTO boss VALUES (1)");
        database.sql(&format!("CREATE TABLE model {table}"));
        let there =
            "SELECT no * 100, 'there' || no, no + 1000000, 1, '2020-01-01' FROM generate_series(1, 50) no";
        database.sql(&format!("INSERT INTO model {there}"));
        insert_one_by_one(&database, &text);
        for (source, chunk, jobs) in [(&packed, "64kB", "1"), (&packed, "4MB", "1"), (&plain, "100kB", "3")] {
            database.sql(&format!("CREATE TABLE t {table}; INSERT INTO t {there}"));
            let run = howdah("load").args([
                "--to",
                &database.conninfo(),
                "--on-error",
                "skip",
                "--force",
                "--encode",
                "binary",
            ]);
            let run = run.args(["--chunk-size", chunk, "--jobs", jobs, "--format", "csv", "--table", "t"]);
            let done = run.arg(source).run(PATIENCE).expect_code(3);
            let counts = format!(
                "SELECT (SELECT count(*) FROM t) - 50 + (SELECT count(*) FROM howdah.reject) = {MODEL_ROWS}"
            );
            assert_eq!(database.value(&counts), "t", "{place}, {chunk}: {}", done.stderr);
            if jobs == "1" {
                let differences = "SELECT count(*) FROM ((TABLE t EXCEPT ALL TABLE model) UNION ALL (TABLE model EXCEPT ALL TABLE t)) d";
                assert_eq!(database.value(differences), "0", "{place}, {chunk}: {}", done.stderr);
            }
            database.sql("DROP TABLE t; DELETE FROM howdah.reject");
        }
    }
}

/// Of keys of chunks before the client knows; of those that were there it does not, and notices.
#[test]
fn keys_of_chunks_before_and_keys_that_were_there_are_told_apart_from_new_ones() {
    const THERE: u64 = 1_000_000;
    let ids = (1..=60_000_u64).map(|no| match (no / 15_000, no % 50) {
        // Every chunk has some that repeat a record far before, then some that were there, then both.
        (1 | 3, 0) => no - 12_000,
        (2 | 3, 1) => THERE + no,
        _ => no,
    });
    let ids: Vec<u64> = ids.collect();
    let mut text = String::new();
    ids.iter().for_each(|id| writeln!(text, "{id},name of {id}").unwrap());
    let mut stored: Vec<u64> = ids.iter().copied().filter(|id| *id < THERE).collect();
    stored.sort_unstable();
    stored.dedup();
    let files = Files::new();
    let packed = files.put("t.csv.gz", &gzip(text.as_bytes()));
    for major in [13, 15, 18] {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "CREATE TABLE t (id int PRIMARY KEY, name text); \
             INSERT INTO t SELECT {THERE} + no, 'there' FROM generate_series(1, 60000) no"
        ));
        let run =
            howdah("load").args(["--to", &database.conninfo(), "--on-error", "skip", "--encode", "binary"]);
        let run =
            run.args(["--max-errors", "100%", "--chunk-size", "64kB", "--format", "csv", "--table", "t"]);
        let done = run.arg(&packed).run(PATIENCE).expect_code(3);
        let sums = format!(
            "SELECT count(*) || ' ' || sum(id) FROM t WHERE id < {THERE} AND name = 'name of ' || id"
        );
        let expected = format!("{} {}", stored.len(), stored.iter().sum::<u64>());
        assert_eq!(database.value(&sums), expected, "{}", done.stderr);
        let rejects = "SELECT count(*) FROM howdah.reject WHERE sqlstate = '23505'";
        assert_eq!(database.value(rejects), (ids.len() - stored.len()).to_string());
    }
}

/// What the table holds is read once, and only keys that may be among it are looked up.
#[test]
fn keys_that_were_there_are_learnt_where_less_is_there_than_is_to_come() {
    const THERE: u64 = 1_000_000;
    let is_there = |no: u64| no.is_multiple_of(40);
    let mut text = String::new();
    (1..=ROWS * 5).for_each(|no| {
        let id = if is_there(no) { THERE + no % 3000 } else { no };
        writeln!(text, "{id},name of {id},code {id}").unwrap();
    });
    let files = Files::new();
    let packed = files.put("t.csv.gz", &gzip(text.as_bytes()));
    let stored = (1..=ROWS * 5).filter(|no| !is_there(*no)).count() as u64;
    for (major, keys) in
        [(13, "PRIMARY KEY (id)"), (15, "UNIQUE (code), PRIMARY KEY (id)"), (18, "UNIQUE (name, id)")]
    {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "CREATE TABLE t (name varchar(40), id int, code text, {keys}); INSERT INTO t \
             SELECT 'name of ' || id, id, 'code ' || id FROM generate_series({THERE}, {THERE} + 2999) AS id"
        ));
        let run =
            howdah("load").args(["--to", &database.conninfo(), "--on-error", "skip", "--encode", "binary"]);
        let run = run.args(["--columns", "id,name,code", "--after", "none", "--indexes", "keep"]);
        let run = run.args(["--chunk-size", "256kB", "--jobs", "1", "--format", "csv", "--table", "t"]);
        let done = run.arg(&packed).run(PATIENCE).expect_code(3);
        let counts = "SELECT (SELECT count(*) FROM t) || ' ' || (SELECT count(*) FROM howdah.reject)";
        let expected = format!("{} {}", stored + 3000, ROWS * 5 - stored);
        assert_eq!(database.value(counts), expected, "{}", done.stderr);
        // What a session has done is told when it ends.
        let told =
            "SELECT n_tup_ins >= (SELECT count(*) FROM t) FROM pg_stat_user_tables WHERE relname = 't'";
        while database.value(told) != "t" {
            std::thread::sleep(Duration::from_millis(50));
        }
        let looked_up = "SELECT max(idx_scan) FROM pg_stat_user_indexes WHERE relname = 't'";
        let looked_up: u64 = database.value(looked_up).parse().unwrap();
        assert!(looked_up < ROWS * 5 / 4, "PostgreSQL {major}: {looked_up} keys were looked up");
    }
}

/// What a trigger says of a key is no matter of the table's: the next row with the same one may well be
/// stored.
#[test]
fn a_row_that_repeats_one_which_a_trigger_refuses_is_stored() {
    const PAIRS: u64 = 400;
    let mut text = String::new();
    for no in 1..=PAIRS * 50 {
        let (id, code) = match no % 50 {
            // Told twice; the second row has its id, and a code of its own.
            0 => (no, 0),
            1 => (no.max(2) - 1, no),
            _ => (no, no),
        };
        writeln!(text, "{id},{code}").unwrap();
    }
    let files = Files::new();
    let packed = files.put("t.csv.gz", &gzip(text.as_bytes()));
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, code int); CREATE TABLE told (code int UNIQUE); INSERT INTO told VALUES (0); \
         CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO public.told VALUES (NEW.code); RETURN NULL; END $$; \
         CREATE TRIGGER tell AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION tell()",
    );
    let run = howdah("load").args(["--to", &database.conninfo(), "--on-error", "skip", "--encode", "binary"]);
    let run = run.args(["--chunk-size", "64kB", "--jobs", "1", "--format", "csv", "--table", "t"]);
    let done = run.arg(&packed).run(PATIENCE).expect_code(3);
    let counts = "SELECT count(*) || ' ' || count(*) FILTER (WHERE code = id + 1) FROM t";
    assert_eq!(database.value(counts), format!("{} {}", PAIRS * 49, PAIRS - 1), "{}", done.stderr);
}

/// A check has all rows before it looks at foreign keys, and would find nothing.
#[test]
fn rows_that_come_before_those_they_refer_to_come_in_by_the_hint() {
    let files = Files::new();
    let ids = |of: fn(u64) -> String| (1..=1500).map(of).collect::<String>();
    files.put("child.csv", format!("id,parent\n{}", ids(|id| format!("{id},{id}\n"))).as_bytes());
    files.put("parent.csv", format!("id\n{}", ids(|id| format!("{id}\n"))).as_bytes());
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (id int, parent int REFERENCES parent)",
    );
    // Rows of the parent come much later: what was refused by then ends the load before.
    database.sql(
        "CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END'; \
         CREATE TRIGGER pause BEFORE INSERT ON parent FOR EACH STATEMENT EXECUTE FUNCTION pause()",
    );
    let load = || howdah("load").args(["--to", &database.conninfo(), "--on-error", "skip"]);
    let source = files.path().join("{table}.csv");
    let refused = load().arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("the table refuses all of the first"), "{refused}");
    assert!(refused.contains("come in by --atomic, or by a load behind theirs"), "{refused}");
    database.sql("DROP TRIGGER pause ON parent; TRUNCATE parent, child");
    load().args(["--atomic", "--force"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM child"), "1500");
}

/// A foreign key is looked at when COPY is over, a unique one before: the row that repeats a key is told
/// first.
#[test]
fn the_key_of_a_row_that_leads_nowhere_is_free_for_the_next_one() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE p (id int PRIMARY KEY)");
    for (encode, refers) in [("csv", "p"), ("text", "p"), ("binary", "p"), ("csv", "t")] {
        database.sql(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (k int, id int PRIMARY KEY, r int REFERENCES {refers})"
        ));
        let source = files.put("t.csv", b"5,1,999\n6,1,\n7,2,888\n8,2,\n9,1,\n");
        let run =
            howdah("load").args(["--to", &database.conninfo(), "--on-error", "skip", "--encode", encode]);
        let run = run.args(["--format", "csv", "--table", "t", "--force", "--known", "load"]);
        let done = run.arg(&source).run(PATIENCE).expect_code(3);
        let stored = database.value("SELECT string_agg(k::text, ' ' ORDER BY k) FROM t");
        assert_eq!(stored, "6 8", "{encode}, {refers}: {}", done.stderr);
    }
}
