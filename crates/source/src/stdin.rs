//! Standard input and named pipes: bytes that come once, in order, from a writer that may wait for long.
//! A thread reads them, so that whoever waits for the next block can be stopped. A second reading, or one
//! from the middle, is refused.

use crate::failure::{self, uninterrupted};
use bytes::Bytes;
use howdah_model::{Error, ErrorKind, Result};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// A pipe holds 64 KiB on Linux (pipe(7)): larger reads return no more.
const PIPE_BLOCK_BYTES: usize = 64 << 10;

/// Blocks read ahead: one is filled while the other is taken.
const BLOCKS_AHEAD: usize = 1;

/// Standard input, or a path that is a pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    path: Option<PathBuf>,
    taken: AtomicBool,
}

impl Pipe {
    pub(crate) fn stdin() -> Pipe {
        Pipe { path: None, taken: AtomicBool::new(false) }
    }

    pub(crate) fn at(path: PathBuf) -> Pipe {
        Pipe { path: Some(path), taken: AtomicBool::new(false) }
    }

    /// Starts reading. Works once.
    pub(crate) fn stream(&self, offset: u64, location: &str) -> Result<PipeStream> {
        if offset > 0 || self.taken.swap(true, Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::SourceIo, "a pipe can be read only once, from its beginning")
                .in_file(location)
                .with_hint("write the data to a file, and load that"));
        }
        let (sender, receiver) = mpsc::channel(BLOCKS_AHEAD);
        let (path, location) = (self.path.clone(), location.to_owned());
        std::thread::Builder::new()
            .name("pipe".into())
            .spawn(move || pump(path, &location, &sender))
            .map_err(|error| Error::new(ErrorKind::Local, format!("starting a thread failed: {error}")))?;
        Ok(PipeStream(receiver))
    }
}

/// Blocks in the order they were written.
pub(crate) struct PipeStream(mpsc::Receiver<Result<Bytes>>);

impl PipeStream {
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        self.0.recv().await.transpose()
    }
}

/// Reads until the end, an error, or until nobody listens any more. Opening a pipe waits for its writer.
fn pump(path: Option<PathBuf>, location: &str, blocks: &mpsc::Sender<Result<Bytes>>) {
    let opened: std::io::Result<Box<dyn Read>> = match path {
        None => Ok(Box::new(std::io::stdin().lock())),
        Some(path) => File::open(path).map(|file| Box::new(file) as _),
    };
    let mut pipe = match opened {
        Ok(pipe) => pipe,
        Err(error) => {
            // Nobody listens: nobody to tell.
            let _ = blocks.blocking_send(Err(failure::of_file(&error, "opening", location)));
            return;
        }
    };
    while let Some(block) = read_block(&mut pipe, location).transpose() {
        let is_last = block.is_err();
        if blocks.blocking_send(block).is_err() || is_last {
            return;
        }
    }
}

fn read_block(pipe: &mut impl Read, location: &str) -> Result<Option<Bytes>> {
    let mut block = vec![0; PIPE_BLOCK_BYTES];
    let count = uninterrupted(|| pipe.read(&mut block))
        .map_err(|error| failure::of_file(&error, "reading", location).with_kind(ErrorKind::SourceIo))?;
    block.truncate(count);
    Ok((count > 0).then(|| block.into()))
}
