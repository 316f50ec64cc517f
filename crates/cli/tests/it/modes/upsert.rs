//! Merging is what `INSERT ... ON CONFLICT DO UPDATE` does: with triggers on the rows that come, with other
//! unique indexes beside the key, and whatever others do to the rows meanwhile.

use super::{assert_nothing_left, changes, load};
use crate::scene::{CASELESS_SQL, Files, PATIENCE, howdah};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};

/// What the server itself makes of the rows of `input`.
const UPSERT: &str = "INSERT INTO t (id, mail, n) SELECT id, mail, n FROM input ON CONFLICT (id) DO UPDATE \
    SET mail = excluded.mail, n = excluded.n WHERE (t.mail, t.n) IS DISTINCT FROM (excluded.mail, excluded.n)";

const FUNCTIONS: &str = "\
    CREATE TABLE audit (id int); \
    CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.mail := lower(NEW.mail); RETURN NEW; END'; \
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO audit VALUES (NEW.id); RETURN NULL; END'; \
    CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN UPDATE t SET n = n + 100 WHERE id IN (1, NEW.id); RETURN NULL; END'; \
    CREATE FUNCTION mark_apart() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN UPDATE t SET n = n + 100 WHERE id IN (1, NEW.id); RETURN NULL; EXCEPTION WHEN others THEN RETURN NULL; END'; ";

/// A table with a trigger of the root or of a leaf, and an audit of updates.
fn with_trigger(major: u32, partitioned: bool, trigger: &str) -> Database {
    let database = Server::shared(major).database();
    let (by, leaf, of) = match partitioned {
        true => (" PARTITION BY RANGE (id)", "CREATE TABLE leaf PARTITION OF t DEFAULT;", "leaf"),
        false => ("", "", "t"),
    };
    database.sql(&format!(
        "{FUNCTIONS} CREATE TABLE t (id int PRIMARY KEY, mail text, n int){by}; {leaf} \
         CREATE TRIGGER audit AFTER UPDATE ON {of} FOR EACH ROW EXECUTE FUNCTION note(); \
         INSERT INTO t VALUES (1, 'x', 1), (3, 'same', 3); CREATE TRIGGER comes {trigger}",
        trigger = trigger.replace("ON t", &format!("ON {of}"))
    ));
    database
}

#[test]
fn what_a_trigger_has_made_of_a_new_row_stays() {
    let files = Files::new();
    let csv = b"id,mail,n\n1,y,10\n2,ABC,20\n3,same,3\n";
    let source = files.put("a.csv", csv);
    let triggers = [
        "BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION low()",
        "BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION low()",
        "AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION mark()",
        "AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION mark_apart()",
    ];
    side_by_side(MAJORS, |major| {
        for (trigger, partitioned) in triggers.iter().flat_map(|trigger| [(trigger, false), (trigger, true)])
        {
            let what = format!("PostgreSQL {major}, {trigger}, partitioned {partitioned}");
            let wanted = with_trigger(major, partitioned, trigger);
            wanted.sql("CREATE TABLE input (id int, mail text, n int)");
            wanted.copy_in("COPY input FROM STDIN (FORMAT csv, HEADER true)", csv.to_vec()).unwrap();
            wanted.sql(UPSERT);
            for atomic in ["--atomic=true", "--atomic=false"] {
                let database = with_trigger(major, partitioned, trigger);
                let load = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", atomic]);
                assert_eq!(changes(&load), [1, 1, 1, 0, 0], "{what}, {atomic}");
                for table in ["t", "audit"] {
                    assert_eq!(database.digest(table), wanted.digest(table), "{what}, {atomic}, {table}");
                }
                assert_nothing_left(&database, &what);
            }
        }
    });
}

