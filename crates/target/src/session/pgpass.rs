//! The password file: `host:port:database:user:password` lines, first match wins.
//! A file that others may read is ignored with a warning, as libpq does. Passwords leave only as the
//! return value. Source: PostgreSQL documentation, "The Password File".

use std::fs;
use std::path::Path;

/// A longer file is not a password file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What a password is looked up by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Login<'a> {
    /// Host name, address, or `localhost` for the default unix socket directory.
    pub(super) host: &'a str,
    /// Port number in decimal.
    pub(super) port: &'a str,
    /// Database name.
    pub(super) database: &'a str,
    /// User name.
    pub(super) user: &'a str,
}

/// The password for this login, if the file has one. `warn` is told why a file is ignored.
pub(super) fn lookup(file: &Path, login: &Login<'_>, mut warn: impl FnMut(String)) -> Option<String> {
    let name = file.display();
    let data = fs::metadata(file).ok()?;
    if !data.is_file() {
        warn(format!("password file \"{name}\" is not a plain file and is ignored"));
        return None;
    }
    if readable_by_others(&data) {
        warn(format!(
            "password file \"{name}\" is ignored: it has group or world access; \
             permissions should be u=rw (0600) or less"
        ));
        return None;
    }
    if data.len() > FILE_BYTES_MAX {
        warn(format!("password file \"{name}\" is larger than 16 MiB and is ignored"));
        return None;
    }
    let bytes = fs::read(file).ok()?;
    bytes.split(|byte| *byte == b'\n').find_map(|line| match_line(std::str::from_utf8(line).ok()?, login))
}

#[cfg(unix)]
fn readable_by_others(data: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    data.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn readable_by_others(_data: &fs::Metadata) -> bool {
    false
}

pub(super) fn match_line(line: &str, login: &Login<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut rest = line.strip_suffix('\r').unwrap_or(line);
    for wanted in [login.host, login.port, login.database, login.user] {
        // `*` alone is the wildcard; `\*` is a literal star.
        let wildcard = rest.starts_with("*:");
        let (field, after) = take_field(rest);
        if !wildcard && field != wanted {
            return None;
        }
        rest = after?;
    }
    // As in libpq, an unescaped colon ends the password.
    Some(take_field(rest).0)
}

/// One field up to an unescaped colon, unescaped, and what follows the colon.
fn take_field(text: &str) -> (String, Option<&str>) {
    let mut field = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            // One at the very end is itself, as in libpq.
            '\\' => field.push(chars.next().map_or('\\', |(_, c)| c)),
            ':' => return (field, Some(&text[at + 1..])),
            c => field.push(c),
        }
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: Login<'_> = Login { host: "h", port: "5432", database: "d", user: "u" };

    #[test]
    fn escapes_wildcards_and_comments_are_understood() {
        assert_eq!(match_line("h:5432:d:u:secret", &LOGIN).as_deref(), Some("secret"));
        assert_eq!(match_line("*:*:*:*:a\\:b\\\\c", &LOGIN).as_deref(), Some("a:b\\c"));
        assert_eq!(match_line("*:*:*:*:a:b", &LOGIN).as_deref(), Some("a"));
        assert_eq!(match_line("*:*:*:*:a\\", &LOGIN).as_deref(), Some("a\\"));
        assert_eq!(match_line("#*:*:*:*:x", &LOGIN), None);
        assert_eq!(match_line("\\*:*:*:*:x", &LOGIN), None);
        assert_eq!(match_line("h:5433:d:u:x", &LOGIN), None);
        assert_eq!(match_line("h:5432:d", &LOGIN), None);
        let odd = Login { host: "a:b", ..LOGIN };
        assert_eq!(match_line("a\\:b:*:d:u:x\r", &odd).as_deref(), Some("x"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_ignored_with_a_warning() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pgpass");
        fs::write(&file, "x:*:*:*:no\nh:*:*:*:first\n*:*:*:*:second\n").unwrap();
        for (mode, expected, warnings) in [(0o600, Some("first"), 0), (0o640, None, 1), (0o604, None, 1)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let mut told = Vec::new();
            assert_eq!(lookup(&file, &LOGIN, |warning| told.push(warning)).as_deref(), expected);
            assert_eq!(told.len(), warnings);
            assert!(told.iter().all(|warning| !warning.contains("first")));
        }
    }
}
