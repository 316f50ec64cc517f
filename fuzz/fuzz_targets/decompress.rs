//! Any bytes through every codec: no panic, no endless loop, and no more output than asked for. Decoded by
//! parts they give the same bytes or the same kind of error; how far before an error bytes come differs with
//! the buffers.
#![no_main]

use howdah_model::Codec;
use howdah_transcode::decompress::{Helpers, Piece, ahead, decoder, error, sniff};
use libfuzzer_sys::fuzz_target;
use std::io::{BufReader, Read};
use std::sync::Arc;

/// Bombs are cut off here; reading on is up to the caller.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// Parts of every codec fit.
const AHEAD_BYTES_MAX: usize = 16 << 20;

/// Never decodes anything, so that the reader does.
struct Nobody;

impl Helpers for Nobody {
    fn count(&self) -> usize {
        1
    }

    fn offer(&self, _: Arc<Piece>) {}
}

/// What is read up to the limit, or up to an error.
fn read(decoder: impl Read, limit: u64) -> (Vec<u8>, Option<std::io::Error>) {
    let mut plain = Vec::new();
    let result = decoder.take(limit).read_to_end(&mut plain);
    (plain, result.err())
}

fuzz_target!(|data: &[u8]| {
    let [choice, stored @ ..] = data else { return };
    let codec = match choice % 6 {
        0 => Codec::Gzip,
        1 => Codec::Zstd,
        2 => Codec::Bzip2,
        3 => Codec::Xz,
        4 => Codec::Lz4,
        _ => match sniff(stored) {
            Ok(codec) => codec,
            Err(_) => return,
        },
    };
    let source = BufReader::with_capacity(1 + usize::from(choice / 6), stored);
    let Ok(decoder) = decoder(codec, source) else { return };
    let (plain, refusal) = read(decoder, OUTPUT_BYTES_MAX);
    assert!(plain.len() as u64 <= OUTPUT_BYTES_MAX);
    let kind = refusal.map(|cause| {
        let error = error(cause);
        assert!(!error.message().is_empty());
        error.kind()
    });
    let Ok(parts) = ahead(codec, stored, Arc::new(Nobody), AHEAD_BYTES_MAX) else { return };
    let (plain_by_parts, refusal) = read(parts, OUTPUT_BYTES_MAX);
    let kind_by_parts = refusal.map(|cause| error(cause).kind());
    // Of a damaged block of bzip2 the library hands on what it makes of it before it looks at the checksum:
    // how many and which bytes these are, hangs on its buffers. Whether it is damaged, is not known of what
    // is cut off here.
    let is_whole = |plain: &[u8]| (plain.len() as u64) < OUTPUT_BYTES_MAX;
    if codec == Codec::Bzip2 && !(is_whole(&plain) && is_whole(&plain_by_parts)) {
        return;
    }
    assert_eq!(kind_by_parts, kind);
    if codec == Codec::Bzip2 && kind.is_some() {
        return;
    }
    let common = plain.len().min(plain_by_parts.len());
    assert!(plain_by_parts[..common] == plain[..common]);
    assert!(kind.is_some() || plain_by_parts.len() == plain.len());
});
