//! What went wrong while reading, as the engine must know it. Errors of libraries enter; an [`Error`] leaves
//! whose kind says whether trying again can help. Their texts do not pass: they may hold URLs and signatures.

use crate::location::Scheme;
use crate::proxy;
use howdah_model::{Error, ErrorKind, Result, counted};
use object_store::client::HttpError;
use std::error::Error as StdError;
use std::fmt;

/// An answer that is not 2xx.
#[derive(Debug)]
pub(crate) struct Status {
    pub(crate) status: u16,
    /// The `<Code>` of a store's XML answer: `SlowDown`, `NoSuchKey`.
    pub(crate) code: Option<String>,
    /// Where S3 says that the bucket is.
    pub(crate) region: Option<String>,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "HTTP status {} ({code})", self.status),
            None => write!(f, "HTTP status {}", self.status),
        }
    }
}

impl StdError for Status {}

/// Whom to tell what to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Http,
    Store { scheme: Scheme, anonymous: bool },
}

/// What became of a request to a store, with the address that was asked, which the library takes out of its
/// errors.
#[derive(Debug)]
pub(crate) struct Unanswered {
    /// Host and port.
    pub(crate) address: Option<String>,
    /// Those of the proxy that it was asked by.
    pub(crate) proxy: Option<String>,
    pub(crate) cause: HttpError,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer")
    }
}

impl StdError for Unanswered {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.cause)
    }
}

/// The error of a request; `location` is as shown to the user.
pub(crate) fn of_request(error: &(dyn StdError + 'static), access: Access, location: &str) -> Error {
    chain(error)
        .find_map(|cause| told(cause, access))
        .unwrap_or_else(|| Error::new(ErrorKind::SourceIo, "the request failed in a way that is not known"))
        .in_file(location)
}

/// What of a bucket was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Key,
    Listing,
}

