//! The walk over fields, rows across buffers, and what is left to the server.

use super::*;

fn encoder(format: &Format, columns: &[BinaryType]) -> BinaryEncoder {
    BinaryEncoder::new(format, None, columns, "UTC").unwrap()
}

/// The rows, decoded by their lengths alone.
fn rows(encoder: &BinaryEncoder, records: &str, buffer_bytes: usize) -> Option<Vec<Vec<Option<Vec<u8>>>>> {
    let (mut sent, mut from) = (Vec::new(), 0);
    loop {
        let mut buffer = vec![0xAA; buffer_bytes];
        let encoded = encoder.encode(records.as_bytes(), from, &mut buffer)?;
        sent.extend_from_slice(&buffer[..encoded.length]);
        from = encoded.taken;
        if encoded.is_done {
            break;
        }
    }
    let mut rest = sent.strip_prefix(HEADER.as_slice()).unwrap();
    let mut rows = Vec::new();
    loop {
        let (count, after) = rest.split_first_chunk().unwrap();
        rest = after;
        let count = i16::from_be_bytes(*count);
        if count < 0 {
            assert!(rest.is_empty());
            return Some(rows);
        }
        let mut row = Vec::new();
        for _ in 0..count {
            let (length, after) = rest.split_first_chunk().unwrap();
            let length = i32::from_be_bytes(*length);
            let (value, after) = after.split_at(usize::try_from(length).unwrap_or(0));
            rest = after;
            row.push((length >= 0).then(|| value.to_vec()));
        }
        rows.push(row);
    }
}

fn texts(row: &[Option<Vec<u8>>]) -> Vec<Option<&str>> {
    row.iter().map(|value| value.as_deref().map(|value| std::str::from_utf8(value).unwrap())).collect()
}

#[test]
fn csv_fields_are_cut_as_copy_cuts_them() {
    let encoder = encoder(&Format::csv(), &[BinaryType::Text, BinaryType::Text]);
    let records = "a,\n\"b,\"\"c\"\"\nd\",\"\"\nx\"y,\"z,\"\"\"\"\"\"\ne,f";
    let rows = rows(&encoder, records, 256).unwrap();
    assert_eq!(texts(&rows[0]), [Some("a"), None]);
    assert_eq!(texts(&rows[1]), [Some("b,\"c\"\nd"), Some("")]);
    assert_eq!(texts(&rows[2]), [Some("xy,z"), Some("\"\"")]);
    assert_eq!(texts(&rows[3]), [Some("e"), Some("f")]);
}

#[test]
fn a_field_of_any_length_is_cut_right_at_any_place() {
    let encoder = encoder(&Format::csv(), &[BinaryType::Text, BinaryType::Text]);
    for length in 0..200 {
        let long = "x".repeat(length);
        let records = format!("1{long},\"{long}\"\n\"{long}\"\"\",{long}y\n");
        let rows = rows(&encoder, &records, 1024).unwrap();
        assert_eq!(texts(&rows[0]), [Some(format!("1{long}").as_str()), Some(long.as_str())]);
        assert_eq!(texts(&rows[1]), [Some(format!("{long}\"").as_str()), Some(format!("{long}y").as_str())]);
    }
}

#[test]
fn text_fields_have_their_backslashes_undone() {
    let encoder = encoder(&Format::text(), &[BinaryType::Text, BinaryType::Text]);
    let rows = rows(&encoder, "a\\tb\t\\N\n\\\\N\t\\\n\\\tc\n", 256).unwrap();
    assert_eq!(texts(&rows[0]), [Some("a\tb"), None]);
    assert_eq!(texts(&rows[1]), [Some("\\N"), Some("\n\tc")]);
    for uncertain in ["a\\.\tb\n", "\\.\n", "a\t\\", "\\377\tb\n", "\\0\tb\n"] {
        assert_eq!(self::rows(&encoder, uncertain, 256), None, "{uncertain}");
    }
}

#[test]
fn rows_go_on_in_the_next_buffer_and_none_is_cut() {
    let encoder = encoder(&Format::csv(), &[BinaryType::Int4, BinaryType::Text]);
    let records: String = (0..50).map(|no| format!("{no},{}\n", "x".repeat(no % 7))).collect();
    let whole = rows(&encoder, &records, 4096).unwrap();
    assert_eq!(whole.len(), 50);
    for buffer_bytes in 45..200 {
        assert_eq!(rows(&encoder, &records, buffer_bytes).as_ref(), Some(&whole), "{buffer_bytes}");
    }
    // A row that no buffer holds is sent as it is.
    assert_eq!(rows(&encoder, &records, 30), None);
}

#[test]
fn what_is_not_certain_is_not_written() {
    let encoder = encoder(&Format::csv(), &[BinaryType::Int4, BinaryType::Date]);
    assert!(rows(&encoder, "1,2024-01-01\n,\n", 256).is_some());
    for uncertain in [
        "1\n",
        "1,2024-01-01,\n",
        "1,2024-01-01\r\n",
        "\n",
        "1,now\n",
        "\"\",2024-01-01\n",
        "2147483648,\n",
        "1,\"2024-01-01",
        "\\.\n",
    ] {
        assert_eq!(rows(&encoder, uncertain, 256), None, "{uncertain}");
    }
    let bytes: &[u8] = b"\xff\n";
    let text = self::encoder(&Format::csv(), &[BinaryType::Text]);
    assert_eq!(text.encode(bytes, 0, &mut [0; 64]), None);
}

