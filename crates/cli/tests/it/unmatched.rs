//! Files of which some fields, values or names do not meet the columns of a table that is there.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;

/// Spreadsheets and programs end records with delimiters that stand before nothing.
#[test]
fn fields_that_hold_nothing_need_no_column_of_a_table_that_is_there() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (a int, b text)");
    let rows = |names: &str, last: &str| {
        let rows: String = (0..30_000).map(|no| format!("{no};text of {no};;\n")).collect();
        format!("{names}{rows}30000;x;{last}\n")
    };
    let (named, bare) = ("a;b;;\n", "");
    for (names, name) in [(named, "named"), (bare, "bare")] {
        let source = files.put(&format!("{name}.csv"), rows(names, ";").as_bytes());
        load(&database).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(b) FROM t"), "30001", "{name}");
        database.sql("TRUNCATE t");
        let source =
            files.put(&format!("{name}_value.csv"), rows(names, "q;").replace("3;;", "3;q;").as_bytes());
        let refused = load(&database).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(1).stderr;
        let told = if names.is_empty() { "records have 4 fields" } else { "field 3, which has no name" };
        assert!(refused.contains(told), "{refused}");
    }
    let source = files.put("made.csv", rows(named, ";").as_bytes());
    load(&database).args(["--table", "made", "--create"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "made"), "a integer, b text, column_3 text, column_4 text");
}

#[test]
fn a_column_of_a_word_for_no_value_says_how_it_is_null() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, qty int, note text)");
    let source = files.put("a.csv", b"id,qty,note\n1,NA,x\n2,NA,NA\n3,,y\n");
    let command = load(&database).args(["--table", "t"]).arg(&source);
    let refused = command.clone().run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("column qty is integer, and its field holds nothing but \"NA\""), "{refused}");
    assert!(refused.contains("hint: --null 'NA' reads it as NULL"), "{refused}");
    let source = files.put("b.csv", b"id,qty,note\n1,NA,x\n2,NA,NA\n3,NA,y\n");
    let command = load(&database).args(["--table", "t", "--null", "NA"]).arg(&source);
    command.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(id) || ' ' || count(qty) FROM t"), "3 0");
}

#[test]
fn a_record_that_holds_the_names_of_all_columns_is_not_stored_as_a_row() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (region text, \"2022\" int, \"2023\" int)");
    let source = files.put("a.csv", b"region,2022,2023\n");
    let command = load(&database).args(["--table", "t"]).arg(&source);
    let refused = command.clone().run(PATIENCE).expect_code(1).stderr;
    assert!(
        refused.contains("a.csv: its first record was taken for data, and holds names of columns"),
        "{refused}"
    );
    command.clone().arg("--header").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
    command.arg("--header=false").run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "1");
    // Beside a file with a header, no option is right for both.
    database.sql("CREATE TABLE c (code text, name text)");
    files.put("c_1.csv", b"code,name\nDE,Germany\nFR,France\n");
    files.put("c_2.csv", b"IT,Italy\n");
    let command = load(&database).args(["--table", "c"]).arg(files.path().join("c_*"));
    let refused = command.run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("by a command of their own, with --header=false"), "{refused}");
}

/// SAP writes amounts so.
#[test]
fn a_minus_behind_a_number_is_its_sign_where_the_data_proves_numbers() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let text = "id;amount;qty;since\n1;1.234,56-;5-;1990-\n2;0,50;7;1985-\n3;12,00-;0;2001-\n";
    let source = files.put("a.csv", text.as_bytes());
    load(&database).args(["--table", "made", "--create"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "made"), "id integer, amount numeric(6,2), qty text, since text");
    assert_eq!(database.value("SELECT sum(amount) FROM made"), "-1246.06");
    database.sql("CREATE TABLE t (id int, amount numeric, qty int, since text)");
    let done = load(&database).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains("amount as 1.234,56-"), "{}", done.stderr);
    let sums = "SELECT sum(amount) || ' ' || sum(qty) || ' ' || min(since) FROM t";
    assert_eq!(database.value(sums), "-1246.06 2 1985-");
}

/// One file of many must not keep the others out.
#[test]
fn records_of_which_a_column_holds_no_value_are_left_out_where_bad_records_are() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, qty int)");
    let good = files.put("good.csv", b"id,qty\n1,10\n2,20\n");
    let words = files.put("words.csv", b"id,qty\n3,NA\n4,\n5,NA\n");
    let days = files.put("days.csv", b"id,qty\n6,2024-01-01\n7,2024-01-02\n");
    let command = load(&database).args(["--table", "t"]).args([&good, &words, &days]);
    let refused = command.clone().run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("column qty is integer"), "{refused}");
    let done = command.args(["--on-error", "skip"]).run(PATIENCE).expect_code(3);
    let told = "holds nothing but \"NA\" where it was looked at, which is no value of that type: such records are left out; \
                --null 'NA' reads it as NULL";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    assert_eq!(database.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t"), "1 2 4");
    let kept = "SELECT string_agg(sqlstate, ' ') || ' ' || count(*) FROM howdah.reject";
    assert_eq!(database.value(kept), "22P02 22P02 22P02 22P02 4");
}

