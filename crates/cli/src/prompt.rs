//! Asking for a password at the terminal, which does not show it.

use crate::printer;
use howdah_engine::model::{Error, ErrorKind, Result};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};

/// A longer line is no password.
const PASSWORD_BYTES_MAX: usize = 4096;

/// Somebody is there to be asked: standard input may be a pipe with rows, so standard error counts too.
pub(crate) fn is_possible() -> bool {
    (std::io::stdin().is_terminal() || std::io::stderr().is_terminal()) && terminal().is_ok()
}

fn terminal() -> std::io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// The answer to the question. Given up at any await, the terminal shows again what is typed.
///
/// # Errors
/// `Usage` without a terminal.
pub(crate) async fn password(question: &str) -> Result<String> {
    let silence = Silence::begin().map_err(|error| no_terminal(&error))?;
    let terminal = silence.terminal.try_clone().map_err(|error| no_terminal(&error))?;
    let question = printer::line(question).into_owned();
    let asked = tokio::task::spawn_blocking(move || ask(terminal, &question)).await;
    drop(silence);
    match asked {
        Ok(Ok(password)) => Ok(password),
        Ok(Err(error)) => Err(no_terminal(&error)),
        Err(error) => {
            Err(Error::new(ErrorKind::Internal, format!("asking for the password failed: {error}")))
        }
    }
}

fn ask(mut terminal: File, question: &str) -> std::io::Result<String> {
    terminal.write_all(question.as_bytes())?;
    let mut line = String::new();
    let limit = PASSWORD_BYTES_MAX as u64;
    BufReader::new(std::io::Read::take(&terminal, limit)).read_line(&mut line)?;
    terminal.write_all(b"\n")?;
    line.truncate(line.trim_end_matches(['\n', '\r']).len());
    Ok(line)
}

fn no_terminal(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Usage, format!("there is no terminal to ask for a password: {error}"))
        .with_hint("give it by PGPASSWORD or in ~/.pgpass")
}

/// A terminal that does not show what is typed, until this is dropped.
struct Silence {
    terminal: File,
    before: Termios,
}

impl Silence {
    fn begin() -> std::io::Result<Silence> {
        let terminal = terminal()?;
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        Ok(Silence { terminal, before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // What could be done about a terminal that is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
