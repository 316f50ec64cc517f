//! What the crate promises, tried on many inputs.
#![allow(clippy::unwrap_used)]

mod reference;
mod split;
