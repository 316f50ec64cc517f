//! `--evolve widen`: columns of tables that exist get a wider type where their own does not take the values, and nowhere else.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;
use std::fmt::Write as _;

#[test]
fn a_column_that_takes_the_values_as_they_are_spelled_keeps_its_type() {
    let files = Files::new();
    let source = files.put(
        "t.csv",
        b"day,at,open,told,no,plus,grouped,x,clock,key\n\
          20240131,1706695445,01/02/2024,03/04/2024,007,+5,\"1,234\",NaN,9:05,a0eebc999c0b4ef8bb6d6bb9bd380a11\n\
          20240201,1706695446,02/02/2024,04/04/2024,12,-7,\"12,345\",inf,24:00,a0eebc999c0b4ef8bb6d6bb9bd380a12\n",
    );
    let columns = "day date, at timestamp with time zone, open date, told date, no integer, plus integer, \
                   grouped integer, x double precision, clock time without time zone, key uuid";
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql(&format!("CREATE TABLE t ({columns})"));
        let widening = load(&database).args(["--evolve", "widen", "--types", "told=date:d/m/y"]);
        widening.arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), columns, "{version}");
        assert_eq!(
            database
                .value("SELECT concat_ws(' ', day, told, no, plus, grouped, x, clock) FROM t WHERE no = 7"),
            "2024-01-31 2024-04-03 7 5 1234 NaN 09:05:00",
            "{version}"
        );
    }
}

#[test]
fn a_column_that_does_not_take_some_value_is_widened_for_the_sake_of_those_alone() {
    let files = Files::new();
    let source = files.put(
        "t.csv",
        b"truth,no,day,x\ntrue,007,20240131,NaN\nunknown,3000000000,never,1.5\nf,8,2024-02-01,inf\n",
    );
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql("CREATE TABLE t (truth boolean, no int, day date, x float8)");
        load(&database).args(["--evolve", "widen"]).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), "truth text, no bigint, day text, x double precision", "{version}");
        assert_eq!(
            database.value("SELECT string_agg(t::text, ' ' ORDER BY no) FROM t"),
            "(true,7,20240131,NaN) (f,8,2024-02-01,Infinity) (unknown,3000000000,never,1.5)",
            "{version}"
        );
    }
}

#[test]
fn values_that_no_sample_has_are_judged_by_the_server_too() {
    let mut text = "id,no,x,truth\n".to_owned();
    for id in 0..20_000 {
        let (no, x, truth) = match id {
            5000 => ("007", "NaN", "true"),
            5001 => ("+5", "-inf", "unknown"),
            _ => ("12", "1.25", "false"),
        };
        let _ = writeln!(text, "{id},{no},{x},{truth}");
    }
    let files = Files::new();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, no int, x float8, truth boolean)");
    load(&database).args(["--evolve", "widen"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "t"), "id integer, no integer, x double precision, truth text");
    assert_eq!(database.value("SELECT count(*) || ' ' || sum(no) FROM t"), "20000 239988");
}
