//! Runs the `howdah` binary: to its end, to a signal, or to kill -9.
//!
//! Enters: the path of the binary (only the tests of its own crate know it), arguments, environment. Leaves:
//! exit code or signal, and all it wrote. The caller's `PG*`, `AWS_*` and `HOWDAH_*` variables do not leak
//! in.

use crate::fifo::Writer;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command to be run, any number of times.
#[derive(Debug, Clone)]
pub struct HowdahCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Option<Vec<u8>>,
    fifos: Vec<(PathBuf, Vec<u8>)>,
    folder: Option<PathBuf>,
    address_space_bytes: Option<u64>,
    file_bytes: Option<u64>,
}

impl HowdahCommand {
    /// A command without arguments; in tests of the cli crate `env!("CARGO_BIN_EXE_howdah")` is the path.
    pub fn new(program: impl Into<PathBuf>) -> HowdahCommand {
        let program = program.into();
        HowdahCommand {
            program,
            arguments: Vec::new(),
            environment: Vec::new(),
            stdin: None,
            fifos: Vec::new(),
            folder: None,
            address_space_bytes: None,
            file_bytes: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> HowdahCommand {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> HowdahCommand {
        arguments.into_iter().fold(self, HowdahCommand::arg)
    }

    /// Sets variables of the environment, such as [`crate::S3::env`].
    #[must_use]
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> HowdahCommand {
        let owned =
            pairs.into_iter().map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()));
        self.environment.extend(owned);
        self
    }

    /// Bytes for standard input, which is empty otherwise.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> HowdahCommand {
        self.stdin = Some(bytes.into());
        self
    }

    /// A named pipe that brings these bytes, made where there is none.
    #[must_use]
    pub fn fifo(mut self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> HowdahCommand {
        self.fifos.push((path.into(), bytes.into()));
        self
    }

    /// The folder to run in.
    #[must_use]
    pub fn current_dir(mut self, folder: &Path) -> HowdahCommand {
        self.folder = Some(folder.to_owned());
        self
    }

    /// It gets no more memory than this from the system (RLIMIT_AS).
    #[must_use]
    pub fn limit_memory(mut self, bytes: u64) -> HowdahCommand {
        self.address_space_bytes = Some(bytes);
        self
    }

    /// None of its files grows larger than this (RLIMIT_FSIZE).
    #[must_use]
    pub fn limit_files(mut self, bytes: u64) -> HowdahCommand {
        self.file_bytes = Some(bytes);
        self
    }

    /// Starts it.
    pub fn spawn(&self) -> Running {
        // Each becomes what comes behind it, so that signals reach the program. SIGHUP does even where
        // whoever started the tests had them ignore it, as `nohup` does.
        let mut line: Vec<OsString> = vec!["env".into(), "--default-signal=HUP".into()];
        if let Some(bytes) = self.address_space_bytes {
            line.extend(["prlimit".into(), format!("--as={bytes}").into()]);
        }
        if let Some(bytes) = self.file_bytes {
            line.extend(["prlimit".into(), format!("--fsize={bytes}").into()]);
        }
        line.push(self.program.clone().into());
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["PG", "AWS_", "HOWDAH_"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let fifos = self.fifos.iter().map(|(path, bytes)| Writer::begin(path, bytes.clone())).collect();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), self.stdin.clone()) {
            // The command may stop reading early; that is its right.
            std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        let stdout = Capture::new(child.stdout.take().expect("a pipe was asked for"));
        let stderr = Capture::new(child.stderr.take().expect("a pipe was asked for"));
        Running { child, _fifos: fifos, stdout, stderr, began: Instant::now() }
    }

    /// Runs it to its end; kills it and panics when that takes longer.
    pub fn run(&self, patience: Duration) -> Finished {
        self.spawn().wait(patience)
    }
}

/// A running command. Dropped: killed.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// They give up when it has ended.
    _fifos: Vec<Writer>,
    stdout: Capture,
    stderr: Capture,
    began: Instant,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("wait for the command").is_none()
    }

    /// What it wrote to standard error so far.
    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Ctrl-C.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// SIGTERM, as `kill` and a shutdown of the machine send it.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGHUP, as a terminal that goes away sends it.
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// The system gives it no more memory from now on.
    pub fn deny_memory(&self) {
        let pid = self.child.id().to_string();
        // Less than it has: nothing is taken away. A process that has ended cannot be told.
        let _ = Command::new("prlimit").args(["--as=1048576", "--pid", &pid]).stderr(Stdio::null()).status();
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process(pid.expect("process ids fit"), signal);
    }

    /// kill -9, then what it had written.
    pub fn kill(mut self) -> Finished {
        let _ = self.child.kill();
        self.wait(Duration::from_secs(60))
    }

    /// Waits for its end; kills it and panics when that takes longer.
    pub fn wait(mut self, patience: Duration) -> Finished {
        let deadline = Instant::now() + patience;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait for the command") {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("still running after {patience:?}; its stderr:\n{}", self.stderr.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let elapsed = self.began.elapsed();
        let (stdout, stderr) = (self.stdout.end(), self.stderr.end());
        Finished { code: status.code(), signal: status.signal(), stdout, stderr, elapsed }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Everything written to standard output.
    pub stdout: String,
    /// Everything written to standard error.
    pub stderr: String,
    /// From start to end.
    pub elapsed: Duration,
}

