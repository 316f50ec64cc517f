//! What the settings of a store may hold. Their names and values enter; nothing leaves but an error that
//! names the setting, as the library takes every value and panics when it cannot make a request of it. Values
//! are not told: they may be secrets.

use howdah_model::{Error, ErrorKind, Result};
use url::Url;

/// Goes into a header, or into what is signed. Secrets that were written with `echo` end in a line ending.
///
/// # Errors
/// Usage, for a control character.
pub(crate) fn expect_printable(name: &str, value: &str) -> Result<()> {
    if !value.contains(|each: char| each.is_ascii_control()) {
        return Ok(());
    }
    let got = match value.trim_end_matches(['\r', '\n']) {
        text if text.contains(|each: char| each.is_ascii_control()) => "a control character within it",
        _ => "a line ending behind it",
    };
    let message = format!("{name} cannot be used: expected printable characters, got {got}");
    Err(Error::new(ErrorKind::Usage, message).with_hint(format!(
        "set {name} to the value alone, as by `printf %s` or `echo -n` where a secret is written"
    )))
}

/// Goes into the name of a host.
///
/// # Errors
/// Usage, for what no region's name holds.
pub(crate) fn expect_region(name: &str, value: &str) -> Result<()> {
    expect_printable(name, value)?;
    match value.chars().all(|each| each.is_ascii_alphanumeric() || "-_.".contains(each)) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Usage,
            format!(
                "{name} is no name of a region: expected letters, digits and hyphens, got another character"
            ),
        )
        .with_hint(format!("set {name} to a name like us-east-1"))),
    }
}

/// The address of a server, to which bucket and key are added.
///
/// # Errors
/// Usage, for all but `http://` or `https://` with a host.
pub(crate) fn expect_endpoint(name: &str, value: &str) -> Result<()> {
    expect_printable(name, value)?;
    let is_plain = |each: char| each.is_ascii_alphanumeric() || "-._~:/[]@".contains(each);
    let got = match value.split_once("://") {
        None => "no scheme".to_owned(),
        Some((scheme, _)) if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            "another scheme".to_owned()
        }
        Some(_) if !value.contains(char::is_whitespace) && !value.chars().all(is_plain) => {
            "a character that is not part of an address".to_owned()
        }
        Some(_) => match Url::parse(value) {
            Ok(_) if value.chars().all(is_plain) => return Ok(()),
            Ok(_) => "white space".to_owned(),
            Err(error) => error.to_string(),
        },
    };
    let message =
        format!("{name} is no address of a server: expected http:// or https:// and a host, got {got}");
    Err(Error::new(ErrorKind::Usage, message)
        .with_hint(format!("set {name} to an address like http://HOST:PORT or https://HOST, or unset it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_which_no_request_can_be_made_is_refused_by_the_name_of_its_setting() {
        let refused = |checked: Result<()>, words: &str| {
            let error = checked.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains("NAME") && error.to_string().contains(words), "{error}");
            assert!(error.hint().unwrap().contains("NAME"), "{error}");
        };
        expect_printable("NAME", "wJalr/+=é").unwrap();
        refused(expect_printable("NAME", "ak\n"), "a line ending behind it");
        refused(expect_printable("NAME", "ak\r\n"), "a line ending behind it");
        refused(expect_printable("NAME", "a\nb"), "a control character within it");
        expect_region("NAME", "us-east-1").unwrap();
        refused(expect_region("NAME", "us east"), "got another character");
        for address in ["http://127.0.0.1:9000", "https://s3.example.com/", "http://[::1]:9000/minio"] {
            expect_endpoint("NAME", address).unwrap();
        }
        for (address, words) in [
            ("127.0.0.1:57490", "no scheme"),
            ("localhost", "no scheme"),
            ("ftp://x", "another scheme"),
            ("http://", "empty host"),
            ("http://bad host", "invalid"),
            ("http://127.0.0.1:99999", "invalid port number"),
            ("http://x?y", "a character that is not part of an address"),
            ("http://x/\n", "a line ending behind it"),
        ] {
            refused(expect_endpoint("NAME", address), words);
        }
    }
}
