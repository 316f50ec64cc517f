//! One way to run a load: through the engine's verbs, on a runtime of its own, under a watchdog.

use howdah_engine::load::Outcome;
use howdah_engine::model::{
    Error, ErrorKind, Event, Format, IndexesChoice, Job, Jobs, LedgerChoice, Listener, Plan, Silent,
    SourceSpec, Summary,
};
use howdah_engine::{Absent, Connection, Context, Sources, Stop};
use howdah_testkit::{Database, Server};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A load of a few records that takes longer than this hangs. Generous: the machine may be busy.
const WATCHDOG: Duration = Duration::from_secs(600);

pub(crate) const MIB: u64 = 1 << 20;

/// What loads need, made once for many of them.
pub(crate) struct Loader {
    pub(crate) runtime: Runtime,
    context: Context,
}

impl Loader {
    pub(crate) fn new(database: &Database) -> Loader {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let connection = Connection::resolve(Some(&database.socket_conninfo()), &[], Absent::Made).unwrap();
        let context = Context {
            sources: Sources::of_process(),
            connection,
            listener: Arc::new(Silent),
            stop: Stop::default(),
        };
        Loader { runtime: runtime.unwrap(), context }
    }

    /// Plans and loads. An error that came before the first chunk has no summary.
    pub(crate) fn load(&self, job: Job) -> Loaded {
        self.load_after(job, |_| ())
    }

    /// Plans and loads in one, which must succeed. Returns what is told at the end, and what comes back.
    pub(crate) fn load_at_once(&self, job: Job) -> (Summary, Summary) {
        let ends = Arc::new(Ends::default());
        let context = Context { listener: ends.clone(), ..self.context.clone() };
        let work = howdah_engine::plan_and_load(&context, job, |planned| planned);
        let outcome = self.runtime.block_on(async { tokio::time::timeout(WATCHDOG, work).await });
        let outcome = outcome.expect("the load hangs").unwrap();
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        let told = ends.0.lock().unwrap().pop().expect("the end is told");
        (told, outcome.summary)
    }

    /// The same, with something happening between plan and load.
    pub(crate) fn load_after(&self, job: Job, between: impl FnOnce(&mut Plan)) -> Loaded {
        let context = &self.context;
        let work = async {
            let mut planned = howdah_engine::plan(context, job).await?;
            between(&mut planned.plan);
            let plan = planned.plan.clone();
            Ok((plan, howdah_engine::load(context, planned).await?))
        };
        let done = self.runtime.block_on(async { tokio::time::timeout(WATCHDOG, work).await });
        let done: Result<(Plan, Outcome), Error> = done.expect("the load hangs");
        match done {
            Err(error) => Loaded { plan: None, summary: None, error: Some(error) },
            Ok((plan, outcome)) => {
                Loaded { plan: Some(plan), summary: Some(outcome.summary), error: outcome.error }
            }
        }
    }
}

/// Hears the end of a load.
#[derive(Default)]
pub(crate) struct Ends(pub(crate) Mutex<Vec<Summary>>);

impl Listener for Ends {
    fn on_event(&self, event: &Event) {
        if let Event::Done { summary } = event {
            self.0.lock().unwrap().push((**summary).clone());
        }
    }
}

/// How a load ended.
pub(crate) struct Loaded {
    pub(crate) plan: Option<Plan>,
    pub(crate) summary: Option<Summary>,
    pub(crate) error: Option<Error>,
}

impl Loaded {
    /// The rows stored by a load that must have succeeded; read = stored.
    #[track_caller]
    pub(crate) fn rows(&self) -> u64 {
        if let Some(error) = &self.error {
            panic!("{error}");
        }
        let summary = self.summary.as_ref().unwrap();
        assert_eq!(summary.rows_read, summary.rows_stored);
        assert!(summary.files.iter().all(|file| file.done), "{:?}", summary.files);
        summary.rows_stored
    }

    /// The error of a load that must have failed.
    #[track_caller]
    pub(crate) fn refusal(self, kind: ErrorKind) -> Error {
        let error = self.error.expect("the load succeeded");
        assert_eq!(error.kind(), kind, "{error}");
        error
    }
}

/// A job as the defaults make it, without a ledger.
pub(crate) fn job(locations: &[&str], table: &str, format: Format) -> Job {
    let sources = locations.iter().map(|location| SourceSpec::new(*location)).collect();
    Job {
        after: Some(Vec::new()),
        indexes: IndexesChoice::Keep,
        jobs: Jobs::Fixed(2),
        ledger: LedgerChoice::None,
        retry_for_ms: 60_000,
        ..Job::new(sources, Some(table.to_owned()), format)
    }
}

/// A database, a loader into it and a folder: all that most tests need.
pub(crate) struct Place {
    pub(crate) database: Database,
    pub(crate) loader: Loader,
    folder: TempDir,
}

impl Place {
    pub(crate) fn new(major: u32) -> Place {
        let database = Server::shared(major).database();
        Place { loader: Loader::new(&database), database, folder: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file; returns its location.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        location(&path)
    }

    /// Columns of a table, in order of the first; NULL as `-`.
    pub(crate) fn select(&self, sql: &str) -> Vec<String> {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let rows = self.database.rows(sql).into_iter();
        rows.map(|row| row.into_iter().map(text).collect::<Vec<_>>().join("|")).collect()
    }
}

pub(crate) fn location(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
