//! What the crate promises, tried on many inputs.
#![allow(clippy::unwrap_used)]

mod decompress;
mod reference;
mod split;
