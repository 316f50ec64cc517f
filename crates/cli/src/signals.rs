//! Signals: the first stops the command cleanly, and one that is repeated ends the process at once.
//!
//! They are taken on a thread of their own: whatever stands still, as threads do that write to a terminal
//! which takes nothing, a signal is answered.

use crate::Exit;
use howdah_engine::Stop;
use std::io;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Whoever stops a process may send several signals for it: a terminal that closes sends SIGHUP twice, from
/// the shell and from the system, and logind SIGTERM and SIGHUP. They come within milliseconds, and people
/// press a key again later than this.
const SAME_WISH: Duration = Duration::from_secs(1);

/// What asks a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// SIGINT or SIGTERM.
    End,
    /// SIGHUP: nobody watches any more.
    HungUp,
}

impl Wish {
    /// It is not to be waited for any longer, so long after the first signal.
    fn is_last(self, since_first: Duration) -> bool {
        self == Wish::End && since_first >= SAME_WISH
    }
}

/// Raises `stop` at the first signal from now on.
///
/// # Errors
/// Those of the system, which has no thread or no descriptor for that.
pub(crate) fn listen(stop: Stop) -> io::Result<()> {
    // Asked before a handler is in its place.
    let bears_hangup = ignores_hangup();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new(bears_hangup)?
    };
    let answer = move || {
        runtime.block_on(async {
            signals.next().await;
            stop.raise();
            let first = Instant::now();
            while !signals.next().await.is_last(first.elapsed()) {}
        });
        std::process::exit(i32::from(Exit::Interrupted.code()));
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(answer)?;
    Ok(())
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Not where it is ignored.
    hangup: Option<Signal>,
    /// A file that grew larger than this process may make one (`ulimit -f`): where it is taken, the write
    /// fails as on a full disk.
    _file_limit: Signal,
}

impl Signals {
    fn new(bears_hangup: bool) -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if bears_hangup { None } else { Some(signal(SignalKind::hangup())?) },
            _file_limit: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Wish {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Wish::End,
            _ = self.terminate.recv() => Wish::End,
            () = hung_up => Wish::HungUp,
        }
    }
}

/// Whoever started this process had it ignore SIGHUP, as `nohup` does; where there is no `/proc`, nobody
/// knows. Source: proc(5).
fn ignores_hangup() -> bool {
    const SIGHUP_BIT: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & SIGHUP_BIT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wish_that_is_repeated_later_is_the_last() {
        let (soon, later) = (Duration::from_millis(2), Duration::from_secs(2));
        assert!(Wish::End.is_last(later) && !Wish::End.is_last(soon));
        assert!(!Wish::HungUp.is_last(soon) && !Wish::HungUp.is_last(later));
    }
}
