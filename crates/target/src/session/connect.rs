//! From a [`Conninfo`] to an open [`Session`]: hosts in order, every address of a host, the TLS attempts its
//! `sslmode` allows, then the start settings and the check of `target_session_attrs`. One round trip after
//! authentication. As in libpq, only a failure to reach a server, or a server of the wrong kind, leads to
//! the next host; a refusal ends the search. TLS is given up only where `allow` and `prefer` say so.

use super::conninfo::{Conninfo, SessionAttrs, SslMode as Wanted};
use super::hosts::{Address, Host};
use super::infos::{Infos, drive};
use super::pooler::{self, Beside, Dialled, Found};
use super::{Backend, Session, greeting, keyword, peer, settings, tls};
use crate::error::{io_source, server_error, session_error};
use crate::sql::quote_ident;
use futures_util::FutureExt;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::error::Error as _;
use std::future::pending;
use std::io::ErrorKind as Io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Connection, NoTls, SimpleQueryMessage, SimpleQueryRow};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The oldest server howdah is tested with.
const SERVER_VERSION_MIN: u32 = 130_000;

/// invalid_password: what a server says of a wrong one, and this of one that it wants and nobody has given.
pub const PASSWORD_MISSING: &str = sqlstate::INVALID_PASSWORD;

/// What the library says of a server without TLS, and of a password that the server wants and nobody has
/// given.
const NO_TLS: &str = "server does not support TLS";
const NO_PASSWORD: &str = "password missing";

/// A server answers a start at once, unless it is busy or asks somebody else about a password.
const SLOW_AFTER: Duration = Duration::from_secs(2);

/// Why one address did not give a session, and whether the next may be tried.
struct Failure {
    error: Error,
    try_next: bool,
}

/// What begins TLS, or why nothing can; `None` where it is not wanted.
type Tls<'a> = Option<std::result::Result<&'a MakeRustlsConnect, &'a Error>>;

/// Opens a session with the first host that will do. A password that a command has printed a while ago, and
/// that the server does not take any more, is asked for anew.
pub(super) async fn connect(info: &Conninfo) -> Result<Session> {
    let Some(command) = &info.password_command else { return connect_first(info).await };
    let with = |password: &str| {
        let mut info = info.clone();
        info.set_password(password);
        info
    };
    let (password, is_new) = command.password(None).await?;
    match Box::pin(connect_first(&with(&password))).await {
        Err(error) if !is_new && error.sqlstate().is_some_and(|sqlstate| sqlstate.starts_with("28")) => {
            let (password, _) = command.password(Some(&password)).await?;
            Box::pin(connect_first(&with(&password))).await
        }
        done => done,
    }
}

async fn connect_first(info: &Conninfo) -> Result<Session> {
    // Sockets and sslmode=disable must not fail for want of certificate files that they do not use.
    let may_use_tls = info.tls.mode != Wanted::Disable && info.hosts.iter().any(|host| !host.is_unix());
    if may_use_tls {
        tls::expect_versions(&info.tls)?;
    }
    let connector = may_use_tls.then(|| tls::connector(&info.tls));
    // As libpq, which reads them when the server has said yes to TLS.
    let connector = match connector {
        Some(Err(unusable)) if !matches!(info.tls.mode, Wanted::Allow | Wanted::Prefer) => {
            return Err(unusable);
        }
        connector => connector,
    };
    let tls = connector.as_ref().map(|connector| connector.as_ref());
    let passes: &[SessionAttrs] = match info.session_attrs {
        SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
        SessionAttrs::PreferReadWrite => &[SessionAttrs::ReadWrite, SessionAttrs::Any],
        _ => std::slice::from_ref(&info.session_attrs),
    };
    let mut last = None;
    for attrs in passes {
        let mut hosts: Vec<&Host> = info.hosts.iter().collect();
        if info.shuffle {
            fastrand::shuffle(&mut hosts);
        }
        for host in hosts {
            match connect_host(info, host, *attrs, tls).await {
                Ok(session) => return Ok(session),
                Err(failure) if failure.try_next => last = Some(failure.error),
                Err(failure) => return Err(failure.error),
            }
        }
    }
    Err(last.unwrap_or_else(|| Error::new(ErrorKind::Usage, "no host to connect to")))
}

