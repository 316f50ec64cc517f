//! The settings a session begins with, and reading the server's. Everything not named here stays as role,
//! database and PGOPTIONS have it. DateStyle, TimeZone and the like do, too, so that values are read as psql
//! would have them read, but where a job has begun to read them in another way; `client_encoding` is UTF8 and
//! every COPY names its ENCODING. `search_path` keeps its schemas, but none comes before `pg_catalog`.

use super::Session;
use crate::sql::{quote_ident, quote_literal};
use howdah_model::{Result, ValueSettings};
use std::collections::BTreeMap;
use tokio_postgres::SimpleQueryRow;
use tokio_postgres::types::Type;

/// Time-outs that roles and databases carry for interactive work. A bulk load would run into them: a chunk
/// may take minutes on a slow server (statement, transaction), may rightly wait for the same claim or a lock
/// of another session (lock), and a session idles while it waits for a slow source (idle). howdah has its own
/// stall detection and `--retry-for`. With the first major version of each.
const TIMEOUTS: &[(&str, u32)] = &[
    ("statement_timeout", 13),
    ("lock_timeout", 13),
    ("idle_in_transaction_session_timeout", 13),
    ("idle_session_timeout", 14),
    ("transaction_timeout", 17),
];

/// After a power or network failure on our side, the server keeps a session, and with it the claim of its
/// chunk, for as long as TCP lets it: two hours by the usual system defaults. A rerun would wait for that.
/// With these (seconds, seconds, tries) it is over after two minutes. For a unix socket, of which a pooler
/// may have one, they mean nothing, and the millisecond that listing the settings takes is left out. What the
/// server's files, role, database or PGOPTIONS have set stays; the value alone does not tell that, as the
/// system's own is shown where nothing is set. To plan a join here takes the server a third of a millisecond.
const KEEPALIVES_SQL: &str = "\
    SELECT pg_catalog.set_config(name, CASE WHEN name OPERATOR(pg_catalog.=) 'tcp_keepalives_idle' THEN '60' \
                                            WHEN name OPERATOR(pg_catalog.=) 'tcp_keepalives_interval' THEN '10' ELSE '6' END, false) \
    FROM pg_catalog.pg_show_all_settings() \
    WHERE name OPERATOR(pg_catalog.=) ANY \
              ('{tcp_keepalives_idle,tcp_keepalives_interval,tcp_keepalives_count}'::pg_catalog.text[]) \
      AND source OPERATOR(pg_catalog.=) 'default' AND pg_catalog.inet_client_addr() IS NOT NULL; ";

/// After a kill -9 on our side the server goes on with a statement, and with its locks, until it has an
/// answer to send: a long INSERT is over before that. From version 14 on it looks after its client meanwhile
/// where the system can tell it, which Linux can; elsewhere the setting is refused. What role or database
/// have set stays.
const CHECK_CLIENT_SINCE: u32 = 14;
const CHECK_CLIENT_SQL: &str = "\
    SELECT pg_catalog.set_config('client_connection_check_interval', '2s', false) \
    WHERE pg_catalog.current_setting('client_connection_check_interval', true) OPERATOR(pg_catalog.=) '0' \
      AND pg_catalog.version() OPERATOR(pg_catalog.~~) '%linux%'; ";

/// A role may have another. Whoever waits for a lock and then looks must see what the holder has done, and a
/// load that others write beside must not fail for that, nor wait until nobody does
/// (`default_transaction_deferrable`).
const ISOLATION_SQL: &str = "SET default_transaction_isolation = 'read committed'; ";

/// A role may have sessions end with their first error. That of a table that is not there, or of a chunk that
/// another run has claimed, is an answer, and comes back as one.
const GO_ON_SQL: &str = "SET exit_on_error = off; ";

/// Some statements have values of rows for parameters (keys that cut a merge into parts, values that the
/// server is asked about). They are kept out of its log, whatever statements that shows: everybody may for
/// those that fail, superusers for all, and from version 15 on who was granted SET on that.
const SHOW_NO_VALUES_SQL: &str = "SET log_parameter_max_length_on_error = 0; ";
const GRANTED_SINCE: u32 = 15;
pub(super) fn log_no_values_sql(major: u32) -> String {
    let may = match major >= GRANTED_SINCE {
        true => "pg_catalog.has_parameter_privilege('log_parameter_max_length', 'SET')",
        false => "pg_catalog.current_setting('is_superuser') OPERATOR(pg_catalog.=) 'on'",
    };
    format!(
        "{SHOW_NO_VALUES_SQL}SELECT pg_catalog.set_config('log_parameter_max_length', '0', false) WHERE {may}; "
    )
}

/// What input functions go by. Each is a setting that everybody may change. (`search_path` decides which
/// table a `regclass` is, too; but it says where tables are looked for and made, which is for the run that
/// does so.)
const OF_VALUES: [&str; 7] = [
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "timezone_abbreviations",
    "lc_monetary",
    "xmloption",
    "array_nulls",
];

/// The columns of a query that [`of_values`] reads.
pub(super) fn of_values_sql() -> String {
    OF_VALUES.map(|name| format!("pg_catalog.current_setting('{name}')")).join(", ")
}

/// How the session reads values, from the columns of a row that begin with this one.
pub(super) fn of_values(row: &SimpleQueryRow, first: usize) -> ValueSettings {
    let value = |(no, name): (usize, &str)| Some((name.to_owned(), row.get(first + no)?.to_owned()));
    OF_VALUES.into_iter().enumerate().filter_map(value).collect()
}

