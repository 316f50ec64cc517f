//! Finds out whether a pooler stands before the server, and of which kind.
//!
//! A pool that hands out a server process for a whole session is as good as the server. One that does so for each transaction
//! (pgbouncer with `pool_mode = transaction`) is not: settings and locks of a session end up with somebody else. That
//! must be known before the first of them is sent. Nothing in the protocol tells; but two sessions that are both open never have the same
//! process otherwise. Nor is one as good that hands the process on as it was left, without DISCARD ALL in between.

use crate::error::session_error;
use futures_util::future::BoxFuture;
use howdah_model::{Error, ErrorKind, Result};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Error as ClientError, SimpleQueryMessage};

/// A process that is older than its connection by more than this was there before.
const OLDER_BY: Duration = Duration::from_millis(200);
/// A pool that is full makes the second session wait: then it is no pool of transactions.
const SECOND_WITHIN: Duration = Duration::from_secs(3);
/// Others may take the process in between, or the pool may hand them out by turns.
const TRIES: u32 = 6;

/// What was dialled, and when.
pub(super) struct Dialled {
    pub(super) port: u16,
    /// `None` for a unix socket.
    pub(super) address: Option<IpAddr>,
    pub(super) began: Instant,
}

/// The process behind a connection.
#[derive(PartialEq, Eq)]
struct Process {
    pid: String,
    start: String,
}

const LOOK_SQL: &str = "\
    SELECT pid, backend_start, \
           pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) backend_start), \
           pg_catalog.current_setting('port'), pg_catalog.host(pg_catalog.inet_server_addr()) \
    FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";

/// Another connection, which ends with this value.
pub(super) struct Beside {
    client: Client,
    driver: Driver,
}

struct Driver(JoinHandle<std::result::Result<(), ClientError>>);

impl Beside {
    pub(super) fn new(
        client: Client,
        connection: impl Future<Output = std::result::Result<(), ClientError>> + Send + 'static,
    ) -> Beside {
        Beside { client, driver: Driver(tokio::spawn(connection)) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Refuses a pool of transactions, and one of sessions that are handed on with their settings. `another` opens another connection in the
/// same way; it is asked only where what was
/// dialled is not what the server calls itself, or where the process is older than the connection.
///
/// # Errors
/// `ConnectionRefused` for such a pool; those of the first connection.
pub(super) async fn check<'a>(
    first: &Client,
    dialled: &Dialled,
    another: impl Fn() -> BoxFuture<'a, Option<Beside>>,
) -> Result<()> {
    let (process, direct) = look(first, dialled).await?;
    if direct {
        return Ok(());
    }
    let compared = timeout(SECOND_WITHIN, async {
        let Some(second) = another().await else { return Ok(None) };
        for _ in 0..TRIES {
            let (of_second, _) = look(&second.client, dialled).await?;
            let (of_first, _) = look(first, dialled).await?;
            if of_second == of_first || of_first != process {
                return Ok(Some(of_transactions(dialled.port)));
            }
        }
        let is_left = hands_on_settings(second, another).await;
        Ok::<_, Error>(is_left.then(|| without_reset(dialled.port)))
    });
    match compared.await {
        Ok(Ok(Some(refused))) => Err(refused),
        // That the second fails says nothing about the first.
        _ => Ok(()),
    }
}

/// Whether a setting of a connection that has ended is there in the next one. That is a name that nobody else knows.
async fn hands_on_settings<'a>(ended: Beside, another: impl Fn() -> BoxFuture<'a, Option<Beside>>) -> bool {
    if ended.client.batch_execute("SET howdah.handed_on TO 'yes'").await.is_err() {
        return false;
    }
    let Beside { client, mut driver } = ended;
    drop(client);
    // It has said goodbye then.
    let _ = (&mut driver.0).await;
    let Some(next) = another().await else { return false };
    let asked = next.client.simple_query("SELECT pg_catalog.current_setting('howdah.handed_on', true)").await;
    asked.is_ok_and(|answers| {
        answers
            .iter()
            .any(|answer| matches!(answer, SimpleQueryMessage::Row(row) if row.get(0) == Some("yes")))
    })
}

/// The process, and whether nothing stands before it.
async fn look(client: &Client, dialled: &Dialled) -> Result<(Process, bool)> {
    let answers = client.simple_query(LOOK_SQL).await;
    let answers = answers.map_err(|error| session_error(&error, "setting up the session"))?;
    let row = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let cell = |index: usize| row.and_then(|row| row.get(index)).unwrap_or_default();
    let age = cell(2).parse().ok().and_then(|age| Duration::try_from_secs_f64(age).ok()).unwrap_or_default();
    let is_new = age <= dialled.began.elapsed() + OLDER_BY;
    let same_port = cell(3).parse::<u16>().ok() == Some(dialled.port);
    let same_address = cell(4).parse::<IpAddr>().ok() == dialled.address;
    let process = Process { pid: cell(0).to_owned(), start: cell(1).to_owned() };
    Ok((process, is_new && same_port && same_address))
}

fn of_transactions(port: u16) -> Error {
    let message = format!(
        "a pooler listens on port {port} that gives each transaction another session: settings and locks would end up with \
         other users of the pool"
    );
    Error::new(ErrorKind::ConnectionRefused, message).with_hint(
        "connect to the server's own port, or to a pool in session mode (pgbouncer: pool_mode = session for this \
         database or user)",
    )
}

fn without_reset(port: u16) -> Error {
    let message = format!(
        "a pooler listens on port {port} that hands sessions on as they were left: settings and locks would end up with other users \
         of the pool"
    );
    Error::new(ErrorKind::ConnectionRefused, message).with_hint(
        "connect to the server's own port, or have the pooler reset sessions (pgbouncer: server_reset_query = DISCARD ALL)",
    )
}
