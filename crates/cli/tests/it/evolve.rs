//! `--evolve widen`: columns of tables that exist get a wider type where their own does not take the values,
//! and nowhere else.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE, howdah, while_waiting};
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

#[test]
fn a_column_that_holds_every_number_is_not_widened() {
    let files = Files::new();
    let source =
        files.put("c.csv", b"id,r,v,d,b,n\n1,1.5,abc,2024-01-01,t,1.25\n2,2.5,abd ,2024-01-02,f,2.5\n");
    let columns = "id smallint, r real, v character varying(3), d date, b boolean, n numeric(5,2)";
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql(&format!("CREATE TABLE c ({columns})"));
        let told =
            load(&database).args(["--evolve", "widen"]).arg(&source).run(PATIENCE).expect_code(0).stderr;
        assert!(!told.contains("widens"), "{told}");
        assert_eq!(shape(&database, "c"), columns, "{version}");
    }
    let more = files.put("c.csv", b"id,n\n32767,999.99\n32768,1.125\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE c (id smallint, n numeric(5,2))");
    load(&database).args(["--evolve", "widen"]).arg(&more).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "c"), "id integer, n numeric");
    assert_eq!(database.value("SELECT max(id) || ' ' || min(n) FROM c"), "32768 1.125");
}

#[test]
fn numbers_make_their_column_numeric_and_not_text() {
    let long = "123456789012345678901234567890";
    let late = |no: &str| {
        let mut text = "id,a,b,c,d\n".to_owned();
        for id in 0..50_000 {
            let (a, b) = if id == 40_000 { (no, "1.5") } else { ("7", "7") };
            let _ = writeln!(text, "{id},{a},{b},+5,1.25");
        }
        text
    };
    let files = Files::new();
    let early =
        files.put("early.csv", format!("id,a,b,c,d\n1,{long},1.5,+5,{long}\n2,7,7,007,1.25\n").as_bytes());
    let late = files.put("late.csv", late(long).as_bytes());
    for version in [13, 18] {
        let database = Server::shared(version).database();
        for (source, of_d) in [(&early, "numeric"), (&late, "numeric(8,2)")] {
            database.sql("DROP TABLE IF EXISTS t");
            database.sql("CREATE TABLE t (id int, a int, b bigint, c numeric, d numeric(8,2))");
            let load = load(&database).args(["--table", "t", "--evolve", "widen", "--force"]);
            let told = load.arg(source).run(PATIENCE).expect_code(0).stderr;
            let expected = format!("id integer, a numeric, b numeric, c numeric, d {of_d}");
            assert_eq!(shape(&database, "t"), expected, "{version} {told}");
            assert!(!told.contains("column c"), "{told}");
            assert_eq!(
                database.value("SELECT max(a) || ' ' || min(b) FROM t"),
                format!("{long} 1.5"),
                "{version}"
            );
        }
    }
}

#[test]
fn strings_that_are_too_long_make_their_column_text() {
    let mut late = "id,v,w,s\n".to_owned();
    for id in 0..2_000_000 / 40 {
        let long = if id == 40_000 { "too long" } else { "abc" };
        let _ = writeln!(late, "{id},{long},{:24},n", "\u{e4}bc");
    }
    let files = Files::new();
    let (early, late) = (
        files.put("early.csv", "id,v,w,s\n1,abcdefgh,\u{e4}\u{f6}\u{fc},no\n".as_bytes()),
        files.put("late.csv", late.as_bytes()),
    );
    for version in [13, 18] {
        let database = Server::shared(version).database();
        for source in [&early, &late] {
            database.sql("DROP TABLE IF EXISTS t");
            database.sql("CREATE TABLE t (id int, v varchar(3), w varchar(3), s char(1))");
            database.sql("INSERT INTO t VALUES (-1, 'a', 'b', 'y')");
            let load = load(&database).args(["--table", "t", "--evolve", "widen", "--force"]);
            let told = load.arg(source).run(PATIENCE).expect_code(0).stderr;
            let of_s = if source == &early { "text" } else { "character(1)" };
            let expected = format!("id integer, v text, w character varying(3), s {of_s}");
            assert_eq!(shape(&database, "t"), expected, "{version} {told}");
            assert_eq!(database.value("SELECT max(length(v)) FROM t"), "8", "{version}");
            assert_eq!(database.value("SELECT s FROM t WHERE id = -1"), "y", "{version}");
        }
    }
}

