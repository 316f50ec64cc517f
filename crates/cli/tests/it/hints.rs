//! What errors advise: what helps in this very case, and nothing else.

use crate::gate::{open_gate, shut_gate_behind};
use crate::indexes::{CHUNKS, wait_for};
use crate::scene::{Files, PATIENCE, Scene, csv, howdah};
use howdah_testkit::{Database, Server};
use std::path::Path;
use std::time::{Duration, Instant};

#[track_caller]
fn refused(database: &Database, source: &Path, options: &[&str], hint: &str) -> String {
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t"]).args(options).arg(source);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    let told_hint = told.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
    assert!(told_hint.contains(hint), "{hint}\n{told}");
    told
}

#[test]
fn who_and_where_the_server_is() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    let database = Server::shared(15).database();
    let to = format!("{} user=nobody_of_this_name", database.conninfo());
    let load = howdah("load").args(["--to", &to, "--table", "t"]).arg(&source);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("may log in as user in --to, or in PGUSER"), "{told}");
    let began = Instant::now();
    let load = howdah("load").args(["--to", "host=no-such-host.invalid user=x dbname=x", "--table", "t"]);
    let told = load.arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("hint: check the host in --to or PGHOST"), "{told}");
    assert!(!told.contains("try again") && began.elapsed() < Duration::from_secs(100), "{told}");
}

#[test]
fn what_the_environment_sets_that_the_server_does_not_know() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    let database = Server::shared(15).database();
    for (variable, value, says) in [
        ("PGTZ", "Nowhere/X", "the server does not take the value of PGTZ for its parameter \"timezone\""),
        ("PGDATESTYLE", "bogus", "the server does not take the value of PGDATESTYLE"),
        ("PGOPTIONS", "-c work_mem=bogus", "PGOPTIONS"),
    ] {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t"]).arg(&source);
        let told = load.envs([(variable, value)]).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains(says) && told.contains("hint: "), "{told}");
    }
    for (option, hint) in [("--header", "behind =: --header=false"), ("--create", "behind =: --create=false")]
    {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", option, "false"]);
        let told = load.arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("file false: ") && told.contains(hint), "{told}");
    }
    let says_nothing = ["--table: expected the name of a table, got nothing"];
    let says_twice = ["--table s.{table}: no {table} stands in the location", "hint: put {table} into"];
    for (table, says) in [("", &says_nothing[..]), ("s.{table}", &says_twice)] {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", table]).arg(&source);
        let told = load.run(PATIENCE).expect_code(2).stderr;
        assert!(says.iter().all(|says| told.contains(says)), "{told}");
    }
}

#[test]
fn what_functions_refuse_is_no_missing_right() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (a int); CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE insufficient_privilege; END $$; \
         CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION no()",
    );
    let told = refused(&database, &source, &[], "a trigger, an event trigger or a function");
    assert!(told.contains("42501") && !told.contains("GRANT"), "{told}");
}

#[test]
fn rows_and_index_entries_that_fit_no_page() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let names: Vec<String> = (0..1600).map(|no| format!("c{no}")).collect();
    let row = vec!["123456789"; 1600].join(",");
    let wide = files.put("wide.csv", format!("{}\n{row}\n", names.join(",")).as_bytes());
    database.sql(&format!("CREATE TABLE t ({} numeric)", names.join(" numeric, ")));
    refused(&database, &wide, &[], "spread its columns over several tables");

    database.sql("DROP TABLE t; CREATE TABLE t (s text)");
    let mut random = 1_u32;
    let mut letter = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from((random >> 16) % 26).unwrap())
    };
    let long: String = std::iter::repeat_with(&mut letter).take(9000).collect();
    let shorter: String = std::iter::repeat_with(&mut letter).take(6000).collect();
    for method in ["btree", "gin", "hash", "spgist", "brin"] {
        let key = if method == "gin" { "string_to_array(s, ',')" } else { "s" };
        database
            .sql(&format!("TRUNCATE t; DROP INDEX IF EXISTS i; CREATE INDEX i ON t USING {method} ({key})"));
        for text in [&long, &shorter] {
            let source = files.put("long.csv", format!("s\n{text}\n").as_bytes());
            let load =
                howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--indexes", "keep"]);
            let told = load.args(["--force"]).arg(&source).run(PATIENCE).stderr;
            let is_named = told.contains("hint: an index takes no value that is so long");
            assert!(is_named || !told.contains("54000"), "{method}: {told}");
            assert!(is_named || method != "btree", "{told}");
        }
    }
}

#[test]
fn empty_files_that_make_no_table_are_named() {
    let files = Files::new();
    let empty = files.put("empty1.csv", b"");
    let pattern = empty.with_file_name("{table}1.csv");
    let database = Server::shared(15).database();
    let load = howdah("load").args(["--to", &database.conninfo(), "--create"]).arg(&pattern);
    let told = load.run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("empty1.csv: no table can be made from a file without a record"), "{told}");
}