/// As [`of_request`], where a denial may mean more than it says.
pub(crate) fn of_asking(
    error: &(dyn StdError + 'static),
    access: Access,
    location: &str,
    asked: Asked,
) -> Error {
    let told = of_request(error, access, location);
    let is_plain = |status: &&Status| match status.code.as_deref() {
        None | Some("AccessDenied") => status.status == 403,
        // Azure's, which tells whether a key is there to whoever may read it.
        Some("AuthorizationPermissionMismatch") => asked == Asked::Listing,
        Some(_) => false,
    };
    let Some(status) = chain(error).filter_map(|cause| cause.downcast_ref()).find(is_plain) else {
        return told;
    };
    let (what, way_out) = match asked {
        Asked::Key => (
            "access is denied, or there is no such object",
            "check the key: who may not list the bucket is told the same of a key that is missing",
        ),
        Asked::Listing => (
            "listing the bucket is denied",
            "name its objects one by one, which needs no right to list (s3:ListBucket, storage.objects.list, l in a SAS token)",
        ),
    };
    let hint: Vec<&str> = told.hint().into_iter().chain([way_out]).collect();
    Error::new(told.kind(), format!("{what}: {status}")).in_file(location).with_hint(hint.join("; or "))
}

/// The request was refused, and the answer does not say why.
pub(crate) fn is_refused_unsaid(error: &(dyn StdError + 'static)) -> bool {
    let unsaid = |status: &Status| matches!(status.status, 400 | 403) && status.code.is_none();
    chain(error).filter_map(|cause| cause.downcast_ref()).any(unsaid)
}

/// Where the store says that the bucket is, if that is what was wrong.
pub(crate) fn other_region<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a str> {
    let statuses = chain(error).filter_map(|cause| cause.downcast_ref::<Status>());
    statuses.filter(|status| may_be_elsewhere(status)).find_map(|status| status.region.as_deref())
}

/// The source changed between two reads.
pub(crate) fn changed(location: &str, expected: &str, got: &str) -> Error {
    let message = format!("the source changed: expected version {expected}, got {got}");
    Error::new(ErrorKind::SourceChanged, message)
        .in_file(location)
        .with_hint("load a source that stays as it is, or start a new job for the new content")
}

/// Another file is there under the name, with the size and time of the one that was listed; or it was written
/// and its time set back.
pub(crate) fn replaced(location: &str) -> Error {
    let message = "the source changed: another file took its place, or it was written or renamed, since the load began, with size and time as before";
    Error::new(ErrorKind::SourceChanged, message)
        .in_file(location)
        .with_hint("load a source that stays as it is, or start a new job for the new content")
}

/// The body ended before its stated end.
pub(crate) fn short(location: &str, reached: u64, end: u64) -> Error {
    let message = format!("the answer broke off at stored byte {reached}, expected {}", counted(end, "byte"));
    Error::new(ErrorKind::SourceTransient, message).in_file(location)
}

/// A failed call of the operating system on a local path.
pub(crate) fn of_file(error: &std::io::Error, doing: &str, location: &str) -> Error {
    use std::io::ErrorKind as Io;
    let kind = match error.kind() {
        Io::NotFound | Io::NotADirectory => ErrorKind::SourceNotFound,
        Io::PermissionDenied => ErrorKind::SourceDenied,
        // What a network file system answers while its server is away.
        Io::TimedOut | Io::StaleNetworkFileHandle | Io::ConnectionReset | Io::HostUnreachable => {
            ErrorKind::SourceTransient
        }
        _ => ErrorKind::SourceIo,
    };
    let error = Error::new(kind, format!("{doing} failed: {error}")).in_file(location);
    match kind {
        ErrorKind::SourceDenied => {
            error.with_hint("let the user that runs howdah read it (and enter its folders)")
        }
        _ => error,
    }
}

/// Waiting, never ending, is what the standard library leaves to its callers.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Runs what blocks on a disk elsewhere.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let lost = |_| Error::new(ErrorKind::Internal, "a thread that was listing files ended early");
    tokio::task::spawn_blocking(work).await.map_err(lost)?
}

/// An error and what caused it. `io::Error` hides the error it wraps, so that is looked into as well.
pub(crate) fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause| {
        let cause: &'a (dyn StdError + 'static) = *cause;
        match cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn StdError + 'static)),
            None => cause.source(),
        }
    })
}

/// As the library calls a server's own certificate that may sign others; it has no type for that here.
const OF_AUTHORITY: &str = "CaUsedAsEndEntity";

fn untrusted(reason: &rustls::CertificateError) -> Error {
    const UNTRUSTED: &str = "the server's certificate is not trusted";
    let is_of_authority = format!("{reason:?}").contains(OF_AUTHORITY);
    let (message, hint) = match is_of_authority {
        true => (
            format!("{UNTRUSTED}: one that is marked as an authority (CA:TRUE) is not taken for a server's"),
            "give the server a certificate with basicConstraints CA:FALSE, as openssl req -x509 -addext basicConstraints=CA:FALSE makes, and \
             name that in SSL_CERT_FILE",
        ),
        false => (
            format!("{UNTRUSTED}: {reason}"),
            "install the authority's certificate on this machine, or name a file with it in SSL_CERT_FILE",
        ),
    };
    Error::new(ErrorKind::SourceIo, message).with_hint(hint)
}

