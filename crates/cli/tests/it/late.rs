//! A table made from a sample ends as if all values had been seen first, and holds what COPY would have
//! stored.
//!
//! `HOWDAH_LATE_TABLES` sets the number of random tables (1,000 in the nightly run), `HOWDAH_LATE_SEED` the
//! first.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use fastrand::Rng;
use howdah_testkit::{Database, Server};
use std::fmt::Write as _;

const TABLES_DEFAULT: u64 = 12;
/// More than the sample of a pipe holds.
const BYTES_MIN: usize = 400 << 10;

/// What the values of a column look like, all but one.
#[derive(Clone, Copy)]
enum Kind {
    Small,
    Large,
    Decimal,
    Day,
    Moment,
    Truth,
    Uuid,
    Word,
}

const KINDS: [Kind; 8] =
    [Kind::Small, Kind::Large, Kind::Decimal, Kind::Day, Kind::Moment, Kind::Truth, Kind::Uuid, Kind::Word];

/// Values that some of the kinds cannot hold, or would change.
const SURPRISES: [&str; 14] = [
    "007",
    "+5",
    "-0",
    "3000000000",
    "12345678901234567890123",
    "1.5",
    "1e3",
    "x17",
    "2024-02-30",
    "2024-02-29",
    "2024-02-29 10:11:12.5",
    "31/01/2024",
    "{\"a\": 1}",
    "yes",
];

fn value(kind: Kind, random: &mut Rng) -> String {
    match kind {
        Kind::Small => random.i32(-5000..5000).to_string(),
        Kind::Large => random.i64(..).to_string(),
        Kind::Decimal => format!("{}.{:02}", random.u16(..), random.u8(..100)),
        Kind::Day => format!("20{:02}-{:02}-{:02}", random.u8(..99), random.u8(1..13), random.u8(1..29)),
        Kind::Moment => format!("2021-03-{:02} {:02}:15:00", random.u8(1..29), random.u8(..24)),
        Kind::Truth => random.bool().to_string(),
        Kind::Uuid => format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            random.u32(..),
            random.u16(..),
            random.u16(..4096),
            random.u16(..4096),
            random.u64(..1 << 48)
        ),
        Kind::Word => format!("word {}", random.u32(..)),
    }
}

/// Rows of a random table, and the one with a surprise in every second column.
fn table(random: &mut Rng) -> (String, Vec<String>, String) {
    let kinds: Vec<Kind> = (0..random.usize(2..6)).map(|_| KINDS[random.usize(..KINDS.len())]).collect();
    let names: Vec<String> = (0..kinds.len()).map(|no| format!("c{no}")).collect();
    let mut rows = Vec::new();
    let mut bytes = 0;
    while bytes < BYTES_MIN {
        let cell = |kind: &Kind| match random.u8(..12) {
            0 => String::new(),
            _ => value(*kind, random),
        };
        let row = kinds.iter().map(cell).collect::<Vec<String>>().join(",");
        bytes += row.len() + 1;
        rows.push(row);
    }
    let surprise = |(no, kind): (usize, &Kind)| match no % 2 {
        0 => SURPRISES[random.usize(..SURPRISES.len())].replace('"', "\"\""),
        _ => value(*kind, random),
    };
    let odd = kinds.iter().enumerate().map(surprise).map(|value| format!("\"{value}\""));
    let odd = odd.collect::<Vec<String>>().join(",");
    (names.join(","), rows, odd)
}

fn load_rows<'a>(
    database: &Database,
    table: &str,
    header: &str,
    rows: impl Iterator<Item = &'a String>,
) -> String {
    let mut text = format!("{header}\n");
    for row in rows {
        let _ = writeln!(text, "{row}");
    }
    load(database)
        .args(["--create", "--header", "--null", "", "--chunk-size", "64kB", "--table", table, "-"])
        .stdin(text.clone())
        .run(PATIENCE)
        .expect_code(0);
    text
}

