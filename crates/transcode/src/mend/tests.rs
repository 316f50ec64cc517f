//! The reader as the engine uses it.

use super::*;
use howdah_model::{DateOrder, Eol, Error, ErrorKind, Escape, Mend};
use std::io;

/// Gives so many bytes at a time.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(into.len()).min(self.0.len());
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// Stands for the readings: what is upper case becomes lower case, what holds a `?` is not understood.
fn lower(_: &Reading, value: &[u8], out: &mut Vec<u8>) -> bool {
    if value.contains(&b'?') {
        return false;
    }
    out.extend(value.to_ascii_lowercase());
    true
}

fn shape(dialect: &Dialect, width: usize, lenient: bool) -> Shape {
    Shape {
        dialect: dialect.clone(),
        fields: vec![Field::as_it_is(); width],
        names: Vec::new(),
        data_start_byte: 0,
        data_end_byte: None,
        end: None,
        lenient,
        skips: false,
        nul: Nul::Reject,
        record_bytes_max: 1 << 20,
        read: lower,
    }
}

/// The lines, in whatever pieces the bytes come.
fn run(shape: &Shape, bytes: &[u8]) -> (Result<String, Error>, Counts) {
    let in_pieces = |piece| {
        let counts = Arc::new(Counts::new(shape.fields.len()));
        let mut lines = String::new();
        let mut reader = reader(shape, Pieces(bytes, piece), Arc::clone(&counts)).unwrap();
        let result = reader.read_to_string(&mut lines).map(|_| lines).map_err(crate::decompress::error);
        drop(reader);
        (result, Arc::into_inner(counts).unwrap())
    };
    let told = |(lines, counts): &(Result<String, Error>, Counts)| {
        let mends = Mend::ALL.map(|mend| counts.mended(mend));
        (lines.clone().map_err(|error| error.to_string()), mends, counts.left_out())
    };
    let whole = in_pieces(1 << 20);
    for piece in [1, 5] {
        assert_eq!(told(&in_pieces(piece)), told(&whole), "{piece}");
    }
    whole
}

fn strict(dialect: &Dialect, width: usize, text: &str) -> Result<String, Error> {
    run(&shape(dialect, width, false), text.as_bytes()).0
}

fn mended(dialect: &Dialect, width: usize, bytes: &[u8]) -> (String, Vec<(Mend, u64)>) {
    let (lines, counts) = run(&shape(dialect, width, true), bytes);
    let counted = Mend::ALL.map(|mend| (mend, counts.mended(mend)));
    (lines.unwrap(), counted.into_iter().filter(|(_, count)| *count > 0).collect())
}

#[test]
fn any_dialect_becomes_lines_of_copy_text() {
    let dialect = Dialect {
        delimiter: "||".to_owned(),
        eol: None,
        nulls: vec!["n/a".to_owned(), String::new()],
        comment: Some("#".to_owned()),
        ..Dialect::csv()
    };
    let lines = strict(&dialect, 2, "# x\na||\"b\tc\\\"\r\nn/a||\"\"\n||\"n/a\"\r\"d\n\"||e").unwrap();
    assert_eq!(lines, "a\tb\\tc\\\\\n\\N\t\n\\N\tn/a\nd\\n\te\n");
}

#[test]
fn records_that_begin_like_a_comment_are_read_and_comments_counted() {
    let dialect = Dialect { comment: Some("#".to_owned()), ..Dialect::csv() };
    let bytes = b"a,1\n# a remark\n#rust,2\n#\n#go,\"3\n4\"\nb,5\n# end";
    for lenient in [false, true] {
        let (lines, counts) = run(&shape(&dialect, 2, lenient), bytes);
        assert_eq!(lines.unwrap(), "a\t1\n#rust\t2\n#go\t3\\n4\nb\t5\n");
        assert_eq!(counts.comments(), 3);
        assert!(Mend::ALL.iter().all(|mend| counts.mended(*mend) == 0));
    }
}

#[test]
fn fields_are_left_out_and_read() {
    let mut shape = shape(&Dialect::csv(), 3, false);
    shape.fields[1].column = None;
    shape.fields[2].reading = Some(Reading::Date(DateOrder::Dmy));
    shape.data_start_byte = 4;
    shape.data_end_byte = Some(20);
    let (lines, counts) = run(&shape, b"h,h\nA,B,C\n1,2,DD\n,,\nfooter");
    assert_eq!(lines.unwrap(), "A\tc\n1\tdd\n\\N\t\\N\n");
    assert_eq!((counts.values_read(2), counts.values_read(0)), (2, 0));
}

