//! Lines of any bytes as the values of a column: no panic, the parts joined are the whole, and a reading that
//! was inferred reads every value. The same lines as names: all different, and short enough for PostgreSQL.
#![no_main]

use howdah_transcode::infer::{
    Among, ColumnState, epoch, fold, parse_type, read, reading_for, snake, spelling,
};
use howdah_model::Reading;
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

const TYPES: [&str; 5] = ["date", "timestamptz", "integer", "numeric(12,2)", "boolean"];

fuzz_target!(|data: &[u8]| {
    let values: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let whole = state(&values);
    let (front, back) = values.split_at(values.len() / 2);
    let among = among(&values);
    let (mut joined_state, mut joined) = (state(back), self::among(back));
    joined.join(&mut joined_state, &self::among(front), &state(front));
    assert_eq!((joined_state, joined), (whole.clone(), among.clone()));
    let inferred = whole.finish(true);
    let mut out = Vec::new();
    if let Some(reading) = &inferred.reading {
        assert!(values.iter().all(|value| read(reading, value, &mut out)));
        let (_, parsed) = parse_type(&format!("t:{}", spelling(reading))).expect("its own spelling");
        assert_eq!(parsed, Some(as_typed(reading)));
    }
    if whole.finish(false).settled {
        assert_eq!(whole.finish(false).type_name, "text");
    }
    let readings = TYPES.iter().filter_map(|type_name| reading_for(&whole, &among, type_name));
    for reading in readings.chain(epoch(&whole, "time")) {
        for value in &values {
            let before = out.len();
            assert!(read(&reading, value, &mut out) || out.len() == before);
        }
    }
    names(data);
});

/// The reading as a person who types its spelling gets it: of any currency.
fn as_typed(reading: &Reading) -> Reading {
    let mut reading = reading.clone();
    if let Reading::Number { sign, .. } = &mut reading {
        *sign = None;
    }
    reading
}

fn state(values: &[&[u8]]) -> ColumnState {
    let mut state = ColumnState::default();
    values.iter().for_each(|value| state.observe(value));
    state
}

fn among(values: &[&[u8]]) -> Among {
    let (mut state, mut among) = (ColumnState::default(), Among::default());
    values.iter().for_each(|value| among.observe(&mut state, value));
    among
}

fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = parse_type(text);
    let names: Vec<String> = text.lines().map(str::to_owned).collect();
    let made = snake(&names);
    assert!(made.iter().all(|name| (1..=63).contains(&name.len())));
    assert_eq!(made.iter().collect::<HashSet<_>>().len(), names.len());
    assert!(names.iter().all(|name| fold(&fold(name)) == fold(name)));
}
