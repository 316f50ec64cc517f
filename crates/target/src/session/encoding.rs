//! Which file encodings the server can read, and small conversions left to it.
//!
//! The names are PostgreSQL's (<https://www.postgresql.org/docs/current/multibyte.html>), spelled as loosely
//! as the server takes them.

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

const ASKING: &str = "asking for an encoding";

const STORES_BYTES_SQL: &str = "\
    SELECT encoding = 0 AND pg_catalog.pg_char_to_encoding($1::pg_catalog.text::pg_catalog.name) >= 0 \
    FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()";

/// COPY can read files in this encoding.
///
/// # Errors
/// Those of the session.
pub async fn reads_encoding(session: &Session, name: &str) -> Result<bool> {
    let rows = session.rows(READS_SQL, &[(&name, Type::TEXT)], ASKING).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// The database is of SQL_ASCII, so that it would store the bytes of a file in this encoding as they are.
///
/// # Errors
/// Those of the session.
pub async fn stores_bytes_of(session: &Session, name: &str) -> Result<bool> {
    let rows = session.rows(STORES_BYTES_SQL, &[(&name, Type::TEXT)], ASKING).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// The first of these names that the encoding of the database cannot hold, and that encoding.
///
/// # Errors
/// Those of the session.
pub async fn not_held(session: &Session, names: &[&str]) -> Result<Option<(String, String)>> {
    let mut candidates: Vec<&str> = names.iter().copied().filter(|name| !name.is_ascii()).collect();
    if candidates.is_empty() || holds(session, &candidates).await? {
        return Ok(None);
    }
    // Most often the first one, as all are in one language.
    while candidates.len() > 1 && holds(session, &candidates[..1]).await? {
        candidates.remove(0);
    }
    let encoding =
        session.rows("SELECT pg_catalog.getdatabaseencoding()::pg_catalog.text", &[], ASKING).await?;
    let encoding = encoding.first().map_or_else(String::new, |row| row.get(0));
    Ok(candidates.first().map(|name| ((*name).to_owned(), encoding)))
}

/// The server converts all that it is sent.
async fn holds(session: &Session, names: &[&str]) -> Result<bool> {
    match session.client().query_typed("SELECT $1 IS NULL", &[(&names, Type::TEXT_ARRAY)]).await {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some(&SqlState::UNTRANSLATABLE_CHARACTER) => Ok(false),
        Err(error) => Err(session_error(&error, ASKING)),
    }
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
