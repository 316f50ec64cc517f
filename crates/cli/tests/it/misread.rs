//! Files that could be read as something else than they say: they are read as they are meant, told to be
//! unsure, or refused.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::Server;
use std::fmt::Write as _;

#[test]
fn amounts_with_three_decimals_do_not_become_thousands() {
    let files = Files::new();
    let database = Server::shared(15).database();
    for (name, text) in [
        ("fuel", "station,price\nShell,$3.459\nBP,$3.299\nEsso,$3.389\n"),
        ("benzin", "station;price\nShell;1,759 €\nBP;1,699 €\nEsso;1,719 €\n"),
    ] {
        let source = files.put(&format!("{name}.csv"), text.as_bytes());
        load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, name), "station text, price text");
        for type_name in ["numeric(8,3)", "int"] {
            let table = format!("{name}_{}", &type_name[..3]);
            database.sql(&format!("CREATE TABLE {table} (station text, price {type_name})"));
            let refused = load(&database).args(["--table", &table]).arg(&source).run(PATIENCE);
            // Only a point or a comma without a doubt is between groups, to an integer too.
            if (name, type_name) == ("benzin", "int") {
                refused.expect_code(0);
                continue;
            }
            let refused = refused.expect_code(1).stderr;
            assert!(refused.contains("says what comma and point mean"), "{refused}");
            assert_eq!(database.value(&format!("SELECT count(*) FROM {table}")), "0");
        }
    }
    let source = files.put("pay.csv", b"name,pay\nAda,\"$54,000\"\nBob,\"$101,500\"\nCy,$950\n");
    load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "pay"), "name text, pay integer");
    assert_eq!(database.value("SELECT sum(pay) FROM pay"), "156450");
    let source = files.path().join("fuel.csv");
    load(&database)
        .args(["--table", "fuel_num", "--types", "price=numeric:$1234.56"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(0);
    assert_eq!(database.value("SELECT sum(price) FROM fuel_num"), "10.147");
}

#[test]
fn a_word_does_not_change_how_the_numbers_of_its_column_are_read() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE german (id int, n numeric(12,3)); CREATE TABLE quoted (id int, n int); \
         CREATE TABLE seen (id int, at timestamptz)",
    );
    let put = |name: &str, value: &str, last: &str| {
        let mut text = "id;n\n".to_owned();
        for id in 1..300 {
            let _ = writeln!(text, "{id};{value}");
        }
        files.put(
            name,
            format!("{text}{last}").replace(";n", if name == "seen.csv" { ";at" } else { ";n" }).as_bytes(),
        )
    };
    let cases = [
        ("german", put("german.csv", "1.107", "300;1.234,56\n301;unbekannt\n"), "sum(n)", "332227.560"),
        ("quoted", put("quoted.csv", "1,234", "301;x\n"), "sum(n)", "368966"),
        (
            "seen",
            put("seen.csv", "1706140899", "301;x\n"),
            "extract(epoch FROM max(at))::bigint",
            "1706140899",
        ),
    ];
    for (table, source, question, answer) in &cases {
        let load = load(&database).args(["--table", table, "--on-error", "skip"]).arg(source);
        let done = load.run(PATIENCE).expect_code(3);
        assert!(done.stderr.contains("1 rejected"), "{}", done.stderr);
        assert_eq!(database.value(&format!("SELECT {question} FROM {table}")), *answer, "{table}");
    }
    // One speaks for a point, one for a comma: nobody knows what 1.107 is, and nothing of it is stored.
    database.sql("TRUNCATE german; TRUNCATE seen");
    for (table, source, words) in [
        (
            "german",
            put("both.csv", "1.107", "300;1.234,56\n301;1.5\n302;x\n"),
            "says what comma and point mean",
        ),
        ("seen", put("seen.csv", "20240131", "300;1706140899\n301;x\n"), "days of far years"),
    ] {
        let load = load(&database).args(["--table", table, "--on-error", "skip"]).arg(source);
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains(words), "{refused}");
        assert_eq!(database.value(&format!("SELECT count(*) FROM {table}")), "0");
    }
}

#[test]
fn a_first_record_with_a_word_for_its_number_is_loaded() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let source = files.put(
        "sales.csv",
        b"region,amount,city\nnorth,unknown,Rome\neast,2.5,Oslo\nwest,3.5,Bern\nsouth,4.5,Wien\n",
    );
    load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "sales"), "region text, amount text, city text");
    assert_eq!(database.value("SELECT count(*) FROM sales"), "4");
}

