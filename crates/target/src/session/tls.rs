//! The TLS configuration of a connection: which roots are trusted, what is checked, which certificate the
//! client shows. Follows libpq: an existing root file is always used to check the server, whatever the
//! `sslmode`; `verify-ca` and `verify-full` refuse to go on without one. So is an existing revocation list;
//! one that cannot be read or used is refused, where libpq passes it over. Encrypted keys are refused.
//! Source: PostgreSQL documentation, "SSL Support" (libpq), and fe-secure-openssl.c.

use super::conninfo::{SslMode, TlsSettings};
use super::verifier::{Verifier, old_public_key};
use howdah_model::{Error, ErrorKind, Result};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{InconsistentKeys, SupportedProtocolVersion};
use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_postgres_rustls::MakeRustlsConnect;
use x509_cert::crl::CertificateList;
use x509_cert::der::Decode;

/// Makes the connector for these settings.
pub(super) fn connector(settings: &TlsSettings) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(ring::default_provider());
    let roots = trusted_roots(settings)?;
    let lists = revocation_lists(settings, roots.is_some())?;
    let verifier = Verifier::new(roots, lists, settings.mode == SslMode::VerifyFull, provider.clone())
        .map_err(|why| usage(format!("the certificate revocation list cannot be used: {why}")))?;
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&protocol_versions(settings))
        .map_err(|_| no_version())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match client_identity(settings)? {
        Some(identity) => builder
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified(identity, &provider)?))),
        None => builder.with_no_client_auth(),
    };
    config.enable_sni = settings.server_name_indication;
    // What libpq 17 and newer offer; `sslnegotiation=direct` needs it.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    // Servers issue no tickets that would be worth keeping: every session is long.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(MakeRustlsConnect::new(config))
}

/// Whatever becomes of TLS, a range of versions that leaves none is a mistake.
pub(super) fn expect_versions(settings: &TlsSettings) -> Result<()> {
    if protocol_versions(settings).is_empty() { Err(no_version()) } else { Ok(()) }
}

fn no_version() -> Error {
    usage("ssl_min_protocol_version and ssl_max_protocol_version leave no TLS version".to_owned())
}

fn protocol_versions(settings: &TlsSettings) -> Vec<&'static SupportedProtocolVersion> {
    let offered = [(settings.tls13, &TLS13), (settings.tls12, &TLS12)];
    offered.into_iter().filter(|(wanted, _)| *wanted).map(|(_, version)| version).collect()
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

/// The certificates that a server's must be signed by; `None` if nothing is to be checked.
fn trusted_roots(settings: &TlsSettings) -> Result<Option<Vec<CertificateDer<'static>>>> {
    if settings.root_cert.as_deref() == Some("system") {
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            return Err(usage("sslrootcert=system, but the system has no trusted certificates".to_owned()));
        }
        return Ok(Some(found.certs));
    }
    let Some(file) = file_or_default(settings.root_cert.as_deref(), settings, "root.crt") else {
        return missing_roots(settings, None);
    };
    if !file.exists() {
        return missing_roots(settings, Some(&file));
    }
    let roots = read_certificates(&file)?;
    Ok(Some(roots))
}

fn missing_roots(
    settings: &TlsSettings,
    file: Option<&Path>,
) -> Result<Option<Vec<CertificateDer<'static>>>> {
    if settings.mode < SslMode::VerifyCa {
        return Ok(None);
    }
    let message = match file {
        Some(file) => format!("root certificate file \"{}\" does not exist", file.display()),
        None => "there is no home directory in which to find the root certificate file".to_owned(),
    };
    Err(usage(message)
        .with_hint("name it with sslrootcert, or use the system's roots with sslrootcert=system"))
}

fn file_or_default(given: Option<&str>, settings: &TlsSettings, default: &str) -> Option<PathBuf> {
    given.map(PathBuf::from).or_else(|| settings.directory.as_ref().map(|directory| directory.join(default)))
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    read_pem(file, "certificates")
}

fn read_pem<T: PemObject>(file: &Path, what: &str) -> Result<Vec<T>> {
    let fail = |why: String| usage(format!("could not read {what} from \"{}\": {why}", file.display()));
    let found: Vec<T> = T::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| fail(error.to_string()))?;
    match found.is_empty() {
        true => Err(fail("it holds none in PEM form".to_owned())),
        false => Ok(found),
    }
}

/// What the authorities have taken back. As in libpq, the default file is not for the system's authorities,
/// and where it is not there nothing is; a file that was named has to be there, and of use.
fn revocation_lists(
    settings: &TlsSettings,
    is_checked: bool,
) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    let is_named = settings.crl.is_some() || settings.crl_directory.is_some();
    if is_named && !is_checked {
        let message =
            "sslcrl or sslcrldir is given, and without a root certificate no certificate is checked";
        return Err(usage(message.to_owned()).with_hint("name the root certificate file with sslrootcert"));
    }
    let mut files: Vec<PathBuf> = settings.crl.iter().map(PathBuf::from).collect();
    if let Some(directory) = &settings.crl_directory {
        files.extend(lists_in(directory)?);
    }
    let is_system = settings.root_cert.as_deref() == Some("system");
    if !is_named && is_checked && !is_system {
        files.extend(file_or_default(None, settings, "root.crl").filter(|file| file.exists()));
    }
    let mut lists = Vec::new();
    for file in &files {
        lists.extend(lists_of(file)?);
    }
    // The library asks the first of an issuer's, OpenSSL the newest of those that are in force.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    lists.sort_by_key(|list| Reverse(age(list, now)));
    Ok(lists)
}