#[test]
fn formats_that_say_more_than_values_are_the_servers() {
    let new = |format: Format| BinaryEncoder::new(&format, None, &[BinaryType::Text], "UTC");
    assert!(new(Format::csv()).is_some() && new(Format::text()).is_some());
    assert!(new(Format { force_not_null: ColumnChoice::All, ..Format::csv() }).is_none());
    assert!(new(Format { default: Some("x".to_owned()), ..Format::csv() }).is_none());
    assert!(new(Format { encoding: Some("LATIN1".to_owned()), ..Format::csv() }).is_none());
    assert!(new(Format { encoding: Some("SJIS".to_owned()), ..Format::csv() }).is_none());
}

#[test]
fn a_quoted_spelling_of_null_that_may_be_null_is_the_servers_to_read() {
    let format = Format { force_null: ColumnChoice::Named(vec!["a".to_owned()]), ..Format::csv() };
    let encoder = encoder(&format, &[BinaryType::Text]);
    for (bytes, is_certain) in
        [("a\n", true), ("\"a\"\n", true), ("\n", true), ("\"\"\n", false), ("\"\"\"\"\n", true)]
    {
        assert_eq!(encoder.encode(bytes.as_bytes(), 0, &mut [0; 64]).is_some(), is_certain, "{bytes}");
    }
    let format = Format { null: "NA".to_owned(), ..format };
    let encoder = self::encoder(&format, &[BinaryType::Text]);
    for (bytes, is_certain) in [("\"\"\n", true), ("\"NA\"\n", false), ("N\"A\"\n", false), ("NA\n", true)] {
        assert_eq!(encoder.encode(bytes.as_bytes(), 0, &mut [0; 64]).is_some(), is_certain, "{bytes}");
    }
}

/// Every type, and those that hold others.
fn types() -> Vec<BinaryType> {
    let built_in = (0..5000).filter_map(BinaryType::built_in);
    let mut types: Vec<BinaryType> = built_in.chain([BinaryType::Vector, BinaryType::Geometry]).collect();
    let range = |bound: &BinaryType| BinaryType::Range { bound: Box::new(bound.clone()) };
    let array =
        |element: &BinaryType| BinaryType::Array { element_oid: 1, element: Box::new(element.clone()) };
    types.extend([range(&BinaryType::Int4), array(&BinaryType::Text), array(&range(&BinaryType::Date))]);
    types
}

#[test]
fn no_bytes_and_no_room_make_a_type_panic() {
    const BYTES: &[u8] = b"0123456789999901-+:./,[](){}\"\\ aefxTZ\x0b\xc3\xa9";
    const BEGINNINGS: [&[u8]; 9] = [
        b"",
        b"{",
        b"{{",
        b"[",
        b"1 year -",
        b"010000",
        b"0103000000010000000",
        b"9999-12-31 23:",
        b"9223372036854775808",
    ];
    let mut rng = fastrand::Rng::with_seed(1);
    for column in types() {
        let encoder = encoder(&Format::csv(), std::slice::from_ref(&column));
        for _ in 0..4000 {
            let mut value = rng.choice(BEGINNINGS).unwrap().to_vec();
            value.extend((0..rng.usize(0..40)).map(|_| BYTES[rng.usize(0..BYTES.len())]));
            let room = rng.usize(0..90);
            let mut buffer = vec![0; room];
            let mut out = Out::new(&mut buffer);
            let written = encoder.value(&column, &value, &mut out);
            assert!(written.is_none() || out.length() >= 4, "{column:?}");
        }
    }
}

#[test]
fn a_sample_tells_how_long_rows_are_and_what_is_not_certain() {
    let encoder = encoder(&Format::csv(), &[BinaryType::Int4, BinaryType::Text, BinaryType::Date]);
    let records = "7,\"a,b\",2024-01-01\n8,,now\n9,c";
    let estimate = encoder.estimate(records.as_bytes());
    let whole = records.len() as u64 - 3;
    assert_eq!((estimate.records, estimate.bytes), (2, whole));
    assert_eq!(estimate.sent_bytes, (2 + 8 + 7 + 8) + (2 + 8 + 4 + 7));
    let columns: Vec<_> = estimate.columns.iter().map(|of| (of.values, of.bytes, of.uncertain)).collect();
    assert_eq!(columns, [(2, 2, 0), (1, 3, 0), (2, 13, 1)]);
}

#[test]
fn arrays_of_shapes_have_colons_between_them() {
    let array = BinaryType::Array { element_oid: 70_000, element: Box::new(BinaryType::Geometry) };
    let encoder = encoder(&Format::csv(), &[array]);
    let point = "0101000000000000000000f03f0000000000000040";
    let written = |shapes: &str| rows(&encoder, &format!("\"{{{shapes}}}\"\n"), 512);
    assert!(written(point).is_some());
    let digits = written(&format!("{point}:{point}"));
    assert!(digits.is_some());
    // Commas stand inside of shapes.
    assert_eq!(written("POINT(1 2): POINT(1 2) "), digits);
    assert!(written("LINESTRING(1 2,3 4):NULL").is_some());
    assert!(written("\"\"LINESTRING(1 2,3 4)\"\":\"\"POINT(1 2)\"\"").is_some());
    assert_eq!(written(&format!("{point},{point}")), None);
    assert_eq!(written("POINT(1 2),POINT(1 2)"), None);
}
