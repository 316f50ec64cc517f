//! Who to connect to and how: a connection string, a service, libpq's environment and its defaults
//! resolved into one value, with libpq's precedence (explicit, service, environment, default).
//! Values that ask for what howdah cannot do are refused, never dropped. Holds secrets: `Debug` and
//! `display` leave them out.

use super::hosts::{self, Host};
use super::keyword::{self, Treatment};
use super::ledger_seen::LedgerSeen;
use super::password_command::PasswordCommand;
use super::pgpass::{self, Login};
use super::service;
use super::surroundings::Surroundings;
use super::words::{self, Words};
use howdah_model::{Error, ErrorKind, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Prints the password; a password in the connection string or service is stronger.
pub(super) const PASSWORD_COMMAND: &str = "HOWDAH_PASSWORD_COMMAND";
/// The option is stronger than that.
const UNUSED_PASSWORD: &str = "a password stands in the connection string or its service, and is not used: --password-command prints the one that is";

/// How much TLS is wanted; names and meaning are libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Which server of several will do; libpq's `target_session_attrs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionAttrs {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
    /// Rows can be written there, if that is so anywhere. Not a choice of libpq's, whose own default takes
    /// the first host, where a load can do nothing if that is a standby.
    PreferReadWrite,
}

/// Where TLS finds its certificates, and how it begins.
#[derive(Debug, Clone)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    /// `sslnegotiation=direct`: no SSLRequest round trip; servers from 17 on.
    pub(super) direct: bool,
    /// TLS versions 1.2 and 1.3, as `ssl_min_protocol_version` and `ssl_max_protocol_version` leave them.
    pub(super) tls12: bool,
    pub(super) tls13: bool,
    /// `sslsni`.
    pub(super) server_name_indication: bool,
    /// `sslrootcert`; `None` is the default file.
    pub(super) root_cert: Option<String>,
    /// `sslcrl`; `None` is the default file, if there is one.
    pub(super) crl: Option<String>,
    /// `sslcrldir`: a folder of such lists.
    pub(super) crl_directory: Option<String>,
    pub(super) cert: Option<String>,
    pub(super) key: Option<String>,
    /// `sslcertmode=disable`: send no client certificate even if there is one.
    pub(super) send_cert: bool,
    /// `~/.postgresql`.
    pub(super) directory: Option<PathBuf>,
}

/// TCP keepalive and time-outs.
#[derive(Debug, Clone)]
pub(super) struct Timing {
    /// For the whole of one attempt at one address; `None` waits for ever.
    pub(super) connect: Option<Duration>,
    pub(super) keepalives: bool,
    pub(super) keepalives_idle: Duration,
    pub(super) keepalives_interval: Duration,
    pub(super) keepalives_count: u32,
    pub(super) tcp_user: Option<Duration>,
}

/// A resolved connection description.
#[derive(Clone)]
pub struct Conninfo {
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) options: Option<String>,
    pub(super) server_settings: Vec<(&'static str, String)>,
    /// `requirepeer`: the user that has to run the server at a unix socket.
    pub(super) required_peer: Option<String>,
    pub(super) application_name: String,
    pub(super) client_encoding: Option<String>,
    pub(super) tls: TlsSettings,
    pub(super) timing: Timing,
    pub(super) channel_binding: tokio_postgres::config::ChannelBinding,
    pub(super) session_attrs: SessionAttrs,
    /// `load_balance_hosts=random`.
    pub(super) shuffle: bool,
    /// No pool of transactions stands before the server, as a session that was opened has found.
    pub(super) is_server: Arc<AtomicBool>,
    /// It has no other session than that.
    pub(super) is_alone: Arc<AtomicBool>,
    pub(super) ledger_seen: Arc<LedgerSeen>,
    warnings: Vec<String>,
    shown: String,
    /// The same without the user.
    shown_to_others: String,
    /// Where passwords are looked up whenever a session is opened, unless one was given.
    password_file: Option<PathBuf>,
    /// A password stands in the string itself or in its service.
    holds_password: bool,
    /// Prints the password, whatever else says one.
    pub(super) password_command: Option<Arc<PasswordCommand>>,
}

