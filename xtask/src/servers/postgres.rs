//! PostgreSQL 13, 15 and 18 from Maven: the self-contained builds of `io.zonky.test.postgres`.
//!
//! One mechanism for the oldest, a middle and the newest major. The jars hold `initdb`, `pg_ctl` and
//! `postgres` with contrib, TLS and ICU, and need glibc 2.27 only.

use super::Thing;
use crate::{Result, process};
use std::path::Path;
use std::process::Command;

/// The majors the tests run against, pinned.
pub(super) fn wanted() -> [Thing; 3] {
    [
        Thing { folder: "pg13", version: "13.23.0", install },
        Thing { folder: "pg15", version: "15.19.0", install },
        Thing { folder: "pg18", version: "18.6.0", install },
    ]
}

fn install(thing: &Thing, folder: &Path) -> Result<()> {
    let platform = match std::env::consts::ARCH {
        "x86_64" => "linux-amd64",
        "aarch64" => "linux-arm64v8",
        other => return Err(format!("no PostgreSQL build known for {other}")),
    };
    let artifact = format!("embedded-postgres-binaries-{platform}");
    let version = thing.version;
    process::run_twice(
        Command::new("mvn")
            .args(["-q", "-B", "dependency:copy", "-Dmdep.overWriteReleases=true"])
            .arg(format!("-Dartifact=io.zonky.test.postgres:{artifact}:{version}"))
            .arg(format!("-DoutputDirectory={}", folder.display()))
            .current_dir(folder),
    )?;
    let jar = format!("{artifact}-{version}.jar");
    process::run(Command::new("unzip").args(["-q", &jar, "*.txz"]).current_dir(folder))?;
    process::run(
        Command::new("sh")
            .args(["-c", "tar --no-same-owner -xJf ./*.txz && rm -rf ./*.txz ./*.jar && chmod -R go+rX ."])
            .current_dir(folder),
    )
}
