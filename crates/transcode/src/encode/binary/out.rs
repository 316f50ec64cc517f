//! Where binary values are written: a buffer of fixed length, and how much of it is in use.

/// A buffer being filled.
#[derive(Debug)]
pub(super) struct Out<'a> {
    bytes: &'a mut [u8],
    length: usize,
    /// Something did not find room.
    full: bool,
}

impl<'a> Out<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Out<'a> {
        Out { bytes, length: 0, full: false }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Forgets what was put behind `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        self.full = false;
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    #[inline]
    pub(super) fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Option<()> {
        let room = self.bytes.get_mut(self.length..).and_then(|rest| rest.first_chunk_mut());
        let Some(room) = room else {
            self.full = true;
            return None;
        };
        *room = bytes;
        self.length += N;
        Some(())
    }

    /// The first `used` of these bytes; there must be room for all.
    #[inline]
    pub(super) fn put_some<const N: usize>(&mut self, bytes: [u8; N], used: usize) -> Option<()> {
        self.put(bytes)?;
        self.length -= N.checked_sub(used)?;
        Some(())
    }

    #[inline]
    pub(super) fn extend(&mut self, bytes: &[u8]) -> Option<()> {
        let room = self.bytes.get_mut(self.length..).and_then(|rest| rest.get_mut(..bytes.len()));
        let Some(room) = room else {
            self.full = true;
            return None;
        };
        room.copy_from_slice(bytes);
        self.length += bytes.len();
        Some(())
    }

    /// A value of fixed size behind its length.
    #[inline]
    pub(super) fn fixed<const N: usize>(&mut self, value: [u8; N]) -> Option<()> {
        const LENGTH_BYTES: usize = 4;
        let room = self.bytes.get_mut(self.length..).and_then(|rest| rest.get_mut(..LENGTH_BYTES + N));
        let Some((length, room)) = room.and_then(|room| room.split_first_chunk_mut()) else {
            self.full = true;
            return None;
        };
        *length = i32::try_from(N).ok()?.to_be_bytes();
        *room.first_chunk_mut()? = value;
        self.length += LENGTH_BYTES + N;
        Some(())
    }

    /// A value behind its length, which is known once the value is written.
    #[inline]
    pub(super) fn sized(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let at = self.length;
        self.put([0; 4])?;
        write(self)?;
        let bytes = i32::try_from(self.length - at - 4).ok()?;
        *self.bytes.get_mut(at..)?.first_chunk_mut()? = bytes.to_be_bytes();
        Some(())
    }

    /// Writes over what was put at `at`.
    pub(super) fn put_at<const N: usize>(&mut self, at: usize, bytes: [u8; N]) -> Option<()> {
        let written = self.bytes.get_mut(..self.length)?;
        *written.get_mut(at..)?.first_chunk_mut()? = bytes;
        Some(())
    }

    /// What was put from `start` on.
    pub(super) fn since(&self, start: usize) -> Option<&[u8]> {
        self.bytes.get(start..self.length)
    }

    /// NULL.
    #[inline]
    pub(super) fn null(&mut self) -> Option<()> {
        self.put((-1_i32).to_be_bytes())
    }
}

/// What is written to a buffer that has room for it.
#[cfg(test)]
pub(super) fn written(write: impl FnOnce(&mut Out) -> Option<()>) -> Option<Vec<u8>> {
    let mut bytes = [0; 1024];
    let mut out = Out::new(&mut bytes);
    write(&mut out)?;
    let length = out.length();
    Some(bytes[..length].to_vec())
}
