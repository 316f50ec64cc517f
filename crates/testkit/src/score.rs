//! How many cases of each kind pass, beside what passed before: `corpus/scores.toml`.
//!
//! A score that falls is a failure; one that rises is written down by `HOWDAH_PIN_SCORES=1`.

use crate::corpus::corpus_folder;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use toml::{Table, Value};

/// The scores of one way to run the corpus.
#[derive(Debug, Default)]
pub struct Scores {
    kinds: BTreeMap<String, (u64, u64)>,
    failures: Vec<String>,
}

impl Scores {
    /// Counts a case; `wrong` says what is wrong with it.
    pub fn count(&mut self, kind: &str, name: &str, wrong: Option<String>) {
        let (passed, all) = self.kinds.entry(kind.to_owned()).or_default();
        *all += 1;
        *passed += u64::from(wrong.is_none());
        self.failures.extend(wrong.map(|wrong| format!("{kind}/{name}: {wrong}")));
    }

    /// One line per case that failed, one per kind, and the total.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut failures = self.failures.clone();
        failures.sort();
        for failure in failures {
            let _ = writeln!(text, "  {failure}");
        }
        for (kind, (passed, all)) in &self.kinds {
            let _ = writeln!(text, "{kind:<18} {passed:>5} of {all}");
        }
        let (passed, all) = self.total();
        let _ = writeln!(text, "{:<18} {passed:>5} of {all}", "total");
        text
    }

    /// Shows the table, past the test runner, which keeps what a passing test prints to itself.
    pub fn show(&self, title: &str) {
        let _ = std::io::stdout().write_all(format!("\n{title}\n{}", self.table()).as_bytes());
    }

    /// Passed and all.
    pub fn total(&self) -> (u64, u64) {
        self.kinds.values().fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1))
    }

    /// Panics with the table when a kind, or the total, is below what `scores.toml` has under `section`.
    #[track_caller]
    pub fn check(&self, section: &str) {
        let path = corpus_folder().join("scores.toml");
        let mut file: Table = fs::read_to_string(&path).unwrap_or_default().parse().expect("scores.toml");
        let own: Table = file.get(section).and_then(Value::as_table).cloned().unwrap_or_default();
        if std::env::var_os("HOWDAH_PIN_SCORES").is_some() {
            let scores = self.kinds.iter();
            let scores = scores.map(|(kind, (passed, _))| (kind.clone(), (*passed).cast_signed().into()));
            file.insert(section.to_owned(), Value::Table(scores.collect()));
            let text =
                file.iter().fold(HEAD.to_owned(), |text, (name, section)| text + &lines(name, section));
            fs::write(&path, text).expect("scores.toml");
            return;
        }
        let pinned = |kind: &str| own.get(kind).and_then(Value::as_integer).unwrap_or(0).cast_unsigned();
        let fallen: Vec<String> = (self.kinds.iter())
            .filter(|(kind, (passed, _))| *passed < pinned(kind))
            .map(|(kind, (passed, _))| format!("{kind}: {passed}, was {}", pinned(kind)))
            .collect();
        let missing = own.keys().find(|kind| !self.kinds.contains_key(*kind));
        assert!(fallen.is_empty(), "scores have fallen: {fallen:?}\n{}", self.table());
        assert_eq!(missing, None, "a kind is gone");
    }
}

const HEAD: &str = "# How many cases of each kind pass, by the command and by the library alone. None may fall.\n\
                    # HOWDAH_PIN_SCORES=1 with the tests named `corpus` writes this file.\n\n";

fn lines(name: &str, section: &Value) -> String {
    let scores = section.as_table().into_iter().flatten();
    let line = |(kind, passed): (&String, &Value)| format!("{kind} = {}\n", passed.as_integer().unwrap_or(0));
    format!("[{name}]\n{}\n", scores.map(line).collect::<String>())
}
