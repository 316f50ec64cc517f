//! Paths on this machine that a glob may mean. A folder and a pattern enter; paths leave, whose folders alone
//! are certain to fit.
//!
//! Names are bytes to the system. One that is not UTF-8 fits with each broken character taken for one: it is
//! for the caller to refuse.

use crate::failure;
use crate::pattern::Pattern;
use howdah_model::Result;
use std::collections::HashSet;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What one part of a pattern's path stands for.
enum Part {
    /// `**`: any number of folders.
    Folders,
    /// Exactly this.
    Name(String),
    Like(Pattern),
}

/// Goes down from one folder, a part of the pattern at a time. Links are followed, but below `**` not in
/// circles: two of them in one folder double the paths with each level, and the system ends them only
/// behind 40.
pub(crate) struct Walk {
    parts: Vec<Part>,
    /// Paths with how many parts of the pattern have led there.
    todo: Vec<(PathBuf, usize)>,
    /// Those of them at a `**` that several ways lead to, which are as many as the ways to put that deep into
    /// the tree.
    seen: HashSet<(PathBuf, usize)>,
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
        Ok(Walk { parts, todo: vec![(folder.to_owned(), 0)], seen: HashSet::new() })
    }

    /// # Errors
    /// Those of a folder that cannot be listed; the walk can go on behind it.
    pub(crate) fn next(&mut self) -> Result<Option<PathBuf>> {
        while let Some((path, done)) = self.todo.pop() {
            match self.parts.get(done) {
                None => return Ok(Some(path)),
                Some(Part::Name(name)) => {
                    let path = path.join(name);
                    // A link that leads nowhere is there: it is for the caller to refuse.
                    if looked_at(&path, |path| std::fs::symlink_metadata(path))?.is_some() {
                        self.todo.push((path, done + 1));
                    }
                }
                Some(Part::Like(pattern)) => {
                    let fits = |path: &Path| pattern.matches(&name(path)).is_some();
                    let found = entries(&path)?.into_iter().filter(|path| fits(path));
                    self.todo.extend(found.map(|path| (path, done + 1)));
                }
                Some(Part::Folders) => {
                    if self.comes_again(&path, done) {
                        continue;
                    }
                    for path in entries(&path)? {
                        if !name(&path).starts_with('.') && is_folder(&path)? && !leads_back(&path) {
                            self.todo.push((path, done));
                        }
                    }
                    self.todo.push((path, done + 1));
                }
            }
        }
        Ok(None)
    }

    /// Only behind another `**` is there more than one way.
    fn comes_again(&mut self, path: &Path, done: usize) -> bool {
        let is_first = !self.parts[..done].iter().any(|part| matches!(part, Part::Folders));
        !is_first && !self.seen.insert((path.to_owned(), done))
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
    if !is_folder(folder)? {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(told)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(told)).collect()
}

/// Links are followed; one that leads nowhere, or to itself, is none.
fn is_folder(path: &Path) -> Result<bool> {
    Ok(looked_at(path, |path| std::fs::metadata(path))?.is_some_and(|metadata| metadata.is_dir()))
}

/// What the system says of a path; `None` where nothing is. That it may not be looked at, or a file server
/// does not answer, is an error: files that are there would be left out without a word.
fn looked_at(path: &Path, ask: impl Fn(&Path) -> std::io::Result<Metadata>) -> Result<Option<Metadata>> {
    match ask(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_nothing(&error) => Ok(None),
        Err(error) => Err(failure::of_file(&error, "opening", &path.to_string_lossy())),
    }
}

fn is_nothing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
