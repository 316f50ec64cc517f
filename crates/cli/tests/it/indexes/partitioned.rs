//! Indexes of partitioned tables: all levels are dropped together and come back as they were.

use super::kills::{CHUNKS, wait_for};
use super::{load, open_entries, schema};
use crate::gate::{open_gate, remove_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::{Database, MAJORS, Server, side_by_side};
use std::fs::OpenOptions;

const ROWS: u64 = 5000;

/// Two levels by range of `part` (0 to 255), each kind of partitioning, columns in another order.
const TABLES: &str = "\
    CREATE SCHEMA leaves; \
    CREATE TABLE t (id bigint, part integer, amount numeric, note text) PARTITION BY RANGE (part); \
    CREATE TABLE leaves.low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (64); \
    CREATE TABLE \"Turned\" (note text, gone integer, amount numeric, part integer, id bigint); \
    ALTER TABLE \"Turned\" DROP COLUMN gone; \
    ALTER TABLE t ATTACH PARTITION \"Turned\" FOR VALUES FROM (64) TO (96); \
    CREATE TABLE hashed PARTITION OF t FOR VALUES FROM (96) TO (160) PARTITION BY HASH (id); \
    CREATE TABLE leaves.even PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
    CREATE TABLE leaves.odd PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
    CREATE TABLE listed PARTITION OF t FOR VALUES FROM (160) TO (200) PARTITION BY LIST (part); \
    CREATE TABLE few PARTITION OF listed FOR VALUES IN (160, 161, 162); \
    CREATE TABLE others PARTITION OF listed DEFAULT; \
    CREATE TABLE rest PARTITION OF t DEFAULT;";

/// Everything that the index of a partitioned table, or of a partition, can carry.
fn everything(major: u32, tablespace: &str) -> String {
    let extra = match major {
        17.. => {
            "ALTER TABLE t ADD CONSTRAINT apart EXCLUDE USING btree (part WITH =, id WITH =) WITH (fillfactor = 60); \
             CREATE UNIQUE INDEX t_nnd ON t (id, part, note) NULLS NOT DISTINCT;"
        }
        15.. => "CREATE UNIQUE INDEX t_nnd ON t (id, part, note) NULLS NOT DISTINCT;",
        _ => "",
    };
    format!(
        "{TABLES} \
         ALTER TABLE t ADD CONSTRAINT \"Key\" PRIMARY KEY (part, id) INCLUDE (amount) WITH (fillfactor = 70) \
             USING INDEX TABLESPACE {tablespace}; \
         ALTER TABLE t ADD CONSTRAINT late UNIQUE (id, part) WITH (fillfactor = 90) DEFERRABLE INITIALLY DEFERRED; \
         CREATE INDEX \"Half ON ONLY\" ON t ((amount / 2) DESC NULLS LAST, lower(note) COLLATE \"C\" text_pattern_ops) \
             INCLUDE (note) WITH (fillfactor = 50) WHERE part IS NOT NULL AND note <> E'a\\b''c'; \
         ALTER INDEX \"Half ON ONLY\" ALTER COLUMN 1 SET STATISTICS 777; \
         ALTER INDEX \"Half ON ONLY\" DEPENDS ON EXTENSION plpgsql; \
         COMMENT ON INDEX \"Half ON ONLY\" IS 'half'; COMMENT ON CONSTRAINT \"Key\" ON t IS 'a key'; \
         CREATE INDEX mine ON rest (amount) WITH (fillfactor = 33); CREATE INDEX t_amount ON t (amount); \
         CREATE INDEX twin ON t (amount); CREATE INDEX falling ON t (amount DESC); \
         CREATE INDEX t_note ON t (note) TABLESPACE {tablespace}; \
         ALTER INDEX leaves.low_note_idx RENAME TO \"Low Note\"; \
         ALTER INDEX leaves.\"Low Note\" SET TABLESPACE pg_default; \
         COMMENT ON INDEX leaves.\"Low Note\" IS 'low'; ALTER TABLE leaves.low CLUSTER ON \"Low Note\"; \
         ALTER INDEX hashed_note_idx RENAME TO \"Hashed Note\"; COMMENT ON INDEX \"Hashed Note\" IS 'hashed'; \
         CREATE INDEX pages ON t USING brin (id) WITH (pages_per_range = 16); \
         CREATE UNIQUE INDEX identity ON t (part, id); \
         ALTER TABLE t REPLICA IDENTITY USING INDEX identity; \
         ALTER TABLE few REPLICA IDENTITY USING INDEX few_part_id_idx; \
         CREATE INDEX alone ON leaves.low (note, id); COMMENT ON INDEX leaves.alone IS 'alone'; \
         ALTER TABLE rest ADD CONSTRAINT rest_id UNIQUE (id); \
         CREATE INDEX of_hashed ON hashed (amount, note); \
         {extra} \
         CREATE INDEX unfinished ON ONLY t (id, note); CREATE INDEX low_unfinished ON leaves.low (id, note); \
         ALTER INDEX unfinished ATTACH PARTITION leaves.low_unfinished"
    )
}

/// What pg_dump does not tell of the indexes of all tables, or only in words of its own. (`connoinherit`,
/// which means nothing for keys, depends on whether the server made the key of a partition or attached it.)
fn marks(database: &Database) -> Vec<Vec<Option<String>>> {
    database.rows(
        "SELECT i.indexrelid::regclass, h.inhparent::regclass, i.indisvalid, i.indisunique, i.indisprimary, \
                i.indimmediate, i.indisclustered, i.indisreplident, c.reltablespace, c.reloptions, c.relowner, \
                con.conislocal, con.coninhcount, p.conname, \
                (SELECT count(*) FROM pg_depend d WHERE d.objid = i.indexrelid AND d.deptype = 'x'), \
                (SELECT string_agg(attstattarget::text, ',' ORDER BY attnum) FROM pg_attribute \
                 WHERE attrelid = i.indexrelid) \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid \
         LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid \
         LEFT JOIN pg_constraint con ON con.conindid = i.indexrelid AND con.contype IN ('p', 'u', 'x') \
         LEFT JOIN pg_constraint p ON p.oid = con.conparentid \
         WHERE t.relnamespace IN ('public'::regnamespace, 'leaves'::regnamespace) ORDER BY c.relname, 1",
    )
}

#[test]
fn everything_of_a_partitioned_table_comes_back() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(21, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        let tablespace = format!("space_{}", database.name());
        database.sql(&format!("ALTER DATABASE {} SET allow_in_place_tablespaces = on", database.name()));
        database.sql(&format!("CREATE TABLESPACE {tablespace} LOCATION ''"));
        database.sql(&everything(major, &tablespace));
        let (before, marks) = (schema(&database), marks(&database));
        let finished = load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE);
        let told = finished.expect_code(0).stderr;
        assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
        assert_eq!(open_entries(&database), 0, "{told}");
        assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
        assert_eq!(self::marks(&database), marks, "PostgreSQL {major}\n{told}");
        let kept: Vec<&str> = told.lines().filter(|line| line.contains("is kept")).collect();
        assert!(
            kept.len() == 1 && kept[0].contains("the index unfinished of public.t is kept: it is not valid"),
            "{kept:?}"
        );
        for dropped in
            ["primary key Key", "index alone of leaves.low", "unique constraint rest_id of public.rest"]
        {
            assert!(told.contains(dropped), "{dropped}: {told}");
        }
        // An index that is still there keeps its number; all others are new.
        let stayed = "SELECT count(*) FROM howdah.undo WHERE kind IN ('index', 'partitioned index') \
                      AND name IN ('unfinished', 'low_unfinished')";
        assert_eq!(database.value(stayed), "0");
        assert!(told.contains(" indexes are built, in "), "{told}");
    }
}

