//! Measures howdah against one plain COPY with the user's own file on the user's own server.
//!
//! A job and a number of rounds enter, what each round took leaves. All of it happens in a schema of its own,
//! which is dropped at the end, however that comes: tables shaped like the user's, the ledger beside them.
//! Each round loads the file in both ways, each time into an empty table; one load of each kind comes before
//! and is not counted, so that both find the file in memory. Where COPY alone cannot take the file, howdah is
//! measured alone.

mod cpu;
mod memory;
mod plain;

use crate::stop::interrupted;
use crate::{Context, load, plan};
use cpu::{ServerCpu, client_cpu_seconds};
use howdah_model::{Error, ErrorKind, Job, LedgerChoice, Relation, Result, Silent, Summary, Tune};
use howdah_target::ledger::Ledger;
use howdah_target::session::{Session, catalog, show};
use howdah_target::{sql, trial};
use memory::PeakMemory;
use plain::Plain;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Dropping waits for sessions that are still ending; a server that does not answer at all must not hold up
/// the end.
const DROP_WITHIN: Duration = Duration::from_secs(60);

/// The table that is made from the data, where none is named.
const MADE: &str = "made";

/// What one load took.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Round {
    /// From connecting to the last answer.
    pub wall_seconds: f64,
    /// Of this process.
    pub client_cpu_seconds: f64,
    /// Of all processes of the server, where it can be seen.
    pub server_cpu_seconds: Option<f64>,
    /// The most memory that this process held meanwhile, what its allocator kept from earlier rounds
    /// included; none of COPY, which cannot be told from that, and where it cannot be seen.
    pub peak_memory_bytes: Option<u64>,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The file.
    pub file: String,
    /// Its bytes as stored, where known.
    pub stored_bytes: Option<u64>,
    /// The table whose shape was used, `schema.name`; none: the one that `--create` makes.
    pub table: Option<String>,
    /// The server's `server_version_num`.
    pub server_version: u32,
    /// Rows of one load.
    pub rows: u64,
    /// The rounds of one COPY in one session; none if it cannot take the file.
    pub copy: Vec<Round>,
    /// Why not.
    pub copy_refused: Option<String>,
    /// The only spelling of NULL that COPY was told, where the file may have others: it has words for one.
    pub copy_null: Option<String>,
    /// The rounds of howdah.
    pub howdah: Vec<Round>,
    /// The account of howdah's last load.
    pub summary: Summary,
}

/// Loads the one file of the job so often in both ways.
///
/// # Errors
/// Usage, for several files or one that cannot be read twice; Server with the GRANT that helps, where the
/// role may not make a schema; those of planning and loading.
pub async fn bench(context: &Context, job: Job, rounds: u32) -> Result<Measured> {
    Box::pin(run(context, job, rounds)).await.map_err(without_resume)
}

async fn run(context: &Context, job: Job, rounds: u32) -> Result<Measured> {
    check(&job)?;
    let session = context.stop.guard(context.connection.open()).await?;
    let shape = shape(context, &session, &job).await?;
    context.connection.attend(&session, expect_no_subscribers(&session)).await?;
    let schema = context.connection.attend(&session, trial::create_schema(&session)).await?;
    drop(session);
    let say = |message| context.tell(message);
    say(format!("measuring in schema {schema}, made for this and dropped at the end"));
    let bench = Bench { context, silent: silent(context), job, shape, schema: &schema };
    let measured = bench.measure(rounds).await.map_err(|error| bench.as_named(error));
    match (measured, bench.drop_schema().await) {
        (measured, Ok(())) => {
            say(format!("schema {schema} is dropped"));
            measured
        }
        (Ok(_), Err(left)) => Err(left),
        (Err(error), Err(left)) => {
            let message = format!("{left}; {}", left.hint().unwrap_or_default());
            context.warn(message);
            Err(error)
        }
    }
}

fn check(job: &Job) -> Result<()> {
    if job.sources.iter().any(|source| source.location == "-") {
        return Err(unreadable());
    }
    if job.tune == Some(Tune::Server) {
        // What puts them back stands in the schema that is dropped.
        let message = "bench changes no settings of the server: --tune server is for loads";
        return Err(Error::new(ErrorKind::Usage, message).with_hint("leave it out, or give --tune session"));
    }
    Ok(())
}

/// A subscriber that has no table of the name that rows come for stops, and stays so.
async fn expect_no_subscribers(session: &Session) -> Result<()> {
    let level = show(session, &["wal_level"]).await?;
    let is_logical = level.get("wal_level").is_some_and(|level| level == "logical");
    match Ledger::new("howdah").publication(session).await?.filter(|_| is_logical) {
        None => Ok(()),
        Some(name) => {
            let message = format!(
                "the publication {name} is of all tables, also of those that a measurement makes: its subscribers would stop"
            );
            Err(Error::new(ErrorKind::Usage, message)
                .with_hint("measure on a server without such a publication"))
        }
    }
}