/// A row that is changed leads to one that is inserted, and has a trigger.
#[test]
fn changed_rows_may_lead_to_new_ones_that_a_trigger_has_made() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,boss,name\n1,2,A\n2,1,B\n");
    side_by_side(MAJORS, |major| {
        for atomic in ["--atomic=true", "--atomic=false"] {
            let database = Server::shared(major).database();
            database.sql(
                "CREATE TABLE t (id int PRIMARY KEY, boss int REFERENCES t, name text); INSERT INTO t VALUES (1, NULL, 'x'); \
                 CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name := lower(NEW.name); RETURN NEW; END'; \
                 CREATE TRIGGER low BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION low()",
            );
            let load = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", atomic]);
            assert_eq!(changes(&load), [1, 1, 0, 0, 0], "PostgreSQL {major}, {atomic}");
            let rows = database.value("SELECT string_agg(concat(id, boss, name), ' ' ORDER BY id) FROM t");
            assert_eq!(rows, "12A 21b", "PostgreSQL {major}, {atomic}");
        }
    });
}

/// `a` and `A` are one value to the index beside the key, and two to the key.
#[test]
fn a_key_by_another_collation_beside_the_key_refuses_and_hides_nothing() {
    let files = Files::new();
    let source = files.put("a.csv", b"k,v\nabc,2\nother,3\n");
    side_by_side(MAJORS, |major| {
        for mode in ["merge", "insert-new"] {
            let database = Server::shared(major).database();
            database.sql(
                "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
                 CREATE TABLE t (k text PRIMARY KEY, v int); CREATE UNIQUE INDEX beside ON t (k COLLATE ci); \
                 INSERT INTO t VALUES ('ABC', 1)",
            );
            let merge = load(&database, &[&source]).args(["--mode", mode, "--key", "k"]);
            let failed = merge.run(PATIENCE).expect_code(1);
            assert!(
                failed.stderr.contains("SQLSTATE 23505"),
                "PostgreSQL {major}, {mode}\n{}",
                failed.stderr
            );
            let rows = "SELECT string_agg(k || v, ' ' ORDER BY v) FROM t";
            assert_eq!(database.value(rows), "ABC1", "PostgreSQL {major}, {mode}");
            let told = merge.args(["--on-error", "skip"]).run(PATIENCE).expect_code(3).stderr;
            assert_eq!(database.value(rows), "ABC1 other3", "PostgreSQL {major}, {mode}\n{told}");
            assert_eq!(database.value("SELECT record || ' ' || sqlstate FROM howdah.reject"), "1 23505");
            assert_nothing_left(&database, mode);
        }
    });
}

/// `a` and `A` are one value to the operator class of the key's index, and two to their type.
#[test]
fn records_that_only_the_index_takes_for_one_key_are_those_of_one_key() {
    let files = Files::new();
    let source = files.put("a.csv", b"k,v\na,1\nb,3\nA,2\n");
    let database = Server::shared(15).database();
    database.sql(CASELESS_SQL);
    database.sql("CREATE TABLE t (k text, v int); CREATE UNIQUE INDEX ON t (k ci)");
    let merge = load(&database, &[&source]).args(["--mode", "merge", "--key", "k"]);
    let failed = merge.clone().run(PATIENCE).expect_code(1).stderr;
    assert!(
        failed.contains("record 3: ") && failed.contains("it has the same key (k) as record 1 of"),
        "{failed}"
    );
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    assert_nothing_left(&database, "two of one key");
    for (keep, done, rows) in [("first", [2, 0, 0, 0, 1], "a1 b3"), ("last", [0, 1, 1, 0, 1], "a2 b3")] {
        assert_eq!(changes(&merge.clone().args(["--keep", keep])), done, "{keep}");
        let stored = database.value("SELECT string_agg(k || v, ' ' ORDER BY lower(k)) FROM t");
        assert_eq!(stored, rows, "{keep}");
        assert_nothing_left(&database, keep);
    }
}

/// 1.0 and 1.00 are one value to the type of the key, and two to its index.
#[test]
fn records_that_the_index_tells_apart_all_count() {
    let files = Files::new();
    let source = files.put("a.csv", b"k,v\n(1.0),5\n(1.00),6\n(2),7\n(2),8\n");
    side_by_side(MAJORS, |major| {
        for (keep, last) in [("first", 7), ("last", 8)] {
            let database = Server::shared(major).database();
            database.sql(
                "CREATE TYPE n AS (a numeric); CREATE TABLE t (k n, v int); CREATE UNIQUE INDEX ON t (k record_image_ops); \
                 INSERT INTO t VALUES (ROW(1.0), 1)",
            );
            let merge = load(&database, &[&source]).args(["--mode", "merge", "--key", "k", "--keep", keep]);
            assert_eq!(changes(&merge), [2, 1, 0, 0, 1], "PostgreSQL {major}, {keep}");
            let rows = database.value("SELECT string_agg(k || ' ' || v, ' ' ORDER BY v) FROM t");
            assert_eq!(rows, format!("(1.0) 5 (1.00) 6 (2) {last}"), "PostgreSQL {major}, {keep}");
        }
    });
}

