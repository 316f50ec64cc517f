//! Rows of a complete staging table come into their table: all of them, or by their key.
//!
//! In the order it happens: [`table`] reads what the key is backed by, and how columns are compared, and by
//! which [`borders`] rows are cut into parts; [`order`] tells which tables come first; [`duplicates`] finds
//! records of one key; [`leave_out`] takes those away that the table would refuse; [`statements`] writes the
//! statements; [`part`] runs them, one part of the rows in one transaction that also holds a row of the
//! ledger, so that no part comes twice; [`verify`] looks whether they are there then, and [`refusing`] which
//! row it is that the table does not take.

pub(crate) mod borders;
pub mod duplicates;
pub mod leave_out;
pub mod order;
pub mod part;
pub mod refusing;
pub mod statements;
pub mod table;
pub mod verify;

/// How long an error of these statements says it was about.
pub(crate) const DOING: &str = "bringing rows into the table";

/// What a hint ends with where what waits goes on.
const AGAIN: &str = "run the same command again";

/// Where rows break a constraint of the table that they are to come into.
pub(crate) const BROKEN_HINT: &str = "howdah check with the same files and table lists the records that it would not take, and \
     --on-error skip leaves them out";
