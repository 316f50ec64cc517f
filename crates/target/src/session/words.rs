//! Connection strings as libpq reads them: `postgresql://` URIs and `key = value` text. Text enters, keyword
//! and value pairs leave; unknown keywords and malformed text are Usage errors. No message repeats a value,
//! which may be a password, nor a piece of a URI or a word that may be a part of one. Stricter than libpq
//! where an unencoded `@` leaves open what is password, host and database. Source: PostgreSQL's fe-connect.c,
//! `conninfo_parse` and `conninfo_uri_parse_options`.

use super::keyword::{self, Treatment};
use crate::embedded::quote_conninfo;
use howdah_model::{Error, ErrorKind, Result};
use std::collections::BTreeMap;

/// Values by keyword name.
pub(super) type Words = BTreeMap<&'static str, String>;

/// Pairs that lead to the same server from anywhere: services and the environment have been looked up, and
/// nothing is secret, which a setting in `options` may be.
pub(super) fn show(words: &Words) -> String {
    const LEFT_OUT: [&str; 4] = ["password", "options", "service", "servicefile"];
    let is_shown =
        |name: &str| keyword::find(name).is_some_and(|keyword| keyword.treatment == Treatment::Used);
    let shown = words.iter().filter(|(name, _)| is_shown(name) && !LEFT_OUT.contains(*name));
    shown.map(|(name, value)| format!("{name}={}", quote_conninfo(value))).collect::<Vec<_>>().join(" ")
}

/// Reads either form.
pub(super) fn parse(text: &str) -> Result<Words> {
    for scheme in ["postgresql://", "postgres://"] {
        if let Some(rest) = text.strip_prefix(scheme) {
            return parse_uri(rest);
        }
    }
    match scheme(text) {
        Some(scheme) => Err(of_scheme(scheme)),
        None => parse_pairs(text),
    }
}

/// What stands before `://`, as in no `key = value` text.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.trim_start().split_once("://")?;
    let is_of_one = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.:".contains(&byte);
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_of_one))
        .then_some(scheme)
}

/// SQLAlchemy and JDBC write the driver into the scheme.
fn of_scheme(scheme: &str) -> Error {
    let message = format!("the connection string is a URI of the scheme {scheme}://, expected postgresql://");
    let scheme = scheme.to_ascii_lowercase();
    let is_of_postgresql =
        ["postgres+", "postgresql+", "jdbc:postgres"].iter().any(|one| scheme.starts_with(one));
    match is_of_postgresql || scheme == "postgresql" || scheme == "postgres" {
        true => Error::new(ErrorKind::Usage, message)
            .with_hint(format!("write postgresql:// in place of {scheme}://: howdah needs no driver")),
        false => usage(message),
    }
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message).with_hint(
        "write --to as postgresql://user@host:port/database or as \"host=... dbname=...\", with single quotes around values \
         that hold spaces",
    )
}

/// What to do about a URI that is read otherwise than meant.
pub(super) const ENCODE_HINT: &str = "write a URI as postgresql://user@host:port/database, and in user, password and database / ? @ : % \
     as %2F %3F %40 %3A %25; or leave the password to PGPASSWORD or ~/.pgpass";

fn uri_usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message).with_hint(ENCODE_HINT)
}

/// What is said of a name that is no keyword: the name, if it looks like one and cannot be a part of a
/// password, else its place.
fn unknown(name: &str, may_be_secret: bool, place: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match is_plain && !may_be_secret {
        true => format!("invalid connection option \"{name}\""),
        false => format!("invalid connection option {place}"),
    }
}

