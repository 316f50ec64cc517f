//! Several tables of one load come in, and lose rows, in the order that their foreign keys ask for, whatever
//! their names.

use super::assert_nothing_left;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, HowdahCommand, MAJORS, Server, side_by_side};

fn load(database: &Database, files: &Files, options: &[&str]) -> HowdahCommand {
    howdah("load")
        .args(["--format", "csv", "--header", "--to", &database.conninfo()])
        .args(options)
        .arg(files.path().join("{table}.csv"))
}

#[test]
fn rows_come_behind_those_that_they_lead_to() {
    let files = Files::new();
    files.put("a_child.csv", b"id,parent\n1,1\n2,2\n");
    files.put("b_parent.csv", b"id,top\n1,1\n2,1\n");
    files.put("c_top.csv", b"id\n1\n");
    side_by_side(MAJORS, |major| {
        for (by, parts) in
            [("", ""), ("PARTITION BY RANGE (id)", "CREATE TABLE leaf PARTITION OF b_parent DEFAULT;")]
        {
            for options in
                [&["--atomic"][..], &["--atomic", "--on-error", "skip"], &["--mode", "merge", "--key", "id"]]
            {
                let database = Server::shared(major).database();
                database.sql(&format!(
                    "CREATE TABLE c_top (id int PRIMARY KEY); \
                     CREATE TABLE b_parent (id int PRIMARY KEY, top int REFERENCES c_top) {by}; {parts} \
                     CREATE TABLE a_child (id int PRIMARY KEY, parent int REFERENCES b_parent, next int REFERENCES a_child)"
                ));
                load(&database, &files, options).run(PATIENCE).expect_code(0);
                assert_eq!(
                    database.value("SELECT count(*) FROM a_child"),
                    "2",
                    "PostgreSQL {major}, {options:?}"
                );
                assert_nothing_left(&database, "several tables");
            }
        }
    });
}

/// Tables that lead to each other in a circle come in as before: the server checks their keys at the end, if
/// they are deferred.
#[test]
fn tables_that_lead_to_each_other_come_in_at_once() {
    let files = Files::new();
    files.put("a.csv", b"id,other\n1,2\n");
    files.put("b.csv", b"id,other\n2,1\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE a (id int PRIMARY KEY, other int); \
         CREATE TABLE b (id int PRIMARY KEY, other int REFERENCES a DEFERRABLE INITIALLY DEFERRED); \
         ALTER TABLE a ADD FOREIGN KEY (other) REFERENCES b DEFERRABLE INITIALLY DEFERRED",
    );
    load(&database, &files, &["--atomic"]).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT a.other || ' ' || b.other FROM a, b"), "2 1");
}

/// A key that is checked at the end asks for no order, one that is not does.
#[test]
fn a_circle_with_one_deferred_key_comes_in_by_the_other() {
    let files = Files::new();
    files.put("ca.csv", b"id,b\n1,2\n");
    files.put("cb.csv", b"id,a\n2,1\n");
    side_by_side(MAJORS, |major| {
        for (first, second) in [("DEFERRABLE INITIALLY DEFERRED", ""), ("", "DEFERRABLE INITIALLY DEFERRED")]
        {
            for options in [&["--atomic"][..], &["--atomic", "--mode", "merge", "--key", "id"]] {
                let database = Server::shared(major).database();
                database.sql(&format!(
                    "CREATE TABLE ca (id int PRIMARY KEY, b int); \
                     CREATE TABLE cb (id int PRIMARY KEY, a int REFERENCES ca {second}); \
                     ALTER TABLE ca ADD FOREIGN KEY (b) REFERENCES cb {first}"
                ));
                load(&database, &files, options).run(PATIENCE).expect_code(0);
                let rows = database.value("SELECT ca.b || ' ' || cb.a FROM ca, cb");
                assert_eq!(rows, "2 1", "PostgreSQL {major}, {first}, {options:?}");
            }
        }
    });
}

/// ON DELETE CASCADE takes rows along that the files hold.
#[test]
fn rows_of_the_files_that_would_go_with_others_end_the_load() {
    let files = Files::new();
    files.put("ch.csv", b"id,p\n3,2\n");
    files.put("pa.csv", b"id,p\n1,\n");
    side_by_side(MAJORS, |major| {
        for atomic in ["--atomic=true", "--atomic=false"] {
            for (schema, rows) in [
                // 3 leads to 2, and 2 to 1.
                (
                    "CREATE TABLE ch (id int PRIMARY KEY, p int REFERENCES ch ON DELETE CASCADE); \
                     INSERT INTO ch VALUES (1, NULL), (2, 1), (3, 2); CREATE TABLE pa (id int PRIMARY KEY, p int); \
                     INSERT INTO pa VALUES (1, NULL), (2, NULL)",
                    "3",
                ),
                (
                    "CREATE TABLE pa (id int PRIMARY KEY, p int); INSERT INTO pa VALUES (1, NULL), (2, NULL); \
                     CREATE TABLE ch (id int PRIMARY KEY, p int REFERENCES pa ON DELETE CASCADE); INSERT INTO ch VALUES (3, 2)",
                    "1",
                ),
            ] {
                let database = Server::shared(major).database();
                database.sql(schema);
                let options = ["--mode", "merge", "--key", "id", "--delete-missing", atomic];
                let told = load(&database, &files, &options).run(PATIENCE).expect_code(1).stderr;
                let what = format!("PostgreSQL {major}, {atomic}, {schema}\n{told}");
                assert!(told.contains("public.ch") && told.contains("ON DELETE CASCADE"), "{what}");
                assert_eq!(database.value("SELECT count(*) FROM ch"), rows, "{what}");
                assert_eq!(database.value("SELECT count(*) FROM ch WHERE id = 3"), "1", "{what}");
            }
        }
    });
}

