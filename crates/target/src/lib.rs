//! COPY bytes to committed rows: everything that talks to PostgreSQL.
//!
//! In the order the data flows:
//! - [`embedded`]: a server of the user's own, where none is named;
//! - [`session`]: connecting as libpq does, reading a table's shape;
//! - [`define`]: tables made and changed for the data;
//! - [`date_partitions`]: partitions made for days and months that have none;
//! - [`copy`]: the COPY statement and its errors;
//! - [`ledger`]: what is in already, kept in the target database;
//! - [`commit`]: begin, claim, copy, commit: one chunk, exactly once;
//! - [`salvage`]: the same for a chunk of which some records are refused;
//! - [`freeze`]: the transaction that all rows of a table come in, frozen;
//! - [`staging`]: tables in which rows wait until all of them are there;
//! - [`arrival`]: how they come into their table then;
//! - [`check`]: what the table would have against them;
//! - [`verify`]: what is stored, compared with what is read again;
//! - [`policies`]: tables whose row-level security applies to the role;
//! - [`publications`]: those that take in tables as they are made;
//! - [`undo`]: indexes and constraints dropped for a load, and put back;
//! - [`tune`]: settings changed for a load, and put back;
//! - [`activity`]: what the sessions wait for, and ending one that is stuck;
//! - [`guards`]: what a load looks out for on the server;
//! - [`finish`]: the barrier after which nothing can be lost;
//! - [`numbers`]: blocks of a sequence's numbers, for rows that are to have them;
//! - [`sequences`]: moved past the values that the files brought;
//! - [`upkeep`]: ANALYZE and the like;
//! - [`rewrite`]: rules that would make something else of rows;
//! - [`replace`]: a new table takes the place of an old one;
//! - [`truncate`]: a table is emptied, once for each job;
//! - [`trial`]: a schema for tables that are only measured;
//! - [`sql`]: names and values quoted for statements.

pub mod embedded;

pub mod session;

pub mod date_partitions;
pub mod define;

pub mod copy;

pub mod ledger;

pub mod commit;
pub mod freeze;
pub mod salvage;

pub mod staging;

pub mod arrival;

pub mod check;
pub mod policies;
pub mod publications;

mod build;
pub mod undo;

pub mod verify;

pub mod tune;

pub mod activity;

pub mod guards;

pub mod finish;

pub mod numbers;
pub mod replace;
pub mod rewrite;
pub mod sequences;
pub mod storage;

pub mod upkeep;

pub mod trial;
pub mod truncate;

mod error;
mod locks;
mod membership;
mod same_table;
pub mod sql;
mod steady;
mod tree;
