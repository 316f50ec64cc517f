//! What runs when the interpreter ends: it is stopped and waited for.
//!
//! The interpreter waits for threads that are not daemons, but ends a daemon thread where it takes the
//! interpreter's lock the next time, by `pthread_exit` (up to Python 3.13), which the frames of Rust on its
//! stack turn into an abort of the process. So all that is under way is stopped by a function of `atexit`,
//! which Python calls before that, and nothing begins behind it.

use crate::mailbox::Mailbox;
use howdah_engine::Stop;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// How often is looked whether all have ended, and whether a signal came.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long a caller's function is waited for, which may never come back.
const FUNCTION_PATIENCE: Duration = Duration::from_secs(5);

/// Changed only by who holds the interpreter's lock, as who forks does: so a forked process finds no lock
/// taken that nobody gives back.
static CALLS: Mutex<Calls> = Mutex::new(Calls { under_way: Vec::new(), ending: None });

struct Calls {
    under_way: Vec<Arc<State>>,
    /// The process whose interpreter ends, one that it forked may live on, and the thread that ends it.
    ending: Option<(u32, ThreadId)>,
}

/// What is known of a call. A forked process has the states of calls, but none of their threads.
struct State {
    process: u32,
    thread: ThreadId,
    /// Stops what the call waits for, and lets its mailbox take what the end waits for then.
    work: Mutex<Option<(Arc<Mailbox>, Stop)>>,
    /// The caller's function runs at the moment.
    tells: AtomicBool,
}

/// A call from Python, from its first line to its last: the interpreter does not end in between.
pub(crate) struct Call<'py> {
    py: Python<'py>,
    state: Arc<State>,
}

impl<'py> Call<'py> {
    /// Begins. Does not come back where another thread ends the interpreter: there is nobody to whom it could
    /// say so.
    pub(crate) fn begin(py: Python<'py>) -> Call<'py> {
        let (process, thread) = (std::process::id(), std::thread::current().id());
        let ending = CALLS.lock().ending;
        if ending.is_some_and(|(of, by)| of == process && by != thread) {
            py.detach(|| {
                loop {
                    std::thread::park();
                }
            });
        }
        let state = State { process, thread, work: Mutex::new(None), tells: AtomicBool::new(false) };
        let state = Arc::new(state);
        CALLS.lock().under_way.push(Arc::clone(&state));
        Call { py, state }
    }

    /// The interpreter, whose lock is held.
    pub(crate) fn py(&self) -> Python<'py> {
        self.py
    }

    /// From now on the call waits for work that `stop` stops.
    pub(crate) fn waits_for(&self, mailbox: &Arc<Mailbox>, stop: &Stop) {
        *self.state.work.lock() = Some((Arc::clone(mailbox), stop.clone()));
    }

    /// Calls the caller's function.
    pub(crate) fn tell<T>(&self, function: impl FnOnce() -> T) -> T {
        self.state.tells.store(true, Relaxed);
        let told = function();
        self.state.tells.store(false, Relaxed);
        told
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        CALLS.lock().under_way.retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

/// Has Python call [`end`] when it ends.
///
/// # Errors
/// Those of Python.
pub(crate) fn attend(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(end, module)?;
    module.py().import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// Stops what is under way and waits for it.
///
/// # Errors
/// What a signal's handler raises, as Ctrl-C does: then it does not wait any longer.
#[pyfunction]
fn end(py: Python<'_>) -> PyResult<()> {
    let ending = (std::process::id(), std::thread::current().id());
    CALLS.lock().ending = Some(ending);
    let began = Instant::now();
    while waits(ending, began.elapsed() < FUNCTION_PATIENCE) {
        py.check_signals()?;
        py.detach(|| std::thread::sleep(LOOK_EVERY));
    }
    Ok(())
}

/// Stops the calls of the process's other threads. Whether any of them is to be waited for.
fn waits((process, thread): (u32, ThreadId), for_functions: bool) -> bool {
    let calls = CALLS.lock();
    let others = calls.under_way.iter().filter(|call| call.process == process && call.thread != thread);
    let mut waits = false;
    for call in others {
        if let Some((mailbox, stop)) = &*call.work.lock() {
            mailbox.want();
            stop.raise();
        }
        waits |= for_functions || !call.tells.load(Relaxed);
    }
    waits
}
