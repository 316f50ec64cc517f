//! Spellings of a path. What a user wrote enters; the absolute path without `.` and `..` leaves, or where its
//! links lead. Refuses nothing: what is not there keeps its spelling.

use crate::location::Location;
use std::path::{Component, Path, PathBuf};

/// The absolute path without `.` and `..`; links stay as they are named. `..` behind a link goes where the
/// system goes.
pub(crate) fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    if !absolute.components().any(|part| part == Component::ParentDir) {
        return Ok(absolute);
    }
    let mut plain = PathBuf::new();
    for part in absolute.components() {
        match part {
            // The parent of `/` is `/`.
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    match absolute.canonicalize() {
        Ok(meant) if plain.canonicalize().ok().as_ref() != Some(&meant) => Ok(meant),
        _ => Ok(plain),
    }
}

/// A location on this machine, its path made [`absolute`]; of a pattern the directories before its first glob
/// character.
pub fn absolute_location(location: &str) -> String {
    respelled(location, |path| absolute(path).ok())
}

/// A location on this machine with all links followed, of a pattern as far as [`absolute_location`] goes; of
/// a `file://` URL its path. Pipes, and what is not there, keep their names. `None` for what is not on this
/// machine.
pub fn real_location(location: &str) -> Option<String> {
    let Ok(Location::Path(path)) = Location::parse(location) else { return None };
    let is_lasting = |path: &Path| path.metadata().is_ok_and(|found| found.is_file() || found.is_dir());
    Some(respelled(&path, |path| is_lasting(path).then(|| path.canonicalize().ok()).flatten()))
}

fn respelled(location: &str, respell: impl Fn(&Path) -> Option<PathBuf>) -> String {
    let Some(location) = std::path::absolute(location).ok().and_then(|path| path.to_str().map(str::to_owned))
    else {
        return location.to_owned();
    };
    let (folder, pattern) = match first_glob(&location) {
        // A file that has the very name wins over the pattern.
        Some(first) if !Path::new(&location).exists() => {
            let end = location[..first].rfind('/').map_or(0, |slash| slash + 1);
            location.split_at(end)
        }
        _ => (location.as_str(), ""),
    };
    let respelled = respell(Path::new(folder)).and_then(|path| path.to_str().map(str::to_owned));
    let Some(respelled) = respelled else { return location };
    match pattern {
        "" => respelled,
        pattern => format!("{}/{pattern}", respelled.trim_end_matches('/')),
    }
}

fn first_glob(location: &str) -> Option<usize> {
    location.find(['*', '?', '[']).into_iter().chain(location.find("{table}")).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_however_it_goes_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/x"), "").unwrap();
        let root = root.to_str().unwrap();
        for way in ["a/x", "a/./x", "a//x", "a/b/../x", "a/b/../../a/x"] {
            assert_eq!(absolute_location(&format!("{root}/{way}")), format!("{root}/a/x"), "{way}");
        }
        assert_eq!(absolute_location(&format!("{root}/a/b/../*.c")), format!("{root}/a/*.c"));
        assert_eq!(absolute_location(&format!("{root}/a/b/../none")), format!("{root}/a/none"));
    }

    #[test]
    fn links_are_followed_only_where_that_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/x"), "").unwrap();
        std::os::unix::fs::symlink("a/b", root.join("link")).unwrap();
        std::os::unix::fs::symlink("a/x", root.join("y")).unwrap();
        let root = root.to_str().unwrap();
        assert_eq!(absolute_location(&format!("{root}/y")), format!("{root}/y"));
        let real_location = |location: &str| real_location(location).unwrap();
        assert_eq!(real_location(&format!("{root}/y")), format!("{root}/a/x"));
        assert_eq!(real_location(&format!("file://{root}/y")), format!("{root}/a/x"));
        assert_eq!(real_location(&format!("{root}/link/{{table}}.c")), format!("{root}/a/b/{{table}}.c"));
        assert_eq!(real_location(&format!("{root}/none")), format!("{root}/none"));
        assert_eq!(super::real_location("s3://b/k"), None);
        // `..` behind a link is the parent of where it leads.
        assert_eq!(absolute_location(&format!("{root}/link/../x")), format!("{root}/a/x"));
    }
}
