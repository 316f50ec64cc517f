//! What the first lines of a file are, and where its table ends: names, records, titles.

use super::super::HEADER_OPTION;
use super::text;

#[test]
fn a_first_record_of_words_that_no_other_has_is_told() {
    for (bytes, is_unsure) in [
        ("Alice,admin\nBob,user\nCarl,user\nDora,user\nEve,user\nFay,user\n", true),
        ("EUR,Euro,Europe\nUSD,Dollar,Other\nGBP,Pound,Other\nJPY,Yen,Other\n", true),
        ("Berlin\nParis\nRome\nParis\nRome\n", true),
        ("name,role\nBob,user\nCarl,user\nDora,user\nEve,user\nFay,user\n", false),
        ("Land,Ort\nDE,Bonn\nFR,Lille\nIT,Pisa\nES,Vigo\n", false),
        ("WER,WAS\nbob,user\ncarl,user\ndora,user\neve,admin\nfay,user\n", false),
    ] {
        let finding = text(bytes);
        let unsure = finding.unsure.iter().any(|unsure| unsure.option == HEADER_OPTION);
        assert_eq!((finding.header_rows, unsure), (1, is_unsure), "{bytes}: {}", finding.describe());
    }
}

#[test]
fn days_and_years_name_columns() {
    for (bytes, names) in [
        ("Country,1/22/20,1/23/20,1/24/20\nAfghanistan,0,0,1\nAlbania,0,2,3\n", 1),
        ("Country,2024-01-01,2024-01-02\nAfghanistan,0,0\nAlbania,0,2\nAngola,3,4\n", 1),
        ("Room,10:00,11:00\nA,1,0\nB,0,1\nC,2,1\n", 1),
        ("Country,1990,1991\nChad,high,low\nMali,low,low\nPeru,low,high\n", 1),
        ("id,1,2,3\n7,TRUE,FALSE,TRUE\n8,FALSE,FALSE,TRUE\n9,TRUE,TRUE,TRUE\n", 1),
        ("1,0\nTRUE,FALSE\nFALSE,TRUE\nTRUE,TRUE\n", 0),
        ("Oslo,2024-01-01,0\nRome,3,0\nBern,2,4\nBonn,5,6\n", 0),
        ("Chad,1990,1991\nMali,1992,low\nPeru,low,1993\nIran,low,low\n", 0),
        ("Chad,1990,1995\nMali,high,low\nPeru,low,high\nIran,low,low\n", 0),
    ] {
        let finding = text(bytes);
        assert_eq!(finding.header_rows, names, "{bytes}: {}", finding.describe());
    }
}

/// Only a blank line or names begin another table.
#[test]
fn records_with_another_number_of_fields_are_no_other_table() {
    let three: String = (0..20).map(|no| format!("{no},item {no},{no}\n")).collect();
    let four: String = (20..40).map(|no| format!("{no},item {no},{no},EUR\n")).collect();
    let words: String = (0..20).map(|no| format!("w{no},a,b,c\n").replace(char::is_numeric, "x")).collect();
    for (bytes, begins, ends) in [
        (format!("id,name,qty\n{three}{four}"), 0, None),
        (format!("id,name,qty,currency\n{four}{three}"), 0, None),
        (format!("id,name,qty\n1,item 1,1\n2,item 2,2\n{four}"), 0, None),
        (format!("id,name,qty\n{three}{words}"), 0, None),
        (format!("100,foo,\n200,bar,\n{four}"), 2, None),
        (format!("id,name,qty\n{three}year,visitors\n2015,48210\n2016,51973\n"), 0, Some(21)),
    ] {
        let finding = text(&bytes);
        let end = finding.plain.end_byte.map(|end| bytes[..end as usize].lines().count());
        let told = finding.record_like;
        assert_eq!((told, end), (begins, ends), "{bytes}: {}", finding.describe());
    }
    let names = "id,name,qty\n";
    let comma = format!("{names}{three}");
    let other = text(&format!("{comma}{}", comma.replace(',', ";")));
    assert!(
        other.unsure.iter().any(|unsure| unsure.what.contains("before the table")),
        "{}",
        other.describe()
    );
}

#[test]
fn a_sign_in_every_line_of_one_field_is_told() {
    let three = (0..2500).map(|no| format!("{no},item {no},{}\n", 2 * no));
    let four = (2500..5000).map(|no| format!("{no},item {no},{},EUR\n", 2 * no));
    let mixed: String = three.chain(four).collect();
    for (bytes, is_told) in [
        (format!("id,name,qty\n{mixed}"), true),
        ((0..20).map(|no| format!("\"Lane {no}, Oslo\"\n")).collect(), false),
        ((0..20).map(|no| format!("Lane {no}\n")).collect(), false),
    ] {
        let finding = text(&bytes);
        let told = finding.unsure.iter().any(|unsure| unsure.option == "--delimiter");
        assert_eq!(told, is_told, "{}", finding.describe());
    }
}

#[test]
fn a_drawn_line_that_shows_other_columns_is_told() {
    let page = "     EMPNO ENAME       HIREDATE         SAL\n---------- ---------- --------- ----------\n      7369 SMITH      17-DEC-80        800\n      7499 ALLEN      20-FEB-81       1600\n      7521 WARD       22-FEB-81       1250\n";
    let finding = text(page);
    let told = finding.unsure.iter().any(|unsure| unsure.what.contains("a drawn line shows 4"));
    assert!(told || finding.width == 4, "{}", finding.describe());
    let fits = text("id    name\n----  ----\n1     ann\n2     bob\n3     cid\n");
    assert!(fits.unsure.iter().all(|unsure| !unsure.what.contains("drawn")), "{}", fits.describe());
}