#[test]
fn rows_are_deleted_behind_those_that_lead_to_them() {
    let files = Files::new();
    files.put("customer.csv", b"id,name\n1,a\n3,c\n");
    files.put("orders.csv", b"id,customer\n10,1\n11,3\n");
    side_by_side(MAJORS, |major| {
        for action in ["", "ON DELETE CASCADE"] {
            for atomic in ["--atomic=true", "--atomic=false"] {
                let database = Server::shared(major).database();
                // Order 11 goes from a customer who leaves to a new one, and keeps what the file does not
                // say.
                database.sql(&format!(
                    "CREATE TABLE customer (id int PRIMARY KEY, name text); \
                     CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customer {action}, paid text); \
                     INSERT INTO customer VALUES (1, 'x'), (2, 'b'); \
                     INSERT INTO orders VALUES (10, 1, 'yes'), (11, 2, 'kept'), (12, 2, 'gone')"
                ));
                let options =
                    ["--mode", "merge", "--key", "id", "--delete-missing", "--verify", "checksum", atomic];
                load(&database, &files, &options).run(PATIENCE).expect_code(0);
                let what = format!("PostgreSQL {major}, {action}, {atomic}");
                let orders =
                    "SELECT string_agg(concat(id, ' ', customer, ' ', paid), ', ' ORDER BY id) FROM orders";
                assert_eq!(database.value(orders), "10 1 yes, 11 3 kept", "{what}");
                let customers = "SELECT string_agg(id || name, ' ' ORDER BY id) FROM customer";
                assert_eq!(database.value(customers), "1a 3c", "{what}");
                let deleted = "SELECT string_agg(target || ' ' || deleted, ', ' ORDER BY target) FROM howdah.step WHERE name = 'delete'";
                assert_eq!(database.value(deleted), "public.customer 1, public.orders 1", "{what}");
                assert_nothing_left(&database, &what);
            }
        }
    });
}

/// What is taken out of the one would be what has come into the other.
#[test]
fn a_table_and_its_partition_lose_no_rows_to_each_other() {
    let files = Files::new();
    files.put("kp.csv", b"id,v\n1,1\n");
    files.put("kp1.csv", b"id,v\n2,2\n");
    let merge = ["--mode", "merge", "--key", "id"];
    for (options, stored) in [
        (&[][..], Some("9 1 2")),
        (&["--mode", "truncate"], Some("1 2")),
        (&["--mode", "truncate", "--freeze"], None),
        (&merge, Some("9 1 2")),
        (&["--mode", "merge", "--key", "id", "--delete-missing"], None),
        (&["--mode", "merge", "--key", "id", "--delete-missing", "--atomic"], None),
        (&["--mode", "replace"], None),
    ] {
        let database = Server::shared(15).database();
        database.sql(
            "CREATE TABLE kp (id int PRIMARY KEY, v int) PARTITION BY RANGE (id); \
             CREATE TABLE kp1 PARTITION OF kp FOR VALUES FROM (0) TO (100); INSERT INTO kp VALUES (9, 9)",
        );
        let run = load(&database, &files, options).run(PATIENCE);
        let rows = database.value("SELECT string_agg(id::text, ' ' ORDER BY v <> 9, id) FROM kp");
        match stored {
            Some(stored) => {
                run.expect_code(0);
                assert_eq!(rows, stored, "{options:?}");
            }
            None => {
                let refused = run.expect_code(1).stderr;
                // A partitioned table is not replaced at all.
                assert!(
                    refused.contains("a partition of it") || refused.contains("cannot be replaced"),
                    "{options:?}: {refused}"
                );
                assert_eq!(rows, "9", "{options:?}");
            }
        }
    }
}

#[test]
fn what_has_come_in_part_by_part_does_not_come_at_once_later() {
    let files = Files::new();
    files.put("cc.csv", b"id,pid\n10,1\n30,3\n");
    files.put("pp.csv", b"id\n1\n2\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE pp (id int PRIMARY KEY); CREATE TABLE cc (id int PRIMARY KEY, pid int REFERENCES pp)",
    );
    let merge = ["--mode", "merge", "--key", "id"];
    let run = |atomic: bool| {
        let command = load(&database, &files, &merge);
        let command = if atomic { command.args(["--atomic"]) } else { command };
        command.run(PATIENCE)
    };
    let failed = run(false).expect_code(1).stderr;
    assert!(failed.contains("23503"), "{failed}");
    let refused = run(true).expect_code(2).stderr;
    assert!(
        refused.contains("was begun without --atomic") && refused.contains("hint: leave --atomic out"),
        "{refused}"
    );
    database.sql("INSERT INTO pp VALUES (3)");
    run(true).expect_code(2);
    run(false).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM cc"), "2");
    assert_nothing_left(&database, "part by part");
}