impl Conninfo {
    /// Resolves `--to`. Without it, and with no variable that names a server (PGHOST, PGHOSTADDR, PGPORT,
    /// PGDATABASE, PGUSER, PGSERVICE), the answer is `None`: the embedded server is meant.
    ///
    /// # Errors
    /// Usage, for malformed text, unknown keywords, bad values and settings howdah cannot honour.
    pub fn resolve(to: Option<&str>) -> Result<Option<Conninfo>> {
        Conninfo::resolve_in(to, &Surroundings::of_this_process())
    }

    pub(super) fn resolve_in(to: Option<&str>, around: &Surroundings) -> Result<Option<Conninfo>> {
        refuse_unreadable(around)?;
        if to.is_none() && !keyword::NAMING_VARIABLES.iter().any(|name| around.variable(name).is_some()) {
            return Ok(None);
        }
        let mut words = words::parse(to.unwrap_or_default())?;
        service::apply(&mut words, around)?;
        let holds_password = value(&words, "password").is_some();
        add_environment(&mut words, around);
        refuse_unsupported(&words)?;
        let mut info = build(&words, around)?;
        info.shown = words::show(&words);
        words.remove("user");
        words.entry("dbname").or_insert_with(|| info.database.clone());
        info.shown_to_others = words::show(&words);
        let command =
            around.variable(PASSWORD_COMMAND).filter(|command| !holds_password && !command.is_empty());
        info.password_command = command.map(|command| Arc::new(PasswordCommand::new(command)));
        info.holds_password = holds_password;
        Ok(Some(info))
    }

    /// The string itself holds a password. False for what cannot be understood.
    pub fn holds_password(to: &str) -> bool {
        words::parse(to).is_ok_and(|words| words.contains_key("password"))
    }

    /// No host's password is known, by whatever way.
    pub fn lacks_password(&self) -> bool {
        self.password_command.is_none() && self.hosts.iter().all(|host| host.password.is_none())
    }

    /// Uses this password for every host.
    pub fn set_password(&mut self, password: &str) {
        self.hosts.iter_mut().for_each(|host| host.password = Some(password.to_owned()));
        self.password_file = None;
        self.password_command = None;
    }

    /// Runs this command for the password of new sessions; `None`: no command, whatever the environment says.
    /// A password that is not used for that is warned of.
    pub fn set_password_command(&mut self, command: Option<&str>) {
        if self.holds_password && command.is_some() {
            self.warnings.push(UNUSED_PASSWORD.to_owned());
        }
        self.password_command = command.map(|command| Arc::new(PasswordCommand::new(command)));
    }

    /// What the password file says now, as tokens in it are renewed; what it said at first where it says
    /// nothing any more.
    pub(super) fn password(&self, host: &Host) -> Option<String> {
        let file = self.password_file.as_deref();
        file.and_then(|file| self.look_up(file, host, |_| {})).or_else(|| host.password.clone())
    }

    fn look_up(&self, file: &Path, host: &Host, warn: impl FnMut(String)) -> Option<String> {
        let (port, name) = (host.port.to_string(), host.password_file_name());
        let login = Login { host: &name, port: &port, database: &self.database, user: &self.user };
        pgpass::lookup(file, &login, warn)
    }

    /// `postgresql://user@host:port/database`, without password or other parameters.
    pub fn display(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(Host::in_uri).collect();
        format!("postgresql://{}@{}/{}", self.user, hosts.join(","), self.database)
    }

    /// The folder of the only host's unix socket.
    pub fn only_socket_folder(&self) -> Option<&Path> {
        match self.hosts.as_slice() {
            [Host { address: hosts::Address::Unix(folder), .. }] => Some(folder),
            _ => None,
        }
    }

    /// What leads to the same server as `--to`, whatever the environment: all but the password.
    pub fn to_type(&self) -> &str {
        &self.shown
    }

    /// The same for another user, who is not named.
    pub fn to_type_by_another(&self) -> &str {
        &self.shown_to_others
    }

    /// Another host may be the one that takes writes.
    pub fn has_several_hosts(&self) -> bool {
        self.hosts.len() > 1
    }

