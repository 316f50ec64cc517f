//! What the user wrote, told apart: standard input, a local path, a bucket, a URL. Text enters; a
//! [`Location`] leaves, and for URLs a name to show that holds no password or signature. Nothing is opened.

use howdah_model::{Error, ErrorKind, Result};
use std::borrow::Cow;
use url::Url;

/// The object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    S3,
    Gs,
    Az,
}

impl Scheme {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scheme::S3 => "s3",
            Scheme::Gs => "gs",
            Scheme::Az => "az",
        }
    }
}

/// A location by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Stdin,
    Path(String),
    /// Bucket (container) and key as written: keys are not percent-decoded, as in the stores' own tools.
    Bucket(Scheme, String, String),
    Http(Url),
}

/// Stands where a secret was. No server can be asked for a URL with it.
const REDACTED: &str = "***";

impl Location {
    pub(crate) fn parse(text: &str) -> Result<Location> {
        if text == "-" {
            return Ok(Location::Stdin);
        }
        let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return Ok(Location::Path(text.to_owned()));
        };
        match scheme.to_ascii_lowercase().as_str() {
            "s3" => bucket(Scheme::S3, rest),
            "gs" => bucket(Scheme::Gs, rest),
            "az" => bucket(Scheme::Az, rest),
            "http" | "https" => http(text),
            "file" => file(text),
            _ => Err(Error::new(ErrorKind::Usage, format!("no source is read by {scheme}://"))
                .with_hint("use a local path, -, s3://, gs://, az://, http:// or https://")),
        }
    }
}

/// RFC 3986: a letter, then letters, digits, `+`, `-`, `.`.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
}

fn bucket(scheme: Scheme, rest: &str) -> Result<Location> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() || bucket.contains(['*', '?', '[', '{', '@', ':']) {
        let message = format!("expected {}://BUCKET/KEY with the name of one bucket", scheme.name());
        return Err(Error::new(ErrorKind::Usage, message));
    }
    if !bucket.chars().all(|each| each.is_ascii_alphanumeric() || "-_.$".contains(each)) {
        let message = format!(
            "the name of the bucket behind {}:// cannot be used: expected letters, digits, -, _ and ., got another character",
            scheme.name()
        );
        return Err(Error::new(ErrorKind::Usage, message)
            .with_hint(format!("only a key may hold others: write {}://BUCKET/KEY", scheme.name())));
    }
    Ok(Location::Bucket(scheme, bucket.to_owned(), key.to_owned()))
}

fn http(text: &str) -> Result<Location> {
    let url = Url::parse(text).map_err(|error| {
        Error::new(ErrorKind::Usage, format!("a URL that starts with {text:.8} is not valid: {error}"))
    })?;
    if text.contains("{table}") {
        return Err(Error::new(
            ErrorKind::Usage,
            "{table} has no meaning in an http URL: nothing lists what is there",
        )
        .with_hint("name each URL"));
    }
    if url.username() == REDACTED || url.query().is_some_and(|query| query.ends_with(REDACTED)) {
        return Err(Error::new(
            ErrorKind::SourceDenied,
            format!("the signature or password of {} is not kept", shown(&url)),
        )
        .with_hint("give the whole URL again"));
    }
    Ok(Location::Http(url))
}

fn file(text: &str) -> Result<Location> {
    let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
    match path.as_deref().and_then(std::path::Path::to_str) {
        Some(path) => Ok(Location::Path(path.to_owned())),
        None => Err(Error::new(ErrorKind::Usage, format!("{text} names no file on this machine"))
            .with_hint("write file:///absolute/path, or just the path")),
    }
}

/// The name of the object that this URL stands for, as [`Object::location`](crate::Object::location) gives
/// it; `None` where it is no URL.
pub fn shown_url(text: &str) -> Option<String> {
    Url::parse(text).ok().map(|url| shown(&url))
}

