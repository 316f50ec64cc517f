//! Finds out whether a pooler stands before the server, and of which kind.
//!
//! A pool that hands out a server process for a whole session is as good as the server. One that does so for
//! each transaction (pgbouncer with `pool_mode = transaction`) is not: settings and locks of a session end up
//! with somebody else. That must be known before the first of them is sent. Nothing in the protocol tells;
//! but two sessions that are both open never have the same process otherwise. Nor is one as good that hands
//! the process on as it was left, without DISCARD ALL in between.

use crate::error::session_error;
use futures_util::future::{BoxFuture, join};
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, duplex};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Error as ClientError, NoTls, SimpleQueryMessage, SimpleQueryRow};

/// A process that is older than its connection by more than this was there before.
const OLDER_BY: Duration = Duration::from_millis(200);
/// A pool that is full makes the second session wait: then it is no pool of transactions.
const SECOND_WITHIN: Duration = Duration::from_secs(3);
/// Who lets the first one in so soon is not slow about the second.
const QUICK_WITHIN: Duration = Duration::from_secs(1);
/// How pgbouncer says that `max_client_conn` is reached, with the SQLSTATE of a connection that broke.
pub(super) const NO_ROOM: &str = "no more connections allowed";
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
           pg_catalog.current_setting('port'), pg_catalog.host(pg_catalog.inet_server_addr()), \
           @marked@ \
    FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";

/// What DISCARD ALL takes away, and less than that may leave: a setting, a prepared statement and a lock, by
/// names and a key that nobody else has (`howdah.h` in ASCII).
const MARK_SQL: &str = "SET howdah.handed_on TO 'yes'; PREPARE howdah_handed_on AS SELECT; \
    SELECT pg_catalog.pg_advisory_lock_shared(x'686f776461682e68'::pg_catalog.int8); ";

const UNMARK_SQL: &str = "\
    SELECT pg_catalog.pg_advisory_unlock_shared(x'686f776461682e68'::pg_catalog.int8); RESET howdah.handed_on";

/// Some of that is there. Only asked of connections that may have it: to look at all locks takes the server a
/// while.
const MARKED_SQL: &str = "\
    coalesce(pg_catalog.current_setting('howdah.handed_on', true), '') = 'yes' \
    OR EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE name = 'howdah_handed_on') \
    OR EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid() AND objsubid = 1 \
               AND classid::pg_catalog.int8 = x'686f7764'::pg_catalog.int8 AND objid::pg_catalog.int8 = x'61682e68'::pg_catalog.int8)";

/// No other session of this role or this database comes from where this one does. Of other roles' sessions it
/// may not be seen where they come from: then they may.
const ALONE_SQL: &str = "\
    SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity \
                       WHERE pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid() \
                         AND (datname OPERATOR(pg_catalog.=) pg_catalog.current_database() \
                              OR usename OPERATOR(pg_catalog.=) session_user) \
                         AND (backend_type IS NULL OR backend_type OPERATOR(pg_catalog.=) 'client backend' \
                              AND client_addr IS NOT DISTINCT FROM pg_catalog.inet_client_addr()))";

/// What a connection tells of the process behind it.
struct Look {
    process: Process,
    /// Nothing stands before it.
    direct: bool,
    /// It has something of one that has ended.
    marked: bool,
}

/// What a pooler is that is no good.
enum Unfit {
    /// It gives each transaction another session.
    OfTransactions,
    /// It hands sessions on with their settings, statements or locks.
    WithoutReset,
}

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

/// What the look has found that is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A server, or a pool of sessions.
    Server,
    /// A pool of sessions whose only one this is.
    OneSession,
    /// It could not be seen, as no other connection was let in: to be asked again by the next one that is.
    Nothing,
}

/// Refuses a pool of transactions, and one of sessions that are handed on with something of theirs. `another`
/// opens another connection in the same way; it is asked only where what was dialled is not what the server
/// calls itself, or where the process is older than the connection.
///
/// # Errors
/// `ConnectionRefused` for such a pool; those of the connections, but for want of room: what broke off has
/// told nothing.
pub(super) async fn check<'a>(
    first: &Client,
    dialled: &Dialled,
    another: impl Fn() -> BoxFuture<'a, Result<Beside>>,
) -> Result<Found> {
    let Look { process, direct, .. } = look(first, Marks::None, dialled).await?;
    if direct {
        return Ok(Found::Server);
    }
    let opened_within = dialled.began.elapsed();
    match timeout(SECOND_WITHIN, compare(first, &process, dialled, another)).await {
        Ok(Ok(None)) => Ok(Found::Server),
        Ok(Ok(Some(Unfit::OfTransactions))) => Err(of_transactions(dialled.port)),
        Ok(Ok(Some(Unfit::WithoutReset))) => Err(without_reset(dialled.port)),
        Ok(Err(error)) if is_for_want_of_room(&error) => Ok(Found::Nothing),
        Ok(Err(error)) => Err(error),
        Err(_) => after_silence(first, &process, dialled, opened_within).await,
    }
}

/// Another connection was not given in time. If the server was away meanwhile, the first has lost its
/// process, or waits for one.
async fn after_silence(
    first: &Client,
    process: &Process,
    dialled: &Dialled,
    opened_within: Duration,
) -> Result<Found> {
    let ask = async {
        let still = look(first, Marks::None, dialled).await?.process == *process;
        let alone = one_cell(first, ALONE_SQL).await?.as_deref() == Some("t");
        Ok((still, alone))
    };
    let asked: Result<(bool, bool)> = timeout(SECOND_WITHIN, ask).await.unwrap_or_else(|_| {
        let message = format!("no answer on port {} within {} s", dialled.port, SECOND_WITHIN.as_secs());
        Err(Error::new(ErrorKind::ConnectionLost, message))
    });
    match asked? {
        (false, _) => Err(of_transactions(dialled.port)),
        // A server that takes long to let anybody in is no pool.
        (true, true) if opened_within < QUICK_WITHIN => Ok(Found::OneSession),
        (true, _) => Ok(Found::Server),
    }
}