fn unreadable() -> Error {
    Error::new(ErrorKind::Usage, "a pipe cannot be read twice, and a measurement reads its file many times")
        .with_hint("write the data to a file first")
}

/// The table whose shape is used: one that is there. None with `--create`, and where no table is named.
async fn shape(context: &Context, session: &Session, job: &Job) -> Result<Option<Relation>> {
    let named = job.sources.first().and_then(|source| source.table.as_ref()).or(job.table.as_ref());
    let Some(named) = named.filter(|_| job.shaping.create != Some(true)) else {
        return if job.shaping.told.is_some() { Ok(None) } else { Err(no_types()) };
    };
    let table = context.connection.attend(session, catalog::read_table(session, named)).await;
    let hint = "leave out --table to have a table made from the data";
    let table = table.map_err(|error| match error.hint() {
        None if error.kind() == ErrorKind::Table => error.with_hint(hint),
        _ => error,
    })?;
    Ok(Some(table.relation))
}

/// Only the data says what columns a table would need, and options keep it from being looked at.
fn no_types() -> Error {
    let message = "with --format or --copy-options no table is made from the data, and --table names none";
    Error::new(ErrorKind::Usage, message)
        .with_hint("name a table that is there with --table, or leave out --format and --copy-options")
}

/// A job that was stopped can be gone on with; a measurement cannot.
fn without_resume(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Interrupted => Error::new(ErrorKind::Interrupted, interrupted().message()),
        _ => error,
    }
}

/// The loads that are measured tell nobody.
fn silent(context: &Context) -> Context {
    Context { listener: Arc::new(Silent), ..context.clone() }
}

struct Bench<'a> {
    context: &'a Context,
    silent: Context,
    job: Job,
    shape: Option<Relation>,
    schema: &'a str,
}

/// What one load of howdah gave.
struct Loaded {
    round: Round,
    summary: Summary,
    /// The same file as one COPY takes it, or why it does not.
    plain: Result<Plain, String>,
    server_version: u32,
    stored_bytes: Option<u64>,
}

