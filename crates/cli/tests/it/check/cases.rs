//! Tables of all sorts, and what of them cannot be checked.

use super::{assert_forgotten, check, places, report, state};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, MAJORS, Server};
use serde_json::Value;

fn scene(major: u32, sql: &str, csv: &str) -> (Database, Files) {
    let (database, files) = (Server::shared(major).database(), Files::new());
    database.sql(sql);
    files.put("a.csv", csv.as_bytes());
    (database, files)
}

/// `(SQLSTATE, constraint or column, record)` of all that is told.
fn kinds(told: &Value) -> Vec<(String, String, u64)> {
    let kind = |(sqlstate, column, constraint, record): super::Told| {
        (sqlstate, column.or(constraint).unwrap_or_default(), record.unwrap())
    };
    places(told).into_iter().map(kind).collect()
}

fn kind(sqlstate: &str, what: &str, record: u64) -> (String, String, u64) {
    (sqlstate.to_owned(), what.to_owned(), record)
}

fn not_checked(told: &Value) -> String {
    let told = told["not_checked"].as_array().unwrap();
    told.iter()
        .map(|not| format!("{}: {}\n", not["what"].as_str().unwrap(), not["reason"].as_str().unwrap()))
        .collect()
}

#[test]
fn an_expression_that_fails_for_a_row_makes_that_row_bad_and_no_other() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE TABLE t (r int, code int, CONSTRAINT part CHECK (100 / code > 20), \
                 place int GENERATED ALWAYS AS (7 / (code - 3)) STORED NOT NULL)",
            "r,code\n1,1\n2,0\n3,9\n4,3\n5,\n",
        );
        let told = report(&check(&database, &[&files.path().join("a.csv")]), 3);
        let found = kinds(&told);
        for expected in [
            kind("22012", "part", 2),
            kind("23514", "part", 3),
            kind("22012", "place", 4),
            kind("23502", "place", 5),
        ] {
            assert!(found.contains(&expected), "{expected:?} {told:#}");
        }
        assert_eq!((&told["rows_bad"], not_checked(&told).as_str()), (&4.into(), ""), "{told:#}");
        assert_forgotten(&database);
    }
}

/// Also of one that is no key, and with whatever a function fails.
#[test]
fn an_index_that_cannot_be_computed_for_a_row_makes_that_row_bad() {
    let (database, files) = scene(
        15,
        "CREATE FUNCTION deep(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
             IF $1 = 5 THEN RETURN public.deep($1); END IF; ASSERT $1 <> 6; RETURN true; END $$; \
         CREATE TABLE t (r int, code int, CONSTRAINT deep CHECK (deep(code))); \
         CREATE INDEX quotient ON t ((10 / code)); CREATE INDEX part ON t (r) WHERE 10 / (code - 3) > 0",
        "r,code\n1,1\n2,0\n3,9\n4,3\n5,5\n6,6\n",
    );
    let told = report(&check(&database, &[&files.path().join("a.csv")]), 3);
    let mut found = kinds(&told);
    found.sort_by_key(|(.., record)| *record);
    let expected = [
        kind("22012", "quotient", 2),
        kind("22012", "part", 4),
        kind("54001", "deep", 5),
        kind("P0004", "deep", 6),
    ];
    assert_eq!(found, expected, "{told:#}");
    assert_eq!(not_checked(&told), "", "{told:#}");
}

#[test]
fn partitions_that_take_no_row_are_told_and_so_are_bounds_of_a_partition() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE TABLE t (a int, b text, UNIQUE (a, b)) PARTITION BY LIST (b); \
             CREATE TABLE t_x PARTITION OF t FOR VALUES IN ('x', NULL) PARTITION BY HASH (a); \
             CREATE TABLE t_x_0 PARTITION OF t_x FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE TABLE t_y PARTITION OF t (CONSTRAINT own CHECK (a > 0)) FOR VALUES IN ('y'); \
             INSERT INTO t VALUES (7, 'y')",
            "a,b\n1,y\n2,z\n7,y\n",
        );
        let source = files.path().join("a.csv");
        let told = report(&check(&database, &[&source]), 3);
        assert_eq!(kinds(&told), [kind("23505", "t_a_b_key", 3), kind("23514", "t", 2)], "{told:#}");
        assert!(not_checked(&told).contains("constraint own of partition public.t_y"), "{told:#}");
        // Of one partition, all of the others' rows are out of bounds.
        let of_partition =
            howdah("check").args(["--json", "--table", "t_y", "--to", &database.conninfo()]).arg(&source);
        let told = report(&of_partition, 3);
        assert_eq!(kinds(&told), [kind("23505", "t_y_a_b_key", 3), kind("23514", "t_y", 2)], "{told:#}");
    }
}

