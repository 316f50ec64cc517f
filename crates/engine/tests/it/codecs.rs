//! Compressed files, and files that are no tables at all.

use crate::rig::{MIB, Place, job};
use howdah_engine::model::{Codec, ErrorKind, Format, Header, LedgerChoice};
use howdah_testkit::compress::{any, bgzf, gzip, gzip_members, zstd_frames};

const CODECS: [Codec; 6] = [Codec::None, Codec::Gzip, Codec::Zstd, Codec::Bzip2, Codec::Xz, Codec::Lz4];

/// More than one block of every codec, and its number of records.
fn text() -> (String, u64) {
    let records = 60_000_u64;
    let record = |no: u64| format!("{no},\"{}\n{}\"\n", no.wrapping_mul(0x9E37_79B9_7F4A_7C15), no % 7);
    ((0..records).map(record).collect(), records)
}

#[test]
fn every_codec_is_told_by_content_and_read_to_the_end() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a int, b text); CREATE TABLE o (LIKE t)");
    let (text, records) = text();
    place.database.copy_in("COPY o FROM STDIN WITH (FORMAT csv)", text.clone()).unwrap();
    let packed = CODECS.map(|codec| (format!("{codec:?}"), any(codec, text.as_bytes())));
    let parts = [
        ("members".to_owned(), gzip_members(text.as_bytes())),
        ("bgzf".to_owned(), bgzf(text.as_bytes())),
        ("frames".to_owned(), zstd_frames(text.as_bytes())),
    ];
    for (name, bytes) in packed.into_iter().chain(parts) {
        // The name says nothing.
        let file = place.file(&format!("{name}.dat"), bytes);
        let mut job = job(&[&file], "t", Format::csv());
        job.chunk_bytes = Some(200_000);
        assert_eq!(place.loader.load(job).rows(), records, "{name}");
        assert_eq!(place.database.digest("t"), place.database.digest("o"), "{name}");
        place.database.sql("TRUNCATE t");
    }
}

#[test]
fn a_truncated_file_is_an_error_and_loses_nothing_before_the_cut() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let (text, records) = text();
    for codec in [Codec::Gzip, Codec::Zstd, Codec::Bzip2, Codec::Xz, Codec::Lz4] {
        let bytes = any(codec, text.as_bytes());
        let file = place.file(&format!("{codec:?}"), &bytes[..bytes.len() - bytes.len() / 5]);
        let mut job = job(&[&file], "t", Format::csv());
        job.chunk_bytes = Some(100_000);
        let error = place.loader.load(job).refusal(ErrorKind::Decompress);
        assert_eq!(error.place().file.as_deref(), Some(file.as_str()));
        // All whole chunks before the cut are in, from the first record on, without a gap.
        let row = place.database.rows("SELECT count(*), coalesce(max(a) + 1, 0) FROM t").swap_remove(0);
        assert_eq!(row[0], row[1], "{codec:?}");
        let stored: u64 = row[0].as_ref().unwrap().parse().unwrap();
        assert!(stored < records);
        if codec == Codec::Gzip {
            assert!(stored > records / 2, "{stored}");
        }
        place.database.sql("TRUNCATE t");
    }
}

/// Enough for many parts, side by side and in order.
fn long_text() -> String {
    text().0.repeat(8)
}

#[test]
fn a_file_with_parts_is_cut_into_the_same_chunks() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let text = long_text();
    let chunks = |name: &str, bytes: Vec<u8>, memory_bytes| {
        let file = place.file(name, bytes);
        let mut job = job(&[&file], "t", Format::csv());
        (job.chunk_bytes, job.memory_bytes) = (Some(MIB), memory_bytes);
        job.ledger = LedgerChoice::Schema("howdah".to_owned());
        assert_eq!(place.loader.load(job).rows(), 480_000, "{name}");
        let table = place.database.digest("t");
        place.database.sql("TRUNCATE t");
        let chunks = place.select(
            "SELECT chunk_no, start_byte, end_byte, rows FROM howdah.chunk \
             WHERE job_id = (SELECT job_id FROM howdah.job ORDER BY started_at DESC LIMIT 1) ORDER BY 1",
        );
        (table, chunks)
    };
    let one = chunks("one.gz", gzip(text.as_bytes()), 256 * MIB);
    assert!(one.1.len() > 10);
    // With the least memory, nothing is decoded ahead.
    for memory_mib in [256, 64] {
        let memory_bytes = memory_mib * MIB;
        assert!(chunks(&format!("{memory_mib}.gz"), bgzf(text.as_bytes()), memory_bytes) == one);
        assert!(chunks(&format!("{memory_mib}.zst"), zstd_frames(text.as_bytes()), memory_bytes) == one);
    }
}

