//! Decodes the parts of a compressed file side by side and hands their plain bytes on in order.
//!
//! The reader cuts parts off the stored bytes and offers them to other threads. It waits for none of these:
//! what nobody has begun when it is wanted, the reader decodes itself. So without helpers, or with busy ones,
//! it does what a plain decoder does. From the first part on that cannot be cut or decoded, the file is
//! decoded in order, which also tells what is wrong with it: plain bytes and errors are those of
//! [`super::decoder`]. Of gzip only the member is decoded in order with which such a part begins: it tells
//! where the next one does.

use super::parts::{Cut, Cutter, InOrder, Part, SPARE_BYTES_MAX, begins_with_members};
use super::{decoder, decoder_behind, explain, explained};
use flate2::bufread::GzDecoder;
use howdah_model::{Codec, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io::{self, BufRead, Chain, Cursor, Read};
use std::sync::Arc;

/// With less memory than this, a file is decoded in order.
pub const AHEAD_BYTES_MIN: usize = 8 << 20;

/// After so many parts of gzip that were none a file is decoded in order: what others have decoded for
/// nothing cost their cores.
const SEEMING_PARTS_MAX: u32 = 4;

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

/// The file that begins with `head` may do so. Of gzip that is known where the second member begins there,
/// too; most files are one member, and need no memory for parts.
pub fn begins_with_part(codec: Codec, head: &[u8]) -> bool {
    match codec {
        Codec::Gzip => begins_with_members(head),
        _ => may_have_parts(codec),
    }
}

/// The plain bytes of a whole compressed stream, as [`decoder`] reads them, decoded with the help of others
/// where the file has parts. Parts in memory, stored and plain, take `bytes_max` together; with less than
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

/// Buffers for plain bytes that have been handed on: new ones would cost the system's clearing of their
/// pages.
#[derive(Default)]
struct Spares(Mutex<Vec<Vec<u8>>>);

impl Spares {
    fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_default()
    }

    fn put_back(&self, buffer: Vec<u8>) {
        if (1..=SPARE_BYTES_MAX).contains(&buffer.capacity()) {
            self.0.lock().push(buffer);
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
            let mut state = self.state.lock();
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
        matches!(*self.state.lock(), State::Decoded(_))
    }

    /// The plain bytes, once whoever has begun has them.
    fn wait(&self) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        loop {
            match &mut *state {
                State::Decoded(plain) => return plain.take(),
                _ => self.changed.wait(&mut state),
            }
        }
    }
}

/// Says what has become of a piece, also when decoding it panics: the reader waits for it.
struct Settle<'a> {
    piece: &'a Piece,
    plain: Option<Vec<u8>>,
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        *self.piece.state.lock() = State::Decoded(self.plain.take());
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
    /// Parts of gzip so far that were none.
    seeming_parts: u32,
}

/// Stored bytes that have been read before, and those that have not.
type Source<R> = Chain<Cursor<Vec<u8>>, R>;

fn put_before<R: BufRead>(bytes: Vec<u8>, source: Source<R>) -> Source<R> {
    let (mut read, stored) = source.into_inner();
    let mut all = bytes;
    // What is in memory does not fail.
    let _ = read.read_to_end(&mut all);
    Cursor::new(all).chain(stored)
}

/// What a source holds in memory.
fn read_bytes<R>(source: &Source<R>) -> usize {
    source.get_ref().0.get_ref().len()
}

/// Frees what has been read once more, when it is half of all.
fn let_go<R>(source: &mut Source<R>) {
    let read = source.get_mut().0;
    let length = read.get_ref().len();
    let position = usize::try_from(read.position()).map_or(length, |position| position.min(length));
    if position >= length.div_ceil(2) {
        *read = Cursor::new(read.get_mut().split_off(position));
    }
}

