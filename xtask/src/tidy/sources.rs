//! The files the rules look at: everything git tracks, and new files it does not ignore.

use crate::Result;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A file of the project.
pub(super) struct Source {
    /// Path from the root, with `/`.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// Its text; `None` when it is not UTF-8.
    pub(super) text: Option<String>,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines before the unit tests, numbered from 1.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.as_deref().unwrap_or_default().lines();
        (1..).zip(lines).take_while(|(_, line)| !line.trim_start().starts_with("#[cfg(test)]"))
    }
}

pub(super) fn tracked(workspace: &Path) -> Result<Vec<Source>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace)
        .output()
        .map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut sources = Vec::new();
    for path in names.split('\0').filter(|path| !path.is_empty()) {
        let file = workspace.join(path);
        // Deleted but still in the index, or a link: nothing to look at.
        if !fs::symlink_metadata(&file).is_ok_and(|data| data.is_file()) {
            continue;
        }
        let content = fs::read(&file).map_err(|error| format!("{path}: {error}"))?;
        let bytes = content.len() as u64;
        sources.push(Source { path: path.to_owned(), bytes, text: String::from_utf8(content).ok() });
    }
    Ok(sources)
}
