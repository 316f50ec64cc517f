//! Splitting against the reference: whole, in pieces, from where nothing is known, and chunk by chunk.

use crate::reference::{Outcome, copy};
use howdah_model::{Eol, Format, FormatKind};
use howdah_transcode::split::{Rules, State, Tail};
use proptest::prelude::*;

const ALPHABETS: [&[u8]; 7] = [
    b"\"\\.\n\r a,'",
    b"\\.\n",
    b"\\.\r\n",
    b"a\"\"\n",
    b"aaaaaaaa\"\\\nbbbbbbbb",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\"\\.",
    b"\x81\\.\n\"a\x81n",
];

/// Words are drawn more often than chance would make them.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<Vec<u8>> = [
        "\\.\n",
        "\\.\r\n",
        "\\.\r",
        "\r\n",
        "\n",
        "\r",
        "\n\\.\n",
        "\r\n\\.\r\n",
        "\"",
        "\"\"",
        "\\\"",
        "\\\\",
        "a,b\n",
        "a,b\r\n",
        "\"a\nb\",\"c\"\n",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ]
    .map(|word| word.as_bytes().to_vec())
    .to_vec();
    let letters = (0..ALPHABETS.len())
        .prop_flat_map(|alphabet| prop::collection::vec(prop::sample::select(ALPHABETS[alphabet]), 0..90));
    let sentence = (
        prop::sample::select(vec!["\n", "\r", "\r\n"]),
        prop::collection::vec(
            prop::sample::select(vec![
                "a",
                "\"",
                "\"x\"",
                "\\",
                "\\.",
                ".",
                "",
                "$",
                "$",
                "$",
                "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
                "\\\"",
            ]),
            0..90,
        ),
    )
        .prop_map(|(eol, words)| words.concat().replace('$', eol).into_bytes());
    let sentences = (
        prop::sample::select(vec!["\n", "\r", "\r\n"]),
        prop::collection::vec(
            prop::sample::select(vec![
                "a",
                "\"x\n\"",
                "\"\"",
                "b\\\\",
                "\"\r\"",
                "c\\.",
                ".",
                "$",
                "$",
                "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
            ]),
            0..90,
        ),
    )
        .prop_map(|(eol, words)| words.concat().replace('$', eol).into_bytes());
    let words = prop::collection::vec(prop::sample::select(words), 0..40).prop_map(|words| words.concat());
    prop_oneof![letters, words, sentence, sentences]
}

fn dialect() -> impl Strategy<Value = (Format, u32)> {
    let versions = prop::sample::select(vec![130_023, 150_018, 180_006]);
    let csv = prop::sample::select(vec![
        (b'"', b'"'),
        (b'"', b'\\'),
        (b'"', b'a'),
        (b'\'', b'"'),
        (b'"', b'.'),
        (b'a', b'a'),
        (b'\\', b'\\'),
        (b'\\', b'"'),
    ])
    .prop_map(|(quote, escape)| Format { quote, escape, delimiter: 1, ..Format::csv() });
    let format = prop_oneof![csv, Just(Format::text())];
    (format, prop::bool::weighted(0.15), versions).prop_map(|(mut format, gbk, version)| {
        let quote_is_backslash = format.kind == FormatKind::Csv && format.quote == b'\\';
        let version = if quote_is_backslash { 180_006 } else { version };
        format.encoding = gbk.then(|| "GBK".to_owned());
        (format, version)
    })
}

