//! Paths on this machine that a glob may mean. A folder and a pattern enter; paths leave, whose folders alone are certain to fit.
//!
//! Names are bytes to the system. One that is not UTF-8 fits with each broken character taken for one: it is for the caller to refuse.

use crate::failure;
use crate::pattern::Pattern;
use howdah_model::Result;
use std::path::{Path, PathBuf};

/// What one part of a pattern's path stands for.
enum Part {
    /// `**`: any number of folders.
    Folders,
    /// Exactly this.
    Name(String),
    Like(Pattern),
}

/// Goes down from one folder, a part of the pattern at a time. Links are followed, but below `**` not in circles: two of them in one
/// folder double the paths with each level, and the system ends them only behind 40.
pub(crate) struct Walk {
    parts: Vec<Part>,
    /// Paths with how many parts of the pattern have led there.
    todo: Vec<(PathBuf, usize)>,
}

impl Walk {
    /// `glob` is as [`Pattern::glob`] gives it, without empty and `.` parts.
    ///
    /// # Errors
    /// Usage, for a pattern that makes no sense.
    pub(crate) fn new(folder: &Path, glob: &str) -> Result<Walk> {
        let mut parts = Vec::new();
        for part in glob.split('/') {
            match part {
                // Two of them find everything twice.
                "**" if matches!(parts.last(), Some(Part::Folders)) => {}
                "**" => parts.push(Part::Folders),
                _ => {
                    let like = Pattern::parse(part)?;
                    parts.push(like.map_or_else(|| Part::Name(part.to_owned()), Part::Like));
                }
            }
        }
        Ok(Walk { parts, todo: vec![(folder.to_owned(), 0)] })
    }

    /// # Errors
    /// Those of a folder that cannot be listed; the walk can go on behind it.
    pub(crate) fn next(&mut self) -> Result<Option<PathBuf>> {
        while let Some((path, done)) = self.todo.pop() {
            match self.parts.get(done) {
                None => return Ok(Some(path)),
                Some(Part::Name(name)) => {
                    let path = path.join(name);
                    if path.exists() {
                        self.todo.push((path, done + 1));
                    }
                }
                Some(Part::Like(pattern)) => {
                    let fits = |path: &Path| pattern.matches(&name(path)).is_some();
                    let found = entries(&path)?.into_iter().filter(|path| fits(path));
                    self.todo.extend(found.map(|path| (path, done + 1)));
                }
                Some(Part::Folders) => {
                    let is_meant =
                        |path: &Path| !name(path).starts_with('.') && path.is_dir() && !leads_back(path);
                    let found = entries(&path)?.into_iter().filter(|path| is_meant(path));
                    self.todo.extend(found.map(|path| (path, done)));
                    self.todo.push((path, done + 1));
                }
            }
        }
        Ok(None)
    }
}

/// A link to one of the folders that have led to it.
fn leads_back(path: &Path) -> bool {
    let is_end = |end: &Path| {
        let mut folders = path.ancestors().skip(1).filter_map(|folder| folder.canonicalize().ok());
        folders.any(|folder| folder == end)
    };
    path.is_symlink() && path.canonicalize().is_ok_and(|end| is_end(&end))
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// What is in the folder; nothing where it is none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let told = |error: std::io::Error| failure::of_file(&error, "listing", &folder.to_string_lossy());
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(told)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(told)).collect()
}
