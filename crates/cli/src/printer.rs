//! All terminal output goes through here: results to stdout, everything else to stderr.

use crate::options::Command;
use howdah_engine::model::Error;
use howdah_engine::model::terminal::is_obeyed;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Knows what the user wants to see.
#[derive(Debug, Clone)]
pub struct Printer {
    quiet: bool,
    json: bool,
    /// A result could not be written.
    lost: Arc<AtomicBool>,
}

impl Printer {
    /// As the options of this command say.
    pub fn new(command: &Command) -> Printer {
        let (quiet, json) = match command {
            Command::Load(options) | Command::Plan(options) | Command::Check(options) => {
                (options.output.quiet, options.output.json)
            }
            Command::Bench(options) => (options.load.output.quiet, options.load.output.json),
            Command::Resume(options) => (options.output.quiet, options.output.json),
            Command::Restore(options) => (options.output.quiet, options.output.json),
            Command::Status(options) => (false, options.json),
            Command::Pg(_) | Command::Completions { .. } | Command::Man { .. } => (false, false),
        };
        Printer { quiet, json, lost: Arc::default() }
    }

    /// A JSON document is wanted instead of text.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Progress may be drawn: nobody asked for silence, and somebody watches.
    pub fn draws(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Only errors and warnings are wanted.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// A result, to stdout. A reader that has gone away is no failure of ours; a disk that is full is, of the
    /// whole command.
    pub fn out(&self, text: &str) {
        let text = lines(text);
        let mut stdout = io::stdout().lock();
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(b"\n"))
            .and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let _ = writeln!(
                    io::stderr(),
                    "error: standard output cannot be written: {error}\nhint: the work is done, only its result is not told: after a load, howdah status, with its --to and --ledger, tells what is stored"
                );
                self.lost.store(true, Relaxed);
            }
            _ => {}
        }
    }

    /// A result could not be written.
    pub fn has_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// A remark, to stderr, unless `--quiet`.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{}", lines(text));
        }
    }

    /// What is not as may be expected, to stderr, also with `--quiet`: as with psql, that silences what is
    /// merely told.
    pub fn warn(&self, text: &str) {
        let _ = writeln!(io::stderr(), "warning: {}", line(text));
    }

    /// An error and its hint, to stderr.
    pub fn error(&self, error: &Error) {
        let mut stderr = io::stderr().lock();
        let _ = writeln!(stderr, "error: {}", line(&error.to_string()));
        if let Some(hint) = error.hint() {
            let _ = writeln!(stderr, "hint: {}", line(hint));
        }
    }
}

/// The text without characters that a terminal obeys, or by which one text is shown as another: names of
/// files, tables and columns, and what a server says, may hold any. Each is written as `\u001b`, which is the
/// same character in JSON. Lines stay lines.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && c != '\n' && c != '\t')
}

/// The same of what is one line.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

fn escaped(text: &str, is_meant: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_meant) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_meant(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_that_a_terminal_obeys_is_written() {
        assert_eq!(lines("a\tb\nc"), "a\tb\nc");
        assert_eq!(lines("\x1b[2J\r\x07\x7f\u{9b}31m"), "\\u001b[2J\\u000d\\u0007\\u007f\\u009b31m");
        assert_eq!(line("a\nerror: b\u{85}é"), "a\\u000aerror: b\\u0085é");
        // A document says the same.
        let told = "\u{7f}\u{9b}\u{1b}\u{202e}\u{feff}";
        let document = serde_json::to_string(told).unwrap();
        let read: String = serde_json::from_str(&lines(&document)).unwrap();
        assert_eq!(read, told);
    }

    #[test]
    fn no_name_is_shown_as_another() {
        assert_eq!(line("a\u{202e}gpj.csv"), "a\\u202egpj.csv");
        assert_eq!(
            lines("t\u{2066}x\u{2069}\u{200b}\u{200f}\u{feff}"),
            "t\\u2066x\\u2069\\u200b\\u200f\\ufeff"
        );
        assert_eq!(line("زن\u{a0}Ünïcode \u{1f468}"), "زن\u{a0}Ünïcode \u{1f468}");
    }
}
