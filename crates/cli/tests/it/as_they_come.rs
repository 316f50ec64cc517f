//! Files as other programs, and people with `cat`, make them: what could be read in two ways is refused, or is read as it was meant.

use crate::auto::load;
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{Database, Server};
use std::path::Path;

/// Loads the file into a new table `t`; standard error.
fn load_new(database: &Database, file: &Path, options: &[&str], code: i32) -> String {
    database.sql("DROP TABLE IF EXISTS t");
    let command = load(database).args(["--table", "t", "--create", "--force"]).args(options.iter().copied());
    command.arg(file).run(PATIENCE).expect_code(code).stderr
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
