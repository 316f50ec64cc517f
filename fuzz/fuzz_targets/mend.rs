//! Any bytes, read carefully in several dialects, strictly and leniently: what the crate's own tests hold of
//! them.
#![no_main]

#[path = "../../crates/transcode/tests/it/careful.rs"]
mod careful;

use howdah_model::{Dialect, Eol, Escape};
use libfuzzer_sys::fuzz_target;

const DELIMITERS: [&str; 8] = [",", ";", "\t", "||", ", ", " ", "§", ""];
const QUOTINGS: [(Option<u8>, Escape); 8] = [
    (Some(b'"'), Escape::Doubled),
    (Some(b'"'), Escape::Backslash),
    (Some(b'"'), Escape::None),
    (Some(b'\''), Escape::Doubled),
    (Some(b'\''), Escape::Backslash),
    (None, Escape::None),
    (None, Escape::Backslash),
    (None, Escape::Doubled),
];
const EOLS: [Option<Eol>; 4] = [Some(Eol::Lf), Some(Eol::Cr), Some(Eol::CrLf), None];

fuzz_target!(|data: &[u8]| {
    let [styles, options, input @ ..] = data else { return };
    let (styles, options) = (usize::from(*styles), usize::from(*options));
    let (quote, escape) = QUOTINGS[styles >> 3 & 7];
    let dialect = Dialect {
        delimiter: DELIMITERS[styles & 7].to_owned(),
        repeats: options & 1 != 0,
        trim: options & 2 != 0,
        quote,
        escape,
        eol: EOLS[styles >> 6],
        nulls: vec![String::new(), "\\N".to_owned()],
        comment: (options & 4 != 0).then(|| "#".to_owned()),
        ..Dialect::csv()
    };
    let (width, piece_bytes) = (1 + (options >> 3 & 3), 1 + (options >> 5));
    careful::check(&dialect, width, input, piece_bytes);
});
