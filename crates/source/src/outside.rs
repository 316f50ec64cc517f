//! The parsers of what users, stores and files of others say, for the fuzzer alone.

use crate::location::{Location, shown};
use crate::pattern::Pattern;
use crate::profile;
use url::Url;

/// A location as typed; whether it was understood.
pub fn location(text: &str) -> bool {
    Location::parse(text).is_ok()
}

/// A URL as it is shown to people, if it is one.
pub fn shown_url(text: &str) -> Option<String> {
    Url::parse(text).ok().map(|url| shown(&url))
}

/// Whether a name matches a pattern; `None` where there is no pattern in it, or one that makes no sense.
pub fn matches(pattern: &str, name: &str) -> Option<bool> {
    Pattern::parse(pattern).ok()?.map(|pattern| pattern.matches(name).is_some())
}

/// Settings of a section of an AWS profile file.
pub fn profile_settings(text: &str, section: &str) -> usize {
    profile::section(text, section).map_or(0, |found| found.len())
}
