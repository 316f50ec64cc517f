//! Small files of every kind, and what is found in them.

use super::*;
use crate::cells::{Cells, Next, Record};

mod apostrophes;
mod copy_text;
mod empty_records;
mod first_lines;
mod headers;
mod long_texts;
mod nothing;
mod values;

fn whole(bytes: &[u8]) -> Finding {
    find(&Sample::of_whole(bytes), &Given::default()).unwrap()
}

fn text(text: &str) -> Finding {
    whole(text.as_bytes())
}

/// The data records' values, read strictly.
fn rows(finding: &Finding, bytes: &[u8]) -> Vec<Vec<String>> {
    let end = finding.plain.end_byte.map_or(bytes.len(), |end| end as usize);
    let (cells, mut record) = (Cells::new(&finding.dialect).unwrap(), Record::default());
    let (mut at, mut rows) = (finding.plain.start_byte as usize, Vec::new());
    loop {
        match cells.read(&bytes[at..end], true, &mut record) {
            Next::Record { length, .. } => {
                rows.push(record.values().map(|v| String::from_utf8_lossy(v).into_owned()).collect());
                at += length;
            }
            Next::Comment(length) => at += length,
            Next::More | Next::End => return rows,
        }
    }
}

/// A table with values of many kinds, some of which need quotes.
fn table() -> Vec<Vec<String>> {
    let header = ["DATE", "TIME", "Qty", "PRODUCTID", "Price", "Type", "Description", "URL", "Comments"];
    let mut table = vec![header.map(str::to_owned).to_vec()];
    for no in 0..24 {
        table.push(vec![
            format!("11/{}/2018", 10 + no % 18),
            "13:50".to_owned(),
            "1".to_owned(),
            format!("LX-10{no:02}"),
            format!("${}.69", 70 + no),
            ["Notebook", "Scanner, flat", "Phone"][no % 3].to_owned(),
            if no % 4 == 0 {
                "Plain thing".to_owned()
            } else {
                format!("A fine \"thing\" number {no}, with text")
            },
            format!("https://example.org/p/{no}?x=1"),
            if no % 5 == 0 {
                format!("First line\nsecond line of {no}")
            } else {
                format!("some comment {no}")
            },
        ]);
    }
    table
}

/// Quotes only what needs them.
fn render(table: &[Vec<String>], dialect: &Dialect) -> String {
    let eol = match dialect.eol {
        Some(Eol::CrLf) => "\r\n",
        Some(Eol::Cr) => "\r",
        _ => "\n",
    };
    let quote = char::from(dialect.quote.unwrap_or(b'"')).to_string();
    let escape = if dialect.escape == Escape::Backslash { format!("\\{quote}") } else { quote.repeat(2) };
    let mut out = String::new();
    for row in table {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| {
                let blank = dialect.delimiter.contains(' ') && cell.contains(' ');
                let special = blank || cell.contains(&dialect.delimiter) || cell.contains(['\n', '\r']);
                if special || cell.contains(&quote) {
                    format!("{quote}{}{quote}", cell.replace(&quote, &escape))
                } else {
                    cell.clone()
                }
            })
            .collect();
        out.push_str(&cells.join(&dialect.delimiter));
        out.push_str(eol);
    }
    out
}

#[test]
fn every_dialect_is_found() {
    let table = table();
    for delimiter in [",", ";", "\t", "|", " ", ", ", "^", ":", "~", "\x1f", "\x1e", "||", "::", "|~|", "¦"]
    {
        for quote in [b'"', b'\''] {
            for (escape, eol) in [
                (Escape::Doubled, Eol::Lf),
                (Escape::Doubled, Eol::CrLf),
                (Escape::Doubled, Eol::Cr),
                (Escape::Backslash, Eol::Lf),
            ] {
                let written = Dialect {
                    delimiter: delimiter.to_owned(),
                    quote: Some(quote),
                    escape,
                    eol: Some(eol),
                    ..Dialect::csv()
                };
                let bytes = render(&table, &written);
                let mut finding = text(&bytes);
                let needs_no_escape = !table.iter().flatten().any(|cell| cell.contains(char::from(quote)));
                if needs_no_escape && escape == Escape::Backslash {
                    finding.dialect.escape = escape;
                }
                assert_eq!(finding.dialect, written, "{}", finding.describe());
                assert_eq!((finding.names.clone(), finding.width), (table[0].clone(), 9));
                assert_eq!(rows(&finding, bytes.as_bytes()), table[1..], "{}", finding.describe());
                assert!(finding.probability > 0.7, "{}", finding.describe());
            }
        }
    }
}

