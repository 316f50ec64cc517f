//! A proxy between howdah and a server that can hold answers back, or lose them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Requests (Sync or Query messages) end a flight; answers wait for this many of them.
#[derive(Default)]
pub(crate) struct Rule {
    /// Answers are held until so many requests have come since the rule was set; 0 holds nothing.
    wanted: AtomicU32,
    seen: AtomicU32,
    /// 1: pass the next request that is `COMMIT` on, then cut the connection before its answer.
    cut_after_commit: AtomicU32,
    changed: Notify,
}

impl Rule {
    /// Holds all answers until `requests` more requests have come.
    pub(crate) fn hold_answers_until(&self, requests: u32) {
        self.seen.store(0, Ordering::SeqCst);
        self.wanted.store(requests, Ordering::SeqCst);
    }

    /// Requests since answers were last held.
    pub(crate) fn requests(&self) -> u32 {
        self.seen.load(Ordering::SeqCst)
    }

    /// Loses the answer to the next COMMIT.
    pub(crate) fn lose_the_answer_to_commit(&self) {
        self.cut_after_commit.store(1, Ordering::SeqCst);
    }

    fn holds(&self) -> bool {
        self.seen.load(Ordering::SeqCst) < self.wanted.load(Ordering::SeqCst)
    }
}

/// Starts a proxy to 127.0.0.1:`port`; gives its own port.
pub(crate) async fn start(port: u16) -> (u16, Arc<Rule>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let rule = Arc::new(Rule::default());
    let for_sessions = rule.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(pass(client, server, for_sessions.clone()));
        }
    });
    (own_port, rule)
}

async fn pass(client: TcpStream, server: TcpStream, rule: Arc<Rule>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = rule.clone();
    let forth = async move {
        let mut pending = Vec::new();
        let mut started = false;
        let mut block = [0; 65536];
        while let Ok(length @ 1..) = from_client.read(&mut block).await {
            pending.extend_from_slice(&block[..length]);
            let commit = take_messages(&mut pending, &mut started, &requests);
            if to_server.write_all(&block[..length]).await.is_err() {
                return;
            }
            requests.changed.notify_one();
            if commit && requests.cut_after_commit.swap(0, Ordering::SeqCst) == 1 {
                // The server must have answered: what is lost is the answer, not the request.
                return;
            }
        }
    };
    let back = async move {
        let mut block = [0; 65536];
        while let Ok(length @ 1..) = from_server.read(&mut block).await {
            while rule.holds() {
                rule.changed.notified().await;
            }
            if to_client.write_all(&block[..length]).await.is_err() {
                return;
            }
        }
    };
    // Either end closing closes both.
    tokio::select! { () = forth => {}, () = back => {} }
}

/// Counts the requests in what the client has sent; true if one of them is COMMIT.
fn take_messages(pending: &mut Vec<u8>, started: &mut bool, rule: &Rule) -> bool {
    let mut commit = false;
    loop {
        // The start-up message has no type byte.
        let head = usize::from(*started);
        let Some(length) = pending.get(head..head + 4) else { return commit };
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize + head;
        if pending.len() < length {
            return commit;
        }
        let message: Vec<u8> = pending.drain(..length).collect();
        if std::mem::replace(started, true) {
            if matches!(message[0], b'Q' | b'S') {
                rule.seen.fetch_add(1, Ordering::SeqCst);
            }
            commit |= message[0] == b'Q' && message[5..].starts_with(b"COMMIT");
        }
    }
}