fn parse_pairs(text: &str) -> Result<Words> {
    let mut words = Words::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let name_end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let name = &rest[..name_end];
        let Some(value) = rest[name_end..].trim_start().strip_prefix('=') else {
            // The word may be a password that was left without its keyword: say where, not what.
            let at = text.len() - rest.len();
            return Err(usage(format!("missing \"=\" after the word at byte {at} of the connection string")));
        };
        let Some(keyword) = keyword::find(name) else {
            let place = format!("at byte {} of the connection string", text.len() - rest.len());
            return Err(usage(unknown(name, words.contains_key("password"), &place)));
        };
        let is_quoted = value.trim_start().starts_with('\'');
        let (value, after) = take_value(value.trim_start(), name)?;
        if !is_quoted && holds_option(&value) {
            return Err(stuck_together(name));
        }
        words.insert(keyword.name, value);
        rest = after.trim_start();
    }
    Ok(words)
}

/// Options with something else than blanks between them, as in `host=h,password=x`: all of it would be the
/// host, which is looked up and shown.
fn holds_option(value: &str) -> bool {
    let is_option = |part: &str| part.split_once('=').is_some_and(|(name, _)| keyword::find(name).is_some());
    value.split([',', ';', '&']).skip(1).any(is_option)
}

fn stuck_together(name: &str) -> Error {
    let message = format!("another option stands in the value of \"{name}\" in the connection string");
    Error::new(ErrorKind::Usage, message).with_hint(
        "write blanks between options, not commas or semicolons; a value that is meant so stands in single quotes",
    )
}

/// One value, quoted or not, and what follows it.
fn take_value<'a>(text: &'a str, name: &str) -> Result<(String, &'a str)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            c if !quoted && c.is_ascii_whitespace() => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if quoted {
        return Err(usage(format!("unterminated quoted value of \"{name}\" in the connection string")));
    }
    Ok((value, ""))
}

fn parse_uri(text: &str) -> Result<Words> {
    let mut words = Words::new();
    let mut rest = text;
    // As in libpq, an '@' counts only before the first '/'.
    let authority_end = text.find('/').unwrap_or(text.len());
    if let Some(at) = text[..authority_end].find('@') {
        take_user(&mut words, &text[..at])?;
        rest = &text[at + 1..];
    }
    refuse_stray_at(rest)?;
    rest = take_hosts(&mut words, rest)?;
    if let Some(path) = rest.strip_prefix('/') {
        let end = path.find('?').unwrap_or(path.len());
        if end > 0 {
            words.insert("dbname", decode(&path[..end])?);
        }
        rest = &path[end..];
    }
    if let Some(query) = rest.strip_prefix('?') {
        take_parameters(&mut words, query)?;
    }
    Ok(words)
}

/// An `@` in hosts or database is what an unencoded `/` or `@` in a password leaves: the rest of the password
/// would be taken for a port, a host or a database, and shown as that. libpq refuses none of them here, and
/// finds no such host later.
fn refuse_stray_at(hosts_and_database: &str) -> Result<()> {
    let end = hosts_and_database.find('?').unwrap_or(hosts_and_database.len());
    match hosts_and_database[..end].contains('@') {
        false => Ok(()),
        true => Err(uri_usage(
            "the URI holds an \"@\" among its hosts or in its database name, expected it before the hosts only",
        )),
    }
}

fn take_user(words: &mut Words, text: &str) -> Result<()> {
    let (user, password) = text.split_once(':').map_or((text, None), |(user, rest)| (user, Some(rest)));
    if !user.is_empty() {
        words.insert("user", decode(user)?);
    }
    if let Some(password) = password.filter(|text| !text.is_empty()) {
        words.insert("password", decode(password)?);
    }
    Ok(())
}

/// `host[:port][,host[:port]]...`, IPv6 addresses in brackets; gives back what follows.
fn take_hosts<'a>(words: &mut Words, text: &'a str) -> Result<&'a str> {
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let (host, after) = take_host(rest)?;
        hosts.push(decode(host)?);
        rest = after;
        let mut port = "";
        if let Some(text) = rest.strip_prefix(':') {
            let end = text.find(['/', '?', ',']).unwrap_or(text.len());
            (port, rest) = text.split_at(end);
        }
        ports.push(decode(port)?);
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    let (hosts, ports) = (hosts.join(","), ports.join(","));
    if !hosts.is_empty() {
        words.insert("host", hosts);
    }
    if !ports.is_empty() {
        words.insert("port", ports);
    }
    Ok(rest)
}

