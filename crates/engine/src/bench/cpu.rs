//! CPU time of this process, and of a server on the same machine, read from `/proc` where there is one.
//! Servers on other machines, in containers with process numbers of their own, and systems without `/proc`
//! are not visible.

use howdah_target::session::Backend;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// What this process has used so far, all threads together.
pub(super) fn client_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A server whose processes can be seen.
pub(super) struct ServerCpu {
    /// The parent of all its processes.
    postmaster: i32,
}

impl ServerCpu {
    /// The server that this process belongs to. `None` where it is not to be seen, or its number is
    /// another's.
    pub(super) fn of(backend: Backend) -> Option<ServerCpu> {
        let process = Process::read(backend.pid).filter(Process::is_server)?;
        let is_same = (process.started_us()? - backend.start_us as f64).abs() < START_TOLERANCE_US;
        let postmaster = Process::read(process.parent).filter(|parent| is_same && parent.is_server())?;
        Some(ServerCpu { postmaster: postmaster.pid })
    }

    /// What all its processes have used, those that have ended included. Not only our sessions: the WAL
    /// writer works for us as well, and a session that has ended is counted in its parent alone.
    pub(super) fn seconds(&self) -> Option<f64> {
        let processes = fs::read_dir("/proc").ok()?.filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Process::read(pid)
        });
        let children = processes.filter(|process| process.parent == self.postmaster);
        let living: f64 = children.map(|child| child.own_ticks).sum();
        let postmaster = Process::read(self.postmaster)?;
        Some((living + postmaster.own_ticks + postmaster.ended_ticks) / ticks_per_second())
    }
}

/// `/proc/stat` counts the start of the machine in whole seconds, and a session starts a little after its
/// process.
const START_TOLERANCE_US: f64 = 3e6;

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// What `/proc/PID/stat` says (proc_pid_stat(5)).
struct Process {
    pid: i32,
    name: String,
    parent: i32,
    own_ticks: f64,
    /// Of its children that have ended.
    ended_ticks: f64,
    /// Since the machine started.
    start_ticks: f64,
}

impl Process {
    fn read(pid: i32) -> Option<Process> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Process::parse(pid, &text)
    }

    /// The name stands in parentheses and may hold some; the fields behind it are numbered from 3 in the
    /// manual.
    fn parse(pid: i32, text: &str) -> Option<Process> {
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |no: usize| fields.get(no - 3)?.parse::<f64>().ok();
        Some(Process {
            pid,
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            own_ticks: number(14)? + number(15)?,
            ended_ticks: number(16)? + number(17)?,
            start_ticks: number(22)?,
        })
    }

    fn is_server(&self) -> bool {
        matches!(self.name.as_str(), "postgres" | "postmaster")
    }

    /// Since 1970.
    fn started_us(&self) -> Option<f64> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let boot = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<f64>().ok()?;
        Some((boot + self.start_ticks / ticks_per_second()) * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        let text = "7 (a) (b) S 3 7 7 0 -1 0 0 0 0 0 11 12 13 14 20 0 1 0 99 0 0";
        let process = Process::parse(7, text).unwrap();
        assert_eq!((process.name.as_str(), process.parent), ("a) (b", 3));
        assert_eq!((process.own_ticks, process.ended_ticks, process.start_ticks), (23.0, 27.0, 99.0));
    }

    #[test]
    fn work_of_this_process_counts() {
        let before = client_cpu_seconds();
        let sum = (0..5_000_000_u64).fold(0, |sum: u64, no| sum.rotate_left(3) ^ no);
        assert!(sum != 1 && client_cpu_seconds() > before);
    }
}
