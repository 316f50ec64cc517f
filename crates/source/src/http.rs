//! Files behind http(s) URLs, presigned ones included. A URL enters; an object leaves whose reads are bound
//! to the version first seen by `If-Match` and by comparing every answer. Asks by GET alone, as a presigned
//! URL is good for one method. Refuses answers whose end cannot be told from a broken connection.

use crate::failure::{self, Access, Status};
use crate::location;
use crate::object::Object;
use crate::redirect::Way;
use crate::remote::{self, RemoteStream};
use futures_util::StreamExt;
use howdah_model::{Error, ErrorKind, Result};
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_MATCH,
    LAST_MODIFIED, RANGE, TRANSFER_ENCODING,
};
use reqwest::{Client, Response, StatusCode, Version};
use url::Url;

/// A URL as it was when first asked. The URL itself may hold a password or a signature: no `Debug`.
#[derive(Clone)]
pub(crate) struct HttpFile {
    client: Client,
    url: Url,
    bytes: Option<u64>,
    /// The tag or the time of its first answer.
    mark: Option<String>,
    /// The same as text that stays between runs.
    version: Option<String>,
    /// Parameters are missing in the URL that is shown: another file may have the same name, time and size.
    hides_parameters: bool,
    knows_ranges: bool,
}

/// Asks for the first byte, which tells size, version and whether the server knows ranges.
pub(crate) async fn open(client: &Client, url: &Url) -> Result<Object> {
    let location = location::shown(url);
    let mut file = HttpFile {
        client: client.clone(),
        url: url.clone(),
        bytes: None,
        mark: None,
        version: None,
        hides_parameters: location::hides_parameters(url),
        knows_ranges: false,
    };
    let mut answer = file.send(&location, Some("bytes=0-0")).await?;
    if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE {
        // An empty file has no first byte.
        answer = file.send(&location, None).await?;
    }
    let answer = accepted(answer, &location)?;
    let part = Part::of(&answer, &location)?;
    file.bytes = part.size;
    file.mark = mark_of(answer.headers());
    file.version = file.mark.as_deref().map(|mark| match is_tag(mark) {
        true => mark.to_owned(),
        false => with_size(mark, part.size),
    });
    file.knows_ranges = answer.status() == StatusCode::PARTIAL_CONTENT && part.size.is_some();
    Ok(Object::http(location, file))
}