/// What this one cause says, if anything.
fn told(cause: &(dyn StdError + 'static), access: Access) -> Option<Error> {
    // What was asked for on the way, credentials, has said already what is wrong.
    if let Some(error) = cause.downcast_ref::<Error>() {
        return Some(error.clone());
    }
    if let Some(status) = cause.downcast_ref::<Status>() {
        return Some(of_status(status, access));
    }
    if let Some(refused) = cause.downcast_ref::<crate::redirect::RedirectRefused>() {
        return Some(Error::new(ErrorKind::SourceIo, refused.to_string()));
    }
    if let Some(rustls::Error::InvalidCertificate(reason)) = cause.downcast_ref::<rustls::Error>() {
        if !crate::client::knows_authorities() {
            let message = "no https server can be trusted: this machine has no certificates of authorities";
            return Some(Error::new(ErrorKind::SourceIo, message).with_hint(
                "install the package ca-certificates, or name a file with certificates in SSL_CERT_FILE",
            ));
        }
        return Some(untrusted(reason));
    }
    if let Some(unanswered) = cause.downcast_ref::<Unanswered>() {
        let error = chain(&unanswered.cause).find_map(|cause| cause.downcast_ref::<reqwest::Error>())?;
        return of_client(error, unanswered.address.as_deref(), unanswered.proxy.as_deref());
    }
    if let Some(error) = cause.downcast_ref::<reqwest::Error>() {
        let proxy = error.url().and_then(|url| proxy::between(url.as_str()));
        return of_client(error, address_in(error).as_deref(), proxy.as_deref());
    }
    if let Some(error) = cause.downcast_ref::<object_store::path::Error>() {
        return Some(unnameable(error));
    }
    let text = cause.to_string();
    lacking_header(&text).or_else(|| lacking_token(&text))
}

/// The library writes keys in a way of its own, in which some have no name. A presigned URL holds most of
/// them percent-encoded.
fn unnameable(error: &object_store::path::Error) -> Error {
    use object_store::path::Error as Unnameable;
    const ANY_WAY: &str = "give a presigned URL, or copy the object to another key";
    // HTTP resolves these in a URL before anybody sees it.
    const COPY: &str = "copy the object to another key";
    let (key, what) = match error {
        Unnameable::EmptySegment { path } => (path.as_str(), "it has an empty part"),
        Unnameable::BadSegment { path, .. } => {
            (path.as_str(), "it has a control character, or a part that is . or ..")
        }
        _ => ("", "it is not in UTF-8"),
    };
    let has_dots = key.split('/').any(|part| part == "." || part == "..");
    Error::new(ErrorKind::SourceIo, format!("the key {key:?} cannot be addressed: {what}"))
        .with_hint(if has_dots { COPY } else { ANY_WAY })
}

/// The library's error of an answer has a type of its own, which is not public.
fn lacking_header(text: &str) -> Option<Error> {
    let name = ["Content-Length", "Last-Modified", "ETag"]
        .into_iter()
        .find(|name| text.strip_prefix(name) == Some(" Header missing from response"))?;
    Some(Error::new(ErrorKind::SourceIo, format!("the store's answer has no header {name}")))
}

/// Of a web identity; the library tells it as a text.
fn lacking_token(text: &str) -> Option<Error> {
    let reason = text.strip_prefix("Failed to read token file ")?;
    let message = format!("the token file of the web identity cannot be read: {reason}");
    let hint = "AWS_WEB_IDENTITY_TOKEN_FILE names it";
    Some(Error::new(ErrorKind::SourceDenied, message).with_hint(hint))
}

/// Of a host and its port, as it may be shown.
pub(crate) fn address(host: &str, port: Option<u16>) -> Option<String> {
    port.map(|port| format!("{host}:{port}"))
}

fn address_in(error: &reqwest::Error) -> Option<String> {
    let url = error.url()?;
    address(url.host_str()?, url.port_or_known_default())
}

/// The error of a request that no proxy is asked for.
pub(crate) fn past_proxies(error: &reqwest::Error) -> Error {
    of_client(error, address_in(error).as_deref(), None)
        .unwrap_or_else(|| of_request(error, Access::Http, ""))
}

const PROXY_HINT: &str = "the environment names the proxy (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, also in small letters); NO_PROXY \
    with the server's host asks it without one";

/// `None` where the cause below says it better.
fn of_client(error: &reqwest::Error, address: Option<&str>, proxy: Option<&str>) -> Option<Error> {
    let of_tls = chain(error).skip(1).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    if matches!(of_tls, Some(rustls::Error::InvalidCertificate(_))) {
        return None;
    }
    let mut at = address.map(|address| format!(" at {address}")).unwrap_or_default();
    if let Some(proxy) = proxy {
        at += &format!(" (by the proxy at {proxy})");
    }
    if error.is_connect() && matches!(of_tls, Some(rustls::Error::InvalidMessage(_))) {
        let message = format!("the server{at} does not speak TLS");
        // A balancer that is overloaded may answer so, too, and a load that is at work bears it.
        return Some(Error::new(ErrorKind::SourceTransient, message).with_hint(
            "write http:// where the address is named (in the URL, or in AWS_ENDPOINT_URL_S3), or give the port of https",
        ));
    }
    let what = if error.is_timeout() {
        format!("the server{at} did not answer in time")
    } else if error.is_connect() {
        format!("no connection to the server{at}")
    } else if error.is_builder() || error.is_redirect() {
        return Some(Error::new(ErrorKind::SourceIo, "the request cannot be made"));
    } else {
        "the connection broke".to_owned()
    };
    let reason = chain(error).filter_map(|cause| cause.downcast_ref::<std::io::Error>()).last();
    let message = match reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what,
    };
    let broken = Error::new(ErrorKind::SourceTransient, message);
    Some(if error.is_connect() && proxy.is_some() { broken.with_hint(PROXY_HINT) } else { broken })
}

