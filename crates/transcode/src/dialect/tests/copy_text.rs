//! COPY's text format, with and without the signs that only it has.

use super::*;

fn is_copy_text(finding: &Finding) -> bool {
    finding.dialect.quote.is_none() && finding.dialect.escape == Escape::Backslash
}

#[test]
fn quotes_that_are_data_are_data_of_copy_text_too() {
    let jsons: String =
        (0..40).map(|no| format!("{no}\t{{\"a\": \"x\\\\ny {no}\"}}\t12\" C:\\\\temp\n")).collect();
    let breaks: String = (0..5).map(|no| format!("{no}\tone \"{no}\"\\n\\nTwo\n")).collect();
    for bytes in [
        "1\ta \"b\"\tC:\\\\temp\n2\tline\\ntwo\tD:\\\\x\n3\tx\ty\n",
        "1\t5\" pipe\tC:\\\\temp\n2\tNULL\tx\n",
        &jsons,
        &breaks,
    ] {
        let finding = text(bytes);
        assert!(is_copy_text(&finding), "{bytes:?}: {}", finding.describe());
        assert!(finding.unsure.is_empty(), "{bytes:?}: {:?}", finding.unsure);
    }
    assert_eq!(rows(&text(&jsons), jsons.as_bytes())[1], ["1", "{\"a\": \"x\\ny 1\"}", "12\" C:\\temp"]);
}

#[test]
fn backslashes_of_documents_and_paths_are_no_copy_text() {
    for (bytes, is_told) in [
        ("1\t{\"p\": \"C:\\\\data\\\\x\"}\n2\t{\"p\": \"a\\nb\\n\"}\n3\t{\"p\": \"\\n \\n \\n\"}\n", false),
        ("1\tC:\\data\\\\x\n2\tD:\\games\n", false),
        ("1\tC:\\temp\n2\tC:\\new\n3\tCORP\\tina\n4\tCORP\\nora\n", true),
        ("1\t\\x0102\n2\t\\xff\n", false),
        ("id\tt\n1\t\"a\tb\"\n2\t\"C:\\\\temp\"\n3\te\n", false),
    ] {
        let finding = text(bytes);
        assert!(!is_copy_text(&finding), "{bytes:?}: {}", finding.describe());
        let told = finding.unsure.iter().any(|unsure| unsure.option == "--format text");
        assert_eq!(told, is_told, "{bytes:?}: {:?}", finding.unsure);
    }
}

/// As UNLOAD of Redshift, OUTFILE of MySQL and Hive write.
#[test]
fn copy_text_has_any_delimiter() {
    for delimiter in ["|", ",", "\x01", ";"] {
        let bytes = "1|C:\\\\temp\\\\x|\\N\n2|D:\\\\new|y\n3|a\\\\b|\\N\n".replace('|', delimiter);
        let finding = text(&bytes);
        assert!(is_copy_text(&finding), "{bytes:?}: {}", finding.describe());
        assert_eq!((finding.dialect.delimiter.as_str(), finding.dialect.nulls.len()), (delimiter, 1));
        assert_eq!(rows(&finding, bytes.as_bytes())[0][1], "C:\\temp\\x");
        // `\N` alone is used by others, too.
        let other = text(&bytes.replace("\\\\", "\\d"));
        assert!(!is_copy_text(&other), "{}", other.describe());
        let unsure = text(&bytes.replace("\\N", "")).unsure;
        assert!(unsure.iter().any(|unsure| unsure.option == "--format text"), "{unsure:?}");
    }
    let quoted = "1,\"C:\\\\temp\",\\N\n2,\"a, b\",3\n";
    assert_eq!(text(quoted).dialect.quote, Some(b'"'));
}

#[test]
fn documents_are_not_cut_at_their_colons_and_blanks() {
    type Line = fn(usize) -> String;
    let written: [Line; 4] = [
        |no| format!("{no}\t{{\"a\": \"line {no}\", \"p\": \"C\"}}\n"),
        |no| format!("{{\"a\": \"line {no}\", \"p\": \"C\"}}\t{no}\n"),
        |no| format!("{{\"a\": \"line {no}\", \"p\": \"C\"}}\tx\n"),
        |no| format!("{{\"a\":: {no}, \"b\":: {no}}}\tx\n"),
    ];
    for line in written {
        for delimiter in ["\t", "|", ";"] {
            let bytes: String = (0..300).map(|no| line(no).replace('\t', delimiter)).collect();
            if bytes.contains("::") && delimiter != "\t" {
                continue;
            }
            let finding = text(&bytes);
            let found = (finding.dialect.delimiter.as_str(), finding.width);
            assert_eq!(found, (delimiter, 2), "{}: {}", line(1), finding.describe());
        }
    }
}

