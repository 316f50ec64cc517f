//! Files that could be read as something else than they say: they are read as they are meant, told to be unsure, or refused.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
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
