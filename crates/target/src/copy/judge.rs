//! What the server says about values that the client cannot read, many of them in one question.
//!
//! COPY ends at the first value that it does not take, so that finding a thousand of them would take a
//! thousand COPYs. `pg_input_error_info` (PostgreSQL 16) says the same of any number of values; to older
//! servers a function in the session's own temporary schema does. A verdict of "fine" settles nothing: such a
//! record is still shown to COPY.
//!
//! The server may log the parameters of statements. Where the session could not forbid that, the values come
//! by COPY into a temporary table, and as parameters only of a role that may make none.

use super::server_error::input_without_values;
use crate::salvage::may_be_of_a_row;
use crate::sql::quote_relation;
use howdah_model::Relation;
use std::pin::pin;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// The first version with `pg_input_error_info`.
const VERSION_ERROR_INFO: u32 = 160_000;

/// A value is read in a subtransaction of its own, by this statement, which calls what COPY would call. The
/// usual types have statements of their own, which are planned once a session and not once a value.
const FUNCTION_SQL: &str = "\
    CREATE FUNCTION pg_temp.howdah_judge(value pg_catalog.text, type_name pg_catalog.text, \
        reading pg_catalog.text, OUT message pg_catalog.text, OUT sql_error_code pg_catalog.text) LANGUAGE plpgsql AS $howdah$ \
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
            ELSE EXECUTE reading USING value; \
        END CASE; \
    EXCEPTION WHEN OTHERS THEN message := SQLERRM; sql_error_code := SQLSTATE; END $howdah$";

/// How such a statement calls the input function `p` in schema `n` of the type `t` of the column `a`: some
/// types read otherwise where the column gives them a modifier (`interval hour to minute`), which a cast
/// would only apply to what was read (`InputFunctionCall` in fmgr.c).
const READING_SQL: &str = "\
    pg_catalog.format('SELECT %I.%I($1::pg_catalog.cstring%s) IS NULL', n.nspname, p.proname, CASE WHEN p.pronargs > 1 THEN \
        pg_catalog.format(', %s::pg_catalog.oid', CASE WHEN t.typelem <> 0::pg_catalog.oid THEN t.typelem ELSE t.oid END) \
            || CASE WHEN p.pronargs > 2 THEN pg_catalog.format(', %s', a.atttypmod) ELSE '' END END)";

/// The values, where they are no parameters.
const ASKED: &str = "pg_temp.howdah_asked";

/// The values are to come by COPY.
const BY_COPY_SQL: &str = "\
    SELECT pg_catalog.current_setting('log_parameter_max_length') OPERATOR(pg_catalog.<>) '0' \
       AND pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP')";

/// A value that the server does not take for its column.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Which of the values asked about, from 0.
    pub(crate) no: usize,
    pub(crate) sqlstate: String,
    /// Without the value.
    pub(crate) message: String,
}

/// Asks about values of columns of a table, both unquoted. An error has aborted the transaction, or what is
/// open of it since the last savepoint: the role may not make temporary functions, or an input function fails
/// in its own way.
pub(crate) async fn judge(
    client: &Client,
    server_version: u32,
    relation: &Relation,
    columns: &[&str],
    values: &[&str],
) -> Result<Vec<Verdict>, Error> {
    let told = if server_version >= VERSION_ERROR_INFO {
        "pg_catalog.pg_input_error_info(asked.value, pg_catalog.format_type(a.atttypid, a.atttypmod))"
            .to_owned()
    } else {
        make_function(client).await?;
        format!(
            "pg_temp.howdah_judge(asked.value, pg_catalog.format_type(a.atttypid, a.atttypmod), {READING_SQL})"
        )
    };
    let by_copy: bool = client.query_typed_one(BY_COPY_SQL, &[]).await?.get(0);
    let asked = if by_copy {
        bring(client, columns, values).await?;
        ASKED
    } else {
        "ROWS FROM (pg_catalog.unnest($2), pg_catalog.unnest($3)) WITH ORDINALITY"
    };
    let sql = format!(
        "SELECT asked.no, told.sql_error_code, told.message \
         FROM {asked} asked(name, value, no) \
         JOIN pg_catalog.pg_attribute a ON a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attname = asked.name \
         JOIN pg_catalog.pg_type t ON t.oid = a.atttypid JOIN pg_catalog.pg_proc p ON p.oid = t.typinput::pg_catalog.oid \
         JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace, \
         LATERAL {told} told \
         WHERE told.message IS NOT NULL ORDER BY asked.no"
    );
    let parameters: [(&(dyn ToSql + Sync), Type); 3] =
        [(&quote_relation(relation), Type::TEXT), (&columns, Type::TEXT_ARRAY), (&values, Type::TEXT_ARRAY)];
    let parameters = if by_copy { &parameters[..1] } else { &parameters };
    let rows = client.query_typed(&sql, parameters).await?;
    let verdict = |row: &tokio_postgres::Row| {
        let sqlstate: String = row.get(1);
        let message = input_without_values(&sqlstate, row.get(2), columns);
        let no = usize::try_from(row.get::<_, i64>(0)).map_or(0, |no| no.saturating_sub(1));
        Verdict { no, sqlstate, message }
    };
    let verdicts = rows.iter().map(verdict);
    Ok(verdicts.filter(|verdict| may_be_of_a_row(&verdict.sqlstate)).collect())
}

/// Brings the values into a temporary table that is empty before the transaction and behind it.
async fn bring(client: &Client, columns: &[&str], values: &[&str]) -> Result<(), Error> {
    if !is_there(client, &format!("to_regclass('{ASKED}')")).await? {
        let sql = format!(
            "CREATE TEMPORARY TABLE {ASKED} (name pg_catalog.text, value pg_catalog.text, no pg_catalog.int8) \
             ON COMMIT DELETE ROWS"
        );
        client.batch_execute(&sql).await?;
    }
    let sink = client.copy_in(&format!("COPY {ASKED} FROM STDIN WITH (FORMAT binary)")).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::TEXT, Type::TEXT, Type::INT8]));
    for (no, (column, value)) in (1_i64..).zip(columns.iter().zip(values)) {
        writer.as_mut().write(&[column, value, &no]).await?;
    }
    writer.as_mut().finish().await.map(drop)
}

async fn make_function(client: &Client) -> Result<(), Error> {
    if is_there(client, "to_regprocedure('pg_temp.howdah_judge(text, text, text)')").await? {
        return Ok(());
    }
    client.batch_execute(FUNCTION_SQL).await
}

async fn is_there(client: &Client, lookup: &str) -> Result<bool, Error> {
    let sql = format!("SELECT pg_catalog.{lookup} IS NOT NULL");
    Ok(client.query_typed_one(&sql, &[]).await?.get(0))
}
