//! csv that is sent as COPY text: what arrives, what is said of it, and when it is not.

use crate::rig::{MIB, Place, job};
use howdah_engine::model::{EncodeChoice, ErrorKind, Format, Jobs};
use howdah_testkit::MAJORS;
use howdah_testkit::compress::gzip;

/// Notes how each row came.
const WATCH: &str = "CREATE TABLE t (a int, b text); CREATE TABLE came (a int, by text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO came VALUES (new.a, substring(current_query() from 'FORMAT \\w+')); RETURN new; END $$;
    CREATE TRIGGER note BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();";

fn backslash_n() -> Format {
    Format { null: "\\N".to_owned(), ..Format::csv() }
}

#[test]
fn the_server_reads_text_and_stores_what_the_csv_says() {
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql(WATCH);
        let text = "1,\"a, \"\"b\"\"\"\r\n2,\"c\r\nd\"\r\n3,\\N\r\n4,\"\\N\"\r\n5,C:\\new\r\n6,\"\"\r\n";
        let expected = ["1|a, \"b\"", "2|c\r\nd", "3|-", "4|\\N", "5|C:\\new", "6|"];
        for file in [place.file("a.csv", text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
            for chunk_bytes in [7, MIB] {
                let mut job = job(&[&file], "t", backslash_n());
                (job.chunk_bytes, job.encode) = (Some(chunk_bytes), EncodeChoice::Text);
                let loaded = place.loader.load(job);
                assert_eq!(loaded.rows(), 6);
                assert_eq!(place.select("SELECT a, b FROM t ORDER BY a"), expected);
                assert_eq!(place.select("SELECT DISTINCT by FROM came"), ["FORMAT text"]);
                let table = &loaded.plan.unwrap().tables[0];
                assert!(
                    table.notes.iter().any(|note| note.contains("sent as COPY text")),
                    "{:?}",
                    table.notes
                );
                place.database.sql("TRUNCATE t, came");
            }
        }
    }
}

#[test]
fn chunks_that_text_has_no_words_for_go_as_csv() {
    let place = Place::new(15);
    place.database.sql(WATCH);
    // With this NULL the quotes of the last record say that it is none.
    let file = place.file("a.csv", "1,\"b\"\n2222,\n3,\"\"\n");
    let mut job = job(&[&file], "t", Format::csv());
    (job.chunk_bytes, job.jobs, job.encode) = (Some(6), Jobs::Fixed(1), EncodeChoice::Text);
    assert_eq!(place.loader.load(job).rows(), 3);
    assert_eq!(place.select("SELECT a, b FROM t ORDER BY a"), ["1|b", "3|", "2222|-"]);
    assert_eq!(
        place.select("SELECT a, by FROM came ORDER BY a"),
        ["1|FORMAT text", "3|FORMAT csv", "2222|FORMAT text"]
    );
}

#[test]
fn a_refused_record_is_told_in_the_words_and_lines_of_csv() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let good = "1,\"x\ny\nz\"\n".repeat(50);
    for (bad, column, message) in [
        ("two,\"x\ny\"\n", Some("a"), "invalid input syntax for type integer"),
        ("2,x\ry\n", None, "unquoted carriage return found in data"),
        ("2\n", None, "missing data for column \"b\""),
        ("2,\"x\",3\n", None, "extra data after last expected column"),
    ] {
        let text = format!("{good}{bad}{good}");
        for file in [place.file("a.csv", &text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
            for chunk_bytes in [64, MIB] {
                let mut job = job(&[&file], "t", Format::csv());
                job.chunk_bytes = Some(chunk_bytes);
                let error = place.loader.load(job).refusal(ErrorKind::Server);
                let place = error.place();
                assert_eq!((place.record, place.byte), (Some(51), Some(good.len() as u64)), "{error}");
                assert_eq!(place.column.as_deref(), column, "{error}");
                assert_eq!(place.file.as_deref(), Some(file.as_str()));
                assert!(error.message().contains(message), "{error}");
            }
        }
        place.database.sql("TRUNCATE t");
    }
}

#[test]
fn without_memory_for_a_second_buffer_csv_stays_csv() {
    let place = Place::new(15);
    place.database.sql(WATCH);
    let file = place.file("a.csv", "1,\"b\"\n");
    let mut job = job(&[&file], "t", Format::csv());
    (job.chunk_bytes, job.memory_bytes) = (Some(16 * MIB), 128 * MIB);
    let loaded = place.loader.load(job);
    assert_eq!(loaded.rows(), 1);
    assert_eq!(place.select("SELECT by FROM came"), ["FORMAT csv"]);
    let table = &loaded.plan.unwrap().tables[0];
    assert_eq!(table.text_sql, None);
    assert!(table.notes.iter().any(|note| note.contains("untouched")), "{:?}", table.notes);
}
