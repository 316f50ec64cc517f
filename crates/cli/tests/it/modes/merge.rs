//! Merging is what the server would do by simple statements, one after the other, whatever the types, the
//! order and the number of sessions.

use super::{assert_nothing_left, changes, load};
use crate::scene::{Files, PATIENCE};
use fastrand::Rng;
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::fmt::Write as _;
use std::path::Path;

/// The columns of the files; `t` has one more, and an identity column.
const COLUMNS: &str = "id, code, amount, doc, spot, words, day, note";
const TYPES: &str =
    "id bigint, code varchar(9), amount numeric, doc json, spot point, words text[], day date, note text";

/// Rows of keys that may come again, some of them in another spelling of the same value.
fn csv(random: &mut Rng, rows: u64, keys: u64) -> String {
    let mut text = format!("{}\n", COLUMNS.replace(", ", ","));
    for _ in 0..rows {
        let id = random.u64(..keys);
        let amount = ["1", "1.0", "1.00", "2.5", ""][random.usize(..5)];
        let doc = ["{}", "{ }", "[1]", ""][random.usize(..4)];
        let note = ["same", "\"two\nlines\"", "", "\"\""][random.usize(..4)];
        let (x, day) = (random.u8(..3), random.u8(1..4));
        let _ = writeln!(
            text,
            "{id},c{},{amount},{doc},\"({x},1)\",\"{{a,NULL,b{x}}}\",2024-02-0{day},{note}",
            id % 7
        );
    }
    text
}

/// `t`, filled from one file; `input` with the rows of the others in their order; `wanted`, what is to come
/// out.
fn scene(major: u32, there: &str, inputs: &[&str], (keep, mode): (&str, &str)) -> Database {
    let database = Server::shared(major).database();
    database.sql(&format!(
        "CREATE TABLE first ({TYPES}, no bigserial); \
         CREATE TABLE input ({TYPES}, no bigserial); \
         CREATE TABLE t ({TYPES}, extra text DEFAULT 'new', num bigint GENERATED ALWAYS AS IDENTITY, \
             twice bigint GENERATED ALWAYS AS (id * 2) STORED, UNIQUE (code, id))"
    ));
    let copy = |table: &str, csv: &str| {
        let sql = format!("COPY {table} ({COLUMNS}) FROM STDIN (FORMAT csv, HEADER true)");
        database.copy_in(&sql, csv.as_bytes().to_vec()).unwrap();
    };
    copy("first", there);
    database.sql(&format!(
        "INSERT INTO t ({COLUMNS}, extra) SELECT DISTINCT ON (id, code) {COLUMNS}, 'old' FROM first ORDER BY id, code, no"
    ));
    inputs.iter().for_each(|csv| copy("input", csv));
    let order = if keep == "last" { "DESC" } else { "ASC" };
    let fields = |of: &str| COLUMNS.split(", ").map(|c| format!("{of}.{c}")).collect::<Vec<_>>().join(", ");
    let (of_c, of_t) = (fields("c"), fields("t"));
    let chosen = format!("SELECT DISTINCT ON (id, code) * FROM input ORDER BY id, code, no {order}");
    let from_file = if mode == "insert-new" {
        format!(
            "SELECT {of_c}, 'new' FROM c WHERE NOT EXISTS (SELECT FROM t WHERE t.id = c.id AND t.code = c.code)"
        )
    } else {
        format!(
            "SELECT {of_c}, coalesce(t.extra, 'new') FROM c LEFT JOIN t ON t.id = c.id AND t.code = c.code"
        )
    };
    let stays = match mode {
        "merge" => format!(
            "SELECT {of_t}, t.extra FROM t WHERE NOT EXISTS (SELECT FROM c WHERE t.id = c.id AND t.code = c.code)"
        ),
        "insert-new" => format!("SELECT {of_t}, t.extra FROM t"),
        _ => format!("SELECT {of_t}, t.extra FROM t WHERE false"),
    };
    database.sql(&format!(
        "CREATE TABLE wanted AS WITH c AS ({chosen}) {from_file} UNION ALL {stays}; \
         CREATE TABLE counts AS WITH c AS ({chosen}), \
             j AS (SELECT c.id IS NOT NULL AS in_c, t.id IS NOT NULL AS in_t, ROW({of_c})::text <> ROW({of_t})::text AS differs \
                   FROM c FULL JOIN t ON t.id = c.id AND t.code = c.code) \
         SELECT count(*) FILTER (WHERE NOT in_t) AS inserted, count(*) FILTER (WHERE in_c AND in_t AND differs) AS updated, \
                count(*) FILTER (WHERE in_c AND in_t AND NOT differs) AS same, count(*) FILTER (WHERE NOT in_c) AS gone, \
                (SELECT count(*) FROM input) - (SELECT count(*) FROM c) AS twins FROM j"
    ));
    database
}

