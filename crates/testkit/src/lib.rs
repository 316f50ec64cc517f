//! What the tests of all crates stand on: real servers, faults with names, nasty data, a command to kill.
//!
//! - [`Server`]: a throw-away PostgreSQL 13, 15 or 18, and [`Database`]s in it
//! - [`S3`]: a throw-away S3 server over a plain folder
//! - [`Proxy`]: stands before either and breaks connections in ways that have names ([`Fault`])
//! - [`SmallDisk`]: a file system that is full when a test says so; [`Clock`]: a wall clock that jumps
//! - [`HowdahCommand`]: runs the binary, interrupts and kills it
//! - [`corpus`]: messy files and the rows that they hold, and [`Scores`] that must not fall
//! - [`Mess`]: clean tables made messy in one known way, the same for the same seed
//! - [`NastyFile`]: CSV and text files that try to fool a splitter, the same for the same seed
//!
//! The servers come from `cargo xtask servers`. Everything ends with the test: on drop, after a panic, and
//! when the test's own process is killed. All calls block, and may be made from inside async tests. What
//! goes wrong in here panics: it is the test's failure.

mod background;
mod clock;
mod command;
pub mod compress;
mod connection;
mod corpus;
mod database;
mod fifo;
mod guard;
mod mess;
mod nasty;
mod place;
mod pooler;
mod proxy;
mod s3;
mod score;
mod server;
mod small_disk;
mod standby;

pub use clock::Clock;
pub use command::{Finished, HowdahCommand, Running};
pub use connection::Connection;
pub use corpus::{Case, Wanted, corpus, corpus_folder};
pub use database::{Database, Held, Row};
pub use mess::{Mess, MessKind, asked};
pub use nasty::{NastyFile, NastyOptions};
pub use place::{psql, scratch, servers_folder};
pub use pooler::{PoolMode, Pooler};
pub use proxy::{Fault, HttpFailure, Proxy};
pub use s3::S3;
pub use score::Scores;
pub use server::{MAJORS, Server, ServerOptions, side_by_side};
pub use small_disk::SmallDisk;