#[test]
fn offsets_that_a_column_leaves_out_are_told() {
    let files = Files::new();
    let source = files
        .put("a.csv", b"a,at,on\n1,2024-01-01 10:00:00+02,2024-01-02\n2,2024-01-01 10:00:00-05,2024-01-03\n");
    let database = Server::shared(15).database();
    let load = |options: &[&str]| {
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--force"]);
        load.args(options).arg(&source).run(PATIENCE).expect_code(0).stderr
    };
    let told = "at is of a type that leaves out the offsets from UTC";
    database.sql("CREATE TABLE t (a int, at timestamp, \"on\" date)");
    let unsure = load(&[]);
    assert!(unsure.contains(told), "{unsure}");
    for options in
        [&["--types", "at=timestamp"][..], &["--format", "csv", "--header"], &["--evolve", "widen"]]
    {
        let sure = load(options);
        assert!(!sure.contains("offsets"), "{options:?} {sure}");
    }
    database.sql("DROP TABLE t; CREATE TABLE t (a int, at timestamptz, \"on\" date)");
    let sure = load(&[]);
    assert!(!sure.contains("offsets"), "{sure}");
}

#[test]
fn what_columns_round_or_cut_off_is_told() {
    let files = Files::new();
    let source = files.put(
        "a.csv",
        b"id,day,hour,rate,share\n1,2024-01-01 10:20:30,2024-01-01 10:20:30,17.2345,0.5\n2,2024-01-02 00:00:00,2024-01-02 00:00:00,0.5,1.5\n",
    );
    let database = Server::shared(15).database();
    let to = database.conninfo();
    let load = || howdah("load").args(["--to", &to, "--table", "t", "--force"]).arg(&source);
    database.sql("CREATE TABLE t (id int, day date, hour time, rate numeric(3,1), share numeric(5,1))");
    let told = load().run(PATIENCE).expect_code(0).stderr;
    for words in [
        "day is of a type that leaves out the times of day of the values; timestamp keeps them",
        "hour is of a type that leaves out the days of the values; timestamp keeps them",
        "rate is of a type that leaves out digits behind the point of the values, which it rounds",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("share"), "{told}");
    database.sql(
        "DROP TABLE t; CREATE TABLE t (id int, day timestamp, hour timestamptz, rate numeric, share float8)",
    );
    let told = load().run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("leaves out"), "{told}");
}

#[test]
fn tables_that_do_not_fit() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let source = files.put("a.csv", b"a,extra,s\n1,2,x\n2,3,long\n");
    database.sql("CREATE MATERIALIZED VIEW t AS SELECT 1 AS a");
    let told = refused(&database, &source, &[], "REFRESH MATERIALIZED VIEW");
    assert!(!told.contains("--create"), "{told}");
    database.sql("DROP MATERIALIZED VIEW t");
    refused(&database, &source, &[], "make it with --create");
    database.sql("CREATE TABLE t (a int, s varchar(2))");
    refused(&database, &source, &[], "--evolve add adds the columns, --evolve widen those and wider types");
    refused(
        &database,
        &source,
        &["--evolve", "add"],
        "--evolve widen gives the column a type that holds them",
    );
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--evolve", "widen"]);
    load.arg(&source).run(PATIENCE).expect_code(0);
}

#[test]
fn tables_that_would_be_made_in_schemas_of_others() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let source = files.put("a.csv", b"a\n1\n");
    let load = |table: &str| {
        howdah("load").args(["--to", &database.conninfo(), "--create", "--table", table]).arg(&source)
    };
    load("public.t").run(PATIENCE).expect_code(0);
    for table in ["howdah.t", "information_schema.t", "pg_catalog.t"] {
        let told = load(table).run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("is not made: schema"), "{told}");
        assert!(told.contains("hint: name a schema of yours"), "{told}");
    }
    assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relname = 't'"), "1");
}

#[test]
fn values_that_their_type_does_not_hold() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int, d date, i int[], g int GENERATED ALWAYS AS (1 / (a - 7)) STORED)");
    for record in ["x100,,", "1,2024-02-30,", "1,abc,", "99999999999,,", "1,,{x}"] {
        let source = files.put("a.csv", format!("a,d,i\n{record}\n").as_bytes());
        let told = refused(
            &database,
            &source,
            &["--format", "csv", "--header"],
            "--on-error skip --reject-file FILE loads the other records",
        );
        assert!(told.contains("(SQLSTATE 22"), "{told}");
    }
    let source = files.put("a.csv", b"a,d,i\n7,,\n");
    refused(&database, &source, &["--format", "csv", "--header"], "a default, a generated column, a check");
}

#[test]
fn records_that_do_not_fit() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int, s text)");
    let source = files.put("nul.csv", b"a,s\n1,x\n2,y\0z\n");
    let told = refused(&database, &source, &[], "--nul strip drops NUL bytes");
    assert!(told.contains("--nul replace"), "{told}");
    let bad: String = (0..100).map(|_| "x,y\n").collect();
    let good: String = (0..100).map(|no| format!("{no},y\n")).collect();
    let source = files.put("bad.csv", format!("a,s\n{good}{bad}").as_bytes());
    let options = ["--format", "csv", "--header", "--on-error", "skip", "--max-errors", "50"];
    let told = refused(&database, &source, &options, "howdah check with the same files and table lists them");
    // Nothing is stored, and so nothing is kept.
    assert!(!told.contains("table reject"), "{told}");
    let folder = source.parent().unwrap().join("no folder/nothing*.csv");
    let told = refused(&database, &folder, &[], "* stands for any part of a name");
    assert!(told.contains("no file matches the pattern"), "{told}");
}

