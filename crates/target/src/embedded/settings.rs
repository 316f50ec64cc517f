//! The embedded server's settings: `howdah.conf` in the data directory, written at every start.
//!
//! They make loads fast and stay safe: `fsync` and `full_page_writes` keep PostgreSQL's defaults (on). A
//! user's own settings go into `postgresql.conf` below the include line and win.

use std::fs;
use std::path::Path;

/// The port, which on a unix socket is only part of the socket's name.
pub(super) const PORT: u16 = 5432;
/// Included at the end of `postgresql.conf` when the cluster is made.
pub(super) const INCLUDE: &str = "\n# howdah's settings for the embedded server; settings below this line win.\n\
                                  include_if_exists = 'howdah.conf'\n";

const MIB: u64 = 1024 * 1024;
/// More does not help loads (COPY works in a ring of 16 MiB), and the machine is not the server's alone.
const SHARED_BUFFERS_BYTES_MAX: u64 = 1024 * MIB;
const SHARED_BUFFERS_BYTES_MIN: u64 = 64 * MIB;

/// The content of `howdah.conf`.
pub(super) fn content(socket: &Path) -> String {
    let socket = socket.to_string_lossy().replace('\'', "''");
    let shared_buffers_mib = shared_buffers_bytes(memory_bytes()) / MIB;
    format!(
        "# Written by howdah at every start: put your own settings at the end of postgresql.conf.

# A unix socket in a private folder, and no network.
listen_addresses = ''
port = {PORT}
unix_socket_directories = '{socket}'
unix_socket_permissions = 0700

# A quarter of the memory, at most 1 GiB.
shared_buffers = {shared_buffers_mib}MB

# Checkpoints by time rather than by every gigabyte of WAL; the price is a longer recovery after a crash.
max_wal_size = 4GB
checkpoint_timeout = 30min

# Indexes are built after the data.
maintenance_work_mem = 256MB

# DETAIL and CONTEXT lines would put values of rows into the log.
log_error_verbosity = terse
"
    )
}

fn shared_buffers_bytes(memory_bytes: Option<u64>) -> u64 {
    let quarter = memory_bytes.map_or(SHARED_BUFFERS_BYTES_MIN, |memory_bytes| memory_bytes / 4);
    quarter.clamp(SHARED_BUFFERS_BYTES_MIN, SHARED_BUFFERS_BYTES_MAX)
}

/// The machine's memory, where `/proc` tells it.
fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_is_never_given_up() {
        let text = content(Path::new("/x/run"));
        assert!(
            !text.contains("fsync") && !text.contains("full_page_writes") && !text.contains("synchronous")
        );
        assert!(text.contains("listen_addresses = ''"));
    }

    #[test]
    fn shared_buffers_stay_between_their_limits() {
        assert_eq!(shared_buffers_bytes(None), SHARED_BUFFERS_BYTES_MIN);
        assert_eq!(shared_buffers_bytes(Some(2048 * MIB)), 512 * MIB);
        assert_eq!(shared_buffers_bytes(Some(64 * 1024 * MIB)), SHARED_BUFFERS_BYTES_MAX);
    }
}
