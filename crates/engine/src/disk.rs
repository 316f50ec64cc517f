//! The disks of a server on this machine: where its data, its WAL and its tablespaces are, and what room they
//! have.

use crate::Context;
use howdah_model::{Relation, Result};
use howdah_target::guards;
use howdah_target::session::{Session, data_directory};
use rustix::fs::statvfs;
use std::path::PathBuf;

/// What the disk of the server's WAL is called.
pub(crate) const WAL: &str = "WAL";

/// A folder that the server writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// `WAL`, `data` or `the tablespace NAME`.
    pub(crate) what: String,
    /// Where.
    pub(crate) path: PathBuf,
}

/// What the file system of a place has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// What ordinary processes can still write.
    pub(crate) free_bytes: u64,
    /// All of it.
    pub(crate) all_bytes: u64,
}

impl Place {
    /// # Errors
    /// That of the operating system: who may not enter the folder that a place is in is told nothing.
    pub(crate) fn room(&self) -> std::io::Result<Room> {
        let found = statvfs(&self.path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Room { free_bytes: bytes(found.f_bavail), all_bytes: bytes(found.f_blocks) })
    }
}

/// What a server on this machine writes to.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// WAL, data, and the tablespaces of the tables that were asked for.
    pub(crate) known: Vec<Place>,
    /// Those of data and WAL are not told to this role.
    pub(crate) data_hidden: bool,
    /// The server does not run on this machine, as far as can be told.
    pub(crate) elsewhere: bool,
}

/// Where the server writes rows of these tables and, with `makes_tables`, of tables without a tablespace of
/// their own. Nothing is known where it does not run on this machine.
///
/// # Errors
/// Those of the session.
pub(crate) async fn server_places(
    context: &Context,
    session: &Session,
    tables: &[&Relation],
    makes_tables: bool,
) -> Result<Places> {
    if context.connection.server_cpus().is_none() || !is_here(session) {
        return Ok(Places { elsewhere: true, ..Places::default() });
    }
    // Sent together.
    let tablespaces = guards::tablespaces(session, tables, makes_tables);
    let (shown, tablespaces) = tokio::try_join!(data_directory(session), tablespaces)?;
    let mut places = Places { known: Vec::new(), data_hidden: shown.is_none(), elsewhere: false };
    if let Some(data) = shown.map(PathBuf::from) {
        places.known.push(Place { what: WAL.to_owned(), path: data.join("pg_wal") });
        places.known.push(Place { what: "data".to_owned(), path: data });
    }
    for (name, location) in tablespaces {
        let path = PathBuf::from(location);
        // The built-in ones, and those within the folder of the data, are on its disk.
        if path.is_absolute() {
            places.known.push(Place { what: format!("the tablespace {name}"), path });
        }
    }
    Ok(places)
}

/// What listens on the loopback address may be in a container, or at the other end of a tunnel: its processes
/// are not among those of this machine.
fn is_here(session: &Session) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{}/comm", session.backend().pid));
    name.is_ok_and(|name| name.starts_with("postgres"))
}
