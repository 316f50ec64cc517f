//! Whether an entry was written into this very ledger, or came with it from another database.
//!
//! A dump carries rows and names, and no OIDs: the table that an entry speaks of has another one where it was
//! restored, and so has the table of the ledger, by which that is known. Such an entry's table is found by
//! its name.

/// Where an entry was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Here: its OIDs are those of this database.
    Here,
    /// In another database; the OID of its table was looked up by name, and is 0 where there is no such
    /// table.
    Elsewhere,
}

impl Origin {
    pub(super) fn of(is_here: bool) -> Origin {
        if is_here { Origin::Here } else { Origin::Elsewhere }
    }
}

/// Whether the row of the ledger's `table` was written here.
pub(super) fn here_sql(table: &str) -> String {
    format!("(({table}.ledger_oid = {table}.tableoid) IS NOT FALSE)")
}

/// The OID of the table that the row speaks of, in this database. Catalogs alone are asked: `to_regclass`
/// fails without USAGE on the schema.
pub(super) fn table_oid_sql(table: &str) -> String {
    let is_here = here_sql(table);
    format!(
        "CASE WHEN {is_here} OR {table}.table_oid = 0::pg_catalog.oid THEN {table}.table_oid \
         ELSE coalesce((SELECT named.oid FROM pg_catalog.pg_class named \
                        JOIN pg_catalog.pg_namespace placed ON placed.oid = named.relnamespace \
                        WHERE placed.nspname = {table}.schema_name AND named.relname = {table}.table_name), 0::pg_catalog.oid) END"
    )
}
