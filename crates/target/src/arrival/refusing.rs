//! Which of the rows that wait a table refuses, where only storing tells that: a trigger raises an error or
//! drops the row, or a row-level security policy does not let it in. Rows are brought in as they would come,
//! by halves of halves, in a transaction that is rolled back.

use super::DOING;
use super::part::{Surroundings, Way, come_in, run};
use super::statements::Span;
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use crate::tree::BY_NAME_SQL;
use howdah_model::{Error, Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// A trigger that fires once for all rows of a statement may judge by their sum: it refuses no single one.
const JUDGES_ALL_SQL: &str = "\
    SELECT EXISTS (SELECT FROM tree JOIN pg_catalog.pg_trigger g ON g.tgrelid = tree.oid \
                   WHERE g.tgtype & 1::pg_catalog.int2 = 0 AND g.tgenabled <> 'D')";

/// The first row, in the order of the files, that does not come in for a reason with the SQLSTATE of `known`:
/// its place, and what is said of it alone. `None` where all come in, or no single row is at fault. Rows
/// before it are in when it is tried, and all is undone then, but for numbers that triggers and defaults have
/// drawn from sequences.
///
/// # Errors
/// What is said of a row for another reason; those of the session.
pub async fn first(
    session: &Session,
    around: Surroundings<'_>,
    ways: &[Way<'_>],
    known: &Error,
) -> Result<Option<(i64, Error)>> {
    let Some(begin) = ways.first() else { return Ok(None) };
    run(session, *begin, &around.begin_sql(session)).await?;
    for way in ways {
        if judges_all(session, &way.into.relation).await? {
            break;
        }
        if let Some(found) = within_table(session, *way, known).await? {
            session.roll_back().await;
            return Ok(Some(found));
        }
    }
    session.roll_back().await;
    Ok(None)
}

async fn judges_all(session: &Session, relation: &Relation) -> Result<bool> {
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let rows = session.rows(&format!("{BY_NAME_SQL} {JUDGES_ALL_SQL}"), &names, DOING).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// What comes in on the way stays in.
async fn within_table(session: &Session, way: Way<'_>, known: &Error) -> Result<Option<(i64, Error)>> {
    let Some(place) = way.into.staging.place.as_ref().map(|place| quote_ident(&place.name)) else {
        return Ok(None);
    };
    let (mut from, mut to) = (0, i64::MAX);
    while let Some((rows, last)) = first_half(session, way, &place, (from, to)).await? {
        let span = Span { places: Some((from, last + 1)), ..Span::default() };
        run(session, way, "SAVEPOINT howdah_half").await?;
        match come_in(session, way, &span).await {
            Ok(_) => {
                run(session, way, "RELEASE SAVEPOINT howdah_half").await?;
                from = last + 1;
            }
            Err(error) if error.sqlstate() == known.sqlstate() && error.kind() == known.kind() => {
                if rows == 1 {
                    return Ok(Some((last, error)));
                }
                run(session, way, "ROLLBACK TO SAVEPOINT howdah_half").await?;
                to = last + 1;
            }
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// How many rows the places hold, and the place of the last one of their first half. `None` without any.
async fn first_half(
    session: &Session,
    way: Way<'_>,
    place: &str,
    (from, to): (i64, i64),
) -> Result<Option<(i64, i64)>> {
    let sql = format!(
        "SELECT pg_catalog.count(*), pg_catalog.percentile_disc(0.5) WITHIN GROUP (ORDER BY s.{place}) FROM {} AS s \
         WHERE s.{place} >= {from}::pg_catalog.int8 AND s.{place} < {to}::pg_catalog.int8",
        quote_relation(&way.into.staging.relation)
    );
    let rows = session.rows(&sql, &[], DOING).await?;
    Ok(rows.first().and_then(|row| Some((row.get(0), row.get::<_, Option<i64>>(1)?))))
}