#[test]
fn one_polluted_record_changes_nothing_for_the_others() {
    let table = table();
    let clean = Dialect { eol: Some(Eol::CrLf), ..Dialect::csv() };
    type Pollution = fn(&str) -> String;
    let pollute: [(&str, Pollution); 9] = [
        ("a delimiter more", |row| row.replacen(',', ",,", 1)),
        ("a delimiter less", |row| row.replacen(',', "", 1)),
        ("a quote at the beginning", |row| format!("\"{row}")),
        ("a quote at the end of a field", |row| row.replacen(',', "\",", 1)),
        ("a quote at the beginning of a field", |row| row.replacen(',', ",\"", 1)),
        ("semicolons", |row| row.replace(',', ";")),
        ("tabs", |row| row.replace(',', "\t")),
        ("commas with blanks", |row| row.replace(',', ", ")),
        ("pipes", |row| row.replace(',', "|")),
    ];
    for at in [0, 1, 2, 12, 24] {
        for (what, pollute) in pollute {
            let mut bytes = String::new();
            for (no, row) in table.iter().enumerate() {
                let row = render(std::slice::from_ref(row), &clean);
                bytes.push_str(&if no == at { pollute(&row) } else { row });
            }
            let finding = text(&bytes);
            assert_eq!(finding.dialect, clean, "{what} in record {at}: {}", finding.describe());
            assert_eq!(finding.width, 9, "{what} in record {at}");
            assert_eq!(finding.header_rows, 1, "{what} in record {at}: {}", finding.describe());
            assert_eq!(
                (finding.preamble_records, finding.plain.end_byte),
                (0, None),
                "{what} in record {at}"
            );
        }
    }
}

#[test]
fn one_other_line_ending_makes_them_mixed() {
    let table = table();
    for (usual, other) in [("\n", "\r\n"), ("\n", "\r"), ("\r\n", "\n"), ("\r\n", "\r"), ("\r", "\n")] {
        for at in [0, 1, 12, 24] {
            let mut bytes = String::new();
            for (no, row) in table.iter().enumerate() {
                let row = render(std::slice::from_ref(row), &Dialect::csv());
                bytes.push_str(row.strip_suffix('\n').unwrap());
                bytes.push_str(if no == at { other } else { usual });
            }
            let finding = text(&bytes);
            assert_eq!(finding.dialect, Dialect { eol: None, ..Dialect::csv() }, "{at}: {usual:?} {other:?}");
            assert_eq!(rows(&finding, bytes.as_bytes()), table[1..]);
        }
    }
    let finding = text("id,t,v\r\n1,a\nb,3\r\n2,c,4\r\n3,d,5\r\n");
    assert_eq!(finding.dialect.eol, Some(Eol::CrLf));
}

#[test]
fn quotes_inside_quotes_that_are_not_escaped_are_noticed() {
    let table = table();
    let escaped = render(&table, &Dialect::csv());
    let bytes = escaped.replace("\"\"", "\"");
    let finding = text(&bytes);
    assert_eq!(finding.dialect, Dialect { escape: Escape::None, ..Dialect::csv() });
    assert_eq!((finding.width, finding.header_rows), (9, 1));
}

#[test]
fn titles_and_metadata_before_the_header_are_no_data() {
    let table = "region,q1,q2,q3\nnorth,1,2,3\nsouth,4,5,6\neast,7,8,9\n";
    for (preamble, records) in [
        ("Sales by region\n", 1),
        ("Sales by region\n\n", 2),
        ("Sales by region,,,\nall of 2020,,,\n,,,\n", 3),
        ("Title:,Sales,,\nDate:,2020-01-01,,\n,,,\n", 3),
        ("Title:,Sales\nDate:,2020-01-01\n\n", 3),
        ("# made by a program\n# on a day\n", 2),
        ("\n\n", 2),
        ("\"Sales, by region\"\n", 1),
    ] {
        let bytes = format!("{preamble}{table}");
        let finding = text(&bytes);
        assert_eq!(finding.names, ["region", "q1", "q2", "q3"], "{preamble:?}: {}", finding.describe());
        assert_eq!(finding.preamble_records, records, "{preamble:?}");
        assert_eq!(rows(&finding, bytes.as_bytes()).len(), 3, "{preamble:?}");
    }
}

