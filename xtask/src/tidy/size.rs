//! Files short enough to read in one sitting, and nothing big in the repository.

use super::Source;

/// Lines of a Rust file before its tests.
const LINES_MAX: usize = 600;
/// Of any file git tracks. Data is generated or installed, not kept.
const BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let lines = if source.is_rust() { source.code().count() } else { 0 };
        if lines > LINES_MAX {
            found.push(format!("{}: {lines} lines before its tests, at most {LINES_MAX}", source.path));
        }
        if source.bytes > BYTES_MAX {
            found.push(format!("{}: {} bytes, at most {BYTES_MAX}", source.path, source.bytes));
        }
    }
    found
}
