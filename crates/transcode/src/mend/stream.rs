//! The reader that [`super::reader`] gives.

use super::line::Lines;
use super::records::{At, Found, Records};
use super::{Counts, Shape};
use howdah_model::{Error, Result};
use std::io::{self, Read};
use std::sync::Arc;

/// Lines made at a time: enough to make a call cheap, few enough to stay in the cache.
const LINES_BYTES: usize = 64 << 10;

pub(super) struct Stream<R> {
    records: Records<R>,
    lines: Lines,
    /// Lines not given yet: those from `given` on.
    made: Vec<u8>,
    given: usize,
    /// No further line follows, for this reason if it is not the end of the data.
    ended: Option<Result<(), Error>>,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(shape: &Shape, plain: R, counts: Arc<Counts>) -> Result<Stream<R>> {
        Ok(Stream {
            records: Records::new(shape, plain, Arc::clone(&counts))?,
            lines: Lines::new(shape, counts),
            made: Vec::new(),
            given: 0,
            ended: None,
        })
    }

    fn make(&mut self) {
        self.made.clear();
        self.given = 0;
        while self.made.len() < LINES_BYTES && self.ended.is_none() {
            match self.next() {
                Ok(Some(_)) => {}
                Ok(None) => self.ended = Some(Ok(())),
                Err(error) => self.ended = Some(Err(error)),
            }
        }
        self.lines.count();
    }

    /// Makes the next line; the record that it came from, or `None` at the end of the data.
    fn next(&mut self) -> Result<Option<At>> {
        while let Some(found) = self.records.next()? {
            let kept = match found {
                Found::Kept(kept) => Some(kept),
                Found::Record(at) => match self.lines.write(self.records.record(), &mut self.made) {
                    Ok(()) => return Ok(Some(at)),
                    Err(misread) => self.records.misread(at, &misread)?,
                },
            };
            if let Some(kept) = kept {
                kept.write(&mut self.made);
                self.made.push(b'\n');
                return Ok(Some(At { record: kept.record, byte: kept.byte }));
            }
        }
        Ok(None)
    }

    /// The same, without its line.
    pub(super) fn skip_line(&mut self) -> Result<Option<At>> {
        self.made.clear();
        self.next()
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.made.len() && self.ended.is_none() {
            self.make();
        }
        let count = (&self.made[self.given..]).read(out)?;
        self.given += count;
        match &self.ended {
            Some(Err(error)) if count == 0 && !out.is_empty() => Err(io::Error::other(error.clone())),
            _ => Ok(count),
        }
    }
}
