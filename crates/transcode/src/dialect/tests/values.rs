//! Values that look like something else: a delimiter, NULL, the end of the data.

use super::*;

#[test]
fn a_comma_before_the_milliseconds_of_a_logged_time_is_no_delimiter() {
    let levels = ["INFO", "WARN", "ERROR"];
    for (time, delimiter) in [("2024-01-02 05:53:", ";"), ("05:53:", ";"), ("2024-01-02 05:53:", "|")] {
        let row = |no: usize| {
            let level = levels[no % 3];
            format!(
                "{time}{:02},{:03}{delimiter}{level}{delimiter}pool-{no} has begun\n",
                no % 60,
                no * 7 % 1000
            )
        };
        let log: String = (0..60).map(row).collect();
        let found = text(&log);
        assert_eq!((found.dialect.delimiter.as_str(), found.width), (delimiter, 3), "{}", found.describe());
    }
    let pairs: String = (10..60).map(|no| format!("05:53:{no},{},x\n", no * 7 % 1000)).collect();
    assert_eq!(text(&pairs).width, 3);
}

#[test]
fn a_sign_before_all_values_of_a_column_is_part_of_them() {
    for sign in ["=", "$", "-", "+", "#", "@", "<", ">", "~", "&", "!", "^", "_"] {
        for delimiter in [",", ";"] {
            let lines: String =
                (1..9).map(|no| format!("{no}.07.2023{delimiter}{sign}{}\n", no * 37 % 11)).collect();
            let found = text(&lines);
            assert_eq!(found.dialect.delimiter, delimiter, "{lines}{}", found.describe());
        }
    }
}

/// As one who has many files of a kind may say it.
#[test]
fn a_delimiter_that_no_record_has_leaves_one_column() {
    let given = Given { delimiter: Some("|".to_owned()), ..Given::default() };
    let bytes = b"\"id_0\"\r\n\"small of\"\r\n\"old,\"\"a\"\"\"\r\n";
    let found = find(&Sample::of_whole(bytes), &given).unwrap();
    assert_eq!((found.dialect.eol, found.width, found.header_rows), (Some(Eol::CrLf), 1, 1));
    assert_eq!(rows(&found, bytes), [["small of"], ["old,\"a\""]]);
}

#[test]
fn spellings_of_null() {
    for (bytes, nulls) in [
        ("id,x,y\n1,NA,5\n2,3.5,NA\n3,4.5,6\n4,NA,7\n", &["NA"][..]),
        ("id,x,y\n1,NULL,5\n2,abc,NULL\n3,,6\n", &["", "NULL"]),
        ("id,x,y\n1,-,5\n2,3,a\n3,4,-\n", &["-"]),
        ("id,x,y\n1,.,5\n2,3.5,6\n3,4.5,7\n", &["."]),
        ("id,x,y\n1,n/a,5\n2,3.5,6\n3,,7\n", &["", "n/a"]),
        ("id,x\n1,a\n2,b\n3,c\n", &[""]),
        ("id,x\n1,a\n2,\n3,c\n", &[""]),
        ("id,x\n1,\\N\n2,b\n3,c\n", &["\\N"]),
        ("id,x\n1,1.5\n2,NaN\n3,2.5\n", &[""]),
        ("id,x\n1,3\n2,NaN\n3,nan\n", &[""]),
        ("id,x\n1,NA\n2,DE\n3,FR\n", &[""]),
        ("pop,code\n1,US\nNA,DE\n3,NA\n4,FR\n5,IT\n", &["NA"]),
        ("n,pain\n-,none\n3,severe\nnone,mild\n4,none\n5,mild\n", &["none", "-"]),
        ("n,tail\n4,N17\nNA,NA\n3,N8A\n5,NA\n", &["NA"]),
    ] {
        assert_eq!(text(bytes).dialect.nulls, nulls, "{bytes:?}");
    }
    let other = text("id,x,y\n1,NA,5\n2,3.5,NA\n3,4.5,6\n").runner_up.unwrap().0;
    assert_eq!(other.nulls, ["NA"]);
    assert_eq!(text("id,x\n1,NA\n2,DE\n3,FR\n").unsure.last().unwrap().option, "--null");
}

