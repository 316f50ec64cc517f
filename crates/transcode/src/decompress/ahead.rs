//! Decodes the parts of a compressed file side by side and hands their plain bytes on in order.
//!
//! The reader cuts parts off the stored bytes and offers them to other threads. It waits for none of these: what
//! nobody has begun when it is wanted, the reader decodes itself. So without helpers, or with busy ones, it does
//! what a plain decoder does. From the first part on that cannot be cut or decoded, the file is decoded in order,
//! which also tells what is wrong with it: plain bytes and errors are those of [`super::decoder`].

use super::parts::{Cut, Cutter, InOrder, Part, SPARE_BYTES_MAX, is_bgzf};
use super::{decoder, decoder_behind, explain, explained};
use howdah_model::{Codec, Result};
use std::collections::VecDeque;
use std::io::{self, BufRead, Cursor, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// With less memory than this, a file is decoded in order.
pub const AHEAD_BYTES_MIN: usize = 8 << 20;

/// Other threads.
pub trait Helpers: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;
    /// Lets one of them call [`Piece::decode`], now, later or never.
    fn offer(&self, piece: Arc<Piece>);
}

/// Files of this codec may consist of parts that can be decoded side by side.
pub fn may_have_parts(codec: Codec) -> bool {
    Cutter::new(codec, 0).is_some()
}

/// The file that begins with `head` may do so. Of gzip only BGZF has parts, which its first bytes tell.
pub fn begins_with_part(codec: Codec, head: &[u8]) -> bool {
    match codec {
        Codec::Gzip => is_bgzf(head),
        _ => may_have_parts(codec),
    }
}

/// The plain bytes of a whole compressed stream, as [`decoder`] reads them, decoded with the help of others where
/// the file has parts. Parts in memory, stored and plain, take `bytes_max` together; with less than
/// [`AHEAD_BYTES_MIN`] there is no help.
///
/// # Errors
/// Those of [`decoder`].
pub fn ahead<'a, R: BufRead + Send + 'a>(
    codec: Codec,
    stored: R,
    helpers: Arc<dyn Helpers>,
    bytes_max: usize,
) -> Result<Box<dyn Read + Send + 'a>> {
    // Two parts fit, one to be handed on and one to be decoded meanwhile, and the units that begin them.
    let unit_bytes_max = bytes_max / 2 - AHEAD_BYTES_MIN.min(bytes_max) / 4;
    match Cutter::new(codec, unit_bytes_max) {
        Some(cutter) if helpers.count() > 0 && bytes_max >= AHEAD_BYTES_MIN.max(cutter.part_bytes_max()) => {
            Ok(Box::new(Ahead::new(codec, cutter, stored, helpers, bytes_max)))
        }
        _ => decoder(codec, stored),
    }
}

/// One part, and what has become of it.
pub struct Piece {
    part: Part,
    spares: Arc<Spares>,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Waiting,
    Taken,
    /// The plain bytes, if the part holds what its headers say.
    Decoded(Option<Vec<u8>>),
}

/// Buffers for plain bytes that have been handed on: new ones would cost the system's clearing of their pages.
#[derive(Default)]
struct Spares(Mutex<Vec<Vec<u8>>>);

impl Spares {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put_back(&self, buffer: Vec<u8>) {
        if (1..=SPARE_BYTES_MAX).contains(&buffer.capacity()) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }
}

impl Piece {
    fn new(part: Part, spares: Arc<Spares>) -> Arc<Piece> {
        Arc::new(Piece { part, spares, state: Mutex::new(State::Waiting), changed: Condvar::new() })
    }

    /// Decodes the part, if nobody has begun to. Tells whether it did.
    pub fn decode(&self) -> bool {
        {
            let mut state = self.state();
            if !matches!(*state, State::Waiting) {
                return false;
            }
            *state = State::Taken;
        }
        let mut settle = Settle { piece: self, plain: None };
        settle.plain = self.part.decode(self.spares.take());
        true
    }

    fn is_decoded(&self) -> bool {
        matches!(*self.state(), State::Decoded(_))
    }

    /// The plain bytes, once whoever has begun has them.
    fn wait(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        loop {
            match &mut *state {
                State::Decoded(plain) => return plain.take(),
                _ => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says what has become of a piece, also when decoding it panics: the reader waits for it.
struct Settle<'a> {
    piece: &'a Piece,
    plain: Option<Vec<u8>>,
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        *self.piece.state() = State::Decoded(self.plain.take());
        self.piece.changed.notify_all();
    }
}

struct Ahead<'a, R> {
    codec: Codec,
    part_bytes_max: usize,
    helpers: Arc<dyn Helpers>,
    bytes_max: usize,
    spares: Arc<Spares>,
    /// Cut and not handed on, in order.
    pieces: VecDeque<Arc<Piece>>,
    /// Of the piece that is being handed on.
    plain: Cursor<Vec<u8>>,
    from: From<'a, R>,
    /// Nothing has been handed on.
    at_start: bool,
}

/// Where bytes come from behind the pieces.
enum From<'a, R> {
    Parts(Cutter, R),
    /// These stored bytes and what follows them are to be decoded in order.
    Stored(Vec<u8>, R),
    Failed(io::Error),
    InOrder(Box<dyn Read + Send + 'a>),
    End,
}

impl<'a, R: BufRead + Send + 'a> Ahead<'a, R> {
    fn new(codec: Codec, cutter: Cutter, stored: R, helpers: Arc<dyn Helpers>, bytes_max: usize) -> Self {
        Ahead {
            codec,
            part_bytes_max: cutter.part_bytes_max(),
            helpers,
            bytes_max,
            spares: Arc::default(),
            pieces: VecDeque::new(),
            plain: Cursor::default(),
            from: From::Parts(cutter, stored),
            at_start: true,
        }
    }