fn rules(format: &Format, version: u32, input: &[u8]) -> Rules {
    let first = Rules::first_record(format, version, input, true).unwrap().unwrap();
    Rules::new(format, version, first.eol).unwrap()
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(3000)))]

    #[test]
    fn records_are_those_of_copy((format, version) in dialect(), input in input()) {
        let expected = copy(&format, version, &input);
        if expected.refused || input.is_empty() {
            return Ok(());
        }
        let first = Rules::first_record(&format, version, &input, true).unwrap().unwrap();
        let eol_bytes = |eol| match eol { None => 0, Some(Eol::CrLf) => 2, Some(Eol::Lf | Eol::Cr) => 1 };
        prop_assert_eq!(first.eol, expected.eol);
        prop_assert_eq!(first.end, expected.records.first().map_or(0, |record| record.end) + eol_bytes(first.eol));
        let rules = Rules::new(&format, version, first.eol).unwrap();
        let scan = rules.scan(State::START, &input);
        prop_assert_eq!(scan.state.at_record_start(), expected.last_is_ended);
        prop_assert_eq!(scan.records + u64::from(!expected.last_is_ended), expected.records.len() as u64);
        prop_assert_eq!(scan.end_marker, expected.marker.map(|at| at as isize));
        for (number, record) in expected.records.iter().enumerate() {
            if record.start < input.len() {
                prop_assert_eq!(rules.record_start(&input, number as u64), Some(record.start));
            }
        }
    }

    #[test]
    fn a_first_record_is_found_as_soon_as_it_is_complete((format, version) in dialect(), input in input()) {
        let whole = Rules::first_record(&format, version, &input, true).unwrap();
        for cut in 0..input.len() {
            let part = Rules::first_record(&format, version, &input[..cut], false).unwrap();
            prop_assert!(part.is_none() || part == whole);
            if whole.is_some_and(|first| first.eol.is_some() && first.end < cut) {
                prop_assert_eq!(part, whole);
            }
        }
    }

    #[test]
    fn pieces_scan_to_the_same_as_the_whole((format, version) in dialect(), input in input()) {
        let rules = rules(&format, version, &input);
        let whole = rules.scan(State::START, &input);
        for cut in 0..=input.len() {
            let (left, right) = input.split_at(cut);
            let first = rules.scan(State::START, left);
            let second = rules.scan(first.state, right);
            prop_assert_eq!(second.state, whole.state);
            prop_assert_eq!(first.records + second.records, whole.records);
            prop_assert_eq!(first.first_border.or(second.first_border.map(|at| at + cut)), whole.first_border);
            prop_assert_eq!(second.last_border.map(|at| at + cut).or(first.last_border), whole.last_border);
            let second_marker = second.end_marker.map(|at| at + cut as isize);
            prop_assert_eq!(first.end_marker.or(second_marker), whole.end_marker);
            match rules.tail(first.state, right) {
                Tail::Border(at) => prop_assert_eq!(Some(at), second.first_border),
                Tail::EndMarker(at) => prop_assert_eq!(Some(at), second.end_marker),
                Tail::Unfinished(state) => prop_assert_eq!(state, second.state),
            }
            if Rules::is_as_inside(first.state, right) {
                prop_assert_eq!(rules.scan(State::INSIDE, right), second);
            }
            let mut both = first;
            both.append(&second, cut);
            prop_assert_eq!(both, whole);
        }
    }

    #[test]
    fn records_stand_where_one_after_the_other_ends(
        (format, version) in dialect(), input in input(), repeated in 1_usize..200, chosen in any::<u64>(),
    ) {
        let input = input.repeat(repeated);
        let rules = rules(&format, version, &input);
        let (mut expected, mut start) = (Vec::new(), 0);
        while start < input.len() {
            let end = match rules.tail(State::START, &input[start..]) {
                Tail::Border(end) => start + end,
                Tail::Unfinished(_) => input.len(),
                Tail::EndMarker(_) => break,
            };
            expected.push(start..end);
            start = end;
        }
        prop_assert_eq!(rules.ranges(&input), expected.clone());
        let (numbers, some): (Vec<u64>, Vec<_>) =
            (0..).zip(expected).filter(|(number, _)| chosen >> (number % 64) & 1 == 1).unzip();
        let beyond = rules.ranges(&input).len() as u64;
        prop_assert_eq!(rules.ranges_of(&input, &[numbers, vec![beyond]].concat()), some);
    }

    #[test]
    fn chunks_are_taken_and_refused_as_the_whole_file(
        (format, version) in dialect(), input in input(), chunk_bytes in prop_oneof![1usize..20, 60usize..140],
    ) {
        let expected = copy(&format, version, &input);
        let rules = rules(&format, version, &input);
        let mut records = Vec::new();
        for chunk in chunks(&rules, &input, chunk_bytes) {
            let bytes = &input[chunk.clone()];
            if let Err(offence) = rules.check_first_line(bytes) {
                prop_assert!(expected.refused);
                prop_assert_eq!(records.len() as u64 + offence.record, expected.records.len() as u64);
                return Ok(());
            }
            let outcome = copy(&format, version, bytes);
            records.extend(outcome.records.iter().map(|r| r.start + chunk.start..r.end + chunk.start));
            if outcome.refused {
                break;
            }
            prop_assert_eq!(counted(&rules, bytes), outcome.records.len() as u64);
            prop_assert_eq!(outcome.marker, None);
        }
        let refused = records.len() == expected.records.len() && expected.refused;
        prop_assert_eq!(records, expected.records);
        prop_assert_eq!(refused, expected.refused);
    }
}

