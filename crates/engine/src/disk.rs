//! The disks of a server on this machine: where its data and its WAL are, and what room they have.

use crate::Context;
use howdah_model::Result;
use howdah_target::session::{Session, show};
use rustix::fs::statvfs;
use std::path::{Path, PathBuf};

/// A file system that the server writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    /// `data` or `WAL`.
    pub(crate) what: &'static str,
    /// Where.
    pub(crate) path: PathBuf,
    /// What ordinary processes can still write.
    pub(crate) free_bytes: u64,
    /// All of it.
    pub(crate) all_bytes: u64,
}

/// The disks of data and WAL, as far as they can be seen: the server runs on this machine, and the role may know
/// where its data is.
///
/// # Errors
/// Those of the session.
pub(crate) async fn server_disks(context: &Context, session: &Session) -> Result<Vec<Disk>> {
    if context.connection.server_cpus().is_none() || !is_here(session) {
        return Ok(Vec::new());
    }
    let shown = show_data_directory(session).await?;
    Ok(shown.map(|folder| disks(&folder)).unwrap_or_default())
}

/// The setting is told to superusers and members of `pg_read_all_settings` alone.
async fn show_data_directory(session: &Session) -> Result<Option<PathBuf>> {
    match show(session, &["data_directory"]).await {
        Ok(shown) => Ok(shown.get("data_directory").map(PathBuf::from)),
        Err(error) if error.sqlstate() == Some("42501") => Ok(None),
        Err(error) => Err(error),
    }
}

/// What listens on the loopback address may be in a container, or at the other end of a tunnel: its processes are not
/// among those of this machine.
fn is_here(session: &Session) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{}/comm", session.backend().pid));
    name.is_ok_and(|name| name.starts_with("postgres"))
}

/// WAL may be a link to another disk; that cannot be followed by those who may not enter the folder.
pub(crate) fn disks(data: &Path) -> Vec<Disk> {
    [("WAL", data.join("pg_wal")), ("data", data.to_owned())]
        .into_iter()
        .filter_map(|(what, path)| {
            let found = statvfs(&path).ok()?;
            let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
            Some(Disk { what, path, free_bytes: bytes(found.f_bavail), all_bytes: bytes(found.f_blocks) })
        })
        .collect()
}
