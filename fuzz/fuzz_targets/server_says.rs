//! Any text as the bound of a partition, or as the context or the message of a server's error: no panic. A
//! bound means the same when it is printed again; a value in a context never passes for a line or a column,
//! nor does one come out of a message.
#![no_main]

use howdah_model::route::{Bound, Edge};
use howdah_target::session::outside::{error_spot, partition_bound, shown};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(bound) = partition_bound(text) {
        assert_eq!(partition_bound(&printed(&bound)), Some(bound));
    }
    let columns = ["a", "b"].map(str::to_owned);
    let _ = error_spot(text, &columns);
    let line = text.len() as u64;
    let context = format!("COPY t, line {line}, column b: \"{text}\"");
    assert_eq!(error_spot(&context, &columns), Some((line, Some("b".to_owned()))));
    for sqlstate in ["22P02", "42704", "42883", "P0001", "23514"] {
        let _ = shown(sqlstate, text);
    }
    let message = format!("invalid input syntax for type integer: \"{text}\"");
    assert_eq!(shown("22P02", &message), "invalid input syntax for type integer: \"...\"");
});

/// As `ruleutils.c` prints it.
fn printed(bound: &Bound) -> String {
    let value = |value: &Option<String>| value.as_deref().map_or("NULL".to_owned(), literal);
    let edge = |edge: &Edge| match edge {
        Edge::Min => "MINVALUE".to_owned(),
        Edge::Max => "MAXVALUE".to_owned(),
        Edge::Value(text) => literal(text),
    };
    let edges = |edges: &[Edge]| edges.iter().map(edge).collect::<Vec<_>>().join(", ");
    match bound {
        Bound::List(values) => {
            format!("FOR VALUES IN ({})", values.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        Bound::Range { from, to } => format!("FOR VALUES FROM ({}) TO ({})", edges(from), edges(to)),
        Bound::Hash { modulus, remainder } => {
            format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
        }
    }
}

fn literal(text: &str) -> String {
    let escapes = if text.contains('\\') { "E" } else { "" };
    format!("{escapes}'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
