//! Standard input and named pipes: bytes that come once, in order, from a writer that may wait for long. A
//! thread reads them, so that whoever waits for the next block can be stopped; it takes no byte behind that.
//! A second reading, or one from the middle, is refused, and so is standard input that is closed.

use crate::failure;
use bytes::Bytes;
use howdah_model::{Error, ErrorKind, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_getfd, retry_on_intr};
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// A pipe holds 64 KiB on Linux (pipe(7)): larger reads return no more.
const PIPE_BLOCK_BYTES: usize = 64 << 10;

/// Blocks read ahead: one is filled while the other is taken.
const BLOCKS_AHEAD: usize = 1;

/// Standard input is one for the whole process: what one load has read of it, the next would miss.
static STDIN_TAKEN: AtomicBool = AtomicBool::new(false);

/// Names of standard input that lead to whatever it is.
const STDIN_PATHS: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Refuses standard input that is closed (`<&-`): it would be taken for an empty file, and a table be emptied
/// for it.
pub(crate) fn expect_open(location: &str) -> Result<()> {
    match is_open() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::SourceIo, "standard input is closed, so that nothing can be read")
            .in_file(location)
            .with_hint("pipe the data in, or redirect a file to it: `howdah load - <FILE`; nothing at all is `</dev/null`")),
    }
}

/// Whether the process was given one. Rust opens `/dev/null` for reading and writing in place of one that is
/// closed, and no shell opens it so for reading; a Python program may have given its number to a file of its
/// own, which, unlike one that was inherited, closes when another program is executed (PEP 446).
fn is_open() -> bool {
    let stdin = io::stdin();
    let is_inherited = fcntl_getfd(&stdin).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
    let is_written = fcntl_getfl(&stdin).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    is_inherited && !(is_written && is_null())
}

fn is_null() -> bool {
    let null = std::fs::metadata("/dev/null");
    stdin_metadata().is_ok_and(|open| null.is_ok_and(|null| is_same(&open, &null)))
}

fn stdin_metadata() -> io::Result<Metadata> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata())
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Standard input, or a path that is a pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    path: Option<PathBuf>,
    /// A device may have to be waited for in reads.
    is_fifo: bool,
    taken: AtomicBool,
}

impl Pipe {
    pub(crate) fn stdin() -> Pipe {
        Pipe { path: None, is_fifo: false, taken: AtomicBool::new(false) }
    }

    /// What `/dev/stdin` and its like lead to is standard input. Of devices only a terminal gives a byte
    /// once.
    pub(crate) fn found(path: PathBuf, metadata: &Metadata) -> Result<Pipe> {
        if STDIN_PATHS.iter().any(|name| path == Path::new(name)) {
            expect_open(&path.to_string_lossy())?;
        }
        let is_it = stdin_metadata().is_ok_and(|open| is_same(&open, metadata));
        let is_fifo = metadata.file_type().is_fifo();
        Ok(match is_it && (is_fifo || io::stdin().is_terminal()) {
            true => Pipe::stdin(),
            false => Pipe { path: Some(path), is_fifo, taken: AtomicBool::new(false) },
        })
    }

    /// Starts reading. Works once; of standard input, once in a process.
    pub(crate) fn stream(&self, offset: u64, location: &str) -> Result<PipeStream> {
        let taken = if self.path.is_none() { &STDIN_TAKEN } else { &self.taken };
        if offset > 0 || taken.swap(true, Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::SourceIo, "a pipe can be read only once, from its beginning")
                .in_file(location)
                .with_hint("write the data to a file, and load that"));
        }
        let cannot_start = |error: io::Error| {
            Error::new(ErrorKind::Local, format!("starting to read a pipe failed: {error}")).in_file(location)
        };
        let (ended, end) = io::pipe().map_err(cannot_start)?;
        let ended = Arc::new(ended);
        let (sender, receiver) = mpsc::channel(BLOCKS_AHEAD);
        let (path, location) = (self.path.clone(), location.to_owned());
        let told = Arc::clone(&ended);
        let thread = std::thread::Builder::new()
            .name("pipe".into())
            .spawn(move || pump(path.as_deref(), &location, &told, &sender))
            .map_err(cannot_start)?;
        let is_joined = self.is_fifo;
        Ok(PipeStream { blocks: receiver, end, _ended: ended, thread: is_joined.then_some(thread) })
    }
}