#[test]
fn totals_notes_and_blank_lines_at_the_end_are_no_data() {
    let table = "region,q1,q2,q3\nnorth,1,2,3\nsouth,4,5,6\neast,7,8,9\n";
    for (footer, records) in [
        ("\n", 1),
        ("\n\n\n", 3),
        ("\n,,,\n\n,,,\n", 4),
        (" , , , \n", 1),
        ("Total,12,15,18\n", 1),
        ("Total,12,15,18\n\nSource: our own books\n", 3),
        ("\nNote: all figures, in thousands\n* estimated\n", 3),
        ("Source: our own books,,,\n", 1),
        ("(3 rows)\n", 1),
    ] {
        let bytes = format!("{table}{footer}");
        let finding = text(&bytes);
        assert_eq!(finding.footer_records, records, "{footer:?}: {}", finding.describe());
        assert_eq!(finding.plain.end_byte, Some(table.len() as u64), "{footer:?}");
    }
    for last in [
        ",,,\n,,,\n",
        "\"\",\"\",,\n",
        ",,,",
        "west,1,2\n",
        "west,1,2,3",
        "west,,,\n",
        "w\n",
        "Total recall,1,2,3\n",
        "west,1,2,3,4\n",
    ] {
        let finding = text(&format!("{table}{last}"));
        assert_eq!(finding.plain.end_byte, None, "{last:?}: {}", finding.describe());
    }
}

#[test]
fn totals_of_groups_and_means_among_words_are_data() {
    for table in [
        "quality,n\ngood,1\npoor,2\naverage,3\n".to_owned(),
        format!(
            "place,people\n{}",
            (0..5).map(|no| "weir,7\n".repeat(599) + &format!("Total,{no}\n")).collect::<String>()
        ),
    ] {
        assert_eq!(text(&table).plain.end_byte, None);
    }
    let groups: String = (0..5).map(|no| "weir,7\n".repeat(9990) + &format!("Total,{no}\n")).collect();
    assert_eq!(sampled(format!("place,people\nlock,3\nTotal,9\n{groups}").as_bytes()).plain.end_byte, None);
    for (table, footer) in [
        ("quality,n\ngood,1\npoor,2\n", "\naverage,3\n"),
        (
            "day,n\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n2020-01-04,4\n2020-01-05,5\n2020-01-06,6\n",
            "Total,21\nMean:,3.5\n",
        ),
        (
            "id,name,amount\n1,a,7\n2,b,14\n3,c,21\n4,d,28\n",
            "Source: Office, 2024\nNote: revised, see page 3\n",
        ),
    ] {
        assert_eq!(text(&format!("{table}{footer}")).plain.end_byte, Some(table.len() as u64));
    }
}

#[test]
fn a_second_table_is_said_and_left_alone() {
    let (table, clean) = (table(), Dialect::csv());
    let first = render(&table, &clean);
    let narrow: Vec<Vec<String>> = table.iter().map(|row| row[..5].to_vec()).collect();
    let wide: Vec<Vec<String>> = table.iter().map(|row| [row.clone(), row[..2].to_vec()].concat()).collect();
    let mut other = table.clone();
    other[0].iter_mut().for_each(|name| name.push_str(" of another"));
    for second in [narrow, wide, other] {
        for between in ["", "\n", "\n\n", "\nAnother table\n\n"] {
            let bytes = format!("{first}{between}{}", render(&second, &clean));
            let finding = text(&bytes);
            let second = finding.second_table.expect(between) as usize;
            assert_eq!(finding.names, table[0]);
            assert!(second >= first.len() && second <= first.len() + between.len(), "{between:?}");
            assert_eq!(rows(&finding, bytes.as_bytes()), table[1..], "{between:?}: {}", finding.describe());
        }
    }
    // A short first table before a long second one.
    let bytes = format!("{}\n{}", render(&table[..5], &clean), "id,n\n".to_owned() + &"7,8\n".repeat(40));
    let finding = text(&bytes);
    assert_eq!((finding.width, rows(&finding, bytes.as_bytes()).len()), (9, 4), "{}", finding.describe());
}