async fn connect_host(
    info: &Conninfo,
    host: &Host,
    attrs: SessionAttrs,
    tls: Tls<'_>,
) -> Result<Session, Failure> {
    let mut last = None;
    for address in addresses(info, host).await? {
        let attempt = connect_address(info, host, address, attrs, tls);
        let result = match info.timing.connect {
            None => attempt.await,
            Some(limit) => timeout(limit, attempt).await.unwrap_or_else(|_| {
                let message = format!("no answer from {host} within connect_timeout ({} s)", limit.as_secs());
                Err(Failure { error: Error::new(ErrorKind::ConnectionLost, message), try_next: true })
            }),
        };
        match result {
            Err(failure) if failure.try_next => last = Some(failure),
            done => return done,
        }
    }
    Err(last.unwrap_or_else(|| {
        let message = format!("the host name of {host} has no address");
        Failure { error: Error::new(ErrorKind::ConnectionLost, message), try_next: true }
    }))
}

impl Conninfo {
    /// What stands before the server is looked at again by the next session that is opened.
    pub fn look_again(&self) {
        self.is_server.store(false, Relaxed);
    }

    /// Sessions that are opened from now on look for the ledger in this schema (unquoted name), at no further
    /// round trip.
    pub fn look_for_ledger(&self, schema: &str) {
        self.ledger_seen.look_for(schema);
    }

    /// A pooler stands before the server that has one session for this role, as the last look at it has
    /// found.
    pub fn is_pool_of_one(&self) -> bool {
        self.is_alone.load(Relaxed)
    }

    /// Some host has an address, whether anybody answers there or not.
    pub async fn has_address(&self) -> bool {
        for host in &self.hosts {
            if addresses(self, host).await.is_ok_and(|found| !found.is_empty()) {
                return true;
            }
        }
        false
    }
}

/// The numeric addresses of a host; `None` stands for a unix socket.
async fn addresses(info: &Conninfo, host: &Host) -> Result<Vec<Option<IpAddr>>, Failure> {
    let name = match &host.address {
        Address::Unix(_) => return Ok(vec![None]),
        Address::Ip { ip, .. } => return Ok(vec![Some(*ip)]),
        Address::Name(name) => name,
    };
    let found = tokio::net::lookup_host((name.as_str(), host.port)).await.map_err(|error| {
        let message = format!("could not translate host name \"{name}\" to address: {error}");
        let error =
            Error::new(ErrorKind::ConnectionLost, message).with_hint("check the host in --to or PGHOST");
        Failure { error, try_next: true }
    })?;
    let mut found: Vec<Option<IpAddr>> = found.map(|address| Some(address.ip())).collect();
    if info.shuffle {
        fastrand::shuffle(&mut found);
    }
    Ok(found)
}

async fn connect_address(
    info: &Conninfo,
    host: &Host,
    address: Option<IpAddr>,
    attrs: SessionAttrs,
    tls: Tls<'_>,
) -> Result<Session, Failure> {
    let connector = tls.and_then(Result::ok);
    let unusable = tls.and_then(Result::err).filter(|_| address.is_some());
    let (first, second) = match (address, info.tls.mode) {
        (None, _) | (_, Wanted::Disable) => (SslMode::Disable, None),
        _ if unusable.is_some() => (SslMode::Disable, None),
        (_, Wanted::Allow) => (SslMode::Disable, Some(SslMode::Require)),
        (_, Wanted::Prefer) => (SslMode::Prefer, Some(SslMode::Disable)),
        _ => (SslMode::Require, None),
    };
    let began = Instant::now();
    let way = |ssl_mode| Way { info, host, address, ssl_mode, connector, began };
    let stream = unix_stream(info, host).await?;
    let opened = match open_watched(&way(first), stream).await {
        None => return Err(of_another_protocol(host)),
        Some(opened) => opened,
    };
    let error = match opened {
        Ok(session) => return start(session, &way(first), attrs).await,
        Err(error) => error,
    };
    // A second attempt can only help against what the other encryption changes: a refusal or bad TLS.
    if is_garbled(&error) && greeting::is_of_another_protocol(address, host.port).await {
        return Err(of_another_protocol(host));
    }
    let refused = error.as_db_error().is_some() || !is_io_failure(&error);
    match second.filter(|_| refused) {
        None => Err(without_tls(failure(&error, info, host), unusable.filter(|_| refused))),
        Some(second) => match open(&way(second), None).await {
            Ok(session) => start(session, &way(second), attrs).await,
            // What the attempt with TLS said is the better explanation.
            Err(other) if first == SslMode::Disable => Err(failure(&other, info, host)),
            Err(_) => Err(failure(&error, info, host)),
        },
    }
}

