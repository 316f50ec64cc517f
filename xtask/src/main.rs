//! Chores of the workspace: `cargo xtask servers`, `tidy`, `supply` and `generate`.
//!
//! Enters: one verb. Leaves: files below `target/`, reference pages below `docs/`, or a list of what is wrong
//! and exit code 1.
//! Nothing here is part of what users get.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod generate;
mod process;
mod servers;
mod supply;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Chores fail with one line for a person to read.
type Result<T> = std::result::Result<T, String>;

const USAGE: &str = "usage: cargo xtask servers | tidy | supply | generate [--check]
  servers   install the PostgreSQL and S3 servers the tests need below target/servers
  tidy      check the house rules that compiler and clippy do not know
  supply    check licences, sources and bans of all dependencies against deny.toml
  generate  write the pages of docs/reference that are made from the code; --check only compares";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match (arguments.next().as_deref(), arguments.next().as_deref()) {
        (Some("servers"), None) => servers::run(&workspace()),
        (Some("tidy"), None) => tidy::run(&workspace()),
        (Some("supply"), None) => supply::run(&workspace()),
        (Some("generate"), None) => generate::write(&workspace()),
        (Some("generate"), Some("--check")) => generate::check(&workspace()),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The root folder of the workspace: the parent of this package.
fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}
