//! A row is changed once by its record, as `INSERT ... ON CONFLICT DO UPDATE` changes it, whatever triggers
//! make of it then: they fire once, what they keep is right, and the counts are.

use super::{assert_nothing_left, changes, load};
use crate::scene::{Files, PATIENCE, run_told};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::fmt::Write as _;

const FUNCTIONS: &str = "\
    CREATE TABLE audit (id int, mail text); \
    CREATE FUNCTION low() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN NEW.mail := lower(NEW.mail); NEW.rev := coalesce(OLD.rev, 0) + 1; RETURN NEW; END'; \
    CREATE FUNCTION low_behind() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF pg_trigger_depth() = 1 THEN \
            INSERT INTO audit VALUES (NEW.id, NEW.mail); \
            UPDATE t SET mail = lower(mail), rev = rev + 1 WHERE id = NEW.id; \
        END IF; RETURN NULL; END $$; \
    CREATE FUNCTION low_apart() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF pg_trigger_depth() = 1 THEN \
            INSERT INTO audit VALUES (NEW.id, NEW.mail); \
            UPDATE t SET mail = lower(mail), rev = rev + 1 WHERE id = NEW.id; \
        END IF; RETURN NULL; EXCEPTION WHEN division_by_zero THEN RETURN NULL; END $$; \
    CREATE FUNCTION low_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF pg_trigger_depth() = 1 THEN \
            INSERT INTO audit SELECT id, mail FROM came; \
            UPDATE t SET mail = lower(mail), rev = rev + 1 WHERE id IN (SELECT id FROM came); \
        END IF; RETURN NULL; END $$; ";

const TRIGGERS: [&str; 4] = [
    "BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION low()",
    "AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION low_behind()",
    "AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION low_apart()",
    "AFTER UPDATE ON t REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION low_all()",
];

fn prepared(major: u32, unique: &str, trigger: &str, rows: &str) -> Database {
    let database = Server::shared(major).database();
    database.sql(&format!(
        "{FUNCTIONS} CREATE TABLE t (id int PRIMARY KEY, mail text {unique}, note text, rev int NOT NULL DEFAULT 0); \
         {rows}; CREATE TRIGGER changes {trigger}"
    ));
    database
}

/// What the server itself makes of these records.
fn upsert(database: &Database, csv: &[u8]) {
    database.sql("CREATE TABLE input (id int, mail text, note text)");
    database.copy_in("COPY input FROM STDIN (FORMAT csv, HEADER true)", csv.to_vec()).unwrap();
    database.sql(
        "INSERT INTO t (id, mail, note) SELECT id, mail, note FROM input ON CONFLICT (id) DO UPDATE \
         SET mail = excluded.mail, note = excluded.note \
         WHERE (t.mail, t.note) IS DISTINCT FROM (excluded.mail, excluded.note)",
    );
}

#[track_caller]
fn assert_same(database: &Database, wanted: &Database, what: &str) {
    for table in ["t", "audit"] {
        assert_eq!(database.digest(table), wanted.digest(table), "{what}, {table}");
    }
    assert_nothing_left(database, what);
}

/// One record is left over, for which the load looks once more.
#[test]
fn rows_that_a_trigger_changes_again_are_changed_once_beside_another_unique_index() {
    let files = Files::new();
    let csv = b"id,mail,note\n1,AA@X,\n2,BB@X,\n3,c@x,\n4,D@X,\n";
    let source = files.put("a.csv", csv);
    let rows = "INSERT INTO t VALUES (1, 'a@x'), (2, 'b@x'), (3, 'c@x')";
    side_by_side(MAJORS, |major| {
        for (unique, trigger) in
            TRIGGERS.map(|trigger| ("UNIQUE", trigger)).into_iter().chain([("", TRIGGERS[0])])
        {
            let wanted = prepared(major, unique, trigger, rows);
            upsert(&wanted, csv);
            for options in [&["--atomic", "--delete-missing"][..], &[]] {
                let what = format!("PostgreSQL {major}, {unique}, {trigger}, {options:?}");
                let database = prepared(major, unique, trigger, rows);
                let merge =
                    load(&database, &[&source]).args(["--mode", "merge", "--key", "id"]).args(options);
                assert_eq!(changes(&merge), [1, 2, 1, 0, 0], "{what}");
                assert_same(&database, &wanted, &what);
            }
        }
    });
}