#[test]
fn a_value_that_its_reading_does_not_understand_never_gets_through() {
    let reading = Some(Reading::Date(DateOrder::Dmy));
    let field =
        |name: &str| Field { column: Some(name.to_owned()), reading: reading.clone(), empty_is_null: false };
    let strictly = Shape { fields: vec![field("from"), field("to")], ..shape(&Dialect::csv(), 2, false) };
    let text = b"A,B\n,D\nC,?\nE,F\n";
    let error = run(&strictly, text).0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Record);
    assert_eq!(error.message(), "expected a value written like d/m/y, got another spelling");
    let place = error.place();
    assert_eq!((place.record, place.byte, place.column.as_deref()), (Some(3), Some(7), Some("to")));
    assert!(error.hint().unwrap().contains("--types"));

    let leniently = Shape { lenient: true, ..strictly };
    let (lines, counts) = run(&leniently, text);
    assert_eq!(lines.unwrap(), "a\tb\n\\N\td\ne\tf\n");
    let reason = "column to: expected a value written like d/m/y, got another spelling".to_owned();
    assert_eq!(counts.left_out(), [LeftOut { record: 3, byte: 7, reason }]);
    assert_eq!((counts.values_read(0), counts.values_read(1)), (2, 3));
    assert_eq!(locate(&leniently, &text[..], 3).unwrap(), Some((4, 11)));
}

#[test]
fn copy_text_keeps_its_meaning() {
    let text = Dialect {
        delimiter: "\t".to_owned(),
        quote: None,
        escape: Escape::Backslash,
        nulls: vec!["\\N".to_owned()],
        ..Dialect::csv()
    };
    let lines = strict(&text, 2, "\\N\t\\\\N\na\\\nb\t\\x41\\\t\n\\.\nafter").unwrap();
    assert_eq!(lines, "\\N\t\\\\N\na\\nb\tA\\t\n");
}

#[test]
fn strictly_the_first_record_that_does_not_fit_is_an_error_with_its_place() {
    let csv = Dialect::csv();
    let faults = [
        ("1,2\n3\n4\n", "expected 2 fields, got 1"),
        ("1,2\n3,4,5\n", "expected 2 fields, got 3"),
        ("1,2\n\n3,4\n", "expected 2 fields, got 1"),
        ("1,2\n3,4\"\n", "a quote stands inside an unquoted field, 3 bytes into the record"),
        (
            "1,2\n3,\"4\"5\n",
            "expected a delimiter behind the closing quote, got text, 5 bytes into the record",
        ),
        ("1,2\n3,\"4\n", "the quote that opens 2 bytes into the record is never closed"),
        (
            "1,2\n3,4\r\n",
            "another line ending than the file's stands outside quotes, 3 bytes into the record",
        ),
        ("1,2\n3,\0\n", "the record holds a NUL byte"),
    ];
    for (text, message) in faults {
        let error = strict(&csv, 2, text).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Record, message));
        assert_eq!((error.place().record, error.place().byte), (Some(2), Some(4)), "{message}");
        assert!(error.hint().unwrap().contains("--lenient"));
    }
    let (lines, _) = run(&shape(&csv, 1, false), b"ok\nb\xFFd\n");
    assert_eq!(lines.unwrap_err().message(), "the bytes 1 byte into the record are no character of UTF-8");
}

#[test]
fn the_lines_before_an_error_come_first() {
    let mut lines = Vec::new();
    let mut reader =
        reader(&shape(&Dialect::csv(), 1, false), &b"a\nb,c\n"[..], Arc::new(Counts::new(1))).unwrap();
    let mut piece = [0; 1];
    while let Ok(1) = reader.read(&mut piece) {
        lines.extend(piece);
    }
    assert_eq!(lines, b"a\n");
    assert!(reader.read(&mut piece).is_err());
}

#[test]
fn a_record_longer_than_the_limit_is_an_error_or_left_out() {
    let csv = Dialect::csv();
    let mut short = Shape { record_bytes_max: 5000, ..shape(&csv, 1, false) };
    let file = [b"a\n".to_vec(), vec![b'x'; 5000], b"\nb\n".to_vec()].concat();
    let error = run(&short, &file).0.unwrap_err();
    assert_eq!(
        (error.kind(), error.place().record, error.place().byte),
        (ErrorKind::RecordTooLong, Some(2), Some(2))
    );
    assert!(run(&Shape { record_bytes_max: 5001, ..short.clone() }, &file).0.is_ok());
    short.lenient = true;
    let (lines, counts) = run(&short, &file);
    assert_eq!((lines.unwrap().as_str(), counts.mended(Mend::LeftOut)), ("a\nb\n", 1));
}

