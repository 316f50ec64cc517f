//! Stage 1: bytes from outside. Locations enter; objects with a name, a size, a version and bytes leave.
//!
//! 1. [`Sources::list`] expands what the user wrote: a path, a glob, a directory, `-`, `s3://`, `gs://`,
//!    `az://`, `http(s)://`, with at most one `{table}`.
//! 2. An [`Object`] names one of them and holds what must stay the same while it is read.
//! 3. [`Object::read_at`] reads ranges, [`Object::stream`] the stored bytes in order.
//!
//! It reads stored bytes as they are, refuses a source that changed, and never retries: the engine decides
//! that from the error's kind. It knows nothing of compression, records or PostgreSQL.

mod among;
mod aws;
mod azure;
mod bucket;
mod client;
mod container;
mod environment;
mod failure;
mod file;
mod google;
mod http;
mod list;
mod listing;
mod location;
mod object;
#[doc(hidden)]
pub mod outside;
mod path;
mod pattern;
mod profile;
mod proxy;
mod redirect;
mod remote;
mod setting;
mod stdin;
mod store;
mod walk;

pub use among::is_among;
pub use file::name_not_utf8;
pub use list::Sources;
pub use location::{is_redacted, shown_url};
pub use object::{BlockStream, Object};
pub use path::{absolute_location, real_location};

/// Blocks of local streams. 1 MiB keeps the system calls per gigabyte at a thousand and stays inside the
/// second-level cache of server CPUs while it is decompressed.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// One location may name this many objects, so that a glob over a data lake ends in an error instead of in
/// hours of listing; a job of more files than this is better cut into several.
pub(crate) const OBJECTS_MAX: usize = 100_000;
