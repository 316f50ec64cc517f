//! What must hold of the careful reader whatever the bytes are. Also used by the fuzz target `mend`.

use howdah_model::{Dialect, ErrorKind, Mend};
use howdah_transcode::decompress;
use howdah_transcode::mend::{self, Counts, Field, Shape};
use std::io::{self, Read};
use std::sync::Arc;

/// Records longer than this are refused, so that the limit is met too.
pub(crate) const RECORD_BYTES_MAX: usize = 300;

/// What came of a file: its lines, why they end early, and what was counted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) lines: Vec<u8>,
    pub(crate) refusal: Option<(ErrorKind, String)>,
    pub(crate) mends: Vec<u64>,
}

/// Gives at most so many bytes at a time.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(into.len()).min(self.0.len());
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// Reads `bytes` as records of `width` fields, of which the second is not kept.
pub(crate) fn read(
    dialect: &Dialect,
    width: usize,
    lenient: bool,
    bytes: &[u8],
    piece_bytes: usize,
) -> Outcome {
    let shape = Shape {
        dialect: dialect.clone(),
        fields: (0..width)
            .map(|field_no| Field {
                column: (field_no != 1).then(String::new),
                reading: None,
                empty_is_null: false,
            })
            .collect(),
        names: Vec::new(),
        data_start_byte: 0,
        data_end_byte: None,
        end: None,
        lenient,
        skips: false,
        nul: howdah_model::Nul::Reject,
        record_bytes_max: RECORD_BYTES_MAX,
        read: |_, _, _| false,
    };
    let counts = Arc::new(Counts::new(width));
    let mut lines = Vec::new();
    let mut reader =
        mend::reader(&shape, Pieces(bytes, piece_bytes), Arc::clone(&counts)).expect("a dialect");
    let refusal = reader.read_to_end(&mut lines).err().map(decompress::error);
    let refusal = refusal.map(|error| (error.kind(), error.to_string()));
    Outcome { lines, refusal, mends: Mend::ALL.iter().map(|mend| counts.mended(*mend)).collect() }
}

/// Checks all that holds of any bytes; the strict outcome and the lenient one.
///
/// # Panics
/// If something does not hold.
pub(crate) fn check(dialect: &Dialect, width: usize, bytes: &[u8], piece_bytes: usize) -> [Outcome; 2] {
    let outcomes = [false, true].map(|lenient| {
        let whole = read(dialect, width, lenient, bytes, usize::MAX);
        assert_eq!(read(dialect, width, lenient, bytes, piece_bytes.max(1)), whole, "in pieces");
        let kept = if width > 1 { width - 1 } else { width };
        for line in whole.lines.split_inclusive(|&byte| byte == b'\n') {
            assert_eq!(line.iter().filter(|&&byte| byte == b'\t').count() + 1, kept, "the width of a line");
            assert!(line.ends_with(b"\n") && !line.contains(&b'\r'), "the end of a line");
        }
        whole
    });
    let [strict, lenient] = &outcomes;
    assert_eq!(lenient.refusal, None, "leniently nothing is refused");
    assert!(
        std::str::from_utf8(&lenient.lines).is_ok() && !lenient.lines.contains(&0),
        "what cannot be stored"
    );
    assert!(lenient.lines.starts_with(&strict.lines), "a record without a fault is read in one way");
    let mended: u64 = lenient.mends.iter().sum();
    assert_eq!(strict.refusal.is_none(), mended == 0, "what is refused is mended, and nothing else is");
    outcomes
}
