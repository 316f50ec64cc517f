//! One thing to load. An [`Object`] is a name and what must stay the same; its bytes leave by ranges or as a
//! stream, always those of the version it was listed with. It reads one request's worth and never retries.

use crate::file::{FileId, FileStream, LocalFile};
use crate::http::HttpFile;
use crate::remote::RemoteStream;
use crate::stdin::{Pipe, PipeStream};
use crate::store::StoredObject;
use bytes::Bytes;
use howdah_model::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;

/// A file, a pipe, an object of a store, or a URL. Cheap to clone; holds no open file or connection.
#[derive(Clone)]
pub struct Object {
    location: Arc<str>,
    placeholder: Option<Arc<str>>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    File(Arc<LocalFile>),
    Pipe(Arc<Pipe>),
    Store(Arc<StoredObject>),
    Http(Arc<HttpFile>),
}

impl Object {
    fn new(location: String, placeholder: Option<String>, kind: Kind) -> Object {
        Object { location: location.into(), placeholder: placeholder.map(Into::into), kind }
    }

    pub(crate) fn file(location: String, placeholder: Option<String>, file: LocalFile) -> Object {
        Object::new(location, placeholder, Kind::File(Arc::new(file)))
    }

    pub(crate) fn pipe(location: String, placeholder: Option<String>, pipe: Pipe) -> Object {
        Object::new(location, placeholder, Kind::Pipe(Arc::new(pipe)))
    }

    pub(crate) fn stored(location: String, placeholder: Option<String>, object: StoredObject) -> Object {
        Object::new(location, placeholder, Kind::Store(Arc::new(object)))
    }

    pub(crate) fn http(location: String, file: HttpFile) -> Object {
        Object::new(location, None, Kind::Http(Arc::new(file)))
    }

    /// The name to show and to give to [`Sources::open`](crate::Sources::open): an absolute path, `-`,
    /// `s3://bucket/key`, or a URL. Holds no credentials: a URL that had some ends in `***` where its
    /// signature was (or begins so where its password was), and the user must give it again on resume.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The same for all paths that lead to one file on this machine; else [`Object::location`].
    pub fn real_location(&self) -> &str {
        match &self.kind {
            Kind::File(file) => file.real_path(),
            Kind::Pipe(_) | Kind::Store(_) | Kind::Http(_) => &self.location,
        }
    }

    /// What `{table}` stood for.
    pub fn placeholder(&self) -> Option<&str> {
        self.placeholder.as_deref()
    }