#[test]
fn a_value_in_another_spelling_than_the_sample_proved_is_never_stored_as_something_else() {
    let mut text = "id;price;d\n".to_owned();
    for id in 0..30_000 {
        let _ = match id {
            10_000 => writeln!(text, "{id};1.234;25/01/2024"),
            10_001 => writeln!(text, "{id};1,5;01/31/2024"),
            10_002 => writeln!(text, "{id};NaN;2024-01-31"),
            _ => writeln!(text, "{id};{},05;{:02}/01/2024", id % 90, id % 28 + 1),
        };
    }
    let files = Files::new();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, price numeric, d date)");
    let refused = load(&database).arg(&source).run(PATIENCE).expect_code(1);
    let byte = text.find("10000;1.234").unwrap();
    for words in [&format!("record 10001, byte {byte}, column price: "), "like 1234,56", "hint: --types"] {
        assert!(refused.stderr.contains(words), "{words}\n{}", refused.stderr);
    }
    database.sql("TRUNCATE t");
    let done = load(&database).args(["--lenient", "--force"]).arg(&source).run(PATIENCE).expect_code(3);
    assert!(done.stderr.contains("record 10002") && done.stderr.contains("column d: "), "{}", done.stderr);
    assert_eq!(database.value("SELECT count(*) FROM t"), "29998");
    assert_eq!(database.value("SELECT t::text FROM t WHERE id = 10002"), "(10002,NaN,2024-01-31)");
}

#[test]
fn a_late_surprise_gives_the_types_that_an_early_one_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let tables = number("HOWDAH_LATE_TABLES").unwrap_or(TABLES_DEFAULT);
    let first = number("HOWDAH_LATE_SEED").unwrap_or(0);
    let database = Server::shared(15).database();
    for seed in first..first + tables {
        let mut random = Rng::with_seed(seed);
        let (header, rows, odd) = table(&mut random);
        let at = rows.len() - 1 - random.usize(..rows.len() / 10);
        let late = rows[..at].iter().chain([&odd]).chain(&rows[at..]);
        let text = load_rows(&database, "late", &header, late);
        // Right behind the header it would be taken for a second line of it.
        let early = rows[..5].iter().chain([&odd]).chain(&rows[5..]);
        load_rows(&database, "early", &header, early);
        assert_eq!(shape(&database, "late"), shape(&database, "early"), "seed {seed}");
        assert_eq!(database.digest("late"), database.digest("early"), "seed {seed}");
        database.sql("CREATE TABLE wanted (LIKE late)");
        database.copy_in("COPY wanted FROM STDIN (FORMAT csv, HEADER true)", text.into_bytes()).unwrap();
        assert_eq!(database.digest("late"), database.digest("wanted"), "seed {seed}");
        database.sql("DROP TABLE late, early, wanted; DROP SCHEMA howdah CASCADE");
    }
}

