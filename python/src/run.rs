//! Runs a verb on threads of its own while the calling Python thread waits, without the interpreter's lock.
//!
//! The calling thread wakes up for events and a few times a second for signals. An exception raised there, by
//! Ctrl-C or by the caller's function, stops the load cleanly and is raised once the load has ended. What
//! that waits for, dropped indexes say, is told by warnings. A second exception does not wait any longer. The
//! end of the interpreter stops it likewise ([`crate::ending`]).

use crate::ending::Call;
use crate::errors::Failure;
use crate::events;
use crate::mailbox::Mailbox;
use howdah_engine::model::{Error, ErrorKind, environment};
use howdah_engine::{Stop, expect_threads, no_thread};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often signals are looked for: unnoticed by a person, free for the machine.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// As much as the command has: steps within steps go deep, most of all in a debug build, and 2 MiB, the
/// default of a thread, were too little for that once.
const STACK_BYTES: usize = 8 << 20;

/// Besides those that work: the engine's own, and one for what may block, as names of hosts do.
const OTHER_THREADS: usize = 2;

/// Runs `work` to its end and returns what it returned. `on_event` is called on this thread alone.
///
/// # Errors
/// The exception of the failure; else the one that stopped the work, with the failure as its cause.
pub(crate) fn run<T, W>(
    call: &Call<'_>,
    on_event: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Arc<Mailbox>, Stop) -> W + Send + 'static,
) -> PyResult<T>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Failure>>,
{
    finish(call.py(), run_to_end(call, on_event, work)?, |_| None)
}

/// The same, of work that may be done all the same when an exception was to stop it: that has then as its
/// cause what `done` makes of the value, which is not lost.
///
/// # Errors
/// As for [`run`].
pub(crate) fn run_told<T, W>(
    call: &Call<'_>,
    on_event: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Arc<Mailbox>, Stop) -> W + Send + 'static,
    done: impl FnOnce(T) -> Failure,
) -> PyResult<T>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Failure>>,
{
    finish(call.py(), run_to_end(call, on_event, work)?, |value| Some(done(value)))
}

/// The exception that was to stop the work, and what came of it.
type Ended<T> = (Option<PyErr>, Result<T, Failure>);

fn finish<T>(
    py: Python<'_>,
    (raised, ended): Ended<T>,
    done: impl FnOnce(T) -> Option<Failure>,
) -> PyResult<T> {
    let Some(raised) = raised else { return ended.map_err(|failure| failure.into_exception(py)) };
    if raised.cause(py).is_none()
        && let Some(failure) = ended.map_or_else(Some, done)
    {
        raised.set_cause(py, Some(failure.into_exception(py)));
    }
    Err(raised)
}

/// Why a load that was to stop has done all the same what it was to do.
pub(crate) fn too_late() -> Error {
    Error::new(
        ErrorKind::Interrupted,
        "stopped by the user behind the last row: what was still to come may not be done",
    )
}

fn run_to_end<T, W>(
    call: &Call<'_>,
    on_event: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Arc<Mailbox>, Stop) -> W + Send + 'static,
) -> PyResult<Ended<T>>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Failure>>,
{
    let py = call.py();
    expect_callable(on_event)?;
    // Another Python thread that sets one holds the interpreter's lock, as this one does now.
    environment::keep();
    let stop = Stop::default();
    let mailbox = Arc::new(Mailbox::new(on_event.is_some()));
    call.waits_for(&mailbox, &stop);
    let worker = start(&mailbox, &stop, work).map_err(|failure| failure.into_exception(py))?;
    let mut raised: Option<PyErr> = None;
    loop {
        let mail = py.detach(|| mailbox.take(SIGNALS_EVERY));
        let told = match on_event {
            Some(on_event) if raised.is_none() && !stop.raised() => {
                call.tell(|| events::tell(py, on_event, &mail.events))
            }
            _ => {
                events::warn(py, &mail.events);
                Ok(())
            }
        };
        if let Err(error) = told.and_then(|()| py.check_signals()) {
            if raised.is_some() {
                return Err(error);
            }
            mailbox.want();
            stop.raise();
            raised = Some(error);
        }
        if mail.closed {
            break;
        }
    }
    Ok((raised, py.detach(|| worker.join()).unwrap_or_else(|_| Err(fallen().into()))))
}

/// What cannot be called is told before anything begins.
///
/// # Errors
/// `TypeError`.
pub(crate) fn expect_callable(on_event: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match on_event {
        Some(on_event) if !on_event.is_callable() => {
            let kind = on_event.get_type().qualname()?;
            Err(PyTypeError::new_err(format!("on_event: expected a function, got {kind}")))
        }
        _ => Ok(()),
    }
}

/// The engine's own thread. Its mailbox closes however it ends.
fn start<T, W>(
    mailbox: &Arc<Mailbox>,
    stop: &Stop,
    work: impl FnOnce(Arc<Mailbox>, Stop) -> W + Send + 'static,
) -> Result<JoinHandle<Result<T, Failure>>, Failure>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Failure>>,
{
    let cannot_start = |error: std::io::Error| Failure::from(no_thread(&error));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    expect_threads(workers + OTHER_THREADS)?;
    // One runtime per call: nothing outlives it, and a forked process inherits none.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers).enable_all().build().map_err(cannot_start)?;
    let closing = Closing(Arc::clone(mailbox));
    let stop = stop.clone();
    let body = move || {
        let mailbox = Arc::clone(&closing.0);
        let ended = runtime.block_on(work(mailbox, stop));
        // A thread may still sit in a read of a pipe; it must not hold up the caller.
        runtime.shutdown_background();
        ended
    };
    let thread = std::thread::Builder::new().name("howdah".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(body).map_err(cannot_start)
}

/// Closes the mailbox when the engine's thread ends, also by a panic.
struct Closing(Arc<Mailbox>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn fallen() -> Error {
    Error::new(ErrorKind::Internal, "a thread of howdah has ended unexpectedly")
        .with_hint("nothing half-done is in the table; please report this with what stderr shows")
}
