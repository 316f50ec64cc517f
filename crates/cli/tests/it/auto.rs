//! Files without a word about them: the dialect is found, the table made or matched, and what does not fit is
//! said.

use crate::gate::{open_gate, shut_gate_behind};
use crate::scene::{Files, PATIENCE, gzip, howdah};
use howdah_testkit::{Database, HowdahCommand, Server};
use std::fmt::Write as _;

/// `howdah load` without any option about the files.
pub(crate) fn load(database: &Database) -> HowdahCommand {
    howdah("load").args(["--to", &database.conninfo()])
}

/// Name and type of every column.
pub(crate) fn shape(database: &Database, table: &str) -> String {
    database.value(&format!(
        "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) \
         FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0"
    ))
}

#[test]
fn a_file_without_a_word_becomes_a_table() {
    let files = Files::new();
    let source = files.put(
        "Rain Gauges.csv",
        b"Station;Opened on;Height (m);Rain\nOslo;2001-02-03;94;1,5\nBergen;1999-12-31;12;2250,25\nR\xc3\xb8ros;;625;500,0\n",
    );
    let database = Server::shared(15).database();
    let refused = load(&database).arg(&source).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("hint: make it with --create"), "{}", refused.stderr);
    let done = load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains("found  "), "{}", done.stderr);
    assert_eq!(
        shape(&database, "rain_gauges"),
        "station text, opened_on date, height_m integer, rain numeric"
    );
    let rows = database.value("SELECT string_agg(r::text, ' ' ORDER BY station) FROM rain_gauges r");
    assert_eq!(rows, "(Bergen,1999-12-31,12,2250.25) (Oslo,2001-02-03,94,1.5) (Røros,,625,500.0)");
}

#[test]
fn names_are_matched_forgivingly_and_everything_that_does_not_fit_is_said_at_once() {
    let files = Files::new();
    let source = files.put("a.csv", b"Stat\xc3\xadon Name,OPENED-ON,id\nOslo,2001-02-03,1\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE a (id int, opened_on date, station_name text, remark text DEFAULT 'none')");
    load(&database).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT a::text FROM a"), "(1,2001-02-03,Oslo,none)");

    let wrong = files
        .put("b.csv", b"id,colour,weight,day\n2023-05-06,red,2,2024-01-02\n2023-05-07,blue,3,2024-01-03\n");
    database.sql("CREATE TABLE b (id int, day date, shelf text NOT NULL)");
    let refused = load(&database).arg(&wrong).run(PATIENCE).expect_code(1);
    for words in ["colour, weight", "column id is integer", "shelf"] {
        assert!(refused.stderr.contains(words), "{words}\n{}", refused.stderr);
    }
    database.sql("ALTER TABLE b ALTER COLUMN shelf DROP NOT NULL");
    load(&database).args(["--evolve", "widen"]).arg(&wrong).run(PATIENCE).expect_code(0);
    assert_eq!(shape(&database, "b"), "id text, day date, shelf text, colour text, weight integer");
    assert_eq!(
        database.value("SELECT string_agg(b::text, ' ' ORDER BY id) FROM b"),
        "(2023-05-06,2024-01-02,,red,2) (2023-05-07,2024-01-03,,blue,3)"
    );
}

