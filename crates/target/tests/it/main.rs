//! What the target crate promises, kept against real servers: PostgreSQL 13, 15 and 18.

mod catalog;
mod commit;
mod ledger;
mod plan;
mod proxy;
mod server;
mod session;
mod tls;
