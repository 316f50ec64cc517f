//! Compressed files whose first block is longer than what is read of other files to find how they are
//! written.

use crate::auto::load;
use crate::scene::{Files, PATIENCE};
use bzip2::Compression;
use bzip2::write::BzEncoder;
use howdah_testkit::Server;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use std::fmt::Write as _;
use std::io::Write as _;

const ROWS: usize = 70_000;

/// Text that no codec makes much shorter.
fn table() -> String {
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = "no;word\n".to_owned();
    for no in 0..ROWS {
        let word: String = (0..70).map(|_| random.alphanumeric()).collect();
        writeln!(text, "{no};{word}").unwrap();
    }
    text
}

fn lz4(plain: &[u8]) -> Vec<u8> {
    let info = FrameInfo::new().block_size(BlockSize::Max4MB);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(plain: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_of_long_blocks_are_found_as_they_are_written() {
    let (files, text) = (Files::new(), table());
    for (name, bytes) in [("t.csv.lz4", lz4(text.as_bytes())), ("t.csv.bz2", bzip2(text.as_bytes()))] {
        let source = files.put(name, &bytes);
        for options in [&["--create"][..], &["--create", "--lenient"]] {
            let database = Server::shared(15).database();
            load(&database).args(options).arg(&source).run(PATIENCE).expect_code(0);
            let stored =
                database.value("SELECT count(*) || ' ' || sum(no) || ' ' || min(length(word)) FROM t");
            assert_eq!(stored, format!("{ROWS} {} 70", ROWS * (ROWS - 1) / 2), "{name} {options:?}");
        }
    }
}