#[test]
fn a_bad_date_does_not_hide_the_order_of_the_others() {
    let mut text = "id,day\n1,unknown\n2,99.99.2024\n".to_owned();
    for id in 3..3000 {
        let _ = writeln!(text, "{id},{:02}/{:02}/2024", 1 + id % 28, 1 + id % 12);
    }
    let files = Files::new();
    let source = files.put("days.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE days (id int, day date)");
    let done = load(&database).args(["--on-error", "skip"]).arg(&source).run(PATIENCE).expect_code(3);
    assert!(done.stderr.contains("2 rejected"), "{}", done.stderr);
    let wrong = "SELECT count(*) FROM days \
                 WHERE day <> make_date(2024, (1 + id % 12)::integer, (1 + id % 28)::integer)";
    assert_eq!(database.value(wrong), "0");
    assert_eq!(database.value("SELECT count(*) FROM days"), "2997");

    for (name, days, words) in [
        ("open", "01/02/2024\nunknown\n", "no value seen of day tells day from month"),
        ("mixed", "13/02/2024\n02/13/2024\n", "not all in one order of day and month"),
    ] {
        let source = files.put(name, format!("day\n{days}").as_bytes());
        let unsure = load(&database).args(["--table", "days", "--on-error", "skip"]).arg(&source);
        let told = unsure.run(PATIENCE).stderr;
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn options_fix_their_part_and_types_and_keys_are_as_told() {
    let files = Files::new();
    let source = files.put("a.txt", b"id|when|code|at\n1|01/02/2024|007|1706745600\n2|05/02/2024|12|0\n");
    let database = Server::shared(13).database();
    load(&database)
        .args([
            "--create",
            "--delimiter",
            "|",
            "--types",
            "code=varchar(5),id=bigint,when=date:d/m/y,at=timestamp:epoch",
            "--primary-key",
            "id",
        ])
        .args(["--names", "keep", "--table", "told"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(0);
    assert_eq!(
        shape(&database, "told"),
        "id bigint, when date, code character varying(5), at timestamp without time zone"
    );
    assert_eq!(
        database.value("SELECT string_agg(told::text, ' ' ORDER BY id) FROM told"),
        "(1,2024-02-01,007,\"2024-02-01 00:00:00\") (2,2024-02-05,12,\"1970-01-01 00:00:00\")"
    );
    assert_eq!(
        database.value("SELECT count(*) FROM pg_index WHERE indrelid = 'told'::regclass AND indisprimary"),
        "1"
    );
}

#[test]
fn a_late_surprise_widens_the_column_and_loses_nothing() {
    let mut text = "id,code,amount\n".to_owned();
    for id in 0..400_000 {
        let code = if id == 390_000 { "007".to_owned() } else { (id % 1000).to_string() };
        let amount = if id == 395_000 { "12345678901".to_owned() } else { id.to_string() };
        let _ = writeln!(text, "{id},{code},{amount}");
    }
    let database = Server::shared(15).database();
    // Through a pipe only the beginning can be looked at.
    let done = load(&database)
        .args(["--create", "--table", "late", "--chunk-size", "256kB", "-"])
        .stdin(text.clone())
        .run(PATIENCE)
        .expect_code(0);
    assert!(done.stderr.contains("column code of public.late became text"), "{}", done.stderr);
    assert_eq!(shape(&database, "late"), "id integer, code text, amount bigint");
    database.sql("CREATE TABLE wanted (id int, code text, amount bigint)");
    database.copy_in("COPY wanted FROM STDIN (FORMAT csv, HEADER true)", text.into_bytes()).unwrap();
    assert_eq!(database.digest("late"), database.digest("wanted"));
}

#[test]
fn what_contradicts_the_finding_late_is_an_error_with_its_place() {
    let mut text = "name,place\n".to_owned();
    for no in 0..200_000 {
        let _ = writeln!(text, "bolt M{},shelf {no}", no % 40);
        if no == 150_000 {
            text.push_str("nut \"M6\",shelf 7\n\"screw\" M5,shelf 8\n");
        }
    }
    let files = Files::new();
    let source = files.put("parts.csv", text.as_bytes());
    let database = Server::shared(18).database();
    let refused =
        load(&database).args(["--create", "--table", "parts"]).arg(&source).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("record 1500"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--lenient"), "{}", refused.stderr);
}

#[test]
fn lenient_mends_counts_and_leaves_out_what_is_beyond_mending() {
    let files = Files::new();
    let source = files.put(
        "a.csv",
        b"id,name,height\n1,fir,30\n2,oak\n3,elm,20,,\n4;yew;10\n5,ash,25,nonsense,more\n6,b\xffech,40\n7,ivy,1\n8,\xc3\xb6\xc3\x9f\xc3\xa4\xc3\xbc\xc3\xa9\xc3\xa8,2\n9,fir,8\n10,oak,7\n11,elm,6\n12,ash,5\n",
    );
    let database = Server::shared(15).database();
    let strict = load(&database).args(["--create", "--table", "strict"]).arg(&source).run(PATIENCE);
    let strict = strict.expect_code(1);
    assert!(strict.stderr.contains("record 2"), "{}", strict.stderr);
    let done = load(&database)
        .args(["--create", "--lenient", "--json", "--table", "mended"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(3);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&json["rows_read"], &json["rows_stored"]), (&12.into(), &11.into()));
    assert_eq!((&json["rows_rejected"], &json["left_out"][0]["record"]), (&1.into(), &5.into()));
    assert_eq!(json["mended"]["short_row"], 1);
    assert_eq!(json["mended"]["surplus_empty"], 1);
    assert_eq!(json["mended"]["other_delimiter"], 1);
    assert_eq!(json["mended"]["broken_bytes"], 1);
    let rows = database.value("SELECT string_agg(mended::text, ' ' ORDER BY id) FROM mended WHERE id < 7");
    assert_eq!(rows, "(1,fir,30) (2,oak,) (3,elm,20) (4,yew,10) (6,b\u{fffd}ech,40)");
}

#[test]
fn lenient_mends_a_few_records_of_a_large_file_and_sends_the_rest_as_it_is() {
    let (mut messy, mut clean) = ("id,note,part\n".to_owned(), String::new());
    for id in 0..40_000 {
        let note = format!("leaf {}", id % 91);
        let (row, mended) = match id % 4000 {
            700 => (format!("{id},{note}"), format!("{id},{note},")),
            1400 => (format!("{id},\"{note},{}", id % 7), format!("{id},\"\"\"{note}\",{}", id % 7)),
            2100 => (format!("{id},{note},{},,", id % 7), format!("{id},{note},{}", id % 7)),
            2800 => (format!("{id},{note},1,2,3,4"), String::new()),
            _ => (format!("{id},\"{note}\",{}", id % 7), format!("{id},{note},{}", id % 7)),
        };
        let _ = writeln!(messy, "{row}");
        if !mended.is_empty() {
            let _ = writeln!(clean, "{mended}");
        }
    }
    let files = Files::new();
    let sources =
        [files.put("plain.csv", messy.as_bytes()), files.put("zipped.csv.gz", &gzip(messy.as_bytes()))];
    let database = Server::shared(18).database();
    for (source, table) in sources.iter().zip(["plain", "zipped"]) {
        database.sql(&format!("CREATE TABLE {table} (id int, note text, part int)"));
        let done = load(&database)
            .args(["--lenient", "--json", "--table", table, "--chunk-size", "64kB"])
            .arg(source)
            .run(PATIENCE)
            .expect_code(3);
        let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!((&json["rows_read"], &json["rows_rejected"]), (&40_000.into(), &10.into()), "{table}");
        assert_eq!((&json["mended"]["short_row"], &json["mended"]["stray_quote"]), (&10.into(), &10.into()));
        assert_eq!(json["left_out"][1]["record"], 6801, "{table}");
    }
    database.sql("CREATE TABLE wanted (id int, note text, part int)");
    database.copy_in("COPY wanted FROM STDIN (FORMAT csv)", clean.into_bytes()).unwrap();
    assert_eq!(database.digest("plain"), database.digest("wanted"));
    assert_eq!(database.digest("zipped"), database.digest("wanted"));
}

#[test]
fn a_load_of_rewritten_records_is_killed_and_run_again() {
    let mut text = "id||note\n".to_owned();
    for id in 0..60_000 {
        let _ = writeln!(text, "{id}||note {}", id % 77);
    }
    let files = Files::new();
    let source = files.put("a.txt", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE a (id int, note text)");
    shut_gate_behind(&database, 3);
    let command = load(&database).args(["--chunk-size", "32kB", "--jobs", "1"]).arg(&source);
    let mut running = command.spawn();
    let stored = database.wait_for("SELECT count(*) FROM howdah.chunk", 3, || running.is_running());
    assert!(stored, "{}", running.stderr_so_far());
    running.kill();
    open_gate(&database);
    command.run(PATIENCE).expect_code(0);
    let found = database.value("SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || sum(id) FROM a");
    assert_eq!(found, format!("60000 60000 {}", 60_000_u64 * 59_999 / 2));
}

#[test]
fn of_two_tables_in_a_file_the_first_is_loaded_or_all_when_asked() {
    let files = Files::new();
    let source = files.put(
        "trees.csv",
        b"tree,height\nfir,30\noak,25\nelm,20\nash,28\n\nstation,lat,lon,opened\nOslo,59.9,10.7,1990-01-02\nBergen,60.4,5.3,1991-02-03\nTurku,60.5,22.3,1992-03-04\n",
    );
    let database = Server::shared(15).database();
    let done = load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
    assert!(done.stderr.contains("the first of several tables"), "{}", done.stderr);
    assert_eq!(
        database.value("SELECT string_agg(trees::text, ' ') FROM trees"),
        "(fir,30) (oak,25) (elm,20) (ash,28)"
    );
    load(&database)
        .args(["--create", "--all-tables", "--table", "all_of"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM all_of"), "4");
    assert_eq!(shape(&database, "all_of_2"), "station text, lat numeric(3,1), lon numeric(3,1), opened date");
    assert_eq!(database.value("SELECT count(*) FROM all_of_2"), "3");
}

/// Three tables, the last too long for a sample, and with a value behind it that the sample does not show.
fn three_tables() -> String {
    let mut text = "tree,height\nfir,30\noak,25\nelm,20\nash,28\n\nday,rain,wind,gusts\n2020-01-01,5,3,7\n\
        2020-01-02,0,4,6\n2020-01-03,17,5,9\n2020-01-04,1,2,8\n\nstation,lat,opened\n"
        .to_owned();
    for no in 0..20_000 {
        let _ = writeln!(text, "Å{no},{}.{},1990-01-{:02}", no % 90, no % 10, no % 28 + 1);
    }
    text + "Turku,60.125,1992-03-04\n"
}

fn utf16(text: &str) -> Vec<u8> {
    std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn all_tables_of_a_file_are_loaded_whatever_it_is_compressed_by_and_written_in() {
    let files = Files::new();
    let text = three_tables();
    let latin1: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let written = [
        ("plain.csv", text.clone().into_bytes()),
        ("gzip.csv.gz", gzip(text.as_bytes())),
        ("utf16.csv", utf16(&text)),
        ("utf16.csv.gz", gzip(&utf16(&text))),
        ("latin1.csv", latin1),
    ];
    for (name, bytes) in written {
        let source = files.put(name, &bytes);
        let database = Server::shared(15).database();
        load(&database)
            .args(["--create", "--all-tables", "--table", "t", "--chunk-size", "64kB"])
            .arg(&source)
            .run(PATIENCE)
            .expect_code(0);
        assert_eq!(
            database.value("SELECT string_agg(t::text, ' ') FROM t"),
            "(fir,30) (oak,25) (elm,20) (ash,28)"
        );
        assert_eq!(shape(&database, "t_2"), "day date, rain integer, wind integer, gusts integer", "{name}");
        assert_eq!(database.value("SELECT count(*) || ' ' || sum(rain) FROM t_2"), "4 23", "{name}");
        assert_eq!(shape(&database, "t_3"), "station text, lat numeric, opened date", "{name}");
        let stations = "SELECT count(*) || ' ' || max(station) || ' ' || min(opened) FROM t_3";
        assert_eq!(database.value(stations), "20001 Å9999 1990-01-01", "{name}");
    }
}

#[test]
fn all_tables_of_a_pipe_are_refused_and_not_loaded_in_part() {
    let database = Server::shared(15).database();
    let load = load(&database).args(["--create", "--all-tables", "--table", "t", "-"]).stdin(three_tables());
    let refused = load.run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("can be read only once"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: save it as a file"), "{}", refused.stderr);
    assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relname = 't'"), "0");
}

#[test]
fn plan_shows_what_was_found_and_the_first_rows_and_makes_nothing() {
    let files = Files::new();
    let source = files.put("a.csv", b"Height of trees\n\nTree;Height\nfir;30\noak;\n");
    let database = Server::shared(18).database();
    let told = howdah("plan")
        .args(["--to", &database.conninfo(), "--create", "--table", "trees"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(0)
        .stdout;
    for words in ["found: ", "tree text", "height int", "| fir | 30", "| oak | NULL"] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    assert_eq!(database.value("SELECT count(*) FROM pg_class WHERE relname = 'trees'"), "0");
}

/// A record with a word for its number is no second line of names, and what is left out at the ends is told,
/// also in silence.
#[test]
fn records_that_look_like_names_are_loaded_and_those_like_notes_are_told() {
    let files = Files::new();
    let numbered =
        |head: &str| head.to_owned() + &(1..=1000).map(|no| format!("p{no},{no}\n")).collect::<String>();
    let source = files.put("amounts.csv", numbered("name,amount\nann,unknown\n").as_bytes());
    for options in [&[][..], &["--header"]] {
        let database = Server::shared(15).database();
        load(&database).args(["--create"]).args(options).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT count(*) FROM amounts"), "1001", "{options:?}");
    }
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (name text, x int, y int)");
    let source = files.put("t.csv", b"name,x,y\nalpha,1,2\nbeta,3,4\ngamma,5,6\n(none),,\n");
    let told =
        load(&database).args(["--table", "t", "--quiet"]).arg(&source).run(PATIENCE).expect_code(0).stderr;
    assert!(
        told.contains("warning: ")
            && told.contains("1 line before or behind the table that could be a record"),
        "{told}"
    );
}

#[test]
fn what_types_has_told_is_not_called_unsure() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,day\n1,01/02/2024\n2,03/04/2024\n");
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE a (id int, day date)");
    let plan = || howdah("plan").args(["--to", &database.conninfo()]).arg(&source);
    let unsure = plan().run(PATIENCE).expect_code(0).stdout;
    assert!(unsure.contains("--types day=date:d/m/y or day=date:m/d/y settles it"), "{unsure}");
    let told = plan().args(["--types", "day=date:d/m/y"]).run(PATIENCE).expect_code(0).stdout;
    assert!(told.contains("day is read as d/m/y") && !told.contains("settles it"), "{told}");
}

#[test]
fn numbers_whose_comma_may_mean_either_are_to_be_told_and_not_kept_as_text() {
    let files = Files::new();
    let source = files.put("a.csv", b"n,id\n\"1,234\",1\n\"2,000\",2\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE a (n numeric, id int)");
    let refused = load(&database).arg(&source).run(PATIENCE).expect_code(1);
    assert!(refused.stderr.contains("hint: --types COLUMN=numeric:1,234.56 or"), "{}", refused.stderr);
    let told = load(&database).args(["--types", "n=numeric:1,234.56"]).arg(&source);
    told.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT sum(n) FROM a"), "3234");
}

#[test]
fn a_first_record_that_is_perhaps_no_header_is_not_shown() {
    let files = Files::new();
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE a (id int, name text); CREATE TABLE b (oslo text, x text)");
    let refused = |table: &str, bytes: &[u8], options: &[&str]| {
        let load = load(&database).args(["--table", table]).args(options).arg(files.put("a.csv", bytes));
        load.run(PATIENCE).expect_code(1).stderr
    };
    let told = refused("a", b"17,secret one\n18,secret two\n", &["--format", "csv", "--header"]);
    assert!(told.contains("none of the 2 fields of the header is a column of public.a"), "{told}");
    assert!(told.contains("hint: if the first record is data, say --header=false"), "{told}");
    assert!(!told.contains("secret") && !told.contains("17"), "{told}");
    let told = refused("a", b"id,secret one\n18,secret two\n", &["--format", "csv", "--header=match"]);
    assert!(told.contains("expected id, name, got 2 fields with other names in field 2"), "{told}");
    // Nothing but text: the first record may be either, though one of its words is the name of a column.
    let told = refused("b", b"oslo,secret one\nrome,secret two\nbern,secret three\n", &[]);
    assert!(told.contains("public.b has no column for: field 2") && !told.contains("secret"), "{told}");
}

/// Where fields are told by position, no header is needed, and a record must not be lost for one.
#[test]
fn a_first_record_that_may_be_data_is_data_where_columns_are_given() {
    let files = Files::new();
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE t (v text, w text)");
    for (text, rows) in [
        ("x,y\n", "(x,y)"),
        ("x,y\nz,k\n", "(x,y) (z,k)"),
        ("V,other\nz,k\n", "(z,k)"),
        ("id,name\n1,ann\n2,bob\n", "(1,ann) (2,bob)"),
        (
            "root,admin\nbob,member\ncarol,member\ndave,member\nerin,member\n",
            "(bob,member) (carol,member) (dave,member) (erin,member) (root,admin)",
        ),
        (
            "user_name,role\nbob,admin\ncarol,member\ndave,member\n",
            "(bob,admin) (carol,member) (dave,member)",
        ),
    ] {
        database.sql("TRUNCATE t");
        let load = load(&database).args(["--table", "t", "--columns", "v,w"]);
        load.arg(files.put("a.csv", text.as_bytes())).run(PATIENCE).expect_code(0);
        assert_eq!(database.value("SELECT string_agg(t::text, ' ' ORDER BY v) FROM t"), rows, "{text}");
    }
}

/// `split` leaves the header to the first piece.
#[test]
fn pieces_of_a_file_whose_first_has_the_header_fill_no_other_columns() {
    let files = Files::new();
    let pieces = [files.put("a.csv", b"id,price\n1,10\n2,20\n"), files.put("b.csv", b"3,30\n4,40\n")];
    let database = Server::shared(15).database();
    let load = |options: &[&str]| {
        let load = load(&database).args(["--table", "t"]).args(options.iter().copied());
        pieces.iter().fold(load, HowdahCommand::arg).run(PATIENCE)
    };
    let refused = load(&["--create"]).expect_code(1).stderr;
    assert!(
        refused.contains("b.csv") && refused.contains("has no header") && refused.contains("--columns"),
        "{refused}"
    );
    database.sql("CREATE TABLE t (price int, id int)");
    assert!(load(&[]).expect_code(1).stderr.contains("has no header"));
    let rows = "SELECT string_agg(id || '=' || price, ' ' ORDER BY id) FROM t";
    load(&["--columns", "id,price"]).expect_code(0);
    assert_eq!(database.value(rows), "1=10 2=20 3=30 4=40");
    // In the table's own order they mean the same.
    database.sql("DROP TABLE t; DROP SCHEMA howdah CASCADE; CREATE TABLE t (id int, price int)");
    load(&[]).expect_code(0);
    assert_eq!(database.value(rows), "1=10 2=20 3=30 4=40");
}

#[test]
fn columns_whose_names_hold_commas_and_quotes_can_be_named() {
    let files = Files::new();
    let source = files.put("t.csv", b"7;8\n9;10\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (\"a,b\" int, \"say \"\"x\"\"\" int)");
    let columns = ["--header=false", "--columns", "\"say \"\"x\"\"\",\"a,b\""];
    load(&database).args(columns).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(t::text, ' ' ORDER BY t) FROM t"), "(8,7) (10,9)");
}

#[test]
fn options_that_end_the_finding_or_escape_otherwise_are_told() {
    let files = Files::new();
    let source = files.put("t.csv", b"a;b\n1;NULL\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (\"a;b\" text)");
    let refused = load(&database).args(["--escape", "!"]).arg(&source).run(PATIENCE).expect_code(2).stderr;
    assert!(refused.contains("--escape: without --format") && refused.contains("--format csv"), "{refused}");
    for verb in ["plan", "load"] {
        let told =
            howdah(verb).args(["--to", &database.conninfo(), "--header=match", "--table", "t"]).arg(&source);
        let told = told.run(PATIENCE).expect_code(0).stderr;
        assert!(told.contains("nothing is found from the data beside --header=match"), "{told}");
    }
    assert_eq!(database.value("SELECT t::text FROM t"), "(1;NULL)");
}

#[test]
fn documents_are_no_tables_and_lines_of_json_load_into_one_column() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (doc jsonb)");
    let lines = b"{\"a\": \"x, \\\"y\\\"\"}\n{\"a\": null, \"b\": [1]}\n";
    let source = files.put("t.json", lines);
    let to_t = || load(&database).args(["--table", "t"]);
    let refused = to_t().arg(&source).run(PATIENCE).expect_code(1).stderr;
    let make = howdah("load").args(["--to", &database.conninfo(), "--table", "u", "--create"]).arg(&source);
    for words in ["t.json: the file looks like lines of JSON", "hint: to load each line into one column"] {
        assert!(refused.contains(words), "{words}\n{refused}");
    }
    let make = make.run(PATIENCE).expect_code(1).stderr;
    assert!(make.contains("make the table first") && make.contains("without --create"), "{make}");
    let hinted = ["--format", "csv", "--delimiter", "\\x02", "--quote", "\\x01", "--columns", "doc"];
    to_t().args(hinted).arg(&source).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT string_agg(doc->>'a', '|') || max(doc->>'b') FROM t"), "x, \"y\"[1]");
    database.sql("TRUNCATE t");
    let with_header = files.put("t.csv", b"doc\n\"{\"\"a\"\": 1, \"\"b\"\": 2}\"\n\"{\"\"a\"\": 3}\"\n");
    to_t().arg(&with_header).run(PATIENCE).expect_code(0);
    let text = files.put("t.txt", b"{\"a\": 1}\n{\"a\": 2}\n");
    to_t().args(["--format", "text"]).arg(&text).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "4");
    let zipped = gzip(b"-- PostgreSQL database dump\n\nSET x = 0;\nCOPY t (doc) FROM stdin;\n{}\n\\.\n");
    let dump = files.put("t.sql.gz", &zipped);
    let refused = to_t().arg(&dump).run(PATIENCE).expect_code(1).stderr;
    assert!(refused.contains("looks like an SQL script") && refused.contains("psql -f"), "{refused}");
}

#[test]
fn json_with_a_key_twice_keeps_both() {
    let files = Files::new();
    let twice = "{\"a\": 1, \"a\": 2}";
    let source = files.put("j.csv", b"id,doc\n1,\"{\"\"a\"\": 1, \"\"a\"\": 2}\"\n2,\"{\"\"b\"\": 1}\"\n");
    let database = Server::shared(15).database();
    for _ in 0..2 {
        load(&database).args(["--create", "--force"]).arg(&source).run(PATIENCE).expect_code(0);
    }
    assert_eq!(shape(&database, "j"), "id integer, doc json");
    assert_eq!(
        database.value("SELECT string_agg(doc::text, '|') FROM j WHERE id = 1"),
        format!("{twice}|{twice}")
    );
}

#[test]
fn an_address_among_plain_integers_is_no_amount() {
    let files = Files::new();
    let integers: String = (1000..1040).map(|ver| format!("1,{ver}\n")).collect();
    for odd in ["10.160.130.149", "1.234.567"] {
        let source = files.put("m.csv", format!("id,ver\n{integers}8,{odd}\n").as_bytes());
        let database = Server::shared(15).database();
        database.sql("CREATE TABLE z (id int, ver bigint)");
        let refused = load(&database).args(["-t", "z"]).arg(&source).run(PATIENCE).expect_code(1);
        assert!(refused.stderr.contains("column ver"), "{}", refused.stderr);
        assert_eq!(database.value("SELECT count(*) FROM z"), "0");
        load(&database).args(["--create", "-t", "made"]).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, "made"), "id integer, ver text");
        assert_eq!(database.value("SELECT ver FROM made WHERE id = 8"), odd);
    }
}

#[test]
fn a_quoted_empty_field_that_is_no_integer_has_a_hint() {
    let files = Files::new();
    let source = files.put("q.csv", b"\"a\",\"b\"\n\"1\",\"x\"\n\"\",\"y\"\n");
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE q (a int, b text)");
    for format in [&[][..], &["--format", "csv", "--header"]] {
        let load = load(&database).args(["-t", "q"]).args(format.iter().copied()).arg(&source);
        let refused = load.run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("22P02") && refused.contains("with --force-null a, or '*'"), "{refused}");
    }
    let load =
        load(&database).args(["-t", "q", "--format", "csv", "--header", "--force-null", "a"]).arg(&source);
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM q WHERE a IS NULL"), "1");
}
