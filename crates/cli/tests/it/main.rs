//! What the command promises, kept against real servers and real kills: every test runs the binary.

// All of this is test code; the helpers' functions only do not look like it to clippy.
#![allow(clippy::unwrap_used)]

mod after;
mod again;
mod auto;
mod bench;
mod blocks;
mod broken_bytes;
mod changed;
mod check;
mod corpus;
mod crash;
mod documents;
mod embedded;
mod emptied;
mod encodings;
mod evolve;
mod failover;
mod guards;
mod indexes;
mod interrupt;
mod kills;
mod late;
mod ledger;
mod left_out;
mod lenient;
mod limits;
mod long_records;
mod memory;
mod modes;
mod names;
mod output;
mod pieces;
mod pipe;
mod planning;
mod policies;
mod real_files;
mod rejects;
mod rerun;
mod rights;
mod same_file;
mod scene;
mod second_table;
mod secrets;
mod sequences;
mod sessions;
mod strike;
mod toast;
mod torture;
mod triggers;
mod tune;
mod twice;
mod unlogged;
mod unquoted;
mod verify;
