//! What the server tells a session besides its answers: kept while somebody listens, else dropped.

use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{AsyncMessage, Connection};

/// So many are not kept any more. Of some 200 bytes each: 4 MB at the most.
pub(crate) const INFOS_MAX: usize = 20_000;

/// One message of the server.
#[derive(Debug)]
pub(crate) struct Info {
    /// Its SQLSTATE.
    pub(crate) sqlstate: String,
    /// Its words.
    pub(crate) message: String,
    /// What it was about.
    pub(crate) context: String,
}

/// Those of one session.
#[derive(Debug, Default)]
pub(crate) struct Infos {
    kept: Mutex<Option<Vec<Info>>>,
}

impl Infos {
    /// Keeps what comes from here on.
    pub(crate) fn listen(&self) {
        *self.kept.lock() = Some(Vec::new());
    }

    /// What has come since, before the last answer; nothing more is kept. `None` if it was more than is kept.
    pub(crate) fn take(&self) -> Option<Vec<Info>> {
        self.kept.lock().take().filter(|kept| kept.len() < INFOS_MAX)
    }
}

/// Runs the connection until it ends. Messages are kept before the answer behind them reaches the client.
pub(super) async fn drive<S, T>(
    mut connection: Connection<S, T>,
    infos: Arc<Infos>,
) -> Result<(), tokio_postgres::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message?
            && let Some(kept) = infos.kept.lock().as_mut().filter(|kept| kept.len() < INFOS_MAX)
        {
            let context = notice.where_().unwrap_or_default().to_owned();
            let sqlstate = notice.code().code().to_owned();
            kept.push(Info { sqlstate, message: notice.message().to_owned(), context });
        }
    }
    Ok(())
}