#[test]
fn leniently_rows_become_as_wide_as_the_table() {
    let (lines, mends) = mended(&Dialect::csv(), 3, b"1,2,3\n4\n\n5,6,7,,\n,,,,,\n8,9,10,11\n12,13,14\n");
    assert_eq!(lines, "1\t2\t3\n4\t\\N\t\\N\n5\t6\t7\n12\t13\t14\n");
    let expected = [(Mend::ShortRow, 1), (Mend::SurplusEmpty, 1), (Mend::BlankRow, 2), (Mend::LeftOut, 1)];
    assert_eq!(mends, expected);
}

#[test]
fn records_left_out_are_shown_with_their_place() {
    let (_, counts) = run(&shape(&Dialect::csv(), 1, true), b"a\nb,c\n\nd\ne,f\n");
    let places: Vec<_> =
        counts.left_out().into_iter().map(|out| (out.record, out.byte, out.reason)).collect();
    let reason = "expected 1 field, got 2".to_owned();
    assert_eq!(places, [(2, 2, reason.clone()), (5, 9, reason)]);
}

#[test]
fn records_that_are_kept_stand_among_the_others_as_they_were() {
    let bytes = b"a\nb,\"c\nd\"\n\xff\n\ne,f\ng";
    for (lenient, kept) in
        [(false, &["b,\"c\nd\"\n", "\u{fffd}\n", "e,f\n"][..]), (true, &["b,\"c\nd\"\n", "e,f\n"])]
    {
        let (lines, counts) = run(&Shape { skips: true, ..shape(&Dialect::csv(), 1, lenient) }, bytes);
        let lines = lines.unwrap();
        let found: Vec<Kept> = lines.lines().filter_map(|line| Kept::parse(line.as_bytes())).collect();
        let told: Vec<_> =
            found.iter().map(|kept| String::from_utf8_lossy(&kept.bytes).into_owned()).collect();
        assert_eq!(told, kept, "{lenient}");
        assert!(found.iter().all(|kept| bytes[kept.byte as usize..].starts_with(&kept.bytes)));
        assert!(lines.starts_with("a\n\0") && lines.ends_with("\ng\n") && counts.left_out().is_empty());
    }
}

#[test]
fn leniently_a_row_in_another_style_is_read_in_it() {
    let rows: [(&str, &str, Mend); 7] = [
        ("1;2;3\n", "1\t2\t3\n", Mend::OtherDelimiter),
        ("1\t\"a\tb\"\t3\n", "1\ta\\tb\t3\n", Mend::OtherDelimiter),
        ("1, \"a, b\", 3\n", "1\ta, b\t3\n", Mend::OtherDelimiter),
        ("1,'a,b',3\n", "1\ta,b\t3\n", Mend::OtherQuotes),
        ("1,\"a \\\"b\\\", c\",3\n", "1\ta \"b\", c\t3\n", Mend::OtherQuotes),
        ("1,2,3\r\n", "1\t2\t3\n", Mend::OtherLineEnding),
        ("1,\"2\",\"3\"\r\n", "1\t2\t3\n", Mend::OtherLineEnding),
    ];
    for (row, line, mend) in rows {
        for (before, after) in [("", ""), ("x,y,z\n", "\"u\",v,w\n")] {
            let (lines, mends) = mended(&Dialect::csv(), 3, format!("{before}{row}{after}").as_bytes());
            let expected =
                [before, line, after].concat().replace("x,y,z", "x\ty\tz").replace("\"u\",v,w", "u\tv\tw");
            assert_eq!((lines, mends), (expected, vec![(mend, 1)]), "{row}");
        }
    }
}

#[test]
fn leniently_prose_and_times_of_day_are_no_rows_in_another_style() {
    for (row, after, line, mend) in [
        ("oak 3 2020-01-02\n", "fir,4,2020-01-03\n", "oak\t3\t2020-01-02\n", Mend::OtherDelimiter),
        ("oak:3:2020\n", "fir,4,2021\n", "oak\t3\t2020\n", Mend::OtherDelimiter),
        ("The Data Export\n", "fir,4,2021\n", "The Data Export\t\\N\t\\N\n", Mend::ShortRow),
        ("The Data Export\n", "fir,oak,elm\n", "The Data Export\t\\N\t\\N\n", Mend::ShortRow),
        ("10:30:00\n", "1,2,3\n", "10:30:00\t\\N\t\\N\n", Mend::ShortRow),
        ("\"\",\"\"\n", "1,2,3\n", "\t\t\\N\n", Mend::ShortRow),
    ] {
        let (lines, mends) = mended(&Dialect::csv(), 3, format!("{row}{after}").as_bytes());
        assert_eq!((lines, mends), (format!("{line}{}", after.replace(',', "\t")), vec![(mend, 1)]), "{row}");
    }
}

