//! What suits the build of an index: memory and files for its sort, and parallel workers.

use crate::session::Session;
use crate::session::rights::who;
use crate::sql::quote_ident;
use howdah_model::{Error, sqlstate};

/// Each process of a build must have so much, or the server takes fewer (`plan_create_index_workers`), unless
/// the table says how many it takes.
const SORT_KILOBYTES: u64 = 32 * 1024;

/// The same of a sort that compares strings by functions of the C library: what stays in a CPU's own cache is
/// sorted sooner, and merging takes fewer comparisons than sorting. 4 million strings took 3.8 s so and 5.6 s
/// in 64 MB, 1,000 different ones among them 2.7 and 5.1 s, 20 million 20.8 and 28.6 s
/// (docs/decisions/2026-11-22-indexes.md).
const LIBC_SORT_KILOBYTES: u64 = 4 * 1024;

/// A tape of a merge takes so much (`MERGE_BUFFER_SIZE` and `TAPE_BUFFER_OVERHEAD` in `tuplesort.c`).
const TAPE_KILOBYTES: f64 = 264.0;

/// SQL that is true where this role may set `temp_file_limit`, which a build that was promised should not end
/// at.
pub(crate) fn may_lift_sql(server_version: u32) -> &'static str {
    if server_version >= SET_IS_GRANTED_SINCE {
        "pg_catalog.has_parameter_privilege('temp_file_limit', 'SET')"
    } else {
        "(SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)"
    }
}

/// Servers on which rights to set a parameter are granted.
const SET_IS_GRANTED_SINCE: u32 = 150_000;

/// Lifts that limit for the open transaction, where the role may.
pub(crate) fn lift_sql(server_version: u32) -> String {
    format!(
        "SELECT pg_catalog.set_config('temp_file_limit', '-1', true) WHERE {}",
        may_lift_sql(server_version)
    )
}

/// An error of that limit with the statement that lifts it for the role's sessions, and what is to be done
/// `then`; others as they are. No transaction is open.
pub(crate) async fn with_lift(session: &Session, error: Error, then: &str) -> Error {
    if error.sqlstate() != Some(sqlstate::CONFIGURATION_LIMIT_EXCEEDED) {
        return error;
    }
    // Only a hint depends on it.
    let Ok(who) = who(session).await else { return error };
    let (role, database) = (quote_ident(&who.login), quote_ident(&who.database));
    error.with_hint(format!(
        "a superuser can run ALTER ROLE {role} IN DATABASE {database} SET temp_file_limit = -1, then {then}"
    ))
}

/// SQL that is true for the row `i` of `pg_index` if its first column holds strings that are compared by
/// functions of the C library: for these the server has no abbreviated keys (`TRUST_STRXFRM` in `varlena.c`).
macro_rules! compared_by_libc {
    () => {
        "EXISTS ( \
             SELECT FROM pg_catalog.pg_collation co \
             JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() \
             WHERE co.oid = i.indcollation[0] AND CASE co.collprovider \
                 WHEN 'c' THEN co.collcollate NOT IN ('C', 'POSIX') \
                 WHEN 'd' THEN coalesce(pg_catalog.to_jsonb(d) ->> 'datlocprovider'::pg_catalog.text, 'c') = 'c' \
                               AND d.datcollate NOT IN ('C', 'POSIX') \
                 ELSE false END)"
    };
}
pub(crate) use compared_by_libc;

/// An index that is to be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Build {
    pub(crate) compared_by_libc: bool,
    pub(crate) table_bytes: u64,
    /// The table's own `parallel_workers`.
    pub(crate) table_workers: Option<u32>,
}

impl Build {
    /// Statements that set both for the open transaction: so many workers as are offered, and the memory that
    /// they need. More made no build quicker, and strings are sorted sooner in less: the server then takes
    /// workers only if the table says how many, and one worker that sorts half of the strings in the usual
    /// memory gains less than that.
    pub(crate) fn settings(self, workers: u32) -> [String; 2] {
        let of_table = self.table_workers;
        let (workers, bound, kilobytes) = if self.compared_by_libc && (of_table.is_some() || workers <= 1) {
            (workers.min(of_table.unwrap_or(0)), "least", self.libc_sort_kilobytes())
        } else {
            (workers, "greatest", SORT_KILOBYTES)
        };
        let kilobytes = kilobytes * (u64::from(workers) + 1);
        let set = |name: &str, bound: &str, value: u64| {
            format!(
                "SELECT pg_catalog.set_config(name, {bound}(setting::pg_catalog.int8, {value})::text, true) \
                 FROM pg_catalog.pg_settings WHERE name = '{name}'"
            )
        };
        [
            set("max_parallel_maintenance_workers", "least", u64::from(workers)),
            set("maintenance_work_mem", bound, kilobytes),
        ]
    }

    /// The larger the table, the more, so that two merges are enough: what is sorted takes about as much as
    /// the rows.
    fn libc_sort_kilobytes(self) -> u64 {
        let table_kilobytes = self.table_bytes as f64 / 1024.0;
        let two_merges = (table_kilobytes * TAPE_KILOBYTES * TAPE_KILOBYTES).cbrt();
        LIBC_SORT_KILOBYTES.max(two_merges as u64)
    }
}
