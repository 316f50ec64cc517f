//! Others make the table, or add the column, that a load was planned to make: no value is read for one type
//! and stored in another.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{Database, Finished, HowdahCommand, MAJORS, Server};

const WAITS: &str = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
    WHERE NOT l.granted AND a.datname = current_database()";

/// Runs the load, which is planned while nobody sees what another session does, and comes to it.
fn meanwhile(database: &Database, sql: &str, load: &HowdahCommand) -> Finished {
    let other = database.connect();
    other.sql(&format!("BEGIN; {sql}"));
    let mut running = load.spawn();
    let waits = database.wait_for(WAITS, 1, || running.is_running());
    assert!(waits, "{}", running.stderr_so_far());
    other.sql("COMMIT");
    running.wait(PATIENCE)
}

#[test]
fn a_table_that_others_make_otherwise_is_planned_for_as_it_is() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,v\n1,17.2345\n2,0.5\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        let narrow = "CREATE TABLE t (id integer, v numeric(3,1))";
        let plain = load(&database).args(["--create", "--table", "t"]).arg(&source);
        let told = meanwhile(&database, narrow, &plain).expect_code(0).stderr;
        assert!(told.contains("others have made, changed or replaced a table of this load"), "{told}");
        assert!(told.contains("v is of a type that leaves out digits behind the point"), "{told}");
        database.sql("DROP TABLE t");
        let widened = plain.args(["--evolve", "widen", "--force"]);
        meanwhile(&database, narrow, &widened).expect_code(0);
        let rows = database.value("SELECT string_agg(v::text, ' ' ORDER BY id) FROM t");
        assert_eq!(rows, "17.2345 0.5", "PostgreSQL {major}");
    }
}

#[test]
fn a_key_that_is_asked_for_is_not_lost_with_the_table_that_others_make() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,v\n1,a\n2,b\n");
    let database = Server::shared(15).database();
    let load = load(&database).args(["--create", "--table", "t", "--primary-key", "id"]).arg(&source);
    let told = meanwhile(&database, "CREATE TABLE t (id integer, v text)", &load).stderr;
    assert!(told.contains("others have made, changed or replaced a table of this load"), "{told}");
}

#[test]
fn a_table_that_others_make_alike_serves() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,v\n1,17.2\n2,0.5\n");
    let database = Server::shared(15).database();
    let load = load(&database).args(["--create", "--table", "t", "--primary-key", "id"]).arg(&source);
    let alike = "CREATE TABLE t (id integer PRIMARY KEY, v numeric(3,1))";
    let told = meanwhile(&database, alike, &load).expect_code(0).stderr;
    assert!(!told.contains("planning it anew"), "{told}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
    assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'howdah_planned%'"), "0");
}

#[test]
fn what_a_pipe_brings_is_not_stored_in_a_table_that_others_make_otherwise() {
    let database = Server::shared(15).database();
    let load =
        load(&database).args(["--create", "--table", "t", "-"]).stdin(b"id,v\n1,0012\n2,0003\n".to_vec());
    let narrow = "CREATE TABLE t (id integer, v integer)";
    let told = meanwhile(&database, narrow, &load).expect_code(1).stderr;
    assert!(told.contains("public.t was made by others since this load was planned"), "{told}");
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

#[test]
fn a_column_that_others_add_otherwise_is_planned_for_as_it_is() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,v,w\n1,x,a\n2,y,b\n");
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql("CREATE TABLE t (id integer)");
        let load = load(&database).args(["--evolve", "add", "--table", "t"]).arg(&source);
        let told = meanwhile(&database, "ALTER TABLE t ADD v integer", &load).expect_code(1).stderr;
        assert!(told.contains("others have made, changed or replaced a table of this load"), "{told}");
        // The plan that came to nothing is not gone on with.
        assert!(told.contains("adds   public.t.w text") && !told.contains("adds   public.t.v"), "{told}");
        assert!(told.contains("column v: invalid input syntax for type integer"), "{told}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "0", "PostgreSQL {major}");
        database.sql("ALTER TABLE t DROP v");
        let told = meanwhile(&database, "ALTER TABLE t ADD v text", &load).expect_code(0).stderr;
        assert!(!told.contains("planning it anew"), "{told}");
        assert_eq!(shape(&database, "t").matches("text").count(), 2, "{told}");
    }
}
