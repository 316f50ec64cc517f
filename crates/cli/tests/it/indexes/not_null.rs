//! From PostgreSQL 18 on NOT NULL is a constraint with a name and an inheritance of its own: that of a
//! primary key's column is after the load what it was before.

use super::{load, open_entries, restore, schema};
use crate::scene::{Files, PATIENCE, csv};
use howdah_testkit::Server;

const ROWS: u64 = 2000;

const NO_INHERIT: &str = "ALTER TABLE t ALTER CONSTRAINT t_id_not_null NO INHERIT";
const INHERIT: &str = "ALTER TABLE t ALTER CONSTRAINT t_id_not_null INHERIT";

/// A primary key over two columns and an index.
const TABLE: &str = "\
    CREATE TABLE t (id bigint, part integer, amount numeric, note text, more integer NOT NULL NO INHERIT DEFAULT 1, \
                    CONSTRAINT t_pkey PRIMARY KEY (part, id)); \
    CREATE INDEX t_note ON t (note)";

#[test]
fn a_key_that_the_server_would_not_take_again_is_kept() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(31, 1, ROWS));
    let database = Server::shared(18).database();
    database.sql(&format!("{TABLE}; {NO_INHERIT}"));
    let before = schema(&database);
    let told = load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
    let reason = "primary key t_pkey of public.t is kept: the NOT NULL of its column id is NO INHERIT";
    assert!(told.contains(reason) && told.contains("index t_note of public.t is built"), "{told}");
    assert_eq!(schema(&database), before);
    // A NOT NULL that is not of its columns is nothing to it.
    database.sql(&format!("TRUNCATE t; {INHERIT}"));
    let told = load(&database, &source).args(["--indexes", "rebuild", "--force"]).run(PATIENCE);
    let told = told.expect_code(0).stderr;
    assert!(told.contains("primary key t_pkey") && !told.contains("is kept"), "{told}");
}

#[test]
fn a_key_that_the_server_does_not_take_any_more_comes_back_once_it_does() {
    let files = Files::new();
    let mut doubled = csv(32, 1, ROWS);
    doubled.extend_from_slice(b"17,1,1.00,again\n17,1,1.00,again\n");
    let source = files.put("a.csv", &doubled);
    let database = Server::shared(18).database();
    database.sql(TABLE);
    let before = schema(&database);
    load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(1);
    database.sql(&format!("DELETE FROM t WHERE note = 'again'; {NO_INHERIT}"));
    let told = restore(&database).run(PATIENCE).expect_code(1).stderr;
    let words = [
        "constraint t_pkey of public.t cannot be put back",
        "hint: ",
        "ALTER TABLE ... ALTER CONSTRAINT ... INHERIT",
    ];
    assert!(words.iter().all(|words| told.contains(words)), "{told}");
    database.sql(INHERIT);
    restore(&database).run(PATIENCE).expect_code(0);
    assert_eq!(schema(&database), before);
    assert_eq!(open_entries(&database), 0);
}

/// PRIMARY KEY USING INDEX of a partition would make its NOT NULL one of its own, which stays when its parent
/// drops it.
#[test]
fn not_null_of_partitions_stays_their_parents() {
    let files = Files::new();
    let source = files.put("a.csv", &csv(33, 1, ROWS));
    let database = Server::shared(18).database();
    database.sql(
        "CREATE TABLE t (id bigint, part integer NOT NULL, amount numeric, note text, \
                         CONSTRAINT \"Key\" PRIMARY KEY (part, id) INCLUDE (note) WITH (fillfactor = 60) DEFERRABLE) PARTITION BY RANGE (part); \
         CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id); \
         CREATE TABLE low_rest PARTITION OF low DEFAULT; \
         CREATE TABLE own PARTITION OF t (id NOT NULL) FOR VALUES FROM (100) TO (150); CREATE TABLE rest PARTITION OF t DEFAULT; \
         CREATE INDEX t_note ON t (note); COMMENT ON CONSTRAINT rest_pkey ON rest IS 'its'; COMMENT ON INDEX rest_pkey IS 'index'; \
         ALTER TABLE rest CLUSTER ON rest_pkey",
    );
    let of_whom = || {
        let sql = "SELECT conrelid::regclass, conname, conislocal, coninhcount FROM pg_constraint \
                   WHERE contype = 'n' AND connamespace = 'public'::regnamespace ORDER BY conrelid, conname";
        database.rows(sql)
    };
    let (before, were) = (schema(&database), of_whom());
    let told = load(&database, &source).args(["--indexes", "rebuild"]).run(PATIENCE).expect_code(0).stderr;
    assert_eq!(of_whom(), were, "{told}");
    assert_eq!((schema(&database), open_entries(&database)), (before, 0), "{told}");
    assert!(told.contains("primary key Key") && !told.contains("is kept"), "{told}");
}