/// Refused without TLS, for which what would be wanted is of no use.
fn without_tls(Failure { error, try_next }: Failure, unusable: Option<&Error>) -> Failure {
    let Some(unusable) = unusable else { return Failure { error, try_next } };
    let before = error.hint().map(|hint| format!("{hint}; ")).unwrap_or_default();
    let hint = format!("{before}TLS, which the server may want, was not tried: {}", unusable.message());
    Failure { error: error.with_hint(hint), try_next }
}

/// A client, what runs its connection and hears its messages, and the server's major version.
type Opened = (tokio_postgres::Client, Driver, Arc<Infos>, u32);
type Driver = std::pin::Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

/// The first bytes of another protocol (`SSH-`) may be taken for the length of a message, whose rest never
/// comes. Who is slow to answer is looked at beside; `None` is for who is no server. One that is known as a
/// server is not asked.
async fn open_watched(
    way: &Way<'_>,
    stream: Option<UnixStream>,
) -> Option<Result<Opened, tokio_postgres::Error>> {
    let looks = way.ssl_mode == SslMode::Disable && !way.info.is_server.load(Relaxed);
    let looking = async {
        sleep(SLOW_AFTER).await;
        if !looks || !greeting::is_of_another_protocol(way.address, way.host.port).await {
            pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        opened = open(way, stream) => Some(opened),
        () = looking => None,
    }
}

/// How a connection is made.
#[derive(Clone, Copy)]
struct Way<'a> {
    info: &'a Conninfo,
    host: &'a Host,
    address: Option<IpAddr>,
    ssl_mode: SslMode,
    connector: Option<&'a MakeRustlsConnect>,
    began: Instant,
}

/// `stream` is that of a unix socket, which [`unix_stream`] has dialled.
async fn open(way: &Way<'_>, stream: Option<UnixStream>) -> Result<Opened, tokio_postgres::Error> {
    let Way { info, host, address, ssl_mode, connector, .. } = *way;
    let mut config = Config::new();
    config.user(&info.user).dbname(&info.database).application_name(&info.application_name);
    config.ssl_mode(ssl_mode).channel_binding(info.channel_binding).port(host.port);
    if info.tls.direct && ssl_mode == SslMode::Require {
        config.ssl_negotiation(SslNegotiation::Direct);
    }
    if let Some(options) = &info.options {
        config.options(options);
    }
    if let Some(password) = info.password(host) {
        config.password(password);
    }
    config.keepalives(info.timing.keepalives).keepalives_idle(info.timing.keepalives_idle);
    config
        .keepalives_interval(info.timing.keepalives_interval)
        .keepalives_retries(info.timing.keepalives_count);
    if let Some(limit) = info.timing.tcp_user {
        config.tcp_user_timeout(limit);
    }
    match (&host.address, address) {
        (Address::Unix(directory), _) => {
            config.host_path(directory);
        }
        (Address::Name(name) | Address::Ip { name: Some(name), .. }, Some(ip)) => {
            config.host(name).hostaddr(ip);
        }
        (_, Some(ip)) => {
            config.host(ip.to_string()).hostaddr(ip);
        }
        (_, None) => {}
    }
    match (connector.filter(|_| ssl_mode != SslMode::Disable), stream) {
        (Some(connector), _) => Ok(opened(config.connect(connector.clone()).await?)),
        (None, Some(stream)) => Ok(opened(config.connect_raw(stream, NoTls).await?)),
        (None, None) => Ok(opened(config.connect(NoTls).await?)),
    }
}

fn opened<S, T>((client, connection): (tokio_postgres::Client, Connection<S, T>)) -> Opened
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let infos = Arc::new(Infos::default());
    let major = connection.parameter("server_version").map_or(0, leading_number);
    (client, Box::pin(drive(connection, Arc::clone(&infos))), infos, major)
}