#[test]
fn what_only_storing_would_tell_is_named() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE EXTENSION IF NOT EXISTS btree_gist; \
             CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TABLE t (id bigserial PRIMARY KEY, a int NOT NULL, b int, CONSTRAINT apart EXCLUDE USING gist (id WITH =)); \
             CREATE TRIGGER drops BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f(); \
             CREATE TRIGGER never BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()",
            "a,b\n1,1\n1,2\n",
        );
        let before = state(&database);
        let told = report(&check(&database, &[&files.path().join("a.csv")]), 0);
        let not = not_checked(&told);
        for what in [
            "unique key t_pkey: column id takes a number",
            "exclusion constraint apart",
            "trigger drops",
            "NOT NULL of column a: a BEFORE INSERT trigger",
        ] {
            assert!(not.contains(what), "{what}: {told:#}");
        }
        assert!(!not.contains("never"), "{told:#}");
        assert_eq!(state(&database), before);
    }
}

/// Before PostgreSQL 18 what is turned off makes a plan look endless.
#[test]
fn ways_that_the_planner_is_forbidden_do_not_keep_keys_from_being_checked() {
    let rows: String = (1..=2000).map(|no| format!("{no},{no}\n")).collect();
    for major in [13, 15, 18] {
        let sql = "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (7, 7)";
        let (database, files) = scene(major, sql, &format!("id,n\n{rows}9,9\n"));
        let source = files.path().join("a.csv");
        for off in ["seqscan", "sort", "hashjoin=off -c enable_mergejoin"] {
            let to = format!("{} options='-c enable_{off}=off'", database.conninfo());
            let run = |verb: &str, more: &[&str]| {
                let run = howdah(verb).args(["--json", "--table", "t", "--to", &to]).args(more);
                run.arg(&source).run(PATIENCE)
            };
            let told: Value = serde_json::from_str(&run("check", &[]).expect_code(3).stdout).unwrap();
            assert_eq!(kinds(&told), [kind("23505", "t_pkey", 7), kind("23505", "t_pkey", 2001)], "{off}");
            assert_eq!(not_checked(&told), "", "{off}");
            for arrival in [&["--atomic"][..], &[]] {
                let told =
                    run("load", &[arrival, &["--on-error", "skip", "--known", "load", "--force"]].concat());
                let told: Value = serde_json::from_str(&told.expect_code(3).stdout).unwrap();
                assert_eq!(told["rows_rejected"], 2, "{off} {arrival:?}");
                database.sql("DELETE FROM t WHERE id <> 7");
            }
        }
    }
}

#[test]
fn what_exclusion_constraints_forbid_is_found() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE EXTENSION IF NOT EXISTS btree_gist; \
             CREATE TABLE t (room int, at int4range, off bool, \
                 CONSTRAINT booked EXCLUDE USING gist (room WITH =, at WITH &&) WHERE (NOT off)); \
             INSERT INTO t VALUES (1, '[1,5)', false), (2, '[1,5)', true)",
            "room,at,off\n1,\"[4,6)\",f\n1,\"[5,7)\",f\n1,\"[6,9)\",f\n2,\"[1,5)\",f\n2,\"[2,3)\",t\n3,,f\n3,,f\n",
        );
        let told = report(&check(&database, &[&files.path().join("a.csv")]), 3);
        let booked = |record| kind("23P01", "booked", record);
        assert_eq!(kinds(&told), [booked(1), booked(3)], "{told:#}");
        assert_eq!(not_checked(&told), "", "{told:#}");
    }
    let (database, files) = scene(
        18,
        "CREATE EXTENSION btree_gist; \
         CREATE TABLE t (room int, at int4range, PRIMARY KEY (room, at WITHOUT OVERLAPS)); INSERT INTO t VALUES (1, '[1,5)')",
        "room,at\n1,\"[4,6)\"\n2,\"[1,5)\"\n2,\"[2,3)\"\n",
    );
    let told = report(&check(&database, &[&files.path().join("a.csv")]), 3);
    assert_eq!(kinds(&told), [kind("23P01", "t_pkey", 1), kind("23P01", "t_pkey", 3)], "{told:#}");
}