fn counts(database: &Database, mode: &str) -> [u64; 5] {
    let row = &database.rows("SELECT inserted, updated, same, gone, twins FROM counts")[0];
    let [inserted, updated, same, gone, twins] =
        [0, 1, 2, 3, 4].map(|at| row[at].as_ref().unwrap().parse().unwrap());
    match mode {
        "merge" => [inserted, updated, same, 0, twins],
        "insert-new" => [inserted, 0, updated + same, 0, twins],
        _ => [inserted, updated, same, gone, twins],
    }
}

#[track_caller]
fn assert_wanted(database: &Database, what: &str) {
    database.sql(&format!("CREATE VIEW got AS SELECT {COLUMNS}, extra FROM t"));
    assert_eq!(database.digest("got"), database.digest("wanted"), "{what}");
    assert_nothing_left(database, what);
}

#[test]
fn merging_is_what_the_server_does_row_by_row() {
    let seed = fastrand::u64(..1_000_000);
    let modes = ["merge", "insert-new", "delete-missing"];
    std::thread::scope(|scope| {
        for (no, major) in MAJORS.into_iter().enumerate() {
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed + u64::from(major));
                for round in 0..4 {
                    let mode = modes[(no + round) % modes.len()];
                    let keep = ["first", "last"][random.usize(..2)];
                    let atomic = round == 3;
                    let rows = [300, 3000, 20_000][random.usize(..3)];
                    merged(&mut random, major, (mode, keep, atomic), rows, seed);
                }
            });
        }
    });
}

fn merged(random: &mut Rng, major: u32, (mode, keep, atomic): (&str, &str, bool), rows: u64, seed: u64) {
    let jobs = random.u8(1..4).to_string();
    let what =
        format!("seed {seed}, PostgreSQL {major}, {mode}, {keep}, atomic {atomic}, {rows} rows, {jobs} jobs");
    let there = csv(random, rows, rows * 2);
    let inputs = [csv(random, rows, rows * 3), csv(random, rows / 3, rows * 3)];
    let files = Files::new();
    // Named so that neither the size nor the name of the files is their order.
    let (one, two) = (files.put("b.csv", inputs[0].as_bytes()), files.put("a.csv", inputs[1].as_bytes()));
    let (paths, inputs): (Vec<&Path>, Vec<&str>) = if random.bool() {
        (vec![&one, &two], vec![&inputs[0], &inputs[1]])
    } else {
        (vec![&two, &one], vec![&inputs[1], &inputs[0]])
    };
    let database = scene(major, &there, &inputs, (keep, mode));
    let wanted = counts(&database, mode);
    let mut command = load(&database, &paths).args(["--key", "id,code", "--keep", keep, "--jobs", &jobs]);
    command = match mode {
        "delete-missing" => command.args(["--mode", "merge", "--delete-missing"]),
        mode => command.args(["--mode", mode]),
    };
    command = command.args(["--chunk-size", "64kB"]);
    if atomic {
        command = command.arg("--atomic");
    }
    // A spelling of NULL with a digit, which the client does not number records of: then the server does.
    if random.u8(..3) == 0 {
        command = command.args(["--encode", "csv"]);
    }
    assert_eq!(changes(&command), wanted, "{what}");
    assert_wanted(&database, &what);
    let again = command.run(PATIENCE).expect_code(1);
    assert!(again.stderr.contains("this job finished"), "{what}\n{}", again.stderr);
}