#[test]
fn a_table_is_changed_as_a_whole_or_not_at_all() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,v,extra\n100000,abcdef,9\n");
    for version in [13, 15, 18] {
        let database = Server::shared(version).database();
        let columns = "id smallint, v text";
        database.sql(&format!("CREATE TABLE a ({columns}); CREATE VIEW av AS SELECT id FROM a"));
        let widening = load(&database).args(["--evolve", "widen"]).arg(&source);
        let told = widening.run(PATIENCE).expect_code(1).stderr;
        assert!(told.contains("hint: rule _RETURN on view av depends on column \"id\": drop that"), "{told}");
        assert_eq!(shape(&database, "a"), columns, "{version}: nothing is changed");
        database.sql("DROP VIEW av");
        widening.run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "a"), "id integer, v text, extra integer", "{version}");
    }
}

/// What is stored has been a wall time of some zone, and only who stored it knows of which.
#[test]
fn stored_wall_times_do_not_become_instants_of_the_sessions_zone() {
    let files = Files::new();
    let source = files.put("e.csv", b"id,at,day\n2,2026-01-02T10:00:00Z,2026-01-02T10:00:00Z\n");
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql(
            "CREATE TABLE e (id int, at timestamp, day date); INSERT INTO e VALUES (1, '2026-03-08 02:30', '2026-03-08')",
        );
        let to = format!("{} options='-c TimeZone=America/New_York'", database.conninfo());
        let load = howdah("load").args(["--to", &to, "--table", "e", "--evolve", "widen"]);
        load.arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "e"), "id integer, at text, day text", "{version}");
        let stored = database.value("SELECT string_agg(e::text, ' ' ORDER BY id) FROM e");
        assert_eq!(
            stored, "(1,\"2026-03-08 02:30:00\",2026-03-08) (2,2026-01-02T10:00:00Z,2026-01-02T10:00:00Z)",
            "{version}"
        );
    }
}

/// Another load has found that the column must be wider still, after this one was planned or had begun.
#[test]
fn a_column_that_others_widen_meanwhile_is_not_narrowed() {
    let mut late = "id,k\n".to_owned();
    (0..20_000).for_each(|id| {
        let _ = writeln!(late, "{id},{}", if id == 15_000 { "3000000000" } else { "7" });
    });
    let files = Files::new();
    let planned = files.put("planned.csv", b"id,k\n1,2024-01-31 10:00:00\n");
    let found = files.put("found.csv", late.as_bytes());
    for (version, source, has, stored, expected) in [
        (13, &planned, "date", "2024-01-01 00:00:00+02", "2024-01-31 10:00:00"),
        (18, &found, "integer", "007", "3000000000"),
    ] {
        let database = Server::shared(version).database();
        database.sql(&format!("CREATE TABLE t (id int, k {has})"));
        let widening = load(&database).args(["--table", "t", "--evolve", "widen", "--chunk-size", "64kB"]);
        let widening = widening.arg(source);
        let by_others = format!("ALTER TABLE t ALTER k TYPE text; INSERT INTO t VALUES (-1, '{stored}')");
        let held = ("LOCK TABLE t IN ACCESS SHARE MODE", "t");
        let running = while_waiting(&database, held, &by_others, || widening.spawn());
        running.wait(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), "id integer, k text", "{version}");
        assert_eq!(database.value("SELECT k FROM t WHERE id = -1"), stored, "{version}");
        let same = format!("SELECT count(*) FROM t WHERE k = '{expected}'");
        assert_eq!(database.value(&same), "1", "{version}");
    }
}

/// Integers and prices of two decimals, but for `code` and `price` of one row.
fn with_surprise((rows, at): (u64, u64), (code, price): (&str, &str)) -> String {
    let mut text = "id,code,price\n".to_owned();
    for id in 0..rows {
        let _ = match id == at {
            true => writeln!(text, "{id},{code},{price}"),
            false => writeln!(text, "{id},{},1.50", id + 100),
        };
    }
    text
}

