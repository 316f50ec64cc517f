//! Waits for a server's answer, but not for one that cannot come.
//!
//! A network that stands still ends no connection: the client would wait until TCP gives up, hours by
//! default. When an answer is late, another session looks at the server process: one that waits for the
//! client, or is not there, will not answer, and the connection is given up. One that works, or waits for a
//! lock or for storage, may take as long as it likes. (Sessions that copy are looked after by
//! [`crate::watch`].)

use crate::Connection;
use futures_util::{StreamExt, TryStreamExt, stream};
use howdah_model::{Error, ErrorKind, Event, Result};
use howdah_target::activity;
use howdah_target::session::{Backend, Session};
use std::time::Duration;
use tokio::time::timeout;

/// Questions that are under way at once, where there are many.
const AT_ONCE: usize = 32;
/// An answer that takes longer makes the connection suspicious.
const LATE_AFTER: Duration = Duration::from_secs(10);
/// The process must have waited for the client so long: an answer may be on its way.
const WAITED_FOR: Duration = Duration::from_secs(5);
/// Another session must open and answer within this time, or the network carries nothing for anybody.
const LOOK_WITHIN: Duration = Duration::from_secs(20);

/// What is asked of many, many at once, as for [`Connection::attend_each`].
///
/// # Errors
/// The first of those of the work.
pub(crate) async fn each<T, E>(
    work: impl IntoIterator<Item = impl Future<Output = std::result::Result<T, E>>>,
) -> std::result::Result<Vec<T>, E> {
    stream::iter(work).buffered(AT_ONCE).try_collect().await
}

/// A session that is asked. When nobody waits for the answer any more, its process is ended: the server
/// notices that a client has gone only when it sends an answer, and goes on with its statement, and with the
/// locks of that, until then.
pub(crate) struct Asking<'a> {
    connection: &'a Connection,
    backend: Backend,
    answered: bool,
}

impl Asking<'_> {
    pub(crate) fn new(connection: &Connection, backend: Backend) -> Asking<'_> {
        Asking { connection, backend, answered: false }
    }

    /// Nothing is asked any more.
    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.connection.lose(self.backend);
        }
    }
}

impl Connection {
    /// Does `work`, which is nothing but statements on `session`. Whoever gives it up before its end, by a
    /// stop say, gives up the session: the server is told to end what it is at with the next session that is
    /// opened, or by [`Connection::end_now`].
    ///
    /// # Errors
    /// Those of the work; `ConnectionLost` when its answer will not come.
    pub(crate) fn attend<T>(
        &self,
        session: &Session,
        work: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        let answer = self.answer(session.backend(), work);
        async move {
            let done = answer.await;
            let lost = done.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionLost);
            if lost || session.is_closed() {
                self.lose(session.backend());
            }
            done
        }
    }

    /// The same for something that is asked of many, whose answers come in their order. Many questions are
    /// under way at once: a server far away is waited for once, and not once for each. Each is one statement,
    /// or all of it is sent before its first answer.
    ///
    /// # Errors
    /// The first of those of the work; `ConnectionLost` when its answer will not come.
    pub(crate) async fn attend_each<T>(
        &self,
        session: &Session,
        work: impl IntoIterator<Item = impl Future<Output = Result<T>>>,
    ) -> Result<Vec<T>> {
        self.attend(session, each(work)).await
    }

    /// The same for work that has the session of this server process to itself; what becomes of the session
    /// is the caller's business.
    pub(crate) fn answer<T>(
        &self,
        backend: Backend,
        work: impl Future<Output = Result<T>>,
    ) -> impl Future<Output = Result<T>> {
        // On the heap, as in `Stop::guard`.
        let mut work = Box::pin(work);
        async move {
            let mut told = false;
            let mut asking = Asking::new(self, backend);
            let done = loop {
                if let Ok(done) = timeout(LATE_AFTER, &mut work).await {
                    break done;
                }
                tokio::select! {
                    done = &mut work => break done,
                    waits_for = self.waits_for(backend) => match waits_for {
                        Waits::ForUs => {
                            let message = "the server waits for the client, which waits for an answer: the connection is dead";
                            break Err(Error::new(ErrorKind::ConnectionLost, message));
                        }
                        Waits::For(wait) if !told => told = self.tell_of(backend, &wait),
                        Waits::For(_) | Waits::Unknown => {}
                    },
                }
            };
            asking.answered();
            done
        }
    }

    /// False where the wait is nothing to tell of.
    fn tell_of(&self, backend: Backend, wait: &str) -> bool {
        let Some((listener, message)) = self.listener().zip(held_up(backend, wait)) else { return false };
        listener.on_event(&Event::Notice { message });
        true
    }

    /// Looks at the process from a session of its own: an older one may be as dead as that which is looked
    /// at.
    async fn waits_for(&self, backend: Backend) -> Waits {
        let look = async { activity::sample(&self.open_new().await?, &[backend.pid]).await };
        match timeout(LOOK_WITHIN, look).await {
            Ok(Ok(seen)) => match seen.first() {
                Some(activity) if activity.waits_for_client() && activity.unchanged >= WAITED_FOR => {
                    Waits::ForUs
                }
                Some(activity) => Waits::For(activity.wait.clone()),
                None => Waits::ForUs,
            },
            // A server that refuses a session answers: the network is alive, and nothing else is known.
            Ok(Err(error)) if error.sqlstate().is_some() => Waits::Unknown,
            Ok(Err(_)) | Err(_) => Waits::ForUs,
        }
    }
}

/// What a server process waits for whose answer is late.
enum Waits {
    /// For what the client sends; or it is gone: no answer will come.
    ForUs,
    /// For something else; the wait event.
    For(String),
    Unknown,
}

/// What is said of a process that is held up by what howdah has no limit of time for. That a statement works,
/// or waits for storage, is nothing to tell of.
pub(crate) fn held_up(backend: Backend, wait: &str) -> Option<String> {
    let pid = backend.pid;
    if wait == "IPC:SyncRep" {
        return Some(format!(
            "process {pid} of this load has waited in COMMIT for a synchronous standby for some seconds, and goes on when that has \
             the WAL (synchronous_standby_names)"
        ));
    }
    let lock = wait.strip_prefix("Lock:").filter(|kind| !matches!(*kind, "extend" | "page"))?;
    Some(format!(
        "process {pid} of this load has waited for a lock ({lock}) for some seconds: SELECT pg_blocking_pids({pid}) tells who holds it"
    ))
}
