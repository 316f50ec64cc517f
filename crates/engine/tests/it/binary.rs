//! Records that are sent in COPY's binary format: when they are, what arrives, and what is said when they are
//! not.

use crate::rig::{MIB, Place, job};
use howdah_engine::model::{EncodeChoice, ErrorKind, Format, Header, Jobs, Told};
use howdah_testkit::MAJORS;
use howdah_testkit::compress::gzip;

/// Notes how each row came.
const WATCH: &str =
    "CREATE TABLE t (a int, b numeric(9,2), c date, d timestamp, e boolean); CREATE TABLE came (by text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO came VALUES (substring(current_query() from 'FORMAT \\w+')); RETURN new; END $$;
    CREATE TRIGGER note BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();";

const ROW: &str = "7,-12.345,2024-02-29,2024-02-29 23:59:59.5,t\n";
const STORED: &str = "7|-12.35|2024-02-29|2024-02-29 23:59:59.5|t";

#[test]
fn typed_columns_arrive_in_binary_whatever_the_file_is_stored_in() {
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql(WATCH);
        let text = format!("{}8,,\"2024-01-01\",2024-01-01 00:00:00,f\n", ROW.repeat(500));
        for file in [place.file("a.csv", &text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
            for chunk_bytes in [100, MIB] {
                let mut job = job(&[&file], "t", Format::csv());
                job.chunk_bytes = Some(chunk_bytes);
                let loaded = place.loader.load(job);
                assert_eq!(loaded.rows(), 501);
                let rows = place.select("SELECT DISTINCT a, b, c, d, e FROM t ORDER BY a");
                assert_eq!(rows, [STORED, "8|-|2024-01-01|2024-01-01 00:00:00|f"]);
                assert_eq!(place.select("SELECT DISTINCT by FROM came"), ["FORMAT binary"]);
                let table = &loaded.plan.unwrap().tables[0];
                assert!(table.notes.iter().any(|note| note.contains("binary")), "{:?}", table.notes);
                place.database.sql("TRUNCATE t, came");
            }
        }
    }
}

#[test]
fn a_chunk_with_a_value_that_only_the_server_can_read_goes_as_text() {
    let place = Place::new(15);
    place.database.sql(WATCH);
    // Beyond what a plan looks at.
    let good = ROW.repeat(3000);
    let file = place.file("a.csv", format!("{good}7,-12.345,29 Feb 2024,2024-02-29 23:59:59.5,t\n{ROW}"));
    let mut job = job(&[&file], "t", Format::csv());
    (job.chunk_bytes, job.jobs) = (Some(good.len() as u64), Jobs::Fixed(1));
    assert_eq!(place.loader.load(job).rows(), 3002);
    assert_eq!(place.select("SELECT DISTINCT a, b, c, d, e FROM t"), [STORED]);
    let came = place.select("SELECT by, count(*) FROM came GROUP BY by ORDER BY by");
    assert_eq!(came, ["FORMAT binary|3000", "FORMAT text|2"]);
}

#[test]
fn a_refused_record_is_told_in_the_words_and_lines_of_the_file() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b numeric(4,2), c date CHECK (c < '2030-01-01'))");
    let good = "1,2.5,2024-02-29\n".repeat(50);
    for (bad, column, message) in [
        ("two,2.5,2024-02-29\n", Some("a"), "invalid input syntax for type integer"),
        ("2,200.5,2024-02-29\n", Some("b"), "numeric field overflow"),
        ("2,2.5,2030-02-28\n", None, "violates check constraint"),
        ("2,2.5\n", None, "missing data for column \"c\""),
    ] {
        let file = place.file("a.csv", format!("{good}{bad}{good}"));
        for chunk_bytes in [64, MIB] {
            let mut job = job(&[&file], "t", Format::csv());
            job.chunk_bytes = Some(chunk_bytes);
            let error = place.loader.load(job).refusal(ErrorKind::Server);
            assert_eq!(
                (error.place().record, error.place().byte),
                (Some(51), Some(good.len() as u64)),
                "{error}"
            );
            assert_eq!(error.place().column.as_deref(), column, "{error}");
            assert!(error.message().contains(message), "{error}");
        }
        place.database.sql("TRUNCATE t");
    }
}

#[test]
fn a_column_whose_type_changes_under_the_load_gets_its_values_all_the_same() {
    let place = Place::new(15);
    for (to, stored) in [("double precision", "5"), ("numeric", "5"), ("text", "5")] {
        place.database.sql("DROP TABLE IF EXISTS t; CREATE TABLE t (a bigint, b date)");
        let file = place.file("a.csv", "5,2024-01-01\n".repeat(100));
        let mut job = job(&[&file], "t", Format::csv());
        job.encode = EncodeChoice::Binary;
        let loaded = place.loader.load_after(job, |plan| {
            assert!(plan.tables[0].binary.is_some());
            place.database.sql(&format!("ALTER TABLE t ALTER COLUMN a TYPE {to}"));
        });
        assert_eq!(loaded.rows(), 100);
        assert_eq!(place.select("SELECT DISTINCT a FROM t"), [stored], "{to}");
    }
}