/// A primary key and an index on two partitions, and one that gets no rows.
const PLAIN_TABLES: &str = "\
    CREATE TABLE t (id bigint, part integer, amount numeric, note text, PRIMARY KEY (part, id)) PARTITION BY RANGE (part); \
    CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100); \
    CREATE TABLE high PARTITION OF t FOR VALUES FROM (100) TO (256); \
    CREATE TABLE far PARTITION OF t FOR VALUES FROM (1000) TO (2000); \
    CREATE TABLE farther PARTITION OF t FOR VALUES FROM (2000) TO (3000); \
    CREATE INDEX t_note ON t (note)";

#[test]
fn partitions_that_come_and_go_meanwhile_have_their_indexes_afterwards() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(22, 1, 4 * ROWS));
    side_by_side(MAJORS, |major| {
        let database = Server::shared(major).database();
        database.sql(PLAIN_TABLES);
        shut_gate_behind(&database, 2);
        let load =
            load(&database, &source).args(["--indexes", "rebuild", "--chunk-size", "64kB", "--jobs", "2"]);
        let mut running = load.spawn();
        assert!(wait_for(&database, &mut running, CHUNKS, 2));
        database.sql(
            "ALTER TABLE t DETACH PARTITION far; DROP TABLE farther; \
             CREATE TABLE later PARTITION OF t FOR VALUES FROM (3000) TO (4000)",
        );
        assert!(open_entries(&database) > 0, "the indexes are not back yet");
        open_gate(&database);
        let told = running.wait(PATIENCE).expect_code(0).stderr;
        assert_eq!(open_entries(&database), 0, "{told}");
        assert!(
            told.contains(
                "index far_pkey of public.far is not put back: the table is no partition of that index's table any more"
            ) && told.contains("index farther_pkey of public.farther is not put back: the table is gone"),
            "{told}"
        );
        assert!(!told.contains("is there already"), "{told}");
        let indexes = |table: &str| {
            database.value(&format!(
                "SELECT string_agg(indexrelid::regclass::text || ' ' || indisvalid, ',' ORDER BY 1) FROM ( \
                 SELECT * FROM pg_index WHERE indrelid = '{table}'::regclass ORDER BY indexrelid::regclass::text) i"
            ))
        };
        assert_eq!(indexes("t"), "t_note true,t_pkey true", "PostgreSQL {major}: {told}");
        assert_eq!(indexes("far"), "far_note_idx true,far_pkey true", "PostgreSQL {major}");
        assert_eq!(indexes("later"), "later_note_idx true,later_pkey true", "PostgreSQL {major}");
        let attached =
            "SELECT count(*) FROM pg_inherits WHERE inhparent IN ('t_pkey'::regclass, 't_note'::regclass)";
        assert_eq!(database.value(attached), "6", "PostgreSQL {major}");
    });
}

