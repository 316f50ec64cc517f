//! Fields of many lines, which windows cut, and quotes that are never closed.

use super::*;

/// A text of so many lines, all of them different.
fn prose(lines: usize) -> String {
    const WORDS: [&str; 7] = ["weir", "the", "gauge", "at", "low", "water", "stands"];
    let line = |no: usize| -> String {
        let words = (0..6 + no % 9).map(|at| WORDS[(no * 5 + at * at) % WORDS.len()]);
        format!("In {no} {}.\n", words.collect::<Vec<_>>().join(" "))
    };
    (0..lines).map(line).collect()
}

fn is_whole_table(finding: &Finding, width: usize) {
    let found = finding.describe();
    assert_eq!((finding.dialect.clone(), finding.width), (Dialect::csv(), width), "{found}");
    assert_eq!(
        (finding.header_rows, finding.plain.end_byte, finding.second_table),
        (1, None, None),
        "{found}"
    );
}

#[test]
fn a_text_that_a_window_cuts_is_no_second_table() {
    let short = |from: usize, to: usize| -> String {
        (from..to).map(|no| format!("{no},\"the gauge at mile {no} has been read\"\n")).collect()
    };
    let letter = format!("\n\nMinutes of the meeting\nDear Sir, thanks for all\n\n{}", prose(150));
    let bytes = format!("id,body\n{}1600,\"{letter}\"\n{}", short(0, 1400), short(1601, 8000));
    assert!(bytes.find("Minutes").unwrap() < WINDOW_BYTES - 3000);
    is_whole_table(&sampled(bytes.as_bytes()), 2);
}

#[test]
fn a_text_longer_than_a_window_has_no_footnotes() {
    let short = |no: usize| format!("{no},n{no},\"{}\"\n", prose(no % 2 + 1).trim_end());
    let before: String = (0..2500).map(short).collect();
    for text in [prose(2500), prose(2500).replace(" the ", ", the, ")] {
        let bytes =
            format!("id,name,body\n{before}2500,last,\"{text}\nSource of this document is the mill\"\n");
        is_whole_table(&sampled(bytes.as_bytes()), 3);
    }
    let few: String = (0..20).map(short).collect();
    let bytes = format!("id,name,body\n{few}20,long,\"{}\"\n{}", prose(2500), short(21));
    assert!(bytes.len() < 3 * WINDOW_BYTES);
    is_whole_table(&text(&bytes), 3);
}

#[test]
fn stray_quotes_further_down_change_no_name() {
    for every in [93, 60] {
        let row = |no: usize| match no % every {
            0 => format!("{no},\"unclosed {no},5\n"),
            _ => format!("\"{no}\",\"ok, {no}\",\"{no}\"\n"),
        };
        let found = text(&format!("\"id\",\"name, full\",\"n\"\n{}", (0..3000).map(row).collect::<String>()));
        assert_eq!(found.names, ["id", "name, full", "n"], "{every}: {}", found.describe());
    }
}

#[test]
fn texts_of_many_lines_are_fields() {
    for lines in [20, 53, 80] {
        let rows = (0..300).map(|no| format!("{no},2024-01-{:02},\"{}\"\n", no % 28 + 1, prose(lines)));
        let bytes = format!("id,sent,body\n{}", rows.collect::<String>());
        is_whole_table(&sampled(bytes.as_bytes()), 3);
    }
}

/// Documents of one shape in a field, each as long as `keys` make it.
fn documents(delimiter: &str, keys: usize, rows: usize, escape: &str) -> String {
    let mut text = format!("id{delimiter}doc\n");
    for row in 0..rows {
        let pair =
            |key: usize| format!("{escape}\"key{key}{escape}\": {escape}\"word {}{escape}\"", row * key % 97);
        let pairs: Vec<String> = (0..keys).map(pair).collect();
        text.push_str(&format!("{row}{delimiter}\"{{{}}}\"\n", pairs.join(", ")));
    }
    text
}