#[test]
fn a_word_stays_a_value_where_it_was_not_seen_among_text() {
    let rows = |from: usize| -> String {
        (from..from + 900).map(|no| format!("{no},DE,{}\n", if no % 7 == 0 { "NA" } else { "12" })).collect()
    };
    let (head, tail) = (format!("id,country,score\n{}", rows(0)), rows(5000));
    let sample = Sample {
        head: head.as_bytes(),
        tail: tail.as_bytes(),
        size_bytes: Some(1 << 20),
        ..Sample::default()
    };
    let part = find(&sample, &Given::default()).unwrap();
    assert_eq!(part.dialect.nulls, ["", "NA"]);
    assert_eq!(part.dialect.kept.get("NA"), Some(&vec![1]));
    assert_eq!(part.unsure.last().unwrap().option, "--null");
    let whole = text(&head).dialect;
    assert_eq!((whole.nulls, whole.kept.len()), (vec!["NA".to_owned()], 0));
    let given = Given { nulls: Some(vec!["NA".to_owned()]), ..Given::default() };
    let given = find(&sample, &given).unwrap().dialect;
    assert_eq!((given.nulls, given.kept.len()), (vec!["NA".to_owned()], 0));
}

#[test]
fn null_among_documents_is_a_value() {
    for doc in ["{}", "[1]"] {
        let json = format!("id\tdoc\n1\t{doc}\n2\tnull\n3\t{doc}\n4\t{doc}\n5\tnull\n");
        assert_eq!(
            (text(&json).dialect.nulls, text(&json).unsure.last().unwrap().option),
            (vec![String::new()], "--null")
        );
    }
    assert_eq!(text("id,doc\n1,a\n2,null\n3,b\n").dialect.nulls, ["null"]);
}

#[test]
fn a_line_that_ends_copy_text_is_no_record_of_it() {
    for table in ["1\tab\t\\N\n2\t\\N\t5\n3\tz\t7\n", "1\ta\\\\b\n2\tc\n3\td\n", "1\tab\n2\tcd\n3\tef\n"] {
        for marker in ["\\.\n", "\\.", "\\.\n\n"] {
            let found = text(&format!("{table}{marker}"));
            assert_eq!(
                (found.dialect.quote, found.dialect.escape),
                (None, Escape::Backslash),
                "{table}{marker}"
            );
            assert_eq!(found.plain.end_byte, Some(table.len() as u64), "{table}{marker}");
            assert_eq!((found.footer_records, found.typed[0]), (0, true));
        }
    }
    for last in ["\\.\t1\n", "\\.\n4\t\\N\t5\n", "x\\.\n"] {
        let found = text(&format!("1\tab\t\\N\n2\t\\N\t5\n3\tz\t7\n{last}"));
        assert_eq!((found.plain.end_byte, found.dialect.escape), (None, Escape::None), "{last}");
    }
}

/// Pieces of a file of some 30 kB overlapped, and what was scored was no file any more.
#[test]
fn line_endings_in_few_quotes_do_not_hide_them() {
    let odd = [
        (19, "\r\n\\"),
        (35, "'\"\""),
        (53, "\t|%s%s"),
        (114, "\n"),
        (149, "'\\%s\\\r\n"),
        (164, "\t\t;\\"),
        (167, "|,;"),
        (169, "|"),
        (188, "\r\n\r\n\"\"\t%s"),
        (192, "\r\n\n;"),
        (201, ";\\%s\t"),
        (209, "\r\n\r\n,"),
        (240, ",\t\t\r\n"),
        (254, "\\\\\r\n"),
        (312, "|\t\t,"),
        (334, "\\|%s"),
        (348, "\\\r\n;\\'"),
        (360, "\r\n|;\r\n"),
        (399, "\n,'"),
        (429, ",\n'\t"),
        (449, "\\;%s"),
        (483, ",;%s,\\'"),
    ];
    let mut file = "id|part|score|amount|day|note\n".to_owned();
    for no in 1..=500_u64 {
        let mixed = no.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let note = match odd.iter().find(|(odd, _)| *odd == no) {
            Some((_, note)) => format!("\"{note}\""),
            None if no % 11 == 0 => "\"\"".to_owned(),
            None if no % 13 == 0 => String::new(),
            None => format!("{mixed:016x}").repeat(1 + no as usize % 3),
        };
        let (part, score, amount) = (mixed % 256, mixed % 50_000, mixed % 9_999_999);
        file += &format!(
            "{}|{part}|{score}|{}.{:02}|2024-{:02}-17|{note}\n",
            999 + no,
            amount / 100,
            amount % 100,
            no % 12 + 1
        );
    }
    let found = text(&file);
    assert_eq!(
        (found.dialect.quote, found.dialect.escape),
        (Some(b'"'), Escape::Doubled),
        "{} {:?}",
        file.len(),
        found.dialect
    );
}

