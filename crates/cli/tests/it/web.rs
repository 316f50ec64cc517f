//! A web server of files that can be read in ranges, over links that break and with answers that fail, and
//! what was asked of it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request for a file.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) range: Range<usize>,
    pub(crate) if_match: Option<String>,
    /// Bytes of the body that were sent.
    pub(crate) sent: usize,
}

/// What goes wrong: for a request, and the number of those before it for the same file, the status it is
/// refused with.
type Refuses = Box<dyn Fn(&Request, usize) -> Option<u16> + Send>;

struct Served {
    files: BTreeMap<String, Vec<u8>>,
    tag: Option<&'static str>,
    modified: Option<&'static str>,
    knows_ranges: bool,
    cut_at: usize,
    delay: Duration,
    refuses: Refuses,
    requests: Vec<Request>,
    /// Answers of more than [`LARGE_BYTES`] under way, now and at most.
    large: (usize, usize),
    /// The same of answers of one byte, by which a file's size is asked for.
    looks: (usize, usize),
}

/// More than what is looked at of a file at first.
const LARGE_BYTES: usize = 64 << 10;

#[derive(Clone)]
pub(crate) struct Web {
    port: u16,
    served: Arc<Mutex<Served>>,
}

impl Web {
    pub(crate) fn new() -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = Arc::new(Mutex::new(Served {
            files: BTreeMap::new(),
            tag: Some("\"one\""),
            modified: None,
            knows_ranges: true,
            cut_at: usize::MAX,
            delay: Duration::ZERO,
            refuses: Box::new(|_, _| None),
            requests: Vec::new(),
            large: (0, 0),
            looks: (0, 0),
        }));
        let web = Web { port, served };
        let serving = web.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.answer(stream));
            }
        });
        web
    }

    /// Serves the file; returns its URL.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> String {
        self.served.lock().unwrap().files.insert(format!("/{name}"), bytes.to_vec());
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// Answers tell nothing that a file could be known by again.
    pub(crate) fn without_tags(self) -> Web {
        self.retag(None);
        self.served.lock().unwrap().knows_ranges = false;
        self
    }

    /// Answers tell when a file was made, and nothing else: the same of all files.
    pub(crate) fn dated(self) -> Web {
        self.retag(None);
        self.served.lock().unwrap().modified = Some("Tue, 01 Jan 2030 00:00:00 GMT");
        self
    }

    /// From now on answers have this tag, quotes and all, or none.
    pub(crate) fn retag(&self, tag: Option<&'static str>) {
        self.served.lock().unwrap().tag = tag;
    }

    /// Every connection ends after so many bytes of a body.
    pub(crate) fn cutting_at(self, bytes: usize) -> Web {
        self.served.lock().unwrap().cut_at = bytes;
        self
    }

    /// Every answer takes so long.
    pub(crate) fn delaying(self, delay: Duration) -> Web {
        self.served.lock().unwrap().delay = delay;
        self
    }

    pub(crate) fn refusing(self, refuses: impl Fn(&Request, usize) -> Option<u16> + Send + 'static) -> Web {
        self.served.lock().unwrap().refuses = Box::new(refuses);
        self
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.served.lock().unwrap().requests.clone()
    }

    /// How many large answers were under way at the same time.
    pub(crate) fn large_at_once(&self) -> usize {
        self.served.lock().unwrap().large.1
    }

    /// How many were asked for their size at the same time.
    pub(crate) fn looks_at_once(&self) -> usize {
        self.served.lock().unwrap().looks.1
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_exact(&mut byte).is_err() {
                return;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let (status, fields, body) = self.answer_to(&head);
        let is_large = body.len() > LARGE_BYTES;
        let is_look = body.len() == 1;
        let delay = {
            let mut served = self.served.lock().unwrap();
            served.large.0 += usize::from(is_large);
            served.large.1 = served.large.1.max(served.large.0);
            served.looks.0 += usize::from(is_look);
            served.looks.1 = served.looks.1.max(served.looks.0);
            served.delay
        };
        std::thread::sleep(delay);
        {
            let mut served = self.served.lock().unwrap();
            served.large.0 -= usize::from(is_large);
            served.looks.0 -= usize::from(is_look);
        }
        let _ = write!(stream, "HTTP/1.1 {status} X\r\nConnection: close\r\n{fields}\r\n");
        let _ = stream.write_all(&body);
    }

    fn answer_to(&self, head: &str) -> (u16, String, Vec<u8>) {
        let mut served = self.served.lock().unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let Some(file) = served.files.get(&path).cloned() else {
            return (404, "Content-Length: 0\r\n".to_owned(), Vec::new());
        };
        let field = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
            Some(line[name.len()..].trim().to_owned())
        };
        let told = field("range: bytes=").filter(|_| served.knows_ranges);
        let range = told.as_ref().and_then(|told| told.split_once('-')).map(|(start, last)| {
            let end = last.parse().map_or(file.len(), |last: usize| (last + 1).min(file.len()));
            start.parse().unwrap()..end
        });
        let is_part = range.is_some();
        let range = range.unwrap_or(0..file.len());
        let sent = range.len().min(served.cut_at);
        let mut request = Request { path, range: range.clone(), if_match: field("if-match:"), sent };
        let before = served.requests.iter().filter(|before| before.path == request.path).count();
        let refused = (served.refuses)(&request, before);
        request.sent = if refused.is_some() { 0 } else { sent };
        served.requests.push(request);
        if let Some(status) = refused {
            return (status, "Content-Length: 0\r\n".to_owned(), Vec::new());
        }
        let mut fields = format!("Content-Length: {}\r\n", range.len());
        if let Some(tag) = served.tag {
            fields += &format!("ETag: {tag}\r\n");
        }
        if let Some(modified) = served.modified {
            fields += &format!("Last-Modified: {modified}\r\n");
        }
        if is_part {
            fields += &format!("Content-Range: bytes {}-{}/{}\r\n", range.start, range.end - 1, file.len());
        }
        (if is_part { 206 } else { 200 }, fields, file[range.start..range.start + sent].to_vec())
    }
}
