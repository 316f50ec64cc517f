//! One file of rejected records: written beside its place and moved there when it is whole, never over a
//! source.

use howdah_model::{Error, ErrorKind, Plan, Result};
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What is not whole yet has a name with this at the end.
const UNFINISHED: &str = ".unfinished";

/// As many as the system follows.
const LINKS_MAX: usize = 40;

/// A file under way.
pub(super) struct Writer {
    path: PathBuf,
    /// Where the bytes go, and where they are moved when all are there.
    moved: Option<(PathBuf, PathBuf)>,
    file: BufWriter<File>,
    eol: Vec<u8>,
    records: u64,
}

impl Writer {
    /// None where another command is writing the file.
    pub(super) fn new((head, eol): (Vec<u8>, Vec<u8>), path: PathBuf) -> Result<Option<Writer>> {
        let told = |error: std::io::Error| unwritable(&path, &error);
        let (moved, file) = match is_ordinary(&path) {
            true => {
                let place = place_of(&path).map_err(told)?;
                let mut unfinished = place.clone().into_os_string();
                unfinished.push(UNFINISHED);
                let unfinished = PathBuf::from(unfinished);
                let Some(file) = create_own(&unfinished, &place).map_err(told)? else { return Ok(None) };
                (Some((unfinished, place)), file)
            }
            false => {
                let mut open = OpenOptions::new();
                // Below /dev there are files, too.
                (None, open.write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(told)?)
            }
        };
        let mut writer = Writer { path, moved, file: BufWriter::new(file), eol, records: 0 };
        writer.put(&head)?;
        Ok(Some(writer))
    }

    /// The last record of a file need not have a line ending.
    pub(super) fn write(&mut self, record: &[u8]) -> Result<()> {
        self.put(record)?;
        if !record.ends_with(&self.eol) {
            let eol = self.eol.clone();
            self.put(&eol)?;
        }
        self.records += 1;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| unwritable(&self.path, &error))
    }

    pub(super) fn finish(mut self) -> Result<(PathBuf, u64)> {
        let told = |error: std::io::Error| unwritable(&self.path, &error);
        self.file.flush().map_err(told)?;
        if let Some((unfinished, place)) = self.moved.take() {
            std::fs::rename(unfinished, place).map_err(told)?;
        }
        Ok((std::mem::take(&mut self.path), self.records))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // What was not finished has failed, and that error is told.
        if let Some((unfinished, _)) = &self.moved {
            let _ = std::fs::remove_file(unfinished);
        }
    }
}

/// The file that a link leads to is written, not the link. In a folder that others may write to, a link may
/// be theirs, to a file of the caller's: as the system itself does in `/tmp`, such a one is not followed.
fn place_of(path: &Path) -> std::io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(link) = place.symlink_metadata().map(|found| (found.is_symlink(), found.uid())) else { break };
        match link {
            (false, _) => break,
            (true, owner) if is_caller(owner) || owner == 0 => {
                let leads_to = place.read_link()?;
                // An absolute path takes the place of the folder.
                place = place.parent().unwrap_or(Path::new("")).join(leads_to);
            }
            (true, _) => {
                let message = format!("{} is a link of another user", place.display());
                return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, message));
            }
        }
    }
    Ok(place.canonicalize().unwrap_or(place))
}

/// Rejected records are rows, which the ledger keeps from everybody else: so does a new file. One of the
/// caller's own that is there has been given the rights that it has. What an earlier run has left, or
/// somebody has put there, is removed and not written to; but a file that is locked is being written.
fn create_own(unfinished: &Path, place: &Path) -> std::io::Result<Option<File>> {
    // Whoever takes it away holds its lock meanwhile: by its name another one could go that has come there
    // since.
    match left_behind(unfinished) {
        Left::Busy => return Ok(None),
        Left::Nothing => {}
        Left::Other => std::fs::remove_file(unfinished)?,
        Left::Own(locked) => {
            std::fs::remove_file(unfinished)?;
            drop(locked);
        }
    }
    let file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(unfinished) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(None),
        opened => opened?,
    };
    // Where a file system knows no locks, two at once are not told apart.
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    // Another one may have taken it for left behind before it was locked.
    if !is_at(&file, unfinished) {
        return Ok(None);
    }
    if let Ok(old) = place.symlink_metadata()
        && old.is_file()
        && is_caller(old.uid())
    {
        file.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o777))?;
    }
    Ok(Some(file))
}

