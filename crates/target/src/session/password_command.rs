//! A command that prints the password, such as one that asks a cloud for a token: run by `sh -c` for new
//! sessions, its answer kept for some minutes. The command is the user's own and goes to the shell as it is;
//! neither it nor what it prints is told to anybody.

use howdah_model::{Error, ErrorKind, Result, sqlstate};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout_at;

/// A token of 15 minutes, which is the shortest that a cloud gives, is still good then, and a load that opens
/// many sessions at once does not ask once for each.
const KEPT_FOR: Duration = Duration::from_secs(300);
/// A command that fails behind a success may do better soon.
const KEPT_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// A command that asks somebody over the network is done by then, or will never be.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// A new session waits so long for a command where there is a password that may still be good: who opens one
/// to see whether the network is alive takes a late answer for a dead network.
const WAITED_FOR: Duration = Duration::from_secs(3);
/// The same where the server has refused the last password: whoever wants a session tries again meanwhile.
const WAITED_FOR_IF_REFUSED: Duration = Duration::from_secs(15);
/// Longer than any token.
const PASSWORD_BYTES_MAX: u64 = 64 << 10;
/// Of what the command says on standard error, so much is kept, and of its first line so much is told.
const COMPLAINT_BYTES_MAX: u64 = 8 << 10;
const COMPLAINT_CHARS_MAX: usize = 300;
/// sqlclient_unable_to_establish_sqlconnection: what has worked once is worth another try.
const TRY_AGAIN: &str = sqlstate::SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION;

/// A command and what it has printed last.
pub(super) struct PasswordCommand {
    command: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    printed: Option<Printed>,
    running: Option<Running>,
}

struct Printed {
    password: String,
    /// When the command is asked again.
    kept_until: Instant,
}

/// The command at work, whoever waits for it: a slow one would never come to its end if it were begun anew
/// for each session.
struct Running {
    since: Instant,
    answer: JoinHandle<Result<String>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

impl PasswordCommand {
    pub(super) fn new(command: &str) -> PasswordCommand {
        PasswordCommand { command: command.to_owned(), state: Mutex::default() }
    }

    /// The password, and whether it is of this moment. One that was `refused` is asked for anew. Where the
    /// command fails behind a success, or is slow, the last password is given once more: the server says
    /// whether it is still good.
    ///
    /// # Errors
    /// `ConnectionRefused` when the command fails, is too slow or prints no password: with an SQLSTATE that
    /// may pass, if it has printed one before.
    pub(super) async fn password(&self, refused: Option<&str>) -> Result<(String, bool)> {
        let mut state = self.state.lock().await;
        let State { printed, running } = &mut *state;
        if running.as_ref().is_some_and(|running| running.since.elapsed() > KEPT_FOR) {
            // Nobody has wanted its answer for long.
            *running = None;
        }
        let is_refused = printed.as_ref().is_some_and(|last| refused == Some(&last.password));
        let has_ended = running.as_ref().is_some_and(|running| running.answer.is_finished());
        if let Some(Printed { password, kept_until }) = printed
            && Instant::now() < *kept_until
            && !is_refused
            && !has_ended
        {
            return Ok((password.clone(), false));
        }
        let limit = match printed {
            // It ends by itself.
            None => ENDS_WITHIN * 2,
            Some(_) if is_refused => WAITED_FOR_IF_REFUSED,
            Some(_) => WAITED_FOR,
        };
        match (self.answer(running, limit).await, printed) {
            (Ok(password), printed) => {
                let kept_until = Instant::now() + KEPT_FOR;
                *printed = Some(Printed { password: password.clone(), kept_until });
                Ok((password, !has_ended))
            }
            (Err(error), None) => Err(error),
            (Err(error), Some(_)) if is_refused => Err(error.with_sqlstate(TRY_AGAIN)),
            (Err(_), Some(last)) => {
                last.kept_until = Instant::now() + KEPT_AFTER_FAILURE;
                Ok((last.password.clone(), false))
            }
        }
    }

