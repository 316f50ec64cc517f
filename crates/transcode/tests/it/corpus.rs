//! The corpus of messy files without a server: found, read, mended and inferred by this crate alone.
//!
//! Quicker than the command, and it shows where a case is lost. What only a server can say (existing tables,
//! columns made wider, how it prints times, JSON and doubles) is left to the command's tests.

use crate::whole_way::{Loaded, load};
use howdah_testkit::{Case, Row, Scores, corpus};

/// Types whose values PostgreSQL prints as it likes.
const PRINTED: [&str; 6] = ["double precision", "time", "timestamp", "timestamptz", "jsonb", "inet"];

#[test]
fn the_corpus_scores_no_less_than_before() {
    let mut scores = Scores::default();
    let cases = corpus().into_iter().filter(|case| case.table.is_none() && case.kind != "widening");
    for case in cases {
        scores.count(&case.kind, &case.name, wrong(&case));
    }
    scores.show("The corpus, read by the library alone");
    scores.check("library");
}

/// What is wrong, if anything.
fn wrong(case: &Case) -> Option<String> {
    let expected = case.wanted.error.as_ref().or(case.wanted.or_error.as_ref());
    match load(&case.bytes, case.lenient) {
        Err(error) => {
            let error = error.to_string();
            let ok = expected.is_some_and(|words| error.contains(words.as_str()));
            (!ok).then(|| format!("failed: {error}"))
        }
        Ok(loaded) => match &case.wanted.error {
            Some(words) => Some(format!("a failure with the words {words:?} wanted")),
            None => disagreement(&loaded, case),
        },
    }
}

fn disagreement(loaded: &Loaded, case: &Case) -> Option<String> {
    if loaded.left_out != case.wanted.left_out {
        return Some(format!("{} records left out, {} wanted", loaded.left_out, case.wanted.left_out));
    }
    let columns: Vec<(String, String)> =
        loaded.columns.iter().map(|(name, inferred)| (name.clone(), inferred.type_name.clone())).collect();
    let printed: Vec<bool> = columns.iter().map(|(_, name)| PRINTED.contains(&name.as_str())).collect();
    let mask = |rows: &[Row]| -> Vec<Row> {
        let hidden = |(no, value): (usize, &Option<String>)| {
            let printed = printed.get(no).copied().unwrap_or(false);
            value.as_ref().map(|value| if printed { String::new() } else { value.clone() })
        };
        rows.iter().map(|row| row.iter().enumerate().map(hidden).collect()).collect()
    };
    let mut masked = case.clone();
    masked.wanted.rows = mask(&case.wanted.rows);
    let wrong = masked.disagreement(&mask(&loaded.rows)).or_else(|| case.wrong_columns(&columns));
    wrong.map(|wrong| format!("{wrong}; {}", loaded.found()))
}
