//! Chunks are split and looked at piece by piece: where the pieces meet makes no difference.

use crate::auto::load;
use crate::scene::{Files, PATIENCE, gzip};
use howdah_testkit::Server;
use std::fmt::Write as _;

/// Bytes of a piece (`howdah_engine::feed::sight`).
const PIECE_BYTES: usize = 256 << 10;

/// A header and records of which some have line endings in quotes, and some characters beyond ASCII.
fn records() -> Vec<String> {
    let mut records = vec!["id,name,note\n".to_owned()];
    for id in 0..24_000 {
        let note = match id % 5 {
            0 => "\"two\nlines, and a \"\"quote\"\"\n\"",
            1 => "naïve café",
            2 => "\"\"",
            _ => "a plain one",
        };
        let mut record = String::new();
        let _ = writeln!(record, "{id},name {},{note}", id * 7919 % 1009);
        records.push(record);
    }
    records
}

/// The record that the byte belongs to.
fn record_at(records: &[String], byte: usize) -> usize {
    let mut end = 0;
    records
        .iter()
        .position(|record| {
            end += record.len();
            end > byte
        })
        .unwrap()
}

#[test]
fn records_are_the_same_wherever_pieces_and_ranges_meet() {
    let files = Files::new();
    let text = records().concat();
    let plain = files.put("a.csv", text.as_bytes());
    let packed = files.put("a.csv.gz", &gzip(text.as_bytes()));
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, note text)");
    database.copy_in("COPY t FROM STDIN (FORMAT csv, HEADER)", text).unwrap();
    let expected = database.digest("t");
    for source in [&plain, &packed] {
        for chunk in ["16MB", "300kB", "257kB", "40kB"] {
            database.sql("TRUNCATE t");
            load(&database)
                .args(["--force", "--chunk-size", chunk])
                .arg(source)
                .args(["--table", "t"])
                .run(PATIENCE)
                .expect_code(0);
            assert_eq!(database.digest("t"), expected, "{} by {chunk}", source.display());
        }
    }
}

#[test]
fn an_odd_record_is_found_wherever_it_stands_in_its_chunk() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, note text)");
    let records = records();
    let border = record_at(&records, PIECE_BYTES);
    for (no, at) in
        [1, border - 1, border, border + 1, record_at(&records, 2 * PIECE_BYTES), records.len() - 1]
            .into_iter()
            .enumerate()
    {
        for odd in ["1,two,three,four\n", "1,\"two\"x,three\n", "1,two,thr\0ee\n"] {
            let mut records = records.clone();
            records[at] = odd.to_owned();
            let text = records.concat();
            let before = records[..at].iter().map(String::len).sum::<usize>();
            for source in
                [files.put("odd.csv", text.as_bytes()), files.put("odd.csv.gz", &gzip(text.as_bytes()))]
            {
                let command = load(&database).args([
                    "--force",
                    "--table",
                    "t",
                    "--header",
                    "--delimiter",
                    ",",
                    "--quote",
                    "\"",
                ]);
                let refused = command.arg(&source).run(PATIENCE).expect_code(1);
                let place = format!("record {at}, byte {before}");
                assert!(refused.stderr.contains(&place), "{no} {odd:?}: {place}: {}", refused.stderr);
                database.sql("TRUNCATE t");
            }
        }
    }
}