#[test]
fn letters_of_two_encodings_are_not_all_read_as_one() {
    let encoding = |bytes: &[u8]| {
        let found = whole(bytes);
        (found.encoding.name.clone(), found.unsure.iter().any(|unsure| unsure.what.contains("in UTF-8")))
    };
    let mixed = b"id,name\n1,Zo\xc3\xab\n2,Ren\xe9\n3,Jos\xe9\n4,Mu\xf1oz\n".to_vec();
    assert_eq!(encoding(&mixed), ("UTF8".to_owned(), false));
    let rows: Vec<u8> = (5..30).flat_map(|no| [format!("{no},Jos").as_bytes(), b"\xe9\n"].concat()).collect();
    assert_eq!(encoding(&[mixed, rows].concat()), ("WIN1252".to_owned(), true));
    let quotes = b"id,name\n1,\xbbSpa\xdf\xab\n2,IRM\xc3\xa0\n3,Jos\xe9\n";
    let (name, is_mixed) = encoding(quotes);
    assert!(name != "UTF8" && !is_mixed, "{name}");
}

#[test]
fn a_word_without_quotes_among_quoted_text_is_null() {
    let table =
        "\"no\",\"vote\",\"income\"\n\"1\",\"Y\",7500\n\"2\",NA,3500\n\"3\",\"N\",NA\n\"4\",\"A\",1200\n";
    let found = text(table);
    assert_eq!((found.dialect.nulls, found.dialect.kept.len()), (vec!["NA".to_owned()], 0));
    let found = text("\"no\",\"kind\"\n\"1\",\"prof\"\n\"2\",NA\n\"3\",\"wc\"\n");
    assert_eq!((found.dialect.nulls, found.unsure), (vec!["NA".to_owned()], Vec::new()));
    let found = text("no,kind\n1,prof\n2,NA\n3,wc\n");
    assert_eq!((found.dialect.nulls, found.unsure.len()), (vec![String::new()], 1));
}

#[test]
fn a_word_that_is_null_among_numbers_stays_a_value_among_its_like() {
    let found = text("people,code\n486169,NA\nNA,DE\n246325,BW\n74834,ZA\n84993,BW\n58266,IT\n");
    assert_eq!(found.dialect.nulls, ["NA"]);
    assert_eq!(found.dialect.kept.into_iter().collect::<Vec<_>>(), [("NA".to_owned(), vec![1])]);
    assert_eq!(found.unsure.len(), 1);
}

#[test]
fn quotes_that_keep_records_even_are_quotes() {
    let list =
        |no: usize| (0..20 + no * 7).map(|value| (value % 7).to_string()).collect::<Vec<_>>().join(",");
    let rows = (0..6).map(|no| format!("0.05,0.8,\"{}\",\"{}\",larger\n", list(no), list(6 - no)));
    let found = text(&format!("alpha,power,a,b,alternative\n{}", rows.collect::<String>()));
    assert_eq!((found.width, found.dialect.quote, found.header_rows), (5, Some(b'"'), 1));
}

#[test]
fn a_quote_that_nothing_closes_is_told_where_it_is_taken_for_data() {
    let good = |rows: std::ops::Range<u32>| rows.map(|row| format!("{row},w{row}\n")).collect::<String>();
    let told = |text: &str| {
        let finding = super::text(text);
        assert_eq!(finding.dialect.quote, None, "{text}");
        finding.unsure.iter().map(|unsure| unsure.option).collect::<Vec<_>>()
    };
    assert_eq!(told(&format!("a,b\n{}1,\"x\n{}", good(0..399), good(400..799))), ["--quote"]);
    assert_eq!(told(&format!("a,b\n1,\"x\n{}", good(0..399))), ["--quote"]);
    assert_eq!(told("a,b\n1,\"x\n2,y\n"), ["--quote"]);
    assert_eq!(told("a,b\n1,x\n2,\"y\n3,z\n4,w\n"), ["--quote"]);
    // Inches, wherever they stand but at the beginning.
    let inches: String = (0..400).map(|row| format!("{row},{row}\",5\" pipe\n")).collect();
    assert_eq!(told(&format!("a,b,c\n{inches}")), [""; 0]);
}