#[test]
fn the_choice_can_be_taken_away_and_follows_the_types_otherwise() {
    let place = Place::new(15);
    place.database.sql(WATCH);
    place.database.sql("CREATE TABLE words (a text, b text); CREATE TABLE odd (a int, b point)");
    let typed = place.file("typed.csv", ROW);
    for (encode, by) in [
        (EncodeChoice::Csv, "FORMAT csv"),
        (EncodeChoice::Text, "FORMAT text"),
        (EncodeChoice::Binary, "FORMAT binary"),
        (EncodeChoice::Auto, "FORMAT binary"),
    ] {
        let mut job = job(&[&typed], "t", Format::csv());
        job.encode = encode;
        assert_eq!(place.loader.load(job).rows(), 1);
        assert_eq!(place.select("SELECT by FROM came"), [by], "{encode:?}");
        place.database.sql("TRUNCATE came");
    }
    let words = place.file("words.csv", "a,\"b\"\n");
    let odd = place.file("odd.csv", "1,\"(1,2)\"\n");
    let is_binary = |file: &str, table: &str, encode| {
        let mut job = job(&[file], table, Format::csv());
        job.encode = encode;
        let loaded = place.loader.load(job);
        assert_eq!(loaded.rows(), 1);
        loaded.plan.unwrap().tables.swap_remove(0)
    };
    assert!(is_binary(&words, "words", EncodeChoice::Auto).binary.is_none());
    assert!(is_binary(&words, "words", EncodeChoice::Binary).binary.is_some());
    let plan = is_binary(&odd, "odd", EncodeChoice::Binary);
    assert!(plan.binary.is_none());
    assert!(plan.notes.iter().any(|note| note.contains("the values of b can be read")), "{:?}", plan.notes);
}

#[test]
fn types_made_of_others_are_known_by_what_they_are_made_of() {
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql(
            "CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN small AS positive CHECK (VALUE < 100);
             CREATE TYPE mood AS ENUM ('so so', 'fine'); CREATE DOMAIN certain AS mood NOT NULL;
             CREATE TABLE t (a small, b mood, c timestamptz, d small[], e int4range, f certain, g mood[])",
        );
        let binary = |file: &str| {
            let mut job = job(&[file], "t", Format::csv());
            job.encode = EncodeChoice::Binary;
            place.loader.load(job)
        };
        let good =
            "7,so so,2024-01-01 00:00:00+02,\"{1,NULL,3}\",\"[1,5]\",fine,\"{fine,\"\"so so\"\",NULL}\"\n";
        let good = binary(&place.file("good.csv", good));
        assert_eq!(good.rows(), 1);
        assert!(good.plan.unwrap().tables[0].binary.is_some(), "{major}");
        assert_eq!(
            place.select("SELECT a, b, c AT TIME ZONE 'UTC', d, e, f, g::text FROM t"),
            ["7|so so|2023-12-31 22:00:00|{1,NULL,3}|[1,6)|fine|{fine,\"so so\",NULL}"]
        );
        for (bad, message) in [
            ("700,fine,,,,fine,\n", "value for domain small violates check constraint"),
            ("7,bad,,,,fine,\n", "invalid input value for enum mood"),
            ("7,,,,,,\n", "domain certain does not allow null values"),
            ("7,,,,,fine,{bad}\n", "invalid input value for enum mood"),
        ] {
            let error = binary(&place.file("bad.csv", bad)).refusal(ErrorKind::Server);
            assert!(error.message().contains(message), "{major}: {error}");
        }
    }
}

#[test]
fn fields_that_are_left_out_do_not_keep_the_others_from_binary() {
    let with_header = Format { header: Header::Names, ..Format::csv() };
    let row = "7,\"left\nout, \"\"x\"\"\",-12.345,2024-02-29,2024-02-29 23:59:59.5,t\n";
    let text = format!("a,other,b,c,d,e\n{}", row.repeat(500));
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql(WATCH);
        for file in [place.file("a.csv", &text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
            // As the options say, and as the data shows.
            for (told, chunk_bytes) in [(None, 200), (None, MIB), (Some(Told::default()), MIB)] {
                let mut job = job(&[&file], "t", with_header.clone());
                (job.ignore_extra, job.chunk_bytes, job.shaping.told) = (true, Some(chunk_bytes), told);
                let loaded = place.loader.load(job);
                assert_eq!(loaded.rows(), 500);
                assert_eq!(place.select("SELECT DISTINCT a, b, c, d, e FROM t"), [STORED]);
                assert_eq!(place.select("SELECT DISTINCT by FROM came"), ["FORMAT binary"]);
                let notes = &loaded.plan.unwrap().tables[0].notes;
                assert!(notes.iter().any(|note| note.contains("else as COPY text")), "{notes:?}");
                place.database.sql("TRUNCATE t, came");
            }
        }
    }
}

