//! Objects in buckets. A key, a prefix or a glob enters; objects leave whose reads are bound by `If-Match` to
//! the `ETag` they were listed with. Lists only what a pattern's literal beginning leaves possible, and skips
//! the empty keys ending in `/` that consoles make to show folders.

use crate::OBJECTS_MAX;
use crate::bucket::Bucket;
use crate::failure::{self, Asked};
use crate::http::strong_tag;
use crate::object::Object;
use crate::pattern::Pattern;
use crate::remote::{self, RemoteStream};
use futures_util::{StreamExt, TryStreamExt};
use howdah_model::{Error, ErrorKind, Result};
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{Attribute, GetOptions, GetRange, GetResult, ObjectMeta};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

/// Questions under way at once about empty objects.
const QUESTIONS_AT_ONCE: usize = 16;

/// Pages may be empty, as stores give up looking for a while; so many are no end.
const PAGES_MAX: usize = 100_000;

/// S3's tokens have some 100 bytes, Azure's and Google's some hundreds. The library sends a token in the
/// query of a request, and ends in a panic where that gets longer than 64 KiB.
const TOKEN_BYTES_MAX: usize = 8 << 10;

/// An object as it was when listed.
pub(crate) struct StoredObject {
    bucket: Arc<Bucket>,
    key: Path,
    bytes: u64,
    version: String,
}

impl StoredObject {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// One GET of one range; one copy.
    pub(crate) async fn read_on(
        &self,
        location: &str,
        offset: u64,
        out: &mut [u8],
        filled: &mut usize,
    ) -> Result<()> {
        let out = remote::clamp(offset, out, self.bytes);
        if *filled >= out.len() {
            return Ok(());
        }
        let range = offset + *filled as u64..offset + out.len() as u64;
        self.body(location, range).await?.fill(out, filled).await
    }

    /// One GET from `offset` to the end.
    pub(crate) async fn stream(&self, location: &str, offset: u64) -> Result<RemoteStream> {
        match offset >= self.bytes {
            // A range that begins at the end is an error to HTTP.
            true => Ok(RemoteStream::at_end(location, offset)),
            false => self.body(location, offset..self.bytes).await,
        }
    }