#[test]
fn a_damaged_part_is_an_error_and_loses_nothing_before_it() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a int, b text)");
    let text = text().0;
    let damaged = |mut bytes: Vec<u8>| {
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        bytes
    };
    for (name, bytes) in [("bgzf", bgzf(text.as_bytes())), ("frames", zstd_frames(text.as_bytes()))] {
        let cut = bytes[..bytes.len() / 2].to_vec();
        for (what, bytes) in [("cut", cut), ("damaged", damaged(bytes))] {
            let file = place.file(&format!("{name}-{what}"), bytes);
            let mut job = job(&[&file], "t", Format::csv());
            job.chunk_bytes = Some(100_000);
            let error = place.loader.load(job).refusal(ErrorKind::Decompress);
            assert_eq!(error.place().file.as_deref(), Some(file.as_str()), "{name} {what}");
            let row = place.database.rows("SELECT count(*), coalesce(max(a) + 1, 0) FROM t").swap_remove(0);
            assert_eq!(row[0], row[1], "{name} {what}");
            let stored: u64 = row[0].as_ref().unwrap().parse().unwrap();
            assert!((15_000..60_000).contains(&stored), "{name} {what}: {stored}");
            place.database.sql("TRUNCATE t");
        }
    }
}

#[test]
fn archives_and_other_formats_are_refused_with_a_hint() {
    let place = Place::new(15);
    place.database.sql("CREATE TABLE t (a text)");
    let mut tar = vec![0_u8; 1024];
    tar[..5].copy_from_slice(b"a.csv");
    tar[257..262].copy_from_slice(b"ustar");
    let zip = [b"PK\x03\x04".as_slice(), &[20; 60]].concat();
    let parquet = [b"PAR1".as_slice(), &[0; 60], b"PAR1"].concat();
    for (name, bytes) in [("a.zip", zip), ("a.tar", tar), ("a.parquet", parquet)] {
        let file = place.file(name, bytes);
        let error = place.loader.load(job(&[&file], "t", Format::csv())).refusal(ErrorKind::Unsupported);
        assert!(error.hint().is_some(), "{error}");
        assert_eq!(error.place().file.as_deref(), Some(file.as_str()));
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn a_file_in_an_encoding_the_server_cannot_read_is_rewritten_as_utf8() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a text, \"größe\" text, c text)");
    let text = "\u{feff}größe,extra,a\r\n\"é\n漢\",x,🐘\r\nb,y,\r\n";
    let plain = place.file("a.csv", utf16(text));
    let packed = place.file("a.csv.gz", gzip(&utf16(text)));
    let format = Format { encoding: Some("UTF-16LE".to_owned()), header: Header::Names, ..Format::csv() };
    for (file, chunk_bytes) in [(&plain, 1 << 20), (&plain, 8), (&packed, 8)] {
        let mut job = job(&[file], "t", format.clone());
        (job.ignore_extra, job.chunk_bytes) = (true, Some(chunk_bytes));
        assert_eq!(place.loader.load(job).rows(), 2);
        let rows = place.select("SELECT a, \"größe\" FROM t ORDER BY 2");
        assert_eq!(rows, ["-|b", "🐘|é\n漢"]);
        place.database.sql("TRUNCATE t");
    }
}

#[test]
fn a_bad_sequence_in_such_a_file_is_an_error_and_never_another_character() {
    let place = Place::new(18);
    place.database.sql("CREATE TABLE t (a text)");
    // Half of a surrogate pair.
    let bytes = [utf16("a\nb\n"), vec![0x00, 0xD8], utf16("c\n")].concat();
    let file = place.file("a.csv", bytes);
    let format = Format { encoding: Some("UTF-16LE".to_owned()), ..Format::csv() };
    let error = place.loader.load(job(&[&file], "t", format)).refusal(ErrorKind::Record);
    assert_eq!(error.place().file.as_deref(), Some(file.as_str()));
}