/// Of records that do not go together the first stays that is not bad itself.
#[test]
fn a_check_names_the_records_that_a_load_rejects() {
    let text = "id,k,at\n1,1,\"[1,5)\"\n2,1,\"[4,8)\"\n3,1,\"[20,30)\"\n-4,2,\"[40,50)\"\n5,2,\"[45,55)\"\n6,2,\"[54,60)\"\n\
                7,3,\"[70,75)\"\n8,4,\"[74,77)\"\n9,3,\"[76,79)\"\n";
    let make = "CREATE EXTENSION IF NOT EXISTS btree_gist; DROP TABLE IF EXISTS t; \
                CREATE TABLE t (id int CHECK (id > 0), k int, at int4range, CONSTRAINT one UNIQUE (k), \
                    CONSTRAINT apart EXCLUDE USING gist (at WITH &&))";
    for major in [13, 18] {
        let (database, files) = scene(major, make, text);
        let source = files.path().join("a.csv");
        let bad = files.path().join("bad.csv");
        let told = report(&check(&database, &[&source]).arg("--reject-file").arg(&bad), 3);
        let mut named: Vec<u64> = kinds(&told).into_iter().map(|(.., record)| record).collect();
        named.sort_unstable();
        named.dedup();
        let written = std::fs::read_to_string(&bad).unwrap();
        assert_eq!(written.lines().count(), named.len() + 1, "{written}");
        for options in [&["--atomic"][..], &[]] {
            database.sql(make);
            let load =
                howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--on-error", "skip"]);
            load.args(options).args(["--known", "load"]).arg(&source).run(PATIENCE).expect_code(3);
            let rejected = database.rows(
                "SELECT record FROM howdah.reject WHERE job_id = (SELECT job_id FROM howdah.job ORDER BY started_at DESC LIMIT 1) \
                 ORDER BY record",
            );
            let rejected: Vec<u64> =
                rejected.iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect();
            assert_eq!(named, rejected, "PostgreSQL {major} {options:?} {told:#}");
        }
    }
}