#[test]
fn blanks_on_either_side_of_the_values_of_a_column_are_values() {
    let values = [
        "small  ",
        "fern  ",
        "cable\told",
        "  ",
        "  ",
        "copper  ",
        "  ",
        "red  ",
        " glass",
        "  ",
        "valve  ",
        " salt",
    ];
    let lines: String =
        values.iter().enumerate().map(|(no, value)| format!("0{no}.06.2023,{value},{no}7.5\n")).collect();
    let found = text(&lines);
    assert!(!found.dialect.trim, "{}", found.describe());
    let filled = lines.replace(" glass", "glass ").replace(" salt", "salt ").replace("\told", "   ");
    assert!(text(&filled).dialect.trim);
}

#[test]
fn blanks_that_line_fields_up_do_not_delimit_beside_a_sign_that_does() {
    let names = ["LAMP", "AMBER", "RIVER", "NORTH"];
    let lines: String = (0..40)
        .map(|no| format!("{:04X}; LATIN CAPITAL {:<20} # L&       x\n", 65 + no, names[no % 4]))
        .collect();
    let found = text(&format!("# Blocks-15.txt\n#\n\n{lines}"));
    assert_eq!((found.dialect.delimiter.trim_end(), found.width), (";", 2), "{}", found.describe());
    // The comma of names delimits nothing.
    let list: String =
        (0..40).map(|no| format!("{:<16}{:>8}   {}\n", "Smith, John", no * 37, names[no % 4])).collect();
    assert_eq!(text(&list).dialect.delimiter, "  ", "{}", text(&list).describe());
}

#[test]
fn letters_of_turkish_and_of_estonian_are_told_apart_or_said_to_be_unsure() {
    let found = |words: &[&str], encoding: &'static encoding_rs::Encoding| {
        let lines =
            (0..80).map(|no| format!("{no},{} {}\n", words[no % words.len()], words[no * 7 % words.len()]));
        let bytes = encoding.encode(&lines.collect::<String>()).0.into_owned();
        let found = find(&Sample::of_whole(&bytes), &Given::default()).unwrap();
        (found.encoding.name.clone(), found.unsure.iter().any(|unsure| unsure.what.contains("WIN1257")))
    };
    let with_few = ["saama", "šokolaad", "žurnaal", "tõde", "põld", "üür", "äär", "šahh", "dušš", "sõber"];
    let (name, is_told) = found(&with_few, encoding_rs::WINDOWS_1257);
    assert!(name == "WIN1257" || is_told, "{name}");
    let estonian = ["saama", "šokolaad", "žurnaal", "garaaž", "tõde", "öö", "üür", "pluss", "jõgi", "mõis"];
    let (name, is_told) = found(&estonian, encoding_rs::WINDOWS_1257);
    assert!(name == "WIN1257" || is_told, "{name}");
    let turkish = ["şehir", "ışık", "güneş", "çocuk", "ağaç", "yağmur", "öğrenci", "köy", "kapı"];
    assert_eq!(found(&turkish, encoding_rs::WINDOWS_1254), ("WIN1254".to_owned(), false));
}

#[test]
fn escape_sequences_of_jis_are_an_encoding() {
    let found = whole(b"id,name\n1,\x1b$B$3$s$K$A$O\x1b(B\n2,\x1b$B@$3&\x1b(B\n");
    assert_eq!((found.encoding.name.as_str(), found.encoding.recoded, found.width), ("ISO-2022-JP", true, 2));
    assert_eq!(whole(b"id,name\n1,\x1b[31mred\x1b[0m\n").encoding.name, "UTF8");
}

/// Texts have no tabs, and a blank behind their commas.
#[test]
fn a_tab_in_each_record_delimits_where_a_comma_in_a_text_could() {
    let towns = ["Oslo", "Bergen", "Hamar", "Lillehammer"];
    let row = |no: usize| {
        let (town, streets) = (towns[no % 4], ["Old Street", "Lake Lane"]);
        format!("C:\\photos\\new\\{no}\t{} {}, {town}\n", no * 7 % 97, streets[no % 2])
    };
    let table: String = (0..200).map(row).collect();
    let found = text(&table);
    assert_eq!((found.dialect.delimiter.as_str(), found.width), ("\t", 2), "{}", found.describe());
    let padded: String = (0..200).map(|no| format!("{},\t{},\tx\n", towns[no % 4], no * 7 % 97)).collect();
    assert_eq!(text(&padded).dialect.delimiter, ",", "{}", text(&padded).describe());
}

