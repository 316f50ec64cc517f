//! Rows of partitioned tables: in which leaf the client puts them, and in which the server's own COPY does.

use crate::rig::{Loader, MIB, Place, job};
use howdah_engine::model::{
    ColumnChoice, EncodeChoice, ErrorKind, Format, Header, PartitionUnit, PartitionsChoice,
};
use howdah_testkit::{MAJORS, asked};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// One way to partition a table by a column.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Hash,
    List,
    Range,
}

use By::{Hash, List, Range};

/// A type of the key, random values of it as an expression over `n`, and how it can partition.
struct Key {
    sql_type: &'static str,
    value: &'static str,
    by: &'static [By],
}

const fn key(sql_type: &'static str, value: &'static str, by: &'static [By]) -> Key {
    Key { sql_type, value, by }
}

/// `rnd`: a random number of 64 bits for each `n`.
const RANDOM: &str = "hashint8extended(n, 7)";

const KEYS: [Key; 25] = [
    key("int2", "(rnd % 32768)::int2", &[Hash, Range]),
    key("int2", "(rnd % 20)::int2", &[List]),
    key("int4", "(rnd % 2147483648)::int4", &[Hash, Range]),
    key("int8", "rnd", &[Hash, Range]),
    key("int8", "rnd / 1152921504606846976", &[List]),
    key("oid", "(rnd & 4294967295)::oid", &[Hash, Range]),
    key("boolean", "rnd > 0", &[Hash, List, Range]),
    key("float4", "CASE rnd % 9 WHEN 0 THEN '-0' ELSE (rnd / 1e7)::float4 END", &[Hash, Range]),
    key("float8", "CASE rnd % 9 WHEN 0 THEN '-0' WHEN 1 THEN 0 ELSE rnd / 1e30 END", &[Hash, Range]),
    key("numeric", "round(rnd / 10::numeric ^ abs(rnd % 12), abs(rnd % 20)::int)", &[Hash, Range]),
    key("numeric", "round((rnd % 10)::numeric / 2, 1 + abs(rnd % 3)::int)", &[List]),
    key(
        "text COLLATE \"C\"",
        "substr('äß€ 😀xyz', 1, 1 + abs(rnd % 9)::int) || md5(n::text)",
        &[Hash, Range],
    ),
    key("text", "left(md5(n::text), 1 + abs(rnd % 30)::int)", &[Hash]),
    key("varchar(40)", "'é' || rnd % 12", &[Hash, List]),
    key("char(9)", "left(md5(n::text), abs(rnd % 9)::int)", &[Hash]),
    key("char(9) COLLATE \"C\"", "left(md5(n::text), 1 + abs(rnd % 9)::int)", &[Range]),
    key("name", "left(md5(n::text), 5)", &[Hash, Range]),
    key("bytea", "decode(md5(n::text), 'hex')", &[Hash, Range]),
    key("date", "'2000-01-01'::date + (rnd % 500000)::int", &[Hash, Range]),
    key("time", "'00:00'::time + rnd % 86400000000 * interval '1 microsecond'", &[Hash, Range]),
    key("timestamp", "'2000-01-01'::timestamp + rnd % 10000000000000000 * interval '1 us'", &[Hash, Range]),
    key(
        "timestamptz",
        "'2000-01-01'::timestamptz + rnd % 10000000000000000 * interval '1 us'",
        &[Hash, Range],
    ),
    key("uuid", "md5(n::text)::uuid", &[Hash, Range]),
    key("mood", "(ARRAY['sad', 'so so', 'it''s', 'gay'])[1 + abs(rnd % 4)]::mood", &[List]),
    key("domain_of_int", "(rnd % 1000)::int", &[Hash, Range]),
];