/// What stands where a file under way is to be made.
enum Left {
    Nothing,
    /// What a command of the caller's has left, with its lock.
    Own(File),
    /// Some command of the caller's has it open and locked, or has put another one there just now.
    Busy,
    Other,
}

/// What is no file is not opened: a pipe would be waited for.
fn left_behind(path: &Path) -> Left {
    let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    match path.symlink_metadata() {
        Err(error) if is_gone(&error) => return Left::Nothing,
        Ok(found) if found.is_file() && is_caller(found.uid()) => {}
        _ => return Left::Other,
    }
    let file = match File::open(path) {
        Err(error) if is_gone(&error) => return Left::Nothing,
        Err(_) => return Left::Other,
        Ok(file) => file,
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Left::Busy,
        _ if is_at(&file, path) => Left::Own(file),
        _ => Left::Busy,
    }
}

/// The file has this name.
fn is_at(file: &File, path: &Path) -> bool {
    let of_name = path.symlink_metadata().map(|there| (there.dev(), there.ino()));
    of_name.is_ok_and(|there| file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == there))
}

fn is_caller(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw()
}

/// Nothing can be moved into the place of a pipe or a device, or of what a descriptor of this process leads
/// to.
pub(super) fn is_ordinary(path: &Path) -> bool {
    !path.starts_with("/dev") && path.metadata().map_or(true, |found| found.is_file())
}

/// Refuses a place that one of the job's files has.
///
/// # Errors
/// `Usage` with the file's name.
pub(crate) fn expect_no_source(plan: &Plan, path: &Path) -> Result<()> {
    match plan.files.iter().find(|file| howdah_source::is_among(&file.location, path)) {
        None => Ok(()),
        Some(_) => Err(Error::new(ErrorKind::Usage, "the file for rejected records is a source of the job")
            .in_file(path.display().to_string())
            .with_hint(
                "name another file: --reject-file FILE; when the job has ended, by `howdah status JOB --reject-file FILE`",
            )),
    }
}

/// Takes away a file of an earlier run; false where it is left to somebody else, who may be writing it.
pub(super) fn remove_older(plan: &Plan, path: &Path, is_own: impl Fn(&Path) -> bool) -> Result<bool> {
    if !path.is_file() || !is_ordinary(path) || expect_no_source(plan, path).is_err() {
        return Ok(true);
    }
    // Nobody else writes it meanwhile.
    let Some(_lock) = Writer::new((Vec::new(), Vec::new()), path.to_owned())?.filter(|_| is_own(path)) else {
        return Ok(false);
    };
    std::fs::remove_file(path).map(|()| true).map_err(|error| {
        let message = format!(
            "the rejected records of an earlier run cannot be removed, of which this one has none: {error}"
        );
        Error::new(ErrorKind::Local, message)
            .in_file(path.display().to_string())
            .with_hint("remove the file, so that it is not taken for one of this run")
    })
}

/// Another command has begun to write the file and is not done.
pub(super) fn busy(path: &Path) -> Error {
    unwritable(path, &std::io::Error::other("another command is writing it"))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Local, format!("the file of rejected records cannot be written: {error}"))
        .in_file(path.display().to_string())
        .with_hint(
            "they are in the ledger's table reject; `howdah status JOB --reject-file FILE` writes them",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    /// Of one that is killed a file is left behind, which the next one takes away.
    #[test]
    fn of_those_that_write_a_file_at_once_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("bad.csv");
        let (writing, written) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let write = |no: usize| {
            let head = format!("head of {no}\n").into_bytes();
            let Some(mut writer) = Writer::new((head, b"\n".to_vec()), path.clone()).unwrap() else { return };
            assert_eq!(writing.fetch_add(1, SeqCst), 0, "two write at once");
            writer.write(b"record").unwrap();
            std::thread::yield_now();
            match no % 5 {
                // As by a kill: nothing is taken away.
                0 => writer.moved = None,
                _ => written.store(no, SeqCst),
            }
            writing.fetch_sub(1, SeqCst);
            let is_whole = writer.moved.is_some();
            writer.finish().unwrap();
            if is_whole {
                assert!(std::fs::read_to_string(&path).unwrap().ends_with("record\n"));
            }
        };
        let write = &write;
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || (0..500).for_each(|no| write(thread * 500 + no)));
            }
        });
        assert!(written.load(SeqCst) > 0);
    }
}
