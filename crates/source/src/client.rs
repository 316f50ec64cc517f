//! The HTTP clients of a [`Sources`](crate::Sources), one for URLs and one for stores: time-outs, TLS, and
//! the way answers that are not 2xx become errors. Requests of `http.rs` and of the object stores enter;
//! answers leave, their bodies as stored: nothing is decoded whatever `Content-Encoding` says.

use crate::failure::{self, Status, Unanswered};
use crate::listing;
use crate::location::Scheme;
use crate::proxy;
use async_trait::async_trait;
use futures_util::StreamExt;
use howdah_model::{Error, ErrorKind, Result};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::ClientBuilder;
use reqwest::header::{ACCEPT_ENCODING, HeaderValue};
use reqwest::redirect::Policy;
use std::sync::OnceLock;
use std::time::Duration;

/// A server that takes no connection for so long is away; a TCP retransmission takes up to 7 s to succeed.
const CONNECT_SECONDS: u64 = 10;

/// No byte for so long means a dead peer: S3 answers or ends an idle connection within 20 s, and the pause
/// of a garbage-collected server stays below it.
const IDLE_SECONDS: u64 = 30;

/// In which S3 names the region of a bucket, also to those who may not read it.
const REGION_HEADER: &str = "x-amz-bucket-region";

/// In which Azure says why, also where an answer has no body.
const CODE_HEADER: &str = "x-ms-error-code";

/// What is read of an answer that is not 2xx, to find its code.
const ERROR_BODY_BYTES_MAX: usize = 8 << 10;

/// Makes the client of URLs, or that of stores.
pub(crate) fn new() -> Result<reqwest::Client> {
    with_limits(Duration::from_secs(CONNECT_SECONDS), Duration::from_secs(IDLE_SECONDS))
}

/// Makes the client of what runs beside this process and hands out credentials: no proxy is between them.
pub(crate) fn of_metadata() -> Result<reqwest::Client> {
    const SECONDS: u64 = 5;
    let limit = Duration::from_secs(SECONDS);
    built(|| builder(limit, limit).no_proxy())
}

fn with_limits(connect: Duration, idle: Duration) -> Result<reqwest::Client> {
    proxy::refuse_unusable(|name| howdah_model::environment::var_os(name))?;
    built(|| builder(connect, idle))
}

/// Installs rustls' ring provider where the process has none yet.
fn builder(connect: Duration, idle: Duration) -> ClientBuilder {
    // An error means that a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ClientBuilder::new()
        .user_agent(concat!("howdah/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .read_timeout(idle)
        // Its query may be a secret of the host that redirects.
        .referer(false)
        // Those of URLs are followed in [`crate::redirect`]; those of stores never: a signature is good for
        // one host and path, and the token of a session, which is in a header of its own, would go to
        // whatever host is named.
        .redirect(Policy::none())
}

/// On a machine without certificates of authorities, small images above all, there is no client that trusts
/// these: one that trusts nobody still speaks plain http.
fn built(builder: impl Fn() -> ClientBuilder) -> Result<reqwest::Client> {
    builder().build().or_else(|_| builder().tls_backend_preconfigured(trusts_nobody()).build()).map_err(
        |_| {
            Error::new(
                ErrorKind::SourceIo,
                "no HTTP client: its settings, proxies among them, cannot be used",
            )
        },
    )
}

fn trusts_nobody() -> rustls::ClientConfig {
    rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// Whether there is anybody to trust.
pub(crate) fn knows_authorities() -> bool {
    !rustls_native_certs::load_native_certs().certs.is_empty()
}

/// Gives the object stores the same client.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) client: reqwest::Client,
    pub(crate) scheme: Scheme,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(match is_for_metadata(options) {
            true => HttpClient::new(Metadata::default()),
            false => HttpClient::new(self.clone()),
        })
    }
}

/// The library gives the machine a second to take a connection, and everybody else more: what a user sets of
/// its options is not passed on.
fn is_for_metadata(options: &ClientOptions) -> bool {
    let key = ClientConfigKey::ConnectTimeout;
    let of_metadata = ClientOptions::new().with_connect_timeout(Duration::from_secs(1));
    options.get_config_value(&key) == of_metadata.get_config_value(&key)
}

/// Asks the machine for its own credentials. A proxy would have them read, and may answer with those of the
/// machine that it runs on. The client is made when first needed: most have other credentials.
#[derive(Debug, Default)]
struct Metadata(OnceLock<reqwest::Client>);

#[async_trait]
impl HttpService for Metadata {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let client = made_once(&self.0, of_metadata);
        let client = client.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        succeeded(HttpService::call(client, request).await?).await
    }
}

#[async_trait]
impl HttpService for Connector {
    /// Turns every answer that is not 2xx into [`Status`], so that it is known whichever store asked.
    /// Listings are looked at before they are read.
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if self.scheme == Scheme::Gs {
            // Else Google decompresses what has `Content-Encoding: gzip`, and does not say how long it is
            // then.
            request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let asked = listing::asked(&request);
        let (address, uri) = (address_of(&request), request.uri().clone());
        let unanswered = |cause: HttpError| {
            let proxy = proxy::between(&uri.to_string());
            HttpError::new(cause.kind(), Unanswered { address, proxy, cause })
        };
        let answer = HttpService::call(&self.client, request).await.map_err(unanswered)?;
        let answer = succeeded(answer).await?;
        match asked {
            Some(asked) => listing::checked(answer, asked).await,
            None => Ok(answer),
        }
    }
}

