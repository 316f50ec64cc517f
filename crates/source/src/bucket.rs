//! One bucket (container) and the way into it. A name and the environment enter; a client leaves that never
//! retries, as the engine does that. Where no credentials are configured, the machine is asked for its own
//! for a moment; where it has none, the bucket is read without.

use crate::aws;
use crate::client::Connector;
use crate::environment::Environment;
use crate::failure::{self, Access, Asked};
use crate::location::Scheme;
use crate::setting::{expect_endpoint, expect_printable};
use howdah_model::{Error, ErrorKind, Result};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::{ObjectStore, RetryConfig};
use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

/// Metadata services sit on the machine's own host and answer within milliseconds; elsewhere their address
/// leads nowhere, and nobody wants to wait for that.
const METADATA_SECONDS: u64 = 2;

/// What is needed of a store.
pub(crate) trait Store: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Store for T {}

/// A bucket with its client.
pub(crate) struct Bucket {
    pub(crate) store: Box<dyn Store>,
    scheme: Scheme,
    name: String,
    anonymous: bool,
    /// It is AWS's own store, whose address follows from the region.
    has_regions: bool,
    /// The region that the store has named for it, another one than was asked.
    elsewhere: OnceLock<String>,
}

impl Bucket {
    /// `region` is where the store has said that it is, and counts before what is set.
    pub(crate) async fn connect(
        (scheme, name): (Scheme, &str),
        environment: &Environment,
        client: &reqwest::Client,
        region: Option<&str>,
    ) -> Result<Bucket> {
        let connector = Connector { client: client.clone(), scheme };
        let ((store, anonymous), has_regions) = match scheme {
            Scheme::S3 => aws::connect(name, environment, connector, region).await?,
            Scheme::Gs => (google(name, environment, connector).await?, false),
            Scheme::Az => (azure(name, environment, connector).await?, false),
        };
        let elsewhere = OnceLock::new();
        Ok(Bucket { store, scheme, name: name.to_owned(), anonymous, has_regions, elsewhere })
    }

    /// Where the bucket is, after an error that said so: a request there is signed for the host of that region, which is AWS's as well.
    pub(crate) fn elsewhere(&self) -> Option<&str> {
        self.elsewhere.get().map(String::as_str)
    }

    pub(crate) fn location(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme.name(), self.name)
    }

    pub(crate) fn told(&self, error: &(dyn std::error::Error + 'static), location: &str) -> Error {
        self.note_region(error);
        failure::of_request(error, self.access(), location)
    }

    /// The same where it is about whether something is there.
    pub(crate) fn told_of(
        &self,
        asked: Asked,
        error: &(dyn std::error::Error + 'static),
        location: &str,
    ) -> Error {
        self.note_region(error);
        failure::of_asking(error, self.access(), location, asked)
    }

    fn note_region(&self, error: &(dyn std::error::Error + 'static)) {
        if let Some(region) = failure::other_region(error).filter(|_| self.has_regions) {
            self.elsewhere.get_or_init(|| region.to_owned());
        }
    }

    fn access(&self) -> Access {
        Access::Store { scheme: self.scheme, anonymous: self.anonymous }
    }
}

/// A store, and whether it is read without credentials.
pub(crate) type Connected = (Box<dyn Store>, bool);

/// The library's own retries are off: one request, one answer.
pub(crate) fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The settings make no sense; what the library says of them names options, not values.
pub(crate) fn unusable(error: &object_store::Error, scheme: Scheme, hint: &str) -> Error {
    let message = format!("the settings for {}:// cannot be used: {error}", scheme.name());
    Error::new(ErrorKind::Usage, message).with_hint(hint)
}

/// Whether credentials come within a moment.
pub(crate) async fn has_credentials<T>(asked: impl Future<Output = object_store::Result<T>>) -> bool {
    matches!(tokio::time::timeout(Duration::from_secs(METADATA_SECONDS), asked).await, Ok(Ok(_)))
}

/// Settings are the `GOOGLE_*` variables of the library, and the file that `gcloud auth` writes.
async fn google(bucket: &str, environment: &Environment, connector: Connector) -> Result<Connected> {
    const HINT: &str =
        "set GOOGLE_APPLICATION_CREDENTIALS to the file of an account that may read the bucket";
    let mut builder = GoogleCloudStorageBuilder::new();
    for (name, value) in environment.with_prefix("GOOGLE_") {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            match key {
                // The library's own client is not used.
                GoogleConfigKey::Client(_) => continue,
                // A document, of several lines.
                GoogleConfigKey::ServiceAccountKey => {}
                GoogleConfigKey::BaseUrl => expect_endpoint(name, value)?,
                _ => expect_printable(name, value)?,
            }
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder.with_bucket_name(bucket).with_retry(no_retries()).with_http_connector(connector);
    let build = |builder: GoogleCloudStorageBuilder| {
        builder.build().map_err(|error| unusable(&error, Scheme::Gs, HINT))
    };
    let store = build(builder.clone())?;
    let file = environment.home(".config/gcloud/application_default_credentials.json");
    let is_configured = file.is_some_and(|file| file.exists())
        || environment.has_any(&[
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            "GOOGLE_BEARER_TOKEN",
            "GOOGLE_SKIP_SIGNATURE",
        ]);
    if is_configured || has_credentials(store.credentials().get_credential()).await {
        return Ok((Box::new(store), false));
    }
    Ok((Box::new(build(builder.with_skip_signature(true))?), true))
}

/// Settings are the `AZURE_*` variables of the library; the account must be named.
async fn azure(container: &str, environment: &Environment, connector: Connector) -> Result<Connected> {
    const HINT: &str = "set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY or another way in";
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in environment.with_prefix("AZURE_") {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            match key {
                AzureConfigKey::Client(_) => continue,
                AzureConfigKey::Endpoint => expect_endpoint(name, value)?,
                _ => expect_printable(name, value)?,
            }
            builder = builder.with_config(key, value);
        }
    }
    let builder =
        builder.with_container_name(container).with_retry(no_retries()).with_http_connector(connector);
    let build =
        |builder: MicrosoftAzureBuilder| builder.build().map_err(|error| unusable(&error, Scheme::Az, HINT));
    let store = build(builder.clone())?;
    // Whatever else is set besides account and endpoint is a way in.
    let is_configured = environment.with_prefix("AZURE_").any(|(name, _)| {
        !["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT", "AZURE_ALLOW_HTTP"]
            .contains(&name)
    });
    if is_configured || has_credentials(store.credentials().get_credential()).await {
        return Ok((Box::new(store), false));
    }
    Ok((Box::new(build(builder.with_skip_signature(true))?), true))
}