#[test]
fn no_value_is_rounded_or_read_as_another_where_columns_cannot_be_altered() {
    let text = with_surprise((30_000, 7000), ("007", "1.255"));
    let files = Files::new();
    let source = files.put("f.csv", text.as_bytes());
    let row = "SELECT f::text FROM f WHERE id = 7000";
    for way in ["--atomic", "--freeze --mode truncate", "--mode merge --key id", "--mode replace"] {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE f (id int PRIMARY KEY)");
        let load = load(&database).args(way.split(' ')).args(["--evolve", "add"]);
        load.arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "f"), "id integer, code text, price numeric", "{way}");
        assert_eq!(database.value(row), "(7000,007,1.255)", "{way}");
        assert_eq!(database.value("SELECT price FROM f WHERE id = 1"), "1.50", "{way}");
    }
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE f (id int, code text, price numeric(5,2))");
    load(&database).args(["--atomic", "--evolve", "widen"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value(row), "(7000,007,1.255)");
}

#[test]
fn a_value_beyond_what_was_read_before_ends_a_load_that_cannot_alter_its_columns() {
    let text = with_surprise((40_000, 30_000), ("007", "1.50"));
    let byte = text.find("30000,007").unwrap();
    let rounded = with_surprise((40_000, 30_000), ("30100", "1.255"));
    for (table, options, text, told) in [
        (None, "--create --freeze", &text, ["column code: ", "TYPE text"]),
        (Some("id int"), "--evolve add --atomic", &text, ["column code: ", "TYPE text"]),
        (
            Some("id int, code text, price numeric(5,2)"),
            "--evolve widen --atomic",
            &rounded,
            ["column price: ", "TYPE numeric"],
        ),
    ] {
        let database = Server::shared(15).database();
        table.into_iter().for_each(|columns| database.sql(&format!("CREATE TABLE f ({columns})")));
        let options = format!("{options} --chunk-size 64kB --job-id j --table f -");
        let load = load(&database).args(options.split(' ')).stdin(text.clone());
        let refused = load.clone().run(PATIENCE).expect_code(1).stderr;
        for words in told.iter().chain(&["record 30001, ", &format!("byte {byte}, ")]) {
            assert!(refused.contains(words), "{options}: {words}\n{refused}");
        }
        assert_eq!(database.value("SELECT count(*) FROM f"), "0", "{options}");
        let (_, alter) = refused.split_once("run `").unwrap();
        database.sql(alter.split_once('`').unwrap().0);
        load.run(PATIENCE).expect_code(0);
        let stored = "SELECT concat_ws(' ', code, price) FROM f WHERE id = 30000";
        let expected = if told[0].contains("code") { "007 1.50" } else { "30100 1.255" };
        assert_eq!(database.value(stored), expected, "{options}");
    }
}

#[test]
fn an_added_column_has_the_type_that_it_was_told() {
    let files = Files::new();
    let source = files.put("t.csv", b"id,zip,day,note\n1,12345,01/02/2024,7\n2,00501,05/02/2024,8\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int)");
    let adding =
        load(&database).args(["--evolve", "add", "--types", "zip=varchar(5),day=date:d/m/y,*=bigint"]);
    adding.arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "t"), "id integer, zip character varying(5), day date, note bigint");
    assert_eq!(database.value("SELECT t::text FROM t WHERE id = 2"), "(2,00501,2024-02-05,8)");
    // The types of columns that are there are told only where they are others.
    for (types, told) in [
        ("id=int,zip=varchar(5),note=int8,day=timestamp:d/m/y", None),
        (
            "id=text,zip=varchar(6),note=bigint",
            Some("of public.t are there: id (integer), zip (character varying(5))\n"),
        ),
    ] {
        let again =
            load(&database).args(["--force", "--types", types]).arg(&source).run(PATIENCE).expect_code(0);
        match told {
            Some(words) => assert!(again.stderr.contains(words), "{}", again.stderr),
            None => assert!(!again.stderr.contains("--types"), "{}", again.stderr),
        }
    }
    // What is told is no guess that values could make another.
    for (mode, name) in [("append", "w"), ("truncate", "v")] {
        database.sql(&format!("CREATE TABLE {name} (id int)"));
        let source = files.put("w.csv", b"id,price\n1,5\n2,10\n");
        let load = howdah("load").args(["--to", &database.conninfo(), "--table", name, "--mode", mode]);
        let widening = load.args(["--evolve", "widen", "--types", "price=numeric(12,2)"]);
        widening.arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, name), "id integer, price numeric(12,2)", "{mode}");
    }
}