/// R writes no name above the names of rows.
#[test]
fn a_header_one_name_short_shifts_no_values() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let cars = "\"mpg\",\"cyl\",\"disp\"\n\"Mazda RX4\",21,6,160\n\"Datsun 710\",22.8,4,108\n\"Valiant\",18.1,6,225\n";
    let source = files.put("cars.csv", cars.as_bytes());
    let made = load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
    assert!(
        made.stderr.contains("the first field is taken to have none; --columns settles it"),
        "{}",
        made.stderr
    );
    assert_eq!(
        database.value("SELECT sum(mpg) || ' ' || sum(cyl) || ' ' || sum(disp) FROM cars"),
        "61.9 16 493"
    );
    database.sql("CREATE TABLE known (mpg numeric, cyl int, disp int)");
    load(&database).args(["--table", "known", "--ignore-extra"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT sum(mpg) || ' ' || sum(cyl) FROM known"), "61.9 16");

    // Of the numbers in front nobody knows whether they are those of rows.
    let source = files.put("short.csv", b"mpg,cyl,disp\n7,21,6,160\n7,22.8,4,108\n9,18.1,6,225\n");
    let load = load(&database).args(["--table", "known", "--ignore-extra"]).arg(&source);
    let refused = load.run(PATIENCE).expect_code(1).stderr;
    assert!(
        refused.contains("which fields have none is not known") && refused.contains("--columns"),
        "{refused}"
    );
}

#[test]
fn pieces_of_text_without_a_header_make_no_columns() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let a = files.put("a.csv", b"name,city\nann,rome\nbob,oslo\ncid,bern\n");
    let b = files.put("b.csv", b"dan,wien\neva,genf\n");
    let refused = |options: &[&str]| {
        let load = load(&database).args(options).args([&a, &b]);
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("its first record may be a header or data"), "{refused}");
        assert!(refused.contains("if it is a header, say --header"), "{refused}");
        assert!(!refused.contains("wien"), "{refused}");
    };
    refused(&["--table", "t", "--create"]);
    database.sql("CREATE TABLE t (name text, city text)");
    refused(&["--table", "t", "--evolve", "add"]);
    load(&database).args(["--table", "t", "--header=false"]).arg(&b).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t WHERE name = 'dan'"), "1");
}

#[test]
fn a_station_called_total_is_loaded_and_a_total_is_not() {
    let files = Files::new();
    let database = Server::shared(15).database();
    for (name, last, sum) in [("pumps", "Total,6\n", "13"), ("sums", "Total,7\n", "7")] {
        let source =
            files.put(&format!("{name}.csv"), format!("station,n\nShell,3\nBP,4\n{last}").as_bytes());
        load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(database.value(&format!("SELECT sum(n) FROM {name}")), sum);
    }
}

#[test]
fn blanks_of_text_are_kept() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let mut text = "code,n\n".to_owned();
    for no in 0..300 {
        let blank = if no % 2 == 0 { " " } else { "" };
        let _ = writeln!(text, "code{no}{blank},{no}");
    }
    let source = files.put("codes.csv", text.as_bytes());
    load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM codes WHERE code LIKE '% '"), "150");
}