#[test]
fn documents_in_a_field_are_one_field() {
    for delimiter in [",", ";", "\t", "|"] {
        for (keys, rows) in [(1, 4), (2, 20), (5, 300), (30, 12), (200, 60), (1000, 30)] {
            for (escape, expected) in [("\"", Escape::Doubled), ("\\", Escape::Backslash)] {
                let finding = sampled(documents(delimiter, keys, rows, escape).as_bytes());
                let found =
                    (finding.dialect.delimiter.as_str(), finding.dialect.quote, finding.dialect.escape);
                let case = format!("{delimiter:?} {keys} {rows} {escape}");
                assert_eq!(found, (delimiter, Some(b'"'), expected), "{case}");
                assert_eq!((finding.width, finding.header_rows), (2, 1), "{case}");
            }
        }
    }
}

/// A table of texts, of each of which `text` makes the lines.
fn texts(records: usize, text: impl Fn(usize) -> String) -> String {
    let rows = (0..records).map(|no| format!("{no},title {no},\"{}\"\n", text(no)));
    format!("id,title,body\n{}", rows.collect::<String>())
}

#[test]
fn what_stands_in_long_texts_cuts_no_records() {
    let numbered = |lines: usize| -> String {
        (0..lines).map(|no| format!("some words of text, number {no}\n")).collect()
    };
    let table = |lines: usize| -> String { (0..lines).map(|no| format!("{no},weir,{}\n", no * 7)).collect() };
    for bytes in [
        texts(10, |_| prose(300)),
        texts(1, |_| prose(300)),
        texts(50, |_| prose(100)),
        texts(4, |no| numbered(300 * (no + 1))),
        texts(100, |_| numbered(20)),
        texts(30, |_| table(30)),
        texts(30, |_| table(300)),
        texts(300, |_| prose(300).replace("weir", "\"\"weir\"\"")),
        texts(5, |_| "abc \n".repeat(2000)),
    ] {
        is_whole_table(&sampled(bytes.as_bytes()), 3);
    }
    let column: String = (0..50).map(|_| format!("\"{}\"\n", prose(100))).collect();
    let found = sampled(format!("body\n{column}").as_bytes());
    assert_eq!((found.dialect.quote, found.width), (Some(b'"'), 1), "{}", found.describe());
}

#[test]
fn a_first_record_that_does_not_end_in_the_head_is_told() {
    let names: Vec<String> = (0..WINDOW_BYTES).map(|no| format!("n{no}")).collect();
    let header = format!("{}\n", names.join(","));
    let record = |no: usize| format!("{no},\"{}\",2024-01-01\n", "a,b ".repeat(WINDOW_BYTES / 2 + no));
    let record: String = (0..5).map(record).collect();
    // The header alone is long: whole records are in the other windows.
    let questions: Vec<String> =
        (0..400).map(|no| format!("question {no}: {}?", "why ".repeat(50))).collect();
    let answers: Vec<String> = (0..400).map(|no| no.to_string()).collect();
    let survey = format!("{}\n{}", questions.join(","), format!("{}\n", answers.join(",")).repeat(400));
    for (bytes, width) in [(header, WINDOW_BYTES), (record, 3), (survey, 400)] {
        let found = sampled(bytes.as_bytes());
        assert!(found.has_open_field);
        let told: Vec<&str> = found.unsure.iter().map(|unsure| unsure.what.as_str()).collect();
        assert!(
            told.contains(
                &"the first record does not end within 65,536 bytes, so that its fields are not found"
            ),
            "{told:?}"
        );
        let found = whole(bytes.as_bytes());
        assert_eq!((found.width, found.has_open_field), (width, false), "{}", found.describe());
    }
}

#[test]
fn a_text_that_does_not_end_in_the_head_is_told() {
    let bytes = texts(12, |_| "abc \n".repeat(WINDOW_BYTES));
    let found = sampled(bytes.as_bytes());
    assert!(found.has_open_field);
    assert_eq!((found.dialect.clone(), found.width), (Dialect::csv(), 3), "{}", found.describe());
    assert!(found.unsure.iter().any(|unsure| unsure.option == "--quote"), "{:?}", found.unsure);
    let headless = bytes.split_once('\n').unwrap().1;
    assert!(sampled(headless.as_bytes()).has_open_field);
    let first = format!("body;id\n\"{}\";1\n", "abc \n".repeat(WINDOW_BYTES));
    assert!(
        find(&Sample { head: &first.as_bytes()[..WINDOW_BYTES], ..Sample::default() }, &Given::default())
            .unwrap()
            .has_open_field
    );
    let quote = Given { quote: Some(Some(b'"')), ..Given::default() };
    let head = Sample { head: &bytes.as_bytes()[..WINDOW_BYTES], ..Sample::default() };
    let found = find(&head, &quote).unwrap();
    assert_eq!((found.width, found.unsure), (3, Vec::new()));
    // A file that is cut off there has no more to tell.
    let cut = whole(&bytes.as_bytes()[..20_000]);
    assert_eq!(
        (cut.dialect.clone(), cut.width, cut.unsure.len()),
        (Dialect::csv(), 3, 1),
        "{}",
        cut.describe()
    );
    assert!(!sampled(texts(500, |_| prose(20)).as_bytes()).has_open_field);
}

