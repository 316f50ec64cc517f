//! How to reach the server a load goes to: what the user named, or the embedded server.

mod opening;

use crate::scarce::Disks;
use howdah_model::{Error, ErrorKind, Listener, Result, ValueSettings};
use howdah_target::activity;
use howdah_target::embedded::{self, Embedded, Started};
use howdah_target::ledger::Ledger;
use howdah_target::session::{Backend, Conninfo, FEWER_SESSIONS, PASSWORD_MISSING, Session};
use opening::{Awaited, BeingOpened, Opening, Waiting};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// `connect_timeout` waits for ever unless it is set, and then a network that stands still would never end
/// a load that is to give up after `--retry-for`. Slow authentication takes seconds, several hosts some more.
const OPEN_WITHIN: Duration = Duration::from_secs(60);

/// No less, whatever `--retry-for` says.
const OPEN_WITHIN_LEAST: Duration = Duration::from_secs(10);

/// What a pool is to have room for.
pub(crate) const OF_A_POOL: &str = "a pool needs room for --jobs + 2 sessions of a load";

/// A pool that has one session is waited for no longer while that one is held: what leaves it meanwhile is
/// back at once.
const SECOND_WITHIN: Duration = Duration::from_secs(5);

/// What helps where a standby is asked for.
const WRITABLE: &str = "rows come into the primary alone: give target_session_attrs=read-write or primary (or PGTARGETSESSIONATTRS), or \
                        leave it out";

/// Ending what is still at work may take so long when somebody waits for the program to end.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Who waits for a session looks so often whether another one is there.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A session that waits for its next use any longer may have been ended meanwhile, and is not used again.
const SPARE_FOR: Duration = Duration::from_secs(1);

/// Of our own server processes so many are remembered, the last ones: at most 1,024 sessions that load
/// (`--jobs`) and some that look out are at work at once, and what was opened in the place of others must not
/// push the oldest of these out: a forgotten one looks like a killed run's, which is ended. 4,096 are some 64
/// kB, sent with each look at the server.
const OPENED_MAX: usize = 4096;

/// A server. Holds secrets; [`Connection::display`] shows it without them.
#[derive(Clone)]
pub struct Connection {
    conninfo: Conninfo,
    /// The embedded server, where that is used because nothing names a server.
    unnamed: Option<Unnamed>,
    /// Server processes whose connection broke. The server may not know that, and they may hold locks and
    /// claims for as long as TCP lets them.
    lost: Arc<Mutex<Vec<Backend>>>,
    /// There was one, or no server took a connection.
    has_lost: Arc<AtomicBool>,
    /// Server processes of all sessions that were opened; some may be gone.
    opened: Arc<Mutex<Vec<Backend>>>,
    /// How many sessions are being opened.
    opening: Arc<AtomicUsize>,
    /// A session that one step of a load is done with and the next one may take, and since when it waits: a
    /// server process takes some milliseconds to start, and a distant server several round trips.
    spare: Arc<Mutex<Option<Waiting>>>,
    /// Sessions that are being opened for the next steps, in the order in which they will be taken.
    ahead: Arc<Mutex<VecDeque<Opening>>>,
    /// Sessions are to write from now on.
    writes: Arc<AtomicBool>,
    /// The job that sessions are marked for from now on.
    job: Arc<Mutex<Option<(Ledger, String)>>>,
    /// Told what a statement waits for that takes long.
    listener: Arc<Mutex<Option<Arc<dyn Listener>>>>,
    /// How sessions read values from now on, whatever role and surroundings have them do; none: as these have
    /// it.
    values: Arc<Mutex<ValueSettings>>,
    /// How long a session is waited for.
    open_within: Arc<Mutex<Duration>>,
    /// Those of a server on this machine.
    disks: Disks,
}

/// The embedded server, as people are told of it.
#[derive(Clone)]
struct Unnamed {
    data_folder: PathBuf,
    /// It did not run before.
    started: bool,
}

