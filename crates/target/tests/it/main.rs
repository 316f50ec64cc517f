//! What the target crate promises, kept against real servers: PostgreSQL 13, 15 and 18.

// All of this is test code; the fixtures' functions only do not look like it to clippy.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod catalog;
mod commit;
mod define;
mod ledger;
mod plan;
mod proxy;
mod sequences;
mod server;
mod session;
mod storage;
mod tls;
mod tls_attacks;
