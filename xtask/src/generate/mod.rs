//! `cargo xtask generate [--check]`: the reference pages that say what the code says.
//!
//! Enters: the declarations of the command (clap), of the summary, of the exit codes and of the ledger.
//! Leaves: the pages in `docs/reference/`, or with `--check` one line per page that is not what would be
//! written. Pages that are not in the list here are written by hand and left alone.

mod check;
mod command;
mod exit_codes;
mod job_file;
mod ledger;
mod summary;

use crate::Result;
use std::fs;
use std::path::Path;

/// A page: its path, and what makes its text.
type Page = (&'static str, fn() -> String);

const PAGES: [Page; 7] = [
    ("docs/reference/check.md", check::page),
    ("docs/reference/command.md", command::page),
    ("docs/reference/exit-codes.md", exit_codes::page),
    ("docs/reference/job-file.md", job_file::page),
    ("docs/reference/ledger.md", ledger::page),
    ("docs/reference/summary.md", summary::page),
    ("docs/reference/third-party.md", crate::supply::page),
];

/// The first line of every generated page.
const MADE_BY: &str = "<!-- Made by `cargo xtask generate` from the code; do not edit. -->\n";

/// Writes every page that is out of date.
pub(crate) fn write(workspace: &Path) -> Result<()> {
    for (path, text) in PAGES {
        let (file, text) = (workspace.join(path), whole(text));
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        let failed = |error: std::io::Error| format!("{path}: {error}");
        fs::create_dir_all(file.parent().unwrap_or(workspace)).map_err(failed)?;
        fs::write(&file, text).map_err(failed)?;
        println!("{path} written");
    }
    Ok(())
}

/// Names every page that is out of date, and changes nothing.
pub(crate) fn check(workspace: &Path) -> Result<()> {
    let stale = PAGES.iter().filter(|(path, text)| {
        fs::read_to_string(workspace.join(path)).map_or(true, |old| old != whole(*text))
    });
    let stale: Vec<&str> = stale.map(|(path, _)| *path).collect();
    if stale.is_empty() {
        println!("generate: {} pages up to date", PAGES.len());
        return Ok(());
    }
    Err(format!("out of date: {}\nrun `cargo xtask generate` and commit the result", stale.join(", ")))
}

fn whole(text: fn() -> String) -> String {
    format!("{MADE_BY}\n{}\n", text().trim_end())
}