#[test]
fn lines_with_times_where_records_have_numbers_are_a_text() {
    let records: String = (1..=20).map(|no| format!("{no},short {no}\n")).collect();
    let log = "10:00:00,INFO done\n".repeat(WINDOW_BYTES);
    let bytes = format!("id,log\n{records}21,\"build log\n{log}10:01:01,end\"\n22,end\n");
    let found = sampled(bytes.as_bytes());
    assert_eq!((found.dialect.clone(), found.width), (Dialect::csv(), 2), "{}", found.describe());
    assert!(found.unsure.iter().any(|unsure| unsure.option == "--quote"), "{:?}", found.unsure);
}

#[test]
fn quotes_astray_are_no_long_texts() {
    // What is said in one record begins there with a quote, and ends with one in another.
    let said = |no: usize| match no % 9 {
        2 => "\"stands the weir",
        5 => "the low water\"",
        _ => "at the gauge",
    };
    let lines: String = (0..5000).map(|no| format!("{no}\t{}\n", said(no))).collect();
    let found = sampled(format!("no\tline\n{lines}").as_bytes());
    assert_eq!((found.dialect.quote, found.width), (None, 2), "{}", found.describe());
    let lines: String = (0..20_000).map(|no| format!("{no},at the gauge\n")).collect();
    let found = sampled(format!("no,line\n1,\"stray\n{lines}").as_bytes());
    assert_eq!((found.dialect.quote, found.width), (None, 2), "{}", found.describe());
    let told = |found: &Finding| found.unsure.iter().map(|unsure| unsure.option).collect::<Vec<_>>();
    assert_eq!(told(&found), ["--quote"], "{:?}", found.unsure);
    // Where records are ragged, too, it may be a text.
    let lines = lines.replace("3,at", "3,low, at").replace("7,at", "7,low, at");
    let found = sampled(format!("no,line\n1,\"stray\n{lines}").as_bytes());
    assert_eq!(found.dialect.quote, None, "{}", found.describe());
    assert_eq!(told(&found), ["--quote"], "{:?}", found.unsure);
}

#[test]
fn a_file_that_ends_inside_quotes_is_not_without_them() {
    let row = |no: usize| format!("{no},name {no},note {no}\n");
    for records in [2, 199, 20_000] {
        let rows: String = (0..records).map(row).collect();
        let found = sampled(format!("{rows}200,n,\"cut in a note").as_bytes());
        assert_eq!((found.dialect.quote, found.width), (Some(b'"'), 3), "{}", found.describe());
        assert_eq!(found.plain.end_byte, None);
        // Quotes are data elsewhere, or the line is whole.
        for end in ["\"one\n7,\"two,x\n8,\"three,x\n200,n,\"cut in a note", "n,\"cut in a note\n"] {
            let found = sampled(format!("{rows}200,{}", end.replacen("\"one", "n,\"one", 1)).as_bytes());
            assert_eq!((found.dialect.quote, found.width), (None, 3), "{}", found.describe());
            assert!(
                found.unsure.iter().any(|unsure| unsure.what.starts_with("the file may end")),
                "{records}"
            );
        }
    }
}

#[test]
fn records_inside_of_a_field_are_no_records() {
    for (above, lines) in [(2, 3), (50, 300), (200, 3000)] {
        let records: String = (0..above).map(|no| format!("id{no},x\n")).collect();
        let pasted = "key,value\n".repeat(lines);
        let file = format!("a,b\n{records}doc,\"Header\n{pasted}k,end\"\nl,z\n");
        let found = text(&file);
        assert_eq!(rows(&found, file.as_bytes()).len(), above + 2, "{above}, {lines}: {}", found.describe());
    }
}