/// Such a refusal says nothing about what stands before the server.
fn is_for_want_of_room(error: &Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
        || error.sqlstate() == Some(sqlstate::TOO_MANY_CONNECTIONS)
        || error.message().contains(NO_ROOM)
}

/// Asks the first connection, two others that are open beside it one after the other, and whether what the
/// one has is there in the other. Others may take a process in between, or the pool may hand them out by
/// turns: so the first is asked several times in a row while something else is waited for anyway. Each round
/// trip counts: what stands before a server far away is most often but a tunnel.
async fn compare<'a>(
    first: &Client,
    process: &Process,
    dialled: &Dialled,
    another: impl Fn() -> BoxFuture<'a, Result<Beside>>,
) -> Result<Option<Unfit>> {
    let still = async || Ok::<_, Error>(look(first, Marks::None, dialled).await?.process == *process);
    // To open a connection takes two round trips at least.
    let still_twice = async || Ok::<_, Error>(still().await? && still().await?);
    let (second, is_same) = join(another(), still_twice()).await;
    if !is_same? {
        return Ok(Some(Unfit::OfTransactions));
    }
    let second = second?;
    let Look { process: of_second, marked, .. } = look(&second.client, Marks::Sought, dialled).await?;
    if of_second == *process {
        return Ok(Some(Unfit::OfTransactions));
    }
    if marked {
        return Ok(Some(Unfit::WithoutReset));
    }
    let (marked, is_same) = join(look(&second.client, Marks::Left, dialled), still()).await;
    if !is_same? || marked?.process != of_second {
        return Ok(Some(Unfit::OfTransactions));
    }
    let (next, is_same) = join(after(second, another), still_twice()).await;
    if !is_same? {
        return Ok(Some(Unfit::OfTransactions));
    }
    let next = next?;
    let of_next = look(&next.client, Marks::Sought, dialled).await?;
    if of_next.marked {
        // Where not even one of them is left, that is no matter.
        let _ = next.client.simple_query(UNMARK_SQL).await;
        let _ = next.client.simple_query("DEALLOCATE howdah_handed_on").await;
    }
    Ok(match of_next {
        Look { process: of_next, .. } if of_next == *process => Some(Unfit::OfTransactions),
        Look { marked: true, .. } => Some(Unfit::WithoutReset),
        Look { .. } => None,
    })
}

/// Another connection when this one has ended.
async fn after<'a>(ended: Beside, another: impl Fn() -> BoxFuture<'a, Result<Beside>>) -> Result<Beside> {
    let Beside { client, mut driver } = ended;
    drop(client);
    // It has said goodbye then.
    let _ = (&mut driver.0).await;
    another().await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    Left,
    Sought,
}

async fn look(client: &Client, marks: Marks, dialled: &Dialled) -> Result<Look> {
    let before = if marks == Marks::Left { MARK_SQL } else { "" };
    let marked = if marks == Marks::Sought { MARKED_SQL } else { "false" };
    let answers = client.simple_query(&format!("{before}{}", LOOK_SQL.replace("@marked@", marked))).await;
    let answers = answers.map_err(|error| session_error(&error, "setting up the session"))?;
    let row = last_row(&answers);
    let cell = |index: usize| row.and_then(|row| row.get(index)).unwrap_or_default();
    let age = cell(2).parse().ok().and_then(|age| Duration::try_from_secs_f64(age).ok()).unwrap_or_default();
    let is_new = age <= dialled.began.elapsed() + OLDER_BY;
    let same_port = cell(3).parse::<u16>().ok() == Some(dialled.port);
    let same_address = cell(4).parse::<IpAddr>().ok() == dialled.address;
    let process = Process { pid: cell(0).to_owned(), start: cell(1).to_owned() };
    let is_alike = is_new && same_port && same_address;
    // A socket has no address of its own: a pooler's may have the server's port.
    let direct = is_alike && (dialled.address.is_some() || key_pid(client).await == process.pid.parse().ok());
    Ok(Look { process, direct, marked: cell(5) == "t" })
}

async fn one_cell(client: &Client, sql: &str) -> Result<Option<String>> {
    let answers = client.simple_query(sql).await;
    let answers = answers.map_err(|error| session_error(&error, "setting up the session"))?;
    Ok(last_row(&answers).and_then(|row| row.get(0)).map(str::to_owned))
}

fn last_row(answers: &[SimpleQueryMessage]) -> Option<&SimpleQueryRow> {
    answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}

/// The process that a request to cancel would name, of a connection by a unix socket: a server tells its own,
/// a pooler makes one up. The library shows it in the request alone, which stays in memory here.
async fn key_pid(client: &Client) -> Option<i32> {
    let (near, mut far) = duplex(64);
    client.cancel_token().cancel_query_raw(near, NoTls).await.ok()?;
    let _length_and_code = far.read_u64().await.ok()?;
    far.read_i32().await.ok()
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
        "a pooler listens on port {port} that hands sessions on as they were left: settings, statements and locks would end up with other users \
         of the pool"
    );
    Error::new(ErrorKind::ConnectionRefused, message).with_hint(
        "connect to the server's own port, or have the pooler reset sessions (pgbouncer: server_reset_query = DISCARD ALL)",
    )
}
