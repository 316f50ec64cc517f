//! Apostrophes around values are values, unless a column has them throughout or what they hold needs quotes.

use super::*;

fn quote(file: &str) -> Option<u8> {
    let finding = text(file);
    assert_eq!(finding.dialect.delimiter, ",", "{file}");
    finding.dialect.quote
}

#[test]
fn apostrophes_here_and_there_are_values() {
    for file in [
        "id,name,note\n0,plain,other\n1,'',other\n2,more,other\n",
        "id,name\n0,other\n1,'quoted'\n2,other\n3,plain\n4,'quoted'\n",
        // No record is lost inside of what only looks like one field of several lines.
        "id,name\n0,more\n1,more\n2,'tis\n3,plain\n4,5'\n",
        "id,name\n0,''\n1,other\n",
    ] {
        assert_eq!(quote(file), Some(b'"'), "{file}");
    }
}

#[test]
fn apostrophes_that_quote_are_quotes() {
    for file in [
        "id,name,note\n0,'Ann',x\n1,'Bob',y\n2,'Eve',z\n",
        "id,name,note\n0,Ann,x\n1,'Bob, jr',y\n2,Eve,z\n3,Zoe,x\n",
        "id,name,note\n0,Ann,x\n1,'it''s',y\n2,'O''Brien',z\n3,Zoe,x\n",
        "'id','name'\n'0','Ann'\n'1','Bob'\n",
    ] {
        assert_eq!(quote(file), Some(b'\''), "{file}");
    }
}

#[test]
fn a_few_values_in_single_quotes_may_have_them() {
    let is_told = |text: &str| {
        let found = find(
            &Sample::of_whole(text.as_bytes()),
            &Given { delimiter: Some(",".to_owned()), ..Given::default() },
        );
        found.unwrap().unsure.iter().any(|unsure| unsure.option == "--quote")
    };
    let records = "lamp,'cable'\nold,'fern'\n";
    assert!(is_told(&format!("id_0,title_1\n{records}")));
    assert!(!is_told(&format!("id_0,title_1\n{}", records.repeat(4))));
    assert!(!is_told("id_0,title_1\nlamp,'a, b'\nold,'fern'\n"));
}