/// A location as [`shown_url`] gives it, of a URL that had a signature or a password.
pub fn is_redacted(shown: &str) -> bool {
    shown.contains("://") && (shown.ends_with(REDACTED) || shown.contains(&format!("://{REDACTED}@")))
}

/// The URL to show lacks parameters that may choose the file.
pub(crate) fn hides_parameters(url: &Url) -> bool {
    url.query().is_some() && shown(url).ends_with(REDACTED)
}

/// The URL to show: without user, password, fragment, and signature; stable from one signing to the next, so
/// that it identifies the object in the ledger. A URL that lost something ends in, or begins with, `***`.
pub(crate) fn shown(url: &Url) -> String {
    shown_within(url, NESTED_MAX)
}

/// How many URLs are looked into that stand each in a parameter of the one before. What is deeper, and may
/// hide a signature, is not shown.
const NESTED_MAX: usize = 4;

fn shown_within(url: &Url, nested: usize) -> String {
    let mut shown = url.clone();
    shown.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        // Both fail only for URLs without a host, which http URLs always have.
        let _ = shown.set_password(None);
        let _ = shown.set_username(REDACTED);
    }
    if let Some(query) = url.query() {
        let kept = query.split('&').filter(|pair| !is_signing(pair, query));
        let kept: Vec<Cow<'_, str>> = kept.filter_map(|pair| without_signed_url(pair, nested)).collect();
        if !kept.iter().map(|pair| &**pair).eq(query.split('&')) {
            shown.set_query(Some(&[&kept[..], &[REDACTED.into()]].concat().join("&")));
        }
    }
    shown.into()
}

/// A parameter whose value is a URL, as of those who fetch it or lead to it, with that URL as it is shown;
/// `None` if it is too deep for that.
fn without_signed_url(pair: &str, nested: usize) -> Option<Cow<'_, str>> {
    let value = url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value);
    let inner = value.and_then(|value| Url::parse(&value).ok()).filter(Url::has_host);
    let (Some((name, _)), Some(inner)) = (pair.split_once('='), inner) else { return Some(pair.into()) };
    let inner = shown_within(&inner, nested.checked_sub(1)?);
    if !is_redacted(&inner) {
        return Some(pair.into());
    }
    let encoded: String = url::form_urlencoded::byte_serialize(inner.as_bytes()).collect();
    Some(format!("{name}={encoded}").into())
}

/// Parameters that belong to a signature where the first one is there: they say when, by whom or for what it
/// was made, and change with each signing, or with the key that signs.
const BESIDE_A_SIGNATURE: [(&str, &[&str]); 6] = [
    // https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas
    (
        "sig",
        &[
            "sv", "ss", "srt", "sr", "sp", "se", "st", "spr", "sip", "skoid", "sktid", "skt", "ske", "sks",
            "skv", "sdd", "saoid", "suoid",
        ],
    ),
    // CloudFront; Google's older way.
    ("signature", &["key-pair-id", "hash-algorithm", "googleaccessid"]),
    // Alibaba, Volcengine, Tencent.
    ("x-oss-signature", &["x-oss-date", "x-oss-expires", "x-oss-additional-headers"]),
    ("x-tos-signature", &["x-tos-algorithm", "x-tos-date", "x-tos-expires", "x-tos-signedheaders"]),
    ("q-signature", &["q-ak", "q-key-time", "q-header-list", "q-url-param-list"]),
    // Bunny.
    ("token", &["token_path"]),
];

/// The name of a parameter as it is meant, in lower case.
fn name_of(pair: &str) -> String {
    let encoded = pair.split('=').next().unwrap_or(pair);
    let name =
        url::form_urlencoded::parse(encoded.as_bytes()).next().map_or(Cow::Borrowed(""), |(name, _)| name);
    name.to_ascii_lowercase()
}

