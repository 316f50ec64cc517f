//! `transcode` turns bytes into bytes: no files, sockets, clocks, environment or async runtime in it.
//!
//! A plain look at the text outside tests; comments do not count.

use super::Source;

const FORBIDDEN: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::os",
    "tokio",
    "SystemTime",
    "Instant",
    "async fn",
];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let pure =
        sources.iter().filter(|source| source.is_rust() && source.path.starts_with("crates/transcode/src/"));
    pure.flat_map(|source| {
        source.code().filter_map(|(number, line)| {
            let code = line.split("//").next().unwrap_or_default();
            let word = FORBIDDEN.iter().find(|word| code.contains(**word))?;
            Some(format!("{}:{number}: {word} has no place in transcode", source.path))
        })
    })
    .collect()
}
