//! Which file encodings the server can read, and small conversions left to it.
//!
//! The names are PostgreSQL's (<https://www.postgresql.org/docs/current/multibyte.html>), spelled as loosely as the
//! server takes them.

use crate::error::session_error;
use crate::session::Session;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// An encoding is readable if it is the database's own, needs no conversion because one of the two is
/// SQL_ASCII, or has a default conversion to the database's.
const READS_SQL: &str = "\
    SELECT e.code >= 0 AND (e.code = d.encoding OR 0 IN (e.code, d.encoding) OR EXISTS ( \
               SELECT FROM pg_catalog.pg_conversion c \
               WHERE c.condefault AND c.conforencoding = e.code AND c.contoencoding = d.encoding)) \
    FROM (SELECT pg_catalog.pg_char_to_encoding($1::pg_catalog.text::pg_catalog.name) AS code) e, \
         (SELECT encoding FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) d";

const STORES_BYTES_SQL: &str = "\
    SELECT encoding = 0 AND pg_catalog.pg_char_to_encoding($1::pg_catalog.text::pg_catalog.name) >= 0 \
    FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

/// COPY can read files in this encoding.
///
/// # Errors
/// Those of the session.
pub async fn reads_encoding(session: &Session, name: &str) -> Result<bool> {
    let rows = session.rows(READS_SQL, &[(&name, Type::TEXT)], "asking for an encoding").await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// The database is of SQL_ASCII, so that it would store the bytes of a file in this encoding as they are.
///
/// # Errors
/// Those of the session.
pub async fn stores_bytes_of(session: &Session, name: &str) -> Result<bool> {
    let rows = session.rows(STORES_BYTES_SQL, &[(&name, Type::TEXT)], "asking for an encoding").await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// These bytes of a file as text, converted by the server.
///
/// # Errors
/// `Record` when they are not in that encoding; those of the session.
pub async fn to_utf8(session: &Session, bytes: &[u8], encoding: &str) -> Result<String> {
    let sql = "SELECT pg_catalog.convert_from($1, $2::pg_catalog.text::pg_catalog.name)";
    let rows = session.client().query_typed(sql, &[(&bytes, Type::BYTEA), (&encoding, Type::TEXT)]).await;
    match rows {
        Ok(rows) => Ok(rows.first().map(|row| row.get(0)).unwrap_or_default()),
        // character_not_in_repertoire, untranslatable_character
        Err(error)
            if matches!(
                error.code().map(SqlState::code),
                Some(sqlstate::CHARACTER_NOT_IN_REPERTOIRE | sqlstate::UNTRANSLATABLE_CHARACTER)
            ) =>
        {
            Err(Error::new(ErrorKind::Record, format!("the header is not valid {encoding}")))
        }
        Err(error) => Err(session_error(&error, "reading the header")),
    }
}
