//! Rows that the server tries itself, because no query tells what refuses them: triggers and exclusion
//! constraints.

use super::{ROWS, told};
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, MAJORS, Server};
use std::path::PathBuf;

/// Every fiftieth record is refused.
const ONE_OF: u64 = 50;

/// Columns `id,code,note`.
fn records(files: &Files) -> PathBuf {
    let record = |id: u64| format!("{id},{},note {id}\n", if id.is_multiple_of(ONE_OF) { 0 } else { id });
    files.put("t.csv", (1..=ROWS).map(record).collect::<String>().as_bytes())
}

/// A trigger that refuses the code 0, and counts, beyond any rollback, how often the server tried a row
/// itself.
const REFUSING: &str = "CREATE SEQUENCE tried; GRANT USAGE ON SEQUENCE tried TO PUBLIC; \
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF current_query() LIKE '%howdah_insert%' THEN PERFORM nextval('public.tried'); END IF; \
        IF NEW.code = 0 THEN RAISE 'the note is %', NEW.note USING ERRCODE = '23505', CONSTRAINT = 'secret'; END IF; \
        RETURN NEW; END $$;";

const WAS_TRIED: &str = "SELECT is_called FROM tried";

/// Loads the records, of which every fiftieth is refused: read = stored + rejected, each with its bytes.
fn load_and_check(database: &Database, user: &str, source: &PathBuf, options: &[&str], case: &str) {
    let to = database.conninfo().replace("user=postgres", &format!("user={user}"));
    let run = howdah("load").args(["--to", &to, "--json", "--on-error", "skip", "--chunk-size", "128kB"]);
    let run = run.args(["--format", "csv", "--table", "t", "--columns", "id,code,note"]).args(options);
    let summary = told(&run.arg(source).run(PATIENCE).expect_code(3));
    let bad = ROWS / ONE_OF;
    assert_eq!(summary["rows_rejected"], bad, "{case}: {summary}");
    let counted = "SELECT count(*) || ' ' || count(*) FILTER (WHERE code = 0 OR note <> 'note ' || id) FROM t WHERE id < 1000000";
    assert_eq!(database.value(counted), format!("{} 0", ROWS - bad), "{case}");
    let kept = "SELECT count(*) FROM howdah.reject \
        WHERE record % 50 = 0 AND convert_from(bytes, 'UTF8') = record || ',0,note ' || record || E'\\n'";
    assert_eq!(database.value(kept), bad.to_string(), "{case}");
}

#[test]
fn rows_that_a_trigger_refuses_are_tried_by_the_server_in_any_form_and_at_any_time() {
    let files = Files::new();
    let source = records(&files);
    for major in MAJORS {
        for when in ["BEFORE", "AFTER"] {
            for encode in ["csv", "binary"] {
                let case = format!("PostgreSQL {major}, {when}, {encode}");
                let database = Server::shared(major).database();
                database.sql(&format!(
                    "CREATE TABLE t (id int, code int, note text, own int GENERATED ALWAYS AS IDENTITY); {REFUSING} \
                     CREATE TRIGGER refuse {when} INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()"
                ));
                load_and_check(
                    &database,
                    "postgres",
                    &source,
                    &["--encode", encode, "--verify", "count"],
                    &case,
                );
                assert_eq!(database.value(WAS_TRIED), "t", "{case}");
                let told = "SELECT string_agg(DISTINCT sqlstate || message, '') FROM howdah.reject";
                let told = database.value(told);
                assert!(told.starts_with("23505a trigger or function raised"), "{case}: {told}");
            }
        }
    }
}

