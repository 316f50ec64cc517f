//! Words that belong to one machine or one registry and so to no file of the project.

use super::Source;

/// Assembled here, so that this file does not offend itself. The first two are paths of build machines, the
/// others hosts: packages come from whatever registry the user's client is set up for.
const FORBIDDEN: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!("/tmp", "/w/"),
    concat!("crates", ".io/"),
    concat!("pypi", ".org/"),
    concat!("registry.npm", "js.org"),
    concat!("repo1.maven", ".org"),
];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    // Lock files name their registry by nature.
    let texts = sources.iter().filter(|source| !source.path.ends_with(".lock"));
    texts.flat_map(|source| in_file(&source.path, source.text.as_deref().unwrap_or_default())).collect()
}

fn in_file(path: &str, text: &str) -> Vec<String> {
    let lines = (1..).zip(text.lines());
    lines
        .filter_map(|(number, line): (usize, &str)| {
            let word = FORBIDDEN.iter().find(|word| has_word(line, word))?;
            Some(format!("{path}:{number}: `{word}`"))
        })
        .collect()
}

/// Not as the tail of a longer name: `network/` is fine.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !word.starts_with('/') || !before.is_some_and(|c| c.is_alphanumeric() || "_.-".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_paths_are_found_and_longer_names_are_not() {
        assert!(has_word(concat!("cd /wo", "rk/main"), FORBIDDEN[0]));
        assert!(!has_word(concat!("bench/wo", "rk/x"), FORBIDDEN[0]));
        assert!(!has_word("network/x", FORBIDDEN[0]));
    }
}
