//! Redirects of URLs. The client would follow them as well, and give the second host behind a redirect the
//! password that was for the first one: it asks whether the last host was another, and begins each request
//! with what the first one had.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use std::fmt;
use url::Url;

/// Enough for a short link that leads to a mirror that leads to a signed URL.
const REDIRECTS_MAX: usize = 5;

/// A redirect that is not followed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RedirectRefused {
    TooMany,
    ToPlainHttp,
}

impl fmt::Display for RedirectRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedirectRefused::TooMany => write!(f, "more than {REDIRECTS_MAX} redirects"),
            RedirectRefused::ToPlainHttp => f.write_str("a redirect from https to http is not followed"),
        }
    }
}

impl std::error::Error for RedirectRefused {}

/// From a URL to where its redirects lead. The URLs may hold passwords and signatures: no `Debug`.
pub(crate) struct Way {
    first: Url,
    now: Url,
    followed: usize,
    was_https: bool,
    /// No redirect has led to another scheme, host or port yet.
    at_home: bool,
}

impl Way {
    pub(crate) fn from(url: &Url) -> Way {
        let was_https = url.scheme() == "https";
        Way { first: url.clone(), now: url.clone(), followed: 0, was_https, at_home: true }
    }

    /// What is to be asked.
    pub(crate) fn url(&self) -> &Url {
        &self.now
    }

    /// Whether the answer leads on.
    ///
    /// # Errors
    /// It does, and is not followed.
    pub(crate) fn leads_on(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<bool, RedirectRefused> {
        let Some(next) = self.next(status, headers) else { return Ok(false) };
        if self.followed >= REDIRECTS_MAX {
            return Err(RedirectRefused::TooMany);
        }
        if self.was_https && next.scheme() != "https" {
            return Err(RedirectRefused::ToPlainHttp);
        }
        self.followed += 1;
        self.was_https |= next.scheme() == "https";
        // Who was led away does not come home: it is another host that says what is asked for there.
        self.at_home &= next.origin() == self.first.origin();
        self.now = next;
        if self.at_home && self.now.username().is_empty() && self.now.password().is_none() {
            // They fail of URLs without a host alone.
            let _ = self.now.set_username(self.first.username());
            let _ = self.now.set_password(self.first.password());
        }
        Ok(true)
    }

    fn next(&self, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = std::str::from_utf8(headers.get(LOCATION)?.as_bytes()).ok()?;
        self.now.join(location).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The URLs that are asked, and why the last redirect is not followed.
    fn follow(first: &str, redirects: &[&str]) -> (Vec<String>, Option<RedirectRefused>) {
        let mut way = Way::from(&Url::parse(first).unwrap());
        let mut asked = vec![way.url().to_string()];
        for to in redirects {
            let headers = HeaderMap::from_iter([(LOCATION, to.parse().unwrap())]);
            match way.leads_on(StatusCode::FOUND, &headers) {
                Ok(leads_on) => assert!(leads_on, "{to}"),
                Err(refused) => return (asked, Some(refused)),
            }
            asked.push(way.url().to_string());
        }
        (asked, None)
    }

    #[test]
    fn five_redirects_are_followed_and_never_away_from_https() {
        assert_eq!(follow("http://a/", &["https://a/"; 5]).1, None);
        assert_eq!(follow("https://a/", &["/"; 5]).1, None);
        assert_eq!(follow("https://a/", &["/"; 6]).1, Some(RedirectRefused::TooMany));
        let back = follow("http://a/", &["https://a/", "http://a/"]).1;
        assert_eq!(back, Some(RedirectRefused::ToPlainHttp));
    }

    #[test]
    fn a_password_goes_to_the_first_host_alone_and_no_more_when_another_has_led_there() {
        let redirects = ["/b", "http://a/c", "http://b/", "/d", "http://b/e"];
        let asked =
            ["http://me:x@a/", "http://me:x@a/b", "http://me:x@a/c", "http://b/", "http://b/d", "http://b/e"];
        assert_eq!(follow("http://me:x@a/", &redirects).0, asked);
        for elsewhere in ["http://b/", "http://a:81/", "https://a/", "//b/"] {
            let (asked, refused) = follow("http://me:x@a/", &[elsewhere, "http://a/"]);
            assert!(
                asked[1..].iter().all(|url| !url.contains("me:x")),
                "{elsewhere}: {asked:?}, {refused:?}"
            );
        }
    }

    #[test]
    fn other_answers_lead_nowhere() {
        let mut way = Way::from(&Url::parse("http://a/").unwrap());
        let there = HeaderMap::from_iter([(LOCATION, "/b".parse().unwrap())]);
        for (status, headers) in [(200, &there), (304, &there), (302, &HeaderMap::new())] {
            assert_eq!(way.leads_on(StatusCode::from_u16(status).unwrap(), headers), Ok(false), "{status}");
        }
    }
}