fn lists_of(file: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    let lists: Vec<CertificateRevocationListDer<'_>> = read_pem(file, "certificate revocation lists")?;
    for list in &lists {
        if let Err(why) = webpki::BorrowedCertRevocationList::from_der(list) {
            let file = file.display();
            return Err(usage(format!(
                "the certificate revocation list in \"{file}\" cannot be used: {why}"
            )));
        }
    }
    Ok(lists)
}

/// Whether it is in force, and since when. `None` for what does not parse here.
fn age(list: &CertificateRevocationListDer<'_>, now: Duration) -> Option<(bool, Duration)> {
    let list = CertificateList::from_der(list).ok()?.tbs_cert_list;
    let is_in_force = list.next_update.is_none_or(|next| next.to_unix_duration() > now);
    Some((is_in_force, list.this_update.to_unix_duration()))
}

/// The files of a folder that OpenSSL would look into: named by a hash of the issuer's name, which is not
/// asked for here.
fn lists_in(directory: &str) -> Result<Vec<PathBuf>> {
    let fail = |why: String| usage(format!("could not read revocation lists from \"{directory}\": {why}"));
    let is_list = |name: &str| {
        name.split_once(".r").is_some_and(|(hash, number)| {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number && hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| fail(error.to_string()))? {
        let entry = entry.map_err(|error| fail(error.to_string()))?;
        if entry.file_name().to_str().is_some_and(is_list) {
            files.push(entry.path());
        }
    }
    match files.is_empty() {
        true => Err(fail("it holds none, expected names like 1a2b3c4d.r0".to_owned())
            .with_hint("openssl rehash gives the lists of a folder their names")),
        false => Ok(files),
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The client's certificate and key. As in libpq, a certificate file that is not there is no error:
/// the server may not ask for one.
fn client_identity(settings: &TlsSettings) -> Result<Option<Identity>> {
    if !settings.send_cert {
        return Ok(None);
    }
    let Some(cert) = file_or_default(settings.cert.as_deref(), settings, "postgresql.crt") else {
        return Ok(None);
    };
    match fs::metadata(&cert) {
        Err(error) if matches!(error.kind(), IoKind::NotFound | IoKind::NotADirectory) => return Ok(None),
        Err(error) => {
            return Err(usage(format!("could not open certificate file \"{}\": {error}", cert.display())));
        }
        Ok(_) => {}
    }
    let Some(key) = file_or_default(settings.key.as_deref(), settings, "postgresql.key") else {
        return Ok(None);
    };
    let chain = read_certificates(&cert)?;
    check_key_file(&key)?;
    let key = PrivateKeyDer::from_pem_file(&key).map_err(|_| {
        usage(format!("could not read a private key from \"{}\"", key.display()))
            .with_hint("keys must be in PEM form and not encrypted with a passphrase")
    })?;
    Ok(Some((chain, key)))
}

/// The certificate goes to servers that ask for one, which judge it. One of X.509 version 1, of which the
/// library cannot make sense, is as good to them as to libpq.
fn certified((chain, key): Identity, provider: &CryptoProvider) -> Result<CertifiedKey> {
    let unusable =
        |error: &dyn std::fmt::Display| usage(format!("the client certificate cannot be used: {error}"));
    let key = provider.key_provider.load_private_key(key).map_err(|error| unusable(&error))?;
    let of_key = key.public_key().map(|key| key.as_ref().to_vec());
    let identity = CertifiedKey::new(chain, key);
    let old = identity.cert.first().and_then(old_public_key);
    let is_other = match (identity.keys_match(), old, of_key) {
        (Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)), ..) => false,
        (Err(rustls::Error::InconsistentKeys(_)), ..) => true,
        (Err(_), Some(old), Some(of_key)) => old != of_key,
        (Err(error), ..) => return Err(unusable(&error)),
    };
    match is_other {
        true => Err(unusable(&"the private key is not that of the certificate")
            .with_hint("name the two by sslcert and sslkey, or neither by sslcertmode=disable")),
        false => Ok(identity),
    }
}

fn check_key_file(file: &Path) -> Result<()> {
    let name = file.display();
    let data = fs::metadata(file).map_err(|error| {
        usage(format!("certificate present, but not private key file \"{name}\": {error}"))
    })?;
    if !data.is_file() {
        return Err(usage(format!("private key file \"{name}\" is not a regular file")));
    }
    if too_open(&data) {
        return Err(usage(format!("private key file \"{name}\" has group or world access")).with_hint(
            "it must have permissions u=rw (0600) or less, or u=rw,g=r (0640) or less if root owns it",
        ));
    }
    Ok(())
}

#[cfg(unix)]
fn too_open(data: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let forbidden = if data.uid() == 0 { 0o037 } else { 0o077 };
    data.mode() & forbidden != 0
}

#[cfg(not(unix))]
fn too_open(_data: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::conninfo::Conninfo;
    use crate::session::surroundings::Surroundings;

    #[test]
    fn the_list_in_the_home_directory_is_read_where_certificates_are_checked_against_a_file() {
        let home = tempfile::tempdir().unwrap();
        let around = Surroundings {
            home: Some(home.path().into()),
            user: Some("u".to_owned()),
            ..Surroundings::default()
        };
        let lists = |to: &str, is_checked| {
            revocation_lists(&Conninfo::resolve_in(Some(to), &around).unwrap().unwrap().tls, is_checked)
        };
        assert!(lists("", true).unwrap().is_empty());
        fs::create_dir(home.path().join(".postgresql")).unwrap();
        fs::write(home.path().join(".postgresql/root.crl"), "no list").unwrap();
        let error = lists("", true).unwrap_err();
        assert!(error.message().contains("root.crl"), "{error}");
        assert!(lists("", false).unwrap().is_empty());
        assert!(lists("sslrootcert=system", true).unwrap().is_empty());
    }
}
