//! Rows of staging tables that their tables would refuse are taken away, in one transaction with what the
//! ledger keeps of them. What they are is found by queries before (`check`); here it is made so.

use super::DOING;
use super::part::Surroundings;
use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_columns, quote_ident, quote_literal, quote_relation};
use bytes::Bytes;
use futures_util::TryStreamExt;
use howdah_model::{ErrorKind, Format, FormatKind, Result, StagingPlan, TablePlan};
use std::collections::HashSet;
use std::pin::pin;
use tokio_postgres::types::Type;

/// Opens the transaction. Nobody reads the staging tables until it ends: what others have brought in of them
/// is known by then. False, and no transaction is open, where some of their rows are in their table, which
/// then must stay.
///
/// # Errors
/// Those of the session and the ledger.
pub async fn begin(
    session: &Session,
    around: Surroundings<'_>,
    staged: &[(&TablePlan, &StagingPlan)],
) -> Result<bool> {
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| session_error(&error, DOING))
    };
    run(&around.begin_sql(session)).await?;
    for (_, staging) in staged {
        run(&format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", quote_relation(&staging.relation))).await?;
    }
    for (plan, _) in staged {
        if around.ledger.steps_done(session, around.job_id, &plan.table.relation).await?.1 > 0 {
            run("ROLLBACK").await?;
            return Ok(false);
        }
    }
    around.ledger.expect_chunks(session, around.job_id, around.chunks).await.map(|()| true)
}

/// Asks within the transaction what would be found behind a change, which is then undone; nothing where the
/// server refuses to tell.
///
/// # Errors
/// Those of the session.
pub async fn on_trial(
    session: &Session,
    work: impl AsyncFnOnce(&Session) -> Result<HashSet<i64>>,
) -> Result<HashSet<i64>> {
    let run = async |sql: &str| {
        session.client().batch_execute(sql).await.map_err(|error| session_error(&error, DOING))
    };
    run("SAVEPOINT howdah_trial; SET LOCAL row_security = off").await?;
    let told = match work(session).await {
        Err(error) if error.kind() == ErrorKind::Server => HashSet::new(),
        told => told?,
    };
    run("ROLLBACK TO SAVEPOINT howdah_trial; RELEASE SAVEPOINT howdah_trial").await?;
    Ok(told)
}

/// Ends it well.
///
/// # Errors
/// Those of the session.
pub async fn commit(session: &Session) -> Result<()> {
    session.client().batch_execute("COMMIT").await.map_err(|error| session_error(&error, DOING))
}

/// Deletes the rows of these places; how many there were.
///
/// # Errors
/// Those of the session.
pub async fn delete(session: &Session, staging: &StagingPlan, places: &Vec<i64>) -> Result<u64> {
    let Some(place) = &staging.place else { return Ok(0) };
    let sql = format!(
        "DELETE FROM {} AS s USING pg_catalog.unnest($1) AS d (place) WHERE s.{} = d.place",
        quote_relation(&staging.relation),
        quote_ident(&place.name)
    );
    let done = session.client().execute_typed(&sql, &[(places, Type::INT8_ARRAY)]).await;
    done.map_err(|error| session_error(&error, DOING))
}

/// The rows of these places, in their order, as COPY of this format writes them: for records that cannot be
/// read again.
///
/// # Errors
/// Those of the session.
pub async fn written_anew(
    session: &Session,
    plan: &TablePlan,
    staging: &StagingPlan,
    format: &Format,
    places: &[i64],
) -> Result<Bytes> {
    let Some(place) = &staging.place else { return Ok(Bytes::new()) };
    let fields: Vec<String> = plan.fields.iter().flatten().cloned().collect();
    let numbers: Vec<String> = places.iter().map(i64::to_string).collect();
    let place = quote_ident(&place.name);
    let sql = format!(
        "COPY (SELECT {} FROM {} WHERE {place} = ANY ('{{{}}}'::pg_catalog.int8[]) ORDER BY {place}) TO STDOUT WITH ({})",
        quote_columns(&fields),
        quote_relation(&staging.relation),
        numbers.join(","),
        options(format)
    );
    let reading = async {
        let mut stream = pin!(session.client().copy_out(&sql).await?);
        let mut written = Vec::new();
        while let Some(bytes) = stream.try_next().await? {
            written.extend_from_slice(&bytes);
        }
        Ok(Bytes::from(written))
    };
    reading.await.map_err(|error: tokio_postgres::Error| session_error(&error, DOING))
}

fn options(format: &Format) -> String {
    let byte = |byte: u8| quote_literal(&char::from(byte).to_string());
    let (delimiter, null) = (byte(format.delimiter), quote_literal(&format.null));
    let encoding = quote_literal(format.encoding.as_deref().unwrap_or("UTF8"));
    let common = format!("DELIMITER {delimiter}, NULL {null}, ENCODING {encoding}");
    match format.kind {
        FormatKind::Text => format!("FORMAT text, {common}"),
        FormatKind::Csv => {
            format!("FORMAT csv, {common}, QUOTE {}, ESCAPE {}", byte(format.quote), byte(format.escape))
        }
    }
}
