//! Where the servers live: `target/servers`, reachable by an unprivileged user.
//!
//! PostgreSQL refuses to run as root, so tests run by root start it as another user, and that user must be
//! able to walk to the binaries. Below a private home (`/root` is 0700) it cannot; then `target/servers` is
//! a link to a folder below `/var/tmp`. Permissions of folders above are never changed.

use crate::Result;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Makes the folder, and returns where it really is.
pub(super) fn prepare(workspace: &Path) -> Result<PathBuf> {
    let wanted = workspace.join("target/servers");
    create(&workspace.join("target"))?;
    if fs::metadata(&wanted).is_err() {
        // Nothing there, or a link to a folder that has gone.
        let _ = fs::remove_file(&wanted);
        if rustix::process::geteuid().is_root() && !walkable(&workspace.join("target")) {
            link_to_fallback(&wanted)?;
        } else {
            create(&wanted)?;
        }
    }
    let real = wanted.canonicalize().map_err(|error| format!("{}: {error}", wanted.display()))?;
    if rustix::process::geteuid().is_root() && !walkable(&real) {
        return Err(format!(
            "{} is out of reach for unprivileged users: remove it and run again",
            real.display()
        ));
    }
    Ok(real)
}

/// A folder that everybody may enter, whatever the umask.
pub(super) fn create(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let made = fs::create_dir_all(folder)
        .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o755)));
    made.map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

/// Whether everybody may enter the folder and all folders above it.
fn walkable(folder: &Path) -> bool {
    folder.ancestors().all(|folder| fs::metadata(folder).is_ok_and(|data| data.mode() & 0o001 != 0))
}

fn link_to_fallback(wanted: &Path) -> Result<()> {
    let uid = rustix::process::geteuid().as_raw();
    let fallback = PathBuf::from(format!("/var/tmp/howdah-servers-{uid}"));
    match fs::DirBuilder::new().mode(0o755).create(&fallback) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            // Anybody can make names in /var/tmp: run only what we put there ourselves.
            let data = fs::symlink_metadata(&fallback)
                .map_err(|error| format!("{}: {error}", fallback.display()))?;
            if !data.is_dir() || data.uid() != uid {
                return Err(format!("{} belongs to somebody else: remove it", fallback.display()));
            }
        }
        Err(error) => return Err(format!("cannot make {}: {error}", fallback.display())),
    }
    let opened = fs::set_permissions(&fallback, fs::Permissions::from_mode(0o755));
    opened
        .and_then(|()| symlink(&fallback, wanted))
        .map_err(|error| format!("cannot link {} to {}: {error}", wanted.display(), fallback.display()))
}