fn take_host(text: &str) -> Result<(&str, &str)> {
    let Some(address) = text.strip_prefix('[') else {
        return Ok(text.split_at(text.find([':', '/', '?', ',']).unwrap_or(text.len())));
    };
    let Some((address, rest)) = address.split_once(']') else {
        return Err(uri_usage("no matching \"]\" after an IPv6 address in the URI"));
    };
    if address.is_empty() {
        return Err(uri_usage("the IPv6 address between \"[\" and \"]\" in the URI is empty"));
    }
    if !rest.is_empty() && !rest.starts_with([':', '/', '?', ',']) {
        return Err(uri_usage("unexpected character after \"]\" in the URI; expected \":\", \"/\" or \"?\""));
    }
    Ok((address, rest))
}

fn take_parameters(words: &mut Words, query: &str) -> Result<()> {
    if query.is_empty() {
        return Ok(());
    }
    for (index, parameter) in query.split('&').enumerate() {
        let place = format!("in parameter {} of the URI", index + 1);
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(uri_usage(format!("missing \"=\" {place}")));
        };
        if value.contains('=') {
            return Err(uri_usage(format!("extra \"=\" {place}")));
        }
        let (name, value) = (decode(name)?, decode(value)?);
        // JDBC's spelling, which libpq takes too.
        if name == "ssl" && value == "true" {
            words.insert("sslmode", "require".to_owned());
            continue;
        }
        let may_be_secret = words.contains_key("password") || query.contains('@');
        let keyword = keyword::find(&name).ok_or_else(|| uri_usage(unknown(&name, may_be_secret, &place)))?;
        words.insert(keyword.name, value);
    }
    Ok(())
}

