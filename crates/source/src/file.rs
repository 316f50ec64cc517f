//! Files on this machine. Paths, globs and directories enter; objects leave, and their bytes by `pread`. A
//! file that got another size or modification time since it was listed, or in whose place another one is, is
//! refused, before and after each read; devices and sockets are refused at once.

use crate::failure::{self, uninterrupted};
use crate::object::Object;
use crate::path::absolute;
use crate::pattern::Pattern;
use crate::stdin::Pipe;
use crate::walk::Walk;
use crate::{BLOCK_BYTES, OBJECTS_MAX};
use bytes::Bytes;
use howdah_model::{Error, ErrorKind, Result, counted};
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A regular file as it was when listed. Holds no descriptor: a job of 100,000 files must not run out of
/// them.
#[derive(Debug)]
pub(crate) struct LocalFile {
    path: PathBuf,
    location: String,
    /// Where the links in its path lead.
    real_path: String,
    bytes: u64,
    version: String,
    id: FileId,
}

/// Tells a file from another one that came to its name with the same size and modification time, as by `mv`
/// or `cp -p`. Holds for as long as the process: a copy on another machine is the same source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    /// When the file was last written, renamed or given another owner or time, which nobody can set.
    changed_ns: i128,
}

impl FileId {
    fn of(metadata: &Metadata) -> FileId {
        let changed_ns = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
        FileId { device: metadata.dev(), inode: metadata.ino(), changed_ns }
    }

    fn is_of(self, metadata: &Metadata) -> bool {
        let now = FileId::of(metadata);
        // Whoever has it open reads it to its end after it was deleted, which counts as a change.
        let is_deleted = metadata.nlink() == 0 && (now.device, now.inode) == (self.device, self.inode);
        now == self || is_deleted
    }
}

impl LocalFile {
    pub(crate) fn id(&self) -> FileId {
        self.id
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn real_path(&self) -> &str {
        &self.real_path
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Fills `out` from `offset` up to the end of the file. One copy: from the page cache to `out`.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let wanted =
            usize::try_from(self.bytes.saturating_sub(offset)).map_or(out.len(), |left| left.min(out.len()));
        if wanted == 0 && self.bytes > 0 {
            return Ok(0);
        }
        let file = self.open()?;
        let mut filled = 0;
        while filled < wanted {
            match uninterrupted(|| file.read_at(&mut out[filled..wanted], offset + filled as u64)) {
                Ok(0) => return Err(self.cut_short(&file, offset + filled as u64)),
                Ok(count) => filled += count,
                Err(error) => return Err(failure::of_file(&error, "reading", &self.location)),
            }
        }
        if offset + filled as u64 == self.bytes {
            self.expect_end(&file)?;
        }
        self.check(&file)?;
        Ok(filled)
    }

    /// Opens what was listed, or says that it is something else now.
    fn open(&self) -> Result<File> {
        let file =
            File::open(&self.path).map_err(|error| failure::of_file(&error, "opening", &self.location))?;
        self.check(&file)?;
        Ok(file)
    }

    /// A few microseconds; also done after a read, so that bytes written during it are never taken for the
    /// old.
    fn check(&self, file: &File) -> Result<()> {
        let now = file
            .metadata()
            .map_err(|error| failure::of_file(&error, "asking for the size", &self.location))?;
        match version_of(&now) {
            version if version != self.version => {
                Err(failure::changed(&self.location, &self.version, &version))
            }
            _ if self.id.is_of(&now) => Ok(()),
            _ => Err(failure::replaced(&self.location)),
        }
    }

    /// File systems whose files are made as they are read (procfs, some of FUSE) tell no size, or another
    /// one: the rest would be missing.
    fn expect_end(&self, file: &File) -> Result<()> {
        match uninterrupted(|| file.read_at(&mut [0], self.bytes)) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.check(file).err().unwrap_or_else(|| {
                let message = format!(
                    "the file system tells of {}, and the file has more",
                    counted(self.bytes, "byte")
                );
                Error::new(ErrorKind::SourceIo, message)
                    .in_file(&self.location)
                    .with_hint("copy it to a disk, or pipe it: `cat FILE | howdah load -`")
            })),
            Err(error) => Err(failure::of_file(&error, "reading", &self.location)),
        }
    }

    /// The file ended before its size; a change explains it, or else the disk lies.
    fn cut_short(&self, file: &File, reached: u64) -> Error {
        let unexplained = || {
            let message =
                format!("reading ended at byte {reached}, expected {}", counted(self.bytes, "byte"));
            Error::new(ErrorKind::SourceIo, message).in_file(&self.location)
        };
        self.check(file).err().unwrap_or_else(unexplained)
    }
}

/// Reads a file in order.
pub(crate) struct FileStream {
    file: File,
    source: std::sync::Arc<LocalFile>,
    reached: u64,
}

impl FileStream {
    pub(crate) fn open(source: std::sync::Arc<LocalFile>, offset: u64) -> Result<FileStream> {
        Ok(FileStream { file: source.open()?, reached: offset, source })
    }

    /// One copy, from the page cache to the block. Blocks are allocated anew, as the reader may keep them;
    /// the allocator hands the same few megabytes out again and again.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>> {
        let left = self.source.bytes.saturating_sub(self.reached);
        let wanted = usize::try_from(left).map_or(BLOCK_BYTES, |left| left.min(BLOCK_BYTES));
        if wanted == 0 {
            self.source.expect_end(&self.file)?;
            self.source.check(&self.file)?;
            return Ok(None);
        }
        let mut block = vec![0; wanted];
        match uninterrupted(|| self.file.read_at(&mut block, self.reached)) {
            Ok(0) => Err(self.source.cut_short(&self.file, self.reached)),
            Ok(count) => {
                self.source.check(&self.file)?;
                block.truncate(count);
                self.reached += count as u64;
                Ok(Some(block.into()))
            }
            Err(error) => Err(failure::of_file(&error, "reading", &self.source.location)),
        }
    }
}

