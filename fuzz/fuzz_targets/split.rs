//! Any bytes, any dialect: the fast scanners, whole and from a cut on, against the plain reference of the
//! crate's tests.
#![no_main]

#[path = "../../crates/transcode/tests/it/reference.rs"]
mod reference;

use howdah_model::Format;
use howdah_transcode::split::{Rules, State};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, quote, escape, cut, input @ ..] = data else { return };
    let mut format = if options & 1 == 0 { Format::csv() } else { Format::text() };
    (format.delimiter, format.quote) = (1, *quote);
    format.escape = if options & 2 == 0 { *quote } else { *escape };
    format.encoding = (options & 4 != 0).then(|| "GBK".to_owned());
    let version = if options & 8 == 0 { 150_000 } else { 180_000 };
    // Some quotes are refused.
    let Ok(first) = Rules::first_record(&format, version, input, true) else { return };
    let Some(first) = first else { return };
    let Ok(rules) = Rules::new(&format, version, first.eol) else { return };

    let whole = rules.scan(State::START, input);
    let (left, right) = input.split_at(usize::from(*cut).min(input.len()));
    let before = rules.scan(State::START, left);
    let after = rules.scan(before.state, right);
    assert_eq!((after.state, before.records + after.records), (whole.state, whole.records));
    if Rules::is_as_inside(before.state, right) {
        assert_eq!(rules.scan(State::INSIDE, right), after);
    }

    let expected = reference::copy(&format, version, input);
    if !expected.refused {
        assert_eq!(first.eol, expected.eol);
        assert_eq!(whole.records + u64::from(!whole.state.at_record_start()), expected.records.len() as u64);
        assert_eq!(whole.end_marker, expected.marker.map(|at| at as isize));
    } else if let Some(last) = whole.last_border {
        // Every record before the refused one has a border, and the refused one is not swallowed.
        let borders_before = expected.records.len() as u64;
        assert!(whole.records >= borders_before || last == input.len());
    }
});