fn counted(rules: &Rules, chunk: &[u8]) -> u64 {
    let scan = rules.scan(State::START, chunk);
    scan.records + u64::from(!scan.state.at_record_start())
}

/// Chunks as the engine makes them: the records that begin in `[k * chunk_bytes, (k + 1) * chunk_bytes)`.
fn chunks(rules: &Rules, input: &[u8], chunk_bytes: usize) -> Vec<std::ops::Range<usize>> {
    let mut chunks = Vec::new();
    let mut state = State::START;
    for range_start in (0..input.len()).step_by(chunk_bytes) {
        let range_end = input.len().min(range_start + chunk_bytes);
        let range = &input[range_start..range_end];
        let scan = rules.scan(state, range);
        let starts_here = if state.at_record_start() { Some(0) } else { scan.first_border };
        let begin = starts_here.map(|at| range_start + at).filter(|&at| at < range_end);
        let absolute = |base: usize, at: isize| (base as isize + at) as usize;
        let end = match (scan.end_marker, scan.state.at_record_start()) {
            (Some(at), _) => absolute(range_start, at),
            (None, true) => range_end,
            (None, false) => match rules.tail(scan.state, &input[range_end..]) {
                Tail::Border(at) => range_end + at,
                Tail::EndMarker(at) => absolute(range_end, at),
                Tail::Unfinished(_) => input.len(),
            },
        };
        chunks.extend(begin.filter(|&begin| begin < end).map(|begin| begin..end));
        state = scan.state;
        if state.ended() {
            break;
        }
    }
    chunks
}

#[test]
fn a_marker_behind_a_record_ends_old_servers_data() {
    let input = b"a\nx\\.\nb\n";
    let Outcome { records, marker, .. } = copy(&Format::text(), 150_018, input);
    assert_eq!((records, marker), (vec![0..1, 2..3], Some(3)));
    assert!(copy(&Format::text(), 180_006, input).refused);
}

#[test]
fn a_server_line_names_its_record() {
    let rules = Rules::new(&Format::csv(), 180_006, Some(Eol::Lf)).unwrap();
    let chunk = b"a,\"x\ny\"\nb,\"x\ny\"\nc\n";
    // In the first record the server does not know the line ending yet and counts no `\n`.
    assert_eq!(
        [1, 2, 3, 4, 5].map(|line| rules.record_of_line(chunk, line)),
        [Some(0), Some(1), Some(1), Some(2), None]
    );
}

#[test]
fn a_nul_inside_quotes_is_the_record_the_server_refuses_whatever_line_it_counts() {
    let rules = Rules::new(&Format::csv(), 130_000, Some(Eol::CrLf)).unwrap();
    // To PostgreSQL 13 the NUL escapes the closing quote, so that lines go on being counted inside quotes.
    let chunk = b"a\r\n\"b\0\"\r\nc\r\n";
    assert_eq!(
        [1, 2, 3, 9].map(|line| rules.record_of_line(chunk, line)),
        [Some(0), Some(1), Some(1), Some(1)]
    );
}
