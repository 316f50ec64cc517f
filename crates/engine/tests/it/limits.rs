//! Long records, many sessions, little memory.

use crate::rig::{MIB, Place, job};
use howdah_engine::model::{ErrorKind, Format, Jobs, LedgerChoice};
use howdah_testkit::compress::gzip;

/// Short records, one of `bytes` bytes in quotes (and lines) as the third, short records.
fn with_long_record(bytes: usize) -> String {
    let lines = "0123456789abcdef\n".repeat(bytes / 17);
    format!("1,a\n2,b\n3,\"{lines}\"\n{}", "4,d\n".repeat(1000))
}

#[test]
fn a_row_of_eight_megabytes_loads() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let text = with_long_record(8 << 20);
    for file in [place.file("a.csv", &text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
        for chunk_bytes in [100, MIB, 16 * MIB] {
            let mut job = job(&[&file], "t", Format::csv());
            (job.chunk_bytes, job.memory_bytes) = (Some(chunk_bytes), 128 * MIB);
            assert_eq!(place.loader.load(job).rows(), 1003);
            let longest = place.select("SELECT max(length(b)), count(*) FROM t");
            assert_eq!(longest, [format!("{}|1003", (8 << 20) / 17 * 17)]);
            place.database.sql("TRUNCATE t");
        }
    }
}

#[test]
fn neighbouring_long_rows_share_the_reserve_without_waiting_for_each_other() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a int, b text)");
    // Each crosses several ranges, and each needs the reserve.
    let row = format!("1,\"{}\"\n", "x,y\n".repeat(100_000));
    let file = place.file("a.csv", row.repeat(12));
    for (jobs, chunk_bytes) in [(1, 1000), (3, 100_000), (8, 450_000)] {
        let mut job = job(&[&file], "t", Format::csv());
        (job.jobs, job.chunk_bytes, job.memory_bytes) = (Jobs::Fixed(jobs), Some(chunk_bytes), 64 * MIB);
        assert_eq!(place.loader.load(job).rows(), 12);
    }
}

#[test]
fn a_row_longer_than_the_budget_is_an_error_with_record_and_byte() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let text = with_long_record(12 << 20);
    for file in [place.file("a.csv", &text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
        for chunk_bytes in [7, MIB] {
            let mut job = job(&[&file], "t", Format::csv());
            (job.chunk_bytes, job.memory_bytes) = (Some(chunk_bytes), 64 * MIB);
            let error = place.loader.load(job).refusal(ErrorKind::RecordTooLong);
            let place = error.place();
            assert_eq!((place.record, place.byte), (Some(3), Some(8)), "{chunk_bytes} {error}");
            assert_eq!(place.file.as_deref(), Some(file.as_str()));
            assert!(error.hint().is_some());
        }
    }
}

#[test]
fn an_unclosed_quote_is_refused_where_it_opens() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let text = format!("1,a\n2,\"b\n{}", "3,c\n".repeat(50_000));
    for file in [place.file("a.csv", &text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
        for chunk_bytes in [16, 4096, MIB] {
            let mut job = job(&[&file], "t", Format::csv());
            job.chunk_bytes = Some(chunk_bytes);
            let error = place.loader.load(job).refusal(ErrorKind::Server);
            assert_eq!(
                (error.place().record, error.place().byte),
                (Some(2), Some(4)),
                "{chunk_bytes} {error}"
            );
            place.database.sql("TRUNCATE t");
        }
    }
}

#[test]
fn thirty_two_sessions_share_a_small_budget() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let text: String = (0..200_000).map(|no| format!("{no},\"{}\n\"\n", no % 13)).collect();
    let plain = place.file("a.csv", &text);
    let packed = place.file("b.csv.gz", gzip(text.as_bytes()));
    for (ledger, chunk_bytes) in [(true, None), (false, Some(30_000))] {
        let mut job = job(&[&plain, &packed], "t", Format::csv());
        (job.jobs, job.memory_bytes, job.chunk_bytes) = (Jobs::Fixed(32), 96 * MIB, chunk_bytes);
        if ledger {
            job.ledger = LedgerChoice::Schema("l".to_owned());
        }
        assert_eq!(place.loader.load(job).rows(), 400_000);
    }
    assert_eq!(place.select("SELECT count(*), count(DISTINCT a) FROM t"), ["800000|200000"]);
}

#[test]
fn a_failure_early_in_a_file_ends_the_load_without_reading_the_rest() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let text = format!("x,bad\n{}", "1,good\n".repeat(1_000_000));
    for file in [place.file("a.csv", &text), place.file("a.csv.gz", gzip(text.as_bytes()))] {
        let mut job = job(&[&file], "t", Format::csv());
        (job.jobs, job.chunk_bytes) = (Jobs::Fixed(1), Some(1000));
        let loaded = place.loader.load(job);
        let stored_bytes = loaded.plan.as_ref().unwrap().files[0].stored_bytes.unwrap();
        let read = loaded.summary.as_ref().unwrap().bytes_read;
        assert!(read < stored_bytes / 2 || file.ends_with(".gz"), "{read} of {stored_bytes} bytes");
        assert_eq!(loaded.refusal(ErrorKind::Server).place().record, Some(1));
    }
}
