//! Any bytes through every codec: no panic, no endless loop, and no more output than asked for.
#![no_main]

use howdah_model::Codec;
use howdah_transcode::decompress::{decoder, error, sniff};
use libfuzzer_sys::fuzz_target;
use std::io::{BufReader, Read};

/// Bombs are cut off here; reading on is up to the caller.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

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
    let mut plain = Vec::new();
    match decoder.take(OUTPUT_BYTES_MAX).read_to_end(&mut plain) {
        Ok(_) => assert!(plain.len() as u64 <= OUTPUT_BYTES_MAX),
        Err(cause) => assert!(!error(cause).message().is_empty()),
    }
});