/// They line up columns where their number differs from line to line, or where none stands alone; else there
/// are empty fields between them.
#[test]
fn tabs_in_a_row_are_one_only_where_they_line_up_columns() {
    let ages: String = (1..20).map(|no| format!("Bob{}\t\t{}\tRome\n", no % 7, no * 7 % 90)).collect();
    for bytes in [
        "a\t\tb\t\tc\n1\t\t2\t\t3\n4\t\t5\t\t6\n",
        "name\t\t\tage\tcity\nBob\t\t\t12\tRome\nElizabeth\t\t7\tOslo\nAlexandra Ann\t31\tBonn\n",
        &format!("name\t\tage\tcity\n{ages}"),
    ] {
        let found = text(bytes);
        assert_eq!((found.width, found.dialect.repeats), (3, true), "{bytes}: {}", found.describe());
    }
    for header in [None, Some(false)] {
        let record = |no: u32| {
            format!("{no}\tMay {:02}, 2021\t$92{no}.04\t44517\t12a\t\t0.{:03}\n", no % 28 + 1, 835 - no)
        };
        let bytes: String = (1..60).map(record).collect();
        let found = find(&Sample::of_whole(bytes.as_bytes()), &Given { header, ..Given::default() }).unwrap();
        assert_eq!((found.width, found.dialect.repeats), (7, false), "{}", found.describe());
    }
}

/// The words of parts, judged together, are judged as those of all in one file.
#[test]
fn words_of_several_files_are_judged_as_those_of_one() {
    let mut rng = fastrand::Rng::with_seed(8);
    let mut otherwise = 0;
    for _ in 0..2_000 {
        let word = rng.choice(["NA", "n/a", "-", "none", "NULL", "?", "null", "NaN", "missing"]).unwrap();
        let kinds: Vec<u8> = (0..rng.usize(2..5)).map(|_| rng.u8(0..5)).collect();
        let header = kinds.iter().enumerate().map(|(no, _)| format!("c{no}")).collect::<Vec<_>>().join(",");
        let parts: Vec<String> = (0..rng.usize(2..5)).map(|_| records(&mut rng, &kinds, word)).collect();
        let file = |records: &str| text(&format!("{header}\n{records}"));
        let alone: Vec<Finding> = parts.iter().map(|part| file(part)).collect();
        let files: Vec<&Spellings> = alone.iter().map(|found| &found.spellings).collect();
        let all = Arc::new(Spellings::of_all(&files));
        let given = Given { header: Some(true), ..Given::default() };
        let one =
            find(&Sample::of_whole(format!("{header}\n{}", parts.concat()).as_bytes()), &given).unwrap();
        for (part, alone) in parts.iter().zip(&alone) {
            let given = Given { spellings: Some(Arc::clone(&all)), ..given.clone() };
            let part = format!("{header}\n{part}");
            let found = find(&Sample::of_whole(part.as_bytes()), &given).unwrap();
            assert_eq!(
                (&found.dialect.nulls, &found.dialect.kept),
                (&one.dialect.nulls, &one.dialect.kept),
                "{part}"
            );
            otherwise += u32::from(alone.spellings.are_otherwise_in(&all));
        }
    }
    assert!(otherwise > 500, "{otherwise}");
}

fn records(rng: &mut fastrand::Rng, kinds: &[u8], word: &str) -> String {
    let shares: Vec<f64> = kinds.iter().map(|_| *rng.choice(&[0.0, 0.0, 0.1, 0.5, 1.0]).unwrap()).collect();
    let mut records = String::new();
    for _ in 0..rng.usize(5..60) {
        let values = kinds.iter().zip(&shares).map(|(kind, share)| match kind {
            _ if rng.f64() < *share => word.to_owned(),
            0 => rng.u32(..1000).to_string(),
            1 => format!("2024-01-{:02}", rng.u8(1..29)),
            2 => (*rng.choice(&["DE", "FR", "IT"]).unwrap()).to_owned(),
            3 => (*rng.choice(&["hello world", "some text 12", "x-y z"]).unwrap()).to_owned(),
            _ => (*rng.choice(&["\"a b\"", "\"NA\"", "\"q\""]).unwrap()).to_owned(),
        });
        records.push_str(&values.collect::<Vec<_>>().join(","));
        records.push('\n');
    }
    records
}