    /// The size as stored. `None` for pipes and for URLs whose server does not say.
    pub fn stored_bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::File(file) => Some(file.bytes()),
            Kind::Pipe(_) => None,
            Kind::Store(object) => Some(object.bytes()),
            Kind::Http(file) => file.bytes(),
        }
    }

    /// What tells this content from another: `size-mtime_ns` of a file, else the `ETag` without its quotes,
    /// else last modification and size. `None` for pipes, for URLs whose server says nothing, and for those
    /// with parameters that are not shown and no `ETag`: another file may have the same name, time and size.
    pub fn version(&self) -> Option<&str> {
        match &self.kind {
            Kind::File(file) => Some(file.version()),
            Kind::Pipe(_) => None,
            Kind::Store(object) => Some(object.version()),
            Kind::Http(file) => file.version(),
        }
    }

    /// Read again by this object, it is the same or an error, where it can be read again.
    pub fn tells_changes(&self) -> bool {
        match &self.kind {
            Kind::File(_) | Kind::Store(_) => true,
            Kind::Pipe(_) => false,
            Kind::Http(file) => file.tells_changes(),
        }
    }

    /// It can be read a second time: everything but pipes.
    pub fn rereadable(&self) -> bool {
        !matches!(self.kind, Kind::Pipe(_))
    }

    /// What tells a file on this machine from another one under its name.
    pub(crate) fn file_id(&self) -> Option<FileId> {
        match &self.kind {
            Kind::File(file) => Some(file.id()),
            Kind::Pipe(_) | Kind::Store(_) | Kind::Http(_) => None,
        }
    }

    /// [`Object::read_at`] works at any offset: files, stores, and URLs whose server knows ranges.
    pub fn ranged(&self) -> bool {
        match &self.kind {
            Kind::File(_) | Kind::Store(_) => true,
            Kind::Pipe(_) => false,
            Kind::Http(file) => file.ranged(),
        }
    }

    /// A regular file on this machine.
    pub fn local(&self) -> bool {
        matches!(self.kind, Kind::File(_))
    }

    /// Fills `out` with the stored bytes from `offset` on, less only where the object ends; returns how many.
    /// `Ok(0)`: at or after the end.
    ///
    /// Local files are read by `pread` inside the call, which blocks the thread for as long as the disk
    /// takes: call it from a thread that may block. Remote objects cost one request, and one copy into `out`.
    ///
    /// # Errors
    /// `SourceChanged` where the object is not the one listed; `SourceTransient` where trying again may help.
    pub async fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        self.read_on(offset, out, &mut filled).await?;
        Ok(filled)
    }

    /// The same for a buffer of which the first `filled` bytes have come already. What comes is counted
    /// there, also before an error: asked again, only the rest is read.
    ///
    /// # Errors
    /// As [`Object::read_at`].
    pub async fn read_on(&self, offset: u64, out: &mut [u8], filled: &mut usize) -> Result<()> {
        match &self.kind {
            Kind::File(file) => {
                *filled += file.read_at(offset + *filled as u64, &mut out[*filled..])?;
                Ok(())
            }
            Kind::Store(object) => object.read_on(&self.location, offset, out, filled).await,
            Kind::Http(file) if file.ranged() => file.read_on(&self.location, offset, out, filled).await,
            Kind::Http(_) | Kind::Pipe(_) => {
                let message = "a range was asked of a source that is only read in order";
                Err(Error::new(ErrorKind::Internal, message).in_file(&*self.location))
            }
        }
    }

    /// The stored bytes in order from `offset` to the end: one request for remote objects. A URL without
    /// ranges is read from its beginning and skipped over; a pipe can be streamed once, from 0.
    ///
    /// # Errors
    /// As [`Object::read_at`]; so has [`BlockStream::next`].
    pub async fn stream(&self, offset: u64) -> Result<BlockStream> {
        Ok(BlockStream(match &self.kind {
            Kind::File(file) => Blocks::File(FileStream::open(Arc::clone(file), offset)?),
            Kind::Pipe(pipe) => Blocks::Pipe(pipe.stream(offset, &self.location)?),
            Kind::Store(object) => Blocks::Remote(object.stream(&self.location, offset).await?),
            Kind::Http(file) => Blocks::Remote(file.stream(&self.location, offset).await?),
        }))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("Object");
        told.field("location", &self.location).field("placeholder", &self.placeholder);
        told.field("stored_bytes", &self.stored_bytes()).field("version", &self.version()).finish()
    }
}

/// Stored bytes in order.
pub struct BlockStream(Blocks);

enum Blocks {
    File(FileStream),
    Pipe(PipeStream),
    Remote(RemoteStream),
}

impl BlockStream {
    /// The next block, of at most 1 MiB and never empty; `None` once every byte was given. Local files block
    /// the thread as [`Object::read_at`] does; waiting for pipes and remote objects can be cancelled.
    ///
    /// # Errors
    /// A body that breaks off is `SourceTransient`: call [`Object::stream`] at the offset reached.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        match &mut self.0 {
            Blocks::File(file) => file.next(),
            Blocks::Pipe(pipe) => pipe.next().await,
            Blocks::Remote(remote) => remote.next().await,
        }
    }
}

impl fmt::Debug for BlockStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlockStream")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_send(_: &(impl Send + 'static)) {}

    #[test]
    fn reading_may_move_between_threads() {
        let object = Object::pipe("-".to_owned(), None, Pipe::stdin());
        assert_send(&object);
        assert_send(&{
            let object = object.clone();
            async move {
                let mut out = [0; 1];
                let count = object.read_at(0, &mut out).await;
                let blocks = object.stream(0).await?.next().await;
                count.and(blocks)
            }
        });
    }
}
