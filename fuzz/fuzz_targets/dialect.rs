//! Any bytes as a sample, with and without given options: no panic, a finding that lies within the file, and
//! the same one each time.
#![no_main]

use howdah_transcode::dialect::{Given, Sample, find};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, cut, bytes @ ..] = data else { return };
    let (head, rest) = bytes.split_at(bytes.len() * usize::from(*cut) / 256);
    let (middle, tail) = rest.split_at(rest.len() / 2);
    let sample = match options & 1 {
        0 => Sample::of_whole(bytes),
        _ => Sample { head, middle, tail, whole: false, size_bytes: Some(bytes.len() as u64) },
    };
    let mut given = Given::default();
    if options & 2 != 0 {
        given.delimiter = Some("||".to_owned());
    }
    if options & 4 != 0 {
        given.header = Some(options & 8 != 0);
    }
    if options & 16 != 0 {
        given.encoding = Some("SJIS".to_owned());
    }
    let Ok(finding) = find(&sample, &given) else { return };
    let size = bytes.len() as u64;
    let end = finding.plain.end_byte.unwrap_or(size);
    assert!(finding.plain.start_byte <= end && end <= size);
    assert!(finding.probability > 0.0 && finding.probability <= 1.0);
    let again = find(&sample, &given).expect("the same bytes have a finding");
    assert_eq!(again.describe(), finding.describe());
});
