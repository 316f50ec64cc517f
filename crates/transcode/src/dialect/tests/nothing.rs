//! Files without a value.

use super::*;

#[test]
fn lines_that_all_look_like_comments_are_records_for_who_says_so() {
    let bytes = b"% rank,name\n% 1,oak\n% 2,ash\n";
    let found = whole(bytes);
    assert_eq!((found.width, found.unsure.len(), found.unsure[0].option), (0, 1, "--format csv"));
    for given in [
        Given { header: Some(true), ..Given::default() },
        Given { delimiter: Some(",".to_owned()), ..Given::default() },
    ] {
        let found = find(&Sample::of_whole(bytes), &given).unwrap();
        assert_eq!((found.width, rows(&found, bytes).len() as u32 + found.header_rows), (2, 3), "{given:?}");
    }
}

#[test]
fn lines_of_empty_fields_are_records_for_who_says_so() {
    assert!(text("\n  \n").unsure.is_empty());
    for bytes in [&b"\"\"\n\"\"\n"[..], b",,\n,,\n"] {
        let found = whole(bytes);
        assert_eq!((found.width, found.unsure.len(), found.unsure[0].option), (0, 1, "--format csv"));
        let given = Given { header: Some(false), ..Given::default() };
        let found = find(&Sample::of_whole(bytes), &given).unwrap();
        assert_eq!(rows(&found, bytes).len(), 2, "{bytes:?} {}", found.describe());
    }
}
