//! The parsers of what users, stores and files of others say, for the fuzzer alone.

use crate::client;
use crate::location::Location;
use crate::pattern::Pattern;
use crate::profile;

/// A location as typed; whether it was understood.
pub fn location(text: &str) -> bool {
    Location::parse(text).is_ok()
}

/// Whether a name matches a pattern; `None` where there is no pattern in it, or one that makes no sense.
pub fn matches(pattern: &str, name: &str) -> Option<bool> {
    Pattern::parse(pattern).ok()?.map(|pattern| pattern.matches(name).is_some())
}

/// Settings of a section of an AWS profile file.
pub fn profile_settings(text: &str, section: &str) -> usize {
    profile::section(text, section).map_or(0, |found| found.len())
}

/// The code in the XML of a store's error answer.
pub fn error_code(body: &str) -> Option<String> {
    client::find_code(body)
}