#[test]
fn records_that_the_server_numbers_keep_their_order() {
    let files = Files::new();
    let database = Server::shared(13).database();
    database.sql("CREATE TABLE t (id int PRIMARY KEY, note text)");
    let mut text = "id,note\n".to_owned();
    for no in 0..20_000 {
        let _ = writeln!(text, "{},n{no}", 1000 + no % 100);
    }
    let source = files.put("a.csv", text.as_bytes());
    // Numbers could be taken for NULL, so that the client does not number the records.
    let command =
        load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--keep", "last", "--null", "7"]);
    let command = command.args(["--chunk-size", "16kB", "--jobs", "4"]);
    assert_eq!(changes(&command), [100, 0, 0, 0, 19_900]);
    let last = "SELECT count(*) FROM t WHERE note = 'n' || 19900 + id - 1000";
    assert_eq!(database.value(last), "100");
}

#[test]
fn several_records_of_one_key_are_an_error_with_their_places() {
    let files = Files::new();
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t VALUES (1, 'old')");
        let mut text = "id,note\n".to_owned();
        for no in 0..9000 {
            let id = if no == 8000 || no == 8500 { 4000 } else { no };
            let _ = writeln!(text, "{id},\"some\nlines\"");
        }
        let source = files.put(&format!("{major}.csv"), text.as_bytes());
        let command =
            load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--chunk-size", "8kB"]);
        let failed = command.run(PATIENCE).expect_code(1);
        let wanted = format!(
            "{major}.csv, record 8001: it has the same key (id) as record 4001 of {}; 2 records repeat a key",
            source.display()
        );
        assert!(failed.stderr.contains(&wanted), "{}", failed.stderr);
        assert!(failed.stderr.contains("hint: --keep last"), "{}", failed.stderr);
        assert_eq!(database.value("SELECT string_agg(id || note, ',') FROM t"), "1old");
        assert_nothing_left(&database, "after duplicates");
        // The mended file is not taken for a changed source of the same job.
        files.put(&format!("{major}.csv"), b"id,note\n1,new\n2,x\n");
        assert_eq!(changes(&command), [1, 1, 0, 0, 0]);
    }
}

#[test]
fn a_record_without_a_key_is_an_error_with_its_place() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,code,note\n1,a,x\n2,,y\n3,c,z\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, code text, note text, UNIQUE (id, code))");
    let failed = load(&database, &[&source])
        .args(["--mode", "merge", "--key", "id,code"])
        .run(PATIENCE)
        .expect_code(1);
    assert!(failed.stderr.contains("a.csv, line 3, record 2, byte 19, column code: "), "{}", failed.stderr);
    assert_nothing_left(&database, "after NULL in the key");
}

#[test]
fn what_others_insert_meanwhile_is_merged_too() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,file\n2,file\n3,file\n");
    side_by_side(MAJORS, |major| {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t VALUES (1, 'old')");
        // The rows come while the load waits, or before or after it: the file has the last word in all cases
        // but the last.
        let slowly = "BEGIN; INSERT INTO t VALUES (2, 'other'); SELECT pg_sleep(4); COMMIT";
        std::thread::scope(|scope| {
            scope.spawn(|| database.sql(slowly));
            let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
            assert!(database.wait_for(waits, 1, || true));
            let command =
                load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--lock-timeout", "1s"]);
            let [inserted, updated, unchanged, ..] = changes(&command);
            assert_eq!([inserted, updated, unchanged], [1, 2, 0], "PostgreSQL {major}");
        });
        assert_eq!(
            database.value("SELECT string_agg(id || note, ',' ORDER BY id) FROM t"),
            "1file,2file,3file"
        );
        assert_nothing_left(&database, "after a wait");
    });
}

