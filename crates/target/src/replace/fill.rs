//! A new table is filled from a staging table, in which rows have waited so that those could be left out that
//! its keys refuse.

use super::{Replacement, create, refused};
use crate::arrival::part::Surroundings;
use crate::arrival::table::expect_same_types;
use crate::finish::DURABLE_SQL;
use crate::session::Session;
use crate::sql::{quote_columns, quote_relation};
use crate::staging;
use howdah_model::{Result, StagingPlan, TablePlan};
use std::collections::BTreeSet;
use tokio_postgres::types::{ToSql, Type};

const NOTHING: &[(&(dyn ToSql + Sync), Type)] = &[];

/// The statements that give back to the transaction what it had before [`create`], since defaults and
/// constraints may depend on it.
const SETTINGS_SQL: &str = "\
    SELECT pg_catalog.string_agg(pg_catalog.format('SELECT pg_catalog.set_config(%L, %L, true)', name, \
                                                   pg_catalog.current_setting(name)), '; ') \
    FROM pg_catalog.unnest(ARRAY['standard_conforming_strings', 'datestyle', 'intervalstyle', 'extra_float_digits', \
                                 'quote_all_identifiers', 'search_path', 'default_tablespace']) AS s (name)";

/// Makes the new table with all rows that wait, unless it is there with them. A table from which rows were
/// left out since is made anew, which locks those that its foreign keys refer to: that is waited for no
/// longer than the surroundings say.
///
/// # Errors
/// Table, for what the table has against rows; Server with 55P03 when a table was not free within the time,
/// which may pass; those of ledger and session.
pub async fn fill(
    session: &Session,
    around: Surroundings<'_>,
    plan: &TablePlan,
    waiting: &StagingPlan,
    replacement: Replacement<'_>,
) -> Result<()> {
    staging::made_once(session, async || fill_once(session, around, plan, waiting, replacement).await).await
}

async fn fill_once(
    session: &Session,
    around: Surroundings<'_>,
    plan: &TablePlan,
    waiting: &StagingPlan,
    replacement: Replacement<'_>,
) -> Result<()> {
    let Surroundings { ledger, job_id, lock_timeout_ms, .. } = around;
    let run = async |sql: &str| {
        let done = session.client().batch_execute(sql).await;
        done.map_err(|error| refused(&error, replacement.old))
    };
    run(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}")).await?;
    if staging::own::find(session, ledger, job_id, replacement.new, replacement.old).await?.is_some() {
        if holds_all(session, waiting, replacement).await? {
            return run("ROLLBACK").await;
        }
        run(&staging::drop_new_sql(ledger, job_id, replacement.new, lock_timeout_ms)).await?;
    }
    let settings = session.client().query_typed(SETTINGS_SQL, NOTHING).await;
    let settings = settings.map_err(|error| refused(&error, replacement.old))?;
    create(session, replacement).await?;
    staging::note(session, ledger, job_id, plan, replacement.new, None).await?;
    let columns: BTreeSet<String> = plan.fields.iter().flatten().cloned().collect();
    let columns: Vec<String> = columns.into_iter().collect();
    expect_same_types(session, replacement.new, &waiting.relation, &columns).await?;
    let columns = quote_columns(&columns);
    run(settings.first().map_or("", |row| row.get(0))).await?;
    let (new, waiting) = (quote_relation(replacement.new), quote_relation(&waiting.relation));
    run(&format!("INSERT INTO {new} ({columns}) SELECT {columns} FROM {waiting}; COMMIT")).await
}

/// Rows are only ever taken away from those that wait.
async fn holds_all(session: &Session, waiting: &StagingPlan, replacement: Replacement<'_>) -> Result<bool> {
    let sql = format!(
        "SELECT (SELECT pg_catalog.count(*) FROM {}) = (SELECT pg_catalog.count(*) FROM {})",
        quote_relation(replacement.new),
        quote_relation(&waiting.relation)
    );
    let rows = session.client().query_typed(&sql, NOTHING).await;
    let rows = rows.map_err(|error| refused(&error, replacement.old))?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}
