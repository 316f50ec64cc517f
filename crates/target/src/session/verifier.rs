//! Checks a server's certificate as libpq does with OpenSSL: the chain against the given roots (`verify-ca`)
//! and revocation lists where there are any, and the host name too (`verify-full`); without roots, nothing
//! but the proof that the server owns its certificate's key. Three habits of PostgreSQL installations that
//! the webpki rules refuse are taken as libpq takes them: a self-signed certificate that is itself the root,
//! a name given in the CN because there is no subjectAltName, and (unchecked only) X.509 version 1.

use super::signers::{Limit, is_for_servers, is_too_long, is_weakly_signed, may_sign};
use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, ServerName, SignatureVerificationAlgorithm,
    SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

/// The OID of commonName (RFC 5280, appendix A).
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Checks what it was told to check.
#[derive(Debug)]
pub(super) struct Verifier {
    trusted: Option<Trusted>,
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
struct Trusted {
    anchors: Arc<RootCertStore>,
    /// Knows the revocation lists, where there are any.
    with_lists: Option<Arc<WebPkiServerVerifier>>,
    /// Root certificates that may be the server's own, which no list can take back.
    own: Vec<CertificateDer<'static>>,
    /// What stands beside the roots in their file: certificates that these have signed, and that are checked
    /// as those that a server sends.
    intermediates: Vec<CertificateDer<'static>>,
    /// The roots, and which of the others are valid below them by their dates and issuers alone.
    named: RootCertStore,
    /// What each of these allows below itself.
    limits: Vec<Limit>,
    /// Why the roots do not sign what they may seem to.
    lack: Option<&'static str>,
}

impl Trusted {
    /// As with OpenSSL, a certificate that is signed by another one is no root, and a root that has run out,
    /// or is not for that, signs nothing.
    fn new(
        certificates: Vec<CertificateDer<'static>>,
        lists: Vec<CertificateRevocationListDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Trusted, VerifierBuilderError> {
        let (own, intermediates): (Vec<_>, Vec<_>) = certificates.into_iter().partition(is_root);
        let now = UnixTime::now();
        let is_out_of_date = |root: &CertificateDer<'_>| {
            matches!(
                check_dates(root, now),
                Err(Error::InvalidCertificate(CertificateError::Expired | CertificateError::NotValidYet))
            )
        };
        let dated: Vec<_> = own.iter().filter(|root| !is_out_of_date(root)).cloned().collect();
        let valid: Vec<_> = dated.iter().filter(|root| may_sign(root)).cloned().collect();
        let lack = match (dated.len() < own.len(), valid.len() < dated.len(), own.is_empty()) {
            (true, ..) => Some(
                "no valid root certificate has signed the server's; one that is given has expired or is not valid yet",
            ),
            (_, true, _) => Some(
                "no root certificate has signed the server's; one that is given may not sign those of servers, by its \
                 basicConstraints, keyUsage or extendedKeyUsage",
            ),
            (.., true) => Some("none of the root certificates is self-signed, as a root is"),
            _ => None,
        };
        let mut anchors = RootCertStore::empty();
        // One that does not parse cannot sign anything; the others still count.
        anchors.add_parsable_certificates(valid.iter().cloned());
        let mut named = anchors.clone();
        let is_sound = |certificate: &&CertificateDer<'_>| {
            check_dates(certificate, now).is_ok() && may_sign(certificate) && !is_weakly_signed(certificate)
        };
        let sound = below(&valid, intermediates.iter().filter(is_sound));
        let limits = valid.iter().chain(&sound).filter_map(Limit::of).collect();
        named.add_parsable_certificates(sound);
        let anchors = Arc::new(anchors);
        let builder = || WebPkiServerVerifier::builder_with_provider(anchors.clone(), provider.clone());
        let has_lists = !lists.is_empty();
        let with_lists = (has_lists && !anchors.is_empty())
            .then(|| builder().with_crls(lists).enforce_revocation_expiration().build())
            .transpose()?;
        let is_own = |root: &CertificateDer<'_>| !has_lists && is_for_servers(root);
        let own = own.into_iter().filter(is_own).collect();
        Ok(Trusted { anchors, with_lists, own, intermediates, named, limits, lack })
    }

    /// Of a chain that is good otherwise.
    fn check_length(
        &self,
        anchors: &RootCertStore,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Error> {
        if !self.limits.iter().any(Limit::is_some) {
            return Ok(());
        }
        let check = |path: &VerifiedPath<'_>| match is_too_long(path, &self.limits) {
            true => Err(webpki::Error::PathLenConstraintViolated),
            false => Ok(()),
        };
        let parsed = EndEntityCert::try_from(end_entity).map_err(|_| bad_encoding())?;
        let usage = KeyUsage::server_auth();
        parsed
            .verify_for_usage(algorithms, &anchors.roots, intermediates, now, usage, None, Some(&check))
            .map(drop)
            .map_err(|_| Error::General(TOO_LONG.to_owned()))
    }

