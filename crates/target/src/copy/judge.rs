//! What the server says about values that the client cannot read, many of them in one question.
//!
//! COPY ends at the first value that it does not take, so that finding a thousand of them would take a thousand COPYs.
//! `pg_input_error_info` (PostgreSQL 16) says the same of any number of values; to older servers a function in the
//! session's own temporary schema does. A verdict of "fine" settles nothing: such a record is still shown to COPY.

use super::server_error::input_without_values;
use crate::sql::quote_relation;
use howdah_model::Relation;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// The first version with `pg_input_error_info`.
const VERSION_ERROR_INFO: u32 = 160_000;

/// A value of this type is cast as it would be in an assignment, in a subtransaction of its own. The usual types have
/// statements of their own, which are planned once a session and not once a value.
const FUNCTION_SQL: &str = "\
    CREATE FUNCTION pg_temp.howdah_judge(value pg_catalog.text, type_name pg_catalog.text, \
        OUT message pg_catalog.text, OUT sql_error_code pg_catalog.text) LANGUAGE plpgsql AS $howdah$ \
    DECLARE i4 pg_catalog.int4; i8 pg_catalog.int8; n pg_catalog.numeric; f8 pg_catalog.float8; d pg_catalog.date; \
            t pg_catalog.timestamp; tz pg_catalog.timestamptz; b pg_catalog.bool; u pg_catalog.uuid; \
    BEGIN \
        CASE type_name \
            WHEN 'integer' THEN i4 := value::pg_catalog.int4; \
            WHEN 'bigint' THEN i8 := value::pg_catalog.int8; \
            WHEN 'numeric' THEN n := value::pg_catalog.numeric; \
            WHEN 'double precision' THEN f8 := value::pg_catalog.float8; \
            WHEN 'date' THEN d := value::pg_catalog.date; \
            WHEN 'timestamp without time zone' THEN t := value::pg_catalog.timestamp; \
            WHEN 'timestamp with time zone' THEN tz := value::pg_catalog.timestamptz; \
            WHEN 'boolean' THEN b := value::pg_catalog.bool; \
            WHEN 'uuid' THEN u := value::pg_catalog.uuid; \
            ELSE EXECUTE 'SELECT CAST($1 AS ' || type_name || ')' USING value; \
        END CASE; \
    EXCEPTION WHEN OTHERS THEN message := SQLERRM; sql_error_code := SQLSTATE; END $howdah$";

/// A value that the server does not take for its column.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Which of the values asked about, from 0.
    pub(crate) no: usize,
    pub(crate) sqlstate: String,
    /// Without the value.
    pub(crate) message: String,
}

/// Asks about values of columns of a table, both unquoted. An error has aborted the transaction, or what is open of it
/// since the last savepoint: the role may not make temporary functions, or an input function fails in its own way.
pub(crate) async fn judge(
    client: &Client,
    server_version: u32,
    relation: &Relation,
    columns: &[&str],
    values: &[&str],
) -> Result<Vec<Verdict>, Error> {
    let function = if server_version >= VERSION_ERROR_INFO {
        "pg_catalog.pg_input_error_info"
    } else {
        make_function(client).await?;
        "pg_temp.howdah_judge"
    };
    let sql = format!(
        "SELECT asked.no, told.sql_error_code, told.message \
         FROM ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) WITH ORDINALITY asked(name, value, no) \
         JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass($1) AND a.attname = asked.name, \
         LATERAL {function}(asked.value, pg_catalog.format_type(a.atttypid, a.atttypmod)) told \
         WHERE told.message IS NOT NULL ORDER BY asked.no"
    );
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&quote_relation(relation), Type::TEXT), (&columns, Type::TEXT_ARRAY), (&values, Type::TEXT_ARRAY)];
    let rows = client.query_typed(&sql, &parameters).await?;
    let verdict = |row: &tokio_postgres::Row| {
        let sqlstate: String = row.get(1);
        let message = input_without_values(&sqlstate, row.get(2), columns);
        let no = usize::try_from(row.get::<_, i64>(0)).map_or(0, |no| no.saturating_sub(1));
        Verdict { no, sqlstate, message }
    };
    Ok(rows.iter().map(verdict).collect())
}

async fn make_function(client: &Client) -> Result<(), Error> {
    let sql = "SELECT pg_catalog.to_regprocedure('pg_temp.howdah_judge(text, text)') IS NOT NULL";
    let rows = client.query_typed(sql, &[]).await?;
    if rows.first().is_some_and(|row| row.get(0)) {
        return Ok(());
    }
    client.batch_execute(FUNCTION_SQL).await
}
