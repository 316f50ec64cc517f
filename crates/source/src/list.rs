//! What the user named, found. A location enters; objects leave, sorted by name: one for a name, several for
//! a glob, a directory or a prefix, never none. Clients and buckets are made once and shared.

use crate::OBJECTS_MAX;
use crate::bucket::Bucket;
use crate::client;
use crate::environment::Environment;
use crate::failure;
use crate::file::{self, FileId};
use crate::http;
use crate::location::{self, Location, Scheme};
use crate::object::Object;
use crate::stdin::{self, Pipe};
use crate::store;
use howdah_model::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use url::Url;

/// The ways to bytes outside. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Sources(Arc<Shared>);

struct Shared {
    environment: Environment,
    /// Both made when first needed: a load of local files needs no certificates, nor the milliseconds to read
    /// them.
    of_urls: OnceLock<reqwest::Client>,
    of_stores: OnceLock<reqwest::Client>,
    buckets: tokio::sync::Mutex<HashMap<(Scheme, String), Arc<Bucket>>>,
    /// URLs with their secrets, by the name shown for them.
    urls: Mutex<HashMap<String, Url>>,
    /// Files on this machine as they were listed: what is opened again must be the same.
    files: Mutex<HashMap<String, FileId>>,
    stdin: Object,
}

impl Sources {
    /// Settings and credentials come from this process's environment and the files it names.
    #[must_use]
    pub fn of_process() -> Sources {
        Sources::from_environment(Environment::of_process())
    }

    /// As [`Sources::of_process`] with these variables in place of the process's, as tests want it.
    pub fn with_environment(variables: impl IntoIterator<Item = (String, String)>) -> Sources {
        Sources::from_environment(Environment::new(variables))
    }

    fn from_environment(environment: Environment) -> Sources {
        Sources(Arc::new(Shared {
            environment,
            of_urls: OnceLock::new(),
            of_stores: OnceLock::new(),
            buckets: tokio::sync::Mutex::default(),
            urls: Mutex::default(),
            files: Mutex::default(),
            stdin: Object::pipe("-".to_owned(), None, Pipe::stdin()),
        }))
    }

    /// Expands one location to objects, sorted by name: a path, a glob, a directory (its files that are not
    /// hidden), `-`, `s3://`, `gs://` or `az://` with a key, a prefix or a glob, an http(s) URL; with at most
    /// one `{table}`, which stands for one or more characters other than `/`. Something that has the very
    /// name wins over what its glob characters would match.
    ///
    /// # Errors
    /// `SourceNotFound` where nothing is found; `Usage` for patterns that make no sense and for more than
    /// 100,000 objects.
    pub async fn list(&self, location: &str) -> Result<Vec<Object>> {
        let mut objects = match Location::parse(location)? {
            Location::Path(path) => failure::blocking(move || file::list(&path)).await?,
            Location::Bucket(scheme, name, key) => {
                let bucket = self.bucket(scheme, &name).await?;
                match store::list(&bucket, &key).await {
                    Err(_) if bucket.elsewhere().is_some() => {
                        store::list(&self.moved(scheme, &name, &bucket).await?, &key).await?
                    }
                    listed => listed?,
                }
            }
            Location::Stdin => {
                stdin::expect_open("-")?;
                vec![self.0.stdin.clone()]
            }
            Location::Http(url) => vec![self.url(&url).await?],
        };
        objects.sort_by(|one, other| one.location().cmp(other.location()));
        // Two `**` lead to a file in several ways.
        objects.dedup_by(|one, other| one.location() == other.location());
        let mut files = self.0.files.lock();
        let ids = objects.iter().filter_map(|object| Some((object.location().to_owned(), object.file_id()?)));
        files.extend(ids);
        drop(files);
        Ok(objects)
    }

    /// Opens the one object that an earlier [`Object::location`] named; nothing is expanded.
    ///
    /// # Errors
    /// `SourceChanged` where `version` is given and the object has another one, or is another file than the
    /// one that was listed.
    pub async fn open(&self, location: &str, version: Option<&str>) -> Result<Object> {
        let known = self.0.urls.lock().get(location).cloned();
        let parsed = known.map_or_else(|| Location::parse(location), |url| Ok(Location::Http(url)))?;
        let object = match parsed {
            Location::Path(path) => failure::blocking(move || file::open(&path)).await?,
            Location::Bucket(scheme, name, key) => {
                let bucket = self.bucket(scheme, &name).await?;
                match store::open(&bucket, &key).await {
                    Err(_) if bucket.elsewhere().is_some() => {
                        store::open(&self.moved(scheme, &name, &bucket).await?, &key).await?
                    }
                    opened => opened?,
                }
            }
            Location::Stdin => self.0.stdin.clone(),
            Location::Http(url) => self.url(&url).await?,
        };
        match version {
            Some(expected) if object.version() != Some(expected) => {
                Err(failure::changed(object.location(), expected, object.version().unwrap_or("unknown")))
            }
            Some(_) if self.is_replaced(&object) => Err(failure::replaced(object.location())),
            _ => Ok(object),
        }
    }

    /// Another file was listed under this name.
    fn is_replaced(&self, object: &Object) -> bool {
        let files = self.0.files.lock();
        files.get(object.location()).is_some_and(|listed| Some(*listed) != object.file_id())
    }

    async fn url(&self, url: &Url) -> Result<Object> {
        let object = http::open(client::made_once(&self.0.of_urls, client::new)?, url).await?;
        let shown = location::shown(url);
        if shown != url.as_str() {
            self.0.urls.lock().insert(shown, url.clone());
        }
        Ok(object)
    }

    async fn bucket(&self, scheme: Scheme, name: &str) -> Result<Arc<Bucket>> {
        let mut buckets = self.0.buckets.lock().await;
        let key = (scheme, name.to_owned());
        if let Some(bucket) = buckets.get(&key) {
            return Ok(Arc::clone(bucket));
        }
        let bucket = self.connected(&key, None).await?;
        buckets.insert(key, Arc::clone(&bucket));
        Ok(bucket)
    }

    /// The bucket in the region that the store has named, which is asked from now on.
    async fn moved(&self, scheme: Scheme, name: &str, bucket: &Bucket) -> Result<Arc<Bucket>> {
        let key = (scheme, name.to_owned());
        let moved = self.connected(&key, bucket.elsewhere()).await?;
        self.0.buckets.lock().await.insert(key, Arc::clone(&moved));
        Ok(moved)
    }

    async fn connected(
        &self,
        (scheme, name): &(Scheme, String),
        region: Option<&str>,
    ) -> Result<Arc<Bucket>> {
        let client = client::made_once(&self.0.of_stores, client::new)?;
        let connected = Bucket::connect((*scheme, name), &self.0.environment, client, region).await?;
        Ok(Arc::new(connected))
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

/// More than one location may stand for.
pub(crate) fn too_many(location: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("more than {OBJECTS_MAX} objects are there"))
        .in_file(location)
        .with_hint("name a longer prefix or a narrower pattern, and load in several jobs")
}