#[test]
fn partitions_triggers_and_other_schemas_are_as_for_any_statement() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,\"Odd \"\"Name\"\"\"\n1,file\n2,same\n12,file\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE SCHEMA \"S x\"; CREATE TABLE \"S x\".\"T;--\" (id int PRIMARY KEY, \"Odd \"\"Name\"\"\" text, place int, \
                 seen text) PARTITION BY RANGE (id); \
             CREATE TABLE low PARTITION OF \"S x\".\"T;--\" FOR VALUES FROM (0) TO (10); \
             CREATE TABLE high PARTITION OF \"S x\".\"T;--\" FOR VALUES FROM (10) TO (20); \
             INSERT INTO \"S x\".\"T;--\" VALUES (1, 'old'), (2, 'same'), (3, 'stays'); \
             CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN NEW.seen := TG_OP; RETURN NEW; END'; \
             CREATE TRIGGER seen BEFORE INSERT OR UPDATE ON low FOR EACH ROW EXECUTE FUNCTION seen(); \
             CREATE TRIGGER seen BEFORE INSERT OR UPDATE ON high FOR EACH ROW EXECUTE FUNCTION seen()",
        );
        let to = database.conninfo();
        let command = crate::scene::howdah("load")
            .args(["--table", "\"S x\".\"T;--\"", "--to", &to, "--mode", "merge", "--key", "id"])
            .arg(&source);
        assert_eq!(changes(&command), [1, 1, 1, 0, 0], "PostgreSQL {major}");
        let got = "SELECT string_agg(format('%s %s %s', id, \"Odd \"\"Name\"\"\", coalesce(seen, '-')), ', ' ORDER BY id) \
                   FROM \"S x\".\"T;--\"";
        assert_eq!(
            database.value(got),
            "1 file UPDATE, 2 same -, 3 stays -, 12 file INSERT",
            "PostgreSQL {major}"
        );
        assert_nothing_left(&database, "partitions");
    }
}

/// Doubtful and bad records of a chunk are stored after the others, and must not be taken for later ones.
#[test]
fn the_first_of_a_key_is_the_first_in_the_file_among_bad_records_too() {
    let files = Files::new();
    let mut csv = "id,day\n".to_owned();
    for id in 0..500 {
        let _ = writeln!(csv, "{id},1 Jan 2024\nbad,2024-01-02\n{id},2024-01-03");
    }
    let source = files.put("a.csv", csv.as_bytes());
    for (keep, day) in [("first", "2024-01-01"), ("last", "2024-01-03")] {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (id int PRIMARY KEY, day date)");
        load(&database, &[&source])
            .args(["--mode", "merge", "--key", "id", "--keep", keep, "--on-error", "skip"])
            .args(["--chunk-size", "4kB", "--jobs", "2"])
            .run(PATIENCE)
            .expect_code(3);
        let told = database.value("SELECT string_agg(DISTINCT day::text, ' ') || ' ' || count(*) FROM t");
        assert_eq!(told, format!("{day} 500"), "--keep {keep}");
    }
}

/// Enough rows for several parts: each says who comes before it, some of which are new, and takes the number
/// that another one gives up.
#[test]
fn rows_that_need_each_other_come_together() {
    const ROWS: u64 = 60_000;
    let files = Files::new();
    let mut text = "id,before,place,note\n".to_owned();
    for id in 0..ROWS {
        let before = (id + ROWS / 2) % ROWS;
        let _ = writeln!(text, "{id},{before},{},{:0>60}", (id + 1) % ROWS, id);
    }
    let source = files.put("a.csv", text.as_bytes());
    for (major, deferred) in [(13, true), (15, false), (18, true)] {
        let database = Server::shared(major).database();
        let unique = if deferred { "UNIQUE DEFERRABLE INITIALLY DEFERRED" } else { "" };
        database.sql(&format!(
            "CREATE TABLE t (id int PRIMARY KEY, before int REFERENCES t, place int {unique}, note text); \
             INSERT INTO t SELECT id, NULL, id, '' FROM generate_series(0, {ROWS} - 1, 2) id; \
             CREATE TABLE wanted (LIKE t)"
        ));
        let copy = "COPY wanted FROM STDIN (FORMAT csv, HEADER true)";
        database.copy_in(copy, text.as_bytes().to_vec()).unwrap();
        let command = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--jobs", "2"]);
        assert_eq!(changes(&command), [ROWS / 2, ROWS / 2, 0, 0, 0], "PostgreSQL {major}");
        assert_eq!(database.digest("t"), database.digest("wanted"), "PostgreSQL {major}");
        assert_nothing_left(&database, "after rows that need each other");
    }
}