#[test]
fn headers_are_told_from_data() {
    let body = "1,ann,2020-01-01\n2,bob,2020-01-02\n3,cid,2020-01-03\n";
    assert_eq!(text(body).header_rows, 0);
    assert_eq!(text(&format!("id,name,born\n{body}")).names, ["id", "name", "born"]);
    let two = text(&format!("key,person,date of\nno,name,birth\n{body}"));
    assert_eq!(
        (two.header_rows, two.names),
        (2, ["key no", "person name", "date of birth"].map(str::to_owned).to_vec())
    );
    let spans = text(&format!(",who,\nid,name,born\n{body}"));
    assert_eq!(spans.names, ["id", "who name", "born"]);
    let years = text("country,2019,2020,2021\nfr,1.5,2.5,3.5\nde,4,5,6\nit,7,8,9\n");
    assert_eq!(years.names[1..], ["2019", "2020", "2021"]);
    let corner = text("\"\",16.5,17.5,18\n71,0,2,1\n72,3,0,2\n73,1,1,1\n");
    assert_eq!(corner.names[1..], ["16.5", "17.5", "18"]);
    assert_eq!(text("\"\",y,n\n1,5.5,2\n2,6.5,3\n").names, ["", "y", "n"]);
    assert_eq!(text("first_name,city\nann,oslo\nbob,rome\ncid,bern\n").header_rows, 1);
    let r = text("\"mpg\",\"cyl\"\n\"1\",21.0,6\n\"2\",22.8,4\n\"3\",21.4,6\n");
    assert_eq!(r.names, ["", "mpg", "cyl"]);
    let long = text("a,b,c,d\n1,2,3\n4,5,6\n7,8,9\n");
    assert_eq!((long.header_rows, long.width), (1, 4));
}

#[test]
fn files_of_few_records() {
    let empty = text("");
    assert_eq!((empty.width, empty.plain, empty.describe().as_str()), (0, Span::default(), "no records"));
    assert_eq!(text("\n\n").width, 0);
    assert_eq!(whole(b"\xef\xbb\xbf").plain.start_byte, 3);
    let header = text("id,name,created_at\n");
    assert_eq!((header.header_rows, header.width, header.plain.start_byte), (1, 3, 19));
    let one = text("id,name,created_at\n1,ann,2020-01-01\n");
    assert_eq!((one.header_rows, rows(&one, b"id,name,created_at\n1,ann,2020-01-01\n").len()), (1, 1));
    assert_eq!(text("1,ann,2020-01-01\n").header_rows, 0);
    let unended = text("id,name\n1,ann\n2,bob");
    assert_eq!((unended.plain.end_byte, unended.width), (None, 2));
}

#[test]
fn files_of_one_column() {
    for bytes in [
        "name\nalice\nbob\ncarol\n",
        "n\n1\n2\n3\n",
        "when\n2024-01-01 12:30:00\n2024-01-02 12:30:00\n2024-01-03 12:31:00\n",
        "text\nthe quick brown fox\njumps over, the lazy dog\nhello there\none two three four five\n",
        "person\nAnn Smith\nBob Jones\nCid Brown\nDan White\n",
    ] {
        let finding = text(bytes);
        assert_eq!((finding.width, finding.header_rows), (1, 1), "{bytes:?}: {}", finding.describe());
        assert!(finding.dialect.to_format().is_some());
    }
    let gap = "n\n1\n\n3\n";
    assert_eq!(rows(&text(gap), gap.as_bytes()).len(), 3);
}

#[test]
fn a_drawn_line_is_a_value_of_a_file_of_lines() {
    let lines = "=====\nhello world\nsecond, line\n| x |\n| y |\n=====\nthe end (1)\n";
    let finding = text(lines);
    assert_eq!((finding.width, finding.plain.start_byte), (1, 0), "{}", finding.describe());
    let drawn = "name\n-----\nalice\nbob\ncarol\n";
    assert_eq!(rows(&text(drawn), drawn.as_bytes()), [["alice"], ["bob"], ["carol"]]);
    // As psql draws one column, whatever cuts its values.
    let psql = " taken at | of\n---------------\n 12 May | a 1\n  3 May | b 2\n 10 May | c 3\n(3 rows)\n\n";
    let found = text(psql);
    assert_eq!((found.width, found.names.join("+").as_str()), (1, "taken at | of"), "{}", found.describe());
    assert_eq!(rows(&found, psql.as_bytes()), [["12 May | a 1"], ["3 May | b 2"], ["10 May | c 3"]]);
}

