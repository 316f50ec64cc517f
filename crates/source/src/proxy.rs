//! The proxies that the environment names. Its variables enter; an error leaves where one of them names none
//! that can be used: the library passes such a one over, and asks the other side directly, or by way of
//! another proxy. And the one of a URL leaves, for an error to tell.

use crate::failure;
use howdah_model::{Error, ErrorKind, Result};
use hyper_util::client::proxy::matcher::Matcher;
use std::ffi::OsString;

/// Each in both spellings, of which the library takes the first that is set.
const ALL: [&str; 2] = ["ALL_PROXY", "all_proxy"];
const OF_SCHEMES: [[&str; 2]; 2] = [["HTTP_PROXY", "http_proxy"], ["HTTPS_PROXY", "https_proxy"]];
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Under CGI, `HTTP_PROXY` is what a client has sent; the library looks at none then.
const OF_CGI: &str = "REQUEST_METHOD";

/// Never shows a value: it may hold a password.
pub(crate) fn refuse_unusable(variable: impl Fn(&str) -> Option<OsString>) -> Result<()> {
    if variable(OF_CGI).is_some() {
        return Ok(());
    }
    let set = |names: [&'static str; 2]| {
        names
            .into_iter()
            .find_map(|name| Some((name, variable(name)?)))
            .filter(|(_, value)| !value.is_empty())
    };
    let of_schemes = OF_SCHEMES.map(set);
    // What goes by one of its own does not ask for it.
    let of_all = set(ALL).filter(|_| of_schemes.iter().any(Option::is_none));
    // What those list goes by no proxy, and is perhaps all that is read.
    let may_spare = set(EXCEPTIONS).is_some();
    let is_unusable = |value: &OsString| !(names_proxy(value) || may_spare && names_socks(value));
    match of_schemes.into_iter().chain([of_all]).flatten().find(|(_, value)| is_unusable(value)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::new(ErrorKind::Usage, format!("{name} names no proxy that can be used"))
            .with_hint("expected http://host:port (SOCKS is not spoken), with user:password@ percent-encoded before the host; unset it to go without a proxy")),
    }
}

/// Host and port of the one that the library asks for this URL.
pub(crate) fn between(url: &str) -> Option<String> {
    let asked = url.parse().ok()?;
    let proxy = Matcher::from_env().intercept(&asked)?;
    let usual = if proxy.uri().scheme_str() == Some("https") { 443 } else { 80 };
    failure::address(proxy.uri().host()?, Some(proxy.uri().port_u16().unwrap_or(usual)))
}

fn names_proxy(value: &OsString) -> bool {
    value
        .to_str()
        .is_some_and(|value| !has_delimiter_in_password(value) && has_host(value).unwrap_or_default())
}

fn names_socks(value: &OsString) -> bool {
    value.to_str().is_some_and(|value| value.starts_with("socks"))
}

/// What stands before it would be the host.
fn has_delimiter_in_password(value: &str) -> bool {
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
    rest.rsplit_once('@').is_some_and(|(user, _)| user.contains(['/', '?', '#']))
}

/// As the library finds it, which takes the usual port in place of one that is no number. It reads SOCKS
/// proxies too, and is built without the means to speak to them.
fn has_host(value: &str) -> Option<bool> {
    let anywhere = "http://h/".parse().ok()?;
    let proxy = Matcher::builder().all(value.to_owned()).build().intercept(&anywhere)?;
    if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
        return Some(false);
    }
    let after_host = proxy.uri().authority()?.as_str().strip_prefix(proxy.uri().host()?)?;
    Some(after_host.is_empty() || proxy.uri().port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_be_used_and_names_no_proxy_is_refused() {
        const GOOD: &str = "http://u:p@proxy:3128";
        const BAD: &str = "http://u:p/w@proxy:3128";
        for (variables, refused) in [
            (&[][..], None),
            (&[("HTTP_PROXY", GOOD), ("https_proxy", "proxy:3128"), ("ALL_PROXY", "socks5h://proxy")], None),
            (&[("HTTPS_PROXY", ""), ("HTTP_PROXY", "")], None),
            (&[("HTTP_PROXY", "https://[::1]:3128/"), ("HTTPS_PROXY", "[::1]")], None),
            (&[("HTTPS_PROXY", BAD)], Some("HTTPS_PROXY")),
            (&[("HTTPS_PROXY", "socks5h://proxy:1080")], Some("HTTPS_PROXY")),
            (&[("ALL_PROXY", "socks4://proxy:1080")], Some("ALL_PROXY")),
            (&[("ALL_PROXY", "socks4://proxy:1080"), ("no_proxy", "localhost")], None),
            (&[("ALL_PROXY", BAD), ("no_proxy", "localhost")], Some("ALL_PROXY")),
            (&[("HTTPS_PROXY", "http://u:12/p@proxy:3128")], Some("HTTPS_PROXY")),
            (&[("http_proxy", "http://proxy:3128 ")], Some("http_proxy")),
            (&[("http_proxy", "http://proxy:port")], Some("http_proxy")),
            (&[("HTTP_PROXY", BAD), ("ALL_PROXY", GOOD)], Some("HTTP_PROXY")),
            (&[("HTTP_PROXY", GOOD), ("all_proxy", "socks://proxy")], Some("all_proxy")),
            (&[("HTTP_PROXY", GOOD), ("HTTPS_PROXY", GOOD), ("all_proxy", "socks://proxy")], None),
            (&[("HTTP_PROXY", GOOD), ("http_proxy", BAD)], None),
            (&[("HTTP_PROXY", BAD), ("REQUEST_METHOD", "GET")], None),
        ] {
            let find =
                |name: &str| variables.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into());
            match (refuse_unusable(find), refused) {
                (Ok(()), None) => {}
                (Err(error), Some(name)) => {
                    assert!(error.message().starts_with(name), "{error}");
                    assert!(!error.to_string().contains("u:p"), "{error}");
                }
                (found, _) => panic!("{variables:?}: {found:?}"),
            }
        }
    }
}