#[test]
fn days_that_contradict_each_other_are_refused_and_far_years_told() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE days (id int, d date)");
    let days = |from: u32, to: u32, month_of: fn(u32) -> u32| {
        let mut text = "id,d\n".to_owned();
        for id in from..to {
            let _ = writeln!(text, "{id},{:02}/{:02}/2024", 1 + id % 12, month_of(id));
        }
        text
    };
    let open = days(0, 50, |id| 1 + id % 11);
    let proven = files.put("a.csv", (open.clone() + "900,31/01/2024\n").as_bytes());
    let mixed = files.put("mixed.csv", (open.clone() + "900,31/01/2024\n901,02/13/2024\n").as_bytes());
    let refused = load(&database).args(["--table", "days", "--on-error", "skip"]).arg(&mixed).run(PATIENCE);
    let refused = refused.expect_code(1).stderr;
    assert!(
        refused.contains("not all in one order") && refused.contains("--types d=date:d/m/y"),
        "{refused}"
    );
    assert_eq!(database.value("SELECT count(*) FROM days"), "0");

    // What one file proves is not called open in the other.
    let open = files.put("b.csv", open.as_bytes());
    let done = load(&database).args(["--table", "days"]).args([&proven, &open]).run(PATIENCE).expect_code(0);
    assert!(!done.stderr.contains("DateStyle decides"), "{}", done.stderr);
    assert_eq!(database.value("SELECT count(*) FROM days WHERE d = '2024-12-01'"), "0");

    // Of several files each may have an order of its own, and says nothing of one that proves none.
    let other = files.put("c.csv", b"id,d\n902,02/13/2024\n");
    let all = load(&database).args(["--table", "days", "--force"]).args([&proven, &open, &other]);
    let told = all.run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("other files prove more than one order of day and month in d, this one none"),
        "{told}"
    );

    let born = files.put("born.csv", b"name,born\nann,31/12/62\nbob,5/3/81\ncid,28/2/55\n");
    let done = load(&database).arg("--create").arg(&born).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains("from 50 to 69 in born are read as 2050 to 2069"), "{}", done.stderr);
    assert_eq!(database.value("SELECT max(born) FROM born"), "2062-12-31");
}

/// `--types day=date` alone would leave the order to the server's DateStyle.
#[test]
fn days_that_stay_text_for_their_order_name_the_orders_they_may_have() {
    let files = Files::new();
    let source = files.put("a.csv", b"day,at\n03.04.2024,03.04.2024 10:05\n05.06.2024,05.06.2024 10:05\n");
    let database = Server::shared(18).database();
    let made = |table: &str, types: &[&str]| {
        let load = load(&database).args(["--create", "--table", table]).args(types).arg(&source);
        load.run(PATIENCE).expect_code(0).stderr
    };
    let told = made("plain", &[]);
    assert!(told.contains("--types day=date:d/m/y or day=date:m/d/y settles it"), "{told}");
    assert!(told.contains("--types at=timestamp:d/m/y or at=timestamp:m/d/y settles it"), "{told}");
    let told = made("as_text", &["--types", "day=text,at=text"]);
    assert!(!told.contains("settles it"), "{told}");
    made("read", &["--types", "day=date:d/m/y,at=timestamp:d/m/y"]);
    assert_eq!(
        database.value("SELECT min(day) || ' ' || min(at) FROM read"),
        "2024-04-03 2024-04-03 10:05:00"
    );
}

/// The sample of a file holds no more than days that are the same in every order; a day behind it is not.
#[test]
fn days_that_a_sample_does_not_show_go_by_the_order_of_the_server() {
    let mut text = "id,day\n".to_owned();
    for id in 0..60_000 {
        let day = if id == 30_001 { "05/03/2024".to_owned() } else { format!("01/01/{}", 2000 + id % 24) };
        let _ = writeln!(text, "{id},{day}");
    }
    let files = Files::new();
    let plain = files.put("days.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE days (id int, day date); CREATE TABLE same (id int, day date)");
    let dmy = |args: &[&str]| load(&database).args(args).envs([("PGDATESTYLE", "ISO, DMY")]);
    let piped = |args: &[&str]| dmy(args).arg("-").stdin(text.as_bytes());
    let settles = "--types day=date:d/m/y or day=date:m/d/y settles it";
    for load in [
        dmy(&["--table", "days"]).arg(&plain),
        piped(&["--table", "days"]),
        piped(&["--create", "--types", "day=date", "--table", "made"]),
    ] {
        let told = load.run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("DateStyle decides") && told.contains(settles), "{told}");
    }
    for table in ["days", "made"] {
        let day = format!("SELECT string_agg(DISTINCT day::text, ' ') FROM {table} WHERE id = 30001");
        assert_eq!(database.value(&day), "2024-03-05", "{table}");
    }

    // One file of a table does not tell the order of another one, and where all is seen nothing is open.
    let same = files.put("a.csv", b"id,day\n1,01/01/2020\n2,02/02/2021\n");
    let open = files.put("b.csv", b"id,day\n3,05/03/2024\n");
    let told = dmy(&["--table", "same"]).args([&same, &open]).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains(settles), "{told}");
    assert_eq!(database.value("SELECT day FROM same WHERE id = 3"), "2024-03-05");
    let again = files.put("c.csv", b"id,day\n4,01/01/2020\n");
    let told = dmy(&["--table", "same"]).arg(&again).run(PATIENCE).expect_code(0).stderr;
    assert!(!told.contains("DateStyle decides"), "{told}");
}

