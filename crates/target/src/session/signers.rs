//! What a trusted certificate says of its own use, which the library asks of intermediate certificates only, and OpenSSL of roots
//! too: whether it may sign others, those of servers among them, and how many may stand between.
//! Source: RFC 5280, 4.2.1; OpenSSL's `check_ca` and `check_purpose_ssl_server`.

use rustls::pki_types::{CertificateDer, TrustAnchor};
use webpki::VerifiedPath;
use x509_cert::TbsCertificate;
use x509_cert::Version;
use x509_cert::der::Decode;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::oid::AssociatedOid;
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
    intermediates: usize,
}

impl Limit {
    /// `None`: as many as there are.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Limit> {
        let parsed = tbs(certificate)?;
        let (_, constraints) = parsed.get::<BasicConstraints>().ok()??;
        let intermediates = usize::from(constraints.path_len_constraint?);
        let of = webpki::anchor_from_trusted_cert(certificate).ok()?.to_owned();
        Some(Limit { of, intermediates })
    }

    /// Those that an authority has issued to itself do not count.
    pub(super) fn is_exceeded_by(&self, path: &VerifiedPath<'_>) -> bool {
        let counted = path.intermediate_certificates().filter(|one| one.subject() != one.issuer());
        *path.anchor() == self.of && counted.count() > self.intermediates
    }
}

/// What makes no sense here is left to the library.
pub(super) fn may_sign(certificate: &CertificateDer<'_>) -> bool {
    tbs(certificate).is_none_or(|parsed| is_authority(&parsed) && is_for_servers(&parsed))
}

fn is_authority(certificate: &TbsCertificate) -> bool {
    // Extensions came with version 3.
    if certificate.version != Version::V3 {
        return true;
    }
    let usage = extension::<KeyUsage>(certificate);
    if usage.is_some_and(|usage| !usage.key_cert_sign()) {
        return false;
    }
    // Without a word of the one, OpenSSL takes that of the other.
    extension::<BasicConstraints>(certificate).map_or(usage.is_some(), |constraints| constraints.ca)
}

fn is_for_servers(certificate: &TbsCertificate) -> bool {
    extension::<ExtendedKeyUsage>(certificate).is_none_or(|uses| uses.0.contains(&FOR_SERVERS))
}

/// Its signature rests on a hash for which others can be found.
pub(super) fn is_weakly_signed(certificate: &CertificateDer<'_>) -> bool {
    tbs(certificate).is_some_and(|parsed| WEAK_SIGNATURES.contains(&parsed.signature.oid))
}

fn extension<'a, T: Decode<'a> + AssociatedOid>(certificate: &'a TbsCertificate) -> Option<T> {
    certificate.get::<T>().ok().flatten().map(|(_, extension)| extension)
}

fn tbs(certificate: &CertificateDer<'_>) -> Option<TbsCertificate> {
    x509_cert::Certificate::from_der(certificate).ok().map(|parsed| parsed.tbs_certificate)
}