#[test]
fn a_check_that_was_killed_is_not_resumed_as_a_load() {
    let (database, files) = scene(
        15,
        "CREATE FUNCTION slow(int) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT pg_sleep(600) IS NOT NULL'; \
         CREATE TABLE t (a int CHECK (slow(a)))",
        "a\n1\n",
    );
    let mut running = check(&database, &[&files.path().join("a.csv")]).spawn();
    let asks =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    while running.is_running() && database.value(asks) == "0" {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.kill();
    let to = database.conninfo();
    let refused = howdah("resume").args(["check-", "--to", &to]).run(PATIENCE).expect_code(2);
    assert!(refused.stderr.contains("is a check"), "{}", refused.stderr);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

#[test]
fn a_role_that_may_not_read_is_told_the_grant_and_the_rest_is_checked() {
    let (database, files) = scene(
        15,
        "CREATE TABLE other (id int PRIMARY KEY); CREATE TABLE t (id int PRIMARY KEY, o int REFERENCES other, CHECK (o > 0))",
        "id,o\n1,1\n1,-1\n",
    );
    let role = format!("checks_{}", database.name());
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT INSERT ON t TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
        database.name()
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let command =
        howdah("check").args(["--json", "--table", "t", "--to", &to]).arg(files.path().join("a.csv"));
    let told = report(&command, 3);
    assert_eq!(kinds(&told), [kind("23505", "t_pkey", 2), kind("23514", "t_o_check", 2)], "{told:#}");
    let not = not_checked(&told);
    for table in ["t", "other"] {
        assert!(not.contains(&format!("GRANT SELECT ON \"public\".\"{table}\" TO")), "{table}: {told:#}");
    }
    let warned = told["warnings"].to_string();
    assert!(warned.contains("t_o_fkey (violates") && warned.contains("is not checked: role"), "{told:#}");
    database.sql(&format!("GRANT SELECT ON t, other TO {role}"));
    let told = report(&command, 3);
    assert_eq!(kinds(&told).len(), 4, "{told:#}");
    assert_eq!(not_checked(&told), "");
    database.sql("ALTER TABLE other ENABLE ROW LEVEL SECURITY");
    let told = report(&command, 3);
    let not = not_checked(&told);
    assert!(not.contains("t_o_fkey") && not.contains("policies may hide rows"), "{told:#}");
    database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn a_table_that_is_to_be_made_is_checked_by_what_would_be_made() {
    let csv: String = (1..3000)
        .map(|no| format!("{no},{}\n", if no == 2990 { "text".to_owned() } else { no.to_string() }))
        .collect();
    let (database, files) = scene(15, "", &format!("id,value\n{csv}7,7\n,1\n"));
    let source = files.path().join("a.csv");
    let command = check(&database, &[&source]).args(["--create", "--primary-key", "id"]);
    let told = report(&command, 3);
    // The column that began with numbers becomes text, as it would in a load.
    assert_eq!(kinds(&told), [kind("23502", "id", 3001), kind("23505", "primary key", 3000)], "{told:#}");
    assert_eq!(database.value("SELECT to_regclass('t') IS NULL"), "t");
    assert_forgotten(&database);
    let without = check(&database, &[&source]).run(PATIENCE).expect_code(1);
    assert!(without.stderr.contains("--create"), "{}", without.stderr);
}

#[test]
fn what_the_mode_makes_of_the_rows_that_are_there_counts() {
    let (database, files) = scene(
        15,
        "CREATE TABLE t (id int PRIMARY KEY, b int UNIQUE); INSERT INTO t VALUES (1, 1), (2, 2)",
        "id,b\n1,1\n3,3\n3,4\n",
    );
    let source = files.path().join("a.csv");
    let told = |options: &[&str]| kinds(&report(&check(&database, &[&source]).args(options), 3));
    assert_eq!(
        told(&[]),
        [kind("23505", "t_b_key", 1), kind("23505", "t_pkey", 1), kind("23505", "t_pkey", 3)]
    );
    assert_eq!(told(&["--mode", "truncate"]), [kind("23505", "t_pkey", 3)]);
    assert_eq!(told(&["--mode", "merge", "--key", "id"]), [kind("23505", "t_pkey", 3)]);
    report(&check(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--keep", "last"]), 0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

#[test]
fn records_that_do_not_count_repeat_no_other_key() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE TABLE t (id int PRIMARY KEY, b int UNIQUE, UNIQUE (id, b))",
            "id,b\n3,3\n3,3\n4,4\n5,4\n5,6\n",
        );
        let source = files.path().join("a.csv");
        let keep =
            |which| check(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--keep", which]);
        report(&keep("last"), 0);
        assert_eq!(kinds(&report(&keep("first"), 3)), [kind("23505", "t_b_key", 4)], "PostgreSQL {major}");
    }
}

#[test]
fn bad_records_are_written_to_a_file_that_can_be_mended_and_loaded() {
    for name in ["a.csv", "a.csv.gz"] {
        let mut csv = "id,b,c\n".to_owned();
        (1..=4000)
            .for_each(|no| csv += &format!("{no},\"b\n{no}\",{}\n", if no % 1000 == 0 { 0 } else { 1 }));
        csv += "x,b,1\n17,b,1\n18,b,0\n";
        let (database, files) =
            scene(15, "CREATE TABLE t (id int PRIMARY KEY, b text, c int CHECK (c > 0))", "");
        let bytes = if name.ends_with("gz") { crate::scene::gzip(csv.as_bytes()) } else { csv.into_bytes() };
        let source = files.put(name, &bytes);
        let bad = files.path().join("bad.csv");
        let command =
            check(&database, &[&source]).args(["--format", "csv", "--header"]).arg("--reject-file").arg(&bad);
        let told = report(&command, 3);
        assert_eq!(told["rows_bad"], 7, "{told:#}");
        let mut expected =
            vec![kind("22P02", "id", 4001), kind("23505", "t_pkey", 4002), kind("23505", "t_pkey", 4003)];
        expected.extend([1000, 2000, 3000, 4000, 4003].map(|record| kind("23514", "t_c_check", record)));
        assert_eq!(kinds(&told), expected, "{told:#}");
        let byte = |finding: &Value| finding["first"][0]["byte"].as_u64();
        assert!(
            told["findings"].as_array().unwrap().iter().all(|finding| byte(finding).is_some()),
            "{told:#}"
        );
        let written = std::fs::read_to_string(&bad).unwrap();
        let wanted: String = (1..=4).map(|no| format!("{0},\"b\n{0}\",0\n", no * 1000)).collect();
        assert_eq!(written, format!("\"id\",\"b\",\"c\"\n{wanted}x,b,1\n17,b,1\n18,b,0\n"));
        assert_forgotten(&database);
    }
}

/// Nobody has read the keys of records that COPY has refused.
#[test]
fn a_foreign_key_that_may_lead_to_a_refused_record_is_told_as_such() {
    let (table, bad) = ("CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t)", "id,up\n1,\n4,x\n5,4\n");
    for (csv, more) in
        [(bad, ", unless it is in the 1 record that was refused for it"), ("id,up\n1,\n5,4\n", "")]
    {
        let (database, files) = scene(15, table, csv);
        let told = report(&check(&database, &[&files.path().join("a.csv")]), 3);
        let findings = told["findings"].as_array().unwrap();
        let foreign = findings.iter().find(|finding| finding["sqlstate"] == "23503").unwrap();
        let reason = format!("violates foreign key t_up_fkey: public.t has no such row{more}");
        assert_eq!(foreign["reason"], reason, "{told:#}");
    }
}

#[test]
fn records_of_several_files_meet_and_a_pipe_is_read_too() {
    let (database, files) =
        scene(18, "CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t)", "id,up\n1,3\n2,9\n");
    let (a, b) = (files.path().join("a.csv"), files.put("b.csv", b"id,up\n3,\n1,\n"));
    let told = report(&check(&database, &[&a, &b]), 3);
    assert_eq!(kinds(&told), [kind("23503", "t_up_fkey", 2), kind("23505", "t_pkey", 2)], "{told:#}");
    let repeated =
        told["findings"].as_array().unwrap().iter().find(|finding| finding["sqlstate"] == "23505").unwrap();
    assert_eq!(repeated["first"][0]["file"], b.to_str().unwrap());
    assert_eq!(
        (&repeated["first"][0]["first_file"], &repeated["first"][0]["first_record"]),
        (&a.to_str().unwrap().into(), &1.into())
    );
    let piped = howdah("check")
        .args(["--json", "--table", "t", "--to", &database.conninfo(), "-"])
        .stdin("id,up\n1,1\n1,1\n");
    assert_eq!(kinds(&report(&piped, 3)), [kind("23505", "t_pkey", 2)]);
}

#[test]
fn people_get_a_report_to_read() {
    let (database, files) =
        scene(15, "CREATE TABLE t (id int PRIMARY KEY, c int CHECK (c > 0))", "id,c\n1,1\n1,2\nx,1\n2,-1\n");
    let command = howdah("check").args(["--table", "t", "--to", &database.conninfo(), "a.csv"]);
    let finished = command.current_dir(files.path()).run(PATIENCE).expect_code(3);
    for line in [
        "file   a.csv -> public.t: read 4 = good 1 + bad 3",
        "bad    1 record for public.t, column id (SQLSTATE 22P02): the server says: invalid input syntax for type integer: \"...\"",
        "       a.csv, line 4, record 3, byte 13",
        "bad    1 record for public.t (SQLSTATE 23505): repeats a value of unique key t_pkey within the files",
        "       a.csv, line 3, record 2, byte 9, as record 1",
        "total  read 4 = good 1 + bad 3; nothing was stored",
    ] {
        assert!(finished.stdout.contains(line), "{line}\n{}", finished.stdout);
    }
}

#[test]
fn rows_are_looked_at_as_a_merge_would_leave_them() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE TABLE t (id int PRIMARY KEY, a int, b int NOT NULL DEFAULT 0, UNIQUE (a, b), \
                 CONSTRAINT below CHECK (a < b)); \
             INSERT INTO t VALUES (1, 1, 10), (2, 2, 20), (3, 3, 7)",
            // The first keeps its 10, the second meets the row of (3, 7) only with another's, the third is
            // new and has the default.
            "id,a\n1,5\n2,3\n4,5\n3,9\n",
        );
        let source = files.path().join("a.csv");
        let told = report(&check(&database, &[&source]).args(["--mode", "merge", "--key", "id"]), 3);
        assert_eq!(kinds(&told), [kind("23514", "below", 3), kind("23514", "below", 4)], "{told:#}");
    }
}

#[test]
fn records_whose_key_is_there_are_not_looked_at_where_they_would_not_come() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE TABLE t (id int PRIMARY KEY, a int UNIQUE CHECK (a > 0)); INSERT INTO t VALUES (1, 1), (2, 2)",
            "id,a\n1,-1\n3,2\n4,-4\n2,2\n2,-2\n",
        );
        let source = files.path().join("a.csv");
        let told = |options: &[&str]| {
            let command = check(&database, &[&source]).args(["--mode", "insert-new", "--key", "id"]);
            kinds(&report(&command.args(options.iter().copied()), 3))
        };
        let bad = [kind("23505", "t_a_key", 2), kind("23514", "t_a_check", 3)];
        assert_eq!(told(&["--keep", "first"]), bad, "PostgreSQL {major}");
        // That a key repeats ends such a load, whether it is there or not.
        let repeated = [bad[0].clone(), kind("23505", "t_pkey", 5), bad[1].clone()];
        assert_eq!(told(&[]), repeated, "PostgreSQL {major}");
    }
}

