//! The parsers of what comes from files and command lines of other people, and of what servers say, for the
//! fuzzer alone: text enters, and nothing leaves but what was understood.

use super::bounds::{self, BoundOf};
use super::pgpass::{self, Login};
use super::{service, words};
use crate::copy::server_error;
use crate::ledger::kept_plan;
use howdah_model::Relation;
use howdah_model::route::Bound;
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

/// The bound of a partition; `None` too for that of the default one.
pub fn partition_bound(text: &str) -> Option<Bound> {
    match bounds::parse(text)? {
        BoundOf::Values(bound) => Some(bound),
        BoundOf::Default => None,
    }
}

/// The line and the column that the context of a server's error names, of a COPY into `public.t` with these
/// columns.
pub fn error_spot(context: &str, columns: &[String]) -> Option<(u64, Option<String>)> {
    let relation = Relation { schema: "public".to_owned(), name: "t".to_owned() };
    server_error::find_spot(context, &relation, columns).map(|spot| (spot.line, spot.column))
}

/// What is shown of a server's message about the reading of a value.
pub fn shown(sqlstate: &str, message: &str) -> String {
    server_error::input_without_values(sqlstate, message, &["t", "public"])
}

/// A plan as a ledger keeps it, written anew in that way; `None` for what is none.
pub fn kept_plan(text: &str) -> Option<serde_json::Result<String>> {
    kept_plan::read(text).ok().map(|plan| kept_plan::write(&plan))
}
