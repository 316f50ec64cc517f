//! A proxy that breaks connections on purpose, in front of PostgreSQL or an S3 server.
//!
//! Enters: a fault with a name, changed at any time. Leaves: connections that behave that way, and counts of
//! what happened. It reads the protocols only as far as its faults need, and cannot look into TLS.

mod frontend;
mod relay;
mod request;

use crate::background::{block_on, runtime};
use frontend::FrontendReader;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Pass,
    /// Connections are accepted and closed at once, as a server that is starting up might.
    Refuse,
    /// Both directions stand still, connections stay open, until another fault is set.
    Stall,
    /// Every byte arrives this much later, in each direction; throughput is not limited.
    Delay(Duration),
    /// Of what the server sends, each read of at most 64 kB is followed by a pause of this length.
    Trickle(Duration),
    /// The connection that carries the n-th byte to the server (counted over all connections, from now on and
    /// after each cut) is cut right after it.
    CutAfterBytes(u64),
    /// The connection over which a client sends something is cut.
    CutAtSend {
        /// So many times a client sends something before, those of all connections.
        skip: u64,
        /// What it sends reaches the server still; the answer is lost.
        arrives: bool,
    },
    /// The connection is cut when COMMIT is about to be forwarded: the client has sent it, nothing is in.
    CutBeforeCommit {
        /// So many COMMITs go by before, those of all connections.
        skip: u64,
    },
    /// COMMIT reaches the server and is carried out; its answer never reaches the client.
    CutAfterCommit {
        /// So many COMMITs go by before, those of all connections.
        skip: u64,
    },
    /// COMMIT reaches the server and is carried out; an ERROR 08006 comes in the place of its answer.
    RefuseAfterCommit,
    /// Every n-th GET of an object (listings are not counted) fails.
    Http {
        /// 1 lets every GET fail.
        every: u64,
        /// How.
        failure: HttpFailure,
    },
}

/// How a GET fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFailure {
    /// The connection is cut after so many bytes of the body.
    CutBody {
        /// Bytes of the body that still arrive.
        after_bytes: u64,
    },
    /// `503 Slow Down`; the server never sees the request.
    SlowDown,
    /// `500 Internal Server Error`, in the same way.
    InternalError,
    /// `429 Too Many Requests`, in the same way.
    TooManyRequests,
    /// The connection is cut before the server sees the request.
    Reset,
}

/// Where the proxy forwards to.
#[derive(Debug, Clone)]
enum Upstream {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A proxy on a port of its own. Dropped: all connections are cut.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: JoinHandle<()>,
}

/// What all connections of a proxy see.
#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    armed: Mutex<Armed>,
    /// Counts changes of the fault: wakes what stands still.
    changes: watch::Sender<u64>,
    /// Counts orders to cut all connections.
    cuts: watch::Sender<u64>,
    /// The last order to forget all connections: how often those that are forgotten had been ended before.
    forgets: watch::Sender<u64>,
    /// Counts orders to end what was forgotten.
    ends: watch::Sender<u64>,
    accepted: AtomicU64,
    fired: AtomicU64,
    held: AtomicU64,
    flights: AtomicU64,
    /// What is sent with one of these words is no flight.
    left_out: Mutex<Vec<&'static str>>,
}

/// The current fault and its counters.
#[derive(Debug)]
struct Armed {
    fault: Fault,
    /// How often it may still fire; `None` without limit.
    left: Option<u64>,
    bytes_to_server: u64,
    sends: u64,
    commits: u64,
    gets: u64,
}

impl Armed {
    fn new(fault: Fault, left: Option<u64>) -> Armed {
        Armed { fault, left, bytes_to_server: 0, sends: 0, commits: 0, gets: 0 }
    }
}

impl Proxy {
    /// Before a TCP server, such as [`crate::S3::address`].
    pub fn before_tcp(upstream: SocketAddr) -> Proxy {
        Proxy::before(Upstream::Tcp(upstream))
    }

    /// Before a unix socket.
    pub fn before_unix(socket: impl Into<PathBuf>) -> Proxy {
        Proxy::before(Upstream::Unix(socket.into()))
    }

    /// Before a PostgreSQL server; see [`crate::Database::conninfo_through`].
    pub fn before_server(server: &crate::Server) -> Proxy {
        Proxy::before_tcp(SocketAddr::from(([127, 0, 0, 1], server.port())))
    }

