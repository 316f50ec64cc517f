//! The most memory that this process has held for a while, where the kernel tells it (Linux, `/proc`).

use std::fs;

/// The kernel counts anew since.
pub(super) struct PeakMemory(());

impl PeakMemory {
    /// Begins with what the process holds now, which an allocator may have kept from earlier work. `None`
    /// where the kernel does not count anew (`clear_refs`, proc_pid_clear_refs(5)).
    pub(super) fn from_now() -> Option<PeakMemory> {
        fs::write("/proc/self/clear_refs", "5").ok().map(|()| PeakMemory(()))
    }

    /// The most since.
    pub(super) fn bytes(&self) -> Option<u64> {
        peak_bytes(&fs::read_to_string("/proc/self/status").ok()?)
    }
}

/// `VmHWM`, of what stands in `/proc/PID/status`.
fn peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(peak_bytes("Name:\thowdah\nVmHWM:\t   23456 kB\nVmRSS:\t 1 kB\n"), Some(23_456 * 1024));
        assert_eq!(peak_bytes("Name:\thowdah\n"), None);
    }
}
