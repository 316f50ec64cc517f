//! Globs with at most one `{table}`. A pattern enters; a test of names leaves, with what `{table}` stood for.
//!
//! `*` and `?` stand for anything but `/`, `[a-z]` and `[!a-z]` for one character, `**` as a whole part of
//! the path for any number of folders. Translated to a regular expression, so that matching takes linear
//! time.

use howdah_model::{Error, ErrorKind, Result};
use regex_lite::Regex;

const PLACEHOLDER: &str = "{table}";

/// A glob, ready to match whole names.
pub(crate) struct Pattern {
    regex: Regex,
    /// The same without a placeholder.
    glob: String,
    /// What every match begins with.
    prefix: String,
    has_folders: bool,
    /// The parts of the path that begin with a dot as they are written.
    dotted: Vec<Regex>,
}

impl Pattern {
    /// `None`: the text has nothing to expand, and names one thing or a prefix.
    pub(crate) fn parse(text: &str) -> Result<Option<Pattern>> {
        let Some(first) = text.find(['*', '?', '[']).into_iter().chain(text.find(PLACEHOLDER)).min() else {
            return Ok(None);
        };
        if text.matches(PLACEHOLDER).count() > 1 {
            return Err(usage(text, "has more than one {table}"));
        }
        // A trailing `**` alone would match folders only; what is in them is meant.
        let text = if text == "**" || text.ends_with("/**") { format!("{text}/*") } else { text.to_owned() };
        let whole = |part: &str| {
            let regex = Regex::new(&format!("^(?s:{})$", translate(part)?));
            regex.map_err(|_| usage(&text, "has a [ ] that makes no sense"))
        };
        let regex = whole(&text)?;
        let dotted = text.split('/').filter(|part| part.starts_with('.')).map(whole);
        let dotted = dotted.collect::<Result<_>>()?;
        Ok(Some(Pattern {
            regex,
            prefix: text[..first].to_owned(),
            has_folders: text[first..].contains('/'),
            glob: text.replace(PLACEHOLDER, "*"),
            dotted,
        }))
    }

    /// As to a shell, a dot that a part of the name begins with must be written.
    pub(crate) fn matches(&self, name: &str) -> Option<Match> {
        let is_written = |part: &str| self.dotted.iter().any(|dotted| dotted.is_match(part));
        if name.split('/').any(|part| part.starts_with('.') && !is_written(part)) {
            return None;
        }
        let captures = self.regex.captures(name)?;
        Some(Match { placeholder: captures.get(1).map(|found| found.as_str().to_owned()) })
    }

    pub(crate) fn glob(&self) -> &str {
        &self.glob
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A `/` follows the prefix: matches may lie in folders below it.
    pub(crate) fn has_folders(&self) -> bool {
        self.has_folders
    }
}

/// A name that fits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) placeholder: Option<String>,
}

fn usage(text: &str, what: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("the pattern {text} {what}"))
}

/// The regular expression of a glob.
fn translate(text: &str) -> Result<String> {
    let mut regex = String::new();
    let mut rest = text;
    let mut at_part_start = true;
    while let Some(next) = rest.chars().next() {
        let mut length = next.len_utf8();
        if rest.starts_with(PLACEHOLDER) {
            length = PLACEHOLDER.len();
            regex.push_str("([^/]+)");
        } else if rest.starts_with("**") {
            if !at_part_start || !rest.starts_with("**/") {
                return Err(usage(text, "has ** next to other characters")
                    .with_hint("write ** between slashes: a/**/b"));
            }
            length = "**/".len();
            regex.push_str("(?:[^/]+/)*");
        } else if next == '[' {
            length = class(text, rest, &mut regex)?;
        } else {
            match next {
                '*' => regex.push_str("[^/]*"),
                '?' => regex.push_str("[^/]"),
                other => regex.push_str(&regex_lite::escape(other.encode_utf8(&mut [0; 4]))),
            }
        }
        at_part_start = rest[..length].ends_with('/');
        rest = &rest[length..];
    }
    Ok(regex)
}

