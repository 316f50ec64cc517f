//! gzip (RFC 1952): one or many members, BGZF included.
//!
//! Zero bytes behind the last member are padding, as for `gzip -d`; anything else there is an error.
//! Lengths and checksums of all members are verified.

use super::refuse;
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// All members, one after the other. Plain bytes go straight into the caller's buffer.
pub(super) struct Members<R> {
    /// `None` only while one member's decoder is exchanged for the next one's.
    member: Option<GzDecoder<R>>,
    at_end: bool,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(stored: R) -> Members<R> {
        Members { member: Some(GzDecoder::new(stored)), at_end: false }
    }

    /// Goes to the next member, if there is one.
    fn advance(&mut self) -> io::Result<()> {
        let Some(member) = self.member.take() else { return Ok(()) };
        let mut stored = member.into_inner();
        match stored.fill_buf()?.first() {
            None => self.at_end = true,
            Some(0) => {
                self.at_end = true;
                skip_padding(&mut stored)?;
            }
            Some(0x1F) => {}
            Some(_) => return Err(trailing_garbage()),
        }
        self.member = Some(GzDecoder::new(stored));
        Ok(())
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while !self.at_end {
            let Some(member) = &mut self.member else { break };
            match member.read(out)? {
                0 => self.advance()?,
                read => return Ok(read),
            }
        }
        Ok(0)
    }
}

fn skip_padding(stored: &mut impl BufRead) -> io::Result<()> {
    loop {
        let padding = stored.fill_buf()?;
        if padding.is_empty() {
            return Ok(());
        }
        if padding.iter().any(|&byte| byte != 0) {
            return Err(trailing_garbage());
        }
        let length = padding.len();
        stored.consume(length);
    }
}

fn trailing_garbage() -> io::Error {
    refuse(
        "the gzip data is followed by bytes that are not gzip",
        "The file may have been overwritten or appended to. `gzip -t FILE` tells more; `gzip -dc FILE | howdah load -` \
         loads what comes before.",
    )
}
