//! The parsers of what comes from files and command lines of other people, for the fuzzer alone: text enters, and nothing
//! leaves but whether it was understood.

use super::pgpass::{self, Login};
use super::{service, words};
use std::path::Path;

/// A conninfo string or URL.
pub fn conninfo(text: &str) -> bool {
    words::parse(text).is_ok()
}

/// A service file, and whether it has this service.
pub fn service_file(text: &str, service: &str) -> bool {
    service::section(text, service, Path::new("pg_service.conf")).is_ok_and(|found| found.is_some())
}

/// A line of a password file for this host; the login's other parts are `p`, `d` and `u`.
pub fn password_line(line: &str, host: &str) -> Option<String> {
    pgpass::match_line(line, &Login { host, port: "p", database: "d", user: "u" })
}
