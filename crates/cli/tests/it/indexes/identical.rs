//! Everything that can be said of an index, a key or a foreign key comes back.

use super::{COMPARED_BY_LIBC, PLAIN_SCHEMA, load, open_entries, schema};
use crate::scene::{Files, PATIENCE, csv};
use howdah_testkit::{Database, MAJORS, Server};

const ROWS: u64 = 5000;

fn rebuild(database: &Database, source: &std::path::Path) -> String {
    let finished = load(database, source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0);
    assert_eq!(open_entries(database), 0, "{}", finished.stderr);
    assert_eq!(database.value("SELECT count(*) FROM t"), ROWS.to_string());
    finished.stderr
}

#[test]
fn plain_indexes_and_a_primary_key_are_rebuilt() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(7, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(PLAIN_SCHEMA);
        let before = schema(&database);
        let oids = "SELECT array_agg(indexrelid ORDER BY indexrelid)::text FROM pg_index WHERE indrelid = 't'::regclass";
        let oids_before = database.value(oids);
        let told = rebuild(&database, &source);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_ne!(database.value(oids), oids_before, "they were dropped");
        assert!(told.contains("dropped from public.t, to be put back at the end: "), "{told}");
        assert!(
            told.contains("primary key t_pkey") && told.contains("the index t_note of public.t is built"),
            "{told}"
        );
        assert_eq!(database.value("SELECT count(*) FROM howdah.undo WHERE undone_at IS NOT NULL"), "4");
    }
}

/// Writes down what the settings are while an index is built.
const BUILDS: &str = "\
    CREATE TABLE build (name text, memory text, workers text, options text); \
    CREATE FUNCTION note_build() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
        INSERT INTO public.build SELECT c.relname, current_setting('maintenance_work_mem'), \
            current_setting('max_parallel_maintenance_workers'), t.reloptions::text \
        FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON c.oid = d.objid \
        JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid; END $$; \
    CREATE EVENT TRIGGER note_build ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION note_build()";

#[test]
fn strings_that_the_c_library_compares_are_sorted_in_little_memory() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(7, 1, ROWS));
    let cpus = std::thread::available_parallelism().unwrap().get();
    for major in MAJORS {
        for (options, tune, during, set) in [
            ("fillfactor = 90, toast_tuple_target = 1000", "table", format!("parallel_workers={cpus}"), true),
            (
                "parallel_workers = 1, fillfactor = 90",
                "table",
                "parallel_workers=1,fillfactor=90".to_owned(),
                false,
            ),
            ("fillfactor = 90", "session", "fillfactor=90".to_owned(), false),
            ("fillfactor = 90", "none", "fillfactor=90".to_owned(), false),
        ] {
            let what = format!("PostgreSQL {major}, {options}, --tune {tune}");
            let database = Server::shared(major).database();
            database
                .sql(&format!("{PLAIN_SCHEMA}; {COMPARED_BY_LIBC}; ALTER TABLE t SET ({options}); {BUILDS}"));
            let before = schema(&database);
            let load = load(&database, &source).args(["--indexes", "rebuild", "--tune", tune, "--json"]);
            let done = load.run(PATIENCE).expect_code(0);
            let told = done.stderr;
            assert_eq!(schema(&database), before, "{what}: {told}");
            assert_eq!(open_entries(&database), 0, "{what}: {told}");
            let tuned = done.stdout.contains(&format!("\"parallel_workers of public.t = {cpus}\""));
            assert_eq!(tuned, set && cpus > 1, "{what}: {}", done.stdout);
            let built = |column: &str, name: &str| {
                database.value(&format!("SELECT {column} FROM build WHERE name = '{name}'"))
            };
            let of_table = built("options", "t_note");
            assert!(of_table.contains(&during), "{what}: {of_table}");
            let entries = database.value("SELECT count(*) FROM howdah.undo WHERE kind = 'workers'");
            assert_eq!(entries, u8::from(set && cpus > 1).to_string(), "{what}");
            // Two builds side by side leave each half of the CPUs; of more than one worker nothing is known.
            let offers_one = cpus / 2 <= 2;
            let memory_mb = |name: &str| built("memory", name).trim_end_matches("MB").parse::<u64>().unwrap();
            let little = memory_mb("t_note") < 32;
            assert_eq!(little, tune != "none" && offers_one, "{what}: {} MB", memory_mb("t_note"));
            assert!(memory_mb("t_pkey") >= 64, "{what}: numbers are sorted as ever");
        }
    }
}

