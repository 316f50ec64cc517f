//! As much of HTTP/1.1 as a fault needs: finding object GETs, cutting bodies, saying 503.
//!
//! Relies on clients that send a request's head in one piece and wait for each answer, as ours do.

/// What an overloaded S3 server answers.
pub(super) const SLOW_DOWN: &[u8] = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\n\
    Content-Length: 101\r\n\r\n<?xml version=\"1.0\"?><Error><Code>SlowDown</Code>\
    <Message>Reduce your request rate.</Message></Error>";

/// What one that is broken answers.
pub(super) const INTERNAL_ERROR: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/xml\r\n\
    Content-Length: 106\r\n\r\n<?xml version=\"1.0\"?><Error><Code>InternalError</Code>\
    <Message>We met an internal error.</Message></Error>";

/// What stores besides S3 answer when they are asked too often.
pub(super) const TOO_MANY_REQUESTS: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n";

/// Whether these bytes begin a GET that is not a listing.
pub(super) fn is_object_get(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    bytes.starts_with(b"GET ") && !contains(line, b"list-type=") && !contains(line, b"/health")
}

/// Cuts a response some bytes into its body.
pub(super) struct BodyCut {
    in_body: bool,
    left: u64,
}

impl BodyCut {
    pub(super) fn new(after_bytes: u64) -> BodyCut {
        BodyCut { in_body: false, left: after_bytes }
    }

    /// How many of these bytes still arrive; fewer than all means: cut now.
    pub(super) fn kept(&mut self, bytes: &[u8]) -> usize {
        let mut head = 0;
        if !self.in_body {
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return bytes.len() };
            self.in_body = true;
            head = end + 4;
        }
        let body = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - head);
        self.left -= body as u64;
        head + body
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_as_long_as_they_say() {
        for answer in [SLOW_DOWN, INTERNAL_ERROR, TOO_MANY_REQUESTS] {
            let text = std::str::from_utf8(answer).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{}", body.len());
        }
    }

    #[test]
    fn listings_are_no_object_gets() {
        assert!(is_object_get(b"GET /bucket/key HTTP/1.1\r\n"));
        assert!(!is_object_get(b"GET /bucket?list-type=2&prefix=a HTTP/1.1\r\n"));
        assert!(!is_object_get(b"HEAD /bucket/key HTTP/1.1\r\n"));
    }

    #[test]
    fn the_body_is_cut_not_the_head() {
        let mut cut = BodyCut::new(3);
        assert_eq!(cut.kept(b"HTTP/1.1 200 OK\r\n\r\nab"), 21);
        assert_eq!(cut.kept(b"cdef"), 1);
    }
}