    /// The `target_session_attrs` that only a server which takes no rows has.
    pub fn wants_no_primary(&self) -> Option<&'static str> {
        match self.session_attrs {
            SessionAttrs::Standby => Some("standby"),
            SessionAttrs::ReadOnly => Some("read-only"),
            _ => None,
        }
    }

    /// A standby is taken before a server that takes rows, if there is one.
    pub fn prefers_standby(&self) -> bool {
        use SessionAttrs::{PreferStandby, ReadOnly, Standby};
        matches!(self.session_attrs, PreferStandby | Standby | ReadOnly)
    }

    /// Every host is a unix socket or a loopback address, so the server shares this machine's CPUs.
    pub fn is_local(&self) -> bool {
        self.hosts.iter().all(Host::is_local)
    }

    /// The database name.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The user name.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// `client_encoding` or PGCLIENTENCODING, if set: what psql would take as a file's encoding. The session
    /// itself always speaks UTF8, and COPY names the file's encoding.
    pub fn client_encoding(&self) -> Option<&str> {
        self.client_encoding.as_deref()
    }

    /// What libpq would print to stderr: a password file ignored for its permissions.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl fmt::Debug for Conninfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Conninfo").field(&self.display()).finish()
    }
}

/// Fills what neither the string nor the service gave.
fn add_environment(words: &mut Words, around: &Surroundings) {
    for keyword in keyword::KEYWORDS {
        if let Some(value) = keyword.variable.and_then(|name| around.variable(name)) {
            words.entry(keyword.name).or_insert_with(|| value.to_owned());
        }
    }
    // Deprecated, and obeyed by every libpq still.
    if around.variable("PGREQUIRESSL").is_some_and(|text| text.starts_with('1')) {
        words.entry("sslmode").or_insert_with(|| "require".to_owned());
    }
}

/// Left out, it would be as if it were not set, and the default may be another server or no check of its
/// certificate.
fn refuse_unreadable(around: &Surroundings) -> Result<()> {
    let is_ours = |name: &&String| *name == PASSWORD_COMMAND || keyword::is_variable(name);
    match around.unreadable.iter().find(is_ours) {
        None => Ok(()),
        Some(name) => Err(Error::new(ErrorKind::Usage, format!("the value of {name} is not valid UTF-8"))
            .with_hint("unset it, or give one without such bytes")),
    }
}

fn refuse_unsupported(words: &Words) -> Result<()> {
    for (name, value) in words {
        let Some(keyword) = keyword::find(name) else { continue };
        let is_unsupported = match keyword.treatment {
            Treatment::OnlyIf(values) => !values.contains(&value.as_str()),
            Treatment::Used | Treatment::Ignored => (*name, value.as_str()) == ("sslcertmode", "require"),
        };
        if is_unsupported {
            let from = keyword.variable.map(|name| format!(" (or {name})")).unwrap_or_default();
            return Err(Error::new(
                ErrorKind::Usage,
                format!("{name}{from} is set to what howdah does not support"),
            )
            .with_hint(instead_of(name)));
        }
    }
    Ok(())
}

/// What does nearly the same, where something does.
fn instead_of(name: &str) -> String {
    match name {
        "require_auth" => "channel_binding=require insists on SCRAM, over TLS; leave require_auth out".to_owned(),
        "sslpassword" => "leave sslpassword out, and name a copy of the key without passphrase by sslkey, of mode 0600: openssl pkey -in \
             KEY -out COPY"
            .to_owned(),
        _ => format!("leave {name} out, or load through a connection that does not need it"),
    }
}

/// A keyword's value; empty counts as unset, as it does for most of libpq's.
pub(super) fn value<'a>(words: &'a Words, name: &str) -> Option<&'a str> {
    words.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

fn invalid(name: &str, text: &str, expected: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("invalid {name} value: \"{text}\", expected {expected}"))
}