#[test]
fn kept_indexes_are_not_touched() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(7, 1, ROWS));
    let database = Server::shared(15).database();
    database.sql(PLAIN_SCHEMA);
    let oids =
        "SELECT array_agg(indexrelid ORDER BY indexrelid)::text FROM pg_index WHERE indrelid = 't'::regclass";
    let before = database.value(oids);
    load(&database, &source).args(["--indexes", "keep"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(oids), before);
    let refused = load(&database, &source).args(["--indexes", "rebuild", "--ledger", "none"]).run(PATIENCE);
    assert!(refused.expect_code(2).stderr.contains("--indexes rebuild needs a ledger"));
}

/// Names that need quotes, and everything that an index or a constraint can carry. Rows are those of
/// `scene::csv`: id, part (0 to 255), amount, note.
fn everything(major: u32, tablespace: &str) -> String {
    let (nulls, extra) = if major >= 15 {
        ("NULLS NOT DISTINCT", "CREATE UNIQUE INDEX t_nnd ON t (id, note) NULLS NOT DISTINCT;")
    } else {
        ("", "")
    };
    format!(
        "CREATE SCHEMA other; \
         CREATE FUNCTION other.half(numeric) RETURNS numeric IMMUTABLE LANGUAGE sql SET search_path = pg_catalog AS 'SELECT $1 / 2'; \
         CREATE TABLE \"Parent Table\" (id integer PRIMARY KEY, code text, CONSTRAINT \"Code\" UNIQUE (code)); \
         INSERT INTO \"Parent Table\" SELECT n, 'c' || n FROM generate_series(0, 255) n; \
         CREATE TABLE t (id bigint, part integer, amount numeric, note text, span int4range, words text[], \
             CONSTRAINT \"Key\" PRIMARY KEY (id) INCLUDE (part) WITH (fillfactor = 70) USING INDEX TABLESPACE {tablespace}, \
             CONSTRAINT late UNIQUE (id, part) DEFERRABLE INITIALLY DEFERRED, \
             CONSTRAINT whenever UNIQUE {nulls} (part, id) DEFERRABLE, \
             CONSTRAINT apart EXCLUDE USING gist (span WITH &&) WITH (fillfactor = 80) \
                 USING INDEX TABLESPACE {tablespace} WHERE (part > 1000) DEFERRABLE, \
             CONSTRAINT own FOREIGN KEY (part) REFERENCES \"Parent Table\" ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED); \
         ALTER TABLE t ADD CONSTRAINT unproved FOREIGN KEY (part) REFERENCES \"Parent Table\" NOT VALID; \
         ALTER TABLE t ADD CONSTRAINT myself FOREIGN KEY (id) REFERENCES t (id); \
         CREATE TABLE other.child (id bigint REFERENCES t ON UPDATE SET NULL, again bigint, \
             CONSTRAINT \"It's\" FOREIGN KEY (again) REFERENCES t (id) MATCH FULL); \
         {extra} \
         CREATE INDEX \"Half\" ON t (other.half(amount) DESC NULLS LAST, lower(note) COLLATE \"C\" text_pattern_ops) \
             INCLUDE (note) WITH (fillfactor = 50) WHERE part IS NOT NULL; \
         ALTER INDEX \"Half\" ALTER COLUMN 1 SET STATISTICS 777; ALTER INDEX \"Half\" ALTER COLUMN 2 SET STATISTICS 0; \
         ALTER INDEX \"Half\" DEPENDS ON EXTENSION plpgsql; \
         CREATE INDEX constants ON t (id) WHERE note <> E'a\\b''c' AND amount > 1e-7; \
         ALTER TABLE t ADD day date; CREATE INDEX days ON t (id) WHERE day > '2020-02-03'::date; \
         CREATE INDEX words ON t USING gin (words) WITH (fastupdate = off); \
         CREATE INDEX spans ON t USING gist (span) TABLESPACE {tablespace}; \
         CREATE INDEX pages ON t USING brin (id, part) WITH (pages_per_range = 16); \
         CREATE INDEX hashed ON t USING hash (note); \
         ALTER TABLE t ADD more integer NOT NULL DEFAULT 1; CREATE UNIQUE INDEX identity ON t (id, more); \
         ALTER TABLE t REPLICA IDENTITY USING INDEX identity; \
         CREATE INDEX \"by part\" ON t (part); ALTER TABLE t CLUSTER ON \"by part\"; \
         COMMENT ON INDEX \"Half\" IS E'it''s\\nhalf'; COMMENT ON INDEX \"Key\" IS 'index of a key'; \
         COMMENT ON CONSTRAINT \"Key\" ON t IS 'a key'; COMMENT ON CONSTRAINT apart ON t IS 'apart'; \
         COMMENT ON INDEX apart IS 'index apart'; COMMENT ON CONSTRAINT own ON t IS 'own'; \
         COMMENT ON CONSTRAINT \"It's\" ON other.child IS 'theirs'"
    )
}

