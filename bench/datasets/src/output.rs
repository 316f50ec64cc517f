//! Writes rows to a plain or gzip file in blocks, so that memory stays constant.

use crate::Rows;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes gathered before each write: large enough that the system call does not show.
const BLOCK_BYTES: usize = 1 << 20;

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// After this many rows, the header not counted.
    Rows(u64),
    /// After the row that reaches this many plain bytes, the header counted.
    Bytes(u64),
}

/// How much was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Rows, the header not counted.
    pub rows: u64,
    /// Bytes before compression, the header counted.
    pub plain_bytes: u64,
}

/// Writes `rows` with their header to `path`, through gzip (level 6) if `gzip`.
///
/// # Errors
/// Whatever the file system says.
pub fn write_file(path: &Path, gzip: bool, rows: &mut dyn Rows, limit: Limit) -> io::Result<Written> {
    let file = File::create(path)?;
    if gzip {
        let mut encoder = GzEncoder::new(file, Compression::new(6));
        let written = write_rows(&mut encoder, rows, limit)?;
        encoder.finish()?;
        Ok(written)
    } else {
        let mut file = file;
        write_rows(&mut file, rows, limit)
    }
}

/// Writes `rows` with their header to `out`.
///
/// # Errors
/// Whatever `out` says.
pub fn write_rows(out: &mut dyn Write, rows: &mut dyn Rows, limit: Limit) -> io::Result<Written> {
    let mut block = Vec::with_capacity(2 * BLOCK_BYTES);
    block.extend_from_slice(rows.header().as_bytes());
    let mut written = Written { rows: 0, plain_bytes: 0 };
    loop {
        let plain_bytes = written.plain_bytes + block.len() as u64;
        let done = match limit {
            Limit::Rows(rows_max) => written.rows >= rows_max,
            Limit::Bytes(bytes_max) => plain_bytes >= bytes_max,
        };
        if done || block.len() >= BLOCK_BYTES {
            out.write_all(&block)?;
            written.plain_bytes = plain_bytes;
            block.clear();
        }
        if done {
            return Ok(written);
        }
        rows.push_row(&mut block);
        written.rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imdb::Table;
    use std::io::Read;

    #[test]
    fn the_gzip_file_holds_the_plain_file() {
        let folder = std::env::temp_dir().join(format!("howdah-datasets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [plain, gzip] = [false, true].map(|gzip| {
            let path = folder.join(if gzip { "t.gz" } else { "t" });
            let mut rows = Table::Akas.rows(1, 1_000);
            let written = write_file(&path, gzip, rows.as_mut(), Limit::Rows(50_000)).unwrap();
            (written, std::fs::read(path).unwrap())
        });
        std::fs::remove_dir_all(&folder).unwrap();
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(gzip.1.as_slice()).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == plain.1, "the two differ");
        assert_eq!(gzip.0, plain.0);
        assert_eq!(plain.0, Written { rows: 50_000, plain_bytes: plain.1.len() as u64 });
    }
}