fn address_of(request: &HttpRequest) -> Option<String> {
    let uri = request.uri();
    let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    failure::address(uri.host()?, Some(uri.port_u16().unwrap_or(usual)))
}

async fn succeeded(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status().as_u16();
    let named = answer.headers().get(REGION_HEADER).and_then(|region| region.to_str().ok());
    let named = named.filter(|region| is_region(region)).map(str::to_owned);
    let said = answer.headers().get(CODE_HEADER).and_then(|code| code.to_str().ok());
    let said = said.filter(|code| is_code(code)).map(str::to_owned);
    let body = head_of(answer.into_body()).await;
    let region = named.or_else(|| find_region(&body));
    let code = said.or_else(|| find_code(&body)).or_else(|| find_refusal(&body));
    Err(HttpError::new(HttpErrorKind::Unknown, Status { status, code, region }))
}

/// The client that is there, or the first that is made.
pub(crate) fn made_once(
    place: &OnceLock<reqwest::Client>,
    make: impl FnOnce() -> Result<reqwest::Client>,
) -> Result<&reqwest::Client> {
    match place.get() {
        Some(client) => Ok(client),
        None => {
            let client = make()?;
            Ok(place.get_or_init(|| client))
        }
    }
}

/// The beginning of an error answer. A body that breaks off is as long as it is.
async fn head_of(body: HttpResponseBody) -> String {
    let mut head = Vec::new();
    let mut blocks = body.bytes_stream();
    while let Some(Ok(block)) = blocks.next().await {
        head.extend_from_slice(&block);
        if head.len() >= ERROR_BODY_BYTES_MAX {
            break;
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// The `<Code>` of an XML error answer.
pub(crate) fn find_code(body: &str) -> Option<String> {
    let (code, _) = body.split_once("<Code>")?.1.split_once("</Code>")?;
    is_code(code).then(|| code.to_owned())
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.chars().all(|each| each.is_ascii_alphanumeric())
}

/// Why no token is handed out, by a word of OAuth (RFC 6749, 5.2).
fn find_refusal(body: &str) -> Option<String> {
    let told: serde_json::Value = serde_json::from_str(body).ok()?;
    let word = told.get("error")?.as_str()?;
    let is_word = !word.is_empty()
        && word.len() <= 64
        && word.chars().all(|each| each.is_ascii_lowercase() || each == '_');
    is_word.then(|| word.to_owned())
}

/// The region that S3 expected a signature for.
fn find_region(body: &str) -> Option<String> {
    let (region, _) = body.split_once("<Region>")?.1.split_once("</Region>")?;
    is_region(region).then(|| region.to_owned())
}

fn is_region(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Access;

    #[test]
    fn the_code_of_an_error_answer_is_a_word() {
        assert_eq!(find_code("<Error><Code>SlowDown</Code><Key>k</Key>").as_deref(), Some("SlowDown"));
        assert_eq!(find_code("<Code>a <b></Code>"), None);
        assert_eq!(find_code("busy"), None);
        let refusal = r#"{"error": "invalid_grant", "error_description": "Token has been revoked."}"#;
        assert_eq!(find_refusal(refusal).as_deref(), Some("invalid_grant"));
        assert_eq!(find_refusal(r#"{"error": {"code": 403}}"#), None);
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_given_up() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", server.local_addr().unwrap());
        let client = with_limits(Duration::from_secs(5), Duration::from_millis(50)).unwrap();
        let error = client.get(url).send().await.unwrap_err();
        let error = failure::of_request(&error, Access::Http, "http://x/");
        assert_eq!(error.kind(), ErrorKind::SourceTransient);
        assert!(error.message().contains("in time"), "{error}");
    }

    #[tokio::test]
    async fn a_closed_port_may_open_again() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", server.local_addr().unwrap());
        let address = server.local_addr().unwrap();
        drop(server);
        let error = new().unwrap().get(url).send().await.unwrap_err();
        let error = failure::of_request(&error, Access::Http, "x");
        assert_eq!(error.kind(), ErrorKind::SourceTransient);
        let told = format!("no connection to the server at {address}: ");
        assert!(error.message().starts_with(&told), "{error}");
    }

    #[tokio::test]
    async fn a_store_that_is_away_or_speaks_no_tls_is_told_with_its_address() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let asking = tokio::spawn(asked_of_store(format!("https://{address}")));
        let (mut asked, _) = server.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut asked, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let error = asking.await.unwrap();
        assert_eq!(error.kind(), ErrorKind::SourceTransient);
        assert_eq!(error.message(), format!("the server at {address} does not speak TLS"));
        assert!(error.hint().unwrap().contains("AWS_ENDPOINT_URL_S3"), "{error}");
        drop((asked, server));
        let error = asked_of_store(format!("http://{address}")).await;
        assert_eq!(error.kind(), ErrorKind::SourceTransient);
        let told = format!("no connection to the server at {address}: ");
        assert!(error.message().starts_with(&told), "{error}");
    }

    async fn asked_of_store(endpoint: String) -> Error {
        let store = object_store::aws::AmazonS3Builder::new()
            .with_bucket_name("b")
            .with_endpoint(endpoint)
            .with_skip_signature(true)
            .with_retry(crate::bucket::no_retries())
            .with_http_connector(Connector { client: new().unwrap(), scheme: Scheme::S3 })
            .build()
            .unwrap();
        let error = object_store::ObjectStoreExt::head(&store, &"k".into()).await.unwrap_err();
        failure::of_request(&error, Access::Store { scheme: Scheme::S3, anonymous: true }, "s3://b/k")
    }
}