/// Beside the table `t`, which is loaded, the same as `u` for the server; triggers note rows by name.
const SETUP: &str = "\
    CREATE TYPE mood AS ENUM ('sad', 'so so', 'it''s', 'gay');
    CREATE DOMAIN domain_of_int AS int;
    CREATE TABLE came (name text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.came VALUES (substring(current_query() from 'COPY \"[^\"]+\".\"([^\"]+)\"'));
        RETURN new; END $$;";

const WATCH: &str = "CREATE TRIGGER note BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()";

/// Random values of each key that there is, one in seventeen NULL; no leaf is ever another than the server's.
fn check(major: u32, rows: u64) {
    let mut place = Place::new(major);
    place.database.sql(SETUP);
    for (no, key) in KEYS.iter().enumerate() {
        for by in key.by {
            let values = format!("CASE WHEN n % 17 <> 0 THEN {} END", key.value.replace("rnd", RANDOM));
            place.database.sql(&format!(
                "DROP TABLE IF EXISTS t, u, s; CREATE TABLE s AS SELECT n, ({values})::{} AS k \
                 FROM generate_series(1, {rows}) n",
                key.sql_type
            ));
            for table in ["t", "u"] {
                make(&place, table, key, *by);
            }
            let encode = [EncodeChoice::Auto, EncodeChoice::Csv, EncodeChoice::Binary][no % 3];
            same_as_server(&mut place, encode, &format!("{} by {}", key.sql_type, clause(*by)));
        }
    }
}

fn clause(by: By) -> &'static str {
    match by {
        Hash => "HASH",
        List => "LIST",
        Range => "RANGE",
    }
}

/// Partitions whose bounds are values that occur; those that are in none go to a default one.
fn make(place: &Place, table: &str, key: &Key, by: By) {
    let strategy = clause(by);
    place
        .database
        .sql(&format!("CREATE TABLE {table} (n int, k {}) PARTITION BY {strategy} (k)", key.sql_type));
    let parts = match by {
        Hash => "SELECT format('WITH (MODULUS 6, REMAINDER %s)', r) AS bound FROM generate_series(0, 2) r
                 UNION ALL SELECT format('WITH (MODULUS 12, REMAINDER %s)', r) FROM (VALUES (3), (4), (5), (9), (10), (11)) v(r)",
        List => "SELECT format('IN (%s)', string_agg(coalesce(quote_literal(k), 'NULL'), ', ')) AS bound
                 FROM (SELECT k, dense_rank() OVER (ORDER BY k::text) % 4 AS part FROM s GROUP BY k) v
                 WHERE part < 3 GROUP BY part",
        // Where six sevenths of the rows begin.
        Range => "SELECT format('FROM (%s) TO (%s)', coalesce(quote_literal(a), 'MINVALUE'), quote_literal(b)) AS bound
                  FROM (SELECT lag(k) OVER (ORDER BY k) AS a, k AS b
                        FROM (SELECT (array_agg(k ORDER BY k))[1] AS k FROM (SELECT k, ntile(7) OVER (ORDER BY k) AS tile FROM s
                                                       WHERE k IS NOT NULL) v GROUP BY tile HAVING tile > 1) w) x
                  WHERE a IS DISTINCT FROM b",
    };
    let rest = if by == Hash { "" } else { "EXECUTE 'CREATE TABLE TABLE_rest PARTITION OF TABLE DEFAULT';" };
    let sql = format!(
        "DO $do$ DECLARE bound text; no int := 0; BEGIN
            FOR bound IN {parts} LOOP
                EXECUTE format('CREATE TABLE TABLE_%s PARTITION OF TABLE FOR VALUES %s', no, bound);
                no := no + 1;
            END LOOP;
            {rest} END $do$"
    );
    place
        .database
        .sql(&sql.replace("TABLE_", &format!("{table}_")).replace("OF TABLE", &format!("OF {table}")));
}

