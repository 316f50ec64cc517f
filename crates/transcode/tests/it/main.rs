//! What the crate promises, tried on many inputs.
#![allow(clippy::unwrap_used)]

mod careful;
mod decompress;
mod inference;
mod mend;
mod reference;
mod split;
