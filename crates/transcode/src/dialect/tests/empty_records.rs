//! Records whose fields are all empty.

use super::*;

#[test]
fn records_of_empty_fields_are_records_where_they_stand_among_others() {
    let bytes = b"a,b\n,\n1.5,x\n,\n2.5,y\n3.5,z\n4.5,w\n,\n";
    let finding = find(&Sample::of_whole(bytes), &Given::default()).unwrap();
    assert_eq!((finding.plain.start_byte, finding.plain.end_byte), (4, None));
}

#[test]
fn records_of_empty_fields_are_records_at_both_ends_and_told_where_they_keep_notes_apart() {
    for end in [",\n", ",\n,\n", "\"\",\"\"\n", ",\"\"\n", ","] {
        let found = text(&format!("a,b\n,\n1.5,x\n2.5,y\n3.5,z\n4.5,w\n{end}"));
        let place = (found.plain.start_byte, found.plain.end_byte, found.record_like);
        assert_eq!(place, (4, None, 0), "{end:?}: {}", found.describe());
    }
    let no_header = Given { header: Some(false), ..Given::default() };
    let found = find(&Sample::of_whole(b",\n,\n1.5,x\n2.5,y\n3.5,z\n"), &no_header).unwrap();
    assert_eq!((found.plain.start_byte, found.record_like), (0, 0));
    for below_header in ["c\n\"\"\nt7\nt14\nt21\nt28\nt35\n", "a,b\n,\nfoo,bar\nbaz,qux\nfox,elk\nyak,emu\n"]
    {
        let found = find(
            &Sample::of_whole(below_header.as_bytes()),
            &Given { header: Some(true), ..Given::default() },
        );
        assert_eq!(found.unwrap().preamble_records, 0, "{below_header:?}");
    }
    let table = "a,b,c\n1.5,x,7\n2.5,y,8\n3.5,z,9\n";
    let found = text(&format!("{table},,\nSource: our own books,,\n"));
    assert_eq!((found.plain.end_byte, found.record_like), (Some(table.len() as u64), 2));
}

/// They set nothing apart that fills the table.
#[test]
fn records_around_one_of_empty_fields_are_no_titles_and_no_notes() {
    let some = "33\tyork 50%\nn/a?\ttrue north\n48\tgamma e&f\n\t\nn/a?\tnothing\n12\tdelta x\n";
    let first = "\tnew-york delta\nn/a?\tnothing beta\n\t(paren) y\n\t\n";
    let last = "\tdelta, 50% x\n\t\nn/a?\t\n";
    let file = format!("{first}{}{last}", some.repeat(8));
    let found = text(&file);
    assert_eq!((found.preamble_records, found.plain.end_byte), (0, None), "{}", found.describe());
    let titled = text("Report,Q1\n,\nid,name\n1,ann\n2,bob\n3,cy\n4,dan\n5,eve\n");
    let padded = text("Report,\nOf the day,\n,\nid,name\n1,ann\n2,bob\n3,cy\n4,dan\n5,eve\n6,fay\n7,gus\n");
    assert_eq!((titled.preamble_records, padded.preamble_records), (0, 3), "{}", padded.describe());
}

#[test]
fn blanks_in_quotes_are_values_of_a_record() {
    for (file, rows) in [
        ("\"a\"\n\"x\"\n\"p\tq\"\n\"\t\"\n\"x\"\n\"y\"\n\" \"\n", 6),
        ("\"a\"\r\n\"\n\"\r\n", 1),
        ("a,b\n\" \",\" \"\nx,y\nz,w\n\" \",\n", 4),
    ] {
        let given = Given { header: Some(true), ..Given::default() };
        let found = find(&Sample::of_whole(file.as_bytes()), &given).unwrap();
        assert_eq!(super::rows(&found, file.as_bytes()).len(), rows, "{file:?}: {}", found.describe());
    }
}

#[test]
fn delimiters_alone_are_told_whatever_their_number() {
    let records = ["1,ada,Rome", "2,bob,Oslo", "3,eve,Bonn", "4,dan,Lund"];
    for delimiter in [",", ";", "\t", "|"] {
        for count in [1, 3, 4] {
            let (header, odd) = ("id,name,city", ",".repeat(count));
            for lines in
                [[&[header, &odd], &records[..]].concat(), [&[header], &records[..], &[&odd]].concat()]
            {
                let table = lines.join("\n").replace(',', delimiter) + "\n";
                let found = text(&table);
                assert_eq!((found.width, found.record_like), (3, 1), "{table:?}: {}", found.describe());
            }
            let first = [&[odd.as_str()], &records[..]].concat().join("\n").replace(',', delimiter);
            assert_eq!(text(&first).record_like, 1, "{first:?}");
        }
    }
}
