//! Whether to try again: one table from an error's kind and SQLSTATE to a directive, and the waiting between
//! tries.

use crate::Context;
use howdah_model::{Error, ErrorKind, Event, Result, sqlstate};
use std::time::{Duration, Instant};

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directive {
    /// Open a new session or request and do the same again.
    Again,
    /// As `Again`, and the server has no room for as many sessions: use fewer from now on.
    AgainWithFewer,
    /// It will not get better.
    GiveUp,
}

/// The table.
pub(crate) fn directive(error: &Error) -> Directive {
    match error.kind() {
        ErrorKind::SourceTransient | ErrorKind::ConnectionLost | ErrorKind::CommitUnknown => Directive::Again,
        ErrorKind::Server | ErrorKind::ConnectionRefused => match error.sqlstate() {
            // The server, database or role is full.
            Some(sqlstate::TOO_MANY_CONNECTIONS) => Directive::AgainWithFewer,
            Some(
                sqlstate::SERIALIZATION_FAILURE
                | sqlstate::STATEMENT_COMPLETION_UNKNOWN
                | sqlstate::DEADLOCK_DETECTED,
            ) => Directive::Again,
            // By a lock_timeout that is set on the role.
            Some(sqlstate::LOCK_NOT_AVAILABLE) => Directive::Again,
            Some(
                sqlstate::ADMIN_SHUTDOWN
                | sqlstate::CRASH_SHUTDOWN
                | sqlstate::CANNOT_CONNECT_NOW
                | sqlstate::IDLE_SESSION_TIMEOUT
                | sqlstate::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            ) => Directive::Again,
            // The old primary after a failover; a new connection finds the new one.
            Some(sqlstate::READ_ONLY_SQL_TRANSACTION) => Directive::Again,
            // Somebody wants the load to stop.
            Some(sqlstate::QUERY_CANCELED) => Directive::GiveUp,
            // A pooler that takes no `options`.
            Some(sqlstate::PROTOCOL_VIOLATION) if error.kind() == ErrorKind::ConnectionRefused => {
                Directive::GiveUp
            }
            // connection_exception and its kin.
            Some(sqlstate) if sqlstate.starts_with("08") => Directive::Again,
            _ => Directive::GiveUp,
        },
        ErrorKind::Usage
        | ErrorKind::SourceNotFound
        | ErrorKind::SourceDenied
        | ErrorKind::SourceChanged
        | ErrorKind::SourceIo
        | ErrorKind::Decompress
        | ErrorKind::Unsupported
        | ErrorKind::Record
        | ErrorKind::TooManyErrors
        | ErrorKind::RecordTooLong
        | ErrorKind::Columns
        | ErrorKind::Table
        | ErrorKind::JobDone
        | ErrorKind::FilesLoaded
        | ErrorKind::Ledger
        | ErrorKind::Differs
        | ErrorKind::Local
        | ErrorKind::Interrupted
        | ErrorKind::Internal => Directive::GiveUp,
    }
}

/// No other form of the rows, and no smaller part of them, is to be tried. Somebody has cancelled the
/// statement: its time-out is off in sessions of howdah, and a conflict of a standby has another SQLSTATE. Or
/// the session is not the one that has prepared the statement.
pub(crate) fn is_about_no_form(error: &Error) -> bool {
    matches!(
        error.sqlstate(),
        Some(
            sqlstate::QUERY_CANCELED
                | sqlstate::INVALID_SQL_STATEMENT_NAME
                | sqlstate::DUPLICATE_PREPARED_STATEMENT
        )
    )
}

/// First wait; doubles up to the largest. A restarting server refuses for a second or so; half a minute
/// is what a managed failover takes at best.
const DELAY_FIRST: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(10);

/// Counts the tries of one piece of work since it last got on.
#[derive(Debug)]
pub(crate) struct Patience {
    retry_for: Duration,
    since: Option<Instant>,
    delay: Duration,
}

impl Patience {
    /// Gives up when nothing has worked for `retry_for`.
    pub(crate) fn new(retry_for: Duration) -> Patience {
        Patience { retry_for, since: None, delay: DELAY_FIRST }
    }