/// Where bytes come from behind the pieces.
enum From<'a, R> {
    Parts(Cutter, Source<R>),
    /// A member of gzip comes next, and behind it more parts may be cut.
    Member(Cutter, Source<R>),
    InMember(Cutter, Box<GzDecoder<Source<R>>>),
    /// What comes next is to be decoded in order.
    Stored(Source<R>),
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
            from: From::Parts(cutter, Cursor::default().chain(stored)),
            at_start: true,
            seeming_parts: 0,
        }
    }

    /// What the parts in memory take, and what has been read for the next ones.
    fn held_bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.part.bytes()).sum::<usize>();
        let read = match &self.from {
            From::Parts(cutter, source) => cutter.rest_bytes() + read_bytes(source),
            From::Member(_, source) | From::Stored(source) => read_bytes(source),
            From::InMember(_, member) => read_bytes(member.get_ref()),
            From::Failed(_) | From::InOrder(_) | From::End => 0,
        };
        self.plain.get_ref().len() + pieces + read
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
            let cut = cutter.cut(&mut stored);
            let_go(&mut stored);
            self.from = match cut {
                Ok(Cut::Part(part)) => {
                    bytes += part.bytes();
                    let piece = Piece::new(part, Arc::clone(&self.spares));
                    self.pieces.push_back(Arc::clone(&piece));
                    self.helpers.offer(piece);
                    From::Parts(cutter, stored)
                }
                Ok(Cut::Member(begun)) => From::Member(cutter, put_before(begun, stored)),
                Ok(Cut::InOrder(untold)) => From::Stored(put_before(untold, stored)),
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

    /// Decodes in order what comes next: the pieces from `failed` on, and what follows them.
    fn go_in_order(&mut self, failed: Option<&Piece>) -> io::Result<()> {
        let mut rest = failed.map(|piece| piece.part.stored.clone()).unwrap_or_default();
        for piece in self.pieces.drain(..) {
            rest.extend_from_slice(piece.part.stored_behind());
        }
        let has_members = failed.is_some_and(|piece| piece.part.has_members());
        let behind: Box<dyn BufRead + Send + 'a> = match std::mem::replace(&mut self.from, From::End) {
            From::Parts(mut cutter, stored) | From::Member(mut cutter, stored) => {
                rest.extend(cutter.take_rest());
                if has_members && self.seeming_parts < SEEMING_PARTS_MAX {
                    self.seeming_parts += 1;
                    self.from = From::Member(cutter, put_before(rest, stored));
                    return Ok(());
                }
                Box::new(stored)
            }
            From::Stored(stored) => Box::new(stored),
            From::Failed(cause) => Box::new(Failed(Some(cause))),
            From::InMember(..) | From::InOrder(_) | From::End => Box::new(io::empty()),
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

    /// Reads a member of gzip in order; at its end parts are cut again.
    fn read_member(
        &mut self,
        cutter: Cutter,
        mut member: Box<GzDecoder<Source<R>>>,
        out: &mut [u8],
    ) -> io::Result<usize> {
        self.at_start = false;
        loop {
            match member.read(out) {
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(explain(self.codec, cause)),
                Ok(0) => {
                    self.from = From::Parts(cutter, member.into_inner());
                    return Ok(0);
                }
                Ok(count) => {
                    self.from = From::InMember(cutter, member);
                    return Ok(count);
                }
            }
        }
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
                From::Member(cutter, stored) => {
                    self.from = From::InMember(cutter, Box::new(GzDecoder::new(stored)));
                }
                From::InMember(cutter, member) => {
                    let count = self.read_member(cutter, member, out)?;
                    if count > 0 {
                        return Ok(count);
                    }
                }
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
        let mut plain = |bytes: std::ops::Range<usize>| -> Vec<u8> {
            (0..random.usize(bytes)).map(|_| random.u8(b'a'..b'e')).collect()
        };
        let gzip = |plain: Vec<u8>| {
            let mut member = Vec::new();
            flate2::read::GzEncoder::new(plain.as_slice(), flate2::Compression::fast())
                .read_to_end(&mut member)
                .unwrap();
            member
        };
        let frames: Vec<u8> =
            (0..40).flat_map(|_| zstd::encode_all(plain(0..1_000_000).as_slice(), 1).unwrap()).collect();
        let mut members: Vec<u8> = (0..40).flat_map(|_| gzip(plain(0..1_000_000))).collect();
        // Some that are too large, and others behind them.
        for _ in 0..3 {
            members.extend(gzip(plain(5_000_000..6_000_000)));
            members.extend((0..4).flat_map(|_| gzip(plain(0..1_000_000))));
        }
        for (codec, stored) in [(Codec::Zstd, frames), (Codec::Gzip, members)] {
            for bytes_max in [AHEAD_BYTES_MIN, 2 * AHEAD_BYTES_MIN] {
                let cutter = Cutter::new(codec, bytes_max / 4).unwrap();
                let mut ahead = Ahead::new(codec, cutter, stored.as_slice(), Arc::new(Nobody), bytes_max);
                let (mut out, mut most_bytes) = (vec![0; 100_000], 0);
                while ahead.read(&mut out).unwrap() > 0 {
                    most_bytes = most_bytes.max(ahead.held_bytes());
                }
                assert!((bytes_max / 4..=bytes_max).contains(&most_bytes), "{most_bytes} of {bytes_max}");
            }
        }
    }
}
