//! One bucket (container) and the way into it. A name and the environment enter; a client leaves that never
//! retries, as the engine does that. Where no credentials are configured, the machine is asked for its own
//! for a moment; where it has none, the bucket is read without.

use crate::aws;
use crate::azure;
use crate::client::Connector;
use crate::environment::Environment;
use crate::failure::{self, Access, Asked};
use crate::google;
use crate::location::Scheme;
use howdah_model::{Error, ErrorKind, Result};
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
            Scheme::Gs => (google::connect(name, environment, connector).await?, false),
            Scheme::Az => (azure::connect(name, environment, connector).await?, false),
        };
        let elsewhere = OnceLock::new();
        Ok(Bucket { store, scheme, name: name.to_owned(), anonymous, has_regions, elsewhere })
    }

    /// Where the bucket is, after an error that said so: a request there is signed for the host of that
    /// region, which is AWS's as well.
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