/// `character` alone is one letter, and would put all rows into one part.
#[test]
fn parts_by_a_key_of_fixed_length_share_the_rows() {
    let files = Files::new();
    let rows: String = (0..100_000).map(|id| format!("A{id:07},{id}\n")).collect();
    let source = files.put("a.csv", format!("id,n\n{rows}").as_bytes());
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id char(9) PRIMARY KEY, n int)");
        let load = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--jobs", "2"]);
        assert_eq!(changes(&load), [100_000, 0, 0, 0, 0], "PostgreSQL {major}");
        let most = "SELECT max(rows) < 80000 AND sum(rows) = 100000 FROM howdah.step WHERE name = 'part'";
        assert_eq!(database.value(most), "t", "PostgreSQL {major}");
    }
}

/// What a trigger or a policy keeps as it was is neither changed nor as the records say.
#[test]
fn rows_that_are_held_back_are_counted_for_themselves() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,same\n2,new\n3,new\n4,new\n5,new\n6,new\n");
    let there =
        "INSERT INTO t SELECT id, CASE id WHEN 1 THEN 'same' ELSE 'old' END FROM generate_series(1, 5) id";
    for (major, partitioned) in [(13, false), (15, true), (18, false)] {
        for atomic in [false, true] {
            let database = Server::shared(major).database();
            let (by, parts) = match partitioned {
                true => (" PARTITION BY RANGE (id)", "CREATE TABLE low PARTITION OF t DEFAULT;"),
                false => ("", ""),
            };
            // 2 stays, 3 is rewritten.
            database.sql(&format!(
                "CREATE TABLE t (id int PRIMARY KEY, note text){by}; {parts} {there}; \
                 CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                     IF NEW.id = 3 THEN NEW.note := 'other'; END IF; RETURN CASE WHEN NEW.id = 2 THEN NULL ELSE NEW END; END $$; \
                 CREATE TRIGGER hold BEFORE UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION hold()",
                if partitioned { "low" } else { "t" }
            ));
            let atomic = if atomic { "--atomic=true" } else { "--atomic=false" };
            let merge = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", atomic]);
            let told = merge.run(PATIENCE).expect_code(0).stderr;
            let wanted = "1 inserted, 3 updated, 1 unchanged, 0 deleted; 1 held back by a trigger or policy";
            assert!(told.contains(wanted), "PostgreSQL {major}, {atomic}\n{told}");
            assert!(
                told.contains("warning: 1 row of public.t that was to be changed was held back"),
                "{told}"
            );
        }
    }
    // A policy lets the role see all rows and change some.
    let database = Server::shared(15).database();
    let role = format!("guarded_{}", database.name());
    database.sql(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, note text); {there}; \
         CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE \"{}\" TO {role}; GRANT SELECT, INSERT, UPDATE ON t TO {role}; \
         ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY s ON t FOR SELECT USING (true); \
         CREATE POLICY i ON t FOR INSERT WITH CHECK (true); CREATE POLICY u ON t FOR UPDATE USING (id > 3)",
        database.name()
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load =
        crate::scene::howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    let told = load.args(["--mode", "merge", "--key", "id"]).arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("1 inserted, 2 updated, 1 unchanged, 0 deleted; 2 held back by a trigger or policy"),
        "{told}"
    );
}

