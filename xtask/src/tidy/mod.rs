//! `cargo xtask tidy`: the house rules that compiler and clippy do not know.
//!
//! Enters: the files git tracks or would track. Leaves: one line per broken rule, `file: what is wrong`, or
//! nothing. Each rule is a file here; none changes anything. (Function length is clippy's:
//! `too_many_lines`.)

mod edges;
mod links;
mod names;
mod purity;
mod size;
mod sources;
mod width;
mod words;

use crate::Result;
use sources::Source;
use std::path::Path;

/// A rule: all files enter, its offences leave.
type Rule = fn(&[Source]) -> Vec<String>;

/// Checks every rule and names all offences at once.
pub(crate) fn run(workspace: &Path) -> Result<()> {
    let sources = sources::tracked(workspace)?;
    let rules: [(&str, Rule); 7] = [
        ("imports", edges::check),
        ("links", links::check),
        ("names", names::check),
        ("purity", purity::check),
        ("size", size::check),
        ("width", width::check),
        ("words", words::check),
    ];
    let mut offences = Vec::new();
    for (rule, check) in rules {
        offences.extend(check(&sources).into_iter().map(|offence| format!("{rule}: {offence}")));
    }
    if offences.is_empty() {
        println!("tidy: {} files", sources.len());
        return Ok(());
    }
    Err(format!("{}\ntidy: {} offences", offences.join("\n"), offences.len()))
}