/// As OUTFILE of MySQL writes with ENCLOSED BY.
#[test]
fn a_backslash_before_a_line_ending_in_quotes_is_told() {
    let bytes = "1,\"say \\\"hi\\\"\",\"a\"\n2,\"C:\\\\a\",\"b\"\n3,\"Line\\\nTwo\",\"b\"\n";
    let finding = text(bytes);
    assert_eq!((finding.dialect.quote, finding.dialect.escape), (Some(b'"'), Escape::Backslash));
    assert!(finding.unsure.iter().any(|unsure| unsure.what.contains("line endings")), "{:?}", finding.unsure);
    let finding = text(&bytes.replace("Line\\", "Line\\\\"));
    assert!(finding.unsure.is_empty(), "{:?}", finding.unsure);
}

/// As Excel writes its text, and others one of their columns.
#[test]
fn quotes_around_whole_fields_are_no_data_of_copy_text() {
    let share = |no: usize| ["finance", "backup", "team", "2024"][no % 4];
    let excel: String = (0..40)
        .map(|no| match no % 8 {
            0 => format!("{no}\t2\t3\t4\t\"Smith, John\"\t\\\\srv\\{}\n", share(no / 8)),
            _ => format!("{no}\t2\t3\t4\tSmith {no}\t\\\\srv\\{}\n", share(no)),
        })
        .collect();
    let finding = text(&excel);
    assert_eq!(finding.dialect.quote, Some(b'"'), "{}", finding.describe());
    assert_eq!(rows(&finding, excel.as_bytes())[0][4..], ["Smith, John", "\\\\srv\\finance"]);
    let strings: String = (0..40).map(|no| format!("{no}\t2\t3\tx\t\"a\\n\\nB {no}\"\n")).collect();
    for bytes in [&excel, &strings] {
        let finding = text(bytes);
        assert_eq!(finding.dialect.quote, Some(b'"'), "{}", finding.describe());
        assert!(finding.unsure.iter().any(|unsure| unsure.option == "--format text"), "{:?}", finding.unsure);
    }
    for delimiter in [",", ";", "|"] {
        let line = |no: usize| format!("{no},10,20,\"C:\\\\temp\",\\N\n").replace(',', delimiter);
        let finding = text(&(0..40).map(line).collect::<String>());
        assert_eq!(finding.dialect.quote, Some(b'"'), "{}", finding.describe());
        assert!(!finding.may_escape_with.contains(&None), "{}", finding.describe());
    }
}

#[test]
fn names_of_users_and_expressions_hold_no_line_breaks() {
    for bytes in [
        "1\tAD\\t10452\n2\tAD\\n20871\n3\tAD\\t99120\n",
        "1\tAD\\Tina\n2\tAD\\nORA\n3\tAD\\tINA\n4\tAD\\rUDI\n",
        "1\t[\\r\\n]\n2\t[\\r\\n]+\n3\t\\r?\\n\n",
    ] {
        let finding = text(bytes);
        assert!(!is_copy_text(&finding), "{bytes:?}: {}", finding.describe());
    }
}

#[test]
fn backslashes_that_end_paths_in_quotes_do_not_escape() {
    for (bytes, may) in [
        ("1,\"C:\\temp\\\",x\n2,\"D:\\new\\\",y\n3,\"D\",z\n", false),
        ("1,\"C:\\temp\",x\n2,\"D:\\new\",y\n3,\"D\",z\n", true),
    ] {
        let finding = text(bytes);
        assert_eq!(finding.may_escape_with.contains(&Some(b'"')), may, "{bytes:?}: {}", finding.describe());
    }
}

#[test]
fn a_backslash_before_the_delimiter_escapes_it_in_each_record_too_but_behind_a_drive() {
    let width = |record: fn(usize) -> String| {
        let lines: String = (10..22).map(record).collect();
        let found = text(&lines);
        (found.dialect.escape == Escape::Backslash, found.width, found.unsure.len())
    };
    // As Redshift unloads with ESCAPE.
    assert_eq!(width(|no| format!("{no}|{}\\|{}|2023-01-{no}|x\n", no * 7, no * 3)), (true, 4, 0));
    assert_eq!(width(|no| format!("{no}|a\\|b|2023-01-{no}|amber\\\\\n")), (true, 4, 0));
    assert_eq!(width(|no| format!("{no}|C:\\|lamp|river\n")), (false, 4, 0));
    assert_eq!(width(|no| format!("{no}|C:\\data\\|lamp|river\n")), (false, 4, 0));
    let one = text("1|a\\|b|x\n");
    assert!(one.unsure.iter().any(|unsure| unsure.option.starts_with("--format ")), "{}", one.describe());
}