/// Loads the rows of `s` into `t`, and by the server into `u`. The leaves hold the same, and hardly a row
/// came through the table.
fn same_as_server(place: &mut Place, encode: EncodeChoice, what: &str) {
    place.database.sql(&watch_some());
    place.database.sql("TRUNCATE came; INSERT INTO u SELECT * FROM s");
    let lines = place.select(
        "SELECT concat_ws(',', n, coalesce('\"' || replace(k::text, '\"', '\"\"') || '\"', '')) FROM s ORDER BY n",
    );
    let file = place.file("s.csv", lines.join("\n") + "\n");
    let mut job = job(&[&file], "t", Format::csv());
    (job.encode, job.chunk_bytes, job.partitions) = (encode, Some(MIB), PartitionsChoice::Direct);
    let loaded = place.loader.load(job);
    assert_eq!(loaded.rows(), lines.len() as u64, "{what}");
    let leaves = |table: &str| {
        place.select(&format!(
            "SELECT n, k::text, split_part(tableoid::regclass::text, '_', 2) FROM {table} ORDER BY n"
        ))
    };
    assert_eq!(leaves("t"), leaves("u"), "{what}");
    let through = place.database.value("SELECT count(*) FROM came WHERE name = 't'");
    let notes = &loaded.plan.as_ref().unwrap().tables[0].notes;
    assert!(
        through.parse::<u64>().unwrap() * 10 <= WATCHED,
        "{what}: {through} through the table; {notes:?}"
    );
}

/// How many rows of each kind are routed.
fn rows() -> u64 {
    asked("HOWDAH_ROUTED_ROWS", WATCHED).max(WATCHED)
}

/// Of so many the way is noted: for each it takes the server longer than for the row itself.
const WATCHED: u64 = 2_000;

fn watch_some() -> String {
    WATCH.replace("EXECUTE", &format!("WHEN (new.n % {} = 0) EXECUTE", rows() / WATCHED))
}

#[test]
fn every_key_finds_the_leaf_that_the_server_would_find_on_postgresql_13() {
    check(13, rows());
}

#[test]
fn every_key_finds_the_leaf_that_the_server_would_find_on_postgresql_15() {
    check(15, rows());
}

#[test]
fn every_key_finds_the_leaf_that_the_server_would_find_on_postgresql_18() {
    check(18, rows());
}

/// Keys of several columns, several levels, open ends, default partitions, leaves with other columns in
/// another order.
const TREES: [&str; 3] = [
    "CREATE TABLE t (n int, a int, b text COLLATE \"C\", c date) PARTITION BY HASH (a, b, c);
     CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 0);
     CREATE TABLE t_1 (c date, b text COLLATE \"C\", gone int, n int, a int);
     ALTER TABLE t_1 DROP gone; ALTER TABLE t ATTACH PARTITION t_1 FOR VALUES WITH (MODULUS 3, REMAINDER 1);
     CREATE TABLE t_2 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 2)",
    "CREATE TABLE t (n int, a int, b text COLLATE \"C\", c date) PARTITION BY RANGE (a, b);
     CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM (MINVALUE, MINVALUE) TO (2, 'm');
     CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (2, 'm') TO (2, MAXVALUE);
     CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (3, 'a') TO (4, MINVALUE);
     CREATE TABLE t_3 PARTITION OF t FOR VALUES FROM (5, MINVALUE) TO (MAXVALUE, MAXVALUE);
     CREATE TABLE t_4 PARTITION OF t DEFAULT",
    "CREATE TABLE t (n int, a int, b text COLLATE \"C\", c date) PARTITION BY LIST (a);
     CREATE TABLE t_0 PARTITION OF t FOR VALUES IN (0, 1, NULL);
     CREATE TABLE t_x PARTITION OF t FOR VALUES IN (2, 3) PARTITION BY RANGE (c);
     CREATE TABLE t_1 PARTITION OF t_x FOR VALUES FROM ('-infinity') TO ('2024-02-01');
     CREATE TABLE t_2 PARTITION OF t_x FOR VALUES FROM ('2024-02-01') TO ('infinity');
     CREATE TABLE t_3 PARTITION OF t_x DEFAULT;
     CREATE TABLE t_y PARTITION OF t DEFAULT PARTITION BY HASH (b);
     CREATE TABLE t_4 PARTITION OF t_y FOR VALUES WITH (MODULUS 2, REMAINDER 0);
     CREATE TABLE t_5 PARTITION OF t_y FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
];