#[test]
fn everything_that_can_be_said_of_an_index_comes_back() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(8, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        let tablespace = format!("space_{}", database.name());
        database.sql(&format!("ALTER DATABASE {} SET allow_in_place_tablespaces = on", database.name()));
        database.sql(&format!("CREATE TABLESPACE {tablespace} LOCATION ''"));
        database.sql(&everything(major, &tablespace));
        database.sql(&format!(
            "ALTER DATABASE {0} SET datestyle = 'German'; ALTER DATABASE {0} SET quote_all_identifiers = on",
            database.name()
        ));
        let (before, marks) = (schema(&database), marks(&database));
        let told = rebuild(&database, &source);
        assert_eq!(schema(&database), before, "PostgreSQL {major}\n{told}");
        assert_eq!(self::marks(&database), marks, "PostgreSQL {major}\n{told}");
        assert!(!told.contains("is kept"), "{told}");
        let not_valid =
            "SELECT string_agg(conname, ',') FROM pg_constraint WHERE NOT convalidated AND contype = 'f'";
        assert_eq!(database.value(not_valid), "unproved", "PostgreSQL {major}");
    }
}

/// What pg_dump does not tell, or only in words of its own.
fn marks(database: &Database) -> Vec<Vec<Option<String>>> {
    database.rows(
        "SELECT i.indexrelid::regclass, i.indisvalid, i.indisunique, i.indisprimary, i.indimmediate, i.indisclustered, \
                i.indisreplident, c.reltablespace, c.reloptions, c.relowner, \
                (SELECT count(*) FROM pg_depend d WHERE d.objid = i.indexrelid AND d.deptype = 'x') \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 't'::regclass ORDER BY c.relname",
    )
}

#[test]
fn two_tables_that_refer_to_each_other_are_loaded_at_once() {
    let files = Files::new();
    files.put("t.csv", &csv(9, 1, ROWS));
    files.put("u.csv", &csv(9, 1, ROWS));
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); \
             CREATE TABLE u (id bigint PRIMARY KEY REFERENCES t, part integer, amount numeric, note text); \
             ALTER TABLE t ADD CONSTRAINT round FOREIGN KEY (id) REFERENCES u",
        );
        let before = schema(&database);
        let pattern = files.path().join("{table}.csv");
        let to = database.conninfo();
        let load =
            crate::scene::howdah("load").args(["--format", "csv", "--header", "--to", &to]).arg(pattern);
        load.args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0);
        assert_eq!(schema(&database), before, "PostgreSQL {major}");
        assert_eq!(database.value("SELECT count(*) FROM t JOIN u USING (id)"), ROWS.to_string());
        assert_eq!(open_entries(&database), 0);
    }
}

#[test]
fn keys_of_a_new_table_are_built_behind_its_rows() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(10, 1, ROWS));
    let database = Server::shared(18).database();
    let to = database.conninfo();
    let load =
        crate::scene::howdah("load").args(["--create", "--primary-key", "id", "--table", "t", "--to", &to]);
    let told = load.arg(source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("primary key t_pkey"), "{told}");
    assert_eq!(database.value("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'p' AND conrelid = 't'::regclass"), "PRIMARY KEY (id)");
}
