//! The connection keywords of libpq 18 with their environment variables, and what howdah does with each.
//! Source: PostgreSQL documentation, "Database Connection Control Functions" and "Environment Variables".

/// What becomes of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Acted on.
    Used,
    /// Accepted and without effect here: it configures something howdah does not do (Kerberos names,
    /// TLS compression, which no TLS library offers any more).
    Ignored,
    /// Accepted only with one of these values, which ask for nothing howdah lacks.
    OnlyIf(&'static [&'static str]),
}

/// One keyword.
#[derive(Debug)]
pub(super) struct Keyword {
    /// As in a connection string.
    pub(super) name: &'static str,
    /// libpq's environment variable.
    pub(super) variable: Option<&'static str>,
    /// What howdah does with it.
    pub(super) treatment: Treatment,
}

const fn used(name: &'static str, variable: Option<&'static str>) -> Keyword {
    Keyword { name, variable, treatment: Treatment::Used }
}

const fn ignored(name: &'static str, variable: Option<&'static str>) -> Keyword {
    Keyword { name, variable, treatment: Treatment::Ignored }
}

const fn only_if(
    name: &'static str,
    variable: Option<&'static str>,
    values: &'static [&'static str],
) -> Keyword {
    Keyword { name, variable, treatment: Treatment::OnlyIf(values) }
}

/// Every keyword, in the order of libpq's own table.
pub(super) const KEYWORDS: &[Keyword] = &[
    used("service", Some("PGSERVICE")),
    used("servicefile", Some("PGSERVICEFILE")),
    used("user", Some("PGUSER")),
    used("password", Some("PGPASSWORD")),
    used("passfile", Some("PGPASSFILE")),
    used("channel_binding", Some("PGCHANNELBINDING")),
    used("connect_timeout", Some("PGCONNECT_TIMEOUT")),
    used("dbname", Some("PGDATABASE")),
    used("host", Some("PGHOST")),
    used("hostaddr", Some("PGHOSTADDR")),
    used("port", Some("PGPORT")),
    used("client_encoding", Some("PGCLIENTENCODING")),
    used("options", Some("PGOPTIONS")),
    used("application_name", Some("PGAPPNAME")),
    used("fallback_application_name", None),
    used("keepalives", None),
    used("keepalives_idle", None),
    used("keepalives_interval", None),
    used("keepalives_count", None),
    used("tcp_user_timeout", None),
    used("sslmode", Some("PGSSLMODE")),
    used("sslnegotiation", Some("PGSSLNEGOTIATION")),
    ignored("sslcompression", Some("PGSSLCOMPRESSION")),
    used("sslcert", Some("PGSSLCERT")),
    used("sslkey", Some("PGSSLKEY")),
    used("sslcertmode", Some("PGSSLCERTMODE")),
    only_if("sslpassword", None, &[""]),
    used("sslrootcert", Some("PGSSLROOTCERT")),
    used("sslcrl", Some("PGSSLCRL")),
    used("sslcrldir", Some("PGSSLCRLDIR")),
    used("sslsni", Some("PGSSLSNI")),
    used("requirepeer", Some("PGREQUIREPEER")),
    only_if("require_auth", Some("PGREQUIREAUTH"), &[""]),
    only_if("min_protocol_version", Some("PGMINPROTOCOLVERSION"), &["", "3.0"]),
    only_if("max_protocol_version", Some("PGMAXPROTOCOLVERSION"), &["", "3.0", "3.2", "latest"]),
    used("ssl_min_protocol_version", Some("PGSSLMINPROTOCOLVERSION")),
    used("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION")),
    only_if("gssencmode", Some("PGGSSENCMODE"), &["", "disable", "prefer"]),
    ignored("krbsrvname", Some("PGKRBSRVNAME")),
    ignored("gsslib", Some("PGGSSLIB")),
    only_if("gssdelegation", Some("PGGSSDELEGATION"), &["", "0"]),
    only_if("replication", None, &["", "false", "off", "no", "0"]),
    used("target_session_attrs", Some("PGTARGETSESSIONATTRS")),
    used("load_balance_hosts", Some("PGLOADBALANCEHOSTS")),
    only_if("scram_client_key", None, &[""]),
    only_if("scram_server_key", None, &[""]),
    ignored("oauth_issuer", None),
    ignored("oauth_client_id", None),
    ignored("oauth_client_secret", None),
    ignored("oauth_scope", None),
];

/// Settings that libpq puts into the start-up packet from the environment.
pub(super) const SERVER_SETTINGS: &[(&str, &str)] =
    &[("PGDATESTYLE", "datestyle"), ("PGTZ", "timezone"), ("PGGEQO", "geqo")];

/// Variables that name a server; with none of them set and no `--to`, the embedded server is meant.
pub(super) const NAMING_VARIABLES: &[&str] =
    &["PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"];

/// The keyword of this name.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// Something of a connection stands in this environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.variable == Some(name))
        || SERVER_SETTINGS.iter().any(|(variable, _)| *variable == name)
        || ["PGSYSCONFDIR", "PGREQUIRESSL"].contains(&name)
}
