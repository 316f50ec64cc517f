//! COPY itself: its statement, sending the bytes, and what its errors mean.
//! A format and bytes enter, rows in an open transaction leave. Knows nothing of the ledger.

pub(crate) mod judge;
pub(crate) mod placed;
mod plain;
pub(crate) mod server_error;
pub(crate) mod silent;
mod statement;
pub(crate) mod stream;
pub(crate) mod unchanged;

pub use plain::plain;
pub(crate) use statement::{aim, freezing, into_leaf};
pub use statement::{binary_statement, statement, with_column};
