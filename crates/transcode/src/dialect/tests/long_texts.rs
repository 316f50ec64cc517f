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
