//! Files that are empty, many, or not what they were.

use crate::rig::{MIB, Place, job};
use howdah_engine::model::{ErrorKind, Format, Header, Job, Jobs, LedgerChoice, SourceSpec, Told};
use howdah_testkit::MAJORS;

fn csv_with_header() -> Format {
    Format { header: Header::Names, ..Format::csv() }
}

#[test]
fn an_empty_file_and_one_with_only_a_header_load_no_rows() {
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql("CREATE TABLE t (a int, b int)");
        for (name, bytes) in [("header", "b,a\n"), ("no-line-ending", "b,a"), ("crlf", "a,b\r\n")] {
            let file = place.file(name, bytes);
            let mut job = job(&[&file], "t", csv_with_header());
            for chunk_bytes in [1, 1 << 20] {
                job.chunk_bytes = Some(chunk_bytes);
                assert_eq!(place.loader.load(job.clone()).rows(), 0, "{name}");
            }
        }
        let empty = place.file("empty", "");
        assert_eq!(place.loader.load(job(&[&empty], "t", Format::csv())).rows(), 0);
        assert_eq!(place.loader.load(job(&[&empty], "t", Format::text())).rows(), 0);
        assert_eq!(place.loader.load(job(&[&empty], "t", csv_with_header())).rows(), 0, "as COPY");
    }
}

#[test]
fn each_stored_byte_is_counted_once_however_a_file_is_cut() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a text)");
    // Some records are longer than several chunks.
    let text: String = (0..300).map(|no| format!("{}\n", "x".repeat(no % 7 * 40))).collect();
    let file = place.file("a.txt", &text);
    for chunk_bytes in [64, 1000, MIB] {
        let job = Job { chunk_bytes: Some(chunk_bytes), ..job(&[&file], "t", Format::text()) };
        let loaded = place.loader.load(job);
        assert_eq!(loaded.rows(), 300);
        let read = loaded.summary.unwrap().bytes_read;
        assert_eq!(read, text.len() as u64, "in chunks of {chunk_bytes} bytes");
    }
}

#[test]
fn a_placeholder_loads_many_files_into_many_tables() {
    let place = Place::new(15);
    place
        .database
        .sql("CREATE SCHEMA s; CREATE TABLE s.one (a int); CREATE TABLE s.\"Two 2\" (a int, b int)");
    place.file("one.csv", "a\n1\n");
    place.file("Two 2.csv", "b,a\n1,2\n3,4\n");
    let pattern = place.path("{table}.csv");
    let loaded = place.loader.load(job(&[pattern.to_str().unwrap()], "s.{table}", csv_with_header()));
    assert_eq!(loaded.rows(), 3);
    assert_eq!(loaded.summary.unwrap().tables.len(), 2);
    assert_eq!(place.select("SELECT a, b FROM s.\"Two 2\" ORDER BY a"), ["2|1", "4|3"]);
}

#[test]
fn a_file_that_changes_between_plan_and_load_is_refused() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a int)");
    for name in ["plain.csv", "packed.csv.gz"] {
        let packed = |text: &str| match name {
            "plain.csv" => text.as_bytes().to_vec(),
            _ => howdah_testkit::compress::gzip(text.as_bytes()),
        };
        let file = place.file(name, packed("1\n2\n"));
        let path = place.path(name);
        let mut job = job(&[&file], "t", Format::csv());
        job.ledger = LedgerChoice::Schema("l".to_owned());
        let loaded = place.loader.load_after(job, |_| {
            std::fs::write(&path, packed("3\n4\n")).unwrap();
            let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        });
        loaded.refusal(ErrorKind::SourceChanged);
        assert_eq!(place.select("SELECT count(*) FROM t"), ["0"], "{name}");
    }
}

/// It is given before the load begins, and by nobody who has an account of it.
#[test]
fn the_end_that_is_told_has_a_warning_of_the_plan() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a int)");
    let bad = place.file("bad.csv", format!("a\n{}x\n", "1\n".repeat(1000)));
    let mut job = job(&[&bad], "t", csv_with_header());
    (job.ledger, job.chunk_bytes, job.jobs) =
        (LedgerChoice::Schema("l".to_owned()), Some(1000), Jobs::Fixed(1));
    let failed = place.loader.load(job.clone());
    assert!(failed.error.is_some() && place.select("SELECT count(*) > 0 FROM t") == ["t"]);
    place.database.sql("ALTER TABLE t RENAME TO u");
    job.sources = vec![SourceSpec::new(place.file("good.csv", "a\n1\n2\n"))];
    (job.shaping.told, job.shaping.create) = (Some(Told::default()), Some(true));
    let (told, summary) = place.loader.load_at_once(job);
    assert!(
        told.warnings.iter().any(|warning| warning.contains("t is to be made: job ")),
        "{:?}",
        told.warnings
    );
    assert_eq!(told.warnings, summary.warnings);
}

#[test]
fn a_finished_job_is_refused_and_loads_again_when_forced() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int)");
    let file = place.file("a.csv", "1\n2\n");
    let mut job = job(&[&file], "t", Format::csv());
    job.ledger = LedgerChoice::Schema("l".to_owned());
    assert_eq!(place.loader.load(job.clone()).rows(), 2);
    place.loader.load(job.clone()).refusal(ErrorKind::JobDone);
    job.force = true;
    assert_eq!(place.loader.load(job).rows(), 2);
    assert_eq!(place.select("SELECT count(*) FROM t"), ["4"]);
}

#[test]
fn a_bad_record_before_a_stray_line_ending_is_the_one_that_is_refused() {
    for major in MAJORS {
        let place = Place::new(major);
        place.database.sql("CREATE TABLE t (a int, b int)");
        // Record 2 has a field too many, record 3 begins with a byte that ends no line of this file. Alone in
        // a chunk, the two would look like a file of \r\n.
        let bytes = "1,1\r2,2,2\r\n3,3\r";
        let sql = "COPY t FROM STDIN WITH (FORMAT csv)";
        let refused = place.database.copy_in(sql, bytes).unwrap_err();
        assert_eq!(refused.as_db_error().unwrap().where_().unwrap()[..14], *"COPY t, line 2");
        let file = place.file("a.csv", bytes);
        for chunk_bytes in [4, 8, 100] {
            let mut job = job(&[&file], "t", Format::csv());
            job.chunk_bytes = Some(chunk_bytes);
            let error = place.loader.load(job).refusal(ErrorKind::Server);
            assert_eq!(
                (error.place().record, error.place().byte),
                (Some(2), Some(4)),
                "{chunk_bytes} {error}"
            );
        }
        let good = place.file("b.csv", "1,1\r2,2\r\n3,3\r");
        let mut job = job(&[&good], "t", Format::csv());
        job.chunk_bytes = Some(4);
        let error = place.loader.load(job).refusal(ErrorKind::Record);
        assert_eq!((error.place().record, error.place().byte), (Some(3), Some(8)), "{error}");
    }
}