const TREE_ROWS: &str = "CREATE TABLE s AS SELECT n, CASE WHEN n % 13 > 0 THEN n % 7 END AS a, \
    CASE WHEN n % 19 > 0 THEN chr(97 + n % 26) || hashint4(n) END AS b, \
    CASE WHEN n % 23 > 0 THEN '2024-01-01'::date + n % 60 END AS c FROM generate_series(1, ROWS) n";

#[test]
fn keys_of_several_columns_and_levels_find_the_leaf_that_the_server_would_find() {
    for major in MAJORS {
        for tree in TREES {
            let place = Place::new(major);
            let tree_of_server = tree.replace(" t ", " u ").replace(" t_", " u_");
            let fill = TREE_ROWS.replace("ROWS", &rows().to_string());
            place
                .database
                .sql(&format!("{SETUP}; {tree_of_server}; {tree}; {fill}; INSERT INTO u SELECT * FROM s"));
            place.database.sql(&watch_some());
            let lines = place.select("SELECT concat_ws(',', n, coalesce(a::text, ''), coalesce(b, ''), coalesce(c::text, '')) FROM s");
            let file = place.file("s.csv", lines.join("\n"));
            for encode in [EncodeChoice::Csv, EncodeChoice::Text, EncodeChoice::Binary] {
                let mut job = job(&[&file], "t", Format::csv());
                (job.encode, job.chunk_bytes) = (encode, Some(16 << 10));
                job.partitions = PartitionsChoice::Direct;
                assert_eq!(place.loader.load(job).rows(), rows());
                let leaves = |table: &str| {
                    place.select(&format!("SELECT n, a, b, c, split_part(tableoid::regclass::text, '_', 2) FROM {table} ORDER BY n"))
                };
                assert_eq!(leaves("t"), leaves("u"), "{tree}");
                // Leaves that get a few rows of a chunk are left to the server, as is the record that no line
                // ending ends.
                let direct = place.database.value("SELECT count(*) FROM came WHERE name <> 't'");
                assert!(direct.parse::<u64>().unwrap() * 2 > WATCHED, "{direct} {tree}");
                place.database.sql("TRUNCATE t, came");
            }
        }
    }
}

/// What would make a difference if rows did not come through the table.
#[test]
fn rows_go_through_the_table_where_that_is_not_the_same() {
    let place = Place::new(15);
    place.database.sql(SETUP);
    let file = place.file("a.csv", (1..=1000).map(|n| format!("{n},x\n")).collect::<String>());
    for (sql, through) in [
        ("", 0),
        ("CREATE TRIGGER once AFTER INSERT ON t EXECUTE FUNCTION once()", 1000),
        ("CREATE TRIGGER once AFTER INSERT ON t_0 EXECUTE FUNCTION once()", 500),
        ("ALTER TABLE t_0 ALTER c SET DEFAULT 7", 500),
        ("ALTER TABLE t_0 ENABLE ROW LEVEL SECURITY", 500),
    ] {
        place.database.sql(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (a int, b text, c int DEFAULT 5) PARTITION BY RANGE (a);
             CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM (1) TO (501);
             CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (501) TO (2000);
             CREATE OR REPLACE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             {WATCH}; TRUNCATE came; {sql}"
        ));
        let mut job = job(&[&file], "t", Format::csv());
        job.columns = Some(vec!["a".to_owned(), "b".to_owned()]);
        job.partitions = PartitionsChoice::Direct;
        let loaded = place.loader.load(job);
        assert_eq!(loaded.rows(), 1000, "{sql}");
        assert_eq!(place.select("SELECT count(*), sum(c) FROM t"), ["1000|5000"], "{sql}");
        let came = place.database.value("SELECT count(*) FROM came WHERE name = 't'");
        assert_eq!(came, through.to_string(), "{sql}");
    }
}

