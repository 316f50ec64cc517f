//! One COPY of all records in one session, committed by itself: what `psql \copy` does. A stream of bytes
//! enters, the server's count of rows leaves. Nothing is claimed, and nothing is tried again.

use super::server_error::copy_error;
use crate::error::session_error;
use crate::session::Session;
use bytes::Bytes;
use futures_util::SinkExt;
use howdah_model::{Relation, Result};
use std::pin::pin;
use tokio::sync::mpsc::Receiver;
use tokio_postgres::{CopyInSink, Error};

/// Sends what comes until nothing more does. If the future is dropped before it is done, the session counts
/// as closed.
///
/// # Errors
/// What the sender of the bytes reports, after which nothing is stored; those of the server and the session.
pub async fn plain(
    session: &mut Session,
    copy_sql: &str,
    relation: &Relation,
    columns: &[String],
    bytes: Receiver<Result<Bytes>>,
) -> Result<u64> {
    session.set_busy(true);
    let sink = session.client().copy_in(copy_sql).await;
    let sent = match sink {
        Ok(sink) => send(sink, bytes).await,
        Err(error) => Ok(Err(error)),
    };
    match sent {
        Ok(Ok(rows)) => {
            session.set_busy(false);
            Ok(rows)
        }
        // A COPY that ended early leaves the session in no state to go on with.
        Ok(Err(error)) => {
            session.abandon();
            Err(match error.as_db_error() {
                Some(db) => copy_error(db, relation, relation, columns).error,
                None => session_error(&error, "copying"),
            })
        }
        Err(error) => {
            session.abandon();
            Err(error)
        }
    }
}

/// The outer result is the reader's, the inner one the server's.
async fn send(
    sink: CopyInSink<Bytes>,
    mut bytes: Receiver<Result<Bytes>>,
) -> Result<std::result::Result<u64, Error>> {
    let mut sink = pin!(sink);
    while let Some(piece) = bytes.recv().await {
        if let Err(error) = sink.send(piece?).await {
            // The server's reason, if it gave one, comes at the end.
            return Ok(sink.finish().await.and(Err(error)));
        }
    }
    Ok(sink.finish().await)
}
