//! How the server compresses wide values, and whether it could do so faster.

use super::Session;
use crate::error::session_error;
use howdah_model::Result;

/// The method, as `default_toast_compression` names it.
pub const LZ4: &str = "lz4";

/// The server has lz4 (since version 14, where it was built with it), would not use it by itself, and nobody has set
/// how it compresses: not in its configuration, for the database, for the role or for the session.
///
/// # Errors
/// Those of the session.
pub async fn may_use_lz4(session: &Session) -> Result<bool> {
    let sql = "SELECT FROM pg_catalog.pg_settings \
               WHERE name = 'default_toast_compression' AND source = 'default' AND setting <> 'lz4' \
                 AND 'lz4' = ANY (enumvals)";
    let rows = session.client().query_typed(sql, &[]).await;
    Ok(!rows.map_err(|error| session_error(&error, "reading how wide values are compressed"))?.is_empty())
}