/// Rows come in twelve parts, of which most change all of theirs: the next begin by changing rows. One row is
/// as its record says, one is new.
#[test]
fn rows_that_a_trigger_changes_again_are_changed_once_in_many_parts() {
    const ROWS: u64 = 6_000;
    let files = Files::new();
    let note = "x".repeat(900);
    let mut csv = "id,mail,note\n".to_owned();
    for id in 1..=ROWS + 1 {
        let _ = writeln!(csv, "{id},{},{note}", if id % 1_000 == 77 { "a" } else { "B" });
    }
    let csv = csv.as_bytes();
    let source = files.put("a.csv", csv);
    let rows = format!("INSERT INTO t SELECT n, 'a', '{note}' FROM generate_series(1, {ROWS}) n");
    side_by_side(MAJORS, |major| {
        for trigger in TRIGGERS {
            let what = format!("PostgreSQL {major}, {trigger}");
            let wanted = prepared(major, "", trigger, &rows);
            upsert(&wanted, csv);
            let database = prepared(major, "", trigger, &rows);
            database.sql("VACUUM ANALYZE t");
            let merge = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--jobs", "1"]);
            assert_eq!(changes(&merge), [1, ROWS - 6, 6, 0, 0], "{what}");
            assert_eq!(
                database.value("SELECT count(*) FROM howdah.step WHERE name = 'part'"),
                "12",
                "{what}"
            );
            assert_same(&database, &wanted, &what);
        }
    });
}

/// Of the two records one has to come again, whose key another session has taken along to a row that goes.
#[test]
fn what_comes_again_behind_a_deletion_does_not_change_the_others_again() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,mail\n5,a\n8,D\n");
    side_by_side(MAJORS, |major| {
        let both = "BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION low()";
        let cases = [TRIGGERS[0], TRIGGERS[2], both]
            .into_iter()
            .flat_map(|trigger| ["", "UNIQUE"].map(|unique| (trigger, unique)));
        for ((trigger, unique), atomic) in
            cases.flat_map(|case| ["--atomic=true", "--atomic=false"].map(|atomic| (case, atomic)))
        {
            let what = format!("PostgreSQL {major}, {trigger}, {unique}, {atomic}");
            let rows = "INSERT INTO t VALUES (5, 'a'), (7, 'b'), (8, 'c')";
            let database = prepared(major, unique, trigger, rows);
            let other = database.connect();
            other.sql("SET session_replication_role = replica; BEGIN; DELETE FROM t WHERE id = 5; UPDATE t SET id = 5 WHERE id = 7");
            let options = ["--mode", "merge", "--key", "id", "--delete-missing", "--lock-timeout", "10min"];
            let mut running = load(&database, &[&source]).args(options).arg(atomic).spawn();
            // For the other's transaction to end, that is.
            let waits = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                WHERE NOT l.granted AND l.locktype = 'transactionid' AND a.datname = current_database()";
            assert!(database.wait_for(waits, 1, || running.is_running()), "{}", running.stderr_so_far());
            other.sql("COMMIT");
            let told = running.wait(PATIENCE).expect_code(0).stderr;
            let stored = "SELECT string_agg(concat(id, mail, ' ', rev), ', ' ORDER BY id) FROM t";
            let first = if trigger == both { 1 } else { 0 };
            assert_eq!(database.value(stored), format!("5a {first}, 8d 1"), "{what}");
            assert!(told.contains("1 inserted, 1 updated, 1 unchanged, 1 deleted"), "{what}: {told}");
            assert_nothing_left(&database, &what);
        }
    });
}

/// What a trigger has made of a changed row is not what was read. The command that the hint names is whole,
/// and does what it says.
#[test]
fn rows_that_a_trigger_makes_otherwise_are_told_with_a_command_that_drops_the_rest() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,mail\n1,B\n");
    let database = prepared(15, "", TRIGGERS[0], "INSERT INTO t VALUES (1, 'a')");
    let merge = load(&database, &[&source]).args(["--mode", "merge", "--key", "id", "--verify", "checksum"]);
    for atomic in ["--atomic=false", "--atomic=true"] {
        let told = merge.clone().arg(atomic).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("1 of the rows that waited in"), "{told}");
        let hint = told.lines().find(|line| line.starts_with("hint: ")).unwrap();
        assert_eq!(hint.matches("howdah restore").count(), 1, "{hint}");
        assert!(hint.contains("--ledger howdah` drops what waits, and the same command"), "{hint}");
        run_told(hint, "howdah restore", str::to_owned);
        assert_nothing_left(&database, atomic);
    }
}