/// What becomes of an embedded server that is meant and has never been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// It is made, and is empty.
    Made,
    /// An error: the command only looks, or is about what a load has left, and no load was there.
    Refused,
}

impl Connection {
    /// `to` is a URL or conninfo string; libpq's environment and files complete it. When nothing names a
    /// server at all, the embedded one is started and used; `absent` says what becomes of one that has never
    /// been made. Its programs are looked for in these `site-packages` folders first: code that runs inside
    /// Python knows them, and cannot tell them from its executable. Blocks while it starts.
    ///
    /// # Errors
    /// `Usage` for a string that libpq would not take, and where nothing names a server and there is no
    /// embedded one, nor is to be; `Local` when the embedded server cannot be started.
    pub fn resolve(to: Option<&str>, site_packages: &[PathBuf], absent: Absent) -> Result<Connection> {
        match Conninfo::resolve(to)? {
            Some(conninfo) => Ok(Connection::new(conninfo, None)),
            None if absent == Absent::Refused && !Embedded::is_made()? => {
                let message = "no server is named, and no embedded server has been made yet";
                Err(Error::new(ErrorKind::Usage, message)
                    .with_hint(
                    "give --to, or set PGHOST and the like; `howdah pg start` makes the embedded server, as the first load does",
                ))
            }
            None => {
                let embedded = Embedded::locate_with(site_packages)?;
                let Started { conninfo, started, .. } = embedded.ensure_started()?;
                let unnamed = Unnamed { data_folder: embedded.data_dir().to_owned(), started };
                let mut conninfo = Conninfo::resolve(Some(&conninfo))?
                    .ok_or_else(|| Error::new(ErrorKind::Internal, "the embedded server has no address"))?;
                // It is for the server that somebody means.
                conninfo.set_password_command(None);
                Ok(Connection::new(conninfo, Some(unnamed)))
            }
        }
    }

    fn new(conninfo: Conninfo, unnamed: Option<Unnamed>) -> Connection {
        Connection {
            conninfo,
            unnamed,
            lost: Arc::default(),
            has_lost: Arc::default(),
            opened: Arc::default(),
            opening: Arc::default(),
            spare: Arc::default(),
            ahead: Arc::default(),
            writes: Arc::default(),
            job: Arc::default(),
            listener: Arc::default(),
            values: Arc::default(),
            open_within: Arc::new(Mutex::new(OPEN_WITHIN)),
            disks: Disks::default(),
        }
    }

    pub(crate) fn disks(&self) -> &Disks {
        &self.disks
    }

    /// From now on no session is waited for longer than failures are tried again.
    pub(crate) fn be_patient_for(&self, retry_for: Duration) {
        *self.open_within.lock() = retry_for.clamp(OPEN_WITHIN_LEAST, OPEN_WITHIN);
    }

    /// Sessions that are opened from now on look whether there is a ledger in this schema.
    pub(crate) fn look_for_ledger(&self, schema: &str) {
        self.conninfo.look_for_ledger(schema);
    }

    /// From now on the listener is told what statements wait for that take long.
    pub(crate) fn tell_of_waits(&self, listener: &Arc<dyn Listener>) {
        *self.listener.lock() = Some(Arc::clone(listener));
    }