#[test]
fn rows_that_are_kept_from_being_deleted_are_counted_for_themselves() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,old\n2,new\n6,new\n");
    let there = "INSERT INTO t SELECT id, 'old' FROM generate_series(1, 5) id";
    let wanted = "1 inserted, 1 updated, 1 unchanged, 2 deleted; 1 held back by a trigger or policy";
    let warned = "warning: 1 row of public.t that was to be changed or deleted was held back";
    for (major, partitioned) in [(13, false), (15, true), (18, false)] {
        for atomic in ["--atomic=true", "--atomic=false"] {
            let database = Server::shared(major).database();
            let (by, parts) = match partitioned {
                true => (" PARTITION BY RANGE (id)", "CREATE TABLE low PARTITION OF t DEFAULT;"),
                false => ("", ""),
            };
            database.sql(&format!(
                "CREATE TABLE t (id int PRIMARY KEY, note text){by}; {parts} {there}; \
                 CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN RETURN CASE WHEN OLD.id = 3 THEN NULL ELSE OLD END; END $$; \
                 CREATE TRIGGER keep BEFORE DELETE ON {} FOR EACH ROW EXECUTE FUNCTION keep()",
                if partitioned { "low" } else { "t" }
            ));
            let merge = load(&database, &[&source]);
            let merge = merge.args(["--mode", "merge", "--key", "id", "--delete-missing", atomic]);
            let told = merge.run(PATIENCE).expect_code(0).stderr;
            assert!(told.contains(wanted) && told.contains(warned), "PostgreSQL {major}, {atomic}\n{told}");
            assert_eq!(database.value("SELECT count(*) FROM t"), "4");
        }
    }
    // A policy lets the role see all rows and delete some.
    let database = Server::shared(15).database();
    let role = format!("keeper_{}", database.name());
    database.sql(&format!(
        "CREATE TABLE t (id int PRIMARY KEY, note text); {there}; \
         CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE \"{}\" TO {role}; GRANT ALL ON t TO {role}; \
         ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY s ON t FOR SELECT USING (true); \
         CREATE POLICY i ON t FOR INSERT WITH CHECK (true); CREATE POLICY u ON t FOR UPDATE USING (true); \
         CREATE POLICY d ON t FOR DELETE USING (id > 3)",
        database.name()
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load =
        crate::scene::howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
    let merge = load.args(["--mode", "merge", "--key", "id", "--delete-missing"]).arg(&source);
    let told = merge.run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(wanted) && told.contains(warned), "{told}");
}

/// Of arrays there are no arrays, and of ranges no percentile without one: parts are cut all the same.
#[test]
fn rows_are_told_apart_by_keys_of_any_type() {
    let files = Files::new();
    let csv = |value: fn(u64) -> String| {
        (0..60_000).fold("id,n\n".to_owned(), |csv, no| csv + &format!("\"{}\",{no}\n", value(no)))
    };
    let arrays = files.put("arrays.csv", csv(|no| format!("{{{},{no}}}", no % 1000)).as_bytes());
    let ranges = files.put("ranges.csv", csv(|no| format!("[{no},{})", no + 2)).as_bytes());
    for (major, key, source) in [
        (13, "int[]", &arrays),
        (15, "numbers", &arrays),
        (18, "text[]", &arrays),
        (18, "int4range", &ranges),
    ] {
        let database = Server::shared(major).database();
        database.sql(&format!(
            "CREATE DOMAIN numbers AS int[] CHECK (cardinality(VALUE) = 2); CREATE TABLE t (id {key} PRIMARY KEY, n int); \
             CREATE TABLE wanted (id {key} PRIMARY KEY, n int)"
        ));
        let rows = std::fs::read(source).unwrap();
        database.copy_in("COPY wanted FROM STDIN (FORMAT csv, HEADER)", rows).unwrap();
        database.sql("INSERT INTO t SELECT id, -1 FROM wanted WHERE n % 4 = 0");
        let command = load(&database, &[source]).args(["--mode", "merge", "--key", "id", "--jobs", "2"]);
        assert_eq!(changes(&command), [45_000, 15_000, 0, 0, 0], "PostgreSQL {major}, {key}");
        assert_eq!(database.digest("t"), database.digest("wanted"), "PostgreSQL {major}, {key}");
    }
}
