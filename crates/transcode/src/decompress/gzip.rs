//! gzip (RFC 1952): one or many members, BGZF included.
//!
//! Zero bytes behind the last member are padding, as for `gzip -d`; anything else there is an error.
//! Lengths and checksums of all members are verified.

use super::{first_byte, garbage_behind};
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// All members, one after the other. Plain bytes go straight into the caller's buffer.
pub(super) struct Members<R> {
    at: At<R>,
}

/// Where in the file the next plain byte comes from.
enum At<R> {
    Member(Box<GzDecoder<R>>),
    /// Behind a member.
    Between(R),
    End,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(stored: R) -> Members<R> {
        Members { at: At::Member(Box::new(GzDecoder::new(stored))) }
    }

    /// What follows a member: others, padding or nothing.
    pub(super) fn behind(stored: R) -> Members<R> {
        Members { at: At::Between(stored) }
    }
}

/// The next member, if there is one.
fn next_member<R: BufRead>(mut stored: R) -> io::Result<At<R>> {
    match first_byte(&mut stored)? {
        None => Ok(At::End),
        Some(0) => skip_padding(&mut stored).map(|()| At::End),
        Some(0x1F) => Ok(At::Member(Box::new(GzDecoder::new(stored)))),
        Some(_) => Err(garbage_behind("gzip")),
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            self.at = match std::mem::replace(&mut self.at, At::End) {
                At::End => return Ok(0),
                At::Between(stored) => next_member(stored)?,
                At::Member(mut member) => match member.read(out) {
                    Ok(0) => At::Between(member.into_inner()),
                    result => {
                        self.at = At::Member(member);
                        return result;
                    }
                },
            };
        }
    }
}

fn skip_padding(stored: &mut impl BufRead) -> io::Result<()> {
    loop {
        let padding = stored.fill_buf()?;
        if padding.is_empty() {
            return Ok(());
        }
        if padding.iter().any(|&byte| byte != 0) {
            return Err(garbage_behind("gzip"));
        }
        let length = padding.len();
        stored.consume(length);
    }
}