/// The load inserts while another session holds row 2, and has changed others: it lets go when the load waits
/// for it.
fn beside(database: &Database, change: &str, options: &[&str]) -> [u64; 5] {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,file\n2,file\n3,same\n");
    let waiting = "SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid";
    let slowly = format!(
        "BEGIN; INSERT INTO t VALUES (2, 'other'); {change}; \
         DO $$ BEGIN FOR i IN 1..60000 LOOP EXIT WHEN EXISTS ({waiting}); PERFORM pg_sleep(0.01); END LOOP; END $$; COMMIT"
    );
    std::thread::scope(|scope| {
        scope.spawn(|| database.sql(&slowly));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        assert!(database.wait_for(waits, 1, || true));
        changes(&load(database, &[&source]).args(["--key", "id", "--lock-timeout", "10min"]).args(options))
    })
}

const ROWS: &str = "SELECT string_agg(id || note, ' ' ORDER BY id) FROM t";

#[test]
fn a_row_that_others_delete_or_move_meanwhile_is_inserted() {
    side_by_side(MAJORS, |major| {
        let partitions = "PARTITION BY RANGE (id); CREATE TABLE leaf PARTITION OF t DEFAULT";
        let trigger = "; CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
                       CREATE TRIGGER keep BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION keep()";
        for kind in ["", partitions, trigger] {
            for (change, moved) in
                [("DELETE FROM t WHERE id = 1", ""), ("UPDATE t SET id = 100 WHERE id = 1", " 100old")]
            {
                for mode in ["merge", "insert-new"] {
                    let database = Server::shared(major).database();
                    database.sql(&format!(
                        "CREATE TABLE t (id int PRIMARY KEY, note text) {kind}; INSERT INTO t VALUES (1, 'old'), (3, 'same')"
                    ));
                    let done = beside(&database, change, &["--mode", mode]);
                    let what = format!("PostgreSQL {major}, {kind}, {change}, {mode}");
                    let rows = database.value(ROWS);
                    match mode {
                        "merge" => {
                            assert_eq!(rows, format!("1file 2file 3same{moved}"), "{what}");
                            assert_eq!(done, [1, 1, 1, 0, 0], "{what}");
                        }
                        // Which of the two came first nobody can tell.
                        _ => {
                            let without = format!("2other 3same{moved}");
                            assert!(
                                [without.clone(), format!("1file {without}")].contains(&rows),
                                "{what}: {rows}"
                            );
                        }
                    }
                    assert_nothing_left(&database, &what);
                }
            }
        }
    });
}

/// The other session deletes one of two rows that are to go when the load has counted them.
#[test]
fn rows_that_others_delete_meanwhile_are_not_held_back() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,same\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t VALUES (1, 'same'), (2, 'x'), (3, 'x'); CREATE TABLE gate (id int); \
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN LOCK TABLE public.gate IN ACCESS SHARE MODE; RETURN NULL; END'; \
         CREATE FUNCTION go() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'; \
         CREATE TRIGGER wait BEFORE DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION wait(); \
         CREATE TRIGGER go BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION go()",
    );
    let held = "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'gate'::regclass";
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gate'::regclass";
    let told = std::thread::scope(|scope| {
        scope.spawn(|| {
            database.sql(&format!(
                "SET session_replication_role = replica; BEGIN; LOCK TABLE gate IN ACCESS EXCLUSIVE MODE; \
                 DO $$ BEGIN FOR i IN 1..60000 LOOP EXIT WHEN ({waits}) > 0; PERFORM pg_sleep(0.01); END LOOP; END $$; \
                 DELETE FROM t WHERE id = 2; COMMIT"
            ));
        });
        assert!(database.wait_for(held, 1, || true));
        let merge = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--delete-missing"]);
        merge.args(["--lock-timeout", "10min"]).run(PATIENCE).expect_code(0).stderr
    });
    assert!(told.contains("0 inserted, 0 updated, 1 unchanged, 1 deleted"), "{told}");
    assert!(!told.contains("held back"), "{told}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "1");
}