#[test]
fn decimals_in_whatever_form_are_not_rounded() {
    let mut late = "id,a,b,c\n".to_owned();
    for id in 0..20_000 {
        let (a, b, c) = match id {
            15_000 => ("+1.255", "01.255", "+1000.00"),
            _ => ("+1.25", "01.50", "1.50"),
        };
        let _ = writeln!(late, "{id},{a},{b},{c}");
    }
    let files = Files::new();
    let early = files.put("early.csv", b"id,a,b,c\n1,+1.25,01.50,1.50\n15000,+1.255,01.255,+1000.00\n");
    let late = files.put("late.csv", late.as_bytes());
    for (version, source) in [(13, &early), (13, &late), (18, &early), (18, &late)] {
        let database = Server::shared(version).database();
        database.sql("CREATE TABLE t (id int, a numeric(5,2), b numeric(5,2), c numeric(5,2))");
        let load = load(&database).args(["--table", "t", "--evolve", "widen", "--chunk-size", "64kB"]);
        load.arg(source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), "id integer, a numeric, b numeric, c numeric", "{version}");
        let stored = "SELECT concat_ws(' ', a, b, c) FROM t WHERE id = 15000";
        assert_eq!(database.value(stored), "1.255 1.255 1000.00", "{version}");
    }
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (id int, a numeric(7,2), b numeric(7,2))");
    let source = files.put("same.csv", b"id,a,b\n1,+1.250,01.5\n2,NaN,1_000.25\n");
    load(&database).args(["--table", "t", "--evolve", "widen"]).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "t"), "id integer, a numeric(7,2), b numeric(7,2)");
}

#[test]
fn a_column_of_truth_is_widened_for_numbers_that_are_none() {
    let mut late = "id,a,b,c\n".to_owned();
    for id in 0..20_000 {
        let _ = match id {
            15_000 => writeln!(late, "{id},0.5,1e3,\"1,234.5\""),
            _ => writeln!(late, "{id},1,0,true"),
        };
    }
    let files = Files::new();
    let early = files.put("early.csv", b"id,a,b,c\n15000,0.5,1e3,\"1,234.5\"\n");
    let late = files.put("late.csv", late.as_bytes());
    for source in [&early, &late] {
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE t (id int, a boolean, b boolean, c boolean)");
        let load = load(&database).args(["--table", "t", "--evolve", "widen", "--chunk-size", "64kB"]);
        load.arg(source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), "id integer, a text, b text, c text");
        assert_eq!(database.value("SELECT t::text FROM t WHERE id = 15000"), "(15000,0.5,1e3,\"1,234.5\")");
    }
}

#[test]
fn integers_do_not_become_doubles_which_would_round_later_ones() {
    let mut text = "id,k,v\n".to_owned();
    for id in 0..100_000 {
        let (k, v) = match id {
            100 => ("1e3", "7"),
            30_000 => ("0.12345678901234567890", "1e3"),
            70_000 => ("7", "0.12345678901234567890"),
            _ => ("7", "7"),
        };
        let _ = writeln!(text, "{id},{k},{v}");
    }
    let files = Files::new();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, k int, v smallint)");
    let load = load(&database).args(["--evolve", "widen", "--chunk-size", "64kB"]);
    load.arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "t"), "id integer, k numeric, v numeric");
    let stored =
        "SELECT string_agg(concat_ws(' ', k, v), ', ' ORDER BY id) FROM t WHERE id >= 30000 AND k + v <> 14";
    assert_eq!(database.value(stored), "0.12345678901234567890 1000, 7 0.12345678901234567890");
}

#[test]
fn it_is_told_where_a_column_that_became_text_has_values_in_two_spellings() {
    let mut text = "id,code,price,k\n".to_owned();
    for id in 0..100_000 {
        let _ = match id {
            30_000 => writeln!(text, "{id},n/a,n/a,n/a"),
            _ => writeln!(text, "{id},{:03},1.5,{id}", id % 10),
        };
    }
    let files = Files::new();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, code int, price numeric(8,2), k int)");
    let load = load(&database).args(["--evolve", "widen", "--chunk-size", "64kB"]);
    let told = load.arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert_eq!(shape(&database, "t"), "id integer, code text, price text, k text");
    let line = |name: &str| {
        let begins = format!("column {name} of public.t became text: a value did not fit");
        told.lines().find_map(|line| line.split_once(&begins)).unwrap_or_else(|| panic!("{name}\n{told}")).1
    };
    for (name, is_mixed) in [("code", true), ("price", true), ("k", false)] {
        assert_eq!(line(name).contains("spelled as PostgreSQL writes it"), is_mixed, "{name}\n{told}");
    }
    let stored = "SELECT concat_ws(' ', code, price, k) FROM t WHERE id IN (5, 99995) ORDER BY id";
    assert_eq!(database.rows(stored).len(), 2);
    assert_eq!(database.value(stored), "5 1.50 5");
}

