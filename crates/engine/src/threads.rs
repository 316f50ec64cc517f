//! What is said where the system gives no thread.

use howdah_model::{Error, ErrorKind};
use std::io;

/// What to do where the system has no memory, or no room for another thread.
pub const ROOM_HINT: &str = "raise the limit that is reached, of memory (ulimit -v) or of threads and processes (ulimit -u, pids.max of a \
     cgroup), or end other processes";

/// The error of a thread that is not made.
#[must_use]
pub fn no_thread(error: &io::Error) -> Error {
    Error::new(ErrorKind::Local, format!("cannot start a thread: {error}")).with_hint(ROOM_HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_limit_to_raise() {
        let error = no_thread(&io::ErrorKind::WouldBlock.into());
        assert_eq!(error.kind(), ErrorKind::Local);
        assert!(error.hint().is_some_and(|hint| hint.contains("ulimit -u")), "{error}");
    }
}