impl HttpFile {
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// What tells the file from any other one under its shown name.
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref().filter(|version| !self.hides_parameters || is_tag(version))
    }

    /// A change between two answers is noticed.
    pub(crate) fn tells_changes(&self) -> bool {
        self.version.is_some()
    }

    /// Ranges of two files must not be put together.
    pub(crate) fn ranged(&self) -> bool {
        self.knows_ranges && self.version().is_some()
    }

    /// GETs of one range: one, but for servers that answer with less than they were asked for (RFC 9110,
    /// 15.3.7). One copy.
    pub(crate) async fn read_on(
        &self,
        location: &str,
        offset: u64,
        out: &mut [u8],
        filled: &mut usize,
    ) -> Result<()> {
        let out = remote::clamp(offset, out, self.bytes.unwrap_or(u64::MAX));
        if *filled >= out.len() {
            return Ok(());
        }
        let end = offset + out.len() as u64;
        while *filled < out.len() {
            let first = offset + *filled as u64;
            let range = format!("bytes={first}-{}", end - 1);
            self.body(location, first, Some(range), end).await?.fill(out, filled).await?;
        }
        Ok(())
    }

    /// One GET from `offset` on, or of everything where the server knows no ranges.
    pub(crate) async fn stream(&self, location: &str, offset: u64) -> Result<RemoteStream> {
        let end = self.bytes.unwrap_or(u64::MAX);
        if offset > 0 && offset >= end {
            return Ok(RemoteStream::at_end(location, offset));
        }
        let range =
            (offset > 0 && self.knows_ranges && self.tells_changes()).then(|| format!("bytes={offset}-"));
        self.body(location, offset, range, end).await
    }

    async fn body(
        &self,
        location: &str,
        offset: u64,
        range: Option<String>,
        end: u64,
    ) -> Result<RemoteStream> {
        let answer = accepted(self.send(location, range.as_deref()).await?, location)?;
        let part = Part::of(&answer, location)?;
        let is_whole = range.is_some() && answer.status() == StatusCode::OK && part.end == u64::MAX;
        if !is_whole {
            self.check(location, &answer, &part)?;
        }
        let is_known = end != u64::MAX && part.end != u64::MAX;
        // The rest is asked for behind it.
        let goes_on = range.is_some() && offset < part.end && part.end < end;
        let is_other_end = is_whole || (is_known && part.end != end && !goes_on);
        if part.start > offset || is_other_end {
            // A server that knew ranges a moment ago; another one behind the same name may know them still.
            let message = format!("expected bytes {offset} to {end}, got {} to {}", part.start, part.end);
            return Err(Error::new(ErrorKind::SourceTransient, message).in_file(location));
        }
        let shown = location.to_owned();
        let body = answer.bytes_stream();
        let body =
            body.map(move |block| block.map_err(|error| failure::of_request(&error, Access::Http, &shown)));
        let end = (end != u64::MAX).then_some(end);
        let body = RemoteStream::new(location, body.boxed(), part.start, offset, end);
        Ok(body.ending_at(is_known.then_some(part.end)))
    }

    async fn send(&self, location: &str, range: Option<&str>) -> Result<Response> {
        let mut way = Way::from(&self.url);
        loop {
            let answer = self.ask(way.url(), location, range).await?;
            let leads_on = way.leads_on(answer.status(), answer.headers());
            if !leads_on.map_err(|refused| failure::of_request(&refused, Access::Http, location))? {
                return Ok(answer);
            }
        }
    }

    async fn ask(&self, url: &Url, location: &str, range: Option<&str>) -> Result<Response> {
        let mut request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
        if let Some(range) = range {
            request = request.header(RANGE, range);
        }
        if let Some(tag) = self.mark.as_deref().and_then(strong_tag) {
            request = request.header(IF_MATCH, tag);
        }
        request.send().await.map_err(|error| failure::of_request(&error, Access::Http, location))
    }

    /// Servers may ignore `If-Match`; the answer says what it is made of. It may leave out the size, in a
    /// body of chunks and in a range (RFC 9110, 14.4).
    fn check(&self, location: &str, answer: &Response, part: &Part) -> Result<()> {
        let mark = mark_of(answer.headers());
        let is_other_size = part.size.zip(self.bytes).is_some_and(|(one, other)| one != other);
        if mark == self.mark && !is_other_size {
            return Ok(());
        }
        let shown = |mark: &Option<String>, size| {
            mark.as_deref().map_or("unknown".to_owned(), |mark| match is_other_size {
                true => with_size(mark, size),
                false => mark.to_owned(),
            })
        };
        Err(failure::changed(location, &shown(&self.mark, self.bytes), &shown(&mark, part.size)))
    }
}

fn accepted(answer: Response, location: &str) -> Result<Response> {
    match answer.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
            remote::expect_readable(text(answer.headers(), &CONTENT_ENCODING), location)?;
            Ok(answer)
        }
        status => {
            let status = Status { status: status.as_u16(), code: None, region: None };
            Err(failure::of_request(&status, Access::Http, location))
        }
    }
}

/// Which bytes of the object an answer holds.
struct Part {
    start: u64,
    /// One past the last byte; `u64::MAX` where only the framing tells.
    end: u64,
    /// Of the whole object.
    size: Option<u64>,
}