/// Columns `id,a,note`: the partition of 1 to 99 wants a note, the default one `a`, and of its own partitions
/// one a note.
const NOT_NULL_IN_PARTITIONS: &str = "\
    CREATE TABLE t (id int, a int, note text, UNIQUE (id)) PARTITION BY RANGE (id); \
    CREATE TABLE low PARTITION OF t FOR VALUES FROM (1) TO (100); ALTER TABLE low ALTER note SET NOT NULL; \
    CREATE TABLE mid PARTITION OF t FOR VALUES FROM (100) TO (200); \
    CREATE TABLE rest PARTITION OF t DEFAULT PARTITION BY RANGE (id); ALTER TABLE rest ALTER a SET NOT NULL; \
    CREATE TABLE high PARTITION OF rest FOR VALUES FROM (300) TO (400); \
    CREATE TABLE top PARTITION OF rest FOR VALUES FROM (400) TO (500); ALTER TABLE top ALTER note SET NOT NULL";
const NULLS: &str = "id,a,note\n1,1,x\n2,2,\n2,,y\n100,,\n300,3,\n301,,z\n400,4,\n401,,\n";

#[test]
fn what_partitions_alone_want_not_null_is_found() {
    for major in MAJORS {
        let (database, files) = scene(major, NOT_NULL_IN_PARTITIONS, NULLS);
        let source = files.path().join("a.csv");
        let told = report(&check(&database, &[&source]), 3);
        let note = |record| kind("23502", "note", record);
        let a = |record| kind("23502", "a", record);
        let expected = [a(6), a(8), note(2), note(7), note(8)];
        let found: Vec<_> = kinds(&told).into_iter().filter(|(sqlstate, ..)| sqlstate == "23502").collect();
        assert_eq!(found, expected, "PostgreSQL {major}: {told:#}");
        assert_eq!(not_checked(&told), "", "{told:#}");
        // The key that a bad record has is free for another.
        let merge = ["--mode", "insert-new", "--key", "id"];
        for more in [&[][..], &["--atomic", "--known", "load"], &merge, &["--mode", "truncate"]] {
            database.sql("TRUNCATE t");
            let load =
                howdah("load").args(["--json", "--table", "t", "--to", &database.conninfo(), "--force"]);
            let load = load.args(["--on-error", "skip"]).args(more.iter().copied());
            let done = load.arg(&source).run(PATIENCE).expect_code(3);
            let stored = database.value("SELECT string_agg(concat(id, note), ' ' ORDER BY id) FROM t");
            assert_eq!(stored, "1x 2y 100 300", "PostgreSQL {major}, {more:?}: {}", done.stderr);
        }
    }
}