/// Blocks in the order they were written.
pub(crate) struct PipeStream {
    blocks: mpsc::Receiver<Result<Bytes>>,
    /// A byte in it ends the reading.
    end: PipeWriter,
    /// Kept, since a write that nobody can read would raise SIGPIPE, which a program may die of.
    _ended: Arc<PipeReader>,
    /// That of a named pipe, which never waits in a read.
    thread: Option<JoinHandle<()>>,
}

impl PipeStream {
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        self.blocks.recv().await.transpose()
    }
}

impl Drop for PipeStream {
    /// A named pipe is closed behind this: bytes of its next writer are for whoever opens it next.
    fn drop(&mut self) {
        self.blocks.close();
        // A byte, since a process forked meanwhile may hold the pipe open. One fits into any pipe.
        let _ = self.end.write_all(&[0]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads until the end, an error, or until nobody listens any more.
fn pump(path: Option<&Path>, location: &str, ended: &PipeReader, blocks: &mpsc::Sender<Result<Bytes>>) {
    let mut pipe = match open(path) {
        Ok(pipe) => pipe,
        Err(error) => {
            // Nobody listens: nobody to tell.
            let _ = blocks.blocking_send(Err(failure::of_file(&error, "opening", location)));
            return;
        }
    };
    while let Some(block) = next_block(&mut pipe, ended, location).transpose() {
        let is_last = block.is_err();
        if blocks.blocking_send(block).is_err() || is_last {
            return;
        }
    }
}

/// Whoever opens a pipe waits for its writer, and cannot be stopped; so it is waited for afterwards.
fn open(path: Option<&Path>) -> io::Result<File> {
    match path {
        None => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        Some(path) => {
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            File::options().read(true).custom_flags(flags).open(path)
        }
    }
}

/// None at the end, and when nobody listens any more.
fn next_block(pipe: &mut File, ended: &PipeReader, location: &str) -> Result<Option<Bytes>> {
    let failed =
        |error: io::Error| failure::of_file(&error, "reading", location).with_kind(ErrorKind::SourceIo);
    let mut block = vec![0; PIPE_BLOCK_BYTES];
    while wait(pipe, ended).map_err(failed)? {
        match pipe.read(&mut block) {
            Ok(0) => break,
            Ok(count) => {
                block.truncate(count);
                return Ok(Some(block.into()));
            }
            // Another process that reads standard input may have been faster.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(None)
}

/// Waits for bytes or the end of a pipe, or, which is false, until nobody listens any more.
fn wait(pipe: &File, ended: &PipeReader) -> io::Result<bool> {
    let mut awaited = [PollFd::new(pipe, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    retry_on_intr(|| poll(&mut awaited, None))?;
    if awaited[0].revents().contains(PollFlags::NVAL) {
        wait_in_reads(pipe)?;
    }
    Ok(awaited[1].revents().is_empty())
}

/// macOS cannot poll a terminal and other devices: asked again and again, it would say so at once. Source:
/// poll(2), BUGS.
fn wait_in_reads(device: &File) -> io::Result<()> {
    let flags = fcntl_getfl(device)?;
    Ok(fcntl_setfl(device, flags - OFlags::NONBLOCK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_polled_is_waited_for_in_reads() {
        let (reader, _writer) = io::pipe().unwrap();
        let device = File::from(std::os::fd::OwnedFd::from(reader));
        fcntl_setfl(&device, fcntl_getfl(&device).unwrap() | OFlags::NONBLOCK).unwrap();
        assert_eq!((&device).read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        wait_in_reads(&device).unwrap();
        assert!(!fcntl_getfl(&device).unwrap().contains(OFlags::NONBLOCK));
    }
}