#[test]
fn what_copy_writes_as_text_is_read_as_text() {
    let copied = "1\tab\\tc\t\\N\n2\tx\\\\y\t5\n3\tz\\n\t7\n";
    let finding = text(copied);
    assert_eq!((finding.dialect.quote, finding.dialect.escape), (None, Escape::Backslash));
    assert_eq!(finding.dialect.nulls, ["\\N"]);
    let mut films = String::from("tconst\ttitle\tstart\tend\n");
    for no in 0..40 {
        let title = ["\"Quoted\" at first", "a \"b\" c", "Plain", "\"Whole\""][no % 4];
        films.push_str(&format!("tt{no:07}\t{title}\t{}\t\\N\n", 1890 + no));
    }
    let finding = text(&films);
    assert_eq!((finding.dialect.quote, finding.dialect.nulls.as_slice()), (None, &["\\N".to_owned()][..]));
    let odd = text(&films.replace("Plain", "C:\\games"));
    assert_eq!((odd.dialect.quote, odd.dialect.escape), (None, Escape::None));
    let quoted = text("id\tt\n1\t\"a\tb\"\n2\t\"c \"\"d\"\"\"\n3\te\n");
    assert_eq!(quoted.dialect, Dialect { delimiter: "\t".to_owned(), ..Dialect::csv() });
}

#[test]
fn blanks_around_fields_are_dropped_only_where_they_are_usual() {
    for bytes in
        ["id , name , x\n1 , bob , 2\n2 , al , 3\n10 , cy , 44\n", "id |name|x \n1  |bob |2 \n10 |cy  |44\n"]
    {
        let finding = text(bytes);
        assert!(finding.dialect.trim, "{}", finding.describe());
        assert_eq!(rows(&finding, bytes.as_bytes())[0], ["1", "bob", "2"]);
    }
    assert!(!text("id,name,x\n1,bob, 2\n2,al,3\n3,cy,4\n4,di,5\n").dialect.trim);
    assert!(!text("#57,with  ,x\n#5,a , y\n").dialect.trim);
    let aligned = "name        city       age\nalice       Paris       30\nbob         New York     4\n";
    assert_eq!(rows(&text(aligned), aligned.as_bytes())[1], ["bob", "New York", "4"]);
    let spaces = "a b c\n1 2 3\n4 5 6\n7 8 9\n";
    assert_eq!(text(spaces).dialect.delimiter, " ");
}

#[test]
fn comments_among_the_data_are_no_data() {
    let bytes = "id,v\n1,2\n# in the middle\n2,3\n4,4\n";
    let finding = text(bytes);
    assert_eq!((finding.dialect.comment.as_deref(), rows(&finding, bytes.as_bytes()).len()), (Some("#"), 3));
    let numbers = "id,v\n1,2\n#2,3\n3,4\n4,4\n";
    assert_eq!(text(numbers).dialect.comment, None);
}

#[test]
fn encodings_are_decoded_and_placed() {
    let bytes = encoding_rs::WINDOWS_1252
        .encode("Übersicht\n\nname;größe\nJürgen;1\nAnaïs;2\nZoë;3\n")
        .0
        .into_owned();
    let finding = whole(&bytes);
    assert_eq!(
        (finding.encoding.name.as_str(), finding.names.join("|")),
        ("WIN1252", "name|größe".to_owned())
    );
    assert_eq!(&bytes[finding.plain.start_byte as usize..][..3], b"J\xfcr");
    assert_eq!(finding.utf8.start_byte, finding.plain.start_byte + 3);
    let text = "\u{feff}Title\r\n\r\nid;name\r\n1;zoë\r\n2;bob\r\n\r\nNote: this is the end of it\r\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let finding = whole(&bytes);
    assert_eq!(finding.encoding, Encoding { name: "UTF-16LE".to_owned(), bom_bytes: 2, recoded: true });
    let utf8 = text.strip_prefix('\u{feff}').unwrap();
    let table =
        utf8[finding.span().start_byte as usize..finding.span().end_byte.unwrap() as usize].to_owned();
    assert_eq!(table, "1;zoë\r\n2;bob\r\n");
    let range = finding.plain.start_byte as usize..finding.plain.end_byte.unwrap() as usize;
    assert_eq!(encoding_rs::UTF_16LE.decode_without_bom_handling(&bytes[range]).0, table);
}

