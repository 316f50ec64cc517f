//! The body of one answer, counted. Blocks enter as the network gave them; the same blocks leave, without a
//! copy. A body that ends before the object does is an error, and so is one that goes on after it.

use crate::failure;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use howdah_model::{Error, ErrorKind, Result, counted};

/// Where the body of an answer begins and must end.
pub(crate) struct RemoteStream {
    body: BoxStream<'static, Result<Bytes>>,
    location: String,
    /// Offset in the object of the next byte from the network.
    reached: u64,
    /// Bytes before this offset are dropped: the server sent the whole object although less was wanted.
    wanted_from: u64,
    /// The object's size; `None` where only the framing of the answer tells its end.
    end: Option<u64>,
    /// Where the answer says to end, which may be before that.
    answer_end: Option<u64>,
}

impl RemoteStream {
    pub(crate) fn new(
        location: &str,
        body: BoxStream<'static, Result<Bytes>>,
        reached: u64,
        wanted_from: u64,
        end: Option<u64>,
    ) -> RemoteStream {
        RemoteStream { body, location: location.to_owned(), reached, wanted_from, end, answer_end: None }
    }

    /// The answer says where it ends.
    pub(crate) fn ending_at(self, answer_end: Option<u64>) -> RemoteStream {
        RemoteStream { answer_end, ..self }
    }

    /// Nothing is left to read.
    pub(crate) fn at_end(location: &str, end: u64) -> RemoteStream {
        RemoteStream::new(location, futures_util::stream::empty().boxed(), end, end, Some(end))
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        while let Some(block) = self.body.next().await {
            let mut block = block?;
            let skipped = self.wanted_from.saturating_sub(self.reached).min(block.len() as u64);
            self.reached += block.len() as u64;
            if let Some(end) = self.answer_end.or(self.end).filter(|end| self.reached > *end) {
                let message = format!("the answer is longer than the {} expected", counted(end, "byte"));
                return Err(Error::new(ErrorKind::SourceIo, message).in_file(&self.location));
            }
            // Not more than the block's length, which is a usize.
            let block = block.split_off(skipped as usize);
            if !block.is_empty() {
                return Ok(Some(block));
            }
        }
        match self.end {
            Some(end) if self.reached < end => Err(failure::short(&self.location, self.reached, end)),
            _ => Ok(None),
        }
    }

    /// Copies until `out` is full or the answer ends where it says to; `filled` counts what is there, also
    /// where an error ends it.
    pub(crate) async fn fill(&mut self, out: &mut [u8], filled: &mut usize) -> Result<()> {
        while *filled < out.len() && self.answer_end != Some(self.reached) {
            let Some(block) = self.next().await? else {
                return Err(failure::short(
                    &self.location,
                    self.reached,
                    self.reached + (out.len() - *filled) as u64,
                ));
            };
            let end = *filled + block.len();
            let Some(place) = out.get_mut(*filled..end) else {
                return Err(Error::new(
                    ErrorKind::SourceIo,
                    "the server sent more than the range it was asked for",
                )
                .in_file(&self.location));
            };
            place.copy_from_slice(&block);
            *filled = end;
        }
        Ok(())
    }
}

/// Refuses what the header `Content-Encoding` says to be compressed in a way of which no content tells. What
/// else it says is left to the content: files are stored with `gzip` and are not, and with words that are no
/// encoding.
///
/// # Errors
/// `SourceIo`, by the name of the encoding.
pub(crate) fn expect_readable(encoding: Option<&str>, location: &str) -> Result<()> {
    const UNREADABLE: [&str; 6] = ["br", "deflate", "compress", "x-compress", "dcb", "dcz"];
    let named = encoding.unwrap_or_default().split(',').map(str::trim);
    let is_named = |known: &&str| named.clone().any(|name| name.eq_ignore_ascii_case(known));
    match UNREADABLE.iter().find(|known| is_named(known)) {
        None => Ok(()),
        Some(encoding) => {
            let message = format!(
                "expected plain bytes, gzip or zstd, got what its Content-Encoding calls {encoding}, which is not read"
            );
            Err(Error::new(ErrorKind::SourceIo, message)
                .in_file(location)
                .with_hint("decompress it by another program, into a file or a pipe to `howdah load -`"))
        }
    }
}

/// The bytes of `out` that the object has, of which `size` is known.
pub(crate) fn clamp(offset: u64, out: &mut [u8], size: u64) -> &mut [u8] {
    let wanted = usize::try_from(size.saturating_sub(offset)).map_or(out.len(), |left| left.min(out.len()));
    &mut out[..wanted]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(blocks: &[&'static str], wanted_from: u64, end: Option<u64>) -> RemoteStream {
        let blocks: Vec<Result<Bytes>> =
            blocks.iter().map(|block| Ok(Bytes::from_static(block.as_bytes()))).collect();
        RemoteStream::new("x", futures_util::stream::iter(blocks).boxed(), 0, wanted_from, end)
    }

    async fn all(mut stream: RemoteStream) -> Result<String> {
        let mut text = String::new();
        while let Some(block) = stream.next().await? {
            text.push_str(std::str::from_utf8(&block).unwrap());
        }
        Ok(text)
    }

    #[tokio::test]
    async fn what_was_not_wanted_is_skipped() {
        assert_eq!(all(stream(&["abc", "", "def", "g"], 4, Some(7))).await.unwrap(), "efg");
        assert_eq!(all(stream(&["abc"], 3, None)).await.unwrap(), "");
    }

    #[test]
    fn an_encoding_that_no_content_tells_is_refused_by_name() {
        for readable in
            [None, Some("gzip"), Some("zstd"), Some("identity"), Some("aws-chunked"), Some("utf-8"), Some("")]
        {
            expect_readable(readable, "x").unwrap();
        }
        for unreadable in ["br", "BR", "gzip, deflate", "compress"] {
            let error = expect_readable(Some(unreadable), "x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SourceIo, "{unreadable}");
        }
    }

    #[tokio::test]
    async fn a_body_of_another_length_is_an_error() {
        assert_eq!(all(stream(&["abc"], 0, Some(4))).await.unwrap_err().kind(), ErrorKind::SourceTransient);
        assert_eq!(all(stream(&["abc"], 0, Some(2))).await.unwrap_err().kind(), ErrorKind::SourceIo);
    }
}
