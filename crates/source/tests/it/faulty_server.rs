//! A small HTTP/1.1 server of one file, with every fault by name. Each connection serves one request. It does
//! as much of S3 as reading needs, so object stores can be pointed at it as well.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How the client learns where a body ends.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    UntilClose,
}

/// What is served, and what goes wrong. Changed by tests between requests.
#[derive(Clone)]
pub(crate) struct Behaviour {
    pub(crate) body: Vec<u8>,
    pub(crate) etag: Option<&'static str>,
    pub(crate) last_modified: Option<&'static str>,
    pub(crate) ranges: bool,
    /// Ranges say how long the whole is.
    pub(crate) tells_size: bool,
    /// Every range is answered by this one.
    pub(crate) only_range: Option<(usize, usize)>,
    /// No range is answered by more bytes than so many.
    pub(crate) range_bytes_max: usize,
    pub(crate) honours_if_match: bool,
    pub(crate) framing: Framing,
    pub(crate) extra_header: &'static str,
    /// The connection is closed after so many bytes of the body.
    pub(crate) cut_at: Option<usize>,
    /// Every n-th request is answered by 503.
    pub(crate) unavailable_every: Option<usize>,
    /// Answers with this status, and with no body but for `code`.
    pub(crate) status: Option<u16>,
    /// What a store says why, in the body, which answers to HEAD do not have.
    pub(crate) code: Option<&'static str>,
    /// Every request is sent here.
    pub(crate) redirect: Option<String>,
    /// Texts at other paths than the file's.
    pub(crate) texts: HashMap<&'static str, String>,
}

impl Behaviour {
    /// A well-behaved server of this content.
    pub(crate) fn of(body: Vec<u8>) -> Behaviour {
        Behaviour {
            body,
            etag: Some("\"v1\""),
            last_modified: Some("Tue, 01 Jan 2030 00:00:00 GMT"),
            ranges: true,
            tells_size: true,
            only_range: None,
            range_bytes_max: usize::MAX,
            honours_if_match: true,
            framing: Framing::Length,
            extra_header: "",
            cut_at: None,
            unavailable_every: None,
            status: None,
            code: None,
            redirect: None,
            texts: HashMap::new(),
        }
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Mutex<(Behaviour, Vec<String>)>>,
}

impl Server {
    pub(crate) async fn start(behaviour: Behaviour) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new((behaviour, Vec::new())));
        let served = Arc::clone(&shared);
        // Ends with the test's runtime.
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, Arc::clone(&served)));
            }
        });
        Server { url, shared }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.lock().0);
    }

    /// The heads of the requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().1)
    }

    fn lock(&self) -> MutexGuard<'_, (Behaviour, Vec<String>)> {
        self.shared.lock().unwrap()
    }
}

async fn serve(mut connection: TcpStream, shared: Arc<Mutex<(Behaviour, Vec<String>)>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match connection.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    let (behaviour, count) = {
        let mut shared = shared.lock().unwrap();
        shared.1.push(request.clone());
        (shared.0.clone(), shared.1.len())
    };
    let (head, body) = answer(&behaviour, &request, count);
    // The client may be gone already.
    let _ = connection.write_all(head.as_bytes()).await;
    let _ = connection.write_all(&body).await;
    let _ = connection.shutdown().await;
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let line = request.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
    Some(line.split_once(':')?.1.trim())
}

fn answer(behaviour: &Behaviour, request: &str, count: usize) -> (String, Vec<u8>) {
    let close = "connection: close\r\n";
    let empty = |status: u16| {
        (
            format!("HTTP/1.1 {status} X\r\n{close}{}content-length: 0\r\n\r\n", behaviour.extra_header),
            Vec::new(),
        )
    };
    let path = request.split(' ').nth(1).unwrap();
    if let Some(text) = behaviour.texts.get(path) {
        let head = format!("HTTP/1.1 200 X\r\n{close}content-length: {}\r\n\r\n", text.len());
        return (head, text.clone().into_bytes());
    }
    if let Some(target) = &behaviour.redirect {
        return (
            format!("HTTP/1.1 302 X\r\n{close}location: {target}\r\ncontent-length: 0\r\n\r\n"),
            Vec::new(),
        );
    }
    if behaviour.unavailable_every.is_some_and(|every| count.is_multiple_of(every)) {
        return empty(503);
    }
    if let Some(status) = behaviour.status {
        let Some(code) = behaviour.code else { return empty(status) };
        let body = format!("<Error><Code>{code}</Code></Error>").into_bytes();
        let head = format!("HTTP/1.1 {status} X\r\n{close}content-length: {}\r\n\r\n", body.len());
        return (head, if request.starts_with("HEAD ") { Vec::new() } else { body });
    }
    if behaviour.honours_if_match
        && header(request, "if-match").is_some_and(|tag| Some(tag) != behaviour.etag)
    {
        return empty(412);
    }
    let size = behaviour.body.len();
    let range = header(request, "range").filter(|_| behaviour.ranges).map(|range| {
        let (start, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let end = last.parse::<usize>().map_or(size, |last| (last + 1).min(size));
        start.parse::<usize>().unwrap()..end
    });
    let range = range.map(|asked| behaviour.only_range.map_or(asked, |(start, end)| start..end));
    let range =
        range.map(|range| range.start..range.end.min(range.start.saturating_add(behaviour.range_bytes_max)));
    if range.as_ref().is_some_and(|range| range.start >= size) {
        return empty(416);
    }
    file(behaviour, request, range)
}

fn file(behaviour: &Behaviour, request: &str, range: Option<std::ops::Range<usize>>) -> (String, Vec<u8>) {
    let size = behaviour.body.len();
    let mut head = match &range {
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
        Some(range) => {
            let (start, last) = (range.start, range.end - 1);
            let size = if behaviour.tells_size { size.to_string() } else { "*".to_owned() };
            format!("HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {start}-{last}/{size}\r\n")
        }
    };
    let body = &behaviour.body[range.unwrap_or(0..size)];
    head.push_str("connection: close\r\n");
    head.push_str(behaviour.extra_header);
    for (name, value) in [("etag", behaviour.etag), ("last-modified", behaviour.last_modified)] {
        if let Some(value) = value {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
    }
    match behaviour.framing {
        Framing::Length => write!(head, "content-length: {}\r\n", body.len()).unwrap(),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
        Framing::UntilClose => {}
    }
    head.push_str("\r\n");
    if request.starts_with("HEAD ") {
        return (head, Vec::new());
    }
    let mut sent = body[..behaviour.cut_at.unwrap_or(usize::MAX).min(body.len())].to_vec();
    if behaviour.framing == Framing::Chunked {
        let end: &[u8] = if behaviour.cut_at.is_some() { b"" } else { b"0\r\n\r\n" };
        sent = [format!("{:x}\r\n", sent.len()).as_bytes(), &sent, b"\r\n", end].concat();
    }
    (head, sent)
}
