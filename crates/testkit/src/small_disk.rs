//! A file system of its own that can be full and have room again, for servers to fill.
//!
//! Leaves: a mounted tmpfs, or nothing where the caller may not mount. Being full is a matter of its size, so
//! that no ballast takes memory. Unmounted on drop, and when the test's process is killed.

use crate::guard::Guard;
use crate::place::{give, scratch};
use rustix::fs::statvfs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Room as long as it is not full: more than any test writes.
const ROOM: &str = "size=1g";

/// See `guard.rs`: drop does not run after kill -9.
const SCRIPT: &str = r#"trap '' INT TERM HUP; cat >/dev/null; umount -l "$1" 2>/dev/null; rm -rf "$2""#;

/// A small file system. Dropped: unmounted.
#[derive(Debug)]
pub struct SmallDisk {
    /// Dropped first: it unmounts.
    _guard: Guard,
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts one that has room; `None` where that is not allowed.
    pub fn mount() -> Option<SmallDisk> {
        let folder = scratch();
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).expect("a folder in the scratch folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", ROOM, "tmpfs"])
            .arg(&path)
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            return None;
        }
        give(&path);
        let guard = Guard::new(SCRIPT, [&path, folder.path()]);
        Some(SmallDisk { _guard: guard, folder })
    }

    /// The system lets this process mount something (the capability `CAP_SYS_ADMIN`), unless something else
    /// forbids it.
    pub fn is_allowed() -> bool {
        const SYS_ADMIN: u64 = 1 << 21;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        effective.is_some_and(|effective| effective & SYS_ADMIN != 0)
    }

    /// Where it is mounted; the servers' user owns it.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Leaves no more room than this, whatever is on it now.
    pub fn fill(&self, left_bytes: u64) {
        for slack in [0, 1 << 18, 1 << 20, 4 << 20, 16 << 20] {
            let used = used_bytes(&self.path());
            // Somebody may write at this very moment: then there is less room than the size would need.
            if self.remount(&format!("size={}", used + left_bytes + slack)) {
                return;
            }
        }
        panic!("{} cannot be made smaller", self.path().display());
    }

    /// There is room again.
    pub fn relieve(&self) {
        assert!(self.remount(ROOM), "{} cannot be made larger", self.path().display());
    }

    fn remount(&self, size: &str) -> bool {
        let options = format!("remount,{size}");
        let status =
            Command::new("mount").args(["-o", &options]).arg(self.path()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

fn used_bytes(path: &Path) -> u64 {
    let stat = statvfs(path).expect("a mounted file system");
    (stat.f_blocks - stat.f_bfree) * stat.f_frsize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_refuses_bytes_until_it_is_relieved() {
        let Some(disk) = SmallDisk::mount() else { return };
        let file = disk.path().join("file");
        std::fs::write(&file, [1; 100_000]).unwrap();
        disk.fill(0);
        assert!(std::fs::write(disk.path().join("other"), [1; 100_000]).is_err());
        disk.relieve();
        std::fs::write(disk.path().join("other"), [1; 100_000]).unwrap();
        let path = disk.path();
        drop(disk);
        assert!(!path.exists());
    }
}
