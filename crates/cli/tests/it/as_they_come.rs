//! Files as other programs, and people with `cat`, make them: what could be read in two ways is refused, or
//! is read as it was meant.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, howdah};
use howdah_testkit::{Database, Server};
use std::path::Path;

/// Loads the file into a new table `t`; standard error.
fn load_new(database: &Database, file: &Path, options: &[&str], code: i32) -> String {
    database.sql("DROP TABLE IF EXISTS t");
    let command = load(database).args(["--table", "t", "--create", "--force"]).args(options.iter().copied());
    command.arg(file).run(PATIENCE).expect_code(code).stderr
}

#[test]
fn a_header_that_comes_again_is_refused_or_kept_apart() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let rows = "SELECT string_agg(t::text, ' ' ORDER BY t) FROM t";
    let cases = [
        ("typed", "id,name\n1,a\n2,b\nid,name\n3,c\n", "record 3, byte 16: "),
        ("text", "city,state\nBonn,NW\nKiel,SH\n\"city\",\"state\"\nTrier,RP\n", "record 3, byte 27: "),
        // Read and written anew, for its blanks.
        ("blanks", "id | name\n1 | a\n2 | b\nid | name\n3 | c\n", "record 3: "),
    ];
    for (name, text, place) in cases {
        let file = files.put(&format!("{name}.csv"), text.as_bytes());
        let told = load_new(&database, &file, &[], 1);
        let place = format!("{place}the record says the names of the header again");
        assert!(told.contains(&place), "{told}");
        load_new(&database, &file, &["--on-error", "skip"], 3);
        let expected = if name == "text" { "(Bonn,NW) (Kiel,SH) (Trier,RP)" } else { "(1,a) (2,b) (3,c)" };
        assert_eq!(database.value(rows), expected, "{name}");
        let check = howdah("check").args(["--to", &database.conninfo(), "--table", "t"]).arg(&file);
        let told = check.run(PATIENCE).expect_code(3);
        assert!(format!("{}{}", told.stdout, told.stderr).contains("names of the header again"), "{name}");
    }
    // As COPY would.
    database.sql("DROP TABLE t; CREATE TABLE t (city text, state text)");
    let file = files.path().join("text.csv");
    let command = load(&database).args(["--table", "t", "--format", "csv", "--header", "--force"]);
    command.arg(file).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "4");
}

#[test]
fn digits_around_an_e_are_a_name_unless_a_point_or_a_sign_says_otherwise() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let file = files.put("ids.csv", b"code,x,n\n12E3,1.5,1\n45E1,1e3,2\n1234,2,3\n");
    load_new(&database, &file, &[], 0);
    assert_eq!(database.value("SELECT string_agg(code, ' ' ORDER BY n) FROM t"), "12E3 45E1 1234");
    assert_eq!(database.value("SELECT sum(x) FROM t"), "1003.5");
    // A column that is one of numbers stays one.
    database.sql("DROP TABLE t; CREATE TABLE t (code double precision, x numeric, n int)");
    let file = files.put("more.csv", b"code,x,n\n12E3,1e2,1\n45E1,1e3,2\n");
    let command = load(&database).args(["--table", "t", "--evolve", "widen"]).arg(&file);
    command.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT sum(code) + sum(x) FROM t"), "13550");
}

#[test]
fn tables_drawn_in_characters_are_read_or_refused() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let rows = "SELECT string_agg(t::text, ' ' ORDER BY id) FROM t";
    let edge = "+----+-------+-------+\n";
    let body = "|  1 | ann   |  2.50 |\n|  2 | bob   |  3.75 |\n|  3 | cy    | 10.00 |\n";
    let mysql = format!("{edge}| id | name  | price |\n{edge}{body}{edge}3 rows in set (0.00 sec)\n\n");
    let markdown = format!("| id | name  | price |\n|----|:------|------:|\n{body}");
    for (name, text) in [("mysql.txt", mysql), ("markdown.md", markdown)] {
        let file = files.put(name, text.as_bytes());
        load_new(&database, &file, &[], 0);
        assert_eq!(database.value(rows), "(1,ann,2.50) (2,bob,3.75) (3,cy,10.00)", "{name}");
    }
    let grid = "+----+------+\n| id | name |\n+====+======+\n| 1  | ann  |\n+----+------+\n| 2  | bob  |\n+----+------+\n";
    let file = files.put("grid.rst", grid.as_bytes());
    let told = load_new(&database, &file, &[], 1);
    assert!(told.contains("a table drawn in characters"), "{told}");
}

#[test]
fn names_are_found_in_comments_and_not_moved_by_decimal_commas() {
    let files = Files::new();
    let database = Server::shared(15).database();
    let log = "#Version: 1.0\n#Fields: day cs-method sc-status\n2024-03-01 GET 200\n2024-03-02 GET 304\n2024-03-03 POST 404\n";
    let file = files.put("iis.log", log.as_bytes());
    load_new(&database, &file, &[], 0);
    assert_eq!(database.value("SELECT sum(sc_status) FROM t WHERE day < '2024-03-03'"), "504");
    let swapped = format!("{log}#Fields: day sc-status cs-method\n2024-03-04 200 GET\n");
    let file = files.put("swapped.log", swapped.as_bytes());
    let told = load_new(&database, &file, &[], 1);
    assert!(told.contains("comments declare the names of the fields"), "{told}");
    // Far behind what is looked at first, too; the same names may come again.
    let rows = "2024-03-01 GET 200\n".repeat(100_000);
    for (fields, code) in [("day cs-method sc-status", 0), ("day sc-status cs-method", 1)] {
        let long = format!("{log}# rotated\n{rows}#Fields: {fields}\n2024-03-04 200 300\n{rows}{rows}{rows}");
        let told = load_new(&database, &files.put("long.log", long.as_bytes()), &[], code);
        assert_eq!(
            told.contains("record 100004") && told.contains("declares other names"),
            code == 1,
            "{told}"
        );
    }
    let file = files.put("decimals.csv", b"id,val,name\n1,2,5,foo\n2,3,5,bar\n3,4,75,baz\n");
    let told = load_new(&database, &file, &[], 1);
    assert!(told.contains("that of fractions, too"), "{told}");
    let columns = ["--columns", "id,whole,tenths,name"];
    load_new(&database, &file, &columns, 0);
    assert_eq!(database.value("SELECT sum(tenths) FROM t"), "85");
}