#[test]
fn the_server_routes_all_rows_where_it_is_asked_to_or_the_key_is_its_own_business() {
    let place = Place::new(15);
    place.database.sql(SETUP);
    let file = place.file("a.csv", (1..=1000).map(|n| format!("{n},x\n")).collect::<String>());
    for (by, choice, note) in [
        ("LIST (a)", PartitionsChoice::Parent, "--partitions parent"),
        ("LIST ((a % 2))", PartitionsChoice::Direct, "by an expression"),
        ("RANGE (b)", PartitionsChoice::Direct, "the server alone knows how values of b are compared"),
        ("LIST (c)", PartitionsChoice::Direct, "the file does not fill c"),
    ] {
        place.database.sql(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (a int, b text COLLATE \"en-x-icu\", c int) PARTITION BY {by};
             CREATE TABLE t_0 PARTITION OF t DEFAULT; {WATCH}; TRUNCATE came"
        ));
        let mut job = job(&[&file], "t", Format::csv());
        job.columns = Some(vec!["a".to_owned(), "b".to_owned()]);
        job.partitions = choice;
        let loaded = place.loader.load(job);
        assert_eq!(loaded.rows(), 1000, "{by}");
        assert_eq!(place.select("SELECT name, count(*) FROM came GROUP BY name"), ["t|1000"], "{by}");
        let notes = &loaded.plan.unwrap().tables[0].notes;
        assert!(notes.iter().any(|said| said.contains(note)), "{by}: {notes:?}");
    }
}

/// Between plan and load others may do anything to the partitions.
#[test]
fn partitions_that_change_behind_the_plan_cost_time_and_no_rows() {
    let changes = [
        "ALTER TABLE t DETACH PARTITION t_0; CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (1) TO (501)",
        "DROP TABLE t_0; CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM (1) TO (501)",
        "ALTER TABLE t_0 RENAME TO t_2; CREATE TABLE t_0 (a int, b text)",
        "ALTER TABLE t DETACH PARTITION t_0; ALTER TABLE t DETACH PARTITION t_1;
         ALTER TABLE t ATTACH PARTITION t_1 FOR VALUES FROM (1) TO (501);
         ALTER TABLE t ATTACH PARTITION t_0 FOR VALUES FROM (501) TO (2000)",
    ];
    for major in MAJORS {
        for change in changes {
            let place = Place::new(major);
            place.database.sql(
                "CREATE TABLE t (a int, b text) PARTITION BY RANGE (a);
                 CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM (1) TO (501);
                 CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (501) TO (2000)",
            );
            let file = place.file("a.csv", (1..=1000).map(|n| format!("{n},x\n")).collect::<String>());
            let mut job = job(&[&file], "t", Format::csv());
            job.partitions = PartitionsChoice::Direct;
            let loaded = place.loader.load_after(job, |plan| {
                assert_eq!(plan.tables[0].route.as_ref().unwrap().leaves.len(), 2);
                place.database.sql(change);
            });
            assert_eq!(loaded.rows(), 1000, "{change}");
            assert_eq!(place.select("SELECT count(*), sum(a) FROM t"), ["1000|500500"], "{change}");
        }
    }
}

#[test]
fn a_row_without_a_partition_is_told_with_its_record_and_what_to_do() {
    let place = Place::new(15);
    place.database.sql(
        "CREATE TABLE t (a int, b text) PARTITION BY RANGE (a);
         CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM (1) TO (501)",
    );
    let file = place.file("a.csv", (1..=600).map(|n| format!("{n},x\n")).collect::<String>());
    for partitions in [PartitionsChoice::Direct, PartitionsChoice::Parent] {
        let mut job = job(&[&file], "t", Format::csv());
        job.partitions = partitions;
        let error = place.loader.load(job).refusal(ErrorKind::Server);
        assert_eq!(error.place().record, Some(501), "{error}");
        assert!(error.message().contains("no partition"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("DEFAULT")), "{:?}", error.hint());
    }
}