/// Percent-decoding; `%00` and malformed escapes are refused.
fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digits = tail.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|byte| *byte != 0);
        bytes.push(
            byte.ok_or_else(|| uri_usage("invalid percent-encoding in the URI; write % itself as %25"))?,
        );
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| uri_usage("percent-encoding in the URI does not give valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(&'static str, String)> {
        parse(text).unwrap().into_iter().collect()
    }

    fn is(text: &str, expected: &[(&str, &str)]) {
        let expected: Words =
            expected.iter().map(|(k, v)| (keyword::find(k).unwrap().name, (*v).to_owned())).collect();
        assert_eq!(words(text), expected.into_iter().collect::<Vec<_>>(), "{text}");
    }

    #[test]
    fn other_schemes_are_named() {
        for (text, scheme, hint) in [
            ("postgresql+psycopg2://u:secret@h/d", "postgresql+psycopg2://", "write postgresql://"),
            ("jdbc:postgresql://h/d?password=secret", "jdbc:postgresql://", "write postgresql://"),
            ("mysql://u:secret@h/d", "mysql://", "write --to as postgresql://"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message().contains(&format!("of the scheme {scheme},")), "{error}");
            assert!(!error.to_string().contains("secret") && error.hint().unwrap().contains(hint), "{error}");
        }
        is("host=h dbname=a://b", &[("host", "h"), ("dbname", "a://b")]);
    }

    #[test]
    fn uris_read_as_libpq_reads_them() {
        // From PostgreSQL's src/interfaces/libpq/t/001_uri.pl.
        is(
            "postgresql://uri-user:secret@host:12345/db",
            &[
                ("user", "uri-user"),
                ("password", "secret"),
                ("host", "host"),
                ("port", "12345"),
                ("dbname", "db"),
            ],
        );
        is("postgresql://host/db?user=uri-user", &[("user", "uri-user"), ("dbname", "db"), ("host", "host")]);
        is("postgresql://%68ost/", &[("host", "host")]);
        is("postgresql://", &[]);
        is("postgres://", &[]);
        is("postgresql:///", &[]);
        is("postgresql://uri-user@", &[("user", "uri-user")]);
        is("postgresql://uri-user:@host", &[("user", "uri-user"), ("host", "host")]);
        is("postgresql://?hostaddr=127.0.0.1", &[("hostaddr", "127.0.0.1")]);
        is("postgresql://[2001:db8::1234]:12345", &[("host", "2001:db8::1234"), ("port", "12345")]);
        is("postgresql://[::1]/db", &[("host", "::1"), ("dbname", "db")]);
        is(
            "postgresql://%2Fvar%2Flib%2Fpostgresql/dbname",
            &[("host", "/var/lib/postgresql"), ("dbname", "dbname")],
        );
        is("postgres:///?host=/path/to/socket/dir", &[("host", "/path/to/socket/dir")]);
        is(
            "postgresql://a:1,b,c:3/db?target_session_attrs=any&ssl=true",
            &[
                ("host", "a,b,c"),
                ("port", "1,,3"),
                ("dbname", "db"),
                ("target_session_attrs", "any"),
                ("sslmode", "require"),
            ],
        );
    }

    #[test]
    fn pairs_read_as_libpq_reads_them() {
        is(
            "host=h  port = 1 dbname='a b' password='it\\'s \\\\'",
            &[("host", "h"), ("port", "1"), ("dbname", "a b"), ("password", "it's \\")],
        );
        is("user=a\\ b password=''", &[("user", "a b"), ("password", "")]);
        is("host=a,b password='x,user=y'", &[("host", "a,b"), ("password", "x,user=y")]);
        is("  ", &[]);
    }

    #[test]
    fn malformed_text_is_refused_without_repeating_it() {
        for text in [
            "hunter2",
            "host=a hunter2",
            "password='hunter2",
            "nonsense=hunter2",
            "postgresql://h?hunter2",
            "postgresql://h?nonsense=hunter2",
            "postgresql://[::1",
            "postgresql://[]/x",
            "postgresql://[::1]x",
            "postgresql://h/%zz",
            "postgresql://h/%00",
            "postgresql://h/%2",
            "postgresql://h?user=a=b",
            "password=correct hunter2=battery",
            "password=correct hunter=battery",
            "postgresq://u:hunter2=@h",
            "postgresql:/u:hunter2='@h",
            "postgresql://u:hunter2/x@h/d",
            "postgresql://u:x/hunter2@h/d",
            "postgresql://u:x@hunter2@h/d",
            "postgresql://u:x@y/hunter2@h/d",
            "postgresql://u:12/hunter2@h/d",
            "postgresql://u:x/y?hunter2@h/d",
            "postgresql://u:x/y?hunter=@h/d",
            "postgresql://u:x/y?hunter2=z=@h/d",
            "postgresql://h/d?password=x&hunter2=y",
            "host=h,user=me,password=hunter2",
            "dbname=d;password=hunter2;user=me",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            assert!(!error.to_string().contains("hunter"), "{error}");
        }
    }

    #[test]
    fn a_name_that_is_no_keyword_is_said_where_it_can_be_no_password() {
        for text in ["host=h sslmod=x", "postgresql://u:x@h/d?sslmod=y"] {
            let error = parse(text).unwrap_err();
            let is_named = error.message() == "invalid connection option \"sslmod\"";
            assert_eq!(is_named, !text.contains("u:x"), "{error}");
        }
    }

    #[test]
    fn what_is_shown_reads_as_the_same_without_secrets() {
        let words =
            parse("host='a b' port=1 password=x oauth_client_secret=x service=x dbname='' user=o\\'x options='-c a.key=x'")
                .unwrap();
        assert_eq!(show(&words), "dbname='' host='a b' port=1 user='o\\'x'");
        assert_eq!(parse(&show(&words)).unwrap().len(), 4);
    }
}