    /// It worked; start afresh at the next failure.
    pub(crate) fn reset(&mut self) {
        self.since = None;
        self.delay = DELAY_FIRST;
    }

    /// What is about to fail was waited for since then, and nothing else was done.
    pub(crate) fn waited_since(&mut self, began: Instant) {
        self.since.get_or_insert(began);
    }

    /// How long to wait before the next try, or `None` when time is up: the last one begins by then. The wait
    /// is drawn between half and all of the current delay, so that sessions that failed together do not come
    /// back together.
    pub(crate) fn next_delay(&mut self) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = self.retry_for.checked_sub(since.elapsed()).filter(|left| !left.is_zero())?;
        let delay = self.delay.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.delay = (self.delay * 2).min(DELAY_MAX);
        Some(delay.min(left))
    }
}

/// Waits before the next try, telling the listener, or returns the error when it is final or time is up.
///
/// # Errors
/// That error; `Interrupted` when stopped while waiting.
pub(crate) async fn wait(context: &Context, patience: &mut Patience, error: Error) -> Result<()> {
    if directive(&error) == Directive::GiveUp {
        return Err(error);
    }
    let Some(delay) = patience.next_delay() else { return Err(error) };
    context.listener.on_event(&Event::Retry { reason: error.to_string(), delay });
    context.stop.sleep(delay).await
}

/// Does `work`, again and again while it fails in ways that may pass.
///
/// # Errors
/// The last error; `Interrupted` when stopped.
pub(crate) async fn patiently<T, F: Future<Output = Result<T>>>(
    context: &Context,
    retry_for: Duration,
    mut work: impl FnMut() -> F,
) -> Result<T> {
    let mut patience = Patience::new(retry_for);
    loop {
        match context.stop.guard(work()).await {
            Ok(done) => return Ok(done),
            Err(error) => wait(context, &mut patience, error).await?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_failures_are_tried_again_and_lasting_ones_are_not() {
        let server = |sqlstate: &str| Error::new(ErrorKind::Server, "").with_sqlstate(sqlstate);
        for sqlstate in ["40001", "40P01", "57P01", "57P02", "57P03", "08006"] {
            assert_eq!(directive(&server(sqlstate)), Directive::Again, "{sqlstate}");
        }
        assert_eq!(directive(&server("53300")), Directive::AgainWithFewer);
        for sqlstate in ["22P02", "23505", "23514", "42501", "53100"] {
            assert_eq!(directive(&server(sqlstate)), Directive::GiveUp, "{sqlstate}");
        }
        let by_pooler = |kind| Error::new(kind, "").with_sqlstate(sqlstate::PROTOCOL_VIOLATION);
        assert_eq!(directive(&by_pooler(ErrorKind::ConnectionLost)), Directive::Again);
        assert_eq!(directive(&by_pooler(ErrorKind::ConnectionRefused)), Directive::GiveUp);
        let no_password = Error::new(ErrorKind::ConnectionRefused, "")
            .with_sqlstate(sqlstate::SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION);
        assert_eq!(directive(&no_password), Directive::Again, "a command that prints none for a while");
        assert_eq!(directive(&Error::new(ErrorKind::CommitUnknown, "")), Directive::Again);
        assert_eq!(directive(&Error::new(ErrorKind::SourceChanged, "")), Directive::GiveUp);
    }

    #[test]
    fn patience_grows_its_delay_and_ends() {
        let mut patience = Patience::new(Duration::from_secs(600));
        let delays: Vec<Duration> = (0..12).filter_map(|_| patience.next_delay()).collect();
        assert!(delays[0] <= DELAY_FIRST && delays[11] >= DELAY_MAX / 2 && delays[11] <= DELAY_MAX);
        assert_eq!(Patience::new(Duration::ZERO).next_delay(), None);
        let mut patience = Patience { delay: DELAY_MAX, ..Patience::new(Duration::from_secs(1)) };
        assert!(patience.next_delay().unwrap() <= Duration::from_secs(1), "no longer than there is time");
        let mut patience = Patience::new(Duration::from_millis(1));
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        patience.waited_since(began);
        assert_eq!(patience.next_delay(), None, "the time was spent waiting");
    }
}
