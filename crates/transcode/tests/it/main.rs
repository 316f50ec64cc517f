//! What the crate promises, tried on many inputs.
#![allow(clippy::unwrap_used)]

mod ahead;
mod binary;
mod careful;
mod corpus;
mod decompress;
mod encodings;
mod inference;
mod long_fields;
mod mend;
mod mess;
mod prose;
mod reference;
mod split;
mod whole_way;