/// The load finds record 5 unchanged, and waits to delete row 7, which another session gives the key 5.
#[test]
fn a_row_that_gets_the_key_of_a_record_meanwhile_is_not_lost_with_those_that_are_missing() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n5,a\n");
    side_by_side(MAJORS, |major| {
        for atomic in ["--atomic=true", "--atomic=false"] {
            let database = Server::shared(major).database();
            database.sql(
                "CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t VALUES (5, 'a'), (7, 'b')",
            );
            let other = database.connect();
            other.sql("BEGIN; DELETE FROM t WHERE id = 5; UPDATE t SET id = 5 WHERE id = 7");
            let options = ["--mode", "merge", "--key", "id", "--delete-missing", "--lock-timeout", "10min"];
            let mut running = load(&database, &[&source]).args(options).arg(atomic).spawn();
            // For the other's transaction to end, that is.
            let waits = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                WHERE NOT l.granted AND l.locktype = 'transactionid' AND a.datname = current_database()";
            assert!(database.wait_for(waits, 1, || running.is_running()), "{}", running.stderr_so_far());
            other.sql("COMMIT");
            running.wait(PATIENCE).expect_code(0);
            let what = format!("PostgreSQL {major}, {atomic}");
            assert_eq!(database.value(ROWS), "5a", "{what}");
            assert_nothing_left(&database, &what);
        }
    });
}

/// As plain UPDATE and then INSERT take it.
#[test]
fn a_new_row_takes_what_a_changed_one_gives_up() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,mail\n1,z\n3,x\n");
    side_by_side(MAJORS, |major| {
        for unique in ["UNIQUE (mail)", "EXCLUDE (mail WITH =)"] {
            let prepared = || {
                let database = Server::shared(major).database();
                database.sql(&format!(
                    "CREATE TABLE t (id int PRIMARY KEY, mail text, {unique}); INSERT INTO t VALUES (1, 'x'), (2, 'y')"
                ));
                database
            };
            let merge = ["--mode", "merge", "--key", "id"];
            for options in [&["--atomic"][..], &[], &["--on-error", "skip"]] {
                let what = format!("PostgreSQL {major}, {unique}, {options:?}");
                let database = prepared();
                assert_eq!(
                    changes(&load(&database, &[&source]).args(merge).args(options)),
                    [1, 1, 0, 0, 0],
                    "{what}"
                );
                let rows = database.value("SELECT string_agg(id || mail, ' ' ORDER BY id) FROM t");
                assert_eq!(rows, "1z 2y 3x", "{what}");
            }
            let (database, to) = (prepared(), |database: &Database| database.conninfo());
            let check =
                howdah("check").args(["--format", "csv", "--header", "--table", "t", "--to", &to(&database)]);
            check.args(merge).arg(&source).run(PATIENCE).expect_code(0);
            // Record 1 is left out, and frees nothing.
            database.sql("ALTER TABLE t ADD CHECK (mail <> 'z')");
            load(&database, &[&source]).args(merge).args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
            let rows = database.value("SELECT string_agg(id || mail, ' ' ORDER BY id) FROM t");
            assert_eq!(rows, "1x 2y", "PostgreSQL {major}, {unique}");
        }
    });
}