/// A unix socket wakes its writer only when a fourth of what it holds is left. Of the usual 208 KiB the
/// server has read that before we are awake on a busy machine: its sessions waited for data for a tenth of
/// the load of title.principals, which took 1.22 s, 1.19 s with 416 KiB (all that Linux grants to anybody)
/// and 1.18 s with more (medians of 11 runs, two sessions, 2 CPUs). TCP finds its size by itself.
const UNIX_SEND_BYTES: usize = 1 << 20;

/// `None` for a host that is reached by TCP.
async fn unix_stream(info: &Conninfo, host: &Host) -> Result<Option<UnixStream>, Failure> {
    let Address::Unix(directory) = &host.address else { return Ok(None) };
    let path = directory.join(format!(".s.PGSQL.{}", host.port));
    let stream = UnixStream::connect(path).await.map_err(|error| unreachable(host, &error.to_string()))?;
    let checked = match &info.required_peer {
        Some(user) => peer::require(&stream, host, user).await,
        None if host.is_guessed => peer::check(&stream, host).await,
        None => Ok(()),
    };
    checked.map_err(|error| Failure { error, try_next: false })?;
    // The system grants what it allows.
    let _ = set_socket_send_buffer_size(&stream, UNIX_SEND_BYTES);
    Ok(Some(stream))
}

