//! Moves the bytes of one connection, both ways, under the proxy's fault.
//!
//! Each direction is a reader that decides and a writer that waits until a packet is due. Dropping the
//! future cuts the connection.

use super::frontend::FrontendReader;
use super::request::BodyCut;
use super::{Shared, Verdict};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep, sleep_until};

/// Packets between a reader and its writer: bounds what one connection holds to about 16 MiB.
const PACKETS_MAX: usize = 256;
const PACKET_BYTES_MAX: usize = 64 * 1024;

/// An ERROR that tells of a lost connection, and that the session is ready for more (PostgreSQL
/// documentation, "Message Formats", ErrorResponse and ReadyForQuery).
const GONE: &[u8] = b"E\0\0\0\x27SERROR\0VERROR\0C08006\0Mserver lost\0\0Z\0\0\0\x05I";

/// Bytes and when they are due. No bytes: the end, since a queue to the client has two senders.
struct Packet {
    due: Instant,
    bytes: Bytes,
}

/// What the two directions tell each other.
#[derive(Default)]
struct Connection {
    /// The server's answers are read and thrown away.
    swallow: AtomicBool,
    /// The next of them is replaced.
    refuse: AtomicBool,
    /// Something has reached the client since it last sent anything.
    answered: AtomicBool,
    /// The response under way is cut.
    body_cut: Mutex<Option<BodyCut>>,
}

/// How the client's direction came to its end.
#[derive(PartialEq, Eq)]
enum End {
    /// The client closed it, or an answer is to be lost: go on until the server closes too.
    UntilServerCloses,
    /// Cut everything now.
    Now,
}

pub(super) async fn relay<CR, CW, SR, SW>(shared: &Shared, client: (CR, CW), server: (SR, SW))
where
    CR: AsyncRead + Unpin,
    CW: AsyncWrite + Unpin,
    SR: AsyncRead + Unpin,
    SW: AsyncWrite + Unpin,
{
    let connection = Connection::default();
    let (to_server, server_queue) = channel(PACKETS_MAX);
    let (to_client, client_queue) = channel(PACKETS_MAX);
    let answers = to_client.clone();
    let upward = async {
        let read = read_client(shared, &connection, client.0, to_server, answers);
        let (end, ()) = tokio::join!(read, write(server_queue, server.1, None));
        if end == End::UntilServerCloses {
            std::future::pending::<()>().await;
        }
    };
    let downward = async {
        let read = read_server(shared, &connection, server.0, to_client);
        tokio::join!(read, write(client_queue, client.1, Some(&connection.answered)));
    };
    tokio::select! {
        () = upward => {}
        () = downward => {}
    }
}

/// Client to server. Owning `queue` means: returning lets the writer finish and close its half.
async fn read_client(
    shared: &Shared,
    connection: &Connection,
    mut client: impl AsyncRead + Unpin,
    queue: Sender<Packet>,
    answers: Sender<Packet>,
) -> End {
    let mut frontend = FrontendReader::default();
    let mut block = vec![0; PACKET_BYTES_MAX];
    loop {
        let count = client.read(&mut block).await.unwrap_or(0);
        if count == 0 {
            return End::UntilServerCloses;
        }
        let bytes = &block[..count];
        if connection.answered.swap(false, Ordering::SeqCst) && !shared.leaves_out(bytes) {
            shared.flights.fetch_add(1, Ordering::SeqCst);
        }
        shared.wait_while_stalled().await;
        let verdict = shared.judge(bytes, &mut frontend);
        connection.set_body_cut(&verdict);
        let (forwarded, end) = match verdict {
            Verdict::Forward | Verdict::CutBody(_) => (bytes, None),
            Verdict::CutAfter(length) => (&bytes[..length], Some(End::Now)),
            Verdict::LoseAnswer(length) => {
                connection.swallow.store(true, Ordering::SeqCst);
                (&bytes[..length], Some(End::UntilServerCloses))
            }
            Verdict::RefuseAnswer => {
                connection.refuse.store(true, Ordering::SeqCst);
                (bytes, None)
            }
            Verdict::Answer(answer) => {
                send(shared, &answers, answer).await;
                continue;
            }
        };
        if !forwarded.is_empty() {
            send(shared, &queue, forwarded).await;
        }
        if let Some(end) = end {
            return end;
        }
    }
}

/// Server to client.
async fn read_server(
    shared: &Shared,
    connection: &Connection,
    mut server: impl AsyncRead + Unpin,
    queue: Sender<Packet>,
) {
    let mut block = vec![0; PACKET_BYTES_MAX];
    loop {
        let count = server.read(&mut block).await.unwrap_or(0);
        if count == 0 {
            break;
        }
        shared.wait_while_stalled().await;
        if connection.swallow.load(Ordering::SeqCst) {
            continue;
        }
        if connection.refuse.swap(false, Ordering::SeqCst) {
            send(shared, &queue, GONE).await;
            continue;
        }
        let bytes = &block[..count];
        let kept = connection.kept(bytes);
        if kept > 0 {
            send(shared, &queue, &bytes[..kept]).await;
        }
        if kept < count {
            break;
        }
        sleep(shared.pause()).await;
    }
    send(shared, &queue, &[]).await;
}

async fn send(shared: &Shared, queue: &Sender<Packet>, bytes: &[u8]) {
    let packet = Packet { due: Instant::now() + shared.delay(), bytes: Bytes::copy_from_slice(bytes) };
    // A writer that is gone means a peer that is gone; the reader will notice.
    let _ = queue.send(packet).await;
}

async fn write(
    mut queue: Receiver<Packet>,
    mut peer: impl AsyncWrite + Unpin,
    delivered: Option<&AtomicBool>,
) {
    while let Some(packet) = queue.recv().await {
        sleep_until(packet.due).await;
        if packet.bytes.is_empty() {
            break;
        }
        // Before the bytes: the peer may answer them at once.
        if let Some(delivered) = delivered {
            delivered.store(true, Ordering::SeqCst);
        }
        if peer.write_all(&packet.bytes).await.is_err() {
            return;
        }
    }
    let _ = peer.shutdown().await;
}

impl Connection {
    /// A new request ends the cut of the response before it.
    fn set_body_cut(&self, verdict: &Verdict) {
        let cut =
            if let Verdict::CutBody(after_bytes) = verdict { Some(BodyCut::new(*after_bytes)) } else { None };
        *self.body_cut.lock() = cut;
    }

    /// How many of these bytes of a response still arrive.
    fn kept(&self, bytes: &[u8]) -> usize {
        let mut cut = self.body_cut.lock();
        cut.as_mut().map_or(bytes.len(), |cut| cut.kept(bytes))
    }
}
