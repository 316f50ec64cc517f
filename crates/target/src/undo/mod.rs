//! Indexes, keys and foreign keys dropped for a load, triggers disabled for it, and all put back as it was.
//!
//! In the order it happens: [`capture`] reads from the catalog what a table has, what it would take to put
//! each back, and what must not be dropped, the indexes of partitions together with those that they are parts
//! of (`partitions.rs`), nor what this role or server could not build again (`needs.rs`, `tried.rs`);
//! [`drop`] drops what the caller chooses and writes the journal in the same transaction; [`put_back`] does
//! what one entry of the journal says, `meaning.rs` tells whether that is what it was, and `reopen.rs` goes
//! back to the entries before, where somebody has dropped what they had put back. [`triggers`] does the same
//! for triggers. The server's own `pg_get_indexdef` and `pg_get_constraintdef` are the source of all
//! definitions.

pub mod capture;
mod catalog_sql;
pub mod drop;
mod entries;
mod meaning;
pub(crate) mod needs;
mod partitions;
pub mod put_back;
mod reopen;
pub(crate) mod tried;
pub mod triggers;

pub(crate) use catalog_sql::may_hang;

/// What a hint begins with where another role has to put back.
pub const RUN_BY_ANOTHER: &str = "howdah restore has to run as";

/// A definition as it is to be read under a `search_path`: what the server tells under an empty one names
/// everything in full but what is its own. If something of that path would take the place of one of these,
/// what it tells under the path has their schema.
pub(crate) fn to_be_read<'a>(in_full: &'a str, under_path: &'a str) -> &'a str {
    let own_in_full = |sql: &str| sql.matches("pg_catalog.").count();
    if own_in_full(under_path) > own_in_full(in_full) { under_path } else { in_full }
}

/// Under these the server writes definitions, reads them back and compares them: constants in predicates
/// depend on them (NULLs in arrays, XML, money, bytes ...), whatever role and database have set. They must be
/// set before a statement is sent that holds such a text, not in the same message.
pub(crate) const SPELLING_SQL: &str = "\
    SET LOCAL standard_conforming_strings = on; SET LOCAL datestyle = 'ISO, MDY'; \
    SET LOCAL intervalstyle = 'postgres'; SET LOCAL extra_float_digits = 3; SET LOCAL quote_all_identifiers = off; \
    SET LOCAL array_nulls = on; SET LOCAL bytea_output = 'hex'; SET LOCAL xmloption = 'content'; SET LOCAL lc_monetary = 'C'; \
    SET LOCAL transform_null_equals = off; SET LOCAL backslash_quote = 'safe_encoding'";