    pub(crate) fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.listener.lock().clone()
    }

    /// A session that was kept or is being opened, if there is one, else a new one; ends what is left of
    /// those that were lost.
    ///
    /// # Errors
    /// `ConnectionRefused` for good, `ConnectionLost` when it may pass.
    async fn open_first(&self) -> Result<Session> {
        let waiting = match self.take_spare() {
            None => self.take_ahead().await?,
            spare => spare,
        };
        match waiting {
            // Ending the lost ones takes the time of a new session, whose limit holds for it.
            Some(mut session) if self.last_lost().is_none() => {
                self.set_values(&mut session).await?;
                Ok(session)
            }
            _ => self.open_new().await,
        }
    }

    /// Opens a session of a server that takes rows, as are all sessions that are opened from now on.
    ///
    /// # Errors
    /// As for [`Connection::open`]; `ConnectionRefused` where the only host is read-only, `ConnectionLost`
    /// where all of several are: one may become the primary.
    pub(crate) async fn open_to_write(&self) -> Result<Session> {
        let session = self.open().await?;
        self.writes.store(true, Relaxed);
        self.expect_primary(&session)?;
        self.read_only(&session).map_or(Ok(session), Err)
    }

    /// A session for planning: a hot standby that is the only host, or is preferred, is refused before
    /// anything is read for it. Of several one may be the primary when rows come. How the job before this one
    /// has read values is nothing to it.
    ///
    /// # Errors
    /// As for [`Connection::open`]; `Usage` where `target_session_attrs` asks for no other;
    /// `ConnectionRefused` for that, and where no host has an address: nobody has answered yet, and a name
    /// that is not found twice is most likely misspelled.
    pub(crate) async fn open_to_plan(&self) -> Result<Session> {
        self.values.lock().clear();
        if let Some(attrs) = self.conninfo.wants_no_primary() {
            let message = format!("target_session_attrs={attrs} asks for a server that takes no rows");
            return Err(Error::new(ErrorKind::Usage, message).with_hint(WRITABLE));
        }
        let session = match self.open().await {
            Err(error) if error.kind() == ErrorKind::ConnectionLost && !self.conninfo.has_address().await => {
                return Err(error.with_kind(ErrorKind::ConnectionRefused));
            }
            opened => opened?,
        };
        let is_alone = !self.conninfo.has_several_hosts() || self.conninfo.prefers_standby();
        let refused = self.read_only(&session).filter(|_| is_alone && session.is_of_standby());
        refused.map_or(Ok(session), Err)
    }

    /// Opens a session: one that was kept or is being opened, else a new one; whichever is ready first, since
    /// a pooler whose pool is full answers one of several that are opened at the same time, and the others
    /// when somebody leaves the pool.
    ///
    /// # Errors
    /// `ConnectionRefused` for good, `ConnectionLost` when it may pass.
    pub async fn open(&self) -> Result<Session> {
        loop {
            tokio::select! {
                biased;
                // On the heap, as in `open_new`.
                opened = Box::pin(self.open_first()) => return opened,
                () = self.until_one_is_there() => {}
            }
        }
    }

    async fn until_one_is_there(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.spare.lock().is_some()
                || self.ahead.lock().iter().any(|(opening, _)| opening.is_finished())
            {
                return;
            }
        }
    }

    /// Begins to open so many sessions that the next steps will want, while this one still waits for the
    /// server's answers. A failure that came before anybody wanted the session is told to nobody.
    pub(crate) fn open_ahead(&self, sessions: usize) {
        let mut ahead = self.ahead.lock();
        // Those of a try that failed are still there.
        while ahead.len() < sessions {
            let connection = self.clone();
            let open = async move { Ok((connection.open_new().await?, Instant::now())) };
            ahead.push_back((tokio::spawn(open), Instant::now()));
        }
    }

    /// Closes sessions that were opened ahead and that nobody has wanted for a while: others may need the
    /// connections.
    pub(crate) fn close_unwanted(&self) {
        self.ahead.lock().retain(|(opening, since)| !opening.is_finished() || since.elapsed() < SPARE_FOR);
    }

    /// # Errors
    /// Those of [`Connection::open_new`], if it is waited for here: it has had its time then.
    async fn take_ahead(&self) -> Result<Option<Session>> {
        let next = {
            let mut ahead = self.ahead.lock();
            let is_there = ahead.iter().position(|(opening, _)| opening.is_finished());
            ahead.remove(is_there.unwrap_or_default())
        };
        let Some((opening, _)) = next else { return Ok(None) };
        let waits = !opening.is_finished();
        match Awaited(opening).wait().await {
            Ok(Ok(opened)) => Ok(fresh(opened)),
            Ok(Err(error)) if waits => Err(error),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// A session that nobody has used before.
    ///
    /// # Errors
    /// As for [`Connection::open`].
    pub(crate) async fn open_new(&self) -> Result<Session> {
        // Connecting goes deep, and everybody does it: on the heap it does not add to what each of them is
        // made of.
        let mut limit = *self.open_within.lock();
        if self.conninfo.is_pool_of_one() {
            limit = limit.min(SECOND_WITHIN);
        }
        Box::pin(self.open_within(limit)).await
    }

    /// Leaves the session to the next step of the load. It must be as it was when it was opened: no
    /// transaction, no setting changed, no lock held.
    pub(crate) fn keep(&self, session: Session) {
        let kept = (!session.is_closed()).then(|| (session, Instant::now()));
        *self.spare.lock() = kept;
    }

    fn take_spare(&self) -> Option<Session> {
        fresh(self.spare.lock().take()?)
    }

    /// Ends what is left of sessions that were lost, for which this one might wait.
    ///
    /// Whoever opens a session may give it up at any await. A process is therefore forgotten only when the
    /// server has answered that it is ended; that two sessions end the same one does no harm.
    pub(crate) async fn end_lost(&self, session: &Session) -> Result<()> {
        while let Some(backend) = self.last_lost() {
            activity::terminate(session, backend).await?;
            self.lost.lock().retain(|other| *other != backend);
        }
        Ok(())
    }

    /// The same when no session is going to be opened any more. Best effort.
    pub(crate) async fn end_now(&self) {
        if self.last_lost().is_some() {
            let _ = tokio::time::timeout(END_WITHIN, self.open_new()).await;
        }
    }

    fn last_lost(&self) -> Option<Backend> {
        self.lost.lock().last().copied()
    }

    /// The connection to this server process broke: it is to be ended before a new session waits for it.
    pub(crate) fn lose(&self, backend: Backend) {
        self.has_lost.store(true, Relaxed);
        self.conninfo.look_again();
        self.lost.lock().push(backend);
    }

    /// A connection broke since the first one was opened, or the server was not there when one was wanted:
    /// another may have taken its place.
    pub(crate) fn has_lost(&self) -> bool {
        self.has_lost.load(Relaxed)
    }

    async fn open_within(&self, limit: Duration) -> Result<Session> {
        let open = async {
            let _opening = BeingOpened::new(&self.opening);
            let mut session = Session::connect(&self.conninfo).await?;
            self.expect_primary(&session)?;
            self.set_values(&mut session).await?;
            self.end_lost(&session).await?;
            self.note_opened(session.backend());
            let job = self.job.lock().clone();
            if let Some((ledger, job_id)) = job {
                ledger.mark_session(&session, &job_id).await?;
            }
            Ok(session)
        };
        let opened = tokio::time::timeout(limit, open).await.unwrap_or_else(|_| Err(self.no_answer(limit)));
        if opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionLost) {
            self.has_lost.store(true, Relaxed);
            self.conninfo.look_again();
        }
        opened.map_err(|error| self.without_any(error))
    }

    /// Whoever has got no session at all is not helped by wanting fewer. What limits a role or a database is
    /// told as it is.
    fn without_any(&self, error: Error) -> Error {
        let wants_fewer = error.hint() == Some(FEWER_SESSIONS) && self.opened.lock().is_empty();
        if !wants_fewer {
            return error;
        }
        error.with_hint(
            "others have all connections that the server allows to this role (pg_stat_activity tells who): wait for them or end some, or raise \
             max_connections",
        )
    }

    fn no_answer(&self, limit: Duration) -> Error {
        let (seconds, server) = (limit.as_secs(), self.conninfo.display());
        if self.conninfo.is_pool_of_one() {
            let message = format!(
                "the pooler at {server} has one session for this role, expected two at least: no second one came within {seconds} s"
            );
            return Error::new(ErrorKind::ConnectionRefused, message).with_hint(format!(
                "{OF_A_POOL} (pgbouncer: default_pool_size, or pool_size, max_db_connections and max_user_connections of this database and \
                 user); or connect to the server's own port"
            ));
        }
        let error =
            Error::new(ErrorKind::ConnectionLost, format!("no answer from {server} within {seconds} s"));
        match self.opened.lock().is_empty() {
            true => error,
            false => error.with_hint(format!("it has answered before: if this is a pooler, {OF_A_POOL}")),
        }
    }

    /// While the primary of several hosts is away, only standbys answer. Who stayed with one, to look out for
    /// the load or to hold its job, would see and hold nothing.
    fn expect_primary(&self, session: &Session) -> Result<()> {
        if !self.writes.load(Relaxed) || !self.conninfo.has_several_hosts() {
            return Ok(());
        }
        if session.is_of_standby() && self.conninfo.prefers_standby() {
            return self.read_only(session).map_or(Ok(()), Err);
        }
        session.read_only().map_or(Ok(()), |what| {
            Err(Error::new(ErrorKind::ConnectionLost, what)
                .with_hint(
                    "no host of the list takes writes, as far as they were asked (target_session_attrs=any stays with the first that answers); a \
                     failover may be going on",
                ))
        })
    }

    /// Why no rows can be stored by this session.
    fn read_only(&self, session: &Session) -> Option<Error> {
        let hint = match session.is_of_standby() {
            true if self.conninfo.prefers_standby() => WRITABLE,
            true => {
                "name the server that takes writes; if it is one of several hosts, name all of them, with \
                 target_session_attrs=read-write"
            }
            false => {
                "options='-c default_transaction_read_only=off' in the connection string turns it off for this load; \
                 ALTER ROLE or ALTER DATABASE ... RESET default_transaction_read_only for all"
            }
        };
        Some(Error::new(ErrorKind::ConnectionRefused, session.read_only()?).with_hint(hint))
    }

    /// Sessions that are opened from now on are marked as those of this job: a later run of it can end them,
    /// should this one be killed.
    pub(crate) fn mark_for(&self, ledger: &Ledger, job_id: &str) {
        let job = Some((ledger.clone(), job_id.to_owned()));
        *self.job.lock() = job;
    }

    /// This session and all that are opened from now on read values like this: rows of one job mean the same,
    /// whichever session and whichever run of it stores them.
    ///
    /// # Errors
    /// As for [`Session::read_values_as`].
    pub(crate) async fn read_values_as(&self, session: &mut Session, values: &ValueSettings) -> Result<()> {
        self.values.lock().clone_from(values);
        self.answer(session.backend(), self.set_values(session)).await
    }

    async fn set_values(&self, session: &mut Session) -> Result<()> {
        let values = self.values.lock().clone();
        session.read_values_as(&values).await
    }

    fn note_opened(&self, backend: Backend) {
        let mut opened = self.opened.lock();
        if opened.len() == OPENED_MAX {
            opened.remove(0);
        }
        opened.push(backend);
    }

    /// The processes of our sessions, the last of them.
    pub(crate) fn opened(&self) -> Vec<Backend> {
        self.opened.lock().clone()
    }

    pub(crate) fn newest(&self) -> Option<Backend> {
        self.opened.lock().last().copied()
    }

    /// How many sessions are being opened, which are not among these yet.
    pub(crate) fn opening(&self) -> usize {
        self.opening.load(Relaxed)
    }

    /// It is the embedded server, whether nothing named one or its own address did.
    pub fn is_embedded(&self) -> bool {
        let folder = self.conninfo.only_socket_folder();
        self.unnamed.is_some()
            || folder.is_some_and(|folder| embedded::socket_folder().is_ok_and(|own| own == folder))
    }

    /// For people to know where rows go that they have named no server for, and that a server runs which did
    /// not.
    pub fn notice(&self) -> Option<String> {
        let Unnamed { data_folder, started } = self.unnamed.as_ref()?;
        let started = if *started { ", started just now (`howdah pg stop` ends it)" } else { "" };
        Some(format!(
            "no server is named: this is the embedded server in {}{started}; --to names another",
            data_folder.display()
        ))
    }

    /// The server's CPUs, where it runs on this machine.
    pub fn server_cpus(&self) -> Option<u32> {
        let cpus = std::thread::available_parallelism().ok()?;
        self.conninfo.is_local().then(|| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
    }

    /// The encoding that PGCLIENTENCODING or the conninfo names: as with psql, files are in it unless told.
    pub fn client_encoding(&self) -> Option<&str> {
        self.conninfo.client_encoding().filter(|name| *name != "auto")
    }

    /// A string for [`Connection::resolve`] with a password in it.
    pub fn holds_password(to: &str) -> bool {
        Conninfo::holds_password(to)
    }

    /// No password is known, and the server wants one. Tries to connect for that.
    pub async fn wants_password(&self) -> bool {
        let wants = |error: Error| {
            error.kind() == ErrorKind::ConnectionRefused && error.sqlstate() == Some(PASSWORD_MISSING)
        };
        self.unnamed.is_none() && self.conninfo.lacks_password() && self.open_new().await.is_err_and(wants)
    }

    /// The same with this password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Connection {
        self.conninfo.set_password(password);
        self
    }

    /// The same with the password that this command prints whenever a session is opened. Without effect on
    /// the embedded server.
    #[must_use]
    pub fn with_password_command(mut self, command: &str) -> Connection {
        if self.unnamed.is_none() {
            self.conninfo.set_password_command(Some(command));
        }
        self
    }

    /// What the user should know about the connection's files, such as a password file others can read.
    pub fn warnings(&self) -> &[String] {
        self.conninfo.warnings()
    }

    /// What leads here as `--to`; `None` for the embedded server, to which nothing leads better than no
    /// `--to`.
    pub fn to_type(&self) -> Option<&str> {
        self.unnamed.is_none().then(|| self.conninfo.to_type())
    }

    /// The same without the user.
    pub(crate) fn to_type_by_another(&self) -> Option<&str> {
        self.unnamed.is_none().then(|| self.conninfo.to_type_by_another())
    }

    /// For people: no password.
    pub fn display(&self) -> String {
        self.conninfo.display()
    }
}