#[test]
fn duplicates_in_one_partition_leave_the_others_built_and_restore_attaches_the_last() {
    let files = Files::new();
    let mut bytes = csv(23, 1, ROWS);
    bytes.extend_from_slice(b"90000,17,1.00,once\n90000,17,1.00,again\n");
    let source = files.put("a.csv", &bytes);
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(PLAIN_TABLES);
        let before = schema(&database);
        let told =
            load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(1).stderr;
        // From 18 on it is built by its constraint, for the sake of NOT NULL.
        let (what, entries) = match major {
            ..18 => ("index", "attach low_pkey,constraint low_pkey,index low_pkey"),
            _ => ("constraint", "attach low_pkey,constraint low_pkey"),
        };
        let words = format!(
            "error: the {what} low_pkey of public.low cannot be put back: several rows of the table have the same key"
        );
        assert!(told.contains(&words), "{told}");
        assert!(!told.contains("attachment"), "what lacks it is not tried: {told}");
        let open = "SELECT string_agg(kind || ' ' || name, ',' ORDER BY kind) FROM howdah.undo WHERE undone_at IS NULL";
        assert_eq!(database.value(open), entries);
        assert_eq!(
            database.value("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_pkey'::regclass"),
            "f"
        );
        let other = files.put("b.csv", &csv(13, 10_000, 10));
        let told = load(&database, &other).run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("has dropped low_pkey of public.t and not put that back yet"), "{told}");
        database.sql("DELETE FROM t WHERE note = 'again'");
        super::restore(&database).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_eq!(
            database.value("SELECT indisvalid FROM pg_index WHERE indexrelid = 't_pkey'::regclass"),
            "t"
        );
    }
}