/// Size and modification time: `1234-1700000000123456789`.
fn version_of(metadata: &Metadata) -> String {
    let mtime_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    format!("{}-{mtime_ns}", metadata.len())
}

/// Opens exactly this path; nothing in it is expanded.
pub(crate) fn open(path: &str) -> Result<Object> {
    let metadata = std::fs::metadata(path).map_err(|error| failure::of_file(&error, "opening", path))?;
    object(Path::new(path), &metadata, None)
}

/// A path, a directory, or a glob; a file that has the very name wins over the glob. Blocks.
pub(crate) fn list(text: &str) -> Result<Vec<Object>> {
    const DIRECTORY_HINT: &str =
        "a directory stands for the files in it, not for those in its folders: write DIRECTORY/**";
    const PATTERN_HINT: &str =
        "* stands for any part of a name, /**/ for any folders; both pass over names that begin with a dot";
    let (found, nothing, hint) = match std::fs::metadata(text) {
        Ok(metadata) if metadata.is_dir() => {
            (directory(text)?, "no file is there that is not hidden", DIRECTORY_HINT)
        }
        Ok(metadata) => return Ok(vec![object(Path::new(text), &metadata, None)?]),
        Err(error) => match Pattern::parse(text)? {
            Some(pattern) => (globbed(text, &pattern)?, "no file matches the pattern", PATTERN_HINT),
            None => return Err(failure::of_file(&error, "opening", text)),
        },
    };
    match found.is_empty() {
        true => Err(Error::new(ErrorKind::SourceNotFound, nothing).in_file(text).with_hint(hint)),
        false => Ok(found),
    }
}

fn directory(text: &str) -> Result<Vec<Object>> {
    let told = |error: std::io::Error| failure::of_file(&error, "listing", text);
    let mut objects = Vec::new();
    for entry in std::fs::read_dir(text).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        // Follows links; one that leads nowhere is an error, as it is where it is named.
        let metadata = std::fs::metadata(&path)
            .map_err(|error| failure::of_file(&error, "opening", &path.to_string_lossy()))?;
        if metadata.is_file() {
            push(&mut objects, object(&path, &metadata, None)?, text)?;
        }
    }
    Ok(objects)
}

/// Expands from the absolute path, so that the result reads the same wherever it is opened again.
fn globbed(text: &str, pattern: &Pattern) -> Result<Vec<Object>> {
    let base =
        std::env::current_dir().map_err(|error| failure::of_file(&error, "finding the directory", text))?;
    let base = if text.starts_with('/') { Path::new("/") } else { base.as_path() };
    let mut walk = Walk::new(base, &plain(pattern.glob()))?;
    let pattern = Pattern::parse(&plain(text))?;
    let mut objects = Vec::new();
    while let Some(path) = walk.next()? {
        let name = path.strip_prefix(base).unwrap_or(&path).to_string_lossy();
        let Some(found) = pattern.as_ref().and_then(|pattern| pattern.matches(&name)) else { continue };
        let metadata = std::fs::metadata(&path)
            .map_err(|error| failure::of_file(&error, "opening", &path.to_string_lossy()))?;
        if !metadata.is_dir() {
            push(&mut objects, object(&path, &metadata, found.placeholder)?, text)?;
        }
    }
    Ok(objects)
}

/// Without empty and `.` parts, as a walk gives its results.
fn plain(text: &str) -> String {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

fn push(objects: &mut Vec<Object>, object: Object, text: &str) -> Result<()> {
    objects.push(object);
    match objects.len() > OBJECTS_MAX {
        true => Err(crate::list::too_many(text)),
        false => Ok(()),
    }
}

/// A name that cannot stand in the ledger, nor in anything that is printed.
pub fn name_not_utf8(path: &Path) -> Error {
    Error::new(ErrorKind::SourceIo, "the name is not UTF-8")
        .in_file(path.to_string_lossy())
        .with_hint("rename the file, or link to it by another name")
}

fn object(path: &Path, metadata: &Metadata, placeholder: Option<String>) -> Result<Object> {
    let path = absolute(path)
        .map_err(|error| failure::of_file(&error, "finding the directory", &path.to_string_lossy()))?;
    let Some(location) = path.to_str().map(str::to_owned) else {
        return Err(name_not_utf8(&path));
    };
    let kind = metadata.file_type();
    if kind.is_file() {
        let real_path = path.canonicalize().ok().and_then(|path| path.to_str().map(str::to_owned));
        let file = LocalFile {
            real_path: real_path.unwrap_or_else(|| location.clone()),
            location: location.clone(),
            bytes: metadata.len(),
            version: version_of(metadata),
            id: FileId::of(metadata),
            path,
        };
        return Ok(Object::file(location, placeholder, file));
    }
    if kind.is_fifo() || kind.is_char_device() {
        return Ok(Object::pipe(location, placeholder, Pipe::found(path, metadata)?));
    }
    let what = if kind.is_dir() { "a directory" } else { "a device or socket" };
    Err(Error::new(ErrorKind::Unsupported, format!("expected a file or a pipe, got {what}"))
        .in_file(location))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_file_has_its_size_and_time_as_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "abc").unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(7, 5);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(version_of(&std::fs::metadata(&path).unwrap()), "3-7000000005");
    }

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(plain("./a//b/./*.csv"), "a/b/*.csv");
        assert_eq!(plain("/a/../b"), "a/../b");
    }
}