impl Finished {
    /// Panics with all it wrote unless it ended with this code.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Finished {
        assert_eq!(
            self.code,
            Some(code),
            "signal {:?}\nstdout:\n{}\nstderr:\n{}",
            self.signal,
            self.stdout,
            self.stderr
        );
        self
    }
}

/// Reads a pipe in a thread of its own, so that the command never blocks on a full one.
#[derive(Debug)]
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Capture {
    fn new(mut pipe: impl Read + Send + 'static) -> Capture {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut block = [0; 8192];
            while let Ok(count @ 1..) = pipe.read(&mut block) {
                sink.lock().extend_from_slice(&block[..count]);
            }
        });
        Capture { bytes, thread: Some(thread) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock()).into_owned()
    }

    fn end(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_code_and_signal_are_seen() {
        let shell = HowdahCommand::new("/bin/sh").arg("-c");
        let ended =
            shell.clone().arg("cat; echo oops >&2; exit 3").stdin("in\n").run(Duration::from_secs(20));
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(3), "in\n", "oops\n"));
        let killed = shell.arg("exec sleep 60").spawn().kill();
        assert_eq!((killed.code, killed.signal), (None, Some(9)));
    }

    #[test]
    fn named_pipes_bring_their_bytes_to_whoever_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        let large = vec![b'x'; 300_000];
        let cat = HowdahCommand::new("cat").fifo(&one, large.clone()).arg(&one);
        // The second is read by nobody, and keeps nobody waiting.
        let cat = cat.fifo(&other, "never");
        for _ in 0..2 {
            assert_eq!(cat.run(Duration::from_secs(20)).stdout.as_bytes(), large);
        }
    }

    #[test]
    fn a_hangup_ends_commands_also_of_tests_that_ignore_it() {
        const IGNORED: &str = "TESTKIT_HANGUP_IS_IGNORED";
        let shell = HowdahCommand::new("/bin/sh").arg("-c");
        let mut running = shell.clone().arg("echo ready >&2; exec sleep 60").limit_memory(1 << 30).spawn();
        while running.is_running() && running.stderr_so_far().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.hang_up();
        assert_eq!(running.wait(Duration::from_secs(20)).signal, Some(1));
        if std::env::var_os(IGNORED).is_some() {
            return;
        }
        // The same once more as `nohup` would start it.
        let this = std::env::current_exe().unwrap();
        let told = shell
            .arg("trap '' HUP; exec \"$0\" a_hangup_ends")
            .arg(this)
            .envs([(IGNORED, "1")])
            .run(Duration::from_secs(60))
            .expect_code(0)
            .stdout;
        assert!(told.contains("1 passed"), "{told}");
    }
}