/// Parameters of a signature: those whose name sounds of a secret, and the rest of the signing schemes, which
/// change with each signing.
fn is_signing(pair: &str, query: &str) -> bool {
    const EXACTLY: [&str; 14] = [
        "sig",
        "key",
        "pwd",
        "pass",
        "passphrase",
        "policy",
        // The key of an Azure function.
        "code",
        "jwt",
        "sign",
        "hmac",
        "otp",
        "ticket",
        "rlkey",
        "hdnts",
    ];
    const WITHIN: [&str; 13] = [
        "signature",
        "token",
        "secret",
        "passw",
        "auth",
        "credential",
        "session",
        "sessid",
        "apikey",
        "api_key",
        "api-key",
        "accesskey",
        "access_key",
    ];
    let name = name_of(pair);
    // Whose work it is, is no secret.
    let is_of_author = name.starts_with("author") && !name.starts_with("authori");
    let has = |wanted: &str| query.split('&').any(|pair| name_of(pair) == wanted);
    let is_beside =
        BESIDE_A_SIGNATURE.iter().any(|(signature, others)| others.contains(&&*name) && has(signature));
    EXACTLY.contains(&name.as_str())
        || (!is_of_author && WITHIN.iter().any(|word| name.contains(word)))
        || name.starts_with("x-amz-")
        || name.starts_with("x-goog-")
        || name.starts_with("q-sign-")
        || name.starts_with("expires")
        || is_beside
        || (name == "e" && has("token") && is_deadline(pair))
}