/// The rest of a range without rows that conflict, of which many conflict with more than one.
#[test]
fn rows_that_an_exclusion_constraint_refuses_are_those_that_inserts_refuse() {
    let files = Files::new();
    let record = |id: u64| match id % 20 {
        0 => format!("{id},\"[{},{})\"\n", id * 10 - 25, id * 10 + 5),
        _ => format!("{id},\"[{},{})\"\n", id * 10, id * 10 + 10),
    };
    let source = files.put("t.csv", (1..=ROWS).map(record).collect::<String>().as_bytes());
    for major in MAJORS {
        let database = Server::shared(major).database();
        database.sql(
            "CREATE TABLE t (id int, during int4range, CONSTRAINT alone EXCLUDE USING gist (during WITH &&)); \
             CREATE TABLE model (LIKE t INCLUDING ALL)",
        );
        let run = howdah("load").args(["--to", &database.conninfo(), "--on-error", "skip", "--jobs", "1"]);
        let run = run.args(["--chunk-size", "128kB", "--indexes", "keep", "--format", "csv", "--table", "t"]);
        run.arg(&source).run(PATIENCE).expect_code(3);
        database.sql(&format!(
            "DO $$ BEGIN FOR id IN 1..{ROWS} LOOP \
                 BEGIN INSERT INTO model VALUES (id, CASE id % 20 WHEN 0 THEN int4range(id * 10 - 25, id * 10 + 5) \
                     ELSE int4range(id * 10, id * 10 + 10) END); \
                 EXCEPTION WHEN exclusion_violation THEN NULL; END; END LOOP; END $$"
        ));
        let differ =
            "SELECT count(*) FROM ((TABLE t EXCEPT TABLE model) UNION ALL (TABLE model EXCEPT TABLE t)) d";
        assert_eq!(database.value(differ), "0", "PostgreSQL {major}");
        let rejected = format!(
            "SELECT bool_and(sqlstate = '23P01' AND message LIKE '%\"alone\"%' \
             AND convert_from(bytes, 'UTF8') LIKE record || ',%') AND count(*) = {ROWS} - (SELECT count(*) FROM t) \
             FROM howdah.reject"
        );
        assert_eq!(database.value(&rejected), "t", "PostgreSQL {major}");
    }
}

const ONLY_INSERT: &str = "CREATE ROLE only_inserts LOGIN; GRANT INSERT ON t TO only_inserts; DO $$ BEGIN \
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); \
    EXECUTE format('GRANT CREATE ON DATABASE %I TO only_inserts', current_database()); END $$";

/// It may be sent rows together.
const FOREIGN_PARTITION: &str = "DROP TABLE t; CREATE TABLE t (id int, code int, note text) PARTITION BY RANGE (id); \
    CREATE TABLE near PARTITION OF t FOR VALUES FROM (0) TO (1000000); CREATE EXTENSION postgres_fdw; \
    CREATE SERVER away FOREIGN DATA WRAPPER postgres_fdw; \
    CREATE FOREIGN TABLE far PARTITION OF t FOR VALUES FROM (1000000) TO (2000000) SERVER away; \
    CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse()";

/// INSERT would do more than COPY there, or the role cannot make what is needed.
#[test]
fn tables_with_rules_or_triggers_of_statements_and_roles_without_temporary_tables_are_left_to_copy() {
    let files = Files::new();
    let source = records(&files);
    for (what, user) in [
        (FOREIGN_PARTITION, "postgres"),
        ("CREATE RULE again AS ON INSERT TO t DO ALSO DELETE FROM t", "postgres"),
        ("CREATE TRIGGER each AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION nothing()", "postgres"),
        (
            "CREATE TRIGGER each AFTER INSERT ON t REFERENCING NEW TABLE AS came FOR EACH ROW \
             EXECUTE FUNCTION nothing()",
            "postgres",
        ),
        (ONLY_INSERT, "only_inserts"),
    ] {
        let database = Server::shared(15).database();
        database.sql(&format!(
            "CREATE TABLE t (id int, code int, note text); {REFUSING} \
             CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER refuse BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION refuse(); {what}"
        ));
        load_and_check(&database, user, &source, &[], what);
        assert_eq!(database.value(WAS_TRIED), "f", "{what}");
        if what == ONLY_INSERT {
            database.sql("DROP OWNED BY only_inserts; DROP ROLE only_inserts");
        }
    }
}