/// Who has no credentials.
const NOBODY_TO_AZURE: Access = Access::Store { scheme: Scheme::Az, anonymous: true };

/// What versitygw says of an access key, with the status 404.
const UNKNOWN_TO_VERSITYGW: &str = "XAdminUserNotFound";

fn of_status(status: &Status, access: Access) -> Error {
    // https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
    let code = status.code.as_deref().unwrap_or_default();
    if let Some(error) = of_other_region(status) {
        return error;
    }
    let (kind, what) = match (status.status, code) {
        (300..=399, _) if access != Access::Http => {
            (ErrorKind::SourceIo, "the store sends to another address, where no credentials go")
        }
        (_, "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired") => {
            (ErrorKind::SourceDenied, "the credentials have expired")
        }
        (_, "RequestTimeTooSkewed") => (ErrorKind::SourceDenied, "the clock of this machine is wrong"),
        (_, "SignatureDoesNotMatch") => (ErrorKind::SourceDenied, "the secret key is not the right one"),
        (_, "InvalidAccessKeyId" | UNKNOWN_TO_VERSITYGW) => {
            (ErrorKind::SourceDenied, "the store does not know the access key")
        }
        (_, "InvalidObjectState" | "BlobArchived" | "BlobBeingRehydrated") => {
            (ErrorKind::SourceIo, "the object is archived")
        }
        (_, "AuthenticationFailed") => {
            (ErrorKind::SourceDenied, "the key or token is not the right one, or has expired")
        }
        (400 | 401, "invalid_grant" | "invalid_client" | "unauthorized_client" | "invalid_request") => {
            (ErrorKind::SourceDenied, "whoever hands out tokens refuses the credentials")
        }
        (409, "PublicAccessNotPermitted") => {
            (ErrorKind::SourceDenied, "nobody may read without credentials in this account")
        }
        (400, "InvalidToken") => (ErrorKind::SourceDenied, "access is denied"),
        (400, "RequestTimeout") => (ErrorKind::SourceTransient, "the server is busy"),
        (401 | 403 | 407, _) => (ErrorKind::SourceDenied, "access is denied"),
        (404, "NoSuchBucket") => (ErrorKind::SourceNotFound, "there is no such bucket"),
        (404, "ContainerNotFound") => (ErrorKind::SourceNotFound, "there is no such container"),
        // What Azure says of containers that are not for everybody.
        (404, "ResourceNotFound") if access == NOBODY_TO_AZURE => {
            (ErrorKind::SourceDenied, "there is no such container, or it is not for everybody to read")
        }
        (404 | 410, _) => (ErrorKind::SourceNotFound, "there is no such object"),
        (412, _) => (ErrorKind::SourceChanged, "the source changed since it was listed"),
        (408 | 425 | 429 | 500..=599, _) => (ErrorKind::SourceTransient, "the server is busy or broken"),
        (416, _) => (ErrorKind::SourceChanged, "the source became shorter"),
        _ => (ErrorKind::SourceIo, "the server refused the request"),
    };
    let error = Error::new(kind, format!("{what}: {status}"));
    match hint_of_code(code, access).or_else(|| hint(kind, status, access)) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The store has said which region is the right one.
fn of_other_region(status: &Status) -> Option<Error> {
    let region = status.region.as_deref().filter(|_| may_be_elsewhere(status))?;
    let message = format!("the bucket is in the region {region}: {status}");
    let hint = format!(
        "set AWS_REGION={region}, and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, where it is set, to the address there"
    );
    Some(Error::new(ErrorKind::SourceIo, message).with_hint(hint))
}

fn hint_of_code(code: &str, access: Access) -> Option<&'static str> {
    let is_aws = matches!(access, Access::Store { scheme: Scheme::S3, .. });
    let is_azure = matches!(access, Access::Store { scheme: Scheme::Az, .. });
    match code {
        "BlobArchived" | "BlobBeingRehydrated" => {
            Some("bring it back first (az storage blob set-tier --tier Hot), which takes hours")
        }
        "AuthenticationFailed" if is_azure && access != NOBODY_TO_AZURE => Some(
            "set AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN with one that has not expired, for the account that is asked; and look at \
             the clock of this machine",
        ),
        "AuthorizationFailure" if is_azure && access != NOBODY_TO_AZURE => Some(
            "set AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN with one that has not expired; or let this machine through the network rules \
             of the account",
        ),
        "AuthorizationPermissionMismatch" if is_azure => Some(
            "a SAS token needs the permissions r and l (sp=rl), an identity the role Storage Blob Data Reader",
        ),
        "InvalidResourceName" | "InvalidUri" if is_azure => Some(
            "check the container's name, and the address that is set: a server that stands in for Azure has the account in it \
             (http://127.0.0.1:10000/devstoreaccount1)",
        ),
        "invalid_grant" if !is_azure => Some("log in again: gcloud auth application-default login"),
        "SignatureDoesNotMatch" if is_aws => Some(
            "set AWS_SECRET_ACCESS_KEY to the one that was made with AWS_ACCESS_KEY_ID, or set AWS_PROFILE; a proxy that changes requests \
             spoils their signature, too",
        ),
        "InvalidAccessKeyId" | UNKNOWN_TO_VERSITYGW if is_aws => Some(
            "set AWS_ACCESS_KEY_ID, or AWS_PROFILE, for this store; a key of a role (ASIA...) needs AWS_SESSION_TOKEN, and the store may be \
             another than AWS_ENDPOINT_URL names",
        ),
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" => Some(
            "log in again (aws sso login), or set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN anew",
        ),
        "RequestTimeTooSkewed" => {
            Some("set the clock, by NTP or chronyd, to less than 15 minutes from the store's")
        }
        "InvalidRequest" if is_aws => Some(
            "an object that is encrypted with its owner's key (SSE-C) cannot be read: copy it to one that is not",
        ),
        "InvalidObjectState" => Some("restore it first (aws s3api restore-object)"),
        _ => None,
    }
}