fn leading_number(text: &str) -> u32 {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// Applies the start settings and learns what the session is.
async fn start(opened: Opened, way: &Way<'_>, attrs: SessionAttrs) -> Result<Session, Failure> {
    let (client, driver, infos, major) = opened;
    let mut session = Session::new(client, driver, infos);
    let host = way.host;
    refuse_pool_of_transactions(&session, way).await?;
    let sql = settings::given_sql(&way.info.server_settings)
        + &settings::start_sql(major)
        + "SELECT pg_catalog.current_setting('server_version_num'), pid, \
           (pg_catalog.date_part('epoch', backend_start) OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8, \
           pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only'), \
           pg_catalog.current_setting('search_path'), \
           current_user OPERATOR(pg_catalog.<>) session_user, \
           pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'), "
        + &way.info.ledger_seen.column_sql()
        + ", "
        + &settings::of_values_sql()
        + " FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";
    let failed = |error: tokio_postgres::Error| Failure {
        error: not_set(&error, way.info).unwrap_or_else(|| session_error(&error, "setting up the session")),
        try_next: error.as_db_error().is_none(),
    };
    let answers = session.client().simple_query(&sql).await.map_err(failed)?;
    // The last: a setting answers as well.
    let row = answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let Some(row) = row else {
        let error = Error::new(ErrorKind::Internal, format!("{host} does not say what it is"));
        return Err(Failure { error, try_next: false });
    };
    if let Some(sql) = row.get(5).and_then(settings::path_sql) {
        session.client().batch_execute(&sql).await.map_err(failed)?;
    }
    session.own_values = settings::of_values(row, 9);
    session.values.clone_from(&session.own_values);
    session.server_version = number(row, 0);
    session.backend = Backend { pid: number(row, 1), start_us: number(row, 2) };
    check_version(session.server_version, host)?;
    session.acts_as_other = row.get(6) == Some("t");
    session.sees_all = row.get(7) == Some("t");
    way.info.ledger_seen.saw(row.get(8));
    session.ledger_seen = Arc::clone(&way.info.ledger_seen);
    if session.acts_as_other {
        session.backend =
            session.set_up_as_login().await.map_err(|error| Failure { error, try_next: false })?;
    }
    let (standby, read_only) = (row.get(3) == Some("t"), row.get(4) == Some("on"));
    check_attrs(attrs, standby, read_only, host)?;
    session.of_standby = standby;
    session.read_only = match (standby, read_only) {
        (true, _) => Some(format!("{host} is a hot standby and takes no rows")),
        (_, true) => Some(format!(
            "sessions of {host} are read-only (default_transaction_read_only is on for the server, database or role)"
        )),
        _ => None,
    };
    Ok(session)
}

/// Once is enough for all sessions of one description, until one of them is lost: another server may be there
/// then.
async fn refuse_pool_of_transactions(session: &Session, way: &Way<'_>) -> Result<(), Failure> {
    if way.info.is_server.load(Relaxed) {
        return Ok(());
    }
    let dialled = Dialled { port: way.host.port, address: way.address, began: way.began };
    let another = || {
        let beside = async {
            let stream = unix_stream(way.info, way.host).await.map_err(|failure| failure.error)?;
            let opened = open(way, stream).await;
            let (client, connection, ..) =
                opened.map_err(|error| failure(&error, way.info, way.host).error)?;
            Ok(Beside::new(client, connection))
        };
        beside.boxed()
    };
    let checked = pooler::check(session.client(), &dialled, another).await;
    let may_pass = |error: &Error| error.kind() == ErrorKind::ConnectionLost;
    let found = checked.map_err(|error| Failure { try_next: may_pass(&error), error })?;
    way.info.is_server.store(found != Found::Nothing, Relaxed);
    way.info.is_alone.store(found == Found::OneSession, Relaxed);
    Ok(())
}

fn number<T: std::str::FromStr + Default>(row: &SimpleQueryRow, index: usize) -> T {
    row.get(index).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn check_version(version: u32, host: &Host) -> Result<(), Failure> {
    if version >= SERVER_VERSION_MIN {
        return Ok(());
    }
    let (major, oldest) = (version / 10_000, SERVER_VERSION_MIN / 10_000);
    let message = format!("{host} is PostgreSQL {major}; expected {oldest} or newer");
    Err(Failure { error: Error::new(ErrorKind::ConnectionRefused, message), try_next: false })
}

fn check_attrs(attrs: SessionAttrs, standby: bool, read_only: bool, host: &Host) -> Result<(), Failure> {
    let (fits, what) = match attrs {
        SessionAttrs::Any | SessionAttrs::PreferStandby | SessionAttrs::PreferReadWrite => (true, ""),
        SessionAttrs::ReadWrite => (!standby && !read_only, "session is read-only"),
        SessionAttrs::ReadOnly => (standby || read_only, "session is not read-only"),
        SessionAttrs::Primary => (!standby, "server is in hot standby mode"),
        SessionAttrs::Standby => (standby, "server is not in hot standby mode"),
    };
    if fits {
        return Ok(());
    }
    let error = Error::new(ErrorKind::ConnectionLost, format!("{host}: {what}"))
        .with_hint("target_session_attrs asks for another kind of server; a failover may be going on");
    Err(Failure { error, try_next: true })
}

/// The socket, not the server or TLS, is what failed.
fn is_io_failure(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || io_source(error).is_some_and(|io| tls_cause(io).is_none())
}

fn tls_cause(error: &std::io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref::<rustls::Error>()
}

/// So the library calls a server's own certificate that may sign others.
fn is_of_authority(reason: &rustls::CertificateError) -> bool {
    let rustls::CertificateError::Other(rustls::OtherError(error)) = reason else { return false };
    matches!(error.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

fn unreachable(host: &Host, cause: &str) -> Failure {
    let error = Error::new(ErrorKind::ConnectionLost, format!("connection to {host} failed: {cause}"))
        .with_hint("check that the server runs there and accepts connections");
    Failure { error, try_next: true }
}

/// What came was no message of the protocol, or of TLS, or ended within one; who does not read what it was
/// sent resets the connection.
fn is_garbled(error: &tokio_postgres::Error) -> bool {
    let Some(io) = io_source(error) else { return false };
    matches!(tls_cause(io), Some(rustls::Error::InvalidMessage(_)))
        || matches!(
            io.kind(),
            Io::Other | Io::InvalidInput | Io::InvalidData | Io::UnexpectedEof | Io::ConnectionReset
        ) && tls_cause(io).is_none()
}

fn of_another_protocol(host: &Host) -> Failure {
    let message = format!("connection to {host} failed: what answers there is no PostgreSQL server");
    let error = Error::new(ErrorKind::ConnectionRefused, message)
        .with_hint("check host and port in --to, or PGHOST and PGPORT");
    Failure { error, try_next: false }
}

/// The server refuses what a variable of the environment gives. Its message names the parameter, and the
/// value, which is left out.
fn not_set(error: &tokio_postgres::Error, info: &Conninfo) -> Option<Error> {
    let db = error.as_db_error().filter(|db| *db.code() == SqlState::INVALID_PARAMETER_VALUE)?;
    let told = db.message().to_ascii_lowercase();
    let is_named = |(name, _): &&(&str, String)| told.contains(&format!("\"{}\"", name.to_ascii_lowercase()));
    let (name, _) = info.server_settings.iter().find(is_named)?;
    let (variable, _) = keyword::SERVER_SETTINGS.iter().find(|(_, setting)| setting == name)?;
    let message = format!("the server does not take the value of {variable} for its parameter \"{name}\"");
    let hint = format!("give {variable} a value that the server knows, or unset it");
    Some(server_error(db, &message).with_hint(hint))
}

/// What the server says of parameters that it does not know, or of their values.
const OF_OPTIONS: [SqlState; 3] =
    [SqlState::INVALID_PARAMETER_VALUE, SqlState::UNDEFINED_OBJECT, SqlState::CANT_CHANGE_RUNTIME_PARAM];

/// pgbouncer gives one SQLSTATE to what passes and to what does not, and has no other language.
fn of_pooler(error: Error, told: &str) -> Error {
    if told.starts_with("unsupported startup parameter") {
        return error.with_kind(ErrorKind::ConnectionRefused).with_hint(
            "a pooler does not take `options` of the connection string or PGOPTIONS: leave them out, or connect to the server's own \
             port; with ignore_startup_parameters = options pgbouncer lets sessions in, for which they do not hold",
        );
    }
    if told.starts_with(pooler::NO_ROOM) {
        return error
            .with_hint("a load needs room for --jobs + 2 sessions in a pooler (pgbouncer: max_client_conn)");
    }
    error
}

/// Where the server finds that it does not convert to `client_encoding`.
const ENCODING_ROUTINE: &str = "InitializeClientEncoding";

fn failure(error: &tokio_postgres::Error, info: &Conninfo, host: &Host) -> Failure {
    if let Some(db) = error.as_db_error() {
        let message = format!("connection to {host} failed: {}", db.message());
        let mut error = server_error(db, &message);
        if db.routine() == Some(ENCODING_ROUTINE) {
            error = error.with_hint(
                "sessions of howdah speak UTF-8, into which the server converts no text of this database: load into one of another encoding \
                 (CREATE DATABASE ... TEMPLATE template0 ENCODING 'UTF8')",
            );
        }
        if *db.code() == SqlState::INSUFFICIENT_PRIVILEGE {
            error = error.with_hint(format!(
                "the owner of the database can run GRANT CONNECT ON DATABASE {} TO {}",
                quote_ident(&info.database),
                quote_ident(&info.user)
            ));
        }
        if info.options.is_some() && OF_OPTIONS.contains(db.code()) {
            error = error.with_hint(
                "the connection's options set it, which are `options` in --to, PGOPTIONS, or that of a service",
            );
        }
        if *db.code() == SqlState::PROTOCOL_VIOLATION {
            error = of_pooler(error, db.message());
        }
        // "Cannot connect now" (57P03) is start-up, shutdown or recovery: another host may be ready.
        return Failure { error, try_next: db.code().code() == sqlstate::CANNOT_CONNECT_NOW };
    }
    if is_io_failure(error) {
        let cause = io_source(error).map_or_else(|| "closed by the server".to_owned(), ToString::to_string);
        return unreachable(host, &cause);
    }
    let cause = match io_source(error).and_then(tls_cause) {
        // Ours, before which the library writes that it is unexpected.
        Some(rustls::Error::General(why)) => why.clone(),
        Some(rustls::Error::InvalidCertificate(reason)) if is_of_authority(reason) => {
            "the server's certificate is one of an authority (CA:TRUE), and is not itself among the trusted ones".to_owned()
        }
        _ => error.source().map_or_else(|| error.to_string(), ToString::to_string),
    };
    let message = format!("connection to {host} failed: {cause}");
    let refused = Error::new(ErrorKind::ConnectionRefused, message);
    // The library has no other word for either.
    let error = match (io_source(error).and_then(tls_cause), &host.password) {
        (Some(_), _) => refused.with_hint("check sslmode, sslrootcert and sslcrl, and the server's certificate"),
        (None, _) if cause == NO_TLS => {
            refused.with_hint("turn ssl on at the server, or go without TLS by sslmode=prefer or disable")
        }
        (None, None) if cause == NO_PASSWORD => refused.with_sqlstate(PASSWORD_MISSING).with_hint(format!(
            "if a password is missing, give it by PGPASSWORD, in ~/.pgpass or by --password-command; this was role {}, \
             database {}",
            info.user, info.database
        )),
        (None, _) => refused.with_hint("check sslmode, channel_binding and the server's pg_hba.conf"),
    };
    Failure { error, try_next: false }
}
