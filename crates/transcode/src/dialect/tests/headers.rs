//! First records that are names, and those that are not.

use super::*;

#[test]
fn a_record_with_words_for_some_values_is_no_header() {
    let body = "2,2024-01-02,5\n3,2024-01-03,6\n4,2024-01-04,7\n5,2024-01-05,8\n6,tbd,9\n";
    for first in ["1,0000-00-00,tbd\n", "x,tbd,unknown\n", "1,unknown,tbd\n"] {
        let found = text(&format!("{first}{body}"));
        assert_eq!((found.header_rows, found.plain.start_byte), (0, 0), "{first}");
        let found = text(&format!("id,day,n\n{first}{body}"));
        assert_eq!((found.header_rows, found.plain.start_byte), (1, 9), "{first}");
    }
    let years = "ann,1990,1991\nbob,1985,1986\ncid,1970,1975\n";
    assert_eq!(text(years).header_rows, 0);
    let years = text("name,a,b\nann,2019,2020\nbob,1.5,7\ncid,2.5,8\ndan,3.5,9\n");
    assert_eq!(years.header_rows, 1, "{}", years.describe());
    // A header may come again.
    let again = text("day,n\n2024-01-02,5\n2024-01-03,6\n2024-01-04,6\nday,n\n2024-01-05,7\n2024-01-06,9\n");
    assert_eq!(again.header_rows, 1);
}

#[test]
fn further_header_records_are_told() {
    let body = "1,ann,2020-01-01\n2,bob,2020-01-02\n3,cid,2020-01-03\n";
    let told = |header: &str| {
        let found = text(&format!("{header}{body}"));
        found.unsure.iter().any(|unsure| unsure.option == HEADER_RECORDS_OPTION) && !found.is_header_unsure()
    };
    assert!(told("key,person,date of\nno,name,birth\n") && !told("id,name,born\n") && !told(""));
}
