//! Whether a file that is to be written is one of the sources. A location and a path enter; reads nothing,
//! and refuses nothing.

use crate::location::Location;
use crate::path::real_location;
use crate::pattern::Pattern;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The location names this file, by whatever name or link; or, a directory or a pattern, it would list the
/// file if that were there. What is not on this machine, a pipe and a device never do.
pub fn is_among(location: &str, path: &Path) -> bool {
    let Ok(Location::Path(text)) = Location::parse(location) else { return false };
    match std::fs::metadata(&text) {
        Ok(source) if source.is_file() => {
            path.metadata().is_ok_and(|file| (file.dev(), file.ino()) == (source.dev(), source.ino()))
        }
        Ok(source) => source.is_dir() && would_list(&format!("{text}/*"), path),
        Err(_) => would_list(&text, path),
    }
}

/// Hidden files are not listed.
fn would_list(pattern: &str, path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Some(name), Ok(folder)) = (path.file_name(), folder.canonicalize()) else { return false };
    let is_hidden = name.as_encoded_bytes().starts_with(b".");
    let pattern = real_location(pattern).and_then(|pattern| Pattern::parse(&pattern).ok().flatten());
    let path = folder.join(name);
    !is_hidden
        && pattern.is_some_and(|pattern| path.to_str().and_then(|path| pattern.matches(path)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_among_the_sources_that_name_or_would_list_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("in")).unwrap();
        std::fs::write(root.join("in/a.csv"), "").unwrap();
        std::fs::write(root.join("b.csv"), "").unwrap();
        std::os::unix::fs::symlink(root.join("in"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("in/a.csv"), root.join("link.csv")).unwrap();
        std::fs::hard_link(root.join("in/a.csv"), root.join("hard.csv")).unwrap();
        let among = |location: &str, path: &str| {
            is_among(&format!("{}/{location}", root.display()), &root.join(path))
        };
        for path in ["in/a.csv", "in/../in/a.csv", "link/a.csv", "link.csv", "hard.csv"] {
            assert!(among("in/a.csv", path) && among("link.csv", path), "{path}");
        }
        for location in ["in", "in/", "link", "in/*", "in/*.csv", "i?/*.csv", "**", "in/{table}.csv"] {
            assert!(among(location, "in/new.csv") && among(location, "link/new.csv"), "{location}");
            assert!(!among(location, "in/.new.csv"), "{location}");
        }
        for (location, path) in [
            ("in/*.csv", "in/new.bad"),
            ("in/*", "new.csv"),
            ("in", "b.csv"),
            ("in/a.csv", "b.csv"),
            ("in/a.csv", "no.csv"),
        ] {
            assert!(!among(location, path), "{location} {path}");
        }
        for location in ["-", "s3://in/a.csv", "https://in/a.csv", "/dev/null"] {
            assert!(!is_among(location, Path::new("/dev/null")), "{location}");
        }
    }
}