    async fn body(&self, location: &str, range: Range<u64>) -> Result<RemoteStream> {
        let is_whole = range == (0..self.bytes);
        let options = GetOptions {
            if_match: strong_tag(&self.version),
            range: (!is_whole).then(|| GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let bucket = Arc::clone(&self.bucket);
        let answer =
            bucket.store.get_opts(&self.key, options).await.map_err(|error| bucket.told(&error, location))?;
        self.check(location, &answer)?;
        let encoding = answer.attributes.get(&Attribute::ContentEncoding);
        remote::expect_readable(encoding.map(AsRef::as_ref), location)?;
        let shown = location.to_owned();
        let body = answer.into_stream().map_err(move |error| bucket.told(&error, &shown));
        Ok(RemoteStream::new(location, body.boxed(), range.start, range.start, Some(range.end)))
    }

    /// Some stores ignore `If-Match`; the answer says what it is made of.
    fn check(&self, location: &str, answer: &GetResult) -> Result<()> {
        let version = version_of(&answer.meta);
        match version == self.version && answer.meta.size == self.bytes {
            true => Ok(()),
            false => Err(failure::changed(location, &self.version, &version)),
        }
    }
}

/// The `ETag` without quotes, which Azure's listings leave out and gateways before a file system may leave
/// empty; else time and size.
fn version_of(meta: &ObjectMeta) -> String {
    match meta.e_tag.as_ref().map(|tag| tag.replace('"', "")).filter(|tag| !tag.is_empty()) {
        Some(tag) => tag,
        None => format!("{}, {} bytes", meta.last_modified.timestamp(), meta.size),
    }
}

/// Opens exactly this key; nothing in it is expanded.
pub(crate) async fn open(bucket: &Arc<Bucket>, key: &str) -> Result<Object> {
    let location = bucket.location(key);
    let not_a_key = || {
        let error =
            Error::new(ErrorKind::SourceNotFound, "expected the key of one object, got a folder or nothing");
        error.in_file(&location)
    };
    if key.is_empty() || key.ends_with('/') {
        return Err(not_a_key());
    }
    let path = path(bucket, key)?;
    let options = GetOptions { head: true, ..GetOptions::default() };
    let mut answer = bucket.store.get_opts(&path, options).await;
    if answer.as_ref().is_err_and(|error| failure::is_refused_unsaid(error)) {
        // The answer to a HEAD has no body, in which a store says why; that to a GET has one.
        let first = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        answer = bucket.store.get_opts(&path, first).await;
    }
    let answer = answer.map_err(|error| bucket.told_of(Asked::Key, &error, &location))?;
    if is_folder(&answer) {
        return Err(not_a_key());
    }
    Ok(object(bucket, answer.meta, None))
}

/// Azure's accounts with folders, and programs that make folders elsewhere, show one as an empty object of
/// its name without a slash.
fn is_folder(answer: &GetResult) -> bool {
    let mark = answer.attributes.get(&Attribute::Metadata("hdi_isfolder".into()));
    answer.meta.size == 0 && mark.is_some_and(|mark| mark.eq_ignore_ascii_case("true"))
}

/// The library cannot name keys with empty parts; it would drop a `/` at the beginning and read another
/// object.
fn path(bucket: &Bucket, key: &str) -> Result<Path> {
    let path = Path::parse(key).map_err(|error| bucket.told(&error, &bucket.location(key)))?;
    match path.as_ref() == key {
        true => Ok(path),
        false => Err(begins_with_slash(bucket, key)),
    }
}

fn begins_with_slash(bucket: &Bucket, key: &str) -> Error {
    Error::new(ErrorKind::SourceIo, "keys that begin with / cannot be read")
        .in_file(bucket.location(key))
        .with_hint("copy the object to a key without an empty part, or give a presigned URL")
}

/// The object of this very key; else what a glob matches; else the keys under `key/`; else those that begin
/// with `key`.
pub(crate) async fn list(bucket: &Arc<Bucket>, key: &str) -> Result<Vec<Object>> {
    let pattern = Pattern::parse(key)?;
    if key.starts_with('/') {
        return Err(begins_with_slash(bucket, key));
    }
    if !key.is_empty() && !key.ends_with('/') {
        match open(bucket, key).await {
            Ok(object) => return Ok(vec![object]),
            Err(error) if error.kind() == ErrorKind::SourceNotFound => {}
            // Without the right to list, a store says "forbidden" of what is not there.
            Err(error) if error.kind() == ErrorKind::SourceDenied && pattern.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    let objects = match &pattern {
        Some(pattern) => listed(bucket, key, pattern.prefix(), Some(pattern)).await?,
        None if key.is_empty() || key.ends_with('/') => listed(bucket, key, key, None).await?,
        None => match listed(bucket, key, &format!("{key}/"), None).await? {
            folder if !folder.is_empty() => folder,
            _ => listed(bucket, key, key, None).await?,
        },
    };
    match objects.is_empty() {
        true => Err(Error::new(ErrorKind::SourceNotFound, "there is no such object, and no key begins so")
            .in_file(bucket.location(key))),
        false => Ok(objects),
    }
}

/// Objects whose keys begin with `prefix`, and match.
async fn listed(
    bucket: &Arc<Bucket>,
    key: &str,
    prefix: &str,
    pattern: Option<&Pattern>,
) -> Result<Vec<Object>> {
    let is_flat = pattern.is_some_and(|pattern| !pattern.has_folders());
    let mut options = PaginatedListOptions { delimiter: is_flat.then(|| "/".into()), ..Default::default() };
    if prefix.is_empty() && !is_flat {
        refuse_slashes_before(bucket, key).await?;
    }
    let mut found = Vec::new();
    let mut seen = 0;
    // Tokens themselves would be memory for the store to fill. Their digests are of this process alone, so
    // that it makes none collide.
    let (mut tokens, digests) = (HashSet::new(), RandomState::new());
    loop {
        let asked =
            bucket.store.list_paginated((!prefix.is_empty()).then_some(prefix), options.clone()).await;
        let page = asked.map_err(|error| bucket.told_of(Asked::Listing, &error, &bucket.location(key)))?;
        seen += page.result.objects.len();
        if seen > OBJECTS_MAX {
            return Err(crate::list::too_many(&bucket.location(key)));
        }
        found.extend(page.result.objects.into_iter().filter_map(|meta| kept(meta, prefix, pattern)));
        match page.page_token.filter(|token| !token.is_empty()) {
            Some(token) if token.len() > TOKEN_BYTES_MAX => {
                return Err(too_long(&bucket.location(key), token.len()));
            }
            Some(token) if tokens.len() < PAGES_MAX && tokens.insert(digests.hash_one(&token)) => {
                options.page_token = Some(token);
            }
            Some(_) => return Err(endless(&bucket.location(key))),
            None => break,
        }
    }
    if let Some(doubled) = doubled(&found) {
        let message = "two objects are there whose keys differ by a / at their end alone, and the second is not empty: it cannot be read";
        return Err(Error::new(ErrorKind::SourceIo, message)
            .in_file(bucket.location(doubled))
            .with_hint("copy it to another key, or name the first alone"));
    }
    // What is left of these are markers beside an object that has their name without the slash.
    let mut seen = HashSet::new();
    found.retain(|(meta, _)| seen.insert(meta.location.clone()));
    let checks = found.into_iter().map(|(meta, placeholder)| real(bucket, meta, placeholder));
    let objects: Vec<Option<Object>> =
        futures_util::stream::iter(checks).buffered(QUESTIONS_AT_ONCE).try_collect().await?;
    Ok(objects.into_iter().flatten().collect())
}

fn endless(location: &str) -> Error {
    Error::new(ErrorKind::SourceIo, "the listing does not end: the store goes on with a page that it has given before, or with ever more of them")
        .in_file(location)
        .with_hint("name the objects one by one, or a longer prefix")
}

fn too_long(location: &str, bytes: usize) -> Error {
    let message = format!(
        "the store names the next page of its listing by {bytes} bytes, and howdah sends {TOKEN_BYTES_MAX} bytes at most"
    );
    Error::new(ErrorKind::SourceIo, message).in_file(location).with_hint("name the objects one by one")
}

/// Of `/a` the library lists `a`, which may be another object. Where keys are listed by folder, those stand
/// in one of their own. Some stores leave such a slash away, and list what has the name without; who does not
/// answer has said nothing of such keys. What is overlooked so is not read: the library would ask for `a`,
/// and of two that it lists as `a` the second is refused.
async fn refuse_slashes_before(bucket: &Arc<Bucket>, key: &str) -> Result<()> {
    let answered = |error: object_store::Error| match bucket.told(&error, &bucket.location(key)) {
        error if error.kind() == ErrorKind::SourceTransient => Err(error),
        _ => Ok(None),
    };
    let options = PaginatedListOptions { max_keys: Some(1), ..Default::default() };
    let asked = bucket.store.list_paginated(Some("/"), options).await;
    let listed = asked.map_or_else(answered, |page| Ok(page.result.objects.into_iter().next()))?;
    let Some(listed) = listed else { return Ok(()) };
    let options = GetOptions { head: true, ..GetOptions::default() };
    let asked = bucket.store.get_opts(&listed.location, options).await;
    match asked.map_or_else(answered, |answer| Ok(Some(answer.meta)))? {
        Some(meta) if is_same(&meta, &listed) => Ok(()),
        _ => Err(begins_with_slash(bucket, &format!("/{}", listed.location))),
    }
}

/// Listings tell parts of a second, answers do not.
fn is_same(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    let told = |meta: &ObjectMeta| (version_of(meta), meta.size, meta.last_modified.timestamp());
    told(one) == told(other)
}

/// Of `a/` it lists `a`, too. The empty ones are markers of folders; of others nobody should miss the rows.
fn doubled(found: &[(ObjectMeta, Option<String>)]) -> Option<&str> {
    let mut seen = HashSet::new();
    let again = found.iter().filter(|(meta, _)| !seen.insert(&meta.location));
    again.map(|(meta, _)| meta).find(|meta| meta.size > 0).map(|meta| meta.location.as_ref())
}

/// The library drops the `/` at the end of a key, so a folder's own marker comes without: it does not begin
/// with the prefix any more. Hidden objects are left out, as hidden files are.
fn kept(meta: ObjectMeta, prefix: &str, pattern: Option<&Pattern>) -> Option<(ObjectMeta, Option<String>)> {
    let key = meta.location.as_ref();
    if !key.starts_with(prefix) {
        return None;
    }
    let placeholder = match pattern {
        Some(pattern) => pattern.matches(key)?.placeholder,
        None if is_hidden(key, prefix) => return None,
        None => None,
    };
    Some((meta, placeholder))
}

/// A part of the key that the prefix does not begin already begins with a dot.
fn is_hidden(key: &str, prefix: &str) -> bool {
    let begun = prefix.rfind('/').map_or(0, |slash| slash + 1);
    let mut parts = key.get(begun..).unwrap_or_default().split('/');
    let first_is_hidden = parts.next().is_some_and(|first| first.starts_with('.') && begun == prefix.len());
    first_is_hidden || parts.any(|part| part.starts_with('.'))
}

/// For the same reason an empty object may be the marker of a folder; the store knows which.
async fn real(bucket: &Arc<Bucket>, meta: ObjectMeta, placeholder: Option<String>) -> Result<Option<Object>> {
    if meta.size == 0 {
        match open(bucket, meta.location.as_ref()).await {
            Err(error) if error.kind() == ErrorKind::SourceNotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Ok(Some(object(bucket, meta, placeholder)))
}

fn object(bucket: &Arc<Bucket>, meta: ObjectMeta, placeholder: Option<String>) -> Object {
    let location = bucket.location(meta.location.as_ref());
    let version = version_of(&meta);
    let object = StoredObject { bucket: Arc::clone(bucket), key: meta.location, bytes: meta.size, version };
    Object::stored(location, placeholder, object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_is_what_the_prefix_does_not_name() {
        for (key, prefix) in [("out/.a", "out/"), (".a", ""), ("out/.b/a", "out"), ("out/a/.b/c", "out/")] {
            assert!(is_hidden(key, prefix), "{key} {prefix}");
        }
        for (key, prefix) in [("out/a.b", "out/"), ("out/.a", "out/."), (".b/a", ".b/"), (".bc", ".b")] {
            assert!(!is_hidden(key, prefix), "{key} {prefix}");
        }
    }

    /// A gateway before a file system lists files it did not write itself with an empty tag, and answers
    /// requests for them without any.
    #[test]
    fn an_empty_tag_is_none() {
        let listed = ObjectMeta {
            location: Path::from("k"),
            last_modified: std::time::SystemTime::UNIX_EPOCH.into(),
            size: 7,
            e_tag: Some("\"\"".to_owned()),
            version: None,
        };
        let answered = ObjectMeta { e_tag: None, ..listed.clone() };
        assert_eq!(version_of(&listed), version_of(&answered));
        let tagged = ObjectMeta { e_tag: Some("\"a1\"".to_owned()), ..answered };
        assert_eq!(version_of(&tagged), "a1");
    }
}