impl Part {
    /// Refuses a body that ends when the connection does (RFC 9112, 6.3, case 8): nothing tells a cut from
    /// its end. From HTTP/2 on a frame does (RFC 9113, 8.1).
    fn of(answer: &Response, location: &str) -> Result<Part> {
        let wrong = |message: &str| Error::new(ErrorKind::SourceIo, message).in_file(location);
        let headers = answer.headers();
        let length: Option<u64> = text(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let ends_by_frame = answer.version() >= Version::HTTP_2;
        if length.is_none() && !ends_by_frame && !headers.contains_key(TRANSFER_ENCODING) {
            return Err(wrong("the server says neither how long the body is nor sends it in chunks")
                .with_hint("fetch it with another program, look at it, and load the file"));
        }
        if answer.status() == StatusCode::OK {
            return Ok(Part { start: 0, end: length.unwrap_or(u64::MAX), size: length });
        }
        text(headers, &CONTENT_RANGE)
            .and_then(content_range)
            .ok_or_else(|| wrong("the server sent a part of the file without saying which"))
    }
}

/// `bytes 0-99/1000`, or `*` for an unknown size (RFC 9110, 14.4).
fn content_range(text: &str) -> Option<Part> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, last) = range.split_once('-')?;
    let (start, last): (u64, u64) = (start.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1).filter(|end| start < *end)?;
    match size {
        "*" => Some(Part { start, end, size: None }),
        size => {
            size.parse().ok().filter(|size| end <= *size).map(|size| Part { start, end, size: Some(size) })
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The `ETag` (a weak one keeps its `W/`), which gateways before a file system may leave empty; else the
/// time. `None` where the server says neither: another file may be as long.
fn mark_of(headers: &HeaderMap) -> Option<String> {
    let tag =
        text(headers, &ETAG).map(|tag| tag.replace('"', "")).filter(|tag| !["", "W/"].contains(&&**tag));
    tag.or_else(|| text(headers, &LAST_MODIFIED).map(str::to_owned))
}

fn with_size(mark: &str, size: Option<u64>) -> String {
    size.map_or_else(|| mark.to_owned(), |size| format!("{mark}, {size} bytes"))
}

/// The stand-ins for a tag have blanks.
fn is_tag(version: &str) -> bool {
    !version.contains(' ')
}

/// As `If-Match` wants it. A weak tag never matches there (RFC 9110, 13.1.1).
pub(crate) fn strong_tag(version: &str) -> Option<String> {
    let is_strong = is_tag(version) && !version.starts_with("W/");
    is_strong.then(|| format!("\"{version}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_strictly() {
        let part = content_range("bytes 5-9/20").unwrap();
        assert_eq!((part.start, part.end, part.size), (5, 10, Some(20)));
        assert_eq!(content_range("bytes 0-0/*").unwrap().size, None);
        for wrong in
            ["bytes */20", "5-9/20", "bytes 9-5/20", "bytes 0-20/20", "bytes 0-18446744073709551615/*"]
        {
            assert!(content_range(wrong).is_none(), "{wrong}");
        }
    }

    /// Its frames say where it ends; before HTTP/2 only the two headers do.
    #[test]
    fn an_answer_of_http_2_needs_no_length() {
        for (version, is_taken) in
            [(Version::HTTP_11, false), (Version::HTTP_2, true), (Version::HTTP_3, true)]
        {
            let mut answer = object_store::client::HttpResponse::new(Vec::new().into()).map(|_| "");
            *answer.version_mut() = version;
            let part = Part::of(&Response::from(answer), "https://h/x");
            assert_eq!(part.is_ok_and(|part| part.end == u64::MAX), is_taken, "{version:?}");
        }
    }

    #[test]
    fn only_strong_tags_are_sent() {
        assert_eq!(strong_tag("abc-2").as_deref(), Some("\"abc-2\""));
        assert_eq!(strong_tag("W/abc"), None);
        assert_eq!(strong_tag("Tue, 1 Jan 2030 00:00:00 GMT, 7 bytes"), None);
    }
}