/// One of several words. As in libpq an empty one is none of them, unless it stands among them: what an unset
/// variable of a script leaves of `sslmode=$MODE` must not be the weak default.
fn choice<T: Copy>(words: &Words, name: &str, default: T, choices: &[(&str, T)]) -> Result<T> {
    let Some(text) = words.get(name) else { return Ok(default) };
    match choices.iter().find(|(word, _)| *word == text) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let names: Vec<&str> =
                choices.iter().map(|(word, _)| *word).filter(|word| !word.is_empty()).collect();
            Err(invalid(name, text, &names.join(", ")))
        }
    }
}

fn number(words: &Words, name: &str) -> Result<Option<u32>> {
    let Some(text) = value(words, name) else { return Ok(None) };
    // libpq takes negative time-outs as zero.
    let number: i32 = text.trim().parse().map_err(|_| invalid(name, text, "an integer"))?;
    Ok(Some(u32::try_from(number).unwrap_or(0)))
}

fn build(words: &Words, around: &Surroundings) -> Result<Conninfo> {
    use tokio_postgres::config::ChannelBinding;
    let no_user = || {
        Error::new(ErrorKind::Usage, "the name of the operating system's user is unknown")
            .with_hint("name the database role with user=... or PGUSER")
    };
    let user = value(words, "user").map(str::to_owned).or_else(|| around.user.clone()).ok_or_else(no_user)?;
    let database = value(words, "dbname").unwrap_or(&user).to_owned();
    let tls = tls_settings(words, around)?;
    let application_name =
        value(words, "application_name").or_else(|| value(words, "fallback_application_name"));
    let hosts = hosts::resolve(words)?;
    if tls.mode == SslMode::VerifyFull && hosts.iter().any(Host::lacks_name) {
        return Err(Error::new(
            ErrorKind::Usage,
            "hostaddr stands alone, and sslmode=verify-full checks a name",
        )
        .with_hint("name what the server's certificate is for with host, too"));
    }
    let attrs_default = if hosts.len() > 1 { SessionAttrs::PreferReadWrite } else { SessionAttrs::Any };
    let mut info = Conninfo {
        hosts,
        options: value(words, "options").map(str::to_owned),
        server_settings: server_settings(around),
        required_peer: value(words, "requirepeer").map(str::to_owned),
        application_name: application_name.unwrap_or("howdah").to_owned(),
        client_encoding: value(words, "client_encoding").map(str::to_owned),
        channel_binding: choice(
            words,
            "channel_binding",
            ChannelBinding::Prefer,
            &[
                ("disable", ChannelBinding::Disable),
                ("prefer", ChannelBinding::Prefer),
                ("require", ChannelBinding::Require),
            ],
        )?,
        session_attrs: session_attrs(words, attrs_default)?,
        shuffle: choice(words, "load_balance_hosts", false, &[("disable", false), ("random", true)])?,
        timing: timing(words)?,
        is_server: Arc::default(),
        is_alone: Arc::default(),
        ledger_seen: Arc::default(),
        warnings: Vec::new(),
        shown: String::new(),
        shown_to_others: String::new(),
        password_file: None,
        holds_password: false,
        password_command: None,
        user,
        database,
        tls,
    };
    find_passwords(&mut info, words, around);
    Ok(info)
}

fn session_attrs(words: &Words, default: SessionAttrs) -> Result<SessionAttrs> {
    choice(
        words,
        "target_session_attrs",
        default,
        &[
            ("any", SessionAttrs::Any),
            ("read-write", SessionAttrs::ReadWrite),
            ("read-only", SessionAttrs::ReadOnly),
            ("primary", SessionAttrs::Primary),
            ("standby", SessionAttrs::Standby),
            ("prefer-standby", SessionAttrs::PreferStandby),
        ],
    )
}