    fn explain(&self, certificate: &CertificateDer<'_>, error: Error) -> Error {
        match (&error, self.lack) {
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), Some(lack)) => {
                Error::General(lack.to_owned())
            }
            (Error::InvalidCertificate(error), _) if is_of_unknown_algorithm(error) => {
                Error::General(UNKNOWN_ALGORITHM.to_owned())
            }
            _ => explain_version(certificate, error),
        }
    }
}

const TOO_LONG: &str = "more intermediate certificates stand between the root certificate and the server's than the root's basicConstraints allow";

/// The library knows fewer of them than OpenSSL.
const UNKNOWN_ALGORITHM: &str = "howdah cannot check a signature of the chain, as by keys of the curve P-521; that of an intermediate certificate it need \
     not, where that stands beside the root in the file of sslrootcert";

fn is_of_unknown_algorithm(error: &CertificateError) -> bool {
    use CertificateError::{
        UnsupportedSignatureAlgorithmContext, UnsupportedSignatureAlgorithmForPublicKeyContext,
    };
    matches!(
        error,
        UnsupportedSignatureAlgorithmContext { .. } | UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
    )
}

/// Not that the chain is bad, but that the library cannot tell: it knows fewer algorithms than OpenSSL, and
/// nothing of policies.
fn is_unknown(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(other))) => {
            matches!(other.downcast_ref(), Some(webpki::Error::UnsupportedCriticalExtension))
        }
        Error::InvalidCertificate(error) => is_of_unknown_algorithm(error),
        _ => false,
    }
}

/// Those whose issuers are named as these roots, or as one of them.
fn below<'a>(
    roots: &[CertificateDer<'static>],
    certificates: impl Iterator<Item = &'a CertificateDer<'static>>,
) -> Vec<CertificateDer<'static>> {
    let of = |certificate: &CertificateDer<'_>| parse(certificate).ok().map(|parsed| parsed.tbs_certificate);
    let mut names: Vec<Name> = roots.iter().filter_map(|root| Some(of(root)?.subject)).collect();
    let mut rest: Vec<_> =
        certificates.filter_map(|certificate| Some((certificate, of(certificate)?))).collect();
    let mut found = Vec::new();
    while let Some(at) = rest.iter().position(|(_, parsed)| names.contains(&parsed.issuer)) {
        let (certificate, parsed) = rest.swap_remove(at);
        names.push(parsed.subject);
        found.push(certificate.clone());
    }
    found
}

/// What makes no sense here is left to the library.
fn is_root(certificate: &CertificateDer<'_>) -> bool {
    parse(certificate).map_or(true, |parsed| parsed.tbs_certificate.issuer == parsed.tbs_certificate.subject)
}

impl Verifier {
    /// `roots` as `None` trusts any certificate. With `lists`, every certificate of a chain below its root
    /// has to be one that a list of its issuer, which has not run out, does not name; so it is with libpq.
    ///
    /// # Errors
    /// A list that is none, or no root that can be used beside one.
    pub(super) fn new(
        roots: Option<Vec<CertificateDer<'static>>>,
        lists: Vec<CertificateRevocationListDer<'static>>,
        check_name: bool,
        provider: Arc<CryptoProvider>,
    ) -> Result<Verifier, VerifierBuilderError> {
        let trusted = roots.map(|roots| Trusted::new(roots, lists, &provider)).transpose()?;
        Ok(Verifier { trusted, check_name, provider })
    }