/// Without indexes the server's own search costs less than the check of each leaf's constraint.
#[test]
fn rows_are_copied_into_their_leaves_where_indexes_are_kept() {
    let place = Place::new(15);
    place.database.sql(SETUP);
    let file = place.file("a.csv", (1..=1000).map(|n| format!("{n},x\n")).collect::<String>());
    for (key, by) in [("", "t"), ("PRIMARY KEY", "t_0"), ("", "t")] {
        place.database.sql(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (a int {key}, b text) PARTITION BY RANGE (a);
             CREATE TABLE t_0 PARTITION OF t DEFAULT; {WATCH}; TRUNCATE came"
        ));
        assert_eq!(place.loader.load(job(&[&file], "t", Format::csv())).rows(), 1000);
        assert_eq!(place.select("SELECT name, count(*) FROM came GROUP BY name"), [format!("{by}|1000")]);
    }
}

#[test]
fn missing_partitions_are_made_by_day_or_month_while_rows_come() {
    for major in MAJORS {
        for (sql_type, unit, made) in [
            ("date", PartitionUnit::Day, 59),
            ("timestamp", PartitionUnit::Day, 59),
            ("timestamptz", PartitionUnit::Month, 2),
        ] {
            let place = Place::new(major);
            place.database.sql(&format!(
                "CREATE TABLE u (a int GENERATED ALWAYS AS IDENTITY, b text NOT NULL CHECK (b <> ''), c {sql_type});
                 CREATE TABLE t (a int, b text NOT NULL CHECK (b <> ''), c {sql_type}, d int DEFAULT 7) PARTITION BY RANGE (c);
                 CREATE INDEX ON t (a); CREATE TABLE t_old PARTITION OF t FOR VALUES FROM (MINVALUE) TO ('2024-01-01');
                 CREATE TABLE t_x PARTITION OF t FOR VALUES FROM ('2024-02-10') TO ('2024-02-11');
                 ALTER DATABASE {} SET timezone = 'UTC'",
                place.database.name()
            ));
            if unit == PartitionUnit::Month {
                place.database.sql("DROP TABLE t_x");
            }
            // From the last of December to the last of February, days mixed, in many chunks.
            let day = |n: u32| {
                let day = n * 17 % 61;
                match day {
                    0 => "2023-12-31".to_owned(),
                    1..=31 => format!("2024-01-{day:02}"),
                    _ => format!("2024-02-{:02}", (day - 31).min(29)),
                }
            };
            let text: String = (0..3000).map(|n| format!("{n},x,{}\n", day(n))).collect();
            let file = place.file("a.csv", &text);
            let mut job = job(&[&file], "t", Format::csv());
            job.columns = Some(["a", "b", "c"].map(str::to_owned).to_vec());
            (job.create_partitions, job.chunk_bytes) = (Some(unit), Some(1000));
            job.partitions = PartitionsChoice::Direct;
            assert_eq!(place.loader.load(job).rows(), 3000);
            let leaves = "SELECT count(*) FROM pg_inherits WHERE inhparent = 't'::regclass";
            let there = if unit == PartitionUnit::Day { made + 2 } else { made + 1 };
            assert_eq!(place.database.value(leaves), there.to_string(), "{sql_type}");
            let same = "SELECT count(*), sum(a), sum(d), count(*) FILTER (WHERE b = 'x') FROM t";
            assert_eq!(place.select(same), ["3000|4498500|21000|3000"]);
            let named = "SELECT count(*) FROM t WHERE tableoid::regclass::text ~ '^t_2024_0[12]'";
            assert!(place.database.value(named).parse::<u32>().unwrap() > 2500);
            // Leaves have what the table has.
            let indexes = "SELECT count(*) FROM pg_index i JOIN pg_inherits h ON h.inhrelid = i.indrelid
                           WHERE h.inhparent = 't'::regclass AND i.indisvalid";
            assert_eq!(place.database.value(indexes), there.to_string());
        }
    }
}