fn tls_settings(words: &Words, around: &Surroundings) -> Result<TlsSettings> {
    let system_roots = value(words, "sslrootcert") == Some("system");
    let default = if system_roots { SslMode::VerifyFull } else { SslMode::Prefer };
    let mode = choice(
        words,
        "sslmode",
        default,
        &[
            ("disable", SslMode::Disable),
            ("allow", SslMode::Allow),
            ("prefer", SslMode::Prefer),
            ("require", SslMode::Require),
            ("verify-ca", SslMode::VerifyCa),
            ("verify-full", SslMode::VerifyFull),
        ],
    )?;
    let direct = choice(words, "sslnegotiation", false, &[("postgres", false), ("direct", true)])?;
    let weak = |with: &str, enough: &str| {
        let message = format!("this sslmode is too weak for {with}");
        Err(Error::new(ErrorKind::Usage, message).with_hint(format!("use sslmode={enough}")))
    };
    if system_roots && mode != SslMode::VerifyFull {
        return weak("sslrootcert=system", "verify-full");
    }
    if direct && mode < SslMode::Require {
        return weak("sslnegotiation=direct", "require (or a stronger one)");
    }
    // Older versions than 1.2 are not offered: a lower minimum allows nothing more, a lower maximum nothing.
    let minimum = &[("", true), ("TLSv1", true), ("TLSv1.1", true), ("TLSv1.2", true), ("TLSv1.3", false)];
    Ok(TlsSettings {
        mode,
        direct,
        tls12: choice(words, "ssl_min_protocol_version", true, minimum)?,
        tls13: choice(
            words,
            "ssl_max_protocol_version",
            true,
            &[("", true), ("TLSv1.2", false), ("TLSv1.3", true)],
        )?,
        server_name_indication: choice(words, "sslsni", true, &[("", true), ("0", false), ("1", true)])?,
        root_cert: value(words, "sslrootcert").map(str::to_owned),
        crl: value(words, "sslcrl").map(str::to_owned),
        crl_directory: value(words, "sslcrldir").map(str::to_owned),
        cert: value(words, "sslcert").map(str::to_owned),
        key: value(words, "sslkey").map(str::to_owned),
        send_cert: choice(words, "sslcertmode", true, &[("disable", false), ("allow", true)])?,
        directory: around.home.as_ref().map(|home| home.join(".postgresql")),
    })
}

/// Without a word of the user, keepalive probes begin after 60 s of silence, not after the system's
/// usual 2 h: a session that waits for a lock or a long COMMIT is silent, and NAT gateways and load
/// balancers forget silent connections after about 350 s.
fn timing(words: &Words) -> Result<Timing> {
    let seconds = |name: &str, default: u64| -> Result<Duration> {
        let given = number(words, name)?.filter(|seconds| *seconds > 0);
        Ok(Duration::from_secs(given.map_or(default, u64::from)))
    };
    Ok(Timing {
        connect: Some(seconds("connect_timeout", 0)?).filter(|timeout| !timeout.is_zero()),
        keepalives: number(words, "keepalives")? != Some(0),
        keepalives_idle: seconds("keepalives_idle", 60)?,
        keepalives_interval: seconds("keepalives_interval", 10)?,
        keepalives_count: number(words, "keepalives_count")?.filter(|count| *count > 0).unwrap_or(6),
        tcp_user: number(words, "tcp_user_timeout")?
            .filter(|ms| *ms > 0)
            .map(|ms| Duration::from_millis(u64::from(ms))),
    })
}