/// The statement that makes a session which reads values in the one way read them in the other; `None` if it
/// does so already.
pub(super) fn change_values_sql(from: &ValueSettings, to: &ValueSettings) -> Option<String> {
    // Those of a job come from the ledger: others may have written further ones there.
    let is_of_values = |name: &String| OF_VALUES.contains(&name.as_str());
    let changed = to.iter().filter(|(name, value)| is_of_values(name) && from.get(*name) != Some(value));
    let set = |(name, value): (&String, &String)| {
        format!("pg_catalog.set_config({}, {}, false)", quote_literal(name), quote_literal(value))
    };
    let all: Vec<String> = changed.map(set).collect();
    (!all.is_empty()).then(|| format!("SELECT {}", all.join(", ")))
}

/// What the environment gives. Not put into the `options` of the start, which poolers refuse; the library
/// sends no parameters of their own.
pub(super) fn given_sql(given: &[(&str, String)]) -> String {
    let set = |(name, value): &(&str, String)| {
        format!("SELECT pg_catalog.set_config({}, {}, false); ", quote_literal(name), quote_literal(value))
    };
    given.iter().map(set).collect()
}

/// Statements that switch the time-outs off and the keepalives on, let sessions outlive errors, keep values
/// out of the log, and say how transactions see one another, for a server of this major version.
pub(super) fn start_sql(major: u32) -> String {
    let known = TIMEOUTS.iter().filter(|(_, since)| major >= *since);
    let timeouts = known.map(|(name, _)| format!("SET {name} = 0; "));
    let check_client = (major >= CHECK_CLIENT_SINCE).then(|| CHECK_CLIENT_SQL.to_owned());
    let own =
        [GO_ON_SQL.to_owned(), KEEPALIVES_SQL.to_owned(), ISOLATION_SQL.to_owned(), log_no_values_sql(major)];
    timeouts.chain(own).chain(check_client).collect()
}

/// What puts the server's own schema before all others, where `search_path` names it behind another one:
/// operators and functions of that one would be called in its stead, with the rights of the role. Without its
/// name it is the first, and new tables are still made in the other.
pub(super) fn path_sql(search_path: &str) -> Option<String> {
    let schemas = schemas(search_path);
    let is_own = |name: &String| name == "pg_catalog";
    if schemas.iter().position(is_own)? == 0 {
        return None;
    }
    let others: Vec<String> =
        schemas.iter().filter(|name| !is_own(name)).map(|name| quote_ident(name)).collect();
    let others = quote_literal(&others.join(", "));
    Some(format!("SELECT pg_catalog.set_config('search_path', {others}, false)"))
}

/// The names of a list, as the server reads it (`SplitIdentifierString` in varlena.c): those without
/// quotation marks in lower case.
fn schemas(list: &str) -> Vec<String> {
    let (mut names, mut name, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => name.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => names.push(std::mem::take(&mut name)),
            c if quoted => name.push(c),
            c if c.is_ascii_whitespace() => {}
            c => name.push(c.to_ascii_lowercase()),
        }
    }
    names.push(name);
    names
}

/// The values of these settings as the server tells this connection; unknown names are left out.
///
/// # Errors
/// Those of the session.
pub async fn show(session: &Session, names: &[&str]) -> Result<BTreeMap<String, String>> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let rows = session
        .rows(
            "SELECT name, pg_catalog.current_setting(name, true) \
             FROM pg_catalog.unnest($1) AS asked(name)",
            &[(&names, Type::TEXT_ARRAY)],
            "reading settings",
        )
        .await?;
    Ok(rows.iter().filter_map(|row| Some((row.get(0), row.get::<_, Option<String>>(1)?))).collect())
}

/// Where the server keeps its data; `None` where that is not for this role. The setting is told to superusers
/// and members of `pg_read_all_settings` alone; the view leaves it out for others, where asking for it by
/// name would be an error in the server's log.
///
/// # Errors
/// Those of the session.
pub async fn data_directory(session: &Session) -> Result<Option<String>> {
    let sql = "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'data_directory'";
    let rows = session.rows(sql, &[], "reading settings").await?;
    Ok(rows.first().and_then(|row| row.get(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_set_but_how_values_are_read() {
        let to = [("DateStyle", "ISO, DMY"), ("role", "other"), ("search_path", "other")];
        let to: ValueSettings = to.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let sql = change_values_sql(&ValueSettings::new(), &to);
        assert_eq!(sql.as_deref(), Some("SELECT pg_catalog.set_config('DateStyle', 'ISO, DMY', false)"));
    }

    #[test]
    fn no_schema_comes_before_that_of_the_server() {
        let set = |path: &str| {
            path_sql(path).map(|sql| sql.replace("SELECT pg_catalog.set_config('search_path', ", ""))
        };
        for path in
            ["", "\"$user\", public", "public", "pg_catalog, public", "\"pg_catalog\"", "\"PG_CATALOG\", a"]
        {
            assert_eq!(set(path), None, "{path}");
        }
        for (path, expected) in [
            ("public, pg_catalog", "'\"public\"', false)"),
            ("Public,PG_Catalog , \"Ab\"\"c, d\"", "'\"public\", \"Ab\"\"c, d\"', false)"),
            ("\"$user\", public, \"pg_catalog\", pg_catalog", "'\"$user\", \"public\"', false)"),
            ("pg_temp, public, pg_catalog", "'\"pg_temp\", \"public\"', false)"),
        ] {
            assert_eq!(set(path).as_deref(), Some(expected), "{path}");
        }
    }
}