#[test]
fn what_a_trigger_may_fill_in_partitions_is_named() {
    let (database, files) = scene(18, NOT_NULL_IN_PARTITIONS, NULLS);
    database.sql(
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'n'; RETURN NEW; END $$; \
         CREATE TRIGGER fill BEFORE INSERT ON low FOR EACH ROW EXECUTE FUNCTION fill()",
    );
    let told = report(&check(&database, &[&files.path().join("a.csv")]), 3);
    let not = not_checked(&told);
    assert!(not.contains("NOT NULL of column note in partitions: a BEFORE INSERT trigger"), "{told:#}");
}

/// As where rows are appended, what a file leaves out has its default.
#[test]
fn files_that_fill_different_columns_are_checked_together() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE TABLE t (id int PRIMARY KEY, a text NOT NULL DEFAULT 'zz', b int DEFAULT 7 CHECK (b > 0), n serial, \
                 twice int GENERATED ALWAYS AS (b * 2) STORED, e text, UNIQUE (a, b), CHECK (twice < 100), CHECK (b < 9 OR e <> ''))",
            "id,a\n1,x\n2,y\n2,z\n3,\n",
        );
        let others = files.put("b.csv", b"id,b,e\n5,3,q\n1,9,\n6,-1,g\n8,60,e\n9,5,w\n10,5,w\n11,,w\n");
        let first = files.path().join("a.csv");
        let told = report(&check(&database, &[&first, &others]).arg("--header"), 3);
        let wanted = [
            kind("23502", "a", 4),
            kind("23505", "t_a_b_key", 6),
            kind("23505", "t_pkey", 2),
            kind("23505", "t_pkey", 3),
            kind("23514", "t_b_check", 3),
            kind("23514", "t_twice_check", 4),
        ];
        let found = kinds(&told);
        assert!(
            wanted.iter().all(|wanted| found.contains(wanted)) && found.len() == wanted.len(),
            "{told:#}"
        );
        // What a check cannot have without taking a number.
        let numbered = files.put("n.csv", b"id,n\n20,1\n");
        let refused = check(&database, &[&first, &numbered]).arg("--header").run(PATIENCE).expect_code(1);
        assert!(refused.stdout.contains("column n takes a number from a sequence"), "{}", refused.stdout);
        // The rows of a load that waits would not be the same.
        let waits = check(&database, &[&first, &others]).args(["--header", "--atomic"]);
        let refused = waits.run(PATIENCE).expect_code(1);
        assert!(refused.stdout.contains("fill different columns"), "{}", refused.stdout);
        assert_forgotten(&database);
    }
}

/// The server computes a CHECK from left to right, and so it fails for some rows; a planner would put its
/// parts in another order.
#[test]
fn a_check_that_fails_for_a_record_is_found_however_its_parts_could_be_ordered() {
    for major in MAJORS {
        let (database, files) = scene(
            major,
            "CREATE TABLE t (a numeric, b int, CHECK ((10 / a > 1) AND a <> 1 OR b IS NOT NULL), CHECK (a::int2 < 9))",
            "a,b\n0,1\n2,\n1,\n3,4\nNaN,3\n9,9\n",
        );
        let as_copy_reads = ["--format", "csv", "--header"];
        let told = report(&check(&database, &[&files.path().join("a.csv")]).args(as_copy_reads), 3);
        let (first, second) = ("t_check", "t_a_check");
        let expected = [
            kind("0A000", second, 5),
            kind("22012", first, 1),
            kind("23514", second, 6),
            kind("23514", first, 3),
        ];
        assert_eq!(kinds(&told), expected, "PostgreSQL {major}: {told:#}");
    }
}