/// Each column has a spelling of its own, which what others store there need not have.
#[test]
fn what_others_store_in_a_column_that_is_widened_stays_what_it_is() {
    let mut text = "id,at,clock,exact,day,host,zoned\n".to_owned();
    for id in 10_000..20_000 {
        let _ = match id {
            19_000 => writeln!(text, "{id},unknown,unknown,unknown,unknown,unknown,unknown"),
            _ => writeln!(
                text,
                "{id},2024-01-31 10:00,10:00,2024-01-31 10:00:00.100,2024/01/31,10.0.0.1,2024-01-31T10:00Z"
            ),
        };
    }
    for version in [13, 18] {
        let database = Server::shared(version).database();
        database.sql(
        "CREATE FUNCTION store() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'public.t') THEN \
             INSERT INTO t VALUES \
                 (1, '2024-02-01 10:00:05.5', '10:00:05', '2024-02-01 10:00:00.123456', '0044-03-15 BC', '10.0.0.0/8', \
                  '2024-02-01 10:00:07+00'), \
                 (2, '-infinity', '24:00', 'infinity', '-infinity', '10.0.0.2', '-infinity'), \
                 (3, '2024-02-01 10:00', '10:30', '2024-02-01 10:00:00.2', '2024-02-01', '10.0.0.3', '2024-02-01 10:00+00'), \
                 (4, '12024-02-01 10:00', NULL, '0044-03-15 10:00 BC', NULL, NULL, '112024-02-01 10:00+00'); \
             END IF; END $$; \
         CREATE EVENT TRIGGER store ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION store()",
    );
        let load = load(&database)
            .args(["--create", "--chunk-size", "64kB", "--table", "t", "-"])
            .stdin(text.clone());
        load.run(PATIENCE).expect_code(0);
        assert_eq!(
            shape(&database, "t"),
            "id integer, at text, clock text, exact text, day text, host text, zoned text"
        );
        let row = |id: u32| {
            database.value(&format!(
                "SELECT concat_ws('|', id, at, clock, exact, day, host, zoned) FROM t WHERE id = {id}"
            ))
        };
        let zoned = database.value(
        "SELECT '2024-02-01 10:00:07+00'::timestamptz::text || '|' || '112024-02-01 10:00+00'::timestamptz",
    );
        let (first, last) = zoned.split_once('|').unwrap();
        for (id, expected) in [
            (
                1,
                format!(
                    "1|2024-02-01 10:00:05.5|10:00:05|2024-02-01 10:00:00.123456|0044-03-15 BC|10.0.0.0/8|{first}"
                ),
            ),
            (2, "2|-infinity|24:00|infinity|-infinity|10.0.0.2|-infinity".to_owned()),
            (
                3,
                "3|2024-02-01 10:00|10:30|2024-02-01 10:00:00.200|2024/02/01|10.0.0.3|2024-02-01T10:00Z"
                    .to_owned(),
            ),
            (4, format!("4|12024-02-01 10:00:00|0044-03-15 10:00:00 BC|{last}")),
            (
                10_000,
                "10000|2024-01-31 10:00|10:00|2024-01-31 10:00:00.100|2024/01/31|10.0.0.1|2024-01-31T10:00Z"
                    .to_owned(),
            ),
        ] {
            assert_eq!(row(id), expected, "{version}");
        }
    }
}

#[test]
fn a_run_that_goes_on_keeps_how_values_are_spelled_in_a_column_that_was_widened() {
    let text = |broken: &str, late: &str| {
        let mut text = "id,code\n".to_owned();
        for id in 0..100_000 {
            let _ = match id {
                40_000 => writeln!(text, "{id},1.5"),
                50_000 => writeln!(text, "{id},{broken}"),
                95_000 => writeln!(text, "{id},{late}"),
                _ => writeln!(text, "{id},{}", id + 100),
            };
        }
        text
    };
    let database = Server::shared(15).database();
    let options = ["--create", "--chunk-size", "64kB", "--job-id", "j", "--table", "t", "-"];
    let load = |broken, late| load(&database).args(options).stdin(text(broken, late)).run(PATIENCE);
    load("1,2", "7").expect_code(1);
    assert_eq!(shape(&database, "t"), "id integer, code numeric");
    load("1.2", "007").expect_code(0);
    assert_eq!(shape(&database, "t"), "id integer, code text");
    let stored = "SELECT string_agg(code, ' ' ORDER BY id) FROM t WHERE id IN (3, 40000, 95000)";
    assert_eq!(database.value(stored), "103 1.5 007");
}

#[test]
fn a_word_for_null_among_numbers_is_a_value_among_text_that_it_was_not_seen_in() {
    let mut text = "id,country,score\n".to_owned();
    for id in 0..40_000 {
        let score = if id % 7 == 0 { "NA".to_owned() } else { (id % 100).to_string() };
        let _ = match id {
            10_000 => writeln!(text, "{id},NA,12"),
            30_001 => writeln!(text, "{id},DE,"),
            _ => writeln!(text, "{id},DE,{score}"),
        };
    }
    let files = Files::new();
    let source = files.put("t.csv", text.as_bytes());
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, country text, score int)");
    load(&database).args(["--table", "t"]).arg(&source).run(PATIENCE).expect_code(0);
    let rows = "SELECT string_agg(t::text, ' ' ORDER BY id) FROM t WHERE id IN (7, 10000, 30001)";
    assert_eq!(database.value(rows), "(7,DE,) (10000,NA,12) (30001,DE,)");
}
