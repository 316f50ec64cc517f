//! What the engine promises, kept against real servers: PostgreSQL 13, 15 and 18.
//!
//! [`oracle`] is the largest promise: whatever is in a file, howdah stores what one COPY of the server would
//! store, or stops at the record where that COPY stops. The other modules keep one promise a test.

// All of this is test code; the fixtures' functions only do not look like it to clippy.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, clippy::print_stdout)]

mod binary;
mod borders;
mod codecs;
mod files;
mod header;
mod limits;
mod numbers;
mod oracle;
mod partitions;
mod rig;
mod unquote;