fn hint(kind: ErrorKind, status: &Status, access: Access) -> Option<&'static str> {
    const AWS: &str = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN for \
                       temporary ones), of someone with s3:GetObject and s3:ListBucket (and kms:Decrypt where a key of KMS encrypts)";
    const AWS_ANONYMOUS: &str = "no AWS credentials were found, so the request was not signed: set AWS_PROFILE, or \
                                 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
    const GOOGLE: &str = "set GOOGLE_APPLICATION_CREDENTIALS to the file of an account that may read the bucket \
                          (storage.objects.get and storage.objects.list)";
    const GOOGLE_ANONYMOUS: &str = "no Google credentials were found, so the request was not signed: set \
                                    GOOGLE_APPLICATION_CREDENTIALS, or log in by gcloud auth application-default login";
    const AZURE: &str =
        "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or another way in that AZURE_* names";
    const AZURE_ANONYMOUS: &str = "no Azure credentials were found, so the request was not signed: set AZURE_STORAGE_KEY, \
                                   AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING";
    match (kind, access) {
        (ErrorKind::SourceDenied, Access::Http) => {
            Some("sign the URL anew, or write user:password@ before the host")
        }
        (ErrorKind::SourceDenied, Access::Store { scheme: Scheme::S3, anonymous }) => {
            Some(if anonymous { AWS_ANONYMOUS } else { AWS })
        }
        (ErrorKind::SourceDenied, Access::Store { scheme: Scheme::Gs, anonymous }) => {
            Some(if anonymous { GOOGLE_ANONYMOUS } else { GOOGLE })
        }
        (ErrorKind::SourceDenied, Access::Store { scheme: Scheme::Az, anonymous }) => {
            Some(if anonymous { AZURE_ANONYMOUS } else { AZURE })
        }
        (ErrorKind::SourceChanged, _) => {
            Some("load a source that stays as it is, or start a new job for the new content")
        }
        (_, Access::Store { scheme: Scheme::S3, .. }) if may_be_elsewhere(status) => Some(
            "the bucket may be in another region: set AWS_REGION, and AWS_ENDPOINT_URL_S3 for a store of your own",
        ),
        _ => None,
    }
}

