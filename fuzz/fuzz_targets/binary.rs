//! Any bytes, any dialect: what is written as binary rows has the records of the file by the plain reference
//! of the crate's tests, whatever the types, and goes on from buffer to buffer without a row lost or doubled.
#![no_main]

#[path = "../../crates/transcode/tests/it/reference.rs"]
mod reference;

use howdah_model::{BinaryType, Eol, Format};
use howdah_transcode::encode::BinaryEncoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, delimiter, quote, escape, of, buffer_bytes, records @ ..] = data else { return };
    let base = if options & 1 == 0 { Format::csv() } else { Format::text() };
    let null = ["", "\\N", "NA", "\\N"][usize::from(options >> 1 & 3)];
    let escape = if options & 8 == 0 { *quote } else { *escape };
    let format = Format { delimiter: *delimiter, quote: *quote, escape, null: null.to_owned(), ..base };
    let special = [*quote, escape, *delimiter];
    if quote == delimiter || special.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return;
    }
    let eol = [Eol::Lf, Eol::Cr, Eol::CrLf][usize::from(options >> 4) % 3];
    let (last, types) = (of_type(*of), [BinaryType::Text, BinaryType::Text]);
    let columns = if options & 128 == 0 { vec![types[0].clone(), last] } else { types.to_vec() };
    let Some(encoder) = BinaryEncoder::new(&format, Some(eol), &columns, "UTC") else { return };
    encoder.estimate(records);
    let Some(whole) = written(&encoder, records, 64 + 16 * records.len()) else { return };
    let read = reference::copy(&format, 180_000, records);
    assert_eq!((read.refused, read.marker), (false, None));
    assert_eq!(rows(&whole, columns.len()), read.records.len());
    if let Some(pieces) = written(&encoder, records, 32 + usize::from(*buffer_bytes)) {
        assert_eq!(pieces, whole);
    }
});

fn of_type(of: u8) -> BinaryType {
    const BUILT_IN: [u32; 24] = [
        16, 17, 18, 19, 20, 21, 23, 26, 650, 700, 701, 774, 829, 869, 1082, 1083, 1114, 1184, 1186, 1266, 1560,
        1700, 2950, 3802,
    ];
    let element = BinaryType::built_in(BUILT_IN[usize::from(of) % BUILT_IN.len()]).unwrap();
    match usize::from(of) / BUILT_IN.len() {
        0..4 => element,
        4 => BinaryType::Array { element_oid: 25, element: Box::new(element) },
        5 => BinaryType::Range { bound: Box::new(element) },
        6 => BinaryType::Vector,
        _ => BinaryType::Geometry,
    }
}

fn written(encoder: &BinaryEncoder, records: &[u8], buffer_bytes: usize) -> Option<Vec<u8>> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let mut buffer = vec![0; buffer_bytes];
        let encoded = encoder.encode(records, from, &mut buffer)?;
        all.extend_from_slice(&buffer[..encoded.length]);
        from = encoded.taken;
        if encoded.is_done {
            return Some(all);
        }
    }
}

/// How many there are, each of so many fields.
fn rows(sent: &[u8], columns: usize) -> usize {
    let (mut rest, mut rows) = (&sent[19..], 0);
    loop {
        let (count, after) = rest.split_first_chunk::<2>().unwrap();
        rest = after;
        let Ok(count) = usize::try_from(i16::from_be_bytes(*count)) else { break };
        assert_eq!(count, columns);
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk::<4>().unwrap();
            let length = i32::from_be_bytes(*length);
            rest = &after[usize::try_from(length).unwrap_or(0)..];
        }
        rows += 1;
    }
    assert!(rest.is_empty());
    rows
}
