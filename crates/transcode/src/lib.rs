//! Bytes to COPY bytes: decompress, split, encode. Same bytes in, same bytes out; no sockets, files,
//! clocks or async.
//!
//! In the order of the flow:
//! 1. [`decompress`]: stored bytes to plain bytes;
//! 2. [`split`]: where records end, exactly as the server's COPY would say;
//! 3. [`dialect`]: how records and fields are written, found from a sample;
//! 4. [`header`]: the names in a header record;
//! 5. [`infer`]: types, names and readings of columns, from their values and headers;
//! 6. [`encode`]: records and characters that COPY cannot take as they are, rewritten;
//! 7. [`route`]: rows laid out by the leaf partition that takes them; [`number`]: rows with what a sequence
//!    gives them;
//! 8. [`sift`]: what is wrong with a record, where bad ones do not stop a load.
//!
//! A file in a dialect that COPY cannot be told is read by [`mend`] before it is split; bytes that pass
//! untouched are looked at by [`inspect`], and by [`characters`] where their dialect was told. [`cells`] says
//! what the records of a dialect are. Before any of it, [`copy_options`] reads what a user wrote about the
//! files in COPY's own words.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod decompress;
pub mod split;

pub mod cells;
pub mod characters;
pub mod dialect;
mod fault;
pub mod inspect;
pub mod mend;

pub mod header;

pub mod infer;

pub mod encode;

pub mod number;
pub mod repeated_header;
pub mod route;
pub mod sift;

pub mod copy_options;