#[test]
fn given_options_fix_their_part() {
    let bytes = "a;b,c;d\n1;2,3;4\n5;6,7;8\n";
    let given = Given { delimiter: Some(",".to_owned()), ..Given::default() };
    assert_eq!(find(&Sample::of_whole(bytes.as_bytes()), &given).unwrap().width, 2);
    let given = Given { header: Some(false), nulls: Some(vec!["x".to_owned()]), ..Given::default() };
    let finding = find(&Sample::of_whole(bytes.as_bytes()), &given).unwrap();
    assert_eq!((finding.header_rows, finding.dialect.nulls), (0, vec!["x".to_owned()]));
    let given = Given { header: Some(true), ..Given::default() };
    assert_eq!(find(&Sample::of_whole(b"1,2\n3,4\n"), &given).unwrap().names, ["1", "2"]);
    let given = Given { delimiter: Some("\"".to_owned()), ..Given::default() };
    assert!(find(&Sample::of_whole(b"1,2\n"), &given).is_err());
    for delimiter in [";", "\t"] {
        let found = text(&"sep=;\r\nid;v\r\n1;a,b\r\n2;c,d\r\n".replace(';', delimiter));
        // A line that names the delimiter is no record.
        let expected = (delimiter, 1, 0);
        assert_eq!((found.dialect.delimiter.as_str(), found.preamble_records, found.record_like), expected);
    }
}

#[test]
fn a_first_record_that_is_taken_for_data_for_the_columns_given_is_told() {
    let columns = Some(vec!["v".to_owned(), "w".to_owned()]);
    let given = Given { columns, ..Given::default() };
    for (bytes, rows, told) in [
        ("x,y\nz,k\n", 0, true),
        ("root,admin\nbob,member\ncarol,member\ndave,member\nerin,member\n", 0, true),
        ("v,other\nbob,admin\ncarol,member\n", 1, false),
        ("id,name\n1,ann\n2,bob\n", 1, false),
        ("1,ann\n2,bob\n", 0, false),
    ] {
        let finding = find(&Sample::of_whole(bytes.as_bytes()), &given).unwrap();
        let is_told = finding.unsure.iter().any(|unsure| {
            unsure.what.starts_with("the first record is taken for data") && unsure.option == "--header"
        });
        assert_eq!((finding.header_rows, is_told), (rows, told), "{bytes}");
    }
}

#[test]
fn a_file_seen_in_windows_has_the_same_finding_as_all_of_it() {
    let table: Vec<Vec<String>> = (0..400).flat_map(|_| table()[1..].to_vec()).collect();
    let bytes = format!(
        "Title\n\n{}Total,,99,,,,,,\n",
        render(&[self::table()[..1].to_vec(), table].concat(), &Dialect::csv())
    );
    let bytes = bytes.as_bytes();
    let sample = Sample {
        head: &bytes[..WINDOW_BYTES],
        middle: &bytes[bytes.len() / 2..][..WINDOW_BYTES],
        tail: &bytes[bytes.len() - WINDOW_BYTES..],
        whole: false,
        size_bytes: Some(bytes.len() as u64),
    };
    let (windows, all) = (find(&sample, &Given::default()).unwrap(), whole(bytes));
    assert_eq!((&windows.dialect, &windows.names, windows.plain), (&all.dialect, &all.names, all.plain));
    assert_eq!(windows.plain.end_byte, Some((bytes.len() - "Total,,99,,,,,,\n".len()) as u64));
    let unknown = find(&Sample { size_bytes: None, ..sample }, &Given::default()).unwrap();
    assert_eq!(unknown.plain.end_byte, None);
}