    /// What the command that is at work says, or else a new one, within this time from its beginning.
    async fn answer(&self, running: &mut Option<Running>, limit: Duration) -> Result<String> {
        let command = self.command.clone();
        let begin =
            || Running { since: Instant::now(), answer: tokio::spawn(async move { run(&command).await }) };
        let Running { since, answer } = running.get_or_insert_with(begin);
        let Ok(answer) = timeout_at((*since + limit).into(), answer).await else {
            return Err(too_slow(limit));
        };
        *running = None;
        answer.unwrap_or_else(|error| Err(failed(&error)))
    }
}

fn too_slow(limit: Duration) -> Error {
    refused(&format!("has not ended within {} s", limit.as_secs()))
}

fn failed(error: &tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Internal, format!("running the password command failed: {error}"))
}

async fn run(command: &str) -> Result<String> {
    let mut shell = Command::new("sh");
    // A group of its own, so that what the shell has started ends with it when time is up.
    shell
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = shell.spawn().map_err(|error| refused(&format!("cannot be run: {error}")))?;
    let mut group = Group::of(&child);
    let answer = tokio::time::timeout(ENDS_WITHIN, spawn_blocking(move || read(child))).await;
    let Ok(answer) = answer else {
        return Err(too_slow(ENDS_WITHIN));
    };
    // It has ended, and its number may be another's by now; what it has left in the background is its own
    // affair.
    group.0 = None;
    match answer {
        Ok(Ok((status, printed, complaint))) => password(status, printed, &complaint),
        Ok(Err(error)) => Err(refused(&format!("cannot be read: {error}"))),
        Err(error) => Err(failed(&error)),
    }
}

/// Its end, and what it has written.
fn read(mut child: Child) -> std::io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    // Read to its end, whatever its length: a command whose complaints nobody takes would fail of that.
    let complaint = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let kept = take(&mut pipe, COMPLAINT_BYTES_MAX)?;
            std::io::copy(&mut pipe, &mut std::io::sink()).map(|_| kept)
        })
    });
    let printed = child.stdout.take().map(|pipe| take(pipe, PASSWORD_BYTES_MAX + 1)).transpose()?;
    let printed = printed.unwrap_or_default();
    if printed.len() as u64 > PASSWORD_BYTES_MAX {
        drop(Group::of(&child));
        child.wait()?;
        let most = PASSWORD_BYTES_MAX >> 10;
        return Err(std::io::Error::other(format!("it prints more than {most} kB")));
    }
    let status = child.wait()?;
    let complaint = complaint.and_then(|thread| thread.join().ok()?.ok());
    Ok((status, printed, complaint.unwrap_or_default()))
}

fn take(pipe: impl Read, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(most).read_to_end(&mut bytes).map(|_| bytes)
}

/// The first line of what was printed.
fn password(status: ExitStatus, printed: Vec<u8>, complaint: &[u8]) -> Result<String> {
    if !status.success() {
        let complaint = String::from_utf8_lossy(complaint);
        let first: String =
            complaint.lines().next().unwrap_or_default().chars().take(COMPLAINT_CHARS_MAX).collect();
        let says = if first.is_empty() { String::new() } else { format!(", and says: {first}") };
        return Err(refused(&format!("has ended with {status}{says}")));
    }
    let Ok(printed) = String::from_utf8(printed) else {
        return Err(refused("fails: what it prints is no UTF-8"));
    };
    match printed.lines().next().unwrap_or_default() {
        "" => Err(refused("fails: it prints nothing in its first line")),
        password => Ok(password.to_owned()),
    }
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::ConnectionRefused, format!("the password command {what}")).with_hint(
        "--password-command or HOWDAH_PASSWORD_COMMAND is run by sh -c, and the first line that it prints is the password",
    )
}

/// The processes of a command that may still run. Dropped: they are ended.
struct Group(Option<Pid>);