#[test]
fn a_refused_record_without_some_fields_is_told_by_its_place_in_the_file() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b numeric(4,2), c date)");
    let good = "1,left out,2.5,2024-02-29\n".repeat(50);
    let head = "a,other,b,c\n";
    for (bad, column) in [("two,,2.5,2024-02-29\n", "a"), ("2,,200.5,2024-02-29\n", "b")] {
        let file = place.file("a.csv", format!("{head}{good}{bad}{good}"));
        for chunk_bytes in [64, MIB] {
            let mut job = job(&[&file], "t", Format { header: Header::Names, ..Format::csv() });
            (job.ignore_extra, job.chunk_bytes) = (true, Some(chunk_bytes));
            let error = place.loader.load(job).refusal(ErrorKind::Server);
            let byte = (head.len() + good.len()) as u64;
            assert_eq!((error.place().record, error.place().byte), (Some(51), Some(byte)), "{error}");
            assert_eq!(error.place().column.as_deref(), Some(column), "{error}");
        }
        place.database.sql("TRUNCATE t");
    }
}

#[test]
fn words_whose_case_does_not_count_arrive_in_binary_alone_and_in_arrays() {
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql(
            "CREATE EXTENSION citext; CREATE DOMAIN mail AS citext; CREATE TABLE t (a citext, b citext[], c mail, d mail[])",
        );
        let file = place.file("a.csv", "Aa,\"{Bb,NULL,\"\"C c\"\"}\",D@e,{}\n".repeat(20));
        let mut job = job(&[&file], "t", Format::csv());
        job.encode = EncodeChoice::Binary;
        let loaded = place.loader.load(job);
        assert_eq!(loaded.rows(), 20);
        assert!(loaded.plan.unwrap().tables[0].binary.is_some(), "{major}");
        assert_eq!(
            place.select("SELECT DISTINCT a, b::text, c, d::text FROM t"),
            ["Aa|{Bb,NULL,\"C c\"}|D@e|{}"]
        );
        assert_eq!(place.select("SELECT count(*) FROM t WHERE a = 'aA' AND 'bB' = ANY (b)"), ["20"]);
    }
}

#[test]
fn shapes_arrive_in_binary_unasked_as_words_and_as_digits() {
    let place = Place::new(15);
    if !place.database.has_extension("postgis") {
        return;
    }
    place.database.sql("CREATE TABLE t (a geometry(Point, 4326), b geography)");
    let of = |digits: bool| {
        let one = "000000000000f03f0000000000000040";
        let values = ["SRID=4326;POINT(1 2)".to_owned(), format!("0101000020e6100000{one}")];
        format!("{},{}\n", values[usize::from(digits)], values[usize::from(!digits)]).repeat(500)
    };
    let file = place.file("a.csv", format!("{}{}", of(true), of(false)));
    let loaded = place.loader.load(job(&[&file], "t", Format::csv()));
    assert_eq!(loaded.rows(), 1000);
    let table = &loaded.plan.unwrap().tables[0];
    assert!(table.binary.is_some(), "{:?}", table.notes);
    let rows = place.select("SELECT DISTINCT ST_AsEWKT(a), ST_AsEWKT(b) FROM t");
    assert_eq!(rows, ["SRID=4326;POINT(1 2)|SRID=4326;POINT(1 2)"]);
    place.database.sql("CREATE TABLE arrays (a geometry(Point, 4326)[], b geography[])");
    let record = "{SRID=4326;POINT(1 2):NULL},\"{LINESTRING(1 2,3 4):\"\"POINT(1 2)\"\"}\"\n";
    let file = place.file("arrays.csv", record.repeat(1000));
    // Nothing is taken to be gained by these.
    let mut arrays = job(&[&file], "arrays", Format::csv());
    arrays.encode = EncodeChoice::Binary;
    let loaded = place.loader.load(arrays);
    assert_eq!(loaded.rows(), 1000);
    let table = &loaded.plan.unwrap().tables[0];
    assert!(table.binary.is_some(), "{:?}", table.notes);
    let rows = place.select(
        "SELECT DISTINCT ST_AsText(a[1]), a[2] IS NULL, ST_AsText(b[1]), ST_AsText(b[2]) FROM arrays",
    );
    assert_eq!(rows, ["POINT(1 2)|t|LINESTRING(1 2,3 4)|POINT(1 2)"]);
    // What only the server reads still arrives.
    let file = place.file("b.csv", "SRID=4326;POINT EMPTY,POINT EMPTY\n");
    assert_eq!(place.loader.load(job(&[&file], "t", Format::csv())).rows(), 1);
}

#[test]
fn a_session_with_unusual_settings_is_sent_no_binary() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int[], b timestamptz)");
    let name = place.database.name();
    place.database.sql(&format!("ALTER DATABASE {name} SET array_nulls = off"));
    let file = place.file("a.csv", "\"{1,2}\",2024-01-01 00:00:00Z\n");
    let mut job = job(&[&file], "t", Format::csv());
    job.encode = EncodeChoice::Binary;
    let loaded = place.loader.load(job);
    assert_eq!(loaded.rows(), 1);
    let table = &loaded.plan.unwrap().tables[0];
    assert!(table.binary.is_none());
    assert!(table.notes.iter().any(|note| note.contains("settings")), "{:?}", table.notes);
}