/// What libpq sends for PGDATESTYLE, PGTZ and PGGEQO beside `options`, over which it wins.
fn server_settings(around: &Surroundings) -> Vec<(&'static str, String)> {
    let given =
        |(variable, setting): &(&str, &'static str)| Some((*setting, around.variable(variable)?.to_owned()));
    let all = keyword::SERVER_SETTINGS.iter().filter_map(given);
    all.filter(|(_, text)| !text.eq_ignore_ascii_case("default")).collect()
}

/// The given password for every host, or each host's own from the password file.
fn find_passwords(info: &mut Conninfo, words: &Words, around: &Surroundings) {
    if let Some(password) = value(words, "password") {
        info.hosts.iter_mut().for_each(|host| host.password = Some(password.to_owned()));
        return;
    }
    let default = around.home.as_ref().map(|home| home.join(".pgpass"));
    let Some(file) = value(words, "passfile").map(PathBuf::from).or(default) else { return };
    let mut warnings = Vec::new();
    let look_up = |host: &Host| {
        info.look_up(&file, host, |warning| {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        })
    };
    let passwords: Vec<Option<String>> = info.hosts.iter().map(look_up).collect();
    info.hosts.iter_mut().zip(passwords).for_each(|(host, password)| host.password = password);
    info.warnings = warnings;
    info.password_file = Some(file);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(variables: &[(&str, &str)]) -> Surroundings {
        let variables =
            variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Surroundings { variables, user: Some("me".to_owned()), ..Surroundings::default() }
    }

    fn resolve(to: &str, variables: &[(&str, &str)]) -> Conninfo {
        Conninfo::resolve_in(Some(to), &around(variables)).unwrap().unwrap()
    }

    #[test]
    fn without_a_word_about_a_server_the_embedded_one_is_meant() {
        for harmless in [&[][..], &[("PGPASSWORD", "x")], &[("PGSSLMODE", "require"), ("PGAPPNAME", "x")]] {
            assert!(Conninfo::resolve_in(None, &around(harmless)).unwrap().is_none());
        }
        for name in keyword::NAMING_VARIABLES.iter().filter(|name| **name != "PGSERVICE") {
            let value = if *name == "PGPORT" { "6543" } else { "127.0.0.1" };
            assert!(Conninfo::resolve_in(None, &around(&[(name, value)])).unwrap().is_some(), "{name}");
        }
        assert!(Conninfo::resolve_in(Some(""), &around(&[])).unwrap().is_some());
    }

    #[test]
    fn explicit_values_win_over_the_service_and_that_over_the_environment() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("services");
        std::fs::write(&file, "[s]\nhost=from-service\nuser=from-service\n").unwrap();
        let file = file.to_str().unwrap();
        let environment = [
            ("PGSERVICEFILE", file),
            ("PGSERVICE", "s"),
            ("PGUSER", "from-env"),
            ("PGHOST", "from-env"),
            ("PGDATABASE", "from-env"),
        ];
        let info = resolve("host=explicit", &environment);
        assert_eq!(info.display(), "postgresql://from-service@explicit:5432/from-env");
        // An empty value is given, and means the default.
        assert_eq!(resolve("host=h dbname=''", &[("PGDATABASE", "x")]).database(), "me");
    }

    #[test]
    fn what_is_to_be_typed_leads_to_the_same_server_without_environment_and_shows_no_password() {
        let environment =
            [("PGHOST", "db"), ("PGPORT", "6543"), ("PGPASSWORD", "secret"), ("PGSSLMODE", "verify-full")];
        for (to, variables) in [
            ("postgresql://u:secret@db:6543/prod?sslmode=verify-full", &[][..]),
            ("dbname=prod user=u", &environment),
        ] {
            let typed = resolve(to, variables).to_type().to_owned();
            assert_eq!(typed, "dbname=prod host=db port=6543 sslmode=verify-full user=u");
            assert_eq!(resolve(&typed, &[]).display(), "postgresql://u@db:6543/prod");
            let by_another = resolve(to, variables).to_type_by_another().to_owned();
            assert_eq!(by_another, "dbname=prod host=db port=6543 sslmode=verify-full");
        }
    }

    #[test]
    fn defaults_are_those_of_libpq() {
        let info = resolve("host=h", &[]);
        assert_eq!(info.display(), "postgresql://me@h:5432/me");
        assert_eq!((info.tls.mode, info.application_name.as_str()), (SslMode::Prefer, "howdah"));
        assert_eq!(resolve("user=u", &[]).database(), "u");
        assert!(resolve("", &[]).is_local());
        assert_eq!(resolve("sslrootcert=system", &[]).tls.mode, SslMode::VerifyFull);
        assert_eq!(resolve("", &[("PGAPPNAME", "x")]).application_name, "x");
        assert_eq!(resolve("", &[("PGCLIENTENCODING", "LATIN1")]).client_encoding(), Some("LATIN1"));
    }

    #[test]
    fn pgrequiressl_asks_for_tls_where_nothing_else_says_how_much() {
        for (to, variables, mode) in [
            ("", &[("PGREQUIRESSL", "1")][..], SslMode::Require),
            ("", &[("PGREQUIRESSL", "0")], SslMode::Prefer),
            ("", &[("PGREQUIRESSL", "1"), ("PGSSLMODE", "verify-ca")], SslMode::VerifyCa),
            ("sslmode=disable", &[("PGREQUIRESSL", "1")], SslMode::Disable),
        ] {
            assert_eq!(resolve(to, variables).tls.mode, mode, "{to} {variables:?}");
        }
    }

    #[test]
    fn what_libpq_sends_at_start_is_set() {
        let info = resolve("options='-c a=b'", &[("PGDATESTYLE", "ISO, DMY"), ("PGTZ", "default")]);
        assert_eq!(info.options.as_deref(), Some("-c a=b"));
        assert_eq!(info.server_settings, [("datestyle", "ISO, DMY".to_owned())]);
    }

    #[test]
    fn each_host_has_its_own_password_and_none_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pgpass");
        std::fs::write(&file, "a:*:*:*:secret-a\nlocalhost:*:*:*:secret-s\n").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let to = format!("host=a,b,/tmp passfile={}", file.display());
        let info = resolve(&to, &[]);
        let passwords: Vec<_> = info.hosts.iter().map(|host| host.password.as_deref()).collect();
        assert_eq!(passwords, [Some("secret-a"), None, Some("secret-s")]);
        let given = resolve(&format!("{to} password=secret-x"), &[("PGPASSWORD", "secret-y")]);
        assert!(given.hosts.iter().all(|host| host.password.as_deref() == Some("secret-x")));
        for info in [info, given] {
            assert!(!format!("{info:?} {}", info.display()).contains("secret"));
        }
    }

    #[test]
    fn what_howdah_cannot_do_is_refused_and_not_dropped() {
        for to in [
            "gssencmode=require",
            "sslpassword=x",
            "require_auth=password",
            "ssl_max_protocol_version=TLSv1.1",
            "sslmode=no",
            "sslmode=''",
            "channel_binding=",
            "target_session_attrs=''",
            "port=x",
            "connect_timeout=soon",
            "target_session_attrs=x",
            "sslmode=require sslrootcert=system",
            "sslmode=prefer sslnegotiation=direct",
            "hostaddr=127.0.0.1 sslmode=verify-full",
            "host=h, hostaddr=127.0.0.1,127.0.0.1 sslrootcert=system",
        ] {
            let error = Conninfo::resolve_in(Some(to), &around(&[])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{to}: {error}");
        }
        for to in [
            "ssl_min_protocol_version=''",
            "sslsni=''",
            "sslrootcert=''",
            "gssencmode=prefer",
            "gssencmode=disable",
            "sslcompression=1",
            "krbsrvname=postgres",
        ] {
            resolve(to, &[]);
        }
        let error =
            Conninfo::resolve_in(Some(""), &around(&[("PGREQUIREAUTH", "scram-sha-256")])).unwrap_err();
        assert!(error.message().contains("PGREQUIREAUTH"), "{error}");
        assert!(error.hint().iter().any(|hint| hint.contains("channel_binding=require")), "{error}");
        let shown = Conninfo::resolve_in(Some("host=h sslcertmode=require"), &around(&[])).unwrap_err();
        assert!(shown.message().contains("(or PGSSLCERTMODE) is set to what howdah does not"), "{shown}");
        let empty = Conninfo::resolve_in(Some("host=h"), &around(&[("PGSSLMODE", "")])).unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::Usage, "{empty}");
    }

    #[test]
    fn a_variable_that_is_not_utf8_is_refused_and_not_taken_for_unset() {
        let with = |name: &str| Surroundings { unreadable: vec![name.to_owned()], ..around(&[]) };
        for name in ["PGHOST", "PGSSLROOTCERT", "PGTZ", "PGSYSCONFDIR", "HOWDAH_PASSWORD_COMMAND"] {
            for to in [None, Some("host=h")] {
                let error = Conninfo::resolve_in(to, &with(name)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Usage, "{name}");
                assert!(error.message().contains(name), "{error}");
            }
        }
        assert!(Conninfo::resolve_in(Some("host=h"), &with("PGDATA")).is_ok());
    }
}
