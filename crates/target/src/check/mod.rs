//! What a table would have against rows that stand in a staging table: told by queries that read, and lock
//! nothing that a writer waits for.
//!
//! In the order it happens: [`facts`] reads from the catalog what the table demands; [`rows`] writes the rows
//! as they would be stored, defaults and generated columns included; [`rules`] writes one query for each
//! demand (`keys` the parts about keys), and names what no query can tell; [`left_out`] fills what some files
//! leave out; [`found`] runs them; `guarded` looks at rows one by one where an expression fails for some.
//! [`defaults`] tries what no query could be asked about, and [`entries`] stores for a moment what may be too
//! long for an index.

mod catalog_sql;
pub mod defaults;
pub mod entries;
pub mod facts;
pub mod found;
mod guarded;
mod keys;
pub mod left_out;
pub mod rows;
pub mod rules;

/// How long an error of these statements says it was about.
pub(crate) const DOING: &str = "checking the rows";