/// The session, if it has not waited for too long.
fn fresh((session, since): Waiting) -> Option<Session> {
    (since.elapsed() < SPARE_FOR && !session.is_closed()).then_some(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_testkit::{Database, Server};
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    fn connection(database: &Database) -> Connection {
        Connection::resolve(Some(&database.conninfo()), &[], Absent::Made).unwrap()
    }

    /// The result of the work, unless it is still not done when it has been polled so often.
    async fn polled<T>(times: u32, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut polled) = (pin!(work), 0);
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polled == times => Poll::Ready(None),
            Poll::Pending => {
                polled += 1;
                Poll::Pending
            }
        })
        .await
    }

    #[tokio::test]
    async fn a_process_that_was_lost_is_not_forgotten_wherever_opening_a_session_is_given_up() {
        let database = Server::shared(15).database();
        let connection = connection(&database);
        let lost = connection.open().await.unwrap();
        connection.lose(lost.backend());
        let mut given_up = 0;
        let opened = loop {
            match polled(given_up, connection.open()).await {
                Some(opened) => break opened.unwrap(),
                None => given_up += 1,
            }
            assert_eq!(*connection.lost.lock(), [lost.backend()], "given up after {given_up} answers");
        };
        assert!(given_up > 2, "{given_up}");
        assert!(connection.lost.lock().is_empty());
        let there = async || activity::sample(&opened, &[lost.backend().pid]).await.unwrap();
        while !there().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_session_that_is_kept_is_used_once_while_it_is_fresh_and_alive() {
        let database = Server::shared(15).database();
        let connection = connection(&database);
        let kept = connection.open().await.unwrap();
        let backend = kept.backend();
        connection.keep(kept);
        let again = connection.open().await.unwrap();
        assert_eq!(again.backend(), backend);
        assert_ne!(connection.open().await.unwrap().backend(), backend);

        connection.keep(again);
        tokio::time::sleep(SPARE_FOR).await;
        assert_ne!(connection.open().await.unwrap().backend(), backend, "it has waited for too long");

        let ended = connection.open().await.unwrap();
        let (backend, other) = (ended.backend(), connection.open().await.unwrap());
        connection.keep(ended);
        activity::terminate(&other, backend).await.unwrap();
        while !activity::sample(&other, &[backend.pid]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_ne!(connection.open().await.unwrap().backend(), backend, "the server has ended it");
    }

    #[tokio::test]
    async fn a_session_that_is_opened_ahead_is_used_once_and_missed_by_nobody_if_it_fails() {
        let database = Server::shared(15).database();
        let role = database.name();
        database.sql(&format!("CREATE ROLE \"{role}\" LOGIN"));
        let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
        let connection = Connection::resolve(Some(&to), &[], Absent::Made).unwrap();
        connection.open_ahead(1);
        let session = connection.open().await.unwrap();
        assert_eq!(connection.opened(), [session.backend()]);
        assert_ne!(connection.open().await.unwrap().backend(), session.backend());

        database.sql(&format!("ALTER ROLE \"{role}\" NOLOGIN"));
        connection.open_ahead(1);
        while !connection.ahead.lock()[0].0.is_finished() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        database.sql(&format!("ALTER ROLE \"{role}\" LOGIN"));
        connection.open().await.unwrap();
    }

    #[tokio::test]
    async fn sessions_opened_ahead_do_not_add_up_and_are_not_kept_for_long() {
        let database = Server::shared(15).database();
        let connection = connection(&database);
        (0..5).for_each(|_| connection.open_ahead(2));
        assert_eq!(connection.ahead.lock().len(), 2);
        while !connection.ahead.lock().iter().all(|(opening, _)| opening.is_finished()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(SPARE_FOR).await;
        connection.close_unwanted();
        assert!(connection.ahead.lock().is_empty());
        let theirs = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'", database.name());
        // The one that asks.
        while database.value(&theirs) != "1" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_session_that_is_waited_for_in_vain_is_not_waited_for_twice() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let to = format!("host=127.0.0.1 port={port} user=x dbname=x sslmode=disable connect_timeout=2");
        let connection = Connection::resolve(Some(&to), &[], Absent::Made).unwrap();
        connection.open_ahead(1);
        connection.open().await.unwrap_err();
        silent.set_nonblocking(true).unwrap();
        // Who does not answer may be asked beside whether it is a server at all.
        let is_start = |mut stream: &std::net::TcpStream| {
            let mut first = [0; 8];
            std::io::Read::read_exact(&mut stream, &mut first).is_ok()
                && first[4..] != [0x04, 0xd2, 0x16, 0x2f]
        };
        let starts = std::iter::from_fn(|| silent.accept().ok()).filter(|(stream, _)| is_start(stream));
        assert_eq!(starts.count(), 1, "so many sessions were begun");
    }

    #[tokio::test]
    async fn ending_lost_processes_counts_into_the_limit_for_opening_a_session() {
        let database = Server::shared(15).database();
        let connection = connection(&database);
        let mut backend = connection.open().await.unwrap().backend();
        // Ending all of these, none of which is there, takes many times the limit.
        for _ in 0..200_000 {
            backend.start_us += 1;
            connection.lose(backend);
        }
        let began = Instant::now();
        let error = connection.open_within(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
        let left = connection.lost.lock().len();
        assert!((1..200_000).contains(&left), "{left}");
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let to = format!("host=127.0.0.1 port={port} user=x dbname=x sslmode=disable password=secret");
        let connection = Connection::resolve(Some(&to), &[], Absent::Made).unwrap();
        let error = connection.open_within(Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        assert!(!error.message().contains("secret"), "{error}");
    }
}