#[test]
fn partitions_are_made_only_where_that_is_possible() {
    let place = Place::new(18);
    let file = place.file("a.csv", "1,2024-01-01\n");
    for (sql, message) in [
        ("CREATE TABLE t (a int, c date)", "is not partitioned"),
        ("CREATE TABLE t (a int, c date) PARTITION BY LIST (c)", "not partitioned by RANGE"),
        ("CREATE TABLE t (a int, c date) PARTITION BY RANGE (a)", "by a date or timestamp"),
        (
            "CREATE TABLE t (a int, c date) PARTITION BY RANGE (c); CREATE TABLE d PARTITION OF t DEFAULT",
            "default",
        ),
        ("CREATE TABLE t (a int, b date, c date DEFAULT now()) PARTITION BY RANGE (c)", "does not fill c"),
    ] {
        place.database.sql(&format!("DROP TABLE IF EXISTS t; {sql}"));
        let mut job = job(&[&file], "t", Format::csv());
        job.columns = sql.contains(" b date").then(|| ["a", "b"].map(str::to_owned).to_vec());
        job.create_partitions = Some(PartitionUnit::Day);
        let error = place.loader.load(job).refusal(ErrorKind::Usage);
        assert!(error.message().contains(message), "{error}");
    }
}

/// The options were right when the load began.
#[test]
fn a_default_partition_that_comes_behind_the_plan_is_told_by_the_server() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, c date) PARTITION BY RANGE (c)");
    let file = place.file("a.csv", "1,2024-01-01\n2,2024-01-02\n");
    let mut job = job(&[&file], "t", Format::csv());
    job.create_partitions = Some(PartitionUnit::Day);
    let loaded = place.loader.load_after(job, |_| {
        place
            .database
            .sql("CREATE TABLE t_rest PARTITION OF t DEFAULT; INSERT INTO t VALUES (0, '2024-01-02')");
    });
    let error = loaded.refusal(ErrorKind::Server);
    assert_eq!((error.sqlstate(), error.place().file.is_some()), (Some("23514"), true), "{error}");
    assert!(error.message().contains("default partition"), "{error}");
}

/// A partition that is made locks the table that a foreign key refers to against writers.
#[test]
fn writers_of_a_table_that_is_referred_to_do_not_wait_for_partitions() {
    let place = Place::new(18);
    place.database.sql(
        "CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2); \
         CREATE TABLE t (a int REFERENCES parent, c date) PARTITION BY RANGE (c)",
    );
    let file = place.file("a.csv", "1,2024-01-01\n2,2024-01-02\n");
    let over = AtomicBool::new(false);
    let longest = std::thread::scope(|scope| {
        scope
            .spawn(|| place.database.sql("BEGIN; INSERT INTO parent VALUES (3); SELECT pg_sleep(5); COMMIT"));
        let naps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        while place.database.value(naps) == "0" {
            std::thread::sleep(Duration::from_millis(5));
        }
        let writer = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !over.load(Relaxed) {
                let start = Instant::now();
                place.database.sql("UPDATE parent SET id = 1 WHERE id = 1");
                longest = longest.max(start.elapsed());
            }
            longest
        });
        let mut job = job(&[&file], "t", Format::csv());
        (job.create_partitions, job.arrival.lock_timeout_ms) = (Some(PartitionUnit::Day), 300);
        let loaded = place.loader.load(job);
        over.store(true, Relaxed);
        assert_eq!(loaded.rows(), 2);
        writer.join().unwrap()
    });
    assert!(longest < Duration::from_secs(3), "a writer waited for {longest:?}");
}

/// Two loads of other files meet at the same days.
#[test]
fn two_loads_at_once_make_each_partition_once() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, c date) PARTITION BY RANGE (c)");
    let file = |name: &str, from: u32| {
        let text: String = (0..2000).map(|n| format!("{},2024-01-{:02}\n", from + n, 1 + n / 100)).collect();
        place.file(name, text)
    };
    let files = [file("a.csv", 0), file("b.csv", 10_000)];
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| {
                let mut job = job(&[file], "t", Format::csv());
                (job.create_partitions, job.chunk_bytes) = (Some(PartitionUnit::Day), Some(500));
                assert_eq!(Loader::new(&place.database).load(job).rows(), 2000);
            });
        }
    });
    let there = "SELECT count(*), (SELECT count(*) FROM pg_inherits WHERE inhparent = 't'::regclass) FROM t";
    assert_eq!(place.select(there), ["4000|20"]);
}