#[test]
fn what_a_partitioned_table_must_keep_is_kept_with_the_reason() {
    let role = |database: &Database| format!("other_{}", database.name());
    for (sql, told_of) in [
        (
            "CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing; \
             CREATE TABLE t (id bigint, part integer, amount numeric, note text) PARTITION BY RANGE (part); \
             CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (256); \
             CREATE FOREIGN TABLE high PARTITION OF t FOR VALUES FROM (256) TO (512) SERVER nowhere; \
             CREATE INDEX t_note ON t (note)",
            "t_note of public.t is kept: the partition public.high is no ordinary table",
        ),
        (
            "CREATE TABLE parents (part integer PRIMARY KEY); INSERT INTO parents SELECT generate_series(0, 255); \
             TABLES; ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parents",
            "the foreign key f of public.t is kept: a partitioned table has to do with it",
        ),
        (
            "TABLES; CREATE TABLE child (part integer, id bigint, FOREIGN KEY (part, id) REFERENCES t)",
            "primary key t_pkey of public.t is kept: the foreign key child_part_id_fkey of public.child hangs on it",
        ),
        (
            "TABLES; CREATE TABLE child (part integer, id bigint, FOREIGN KEY (part, id) REFERENCES low)",
            "primary key t_pkey of public.t is kept: its part low_pkey of public.low: the foreign key",
        ),
        ("TABLES; CREATE PUBLICATION p FOR TABLE low", "replica identity"),
        (
            "TABLES; CREATE VIEW v AS SELECT part, id, note FROM high GROUP BY part, id",
            "its part high_pkey of public.high: rule _RETURN on view public.v depends on it",
        ),
    ] {
        for major in MAJORS {
            // It can be NOT VALID there.
            if major >= 18 && told_of.contains("foreign key f") {
                continue;
            }
            let files = Files::new();
            let source = files.put("a.csv", &csv(24, 1, 500));
            let database = Server::shared(major).database();
            database.sql(&sql.replace("TABLES", PLAIN_TABLES));
            let before = schema(&database);
            let finished = load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE);
            let told = finished.expect_code(0).stderr;
            assert!(told.contains(told_of), "PostgreSQL {major}: {told_of}\n{told}");
            assert_eq!(schema(&database), before, "PostgreSQL {major}: {told_of}");
            assert_eq!(open_entries(&database), 0);
        }
    }
    // A partition of another role's.
    let files = Files::new();
    let source = files.put("a.csv", &csv(24, 1, 500));
    let database = Server::shared(15).database();
    let role = role(&database);
    database.sql(&format!(
        "{PLAIN_TABLES}; CREATE ROLE {role} LOGIN; ALTER TABLE t OWNER TO {role}; \
         GRANT CREATE ON SCHEMA public TO {role}; GRANT CREATE ON DATABASE {} TO {role}",
        database.name()
    ));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(source);
    let told = load.args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("is kept: the partition public.far belongs to another role"), "{told}");
}

#[test]
fn foreign_keys_of_partitioned_tables_are_validated_where_that_can_be() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(25, 1, ROWS));
    let database = Server::shared(18).database();
    database.sql(&format!(
        "{TABLES} CREATE TABLE parents (part integer PRIMARY KEY); INSERT INTO parents SELECT generate_series(0, 255); \
         ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (part) REFERENCES parents ON DELETE CASCADE DEFERRABLE; \
         ALTER TABLE t ADD CONSTRAINT g FOREIGN KEY (part) REFERENCES parents; \
         ALTER TABLE t ADD CONSTRAINT named FOREIGN KEY (part) REFERENCES parents; \
         ALTER TABLE rest RENAME CONSTRAINT named TO other; \
         COMMENT ON CONSTRAINT f ON t IS 'f'"
    ));
    let keys = || {
        database.rows(
            "SELECT conrelid::regclass, conname, convalidated, conislocal, coninhcount, conparentid <> 0, \
                    pg_get_constraintdef(oid), (SELECT count(*) FROM pg_trigger t WHERE t.tgconstraint = c.oid) \
             FROM pg_constraint c WHERE contype = 'f' AND conrelid::regclass::text NOT LIKE 'howdah.%' ORDER BY 1, 2",
        )
    };
    let (before, wanted) = (schema(&database), keys());
    let load = load(&database, &source).args(["--indexes", "keep", "--triggers", "disable"]);
    let told = load.run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("dropped from public.t, to be put back at the end: foreign key f, foreign key g\n"),
        "{told}"
    );
    assert!(told.contains("the foreign key f of public.t is validated"), "{told}");
    assert_eq!(schema(&database), before);
    assert_eq!(keys(), wanted);
    let wrong = files.put("b.csv", b"id,part,amount,note\n1000000,999,1.00,wrong\n");
    database.sql("ALTER TABLE t DROP CONSTRAINT named");
    let load = super::load(&database, &wrong).args(["--indexes", "rebuild"]);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("the foreign key f of public.t holds for new rows, but rows are in the table"),
        "{told}"
    );
}

