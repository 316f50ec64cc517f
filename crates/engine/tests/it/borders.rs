//! Where files are cut: at their beginning and towards their end in smaller pieces, and by every run of a job
//! alike.

use crate::rig::{MIB, Place, job};
use howdah_engine::model::{Borders, ErrorKind, Format, Job, LedgerChoice, Taper};
use howdah_testkit::MAJORS;
use std::fmt::Write as _;

const ROWS: u64 = 120_000;

/// Some 12 MB.
fn text() -> String {
    (0..ROWS).fold(String::new(), |mut text, no| {
        let _ = writeln!(text, "{no},{}", "x".repeat(90 + no as usize % 11));
        text
    })
}

/// A table that refuses a record in the second half, so that a run ends in the middle.
fn place(major: u32) -> (Place, Job) {
    let place = Place::new(major);
    place.database.sql("CREATE TABLE t (a int CONSTRAINT late CHECK (a <> 80000), b text)");
    let file = place.file("a.csv", text());
    let mut job = job(&[&file], "t", Format::csv());
    job.ledger = LedgerChoice::Schema("howdah".to_owned());
    (place, job)
}

/// All rows are there once, and the chunks begin where these borders say, but for the end of a record.
fn assert_whole(place: &Place, borders: &Borders, file_bytes: u64) {
    let sum = ROWS * (ROWS - 1) / 2;
    assert_eq!(place.select("SELECT count(*), sum(a) FROM t"), [format!("{ROWS}|{sum}")]);
    let starts = place.select("SELECT start_byte FROM howdah.chunk ORDER BY chunk_no");
    assert_eq!(starts.len() as u64, borders.chunks(file_bytes));
    for (no, start) in (0..).zip(&starts) {
        let behind = start.parse::<u64>().unwrap() - borders.start_byte(no);
        assert!(behind < 120, "chunk {no} begins {behind} bytes behind its border");
    }
}

#[test]
fn a_run_that_goes_on_cuts_a_file_where_the_one_before_has_cut_it() {
    for major in MAJORS {
        let (place, job) = place(major);
        place.loader.load(job.clone()).refusal(ErrorKind::Server);
        assert_ne!(place.select("SELECT count(*) FROM howdah.chunk"), ["0"]);
        place.database.sql("ALTER TABLE t DROP CONSTRAINT late");
        let loaded = place.loader.load(job);
        let plan = loaded.plan.unwrap();
        let bytes = plan.files[0].stored_bytes.unwrap();
        let taper = Taper { in_order_bytes: MIB, least_bytes: MIB, share: 4, rises: true };
        assert_eq!(plan.taper, Some(taper));
        assert_whole(&place, &Borders::rising(plan.chunk_bytes, taper).tapering(taper, bytes), bytes);
    }
}

#[test]
fn a_file_with_others_behind_it_is_not_cut_small() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let files: Vec<String> = (0..6).map(|no| place.file(&format!("{no}.csv"), text())).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let loaded = place.loader.load(job(&files, "t", Format::csv()));
    assert_eq!(loaded.rows(), 6 * ROWS);
    let plan = loaded.plan.unwrap();
    let chunks = |no: usize| plan.borders(no as u32).chunks(plan.files[no].stored_bytes.unwrap());
    // All sessions begin with the first one.
    assert_eq!((chunks(0), chunks(1)), (5, 3));
    assert!(chunks(5) > 4, "{}", chunks(5));
}

/// Two processes that have planned the same job at once must not both store chunks if they cut differently.
#[test]
fn a_run_that_would_cut_otherwise_is_refused() {
    let (place, job) = place(15);
    place.loader.load(job.clone()).refusal(ErrorKind::Server);
    place.database.sql("ALTER TABLE t DROP CONSTRAINT late");
    let error = place.loader.load_after(job.clone(), |plan| plan.taper = None).refusal(ErrorKind::Ledger);
    assert!(error.message().contains("chunk"), "{error}");
    assert_eq!(place.loader.load(job).rows(), ROWS);
}