#[test]
fn a_column_that_is_renamed_while_rows_come_gets_its_name_back() {
    let plain = csv(91, 1, 5000);
    let files = Files::new();
    let source = files.put("a.csv", &plain);
    let scene = Scene::new(Server::shared(15), &[&plain]);
    let load = scene.load().args(["--chunk-size", "64kB", "--jobs", "1"]).arg(&source);
    shut_gate_behind(&scene.database, 1);
    let mut running = load.spawn();
    assert!(wait_for(&scene.database, &mut running, CHUNKS, 1));
    scene.database.sql("ALTER TABLE t RENAME COLUMN note TO remark");
    open_gate(&scene.database);
    let told = running.wait(PATIENCE).expect_code(1).stderr;
    assert!(
        told.contains("public.t was changed while the load was at work: the server says: column \"note\""),
        "{told}"
    );
    assert!(told.contains("hint: if the column was renamed, give it its name back"), "{told}");
    scene.database.sql("ALTER TABLE t RENAME COLUMN remark TO note");
    load.run(PATIENCE).expect_code(0);
    scene.assert_exact("renamed back");
}

#[test]
fn a_schema_that_is_not_the_ledgers_is_left_to_its_owner() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int); CREATE SCHEMA howdah; CREATE TABLE howdah.job (a int)");
    refused(&database, &source, &[], "--ledger names another one");
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t", "--ledger", "other"]);
    load.arg(&source).run(PATIENCE).expect_code(0);
}

#[test]
fn a_database_that_utf_8_is_not_converted_to() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    let database = Server::shared(15).database_in("MULE_INTERNAL");
    let load = howdah("load").args(["--to", &database.conninfo(), "--table", "t"]);
    let told = load.arg(&source).run(PATIENCE).expect_code(1).stderr;
    assert!(told.contains("hint: sessions of howdah speak UTF-8"), "{told}");
}

#[test]
fn what_an_event_trigger_forbids_is_said_with_what_was_to_be_done() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (a int); \
         CREATE FUNCTION no() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'secret'; END $$; \
         CREATE EVENT TRIGGER no ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION no()",
    );
    let told = refused(&database, &source, &["--atomic"], "an event trigger (pg_event_trigger lists them)");
    assert!(told.contains("(while ") && !told.contains("secret"), "{told}");
    database.sql("DROP EVENT TRIGGER no");
}

#[test]
fn subscribers_that_keep_what_is_emptied_are_told_in_the_plan() {
    let files = Files::new();
    let source = files.put("a.csv", b"a\n1\n");
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql(
            "CREATE TABLE t (a int); CREATE PUBLICATION keeps FOR TABLE t WITH (publish = 'insert'); \
             CREATE PUBLICATION empties FOR TABLE t WITH (publish = 'insert, truncate')",
        );
        let plan = |mode: &str| {
            let plan = howdah("plan").args(["--to", &database.conninfo(), "--table", "t", "--mode", mode]);
            let done = plan.arg(&source).run(PATIENCE).expect_code(0);
            done.stdout + &done.stderr
        };
        let told = plan("truncate");
        assert!(
            told.contains("the publication keeps of public.t leaves out TRUNCATE: its subscribers keep"),
            "{told}"
        );
        assert!(!told.contains("empties") && !plan("append").contains("TRUNCATE"), "{told}");
    }
}

#[test]
fn what_stands_for_no_day_and_what_lists_the_files() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, day date)");
    let days = files.put("days.csv", b"id,day\n1,2023-01-01\n2,0000-00-00\n3,2023-01-03\n");
    refused(&database, &days, &[], "--null 0000-00-00 reads it as NULL");
    std::fs::create_dir(files.path().join("unload")).unwrap();
    files.put("unload/part0000", b"1|2023-01-01\n2|2023-01-02\n");
    let manifest = files.put("unload/part_manifest", b"{\"entries\":[{\"url\":\"s3://b/part0000\"}]}\n");
    refused(&database, manifest.parent().unwrap(), &[], "leave it out by a pattern");
}

#[test]
fn columns_that_a_header_names_otherwise() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, town text)");
    let source = files.put("a.csv", b"id,name,city\n1,a,b\n2,c,d\n");
    for (columns, told) in [("id,town,name", true), ("id,name,town", false)] {
        let load = howdah("load").args([
            "--to",
            &database.conninfo(),
            "--table",
            "t",
            "--columns",
            columns,
            "--force",
        ]);
        let stderr = load.arg(&source).run(PATIENCE).expect_code(0).stderr;
        assert_eq!(stderr.contains("than the header names: name fills town"), told, "{stderr}");
    }
}
