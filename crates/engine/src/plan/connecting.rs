//! What is known before the files are: the session, what the server reads, and what the ledger says of the
//! job. All that does not hang on another answer is asked together, while the files are looked at.

use super::finding;
use super::identity::{Identity, Settled, Told, Version};
use super::lacking_rights;
use super::loaded::{self, Choice};
use super::read_values;
use super::sources::Source;
use super::{Progress, ledger_of, patience_of};
use crate::rejected;
use crate::retry::patiently;
use crate::{Connection, Context};
use futures_util::future::{join, maybe_done};
use howdah_model::{Error, ErrorKind, Format, Job, Result};
use howdah_target::session::{Session, connection_limit, encoding};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;

/// What is known before the files are.
pub(super) struct Connected {
    pub(super) session: Session,
    pub(super) recode: Option<String>,
    /// What the server has said of encodings.
    pub(super) readable: BTreeMap<String, bool>,
    pub(super) identity: Identity,
    pub(super) settled: Settled,
    pub(super) choice: Choice,
    /// What is said where values are read otherwise than this session would.
    pub(super) read_otherwise: Option<String>,
}

/// Opens the session and looks at the files meanwhile: both take their time, and neither needs the other.
pub(super) async fn connect_and_look(
    context: &Context,
    job: &mut Job,
    sources: &mut [Source],
    progress: &Progress,
) -> Result<Connected> {
    let (connected, looked) = {
        let sources = &*sources;
        let as_asked = job.clone();
        let mut looking = pin!(maybe_done(finding::look_ahead(sources, &as_asked)));
        let connected = tokio::select! {
            connected = connect(context, job, sources, progress) => connected?,
            never = async { looking.as_mut().await; pending::<Infallible>().await } => match never {},
        };
        if connected.settled.earlier.is_some() {
            // The files are read as the earlier run of the job has planned it.
            return Ok(connected);
        }
        looking.as_mut().await;
        (connected, looking.take_output().unwrap_or_default())
    };
    for (source, looked) in sources.iter_mut().zip(looked) {
        source.looked = looked.map(Box::new);
    }
    Ok(connected)
}

async fn connect(
    context: &Context,
    job: &mut Job,
    sources: &[Source],
    progress: &Progress,
) -> Result<Connected> {
    let connection = &context.connection;
    if let Some(ledger) = ledger_of(job) {
        connection.look_for_ledger(ledger.schema());
    }
    let mut session = patiently(context, patience_of(job), || connection.open_to_plan()).await?;
    progress.steps.store(1, Relaxed);
    progress.again.store(sources.iter().all(|source| source.object.rereadable()), Relaxed);
    let settling = Box::pin(async {
        let told = who_it_is(connection, &session, job, sources).await;
        lacking_rights::put_off_closed(told, job, &versions(sources))
    });
    let asking = async {
        let encodings =
            async { tokio::try_join!(recoding(&session, &job.format), reads_utf8(&session, job)) };
        // Sent together.
        tokio::try_join!(encodings, settling, room_for_load(&session))
    };
    let ((recode, readable), (identity, mut settled, mut choice), ()) =
        connection.attend(&session, asking).await?;
    let versions = versions(sources);
    connection.attend(&session, choice.forget_gone(&session, job, &versions, &settled)).await?;
    choice.go_on(connection, job, &versions, &mut settled)?;
    if settled.earlier.is_none() && !choice.is_nothing() {
        connection.attend(&session, rejected::expect_waiting(&session, job, &settled.name)).await?;
    }
    let read_otherwise = read_values::settle(connection, &mut session, job, &settled).await?;
    Ok(Connected { session, recode, readable, identity, settled, choice, read_otherwise })
}

fn versions(sources: &[Source]) -> Vec<Version> {
    sources.iter().map(|source| Version::of(&source.object)).collect()
}

/// The job by the files that are its own, of those that were found.
async fn who_it_is(
    connection: &Connection,
    session: &Session,
    job: &Job,
    sources: &[Source],
) -> Result<(Identity, Settled, Choice)> {
    let mut versions = versions(sources);
    let mut identity = Identity::new(job, &versions);
    // Sent together: most often it is the job of all of them.
    let (known, told) = join(loaded::look(session, job, sources), identity.ask(session, job)).await;
    let mut told = told;
    let mut choice = Choice::new(job, known?);
    let on = (connection, session);
    if choice.leaves_out()
        && let Some(mut settled) = begun_with_all(on, &mut identity, job, &versions, told.take()).await?
    {
        choice = choice.with_all();
        choice.keep_own(settled.own.take());
        return Ok((identity, settled, choice));
    }
    let found = versions.clone();
    choice.keep(&mut versions);
    if choice.leaves_out() {
        identity = Identity::new(job, &versions);
    }
    if let Some(latest) = choice.latest_job().filter(|_| choice.is_nothing()) {
        return Ok((identity, Settled::nothing_new(latest, job), choice));
    }
    let mut settled = Box::pin(identity.settle(on, job, &versions, &found, told)).await?;
    choice.keep_own(settled.own.take());
    Ok((identity, settled, choice))
}

/// A job that has stored rows of some of these files goes on as it was begun, whatever others have loaded of
/// them since.
async fn begun_with_all(
    on: (&Connection, &Session),
    identity: &mut Identity,
    job: &Job,
    versions: &[Version],
    told: Option<Told>,
) -> Result<Option<Settled>> {
    match Box::pin(identity.settle(on, job, versions, versions, told)).await {
        Ok(settled) => Ok(settled.history.has_rows().then_some(settled)),
        // One that began with fewer files.
        Err(error) if error.kind() == ErrorKind::SourceChanged => Ok(None),
        Err(error) => Err(error),
    }
}

/// No load gets on with fewer sessions: one stores chunks, while another looks after it and holds the job.
const SESSIONS_MIN: i32 = 2;

/// Nobody need wait for a session that can never come.
async fn room_for_load(session: &Session) -> Result<()> {
    let limit = connection_limit::read(session).await?;
    let Some(limit) = limit.filter(|limit| limit.sessions_max < SESSIONS_MIN) else { return Ok(()) };
    let (owner, sessions_max) = (limit.owner, limit.sessions_max);
    let message = format!(
        "a load needs {SESSIONS_MIN} sessions at least, and the CONNECTION LIMIT of {owner} is {sessions_max}"
    );
    Err(Error::new(ErrorKind::ConnectionRefused, message)
        .with_hint(format!("ALTER {owner} CONNECTION LIMIT 3, or more for more --jobs")))
}

/// The name of the file's encoding when the server cannot read it and the client has to rewrite it as UTF-8.
async fn recoding(session: &Session, format: &Format) -> Result<Option<String>> {
    let Some(name) = &format.encoding else { return Ok(None) };
    let readable = encoding::reads_encoding(session, name).await?;
    Ok((!readable).then(|| name.clone()))
}

/// Whether the server can read UTF8, which most files turn out to be in, where their encoding is to be found.
async fn reads_utf8(session: &Session, job: &Job) -> Result<BTreeMap<String, bool>> {
    const UTF8: &str = "UTF8";
    if job.shaping.told.is_none() {
        return Ok(BTreeMap::new());
    }
    Ok(BTreeMap::from([(UTF8.to_owned(), encoding::reads_encoding(session, UTF8).await?)]))
}