#[test]
fn the_printed_line_says_it_all() {
    let bytes = encoding_rs::WINDOWS_1252
        .encode("Übersicht\r\n\r\nname;größe\r\nJürgen;1\r\nAnaïs;2\r\nZoë;3\r\n")
        .0
        .into_owned();
    let line = whole(&bytes).describe();
    assert!(
        line.starts_with(
            "csv, delimiter ';', quote '\"', CRLF, WIN1252, header in record 3 after 2 title lines ("
        ),
        "{line}"
    );
}

#[test]
fn a_title_is_not_cut_into_names() {
    let found = text("Survey of plots north\noak,1,2021-03-04,7\nash,2,2021-03-05,9\nelm,3,2021-03-06,8\n");
    assert_eq!((found.header_rows, found.width, found.preamble_records), (0, 4, 1));
}

fn sampled(bytes: &[u8]) -> Finding {
    if bytes.len() <= 3 * WINDOW_BYTES {
        return whole(bytes);
    }
    let (length, middle) = (bytes.len(), bytes.len() / 2);
    let sample = Sample {
        head: &bytes[..WINDOW_BYTES],
        middle: &bytes[middle..middle + WINDOW_BYTES],
        tail: &bytes[length - WINDOW_BYTES..],
        whole: false,
        size_bytes: Some(length as u64),
    };
    find(&sample, &Given::default()).unwrap()
}

proptest::proptest! {
    #[test]
    fn any_bytes_have_a_finding(head: Vec<u8>, middle: Vec<u8>, tail: Vec<u8>, whole: bool) {
        let sample = Sample { head: &head, middle: &middle, tail: &tail, whole, size_bytes: Some(10_000) };
        proptest::prop_assume!(!head.starts_with(b"\xff\xfe\0\0") && !head.starts_with(b"\0\0\xfe\xff"));
        let found = find(&sample, &Given::default());
        let is_document = matches!(head.trim_ascii_start(), [b'{' | b'[' | b'<', ..]);
        let is_separated = head.contains(&0x1e);
        proptest::prop_assert!(found.is_ok() || is_document || is_separated);
    }

    #[test]
    fn any_text_has_a_finding_within_it(text in "[-ab1,;\t\"'\\\\\n\r |#.=:é]{0,200}") {
        let finding = find(&Sample::of_whole(text.as_bytes()), &Given::default()).unwrap();
        let length = text.len() as u64;
        let end = finding.plain.end_byte.unwrap_or(length);
        proptest::prop_assert!(finding.plain.start_byte <= end && end <= length);
        proptest::prop_assert!(finding.probability > 0.0 && finding.probability <= 1.0);
        proptest::prop_assert!(finding.names.is_empty() || finding.names.len() == finding.width);
    }
}

#[test]
fn commas_in_texts_with_as_many_words_each_delimit() {
    let row = |no: usize| format!("Ann Smith,{} Oak Street San Jose CA\n", no % 700);
    let rows: String = (0..2000).map(row).collect();
    let found = text(&format!("name,address\n{rows}"));
    assert_eq!((found.dialect.delimiter.as_str(), found.names.join("|").as_str()), (",", "name|address"));
    assert_eq!(text(&rows).dialect.delimiter, ",");
    // One odd record takes nothing from the others.
    let found = text(&format!("name,address\nBob\n{rows}"));
    assert_eq!((found.dialect.delimiter.as_str(), found.header_rows), (",", 1));
    let colons: String = (0..200).map(|no| format!("chr1:{no},chr2:{}\n", no * 7)).collect();
    assert_eq!(text(&format!("start,end\n{colons}")).dialect.delimiter, ",");
}

#[test]
fn records_between_blanks_may_hold_commas() {
    let (mut log, mut people) = (String::new(), String::new());
    for no in 10..60 {
        log.push_str(&format!(
            "2024-01-02 10:00:{no} 10.0.0.{no} GET /a/{no} 200 {no}7 agent/5+(like,+that)\n"
        ));
        people.push_str(&format!("Smith, Ann     {no}   Paris\n"));
    }
    for (bytes, width) in [(log, 8), (people, 3)] {
        let found = text(&bytes);
        assert_eq!((found.dialect.delimiter.trim(), found.width), ("", width), "{}", found.describe());
    }
}
