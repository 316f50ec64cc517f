//! What suits the build of an index: memory for its sort and parallel workers.

use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Relation, Result};

/// Each process of a build must have so much, or the server takes fewer (`plan_create_index_workers`), unless the table
/// says how many it takes.
const SORT_KILOBYTES: u64 = 32 * 1024;

/// The same of a sort that compares strings by functions of the C library: what stays in a CPU's own cache is sorted
/// sooner, and merging takes fewer comparisons than sorting. 4 million strings took 3.8 s so and 5.6 s in 64 MB, 1,000
/// different ones among them 2.7 and 5.1 s, 20 million 20.8 and 28.6 s (docs/decisions/2026-11-22-indexes.md).
const LIBC_SORT_KILOBYTES: u64 = 4 * 1024;

/// Numbers that stand in the table nearly in the order of the index are sorted sooner where all of them fit into memory, so that
/// there are no files to write and to merge. Not more than was measured: 4 million rows, three indexes, 2 CPUs
/// (docs/decisions/2026-11-22-indexes.md).
const IN_ORDER_KILOBYTES_MAX: u64 = 256 * 1024;

/// A row of such a sort: its entry in the array, its tuple, and what the array grows by in advance (`grow_memtuples`).
const IN_ORDER_ROW_BYTES: u64 = 60;

/// Pages of a table that tell whether its rows are in order: a millisecond.
const LOOK_PAGES: f64 = 128.0;
const PAGE_BYTES: f64 = 8192.0;

/// Where so many of the rows looked at are smaller than the one before, a column is not in order. Sessions that write
/// side by side take turns with pages of some 50 rows.
const FALLS_PART: i64 = 8;

/// A tape of a merge takes so much (`MERGE_BUFFER_SIZE` and `TAPE_BUFFER_OVERHEAD` in `tuplesort.c`).
const TAPE_KILOBYTES: f64 = 264.0;

/// SQL that is true for the row `i` of `pg_index` if its first column holds strings that are compared by functions of the C
/// library: for these the server has no abbreviated keys (`TRUST_STRXFRM` in `varlena.c`).
macro_rules! compared_by_libc {
    () => {
        "EXISTS ( \
             SELECT FROM pg_catalog.pg_collation co \
             JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() \
             WHERE co.oid = i.indcollation[0] AND CASE co.collprovider \
                 WHEN 'c' THEN co.collcollate NOT IN ('C', 'POSIX') \
                 WHEN 'd' THEN coalesce(pg_catalog.to_jsonb(d) ->> 'datlocprovider', 'c') = 'c' \
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
    /// Memory for all of its rows, where these stand in order.
    pub(crate) in_order_kilobytes: Option<u64>,
}

/// How the rows of a table stand by a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    rows: f64,
    in_order: bool,
    shared_buffers_kilobytes: u64,
}

impl Order {
    /// Looks at some pages, in the open transaction. `None`: the role may not read the column, or it is gone, as the server will
    /// say when the index is built.
    pub(crate) async fn look(
        session: &Session,
        (relation, column): (&Relation, &str),
        table_bytes: u64,
    ) -> Result<Option<Order>> {
        let percent = (100.0 * LOOK_PAGES * PAGE_BYTES / table_bytes.max(1) as f64).min(100.0);
        let (column, table) = (quote_ident(column), quote_relation(relation));
        let sql = format!(
            "SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE s.this < s.before), \
                    pg_catalog.pg_size_bytes(pg_catalog.current_setting('shared_buffers')) / 1024 \
             FROM (SELECT {column} AS this, pg_catalog.lag({column}) OVER () AS before \
                   FROM ONLY {table} TABLESAMPLE SYSTEM ({percent}) REPEATABLE (0)) AS s"
        );
        let client = session.client();
        let fail =
            |error: tokio_postgres::Error| session_error(&error, "looking how rows stand in the table");
        client.batch_execute("SAVEPOINT look").await.map_err(fail)?;
        match client.query_typed(&sql, &[]).await {
            Ok(rows) => Ok(rows.first().map(|row| {
                let (seen, falls): (i64, i64) = (row.get(0), row.get(1));
                Order {
                    rows: seen as f64 * 100.0 / percent,
                    in_order: falls * FALLS_PART < seen,
                    shared_buffers_kilobytes: row.get::<_, i64>(2).unsigned_abs(),
                }
            })),
            Err(error) if error.as_db_error().is_some() => {
                client.batch_execute("ROLLBACK TO look").await.map_err(fail)?;
                Ok(None)
            }
            Err(error) => Err(fail(error)),
        }
    }

    /// Memory for all rows of one sort, if they are in order and so many `builders` together take no more than half of
    /// what the server has for its buffers, which tells how large it is.
    pub(crate) fn sort_kilobytes(self, builders: u32) -> Option<u64> {
        let kilobytes = (self.rows * IN_ORDER_ROW_BYTES as f64 / 1024.0) as u64;
        let most =
            IN_ORDER_KILOBYTES_MAX.min(self.shared_buffers_kilobytes / (2 * u64::from(builders.max(1))));
        (self.in_order && kilobytes <= most).then_some(kilobytes)
    }
}

impl Build {
    /// Statements that set both for the open transaction: so many workers as are offered, and the memory that they need. More
    /// made no build quicker, and strings are sorted sooner in less: the server then takes workers only if the table says
    /// how many, and one worker that sorts half of the strings in the usual memory gains less than that.
    pub(crate) fn settings(self, workers: u32) -> [String; 2] {
        let of_table = self.table_workers;
        if let (Some(kilobytes), 0..=1) = (self.in_order_kilobytes, workers) {
            // A worker would halve the memory.
            return [set(WORKERS, "least", 0), set(MEMORY, "greatest", kilobytes)];
        }
        let (workers, bound, kilobytes) = if self.compared_by_libc && (of_table.is_some() || workers <= 1) {
            (workers.min(of_table.unwrap_or(0)), "least", self.libc_sort_kilobytes())
        } else {
            (workers, "greatest", SORT_KILOBYTES)
        };
        let kilobytes = kilobytes * (u64::from(workers) + 1);
        [set(WORKERS, "least", u64::from(workers)), set(MEMORY, bound, kilobytes)]
    }

    /// The larger the table, the more, so that two merges are enough: what is sorted takes about as much as the rows.
    fn libc_sort_kilobytes(self) -> u64 {
        let table_kilobytes = self.table_bytes as f64 / 1024.0;
        let two_merges = (table_kilobytes * TAPE_KILOBYTES * TAPE_KILOBYTES).cbrt();
        LIBC_SORT_KILOBYTES.max(two_merges as u64)
    }
}

const WORKERS: &str = "max_parallel_maintenance_workers";
const MEMORY: &str = "maintenance_work_mem";

fn set(name: &str, bound: &str, value: u64) -> String {
    format!(
        "SELECT pg_catalog.set_config(name, {bound}(setting::pg_catalog.int8, {value})::text, true) \
         FROM pg_catalog.pg_settings WHERE name = '{name}'"
    )
}