/// What is unique among some rows alone, as the version that is in force, or in a partition alone.
#[test]
fn a_new_row_takes_what_a_changed_one_gives_up_of_some_rows_or_of_a_partition() {
    let files = Files::new();
    let source = files.put("a.csv", b"k,ver,n,cur\n1,1,10,f\n1,2,10,t\n2,1,20,t\n");
    let moved = files.put("b.csv", b"k,ver,n,cur\n1,1,11,t\n1,2,10,t\n2,1,20,t\n");
    let plain = "CREATE TABLE t (k int, ver int, n int, cur bool NOT NULL, PRIMARY KEY (k, ver))";
    let partitioned = format!(
        "{plain} PARTITION BY LIST (k); CREATE TABLE odd (cur bool NOT NULL, n int, gone int, ver int NOT NULL, k int NOT NULL); \
         ALTER TABLE odd DROP COLUMN gone; ALTER TABLE t ATTACH PARTITION odd FOR VALUES IN (1, 3); CREATE TABLE even PARTITION OF t DEFAULT"
    );
    let tables = [
        (format!("{plain}; CREATE UNIQUE INDEX ON t (k) WHERE cur"), &source),
        (format!("{plain}; ALTER TABLE t ADD EXCLUDE USING btree (k WITH =) WHERE (cur)"), &source),
        (format!("{partitioned}; CREATE UNIQUE INDEX ON odd (k) WHERE cur"), &source),
        (format!("{partitioned}; CREATE UNIQUE INDEX ON odd (n)"), &moved),
        (format!("{partitioned}; CREATE UNIQUE INDEX ON odd ((n + k))"), &moved),
        (format!("{partitioned}; ALTER TABLE odd ADD EXCLUDE USING btree (n WITH =)"), &moved),
    ];
    side_by_side(MAJORS, |major| {
        for (table, source) in &tables {
            let prepared = || {
                let database = Server::shared(major).database();
                database.sql(&format!("{table}; INSERT INTO t VALUES (1, 1, 10, true), (2, 1, 20, true)"));
                database
            };
            let wanted = prepared();
            wanted.sql("CREATE TABLE input (k int, ver int, n int, cur bool)");
            wanted
                .copy_in("COPY input FROM STDIN (FORMAT csv, HEADER true)", std::fs::read(source).unwrap())
                .unwrap();
            wanted.sql(
                "INSERT INTO t SELECT * FROM input ON CONFLICT (k, ver) DO UPDATE SET n = excluded.n, cur = excluded.cur",
            );
            let merge = ["--mode", "merge", "--key", "k,ver"];
            for options in [&["--atomic"][..], &[], &["--on-error", "skip"]] {
                let what = format!("PostgreSQL {major}, {table}, {options:?}");
                let database = prepared();
                let done = changes(&load(&database, &[source]).args(merge).args(options));
                assert_eq!(done, [1, 1, 1, 0, 0], "{what}");
                assert_eq!(database.digest("t"), wanted.digest("t"), "{what}");
                assert_nothing_left(&database, &what);
            }
            let database = prepared();
            let to = database.conninfo();
            let check = howdah("check").args(["--format", "csv", "--header", "--table", "t", "--to", &to]);
            check.args(merge).arg(source).run(PATIENCE).expect_code(0);
        }
    });
}

/// 007 is the key 7 of the table, and text would make two of it.
#[test]
fn a_key_does_not_become_text() {
    let (files, database) = (Files::new(), Server::shared(18).database());
    database.sql("CREATE TABLE t (k int PRIMARY KEY, v smallint); INSERT INTO t VALUES (7, 1)");
    let source = files.put("a.csv", b"k,v\n007,70000\nx,3\n");
    let to = database.conninfo();
    let load =
        howdah("load").args(["--table", "t", "--to", &to, "--key", "k", "--evolve", "widen"]).arg(&source);
    for mode in ["merge", "insert-new"] {
        let told = load.clone().args(["--mode", mode]).run(PATIENCE).expect_code(1).stderr;
        assert!(
            told.contains("column k of public.t is part of the key, and some value of it is no integer"),
            "{told}"
        );
        assert!(told.contains("hint: mend these values, or leave out --evolve widen"), "{told}");
    }
    let numbers = files.put("b.csv", b"k,v\n7,70000\n3000000000,3\n");
    let load =
        howdah("load").args(["--table", "t", "--to", &to, "--key", "k", "--evolve", "widen"]).arg(&numbers);
    load.args(["--mode", "merge"]).run(PATIENCE).expect_code(0);
    let stored = "SELECT string_agg(format('%s %s', k, v), ', ' ORDER BY k) FROM t";
    assert_eq!(database.value(stored), "7 70000, 3000000000 3");
    assert_nothing_left(&database, "widened");
}
