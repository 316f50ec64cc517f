//! What a trusted certificate says of its own use, which the library asks of intermediate certificates only,
//! and OpenSSL of roots too: whether it may sign others, those of servers among them, and how many may stand
//! between. Source: RFC 5280, 4.2.1; OpenSSL's `check_ca` and `check_purpose_ssl_server`.

use rustls::pki_types::{CertificateDer, TrustAnchor};
use webpki::VerifiedPath;
use x509_cert::TbsCertificate;
use x509_cert::Version;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::oid::AssociatedOid;
use x509_cert::der::{self, Decode};
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage};

/// serverAuth; to OpenSSL and the library anyExtendedKeyUsage alone does not do.
const FOR_SERVERS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");

/// RSA with MD5 and SHA-1, ECDSA and DSA with SHA-1.
const WEAK_SIGNATURES: [ObjectIdentifier; 4] = [
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.4"),
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5"),
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.1"),
    ObjectIdentifier::new_unwrap("1.2.840.10040.4.3"),
];

/// How many intermediate certificates a trusted one allows below itself.
#[derive(Debug)]
pub(super) struct Limit {
    of: TrustAnchor<'static>,
    /// `None`: as many as there are.
    intermediates: Option<usize>,
}

impl Limit {
    /// `None` for what can be no anchor.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Limit> {
        let constraints = extension::<BasicConstraints>(&tbs(certificate)?).ok().flatten();
        let intermediates = constraints.and_then(|constraints| constraints.path_len_constraint);
        let of = webpki::anchor_from_trusted_cert(certificate).ok()?.to_owned();
        Some(Limit { of, intermediates: intermediates.map(usize::from) })
    }

    pub(super) fn is_some(&self) -> bool {
        self.intermediates.is_some()
    }
}

/// The path has more than its anchor allows. An authority may have several certificates with the same key:
/// one that allows it is enough. Those that an authority has issued to itself do not count.
pub(super) fn is_too_long(path: &VerifiedPath<'_>, limits: &[Limit]) -> bool {
    let intermediates = path.intermediate_certificates().filter(|one| one.subject() != one.issuer()).count();
    let mut of_anchor = limits.iter().filter(|limit| *path.anchor() == limit.of).peekable();
    of_anchor.peek().is_some()
        && of_anchor.all(|limit| limit.intermediates.is_some_and(|most| intermediates > most))
}

/// What makes no sense here is left to the library.
pub(super) fn may_sign(certificate: &CertificateDer<'_>) -> bool {
    tbs(certificate).is_none_or(|parsed| is_authority(&parsed) && is_of_server_use(&parsed))
}

/// The same of a certificate that is a server's own.
pub(super) fn is_for_servers(certificate: &CertificateDer<'_>) -> bool {
    tbs(certificate).is_none_or(|parsed| is_of_server_use(&parsed))
}

fn is_authority(certificate: &TbsCertificate) -> bool {
    // Extensions came with version 3; before, the roots alone were known to be authorities.
    if certificate.version != Version::V3 {
        return certificate.issuer == certificate.subject;
    }
    let (Ok(usage), Ok(constraints)) =
        (extension::<KeyUsage>(certificate), extension::<BasicConstraints>(certificate))
    else {
        return true;
    };
    if usage.is_some_and(|usage| !usage.key_cert_sign()) {
        return false;
    }
    // Without a word of the one, OpenSSL takes that of the other.
    constraints.map_or(usage.is_some(), |constraints| constraints.ca)
}

fn is_of_server_use(certificate: &TbsCertificate) -> bool {
    let uses = extension::<ExtendedKeyUsage>(certificate);
    !uses.is_ok_and(|uses| uses.is_some_and(|uses| !uses.0.contains(&FOR_SERVERS)))
}

/// Its signature rests on a hash for which others can be found.
pub(super) fn is_weakly_signed(certificate: &CertificateDer<'_>) -> bool {
    tbs(certificate).is_some_and(|parsed| WEAK_SIGNATURES.contains(&parsed.signature.oid))
}

fn extension<'a, T: Decode<'a> + AssociatedOid>(certificate: &'a TbsCertificate) -> der::Result<Option<T>> {
    Ok(certificate.get::<T>()?.map(|(_, extension)| extension))
}

fn tbs(certificate: &CertificateDer<'_>) -> Option<TbsCertificate> {
    x509_cert::Certificate::from_der(certificate).ok().map(|parsed| parsed.tbs_certificate)
}