/// Of days with years of two digits the server would refuse one, and take the others for what they may not
/// be.
#[test]
fn days_that_the_order_of_the_server_cannot_be_are_refused_before_any_is_stored() {
    let mut text = "id,day\n".to_owned();
    for id in 0..84 {
        let _ = writeln!(text, "{id},{:02}/{:02}/24", id % 28 + 1, id % 12 + 1);
    }
    let files = Files::new();
    let source = files.put("days.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE days (id int, day date)");
    for args in [&[][..], &["--on-error", "skip"][..]] {
        let refused = load(&database).args(args).arg(&source).envs([("PGDATESTYLE", "ISO, MDY")]);
        let refused = refused.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("not all in the order m/d/y of the server's DateStyle"), "{refused}");
        assert!(refused.contains("--types day=date:y/m/d or day=date:d/m/y says which"), "{refused}");
    }
    assert_eq!(database.value("SELECT count(*) FROM days"), "0");
    let told = load(&database).arg(&source).envs([("PGDATESTYLE", "ISO, DMY")]).run(PATIENCE).expect_code(0);
    assert!(told.stderr.contains("DateStyle decides"), "{}", told.stderr);
    assert_eq!(database.value("SELECT max(day) FROM days"), "2024-12-28");
}

/// Where one column proves that the comma is a decimal sign, no other column is read otherwise without a
/// word.
#[test]
fn columns_of_one_file_are_not_read_in_two_spellings_without_a_word() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql(
        "CREATE TABLE num (id int, menge numeric, preis numeric); CREATE TABLE whole (id int, menge int, preis numeric)",
    );
    let points = files.put("points.csv", b"id;menge;preis\n1;1.577;1,01\n2;2.750;3,99\n");
    let told = load(&database).args(["--table", "num"]).arg(&points).run(PATIENCE).expect_code(0).stderr;
    assert!(told.contains("points in menge may stand between groups") && told.contains("preis"), "{told}");
    let refused = load(&database).args(["--table", "whole"]).arg(&points).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("--types COLUMN=numeric:1.234,56 reads points"), "{refused}");

    let commas = files.put("commas.csv", b"id;menge;preis\n1;1,500;12,50\n2;2,750;3,99\n");
    let refused = load(&database).args(["--table", "whole"]).arg(&commas).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("as in preis") && refused.contains("menge=numeric:1.234,56"), "{refused}");
    assert_eq!(database.value("SELECT count(*) FROM whole"), "0");
    let types = ["--types", "menge=int:1.234,56", "--table", "whole"];
    load(&database).args(types).arg(&points).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(menge::text, ' ' ORDER BY id) FROM whole"), "1577 2750");
}

