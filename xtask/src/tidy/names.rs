//! Files and folders are named by what they are about; every Rust module opens with what it is.

use super::Source;

/// Names that say nothing.
const EMPTY_NAMES: [&str; 8] = ["utils", "util", "common", "helpers", "helper", "misc", "types", "stuff"];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().filter_map(|source| empty_name(&source.path).or_else(|| undocumented(source))).collect()
}

fn empty_name(path: &str) -> Option<String> {
    let mut parts = path.split('/').map(|part| part.split('.').next().unwrap_or_default());
    let name = parts.find(|part| EMPTY_NAMES.contains(part))?;
    // One SQL type per file lives in encode/types.
    if path.contains("encode/types/") && name == "types" {
        return None;
    }
    Some(format!("{path}: `{name}` says nothing; name the subject"))
}

fn undocumented(source: &Source) -> Option<String> {
    let text = source.text.as_deref().filter(|_| source.is_rust())?;
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    let documented = first.is_some_and(|line| line.starts_with("//!"));
    (!documented).then(|| format!("{}: does not open with //! and what it is", source.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_in_files_and_folders() {
        assert!(empty_name("crates/x/src/utils.rs").is_some());
        assert!(empty_name("python/common/a.py").is_some());
        assert!(empty_name("crates/transcode/src/encode/types/int4.rs").is_none());
        assert!(empty_name("crates/x/src/commonly.rs").is_none());
    }
}