#[test]
fn leniently_a_row_that_ends_otherwise_does_not_swallow_the_next() {
    let crlf = Dialect { eol: Some(Eol::CrLf), ..Dialect::csv() };
    let (lines, mends) = mended(&crlf, 2, b"1,2\r\n3,4\n5,6\r\n7,8\r9,10\r\n");
    assert_eq!(lines, "1\t2\n3\t4\n5\t6\n7\t8\n9\t10\n");
    assert_eq!(mends, [(Mend::OtherLineEnding, 2)]);
    let (lines, _) = mended(&crlf, 2, b"1,a\nb\r\n3,4\r\n");
    assert_eq!(lines, "1\ta\\nb\n3\t4\n", "a line ending inside the last field");
}

#[test]
fn leniently_a_quote_never_swallows_the_records_behind_it() {
    let rows = [
        ("1,5\" pipe,3\n", "1\t5\" pipe\t3\n"),
        ("1,\"5 pipe,3\n", "1\t\"5 pipe\t3\n"),
        ("1,2,\"3\n", "1\t2\t\"3\n"),
        ("1,2,\"3,4\n", "1\t2\t3,4\n"),
        ("1,\"a \"b\" c\",3\n", "1\ta \"b\" c\t3\n"),
        ("1,\"a\"b,3\n", "1\t\"a\"b\t3\n"),
        ("1,\"a\" ,3\n", "1\ta\t3\n"),
        ("1,\"a\nsays \"b\"\nc\",3\n", "1\ta\\nsays \"b\"\\nc\t3\n"),
    ];
    let after = ["4,\"5,5\",6\n", "7,8,9\n", "\"10\",\"11\",\"12\"\n"].concat();
    let lines_after = "4\t5,5\t6\n7\t8\t9\n10\t11\t12\n";
    for (row, line) in rows {
        let (lines, mends) = mended(&Dialect::csv(), 3, format!("{row}{after}").as_bytes());
        assert_eq!(lines, format!("{line}{lines_after}"), "{row}");
        assert_eq!(mends, [(Mend::StrayQuote, 1)], "{row}");
    }
}

#[test]
fn leniently_a_quote_of_another_style_swallows_no_record_either() {
    let behind = ["4,5,6\n".repeat(20), "7,8,'\n".to_owned(), "9,10,11\n".repeat(9)].concat();
    for row in ["1,2,',more\n", "1,',3,more\n"] {
        let (lines, mends) = mended(&Dialect::csv(), 3, format!("{row}{behind}").as_bytes());
        assert_eq!(lines, behind.replace(',', "\t"), "{row}");
        assert_eq!(mends, [(Mend::LeftOut, 1)], "{row}");
    }
    let (lines, mends) = mended(&Dialect::csv(), 3, format!("1,'a\nb',3\n{behind}").as_bytes());
    assert_eq!(lines, format!("1\ta\\nb\t3\n{}", behind.replace(',', "\t")), "several lines of one record");
    assert_eq!(mends, [(Mend::OtherQuotes, 1)]);
}

#[test]
fn leniently_a_record_that_is_too_wide_is_left_out_and_not_torn_apart() {
    let behind = "4,\"5\n5\",6\n7,8,9\n10,11,12\n";
    for row in [
        "1,2,\"\n\",more\n",
        "1,2,\"a\n\"\"\",more\n",
        "1,\"\n,\",3,more\n",
        "\"1\",\"2\",\"\n\n\",\"more\"\n",
    ] {
        let (lines, mends) = mended(&Dialect::csv(), 3, format!("{row}{behind}").as_bytes());
        assert_eq!(lines, "4\t5\\n5\t6\n7\t8\t9\n10\t11\t12\n", "{row}");
        assert_eq!(mends, [(Mend::LeftOut, 1)], "{row}");
    }
}