impl Bench<'_> {
    async fn measure(&self, rounds: u32) -> Result<Measured> {
        let server_cpu = self.server_cpu().await?;
        let cpu = server_cpu.as_ref();
        let first = self.howdah("first", self.shape.is_none(), cpu).await?;
        let mut copy_refused = None;
        let plain = match first.plain {
            Ok(plain) => match self.copy(&plain, cpu).await {
                Ok(_) => Some(plain),
                Err(error) if error.kind() == ErrorKind::Server => {
                    copy_refused = Some(error.to_string());
                    None
                }
                Err(error) => return Err(error),
            },
            Err(reason) => {
                copy_refused = Some(reason);
                None
            }
        };
        let copy_null = plain.as_ref().and_then(Plain::told_null).map(str::to_owned);
        let (mut copy, mut howdah) = (Vec::new(), Vec::new());
        let mut last = first.summary;
        for no in 1..=rounds {
            if let Some(plain) = &plain {
                copy.push(self.copy(plain, cpu).await?);
            }
            let loaded = self.howdah(&format!("round {no}"), false, cpu).await?;
            howdah.push(loaded.round);
            last = loaded.summary;
            self.tell(no, rounds, copy.last(), &loaded.round);
        }
        Ok(Measured {
            file: last.files.first().map(|file| file.location.clone()).unwrap_or_default(),
            stored_bytes: first.stored_bytes,
            table: self.shape.as_ref().map(Relation::to_string),
            server_version: first.server_version,
            rows: last.rows_stored,
            copy,
            copy_refused,
            copy_null,
            howdah,
            summary: last,
        })
    }

    fn tell(&self, no: u32, rounds: u32, copy: Option<&Round>, howdah: &Round) {
        let copy = copy.map(|copy| format!("one COPY {:.2} s, ", copy.wall_seconds)).unwrap_or_default();
        let message = format!("round {no} of {rounds}: {copy}howdah {:.2} s", howdah.wall_seconds);
        self.context.tell(message);
    }

    /// Where the server's processes can be seen.
    async fn server_cpu(&self) -> Result<Option<ServerCpu>> {
        let connection = &self.context.connection;
        if connection.server_cpus().is_none() {
            return Ok(None);
        }
        let session = self.context.stop.guard(connection.open()).await?;
        Ok(ServerCpu::of(session.backend()))
    }

    /// One load by howdah, as the command would do it, into a table of its own. What was made from the data
    /// is to `stay` once: it gives the other tables their shape.
    async fn howdah(&self, name: &str, stay: bool, cpu: Option<&ServerCpu>) -> Result<Loaded> {
        let table = self.table(if stay { MADE } else { "loaded" });
        if let Some(shape) = &self.shape {
            self.on_session(async |session| trial::create_like(session, shape, &table).await).await?;
        }
        let memory = PeakMemory::from_now();
        let meter = Meter::start(cpu);
        let planned = plan(&self.silent, self.job_into(&table, name)).await?;
        let [file] = planned.plan.files.as_slice() else { return Err(not_one(&planned.plan.files)) };
        if !file.rereadable {
            return Err(unreadable());
        }
        let (server_version, stored_bytes) = (planned.plan.server_version, file.stored_bytes);
        let plain = Plain::of(&planned);
        let outcome = load(&self.silent, planned).await?;
        let peak_memory_bytes = memory.and_then(|memory| memory.bytes());
        let round = Round { peak_memory_bytes, ..meter.stop() };
        if let Some(error) = outcome.error {
            return Err(error);
        }
        if !stay {
            self.on_session(async |session| trial::drop_table(session, &table).await).await?;
        }
        Ok(Loaded { round, summary: outcome.summary, plain, server_version, stored_bytes })
    }

    /// One load by one COPY, into a table of its own.
    async fn copy(&self, plain: &Plain, cpu: Option<&ServerCpu>) -> Result<Round> {
        let (table, made) = (self.table("copied"), self.table(MADE));
        let shape = self.shape.as_ref().unwrap_or(&made);
        self.on_session(async |session| trial::create_like(session, shape, &table).await).await?;
        let meter = Meter::start(cpu);
        let copied = plain.load(self.context, &table).await;
        let round = meter.stop();
        self.on_session(async |session| trial::drop_table(session, &table).await).await?;
        copied.map(|_| round)
    }

    fn table(&self, name: &str) -> Relation {
        Relation { schema: self.schema.to_owned(), name: name.to_owned() }
    }

    /// The user's job, into this table and under a name of its own. The ledger costs what it costs.
    fn job_into(&self, table: &Relation, name: &str) -> Job {
        let mut job = self.job.clone();
        job.id = Some(name.to_owned());
        job.table = Some(sql::quote_relation(table));
        job.sources.iter_mut().for_each(|source| source.table = None);
        job.shaping.create = Some(self.shape.is_none());
        if job.ledger != LedgerChoice::None {
            job.ledger = LedgerChoice::Schema(self.schema.to_owned());
        }
        job
    }

    /// As the table that was named is called: those that are measured are gone when the error is read.
    fn as_named(&self, error: Error) -> Error {
        let Some(shape) = &self.shape else { return error };
        let named = |text: &str| {
            ["loaded", "copied"].into_iter().fold(text.to_owned(), |text, name| {
                let table = self.table(name);
                text.replace(&sql::quote_relation(&table), &sql::quote_relation(shape))
                    .replace(&table.to_string(), &shape.to_string())
            })
        };
        let (message, hint) = (named(error.message()), error.hint().map(named));
        let error = error.with_message(message);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    async fn on_session(&self, work: impl AsyncFnOnce(&Session) -> Result<()>) -> Result<()> {
        let connection = &self.context.connection;
        let all = async {
            let session = connection.open().await?;
            connection.attend(&session, work(&session)).await
        };
        self.context.stop.guard(all).await
    }

    /// Also after Ctrl-C, which stops everything else.
    async fn drop_schema(&self) -> Result<()> {
        let connection = &self.context.connection;
        let dropping = async {
            let session = connection.open().await?;
            connection.attend(&session, trial::drop_schema(&session, self.schema)).await
        };
        let late = |_| {
            let message = format!("no answer within {} s", DROP_WITHIN.as_secs());
            Err(Error::new(ErrorKind::ConnectionLost, message))
        };
        let dropped = tokio::time::timeout(DROP_WITHIN, dropping).await.unwrap_or_else(late);
        dropped.map_err(|error| {
            let message = format!("schema {} could not be dropped: {}", self.schema, error.message());
            Error::new(error.kind(), message)
                .with_hint(format!("run DROP SCHEMA {} CASCADE", sql::quote_ident(self.schema)))
        })
    }
}

fn not_one(files: &[howdah_model::FilePlan]) -> Error {
    let message = format!("a measurement is of one file and one table, got {} of them", files.len());
    Error::new(ErrorKind::Usage, message).with_hint("name one file, without --all-tables")
}

/// Reads the clocks at the beginning.
struct Meter<'a> {
    server: Option<&'a ServerCpu>,
    began: Instant,
    client_seconds: f64,
    server_seconds: Option<f64>,
}

impl<'a> Meter<'a> {
    fn start(server: Option<&'a ServerCpu>) -> Meter<'a> {
        let server_seconds = server.and_then(ServerCpu::seconds);
        Meter { server, client_seconds: client_cpu_seconds(), server_seconds, began: Instant::now() }
    }

    fn stop(self) -> Round {
        let wall_seconds = self.began.elapsed().as_secs_f64();
        let server = self.server.and_then(ServerCpu::seconds).zip(self.server_seconds);
        Round {
            wall_seconds,
            client_cpu_seconds: client_cpu_seconds() - self.client_seconds,
            server_cpu_seconds: server.map(|(after, before)| (after - before).max(0.0)),
            peak_memory_bytes: None,
        }
    }
}