/// Beside 1.234.567 the server would store 1.234 as a little more than one.
#[test]
fn values_that_the_server_would_misread_end_the_load_where_bad_records_are_left_out() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, sum numeric)");
    for (name, text) in
        [("groups.csv", "id;sum\n1;1.234.567\n2;1.234\n3;1000\n"), ("open.csv", "id;sum\n1;1.234\n2;2,500\n")]
    {
        let source = files.put(name, text.as_bytes());
        let load = load(&database).args(["--table", "t", "--on-error", "skip"]).arg(&source);
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("numeric cannot hold the values"), "{refused}");
        assert_eq!(database.value("SELECT count(*) FROM t"), "0", "{name}");
    }
}

#[test]
fn a_record_that_the_table_refuses_is_told_with_what_can_be_done() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, qty int NOT NULL CHECK (qty > 0)); INSERT INTO t VALUES (9, 9);
         CREATE TABLE parted (id int, qty int) PARTITION BY LIST (id)",
    );
    for (table, record, sqlstate, hint) in [
        ("t", "1,2,3", "22P04", "--lenient mends records of too few or too many fields"),
        ("t", "9,1", "23505", "--mode insert-new --key COLUMNS passes over rows whose key is there"),
        ("t", "1,-1", "23514", "--on-error skip --reject-file FILE loads the other records"),
        ("t", "1,", "23502", "--on-error skip --reject-file FILE loads the other records"),
        // What was said before stays.
        ("parted", "1,1", "23514", "make a partition that takes it"),
    ] {
        let source = files.put(&format!("{table}{sqlstate}.csv"), format!("{record}\n").as_bytes());
        let command = load(&database).args(["--table", table, "--format", "csv"]).arg(&source);
        let refused = command.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(&format!("(SQLSTATE {sqlstate})")), "{refused}");
        assert!(refused.contains("hint: ") && refused.contains(hint), "{refused}");
    }
}

#[test]
fn null_has_as_many_spellings_as_were_told() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, qty int, note text)");
    let source = files.put("a.csv", b"id,qty,note\n1,NA,x\n2,-,-\n3,,NA\n4,5,\"\"\n");
    let command = load(&database).args(["--table", "t", "--null", "NA", "--null", "-", "--null", ""]);
    command.arg(&source).run(PATIENCE).expect_code(0);
    let counts = "SELECT count(id) || ' ' || count(qty) || ' ' || count(note) FROM t";
    assert_eq!(database.value(counts), "4 1 2");
    let file = files.put("job.toml", b"null = [\"NA\", \"-\", \"\"]\n");
    let command = load(&database).args(["--table", "t", "--known", "load", "--job"]).arg(&file);
    command.arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(counts), "8 2 4");
    let refused = load(&database).args(["--table", "t", "--format", "csv", "--null", "NA", "--null", "-"]);
    let refused = refused.arg(&source).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("COPY knows one spelling of NULL"), "{refused}");
}

#[test]
fn values_that_a_column_does_not_get_wider_for_are_left_out_where_bad_records_are() {
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, qty int); CREATE TABLE sums (id int, qty numeric(7,2))");
    let row = |no: u32| match no {
        36_001 => format!("{no},2024-01-01\n"),
        _ if (50_000..50_700).contains(&no) => format!("{no},{no}.125\n"),
        _ => format!("{no},{no}\n"),
    };
    let rows: String = std::iter::once("id,qty\n".to_owned()).chain((0..60_000).map(row)).collect();
    let widened =
        load(&database).args(["--evolve", "widen", "--atomic", "--chunk-size", "64kB", "-"]).stdin(rows);
    let stopped = widened.clone().args(["--table", "t"]).run(PATIENCE).expect_code(1).stderr;
    assert!(stopped.contains("record 36002") && stopped.contains("a value needs text"), "{stopped}");
    let skips = widened.args(["--on-error", "skip", "--table"]);
    skips.clone().args(["t", "--force"]).run(PATIENCE).expect_code(3);
    assert_eq!(database.value("SELECT count(*) || ' ' || sum(qty - id) FROM t"), "59299 0");
    let kept = "SELECT string_agg(DISTINCT sqlstate, ' ') || ' ' || count(*) FROM howdah.reject";
    assert_eq!(database.value(kept), "22P02 701");
    // What stands in such a column beside these the server might round.
    let stopped = skips.args(["sums"]).run(PATIENCE).expect_code(1).stderr;
    assert!(stopped.contains("a value needs text, and the column is numeric(7,2)"), "{stopped}");
}