    /// Before an S3 server; see [`crate::S3::env_through`].
    pub fn before_s3(s3: &crate::S3) -> Proxy {
        Proxy::before_tcp(s3.address())
    }

    fn before(upstream: Upstream) -> Proxy {
        let shared = Arc::new(Shared {
            upstream,
            armed: Mutex::new(Armed::new(Fault::Pass, None)),
            changes: watch::Sender::new(0),
            cuts: watch::Sender::new(0),
            forgets: watch::Sender::new(0),
            ends: watch::Sender::new(0),
            accepted: AtomicU64::new(0),
            fired: AtomicU64::new(0),
            held: AtomicU64::new(0),
            flights: AtomicU64::new(0),
            left_out: Mutex::new(Vec::new()),
        });
        let listener = block_on(async { TcpListener::bind("127.0.0.1:0").await }).expect("a free port");
        let address = listener.local_addr().expect("the address of a bound socket");
        let listener = runtime().spawn(accept(listener, Arc::clone(&shared)));
        Proxy { address, shared, listener }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the fault for as long as no other is set. Its counters begin at zero.
    pub fn set(&self, fault: Fault) {
        self.arm(fault, None);
    }

    /// Sets a fault that strikes so many times; then everything passes.
    pub fn set_times(&self, fault: Fault, times: u64) {
        self.arm(fault, Some(times));
    }

    /// Cuts all connections now. New ones follow the fault that is set.
    pub fn cut_all(&self) {
        self.shared.cuts.send_modify(|count| *count += 1);
    }

    /// The connections that are open now carry nothing any more and nobody is told, as behind a firewall that
    /// has forgotten them. New ones follow the fault that is set.
    pub fn forget_all(&self) {
        self.shared.forgets.send_replace(*self.shared.ends.borrow());
    }

    /// Both sides learn at last that forgotten connections are gone, as TCP's keepalives tell them after
    /// minutes.
    pub fn end_forgotten(&self) {
        self.shared.ends.send_modify(|count| *count += 1);
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How often faults struck so far: refused or cut connections and failed requests. Standing still and
    /// delays are not counted.
    pub fn fired(&self) -> u64 {
        self.shared.fired.load(Ordering::SeqCst)
    }

    /// How often bytes were held back by [`Fault::Stall`] so far.
    pub fn held(&self) -> u64 {
        self.shared.held.load(Ordering::SeqCst)
    }

    /// How often clients sent something after an answer had reached them, over all connections: so many round
    /// trips they have waited for. Under [`Fault::Delay`], what is sent together counts once.
    pub fn flights(&self) -> u64 {
        self.shared.flights.load(Ordering::SeqCst)
    }

    /// What is sent with one of these words counts for no flight: what a client sends by the clock it sends
    /// more often where all is slow.
    pub fn leave_out_of_flights(&self, words: &[&'static str]) {
        self.shared.left_out.lock().extend(words);
    }

    /// How many GETs of objects came since [`Fault::Http`] was set.
    pub fn gets(&self) -> u64 {
        self.shared.armed.lock().gets
    }

    fn arm(&self, fault: Fault, left: Option<u64>) {
        *self.shared.armed.lock() = Armed::new(fault, left);
        self.shared.changes.send_modify(|count| *count += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
        self.cut_all();
    }
}

/// What to do with bytes on their way to the server.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Forward them all.
    Forward,
    /// Forward the first so many, then cut the connection.
    CutAfter(usize),
    /// Forward the first so many, let the server finish, and never answer.
    LoseAnswer(usize),
    /// Forward them all, and answer for the server that it is gone.
    RefuseAnswer,
    /// Forward them all, and cut the connection after so many bytes of the response's body.
    CutBody(u64),
    /// Answer this in the server's place.
    Answer(&'static [u8]),
}

impl Shared {
    fn fault(&self) -> Fault {
        self.armed.lock().fault
    }

    /// These bytes have one of the words that count for no flight.
    fn leaves_out(&self, bytes: &[u8]) -> bool {
        let has = |word: &&str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        self.left_out.lock().iter().any(has)
    }

    /// Counts a strike; the last one allowed disarms the fault.
    fn fire(&self, armed: &mut Armed) {
        self.fired.fetch_add(1, Ordering::SeqCst);
        if let Some(left) = &mut armed.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                armed.fault = Fault::Pass;
            }
        }
    }

    /// Whether a new connection is turned away.
    fn refuses(&self) -> bool {
        let mut armed = self.armed.lock();
        let refuses = armed.fault == Fault::Refuse;
        if refuses {
            self.fire(&mut armed);
        }
        refuses
    }

    /// Looks at bytes on their way to the server. The frontend reader follows every connection from its
    /// beginning, because a message can only be found by walking over all before it.
    fn judge(&self, bytes: &[u8], frontend: &mut FrontendReader) -> Verdict {
        let commit = frontend.read(bytes);
        let mut armed = self.armed.lock();
        armed.bytes_to_server += bytes.len() as u64;
        armed.sends += 1;
        armed.commits += u64::from(commit.is_some());
        let verdict = match (armed.fault, commit) {
            (Fault::CutAfterBytes(limit), _) if armed.bytes_to_server >= limit => {
                let beyond = usize::try_from(armed.bytes_to_server - limit).unwrap_or(usize::MAX);
                armed.bytes_to_server = 0;
                Verdict::CutAfter(bytes.len().saturating_sub(beyond))
            }
            (Fault::CutAtSend { skip, arrives }, _) if armed.sends > skip => {
                Verdict::CutAfter(if arrives { bytes.len() } else { 0 })
            }
            (Fault::CutBeforeCommit { skip }, Some(commit)) if armed.commits > skip => {
                Verdict::CutAfter(commit.start)
            }
            (Fault::CutAfterCommit { skip }, Some(commit)) if armed.commits > skip => {
                Verdict::LoseAnswer(commit.end)
            }
            (Fault::RefuseAfterCommit, Some(_)) => Verdict::RefuseAnswer,
            (Fault::Http { every, failure }, _) if request::is_object_get(bytes) => {
                armed.gets += 1;
                match failure {
                    _ if !armed.gets.is_multiple_of(every.max(1)) => Verdict::Forward,
                    HttpFailure::CutBody { after_bytes } => Verdict::CutBody(after_bytes),
                    HttpFailure::SlowDown => Verdict::Answer(request::SLOW_DOWN),
                    HttpFailure::InternalError => Verdict::Answer(request::INTERNAL_ERROR),
                    HttpFailure::TooManyRequests => Verdict::Answer(request::TOO_MANY_REQUESTS),
                    HttpFailure::Reset => Verdict::CutAfter(0),
                }
            }
            _ => Verdict::Forward,
        };
        if verdict != Verdict::Forward {
            self.fire(&mut armed);
        }
        verdict
    }

    /// Returns once the fault is not [`Fault::Stall`].
    async fn wait_while_stalled(&self) {
        let mut changes = self.changes.subscribe();
        let mut was_held = false;
        while self.fault() == Fault::Stall {
            self.held.fetch_add(u64::from(!was_held), Ordering::SeqCst);
            was_held = true;
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn delay(&self) -> Duration {
        if let Fault::Delay(delay) = self.fault() { delay } else { Duration::ZERO }
    }

    fn pause(&self) -> Duration {
        if let Fault::Trickle(pause) = self.fault() { pause } else { Duration::ZERO }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        if !shared.refuses() {
            tokio::spawn(serve(client, Arc::clone(&shared)));
        }
    }
}

/// One connection from beginning to end.
async fn serve(client: TcpStream, shared: Arc<Shared>) {
    let (mut cuts, mut forgets) = (shared.cuts.subscribe(), shared.forgets.subscribe());
    let mut ends = shared.ends.subscribe();
    let mut relay = pin!(connect_and_relay(client, &shared));
    tokio::select! {
        () = &mut relay => return,
        _ = cuts.changed() => {}
        // The relay holds the sockets open.
        _ = forgets.changed() => {
            let ended_before = *forgets.borrow();
            tokio::select! {
                _ = cuts.changed() => {}
                // They may be ended before this is looked at.
                _ = ends.wait_for(|ended| *ended > ended_before) => {}
            }
        }
    }
    shared.fired.fetch_add(1, Ordering::SeqCst);
}

async fn connect_and_relay(client: TcpStream, shared: &Shared) {
    let _ = client.set_nodelay(true);
    let (read, write) = client.into_split();
    match &shared.upstream {
        Upstream::Tcp(address) => {
            let Ok(server) = TcpStream::connect(address).await else { return };
            let _ = server.set_nodelay(true);
            let server = server.into_split();
            relay::relay(shared, (read, write), server).await;
        }
        Upstream::Unix(path) => {
            let Ok(server) = UnixStream::connect(path).await else { return };
            let server = server.into_split();
            relay::relay(shared, (read, write), server).await;
        }
    }
}
