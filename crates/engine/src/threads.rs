//! What is said where the system gives no thread, or so little memory that it may not.

use howdah_model::{Error, ErrorKind, Result};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::thread::{Builder, JoinHandle, available_parallelism, park};

/// Of the address space glibc sets so much aside for each thread that allocates, used or not. With 256 MB of
/// memory and 2 CPUs, a limit of 400 MB ended loads in an abort, and one of 600 MB did not.
const ARENA_BYTES: u64 = 64 << 20;
/// Threads for each CPU: one that feeds, and one that waits for the server.
const THREADS_PER_CPU: u64 = 2;

/// Of a thread that does nothing.
const IDLE_STACK_BYTES: usize = 64 << 10;

/// What to do where the system has no memory, or no room for another thread.
pub const ROOM_HINT: &str = "raise the limit that is reached, of memory (ulimit -v) or of threads and processes (ulimit -u, pids.max of a \
     cgroup), or end other processes";

/// The error of a thread that is not made.
#[must_use]
pub fn no_thread(error: &io::Error) -> Error {
    Error::new(ErrorKind::Local, format!("cannot start a thread: {error}")).with_hint(ROOM_HINT)
}

/// Tries whether the system gives so many threads at once: tokio panics where it gets none, and then waits
/// without end for those that it has.
///
/// # Errors
/// Local, with what to do.
pub fn expect_threads(count: usize) -> Result<()> {
    let mut idle: Vec<JoinHandle<()>> = Vec::with_capacity(count);
    let made = (0..count).try_for_each(|_| {
        idle.push(Builder::new().stack_size(IDLE_STACK_BYTES).spawn(park)?);
        Ok(())
    });
    idle.iter().for_each(|idle| idle.thread().unpark());
    // One that parks has nothing to fail with.
    idle.into_iter().for_each(|idle| drop(idle.join()));
    made.map_err(|error: io::Error| no_thread(&error))
}

/// An allocation that fails ends the process at once, with nobody told what is stored: that there may be one
/// is said before.
pub(crate) fn warn_of_limit(memory_bytes: u64) -> Option<String> {
    let limit_bytes = getrlimit(Resource::As).current?;
    let cpus = available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    told_of_limit(limit_bytes, memory_bytes.saturating_add(cpus * THREADS_PER_CPU * ARENA_BYTES))
}

fn told_of_limit(limit_bytes: u64, wanted_bytes: u64) -> Option<String> {
    let (limit, wanted) = (limit_bytes >> 20, wanted_bytes >> 20);
    (limit_bytes < wanted_bytes).then(|| {
        format!(
            "this process may have {limit} MB of address space (ulimit -v), and the load may take {wanted} MB: it may be aborted; a \
             higher limit or a smaller --memory keeps it from that, and the same command goes on where it stopped"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_address_space_is_said_where_it_is_too_low() {
        assert_eq!(told_of_limit(600 << 20, 512 << 20), None);
        let told = told_of_limit(400 << 20, 512 << 20).unwrap();
        assert!(told.contains("may have 400 MB") && told.contains("may take 512 MB"), "{told}");
    }

    #[test]
    fn threads_that_can_be_had_are_given_back() {
        for _ in 0..3 {
            expect_threads(8).unwrap();
        }
    }

    #[test]
    fn says_which_limit_to_raise() {
        let error = no_thread(&io::ErrorKind::WouldBlock.into());
        assert_eq!(error.kind(), ErrorKind::Local);
        assert!(error.hint().is_some_and(|hint| hint.contains("ulimit -u")), "{error}");
    }
}