/// Another region is what is wrong, or may be for all that the answer says.
fn may_be_elsewhere(status: &Status) -> bool {
    match status.code.as_deref() {
        None => matches!(status.status, 301 | 302 | 307 | 308 | 400),
        Some(code) => [
            "PermanentRedirect",
            "TemporaryRedirect",
            "Redirect",
            "AuthorizationHeaderMalformed",
            "IllegalLocationConstraintException",
        ]
        .contains(&code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S3: Access = Access::Store { scheme: Scheme::S3, anonymous: true };

    fn kind(status: u16, code: Option<&str>) -> ErrorKind {
        let status = Status { status, code: code.map(str::to_owned), region: None };
        of_request(&status, S3, "s3://b/k").kind()
    }

    #[test]
    fn the_kind_follows_from_the_status() {
        assert_eq!(kind(404, None), ErrorKind::SourceNotFound);
        assert_eq!(kind(403, None), ErrorKind::SourceDenied);
        assert_eq!(kind(400, Some("ExpiredToken")), ErrorKind::SourceDenied);
        assert_eq!(kind(412, None), ErrorKind::SourceChanged);
        for status in [429, 500, 503] {
            assert_eq!(kind(status, Some("SlowDown")), ErrorKind::SourceTransient);
        }
        assert_eq!(kind(400, None), ErrorKind::SourceIo);
    }

    #[test]
    fn a_denial_names_what_to_set() {
        let status = Status { status: 403, code: Some("AccessDenied".into()), region: None };
        let error = of_request(&status, S3, "s3://b/k");
        assert!(error.hint().unwrap().contains("AWS_PROFILE"));
        assert_eq!(error.to_string(), "file s3://b/k: access is denied: HTTP status 403 (AccessDenied)");
    }

    #[test]
    fn causes_are_found_inside_io_errors() {
        let status = Status { status: 503, code: None, region: None };
        let wrapped = std::io::Error::other(std::io::Error::other(status));
        assert_eq!(of_request(&wrapped, S3, "x").kind(), ErrorKind::SourceTransient);
    }
}