impl Group {
    fn of(shell: &Child) -> Group {
        Group(i32::try_from(shell.id()).ok().and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // There may be none any more.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_printed_is_kept_until_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let command = PasswordCommand::new(&format!("echo x >> {0}; wc -l < {0}", count.display()));
        assert_eq!(command.password(None).await.unwrap(), ("1".to_owned(), true));
        assert_eq!(command.password(None).await.unwrap(), ("1".to_owned(), false));
        assert_eq!(command.password(Some("1")).await.unwrap(), ("2".to_owned(), true));
        assert_eq!(
            command.password(Some("1")).await.unwrap(),
            ("2".to_owned(), false),
            "somebody has asked anew"
        );
    }

    #[tokio::test]
    async fn a_command_that_fails_behind_a_success_leaves_the_last_password_until_that_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        let command = PasswordCommand::new(&format!("cat '{}'", token.display()));
        let first = command.password(None).await.unwrap_err();
        assert_eq!((first.kind(), first.sqlstate()), (ErrorKind::ConnectionRefused, None));
        std::fs::write(&token, "good\n").unwrap();
        assert_eq!(command.password(None).await.unwrap(), ("good".to_owned(), true));
        std::fs::remove_file(&token).unwrap();
        expire(&command).await;
        assert_eq!(command.password(None).await.unwrap(), ("good".to_owned(), false));
        let refused = command.password(Some("good")).await.unwrap_err();
        assert_eq!((refused.kind(), refused.sqlstate()), (ErrorKind::ConnectionRefused, Some(TRY_AGAIN)));
        std::fs::write(&token, "better\n").unwrap();
        assert_eq!(command.password(Some("good")).await.unwrap(), ("better".to_owned(), true));
    }

    async fn expire(command: &PasswordCommand) {
        command.state.lock().await.printed.as_mut().unwrap().kept_until = Instant::now();
    }

    #[tokio::test]
    async fn a_command_that_hangs_behind_a_success_holds_up_nobody_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let (count, go) = (folder.path().join("count"), folder.path().join("go"));
        let command = PasswordCommand::new(&format!(
            "echo x >> '{count}'; case $(wc -l < '{count}') in 1) echo good; exit;; esac; \
             until test -e '{go}'; do sleep 0.05; done; echo better",
            count = count.display(),
            go = go.display()
        ));
        assert_eq!(command.password(None).await.unwrap(), ("good".to_owned(), true));
        expire(&command).await;
        let began = Instant::now();
        assert_eq!(command.password(None).await.unwrap(), ("good".to_owned(), false));
        assert!(began.elapsed() < WAITED_FOR * 2);
        let began = Instant::now();
        assert_eq!(command.password(None).await.unwrap(), ("good".to_owned(), false));
        expire(&command).await;
        assert_eq!(command.password(None).await.unwrap(), ("good".to_owned(), false));
        assert!(began.elapsed() < WAITED_FOR, "it has been waited for already");
        // Nobody who gives up waiting ends it, nor is another one begun.
        let given_up = tokio::time::timeout(Duration::from_millis(100), command.password(Some("good"))).await;
        assert!(given_up.is_err());
        std::fs::write(&go, "").unwrap();
        assert_eq!(command.password(Some("good")).await.unwrap(), ("better".to_owned(), true));
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\nx\n");
    }

    #[tokio::test]
    async fn a_command_that_complains_at_length_prints_its_password_all_the_same() {
        let chatty = "set -e; head -c 300000 /dev/zero | tr '\\0' x >&2; echo good";
        assert_eq!(run(chatty).await.unwrap(), "good");
    }

    #[tokio::test]
    async fn a_command_that_prints_without_end_ends() {
        let began = Instant::now();
        let error = run("yes 2>&1 >/dev/null & yes | tr -d '\\n'").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(error.message().contains("it prints more than 64 kB"), "{error}");
        assert!(began.elapsed() < ENDS_WITHIN);
    }
}