#[test]
fn numbers_and_days_in_other_peoples_spelling_widen_their_columns() {
    let surprise = "\"1,234.567\",\"5,000,000,000\",31/01/2024 10:05,1706695446,\"1,5\",x";
    let usual = "\"1,234.50\",\"1,234\",31/01/2024,1706695445,\"2,5\",x";
    let text = |rows: u32, at: u32| {
        let mut text = "id,price,k,day,at,told,note\n".to_owned();
        (0..rows).for_each(|id| {
            let _ = writeln!(text, "{id},{}", if id == at { surprise } else { usual });
        });
        text
    };
    let files = Files::new();
    let early = files.put("early.csv", text(20, 10).as_bytes());
    let late = files.put("late.csv", text(40_000, 13_000).as_bytes());
    for (source, id, way) in [
        (&early, 10, "--retry-for 60s"),
        (&late, 13_000, "--retry-for 60s"),
        (&late, 13_000, "--atomic"),
        (&early, 10, "--mode merge --key id"),
    ] {
        let database = Server::shared(15).database();
        database.sql(
            "CREATE TABLE t (id int PRIMARY KEY, price numeric(8,2), k int, day date, at timestamp, told int, note text)",
        );
        let load = load(&database)
            .args(["--evolve", "widen", "--types", "told=numeric:1.234,56"])
            .args(way.split(' '));
        let told = load
            .args(["--table", "t", "--chunk-size", "64kB"])
            .arg(source)
            .run(PATIENCE)
            .expect_code(0)
            .stderr;
        assert_eq!(
            shape(&database, "t"),
            "id integer, price numeric, k bigint, day timestamp without time zone, at timestamp without time zone, \
             told numeric, note text",
            "{way}\n{told}"
        );
        let stored = format!(
            "SELECT concat_ws(' ', price, k, day, extract(epoch FROM at)::int, told) FROM t WHERE id = {id}"
        );
        assert_eq!(
            database.value(&stored),
            "1234.567 5000000000 2024-01-31 10:05:00 1706695446 1.5",
            "{way}"
        );
        let stored = "SELECT concat_ws(' ', price, k, day, told) FROM t WHERE id = 1";
        assert_eq!(database.value(stored), "1234.50 1234 2024-01-31 00:00:00 2.5", "{way}");
    }
}

#[test]
fn values_that_are_read_and_fit_leave_their_columns_as_they_are() {
    let files = Files::new();
    let source = files.put(
        "t.csv",
        b"id,price,k,day,at,instant,seen\n1,\"1,234.50\",\"12,345\",31/01/2024,1706695445,1706695445,1706695445\n\
          2,\"12,345.6\",\"1,234,567\",01/02/2024,1706695446,1706695446,1706695446\n",
    );
    let columns = "id integer, price numeric(8,2), k integer, day date, at timestamp without time zone, \
                   instant timestamp with time zone, seen date";
    for way in ["--lock-timeout 5s", "--atomic"] {
        let database = Server::shared(15).database();
        database.sql(&format!("CREATE TABLE t ({columns})"));
        let widening = load(&database).args(["--evolve", "widen"]).args(way.split(' '));
        widening.arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "t"), columns, "{way}");
        let stored = "SELECT concat_ws(' ', price, k, day, at, extract(epoch FROM instant)::int, seen) FROM t WHERE id = 2";
        let expected = "12345.60 1234567 2024-02-01 2024-01-31 10:04:06 1706695446 2024-01-31";
        assert_eq!(database.value(stored), expected, "{way}");
    }
}

/// A column's type, collation, storage and compression, and the collation of its index.
const KEPT: &str = "\
    SELECT concat_ws(' ', format_type(a.atttypid, a.atttypmod), c.collname, a.attstorage, to_jsonb(a) ->> 'attcompression', k.collname) \
    FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation \
    JOIN pg_index i ON i.indrelid = a.attrelid AND i.indkey[0] = a.attnum JOIN pg_collation k ON k.oid = i.indcollation[0] \
    WHERE a.attrelid = 't'::regclass AND a.attname = 'v'";