    fn check_chain(
        &self,
        trusted: &Trusted,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let known = trusted.intermediates.iter().map(|known| CertificateDer::from(known.as_ref()));
        let intermediates: Vec<_> = intermediates.iter().cloned().chain(known).collect();
        let algorithms = self.provider.signature_verification_algorithms.all;
        let check_length = |anchors: &RootCertStore| {
            trusted.check_length(anchors, end_entity, &intermediates, now, algorithms)
        };
        if let Some(with_lists) = &trusted.with_lists {
            let checked = with_lists.verify_server_cert(end_entity, &intermediates, server_name, &[], now);
            return match checked {
                // What it looks at last, when the chain is good; names have their own rules here.
                Ok(_) | Err(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                    check_length(&trusted.anchors)
                }
                Err(error) => Err(trusted.explain(end_entity, error)),
            };
        }
        if trusted.own.iter().any(|certificate| certificate == end_entity) {
            return check_dates(end_entity, now);
        }
        let parsed =
            ParsedCertificate::try_from(end_entity).map_err(|error| explain_version(end_entity, error))?;
        let below = |anchors: &RootCertStore| {
            verify_server_cert_signed_by_trust_anchor(&parsed, anchors, &intermediates, now, algorithms)?;
            check_length(anchors)
        };
        // What the library cannot tell of a certificate that the user has put beside its root is taken for
        // good: OpenSSL can tell it.
        let checked = match below(&trusted.anchors) {
            Err(error) if is_unknown(&error) => below(&trusted.named),
            checked => checked,
        };
        checked.map_err(|error| trusted.explain(end_entity, error))
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trusted) = &self.trusted {
            self.check_chain(trusted, end_entity, intermediates, server_name, now)?;
        }
        if self.check_name {
            check_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        if ParsedCertificate::try_from(cert).is_ok() {
            return verify_tls13_signature(message, cert, signature, algorithms);
        }
        // `openssl x509 -req`, as the PostgreSQL documentation shows it, makes version 1 certificates.
        // Their key is as good as any; a chain through them was checked above or not asked for.
        let parsed = parse(cert)?;
        let key = parsed.tbs_certificate.subject_public_key_info.to_der().map_err(|_| bad_encoding())?;
        verify_tls13_signature_with_raw_key(
            message,
            &SubjectPublicKeyInfoDer::from(key),
            signature,
            algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn bad_encoding() -> Error {
    Error::InvalidCertificate(CertificateError::BadEncoding)
}

fn parse(certificate: &CertificateDer<'_>) -> Result<Certificate, Error> {
    Certificate::from_der(certificate).map_err(|_| bad_encoding())
}

/// Version 1 certificates cannot be checked by the webpki rules; the library's own word for that is obscure.
fn explain_version(certificate: &CertificateDer<'_>, error: Error) -> Error {
    match parse(certificate) {
        Ok(parsed) if parsed.tbs_certificate.version != x509_cert::Version::V3 => Error::General(
            "the server's certificate is not X.509 version 3; sign it with extensions".to_owned(),
        ),
        _ => error,
    }
}

/// The public key of a certificate before version 3.
pub(super) fn old_public_key(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let parsed = parse(certificate).ok().map(|parsed| parsed.tbs_certificate)?;
    let is_old = parsed.version != x509_cert::Version::V3;
    parsed.subject_public_key_info.to_der().ok().filter(|_| is_old)
}

fn check_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let validity = parse(certificate)?.tbs_certificate.validity;
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
        return Err(Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}

fn check_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    let by_rules =
        ParsedCertificate::try_from(certificate).and_then(|parsed| verify_server_name(&parsed, name));
    let Err(error) = by_rules else { return Ok(()) };
    match common_name_without_alternatives(certificate)? {
        Some(common_name) if matches_common_name(&common_name, &name.to_str()) => Ok(()),
        _ => Err(error),
    }
}

/// The CN, unless the certificate names hosts in a subjectAltName, which then alone counts.
fn common_name_without_alternatives(certificate: &CertificateDer<'_>) -> Result<Option<String>, Error> {
    let parsed = parse(certificate)?.tbs_certificate;
    let alternatives = parsed.get::<SubjectAltName>().map_err(|_| bad_encoding())?;
    let names_hosts =
        |name: &GeneralName| matches!(name, GeneralName::DnsName(_) | GeneralName::IpAddress(_));
    if alternatives.is_some_and(|(_, names)| names.0.iter().any(names_hosts)) {
        return Ok(None);
    }
    let mut attributes = parsed.subject.0.iter().flat_map(|part| part.0.iter());
    let common_name = attributes.rfind(|attribute| attribute.oid == COMMON_NAME);
    Ok(common_name.and_then(|attribute| String::from_utf8(attribute.value.value().to_vec()).ok()))
}

/// Equal but for case, or `*.` in place of the first label; libpq's `wildcard_certificate_match`.
fn matches_common_name(pattern: &str, host: &str) -> bool {
    if pattern.eq_ignore_ascii_case(host) {
        return !pattern.is_empty();
    }
    let Some(suffix) = pattern.strip_prefix("*.") else { return false };
    // A lone "*.com" matches nothing, and an address has no labels.
    if !suffix.contains('.') || host.parse::<std::net::IpAddr>().is_ok() {
        return false;
    }
    host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_common_name_stands_for_one_label() {
        for (pattern, host, matches) in [
            ("db.example.org", "DB.example.org", true),
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "a.db.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.org", "example.org", false),
            ("*.0.0.1", "127.0.0.1", false),
            ("", "", false),
        ] {
            assert_eq!(matches_common_name(pattern, host), matches, "{pattern} {host}");
        }
    }
}