/// The order that one column proves is not forced upon another one, but it is said.
#[test]
fn days_whose_order_is_open_name_the_order_of_their_neighbours() {
    let mut text = "id,opened,closed\n".to_owned();
    for id in 0..60 {
        let _ = writeln!(text, "{id},{:02}/02/2024,{:02}/03/2024", id % 28 + 1, id % 12 + 1);
    }
    let files = Files::new();
    let source = files.put("days.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE days (id int, opened date, closed timestamp)");
    let told = load(&database).arg(&source).run(PATIENCE).expect_code(0).stderr;
    let expected = "opened is d/m/y, and --types closed=timestamp:d/m/y reads closed so, too";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn what_is_unsure_is_in_the_documents_and_told_to_who_wants_warnings_only() {
    let files = Files::new();
    let source = files.put("am.csv", b"id,d\n1,01/02/2024\n2,03/04/2024\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE am (id int, d date)");
    let settles = "--types d=date:d/m/y or d=date:m/d/y settles it";
    for verb in ["check", "load"] {
        let command = howdah(verb).args(["--table", "am", "--header", "--to", &database.conninfo()]);
        let told = command.args(["--json", "--quiet"]).arg(&source).run(PATIENCE).expect_code(0);
        let document: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
        let unsure = document["unsure"].as_array().unwrap();
        assert_eq!(unsure.len(), 1, "{document}");
        let unsure = unsure[0].as_str().unwrap();
        assert!(unsure.starts_with("public.am: no value seen of d") && unsure.ends_with(settles), "{unsure}");
        assert!(told.stderr.contains(&format!("warning: {unsure}")), "{}", told.stderr);
    }
}

/// A plain file whose end is looked at, and a compressed one that is longer than what is looked at.
#[test]
fn records_of_empty_fields_are_rows_as_copy_has_them_wherever_they_stand() {
    let (files, database) = (Files::new(), Server::shared(15).database());
    database.sql("CREATE TABLE t (a int, b text)");
    let filled: String =
        (0..60_000_u32).map(|no| format!("{no},{}\n", no.wrapping_mul(2_654_435_761))).collect();
    let middle = filled.find("\n7,").map_or(0, |at| at + 1);
    for empty in [",\n", ",\n,\n,\n", ",\"\"\n"] {
        for at in [0, middle, filled.len()] {
            let csv = format!("a,b\n{}{empty}{}", &filled[..at], &filled[at..]);
            let wanted = (csv.lines().count() - 1).to_string();
            for (name, bytes) in [("a.csv", csv.clone().into_bytes()), ("a.csv.gz", gzip(csv.as_bytes()))] {
                let source = files.put(name, &bytes);
                let load = howdah("load").args([
                    "--to",
                    &database.conninfo(),
                    "--table",
                    "t",
                    "--header",
                    "--force",
                ]);
                let told = load.arg(&source).run(PATIENCE).expect_code(0).stderr;
                assert_eq!(
                    database.value("SELECT count(*) FROM t"),
                    wanted,
                    "{name}, {empty:?} at {at}: {told}"
                );
                database.sql("TRUNCATE t");
            }
        }
    }
}

/// Only the table tells whether `10#5` is one value.
#[test]
fn columns_of_the_table_choose_between_readings_that_are_nearly_as_likely() {
    let files = Files::new();
    let source = files.put("a.csv", b"river 10#5\nstone 94#4\ngreen 77#3\nboat 4#2\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE one (a text); CREATE TABLE two (a text, b text); CREATE TABLE three (a text, b text, c text)");
    let load = |table: &str, options: &[&str]| {
        let load = howdah("load").args(["--to", &database.conninfo(), "--header=false", "--table", table]);
        load.args(options).arg(&source).run(PATIENCE)
    };
    let told = load("one", &[]).expect_code(0).stderr;
    assert!(told.contains("'#' may be the delimiter as well; --delimiter settles it"), "{told}");
    assert_eq!(database.value("SELECT min(a) FROM one"), "boat 4#2");
    load("two", &[]).expect_code(0);
    assert_eq!(database.value("SELECT min(a || '|' || b) FROM two"), "boat 4|2");
    for (table, options) in [("three", &[][..]), ("one", &["--delimiter", "#", "--force"])] {
        let refused = load(table, options).expect_code(1).stderr;
        assert!(refused.contains("the file's records have 2 fields"), "{table}: {refused}");
    }
}

/// Dates, words and paths have these inside, and a pipe is looked at once more like a file.
#[test]
fn columns_of_the_table_tell_delimiters_that_values_are_full_of_and_of_pipes_too() {
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE two (a text, b text); CREATE TABLE three (a text, b text, c text)");
    for (delimiter, table) in [("-", "two"), ("/", "three"), (":", "two")] {
        let line = |words: [&str; 3]| words[..if table == "two" { 2 } else { 3 }].join(delimiter) + "\n";
        let lines = [["river", "deep", "mouth"], ["stone", "old", "grey"], ["boat", "wood", "oar"]];
        let file: String = lines.into_iter().map(line).collect();
        database.sql("TRUNCATE two, three");
        let load = howdah("load").args(["--to", &database.conninfo(), "--header=false", "--table", table]);
        let told = load.args(["--job-id", delimiter, "-"]).stdin(file.as_bytes()).run(PATIENCE);
        assert!(told.code == Some(0), "{delimiter}: {}", told.stderr);
        let got = database.value(&format!("SELECT string_agg(concat(a, b), ' ' ORDER BY a) FROM {table}"));
        assert_eq!(got, "boatwood riverdeep stoneold", "{delimiter}");
    }
}