    /// What the parts in memory take.
    fn held_bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.part.bytes()).sum::<usize>();
        self.plain.get_ref().len() + pieces
    }

    /// Cuts as many parts as there is room and work for.
    fn cut(&mut self) {
        let pieces_max = 2 * self.helpers.count() + 2;
        let mut bytes = self.held_bytes();
        while self.pieces.len() < pieces_max
            && (self.pieces.is_empty() || bytes + self.part_bytes_max <= self.bytes_max)
        {
            let (mut cutter, mut stored) = match std::mem::replace(&mut self.from, From::End) {
                From::Parts(cutter, stored) => (cutter, stored),
                from => {
                    self.from = from;
                    return;
                }
            };
            self.from = match cutter.cut(&mut stored) {
                Ok(Cut::Part(part)) => {
                    bytes += part.bytes();
                    let piece = Piece::new(part, Arc::clone(&self.spares));
                    self.pieces.push_back(Arc::clone(&piece));
                    self.helpers.offer(piece);
                    From::Parts(cutter, stored)
                }
                Ok(Cut::InOrder(untold)) => From::Stored(untold, stored),
                Ok(Cut::End) => From::End,
                Err(cause) => From::Failed(explain(self.codec, cause)),
            };
        }
    }

    /// The plain bytes of the next piece; until they are there, others are decoded here.
    fn next_plain(&mut self, next: &Piece) -> Option<Vec<u8>> {
        next.decode();
        while !next.is_decoded() && self.pieces.iter().any(|piece| piece.decode()) {}
        next.wait()
    }

    /// Decodes the rest in order: the pieces from `failed` on, and what follows them.
    fn go_in_order(&mut self, failed: Option<&Piece>) -> io::Result<()> {
        let mut rest = failed.map(|piece| piece.part.stored.clone()).unwrap_or_default();
        for piece in self.pieces.drain(..) {
            rest.extend_from_slice(piece.part.stored_behind());
        }
        let behind: Box<dyn BufRead + Send + 'a> = match std::mem::replace(&mut self.from, From::End) {
            From::Parts(cutter, stored) => {
                rest.extend(cutter.into_rest());
                Box::new(stored)
            }
            From::Stored(untold, stored) => {
                rest.extend(untold);
                Box::new(stored)
            }
            From::Failed(cause) => Box::new(Failed(Some(cause))),
            From::InOrder(_) | From::End => Box::new(io::empty()),
        };
        let stored = Cursor::new(rest).chain(behind);
        let decoder = match failed.and_then(|piece| piece.part.block()) {
            Some(block) => Ok(explained(self.codec, InOrder::new(block, stored))),
            None if self.at_start => decoder(self.codec, stored),
            None => decoder_behind(self.codec, stored),
        };
        self.from = From::InOrder(decoder.map_err(io::Error::other)?);
        Ok(())
    }
}

impl<'a, R: BufRead + Send + 'a> Read for Ahead<'a, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let count = self.plain.read(out)?;
            if count > 0 {
                return Ok(count);
            }
            self.spares.put_back(std::mem::take(&mut self.plain).into_inner());
            if let From::InOrder(decoder) = &mut self.from {
                return decoder.read(out);
            }
            self.cut();
            if let Some(piece) = self.pieces.pop_front() {
                match self.next_plain(&piece) {
                    Some(plain) => {
                        self.plain = Cursor::new(plain);
                        self.at_start = false;
                    }
                    None => self.go_in_order(Some(&piece))?,
                }
                continue;
            }
            match std::mem::replace(&mut self.from, From::End) {
                // What a file without a byte means to its codec, that codec says.
                From::End if self.at_start => self.go_in_order(None)?,
                From::End => return Ok(0),
                From::Failed(cause) => return Err(cause),
                from => {
                    self.from = from;
                    self.go_in_order(None)?;
                }
            }
        }
    }
}

/// Where the source broke.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

impl BufRead for Failed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.take().map_or(Ok(&[]), Err)
    }

    fn consume(&mut self, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Helpers for Nobody {
        fn count(&self) -> usize {
            100
        }

        fn offer(&self, _: Arc<Piece>) {}
    }

    #[test]
    fn parts_in_memory_take_no_more_than_they_may() {
        let mut random = fastrand::Rng::with_seed(1);
        let frame = |_| {
            let plain: Vec<u8> = (0..random.usize(..1_000_000)).map(|_| random.u8(b'a'..b'e')).collect();
            zstd::encode_all(plain.as_slice(), 1).unwrap()
        };
        let stored: Vec<u8> = (0..40).flat_map(frame).collect();
        for bytes_max in [AHEAD_BYTES_MIN, 2 * AHEAD_BYTES_MIN] {
            let cutter = Cutter::new(Codec::Zstd, bytes_max / 4).unwrap();
            let mut ahead = Ahead::new(Codec::Zstd, cutter, stored.as_slice(), Arc::new(Nobody), bytes_max);
            let (mut out, mut most_bytes) = (vec![0; 100_000], 0);
            while ahead.read(&mut out).unwrap() > 0 {
                most_bytes = most_bytes.max(ahead.held_bytes());
            }
            assert!((bytes_max / 4..=bytes_max).contains(&most_bytes), "{most_bytes} of {bytes_max}");
        }
    }
}
