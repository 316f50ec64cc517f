//! Any text as an option list: no panic; and what is understood means the same when it is written out again.
#![no_main]

use howdah_model::{ColumnChoice, Format, FormatKind, Header};
use howdah_transcode::copy_options;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(format) = copy_options::parse(text) else { return };
    copy_options::check(&format).expect("what was parsed goes together");
    let again = copy_options::parse(&list(&format)).expect("what was written out is a list");
    assert_eq!(without_csv_options(again), without_csv_options(format));
});

/// The same options in one spelling.
fn list(format: &Format) -> String {
    let byte = |byte: u8| literal(&char::from(byte).to_string());
    let header = match format.header {
        Header::None => "false",
        Header::Names => "true",
        Header::Match => "match",
    };
    let mut options = vec![format!("DELIMITER {}", byte(format.delimiter)), format!("HEADER {header}")];
    options.push(format!("NULL {}", literal(&format.null)));
    match format.kind {
        FormatKind::Text => options.push("FORMAT text".to_owned()),
        FormatKind::Csv => {
            options.push(format!("FORMAT csv, QUOTE {}, ESCAPE {}", byte(format.quote), byte(format.escape)));
        }
    }
    options.extend(format.encoding.as_deref().map(|name| format!("ENCODING {}", literal(name))));
    options.extend(format.default.as_deref().map(|text| format!("DEFAULT {}", literal(text))));
    for (name, choice) in [("FORCE_NULL", &format.force_null), ("FORCE_NOT_NULL", &format.force_not_null)] {
        match choice {
            ColumnChoice::None => {}
            ColumnChoice::All => options.push(format!("{name} *")),
            ColumnChoice::Named(columns) => {
                let quoted: Vec<String> =
                    columns.iter().map(|column| format!("\"{}\"", column.replace('"', "\"\""))).collect();
                options.push(format!("{name} ({})", quoted.join(", ")));
            }
        }
    }
    format!("({})", options.join(", "))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Quote and escape mean nothing to the text format.
fn without_csv_options(format: Format) -> Format {
    match format.kind {
        FormatKind::Csv => format,
        FormatKind::Text => Format { quote: b'"', escape: b'"', ..format },
    }
}