/// As DETACH PARTITION would have left it.
#[test]
fn partitions_that_are_detached_meanwhile_have_their_foreign_keys() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(27, 1, ROWS));
    let database = Server::shared(18).database();
    let tables = format!(
        "{TABLES} CREATE TABLE parents (part integer PRIMARY KEY); INSERT INTO parents SELECT generate_series(0, 255); \
         ALTER TABLE t ADD CONSTRAINT \"It's f\" FOREIGN KEY (part) REFERENCES parents ON DELETE CASCADE; \
         ALTER TABLE t ADD CONSTRAINT late FOREIGN KEY (part) REFERENCES parents NOT VALID"
    );
    let keys = "SELECT string_agg(concat_ws(' ', conrelid::regclass, conname, convalidated, conparentid <> 0, pg_get_constraintdef(oid)), \
                    E'\\n' ORDER BY conrelid::regclass::text, conname) \
                FROM pg_constraint WHERE contype = 'f' AND connamespace::regnamespace::text IN ('public', 'leaves')";
    // What the server itself leaves.
    let detach =
        "ALTER TABLE t DETACH PARTITION hashed; ALTER TABLE t DETACH PARTITION \"Turned\"; DROP TABLE listed";
    let wanted = Server::shared(18).database();
    [&database, &wanted].iter().for_each(|database| database.sql(&tables));
    wanted.sql(detach);
    shut_gate_behind(&database, 0);
    let load = load(&database, &source).args(["--indexes", "keep", "--triggers", "disable"]);
    let mut running = load.args(["--partitions", "parent"]).spawn();
    let dropped = "SELECT count(*) = 0 FROM pg_constraint WHERE contype = 'f' AND conrelid = 't'::regclass";
    let hit = wait_for(&database, &mut running, "SELECT count(*) FROM howdah.undo", 1);
    assert!(hit && wait_for(&database, &mut running, dropped, 1), "{}", running.stderr_so_far());
    database.sql(detach);
    remove_gate(&database);
    let told = running.wait(PATIENCE).expect_code(0).stderr;
    assert_eq!(database.value(keys), wanted.value(keys), "{told}");
    assert_eq!(open_entries(&database), 0, "{told}");
}

#[test]
fn auto_rebuilds_an_empty_partitioned_table_and_keeps_what_others_may_need() {
    let files = Files::new();
    let much = files.put("much.csv", &csv(17, 1, 2000));
    OpenOptions::new().write(true).open(&much).unwrap().set_len(300 << 20).unwrap();
    let database = Server::shared(18).database();
    database.sql(&format!("{PLAIN_TABLES}; CREATE INDEX alone ON low (amount)"));
    let to = database.conninfo();
    let planned = || {
        let plan =
            howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&much);
        plan.run(PATIENCE).expect_code(0).stdout
    };
    let told = planned();
    for one in ["primary key t_pkey", "index t_note"] {
        assert!(
            told.contains(&format!("{one} is dropped, and built behind the last row: keeping it costs")),
            "{told}"
        );
    }
    assert!(
        told.contains(
            "index of public.low alone is kept: how many of the rows go into its partition is not known"
        ),
        "{told}"
    );
    database.sql("INSERT INTO t SELECT n, 1100, 0, 'there' FROM generate_series(1, 500000) n; ANALYZE t");
    let told = planned();
    assert!(told.contains("primary key t_pkey is kept: the table holds rows"), "{told}");
    assert!(
        told.contains("index t_note is kept: other sessions may need it: the table holds about 500000 rows"),
        "{told}"
    );
}

/// Each index of a partition takes its time, however few rows it is of.
#[test]
fn what_many_indexes_of_partitions_take_is_counted_and_told() {
    let files = Files::new();
    let much = files.put("much.csv", &csv(17, 1, 2000));
    OpenOptions::new().write(true).open(&much).unwrap().set_len(300 << 20).unwrap();
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE t (id bigint, part integer, amount numeric, note text) PARTITION BY RANGE (part); \
         CREATE INDEX t_id ON t (id); \
         DO $$BEGIN FOR i IN 0..599 LOOP EXECUTE format('CREATE TABLE t_%1$s PARTITION OF t FOR VALUES FROM (%1$s) TO (%2$s)', \
             i, i + 1); END LOOP; END$$",
    );
    let plan = |indexes: &str| {
        let plan = howdah("plan").args(["--format", "csv", "--header", "--table", "t", "--indexes", indexes]);
        plan.args(["--to", &database.conninfo()]).arg(&much).run(PATIENCE).expect_code(0).stdout
    };
    let told = plan("auto");
    assert!(told.contains("index t_id is kept: keeping it costs about"), "{told}");
    let told = plan("rebuild");
    assert!(
        told.contains("600 indexes of partitions are dropped and built one by one: about 12 s"),
        "{told}"
    );
}
