//! Any bytes in any foreign encoding: the same text, or the same error, however they are read; and what is
//! written again in the encoding has as many characters.
#![no_main]

use howdah_transcode::encode::Malformed::{self, Marked, Refused};
use howdah_transcode::encode::{from_utf8, needs_utf8, to_utf8};
use libfuzzer_sys::fuzz_target;
use std::io::Read;

const ENCODINGS: [&str; 12] = [
    "UTF16",
    "utf-16le",
    "utf-16be",
    "macintosh",
    "iso-2022-jp",
    "gb18030",
    "big5",
    "sjis",
    "euc-jp",
    "euc-kr",
    "x-user-defined",
    "windows-1258",
];

/// Gives so many bytes at a time.
struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(self.1);
        self.0.read(&mut out[..most])
    }
}

fuzz_target!(|data: &[u8]| {
    let [encoding, given, taken, bytes @ ..] = data else { return };
    if let Ok(name) = std::str::from_utf8(bytes)
        && needs_utf8(name).is_ok_and(|needs| needs)
    {
        assert!(to_utf8(name, &b""[..], Refused).is_ok());
    }
    let encoding = ENCODINGS[usize::from(*encoding) % ENCODINGS.len()];
    let slowly = || Slowly(bytes, usize::from(*given) + 1);
    let whole = read(encoding, bytes, 1 << 16, Refused);
    let in_parts = read(encoding, slowly(), usize::from(*taken) + 1, Refused);
    assert_eq!(in_parts, whole);
    let marked = read(encoding, bytes, 1 << 16, Marked);
    assert_eq!(read(encoding, slowly(), usize::from(*taken) + 1, Marked), marked);
    assert!(marked.is_ok());
    let Ok(text) = whole else { return };
    let text = std::str::from_utf8(&text).expect("what was converted is UTF-8");
    // What begins like a byte order mark is one.
    if encoding == "UTF16" || text.starts_with('\u{feff}') {
        return;
    }
    if let Some(again) = from_utf8(encoding, text.as_bytes()) {
        let again = read(encoding, &again[..], 1 << 16, Refused).expect("what was written can be read");
        let again = std::str::from_utf8(&again).expect("and is UTF-8");
        assert_eq!(again.chars().count(), text.chars().count());
    }
});

/// All of the text, or what is told of the bytes.
fn read(
    encoding: &str,
    plain: impl Read + Send,
    at_a_time: usize,
    malformed: Malformed,
) -> Result<Vec<u8>, String> {
    let mut converted = to_utf8(encoding, plain, malformed).expect("an encoding of the list");
    let (mut text, mut part) = (Vec::new(), vec![0; at_a_time]);
    loop {
        match converted.read(&mut part) {
            Ok(0) => return Ok(text),
            Ok(length) => text.extend_from_slice(&part[..length]),
            Err(error) => return Err(error.to_string()),
        }
    }
}