/// Translates the `[..]` that `rest` begins with; returns its length. A `]` that comes first is a member.
fn class(text: &str, rest: &str, regex: &mut String) -> Result<usize> {
    let negated = rest[1..].starts_with('!');
    let start = if negated { 2 } else { 1 };
    let end = rest[start..].char_indices().skip(1).find(|(_, each)| *each == ']').map(|(at, _)| start + at);
    let Some(end) = end else {
        return Err(
            usage(text, "has a [ without a ]").with_hint("close it by ], or write [[] for a [ in the name")
        );
    };
    regex.push_str(if negated { "[^/" } else { "[" });
    for member in rest[start..end].chars() {
        if member.is_ascii_punctuation() && member != '-' {
            regex.push('\\');
        }
        regex.push(member);
    }
    regex.push(']');
    Ok(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().unwrap().matches(name).is_some()
    }

    #[test]
    fn globs_match_whole_names_and_stop_at_slashes() {
        assert!(matches("a/*.csv", "a/x.csv"));
        assert!(!matches("a/*.csv", "a/b/x.csv"));
        assert!(!matches("a/*.csv", "a/x.csv.gz"));
        assert!(!matches("a/*.csv", "a/xXcsv"));
        assert!(matches("a?", "aé"));
        assert!(!matches("a?c", "a/c"));
        assert!(matches("[!b-d]+(x)", "a+(x)"));
        assert!(!matches("[!b-d]x", "cx"));
        assert!(!matches("a[!b]c", "a/c"));
        assert!(matches("[]^&a]", "]"));
        assert!(matches("[]^&a]", "&"));
    }

    #[test]
    fn two_stars_cross_folders() {
        assert!(matches("a/**/x.csv", "a/x.csv"));
        assert!(matches("a/**/x.csv", "a/b/c/x.csv"));
        assert!(matches("a/**", "a/b/c"));
        assert!(matches("**", "c"));
        assert!(!matches("a/**", "ab"));
        assert_eq!(Pattern::parse("a**b").err().unwrap().kind(), ErrorKind::Usage);
        assert_eq!(Pattern::parse("a/**b/c").err().unwrap().kind(), ErrorKind::Usage);
    }

    #[test]
    fn hidden_names_match_only_a_dot_that_is_written() {
        for hidden in ["a/.x.csv", "a/.b/x.csv", ".a/x.csv", "a/b/.x.csv"] {
            for pattern in ["*/*.csv", "**/*.csv", "a/**", "{table}/?x.csv", "a/[.]x.csv", "*/*/*"] {
                assert!(!matches(pattern, hidden), "{pattern} {hidden}");
            }
        }
        assert!(matches("a/.*.csv", "a/.x.csv"));
        assert!(matches("a/**/.b/*.csv", "a/c/.b/x.csv"));
        assert!(!matches("a/.b/*.csv", "a/.b/.x.csv"));
        assert!(matches("../*.csv", "../x.csv"));
    }

    #[test]
    fn the_placeholder_is_one_part_and_is_told() {
        let pattern = Pattern::parse("in/{table}/part-*.tsv").unwrap().unwrap();
        let found = pattern.matches("in/title/part-1.tsv").unwrap();
        assert_eq!(found.placeholder.as_deref(), Some("title"));
        assert!(pattern.matches("in/a/b/part-1.tsv").is_none());
        assert!(pattern.matches("in//part-1.tsv").is_none());
        assert_eq!((pattern.prefix(), pattern.glob()), ("in/", "in/*/part-*.tsv"));
        let inside = Pattern::parse("x.{table}.csv").unwrap().unwrap();
        assert_eq!(inside.matches("x.a.b.csv").unwrap().placeholder.as_deref(), Some("a.b"));
        assert!(!inside.has_folders());
    }

    #[test]
    fn nonsense_is_a_usage_error() {
        for text in ["{table}/{table}", "a[b", "[z-a]"] {
            assert_eq!(Pattern::parse(text).err().unwrap().kind(), ErrorKind::Usage, "{text}");
        }
        assert!(Pattern::parse("plain{x}.csv").unwrap().is_none());
        // As the hint says.
        assert!(Pattern::parse("a[b*").err().unwrap().hint().unwrap().contains("[[]"));
        assert!(matches("a[[]b*", "a[bc"));
    }
}
