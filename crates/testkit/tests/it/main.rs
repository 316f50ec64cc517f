//! The kit itself, against the real servers: a test kit that lies is worse than none.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod files;
mod guard;
mod postgres_faults;
mod s3_faults;
