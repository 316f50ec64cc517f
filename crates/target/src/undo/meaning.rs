//! Whether an index that was just built is made of what its definition says.
//!
//! The server tells what is its own by name alone, and reads such a name by the `search_path`: a function or
//! an operator of a user's schema whose arguments fit better than `anyarray` would be taken in its place.
//! [`super::to_be_read`] spells definitions so that what was there before the drop is not taken; this notices
//! what has come since.

use crate::ledger::{NewUndo, UndoKind};
use crate::sql::quote_literal;

/// A setting that nobody has made: to ask for its value is an error, whose message names it.
const ELSE_SETTING: &str = "howdah.the_index_would_mean_something_else";

/// A statement that fails where the index or exclusion constraint depends on a function or operator that its
/// definition names now and did not name before, for messages that end in COMMIT; `None` for what names
/// neither. What no definition names (the functions of casts, the operators of NULLIF and IS DISTINCT FROM)
/// was found by the `search_path` before, too.
pub(super) fn expect_sql(change: &NewUndo) -> Option<String> {
    let speaks = match change.kind {
        UndoKind::Index | UndoKind::PartitionedIndex => true,
        UndoKind::Constraint => change.definition.starts_with("EXCLUDE "),
        _ => false,
    };
    speaks.then(|| {
        format!(
            "SET LOCAL search_path = ''; \
             SELECT CASE WHEN NOT EXISTS ( \
                 SELECT FROM (SELECT pg_catalog.to_regclass({index})::pg_catalog.oid AS oid, \
                                     (SELECT k.oid FROM pg_catalog.pg_constraint k \
                                      WHERE k.conrelid = {table_oid}::pg_catalog.oid AND k.conname = {name}) AS constraint_oid) made \
                 JOIN pg_catalog.pg_depend d ON (d.classid, d.objid) IN ( \
                     ('pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid, made.oid), \
                     ('pg_catalog.pg_constraint'::pg_catalog.regclass::pg_catalog.oid, made.constraint_oid)) \
                 LEFT JOIN pg_catalog.pg_proc p \
                   ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid AND p.oid = d.refobjid \
                 LEFT JOIN pg_catalog.pg_operator o \
                   ON d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid AND o.oid = d.refobjid \
                 JOIN pg_catalog.pg_namespace n ON n.oid = coalesce(p.pronamespace, o.oprnamespace), \
                 LATERAL (SELECT pg_catalog.quote_ident(n.nspname) || '.' \
                              || coalesce(pg_catalog.quote_ident(p.proname), o.oprname) AS named) f \
                 WHERE n.nspname <> 'pg_catalog' AND pg_catalog.strpos({definition}, f.named) = 0 \
                   AND pg_catalog.strpos(pg_catalog.concat(pg_catalog.pg_get_indexdef(made.oid), \
                                                           pg_catalog.pg_get_constraintdef(made.constraint_oid)), f.named) > 0) \
             THEN '' ELSE pg_catalog.current_setting('{ELSE_SETTING}') END",
            index = quote_literal(&change.index()),
            table_oid = change.table_oid,
            name = quote_literal(&change.name),
            definition = quote_literal(&change.definition),
        )
    })
}

/// It is what [`expect_sql`] fails with.
pub(super) fn is_else(message: &str) -> bool {
    message.contains(ELSE_SETTING)
}