#[test]
fn a_column_that_becomes_text_keeps_its_collation_and_how_it_stores_values() {
    let mut late = "id,v,n\n".to_owned();
    for id in 0..2_000_000 / 40 {
        let long = if id == 40_000 { "much too " } else { "" };
        let _ = writeln!(late, "{id},{long}{id},{:24}", 7);
    }
    let files = Files::new();
    let (early, late) =
        (files.put("early.csv", b"id,v,n\n1,abcdefgh,x\n"), files.put("late.csv", late.as_bytes()));
    let merge = ["--mode", "merge", "--key", "id"];
    for (source, more) in
        [(&early, &[][..]), (&early, &["--indexes", "rebuild"]), (&early, &merge), (&late, &[])]
    {
        for version in [13, 18] {
            let database = Server::shared(version).database();
            let compression = if version >= 14 { ", ALTER v SET COMPRESSION pglz" } else { "" };
            database.sql(&format!(
                "CREATE COLLATION \"my C\" (provider = libc, locale = 'C'); \
                 CREATE TABLE t (id int PRIMARY KEY, v varchar(5) COLLATE \"my C\" UNIQUE, n int); \
                 ALTER TABLE t ALTER v SET STORAGE EXTERNAL{compression}; INSERT INTO t VALUES (-1, 'a', 1)"
            ));
            let load = load(&database).args(["--table", "t", "--evolve", "widen"]).args(more.iter().copied());
            let told = load.arg(source).run(PATIENCE).expect_code(0).stderr;
            let compressed = if version >= 14 { " p" } else { "" };
            let expected = format!("text my C e{compressed} my C");
            assert_eq!(database.value(KEPT), expected, "PostgreSQL {version}, {source:?} {more:?}: {told}");
        }
    }
}

#[test]
fn what_made_a_column_wider_is_no_bad_record_where_its_chunk_has_one() {
    let line = |id: u32| match id {
        4356 => "5,c,7\n".to_owned(),
        4646 => format!("{id},{},seven\n", "c".repeat(40)),
        _ => format!("{id},c{id},{id}\n"),
    };
    // Wider than the sample of a pipe.
    let pad = |id: u32| line(id).replace('\n', &format!(",{}\n", "p".repeat(400)));
    let text: String = (0..6000).map(pad).collect();
    for (version, encode) in [(13, "auto"), (18, "auto"), (18, "csv")] {
        let database = Server::shared(version).database();
        database.sql("CREATE TABLE t (id int UNIQUE, c varchar(8), no int, pad text)");
        let widening = load(&database).args(["--table", "t", "--evolve", "widen", "--on-error", "skip"]);
        let widening = widening.args(["--encode", encode, "--job-id", "one", "-"]);
        let told = widening.stdin(text.as_bytes()).run(PATIENCE).expect_code(3).stderr;
        assert!(told.contains("read 6,000 = stored 5,999 + rejected 1"), "{version} {encode}\n{told}");
        assert_eq!(shape(&database, "t"), "id integer, c text, no text, pad text", "{version} {encode}");
        assert_eq!(database.value("SELECT c || no FROM t WHERE id = 4646"), "c".repeat(40) + "seven");
    }
}

#[test]
fn what_keeps_a_column_from_becoming_wider_is_told() {
    let rows =
        "id,a\n".to_owned() + &(0..3000).map(|id| format!("{id},{id}\n")).collect::<String>() + "3000,word\n";
    let database = Server::shared(18).database();
    let tables = [
        "t (id int, a int CHECK (a >= 0))",
        "t (id int, a int) PARTITION BY RANGE (a); CREATE TABLE p PARTITION OF t DEFAULT",
        "t (id int, a int REFERENCES k)",
        "t (id int, a int); CREATE INDEX ON t (id) WHERE a > 5",
    ];
    for table in tables {
        database.sql(&format!(
            "DROP TABLE IF EXISTS t, k; CREATE TABLE k (a int PRIMARY KEY); CREATE TABLE {table}"
        ));
        let widening = load(&database).args(["--table", "t", "--evolve", "widen", "-"]);
        let told = widening.stdin(rows.as_bytes()).run(PATIENCE).expect_code(1).stderr;
        let is_told = told.contains("table public.t cannot be changed to let a become text: ")
            && told.contains("hint: what is made for the type that the column has (a CHECK");
        assert!(is_told, "{table}\n{told}");
    }
}