#[test]
fn leniently_a_record_that_is_too_wide_stays_one_before_another_that_does_not_fit() {
    let row = "1\t2\t\"\n\t'\t\"\tmore\n";
    let dialect = Dialect { delimiter: "\t".to_owned(), ..Dialect::csv() };
    for (next, line, expected) in [
        ("4\t5\t6\tmore\n", "", vec![(Mend::LeftOut, 2)]),
        ("4\t5\n", "4\t5\t\\N\n", vec![(Mend::ShortRow, 1), (Mend::LeftOut, 1)]),
        ("4\t5\t\"6\n", "4\t5\t\"6\n", vec![(Mend::StrayQuote, 1), (Mend::LeftOut, 1)]),
    ] {
        let (lines, mends) = mended(&dialect, 3, format!("{row}{next}7\t8\t9\n").as_bytes());
        assert_eq!((lines, mends), (format!("{line}7\t8\t9\n"), expected), "{next}");
    }
}

#[test]
fn leniently_fields_of_several_lines_stay_beside_lost_quotes() {
    let after = "\"4\",\"5\",\"6\"\n\"7\",\"8\",\"9\"\n";
    let rows = [
        ("\"1,\"a\nb\",\"3\"\n", "\"1\ta\\nb\t3\n"),
        ("\"1\",\"a\nb\",\"3\n", "1\ta\\nb\t\"3\n"),
        ("\"1, 1,\"2\",\"3\"\n", "1, 1\t2\t3\n"),
        ("\"1\",\"a\nb\",\"3\",,\n", "1\ta\\nb\t3\n"),
    ];
    for (row, line) in rows {
        let (lines, _) = mended(&Dialect::csv(), 3, format!("{row}{after}").as_bytes());
        assert_eq!(lines, format!("{line}4\t5\t6\n7\t8\t9\n"), "{row}");
    }
}

#[test]
fn leniently_bytes_that_cannot_be_stored_are_replaced() {
    let (lines, mends) = mended(&Dialect::csv(), 2, b"a,\xE9\n\0,b\0c\n");
    assert_eq!(lines, "a\t\u{fffd}\n\\N\tbc\n");
    assert_eq!(mends, [(Mend::BrokenBytes, 1), (Mend::NulBytes, 1)]);
}

#[test]
fn a_line_is_found_again_in_the_file() {
    let shape = shape(&Dialect::csv(), 2, true);
    let file = b"1,2\n\n3,4,5\n6,\"7\n\"\n8,9\n";
    let found: Vec<_> = (1..=4).map(|line_no| locate(&shape, &file[..], line_no).unwrap()).collect();
    assert_eq!(found, [Some((1, 0)), Some((4, 11)), Some((5, 18)), None]);
}

#[test]
fn errors_of_the_input_pass_through() {
    struct Breaks;
    impl Read for Breaks {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(Error::new(ErrorKind::SourceTransient, "reset")))
        }
    }
    let mut reader = reader(&shape(&Dialect::csv(), 1, false), Breaks, Arc::new(Counts::new(1))).unwrap();
    let error = crate::decompress::error(reader.read(&mut [0; 8]).unwrap_err());
    assert_eq!((error.kind(), error.message()), (ErrorKind::SourceTransient, "reset"));
}

#[test]
fn byte_order_marks_of_further_files_are_told_or_dropped() {
    let bytes = "1,a\n\u{feff}2,\u{feff}b\n\u{feff}\"3\",c\n".as_bytes();
    let (refused, _) = run(&shape(&Dialect::csv(), 2, false), bytes);
    let error = refused.unwrap_err();
    assert_eq!(
        (error.message(), error.place().record),
        ("the record begins with a byte order mark", Some(2))
    );
    let (lines, counts) = run(&shape(&Dialect::csv(), 2, true), bytes);
    assert_eq!(lines.unwrap(), "1\ta\n2\t\u{feff}b\n3\tc\n");
    assert_eq!(counts.mended(Mend::ByteOrderMark), 2);
}

#[test]
fn comments_that_declare_more_or_fewer_names_end_what_would_be_mended() {
    let more = b"1 a\n#Fields: x y z\n2 b\n";
    // It has the shape of a record.
    let fewer = b"1 a\n#Fields: x\n2\n";
    let dialect = Dialect { delimiter: " ".to_owned(), comment: Some("#".to_owned()), ..Dialect::csv() };
    let names = vec!["no".to_owned(), "name".to_owned()];
    let mut read = Shape { names, ..shape(&dialect, 2, true) };
    for (lenient, skips) in [(true, false), (false, true)] {
        (read.lenient, read.skips) = (lenient, skips);
        for bytes in [&more[..], fewer] {
            assert_eq!(run(&read, bytes).0.unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
    read.names = Vec::new();
    assert!(run(&read, more).0.is_ok());
}