/// Qiniu's `e` beside a token, in seconds since 1970. Tokens are common, and other values of `e` may say
/// which file is meant.
fn is_deadline(pair: &str) -> bool {
    let value = pair.split_once('=').map_or("", |(_, value)| value);
    value.len() == 10 && value.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_of(text: &str) -> String {
        shown(&Url::parse(text).unwrap())
    }

    #[test]
    fn kinds_are_told_by_their_scheme() {
        assert_eq!(Location::parse("-").unwrap(), Location::Stdin);
        assert_eq!(Location::parse("a/b.csv").unwrap(), Location::Path("a/b.csv".into()));
        assert_eq!(Location::parse("file:///a/b%20c").unwrap(), Location::Path("/a/b c".into()));
        let s3 = Location::Bucket(Scheme::S3, "b".into(), "k%20/x".into());
        assert_eq!(Location::parse("s3://b/k%20/x").unwrap(), s3);
        assert_eq!(Location::parse("S3://b").unwrap(), Location::Bucket(Scheme::S3, "b".into(), "".into()));
        assert_eq!(Location::parse("ftp://h/x").unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(Location::parse("s3:///x").unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(Location::parse("file://host/x").unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(Location::parse("http://h/{table}").unwrap_err().kind(), ErrorKind::Usage);
    }

    #[test]
    fn a_bucket_has_no_password() {
        for text in ["s3://KEYID:s3cret@b/k", "s3://KEYID:s3c/ret@b/k", "gs://me:s3cret/k"] {
            let error = Location::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(!error.message().contains("s3c"), "{error}");
        }
    }

    #[test]
    fn a_shown_url_has_no_password() {
        assert_eq!(shown_of("https://me:secret@h/x?a=1#top"), "https://***@h/x?a=1");
    }

    #[test]
    fn a_shown_url_is_the_same_for_every_signing() {
        let aws = "https://h/x?versionId=7&X-Amz-Algorithm=A&X-Amz-Credential=AK%2F1&X-Amz-Date=2&X-Amz-Signature=f00";
        assert_eq!(shown_of(aws), "https://h/x?versionId=7&***");
        assert_eq!(shown_of("https://h/x?sv=2024&se=1&sp=r&sig=f00%3D"), "https://h/x?***");
        assert_eq!(shown_of("https://h/x?api%5Fkey=f00"), "https://h/x?***");
        assert_eq!(shown_of("https://h/x?authorization=f00"), "https://h/x?***");
        for signed in [
            "Expires=1&OSSAccessKeyId=k&Signature=f00",
            "x-oss-signature-version=OSS4-HMAC-SHA256&x-oss-date=1&x-oss-expires=2&x-oss-credential=k&x-oss-signature=f00",
            "Policy=p&Signature=f00&Key-Pair-Id=K1&Hash-Algorithm=SHA256",
            "GoogleAccessId=me@example.com&Expires=1&Signature=f00",
            "q-sign-algorithm=sha1&q-ak=k&q-sign-time=1&q-key-time=1&q-header-list=host&q-url-param-list=&q-signature=f00",
            "X-Tos-Algorithm=A&X-Tos-Credential=k&X-Tos-Date=1&X-Tos-Expires=2&X-Tos-SignedHeaders=host&X-Tos-Signature=f00",
            "e=1893456000&token=k:f00",
            "SV=2024&SE=1&Sig=f00",
        ] {
            assert_eq!(shown_of(&format!("https://h/x?versionId=7&{signed}")), "https://h/x?versionId=7&***");
        }
        assert_eq!(shown_of("https://h/x?e=1&t=2&is=3"), "https://h/x?e=1&t=2&is=3");
        assert_eq!(shown_of("https://h/x?e=1&token=f00"), "https://h/x?e=1&***");
        for name in
            ["pass", "passphrase", "code", "jwt", "PHPSESSID", "hmac", "rlkey", "hdnts", "q-sign-time"]
        {
            assert_eq!(shown_of(&format!("https://h/x?a=1&{name}=f00")), "https://h/x?a=1&***", "{name}");
        }
        assert_eq!(
            shown_of("https://h/x?country_code=de&zip_code=1"),
            "https://h/x?country_code=de&zip_code=1"
        );
        assert_eq!(shown_of("https://h/x?sp=1&name=a&author=b"), "https://h/x?sp=1&name=a&author=b");
    }

    /// Those who fetch a file for others, or lead to it, are told its URL.
    #[test]
    fn a_signed_url_in_a_parameter_is_shown_as_it_is_alone() {
        let inner = "https%3A%2F%2Fme%3Asecret%40h2%2Fx.csv%3Fv%3D1%26X-Amz-Signature%3Df00";
        for (query, expected) in [
            (format!("url={inner}&b=2"), "url=https%3A%2F%2F***%40h2%2Fx.csv%3Fv%3D1%26***&b=2&***"),
            ("to=http://h2/x?sig=f00".to_owned(), "to=http%3A%2F%2Fh2%2Fx%3F***&***"),
            ("to=http://h2/x%3Fa=1#f&at=a@b".to_owned(), "to=http://h2/x%3Fa=1"),
            ("a=b:c&time=10:20&e=mailto:token".to_owned(), "a=b:c&time=10:20&e=mailto:token"),
        ] {
            let shown = shown_of(&format!("https://h/get?{query}"));
            assert_eq!(shown, format!("https://h/get?{expected}"));
            assert_eq!(is_redacted(&shown), query.contains("f00"));
            assert_eq!(shown_of(&shown), shown);
        }
        // An answer may lead to a URL of any length.
        assert_eq!(shown_of(&("https://h/?u=".repeat(9_000) + "&sig=f00")).matches("f00").count(), 0);
    }

    #[test]
    fn a_shown_url_that_lost_its_secret_cannot_be_opened() {
        let lost = ["https://me:secret@h/x", "https://h/x?sig=1"].map(shown_of);
        // Who puts one back does not read it in the error.
        let put_back = ["https://***:s3cret@h/x", "https://h/x?sig=s3cret&***"].map(str::to_owned);
        for url in lost.into_iter().chain(put_back) {
            let error = Location::parse(&url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SourceDenied);
            assert!(
                error.hint().unwrap().contains("again") && !error.message().contains("s3cret"),
                "{error}"
            );
        }
    }
}