/// Fields that the table lacks shift those behind them, in the file and not in what is sent.
#[test]
fn fields_that_are_left_out_do_not_shift_the_key() {
    let place = Place::new(15);
    place.database.sql(SETUP);
    place.database.sql(
        "CREATE TABLE t (id bigserial, day date, a text) PARTITION BY RANGE (day);
         CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-01-05'); CREATE INDEX ON t (id)",
    );
    place.database.sql(WATCH);
    let row = |n: u32| format!("{n},\"x, {n}\",2024-01-{:02},gone\n", 1 + n % 8);
    let text = format!("gone,a,day,also\n{}", (0..4000).map(row).collect::<String>());
    let file = place.file("a.csv", text);
    for encode in [EncodeChoice::Csv, EncodeChoice::Binary] {
        let mut job = job(&[&file], "t", Format { header: Header::Names, ..Format::csv() });
        (job.ignore_extra, job.encode) = (true, encode);
        (job.partitions, job.create_partitions) = (PartitionsChoice::Direct, Some(PartitionUnit::Day));
        assert_eq!(place.loader.load(job).rows(), 4000);
        let rows =
            "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE a = 'x, ' || substr(a, 4)) FROM t";
        assert_eq!(place.select(rows), ["4000|4000|4000"]);
        let leaves =
            "SELECT count(DISTINCT tableoid), count(*) FILTER (WHERE tableoid = 't_0'::regclass) FROM t";
        assert_eq!(place.select(leaves), ["5|2000"], "{encode:?}");
        let direct = "SELECT count(*) FROM came WHERE name = 't_0'";
        assert_eq!(place.database.value(direct), "2000", "{encode:?}");
        place.database.sql("TRUNCATE t, came");
    }
}

/// Times without an offset are in the session's zone, and partitions in UTC.
#[test]
fn times_of_the_sessions_own_zone_get_their_partitions() {
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET TimeZone = %L', current_database(), 'America/New_York'); END $$;
             CREATE TABLE t (a int, c timestamptz) PARTITION BY RANGE (c)",
        );
        let file = place.file(
            "a.csv",
            "1,2024-01-01 18:00\n2,2024-01-01 22:00:00.5\n3,2024-02-01 12:00+00\n4,2024-03-10\n5,2024-03-10 19:59:59\n",
        );
        let mut job = job(&[&file], "t", Format::csv());
        job.create_partitions = Some(PartitionUnit::Day);
        assert_eq!(Loader::new(&place.database).load(job).rows(), 5);
        let leaves = "SELECT string_agg(tableoid::regclass::text, ' ' ORDER BY a) FROM t";
        let wanted = "t_2024_01_01 t_2024_01_02 t_2024_02_01 t_2024_03_10 t_2024_03_10";
        assert_eq!(place.database.value(leaves), wanted, "{major}");
        let made = "SELECT count(*) FROM pg_inherits WHERE inhparent = 't'::regclass";
        assert_eq!(place.database.value(made), "4", "{major}");
    }
}

#[test]
fn what_only_the_server_reads_gets_no_partitions_and_is_refused() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a text, c date) PARTITION BY RANGE (c)");
    let file = place.file("a.csv", "a,2024-01-01\n");
    let latin = Format { encoding: Some("LATIN1".to_owned()), ..Format::csv() };
    let forced = Format { force_null: ColumnChoice::Named(vec!["a".to_owned()]), ..Format::csv() };
    for format in [latin, forced] {
        let mut job = job(&[&file], "t", format);
        job.create_partitions = Some(PartitionUnit::Day);
        let error = place.loader.load(job).refusal(ErrorKind::Usage);
        assert!(error.hint().is_some_and(|hint| hint.contains("--format")), "{error}");
    }
}
