//! What the crate promises, tried on many inputs.
#![allow(clippy::unwrap_used)]

mod decompress;
mod inference;
mod reference;
mod split;
