//! A table and all its partitions on every level, as the catalog tells them. `pg_partition_tree` and
//! `pg_relation_size` wait for the locks of partitions; these wait for nobody, so that whoever only looks is
//! held up by no one.
//!
//! A partition that is being detached (DETACH CONCURRENTLY) counts until that is done: what is on it is still
//! tied to the table. Who sends rows has to leave it out (`is_detached`).

/// `WITH RECURSIVE tree (parent, level, is_detached, oid)`, from the OID that this expression, and what
/// follows it of its SELECT, says.
macro_rules! tree_of {
    ($root:literal) => {
        concat!(
            "WITH RECURSIVE tree (parent, level, is_detached, oid) AS ( \
                SELECT 0::pg_catalog.oid, 0, false, ",
            $root,
            " UNION ALL \
                SELECT h.inhparent, tree.level + 1, tree.is_detached \
                    OR coalesce((pg_catalog.to_jsonb(h) ->> 'inhdetachpending'::pg_catalog.text)::pg_catalog.bool, false), h.inhrelid \
                FROM tree JOIN pg_catalog.pg_class p ON p.oid = tree.oid AND p.relkind = 'p' \
                JOIN pg_catalog.pg_inherits h ON h.inhparent = p.oid) "
        )
    };
}
pub(crate) use tree_of;

/// The bytes of the relation with this row of `pg_class`. Of one that somebody has, or wants, for himself
/// alone, what the last VACUUM or ANALYZE has counted: its size is not told to others until he is done.
macro_rules! bytes_of {
    ($class:literal) => {
        concat!(
            "CASE WHEN ",
            $class,
            ".oid IN (SELECT l.relation FROM pg_catalog.pg_locks l \
                      WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock' AND l.pid <> pg_catalog.pg_backend_pid()) \
             THEN ",
            $class,
            ".relpages::pg_catalog.int8 * pg_catalog.current_setting('block_size')::pg_catalog.int8 \
             ELSE pg_catalog.pg_relation_size(",
            $class,
            ".oid) END"
        )
    };
}
pub(crate) use bytes_of;

/// Of the table with schema `$1` and name `$2`.
pub(crate) const BY_NAME_SQL: &str = tree_of!(
    "t.oid FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace \
     WHERE tn.nspname = $1 AND t.relname = $2"
);

/// Of the table with the OID `$1`.
pub(crate) const BY_OID_SQL: &str = tree_of!("$1::pg_catalog.oid");
