//! Finding the sequences of a table, and whether their columns' largest values are quickly found.

use crate::server::{connect, observer, on_every_version, shared};
use howdah_model::Relation;
use howdah_target::numbers::{filled, take};
use howdah_target::sequences::of_columns;

on_every_version!(no_table_is_read_as_a_whole_that_is_large_and_has_no_btree_to_tell_the_largest_value, server => {
    let to = server.database().await;
    let admin = observer(&to).await;
    admin.batch_execute(
        "CREATE TABLE plain (a serial, b int); INSERT INTO plain SELECT no, no FROM generate_series(1, 1000) no; \
         CREATE TABLE parted (a serial, b int) PARTITION BY RANGE (a); \
         CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (1000000); INSERT INTO parted TABLE plain",
    ).await.unwrap();
    let session = connect(&to).await;
    let is_quick = async |table: &str, scan_bytes_max| {
        let table = Relation { schema: "public".to_owned(), name: table.to_owned() };
        of_columns(&session, &table, &["a".to_owned()], scan_bytes_max).await.unwrap()[0].is_quick
    };
    for table in ["plain", "parted"] {
        assert!(is_quick(table, 1 << 20).await, "{table} is small");
        assert!(!is_quick(table, 16 << 10).await, "{table}");
        for index in [
            "USING hash (a)", "USING brin (a)", "USING btree (b, a)", "USING btree (a) WHERE b > 0", "USING btree ((a + 0))",
        ] {
            admin.batch_execute(&format!("CREATE INDEX i ON {table} {index}")).await.unwrap();
            assert!(!is_quick(table, 16 << 10).await, "{table} {index}");
            admin.batch_execute("DROP INDEX i").await.unwrap();
        }
        admin.batch_execute(&format!("CREATE INDEX i ON {table} (a, b)")).await.unwrap();
        assert!(is_quick(table, 16 << 10).await, "{table} with an index");
        admin.batch_execute("DROP INDEX i").await.unwrap();
    }
});

on_every_version!(an_increment_that_others_set_at_the_moment_is_kept_and_obeyed, server => {
    let to = server.database().await;
    let (admin, other) = (observer(&to).await, observer(&to).await);
    admin.batch_execute("CREATE SEQUENCE s").await.unwrap();
    let session = connect(&to).await;
    let sequence = Relation { schema: "public".to_owned(), name: "s".to_owned() };
    assert_eq!(take(&session, &sequence, 10, None).await.unwrap(), (1, 1));
    other.batch_execute("BEGIN; ALTER SEQUENCE s INCREMENT BY 2").await.unwrap();
    let waits = async {
        let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%ALTER SEQUENCE%'";
        while admin.query(waiting, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        other.batch_execute("COMMIT").await.unwrap();
    };
    let (taken, ()) = tokio::join!(take(&session, &sequence, 10, None), waits);
    assert_eq!(taken.unwrap(), (12, 2));
    let row = admin.query_one("SELECT seqincrement, nextval('s') FROM pg_sequence WHERE seqrelid = 's'::regclass", &[]);
    let row = row.await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (2, 32));
});

/// A crash of the server takes back what is not written yet, and chunks that hold such values are sent again.
#[tokio::test]
async fn values_that_the_server_has_forgotten_are_not_taken_again() {
    let server = shared(15);
    let to = server.database().await;
    let (admin, session) = (observer(&to).await, connect(&to).await);
    for (by, taken, set_back, next) in [
        (1, (1, 1), "setval('s', 1, false)", (11, 1)),
        (1, (1, 1), "setval('s', 50)", (51, 1)),
        (-3, (-1, -3), "setval('s', -1, false)", (-31, -3)),
        (-3, (-1, -3), "setval('s', -100)", (-103, -3)),
    ] {
        admin.batch_execute(&format!("CREATE SEQUENCE s INCREMENT {by}")).await.unwrap();
        let sequence = Relation { schema: "public".to_owned(), name: "s".to_owned() };
        assert_eq!(take(&session, &sequence, 10, None).await.unwrap(), taken);
        admin.batch_execute(&format!("SELECT {set_back}")).await.unwrap();
        let last = taken.0 + 9 * taken.1;
        assert_eq!(take(&session, &sequence, 10, Some(last)).await.unwrap(), next, "{set_back}");
        admin.batch_execute("DROP SEQUENCE s").await.unwrap();
    }
}

on_every_version!(no_values_are_taken_where_the_table_can_tell_that_nextval_was_not_called, server => {
    let to = server.database().await;
    let admin = observer(&to).await;
    admin.batch_execute(
        "CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT lastval()'; \
         CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
         CREATE DOMAIN plain AS text DEFAULT 'x'; CREATE DOMAIN looking AS bigint DEFAULT currval('shared'::text::regclass); \
         CREATE SEQUENCE shared; CREATE TABLE kinds (kind text PRIMARY KEY)",
    ).await.unwrap();
    let session = connect(&to).await;
    for (rest, then, expected) in [
        ("at timestamptz DEFAULT now() + interval '1 day', key uuid DEFAULT gen_random_uuid()", "", true),
        ("kind text DEFAULT 'a' REFERENCES kinds, note plain", "", true),
        ("root bigint DEFAULT currval('t_id_seq')", "", false),
        ("root bigint DEFAULT lastval() + 1", "", false),
        ("root bigint DEFAULT last()", "", false),
        ("root looking", "", false),
        ("root looking DEFAULT 1", "", true),
        ("code text DEFAULT 'A' || nextval('t_id_seq')", "", false),
        ("w int", "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION seen()", false),
        ("w int", "CREATE TRIGGER g AFTER INSERT ON t EXECUTE FUNCTION seen()", false),
        ("w int", "CREATE TRIGGER g AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION seen()", true),
        ("w int", "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION seen(); ALTER TABLE t DISABLE TRIGGER g", true),
    ] {
        let make = format!("CREATE TABLE t (id bigserial, v text, {rest})");
        admin.batch_execute(&make).await.unwrap();
        admin.batch_execute(then).await.unwrap();
        let row = admin.query_one("SELECT 't'::regclass::oid", &[]).await.unwrap();
        let found = filled(&session, row.get(0), &["v".to_owned()]).await.unwrap();
        assert_eq!(found.is_some(), expected, "{rest} {then}");
        admin.batch_execute("DROP TABLE t").await.unwrap();
    }
    // A trigger of a partitioned table is its partitions', too.
    admin.batch_execute(
        "CREATE TABLE p (id bigserial, v text) PARTITION BY RANGE (id); CREATE TABLE t PARTITION OF p DEFAULT; \
         CREATE TRIGGER g AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION seen()",
    ).await.unwrap();
    let row = admin.query_one("SELECT 't'::regclass::oid", &[]).await.unwrap();
    assert_eq!(filled(&session, row.get(0), &["v".to_owned()]).await.unwrap(), None);
});
