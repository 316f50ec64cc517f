//! The page that lists other people's work in what users get.

use super::packages::packages;
use std::fmt::Write;

/// `docs/reference/third-party.md`. A lock file that cannot be read makes a page that says so, which no check
/// takes.
pub(crate) fn page() -> String {
    let mut text = String::from(
        "# Third-party packages\n\n\
         What the command and the Python package are built from, beside Rust's standard library, on all platforms together. The\n\
         licences are those that each package names, as SPDX expressions; their texts are in the packages. What is allowed stands\n\
         in `deny.toml`, and `cargo xtask supply` holds all dependencies to it, those of tests and tools included.\n\n\
         | package | version | licence |\n| --- | --- | --- |\n",
    );
    let all = match packages(&crate::workspace().join("Cargo.toml")) {
        Ok(all) => all,
        Err(error) => return error,
    };
    for package in all.iter().filter(|package| package.is_shipped && package.source.is_some()) {
        let name = match &package.repository {
            Some(repository) => format!("[{}]({repository})", package.name),
            None => package.name.clone(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {} | {} |",
            package.version,
            package.licence.as_deref().unwrap_or("none named")
        );
    }
    text
}
