//! Any bytes, any dialect of csv: what is written as COPY text has the records of the csv, and is refused
//! where the csv is, by the plain reference of the crate's tests.
#![no_main]

#[path = "../../crates/transcode/tests/it/reference.rs"]
mod reference;

use howdah_model::Format;
use howdah_transcode::encode::Unquoter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, delimiter, quote, escape, records @ ..] = data else { return };
    let null = ["", "\\N", "NA", "\\N"][usize::from(options & 3)];
    let format = Format {
        delimiter: *delimiter,
        quote: *quote,
        escape: if options & 4 == 0 { *quote } else { *escape },
        null: null.to_owned(),
        ..Format::csv()
    };
    let version = if options & 8 == 0 { 150_000 } else { 180_000 };
    // Such formats are refused before anything is split.
    if quote == delimiter || [*quote, *escape, *delimiter].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return;
    }
    let Some(unquoter) = Unquoter::new(&format) else { return };
    let mut out = vec![0; 2 * records.len() + 64];
    let Some(length) = unquoter.unquote(records, &mut out) else { return };
    let csv = reference::copy(&format, version, records);
    let text = reference::copy(&unquoter.sent_format(&format), version, &out[..length]);
    assert_eq!(text.refused, csv.refused);
    assert_eq!((text.records.len(), text.eol), (csv.records.len(), csv.eol));
    assert_eq!((text.marker, csv.marker), (None, None));
});
