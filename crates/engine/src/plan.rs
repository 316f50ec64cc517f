//! Decides everything before a byte moves: which files go to which table, how each is read, which columns
//! its fields fill, how memory is cut up, and whether an earlier run has begun the same job.
//!
//! Enters a [`Job`], leaves a [`Plan`] that can be printed, kept and shipped. Reads the heads of the files,
//! the catalog and the ledger; changes nothing anywhere, unless the plan is to be loaded at once: then what
//! killed loads dropped from the tables comes back first, where this one goes by it.

pub(crate) mod arrival;
mod as_begun;
mod by_width;
mod changed;
pub(crate) mod columns;
mod connecting;
mod cost;
mod doubtful_headers;
mod doubtful_text;
mod earlier;
mod evolve;
mod finding;
mod freeze;
mod head;
mod identity;
mod index_cost;
mod indexes;
mod kin;
mod known_types;
mod lacking_rights;
mod left_out;
mod loaded;
mod locale;
mod lock_table;
mod looks;
mod mended;
mod nameless;
mod new_partitions;
mod new_table;
mod nul;
mod null_words;
mod numbering;
mod observers;
mod one_spelling;
mod orders;
mod part;
mod policies;
mod published;
mod read_values;
pub(crate) mod routing;
mod scan;
mod sent_form;
mod siblings;
mod sources;
mod statistics_cost;
mod strangers;
mod tables;
mod toast;
mod triggers;
mod tune;
mod tune_server;
mod unused_options;
mod verify;
mod waiting;
mod whole;

pub(crate) use columns::field_targets;
pub use identity::work_key;
pub(crate) use indexes::{
    ToCome, decide as decide_indexes, is_for_temporary_files, kept_for_temporary_files,
};
pub(crate) use sent_form::chunk_format;
pub(crate) use triggers::way as way_of_triggers;

use crate::Context;
use crate::begin;
use crate::budget::{Extent, KEPT_SHARE, Layout};
use crate::feed::{self, Opened};
use crate::indexes::with_its_hint;
use crate::rejected::RejectFile;
use crate::retry::{self, Patience};
use crate::settle;
use crate::widen::Open;
use connecting::{Connected, connect_and_look};
use finding::Found;
use futures_util::future::join;
use head::{Head, Heads};
use howdah_model::plan::{Care, FilePlan, Plan, TablePlan};
use howdah_model::{
    Codec, Eol, Error, ErrorKind, Format, Job, KnownFiles, LedgerChoice, Receipt, Result, TuningPlan,
    ValueSettings,
};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use identity::{Identity, Settled};
pub(crate) use loaded::has_other_table;
pub use loaded::in_tables;
pub(crate) use loaded::{KnownState, comes_once_more, expect_unknown, holds_rows, is_filled};
use looks::Looks;
use sources::Source;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// While planning, failures that may pass are tried again for this long at most: a server or store that does
/// not answer at all is most likely misspelled.
const PATIENCE_MAX: Duration = Duration::from_secs(15);

/// A plan and what it takes to carry it out in this process.
pub struct Planned {
    /// When planning began.
    pub(crate) began: Instant,
    /// The plan.
    pub plan: Plan,
    /// How its memory is cut up.
    pub layout: Layout,
    /// What the ledger says about this job.
    pub history: History,
    /// Columns of new tables whose types were chosen from a sample.
    pub open: Vec<Open>,
    /// Tables that get partitions for rows that have none.
    pub(crate) dated: Vec<new_partitions::Dated>,
    /// For each file the first records as they would be stored, for people to look at; `None` is NULL.
    pub previews: Vec<Vec<Vec<Option<String>>>>,
    /// The files, opened; the head of a pipe is kept here, since it cannot be read twice.
    pub opened: Vec<Opened>,
    /// Where records that the load rejects are written before a failure makes it forget them.
    pub reject_file: Option<RejectFile>,
}

/// What the ledger says about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum History {
    /// Nothing: it is new, or there is no ledger.
    Fresh,
    /// An earlier run has stored these chunks.
    Begun(Vec<Receipt>),
    /// It has finished.
    Done {
        /// When, as the server writes it.
        at: String,
    },
    /// All of its files are in their tables, and it leaves them out.
    NothingNew,
}

impl History {
    /// An earlier run has stored rows.
    pub(crate) fn has_rows(&self) -> bool {
        matches!(self, History::Begun(receipts) if !receipts.is_empty())
    }
}

/// Plans a job.
///
/// # Errors
/// `SourceNotFound`, `SourceDenied`, `Unsupported` for files; `Table` and `Columns` for what does not fit;
/// `SourceChanged` when an unfinished run of the same job read other versions of the files; those of the
/// connection.
pub async fn plan(context: &Context, job: Job) -> Result<Planned> {
    let mut planned = plan_for(context, job, false).await?;
    if matches!(planned.history, History::Fresh | History::Begun(_)) {
        let refusal = context.stop.guard(begin::refusal(&context.connection, &planned.plan)).await?;
        planned.plan.warnings.extend(refusal.map(|error| refused(&error)));
    }
    Ok(planned)
}

fn refused(error: &Error) -> String {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("a load will be refused: {error}{hint}")
}

/// The same for a load that follows: it puts back first what other loads have dropped and, being killed, not
/// put back, where this one goes by what its tables refuse.
///
/// # Errors
/// As for [`plan`]; why something cannot be put back.
pub async fn plan_to_load(context: &Context, job: Job) -> Result<Planned> {
    plan_for(context, job, true).await
}

async fn plan_for(context: &Context, job: Job, to_load: bool) -> Result<Planned> {
    nul::expect_none(&job)?;
    context.connection.tell_of_waits(&context.listener);
    context.connection.be_patient_for(Duration::from_millis(job.retry_for_ms));
    let (began, mut patience) = (Instant::now(), Patience::new(patience_of(&job)));
    let mut furthest = 0;
    loop {
        // Nothing is touched by planning, so a session that breaks in the middle of it is no reason to give
        // up.
        let progress = Progress::default();
        match context.stop.guard(Box::pin(plan_all(context, job.clone(), to_load, &progress))).await {
            Err(error) if progress.again.load(Relaxed) => {
                let reached = progress.steps.load(Relaxed);
                if reached > furthest {
                    furthest = reached;
                    patience.reset();
                }
                retry::wait(context, &mut patience, error).await?;
            }
            planned => {
                if planned.is_err() {
                    context.connection.end_now().await;
                }
                return planned.map(|planned| Planned { began, ..planned });
            }
        }
    }
}

/// How far planning has come.
#[derive(Default)]
struct Progress {
    /// The rest may be done again.
    again: AtomicBool,
    /// What lies behind it: the session, the heads of the files, their tables.
    steps: AtomicU32,
}

fn patience_of(job: &Job) -> Duration {
    PATIENCE_MAX.min(Duration::from_millis(job.retry_for_ms))
}

/// Sets `progress.again` once the rest may be done again: not while the server cannot be reached at all,
/// which was tried long enough then, and not if a pipe would lose what was read of it.
async fn plan_all(context: &Context, mut job: Job, to_load: bool, progress: &Progress) -> Result<Planned> {
    if job.format.encoding.is_none() {
        job.format.encoding = context.connection.client_encoding().map(str::to_owned);
    }
    let patience = patience_of(&job);
    let mut sources = Box::pin(sources::find(context, &job, patience)).await?;
    sources::settle(&mut job.sources);
    let Connected { session, recode, readable, identity, mut settled, choice, read_otherwise } =
        Box::pin(connect_and_look(context, &mut job, &mut sources, progress)).await?;
    let connection = &context.connection;
    let format = as_sent(&job.format, recode.as_deref());
    let heads = Heads {
        context,
        to_load,
        session: &session,
        patience,
        format: &format,
        columns: job.columns.as_deref(),
        recode: recode.as_deref(),
        told: job.shaping.told.as_ref(),
        all_tables: job.shaping.all_tables,
        alone: sources.len() == 1,
        readable: tokio::sync::Mutex::new(readable),
        room_bytes: AtomicU64::new(job.memory_bytes / KEPT_SHARE),
    };
    if to_load {
        choice.expect_new(&job, &settled)?;
    }
    choice.keep(&mut sources);
    let came = (choice.came > 0).then(|| identity::came_since(&job, &settled.name, choice.came));
    let name = std::mem::take(&mut settled.name);
    let mut plan = empty_plan(&job, name, identity, session.server_version());
    plan.value_settings.clone_from(session.values());
    plan.known = choice.known(&job);
    if settled.history == History::NothingNew {
        connection.keep(session);
        return nothing_new(plan, settled);
    }
    let doubted = settled.earlier.take_if(|_| !settled.doubted_for.is_empty());
    if let Some(earlier) = settled.earlier.take() {
        let mut planned = Box::pin(earlier::planned(&heads, plan, settled, earlier, sources)).await?;
        planned.plan.warnings.extend(came.into_iter().chain(read_otherwise));
        connection.keep(session);
        return Ok(planned);
    }
    let placed = place(heads, &job, progress, sources, &mut plan).await?;
    if let Some((earlier, _)) = doubted {
        as_begun::expect(&plan, (&earlier, session.own_values()), &settled.doubted_for)?;
    }
    settled.closed.take().map_or(Ok(()), Err)?;
    let rows_to_come = indexes::rows_to_come(&plan, &placed, &settled.history);
    let history = &settled.history;
    let dated = Box::pin(around_rows(context, &session, &mut plan, &rows_to_come, history, to_load)).await?;
    unused_options::warn(context, &session, &mut plan, &placed).await?;
    plan.warnings.extend(sources::doubts(&job, &plan.files).chain(came).chain(read_otherwise));
    let extent = extent(connection.server_cpus(), &plan, &placed);
    let layout = lay_out(&mut plan, &settled, extent)?;
    connection.keep(session);
    Ok(Planned {
        began: Instant::now(),
        dated,
        open: new_table::open(&plan.job, &plan.tables, &placed),
        previews: placed.iter().map(|(_, head)| head.preview()).collect(),
        plan,
        layout,
        history: settled.history,
        opened: placed.into_iter().map(|(_, head)| head.into_opened()).collect(),
        reject_file: None,
    })
}

/// Reads the heads of the sources, and plans the tables that they go to and how. The files are numbered in
/// this order of the sources.
async fn place(
    heads: Heads<'_>,
    job: &Job,
    progress: &Progress,
    sources: Vec<Source>,
    plan: &mut Plan,
) -> Result<Vec<(u32, Head)>> {
    let (context, session) = (heads.context, heads.session);
    let order: Vec<String> = sources.iter().map(|source| source.object.location().to_owned()).collect();
    let found = heads.read_all(sources).await?;
    progress.steps.store(2, Relaxed);
    let planning = Box::pin(tables::plan_all(&heads, job, &plan.job_id, found));
    let (mut tables, placed) = planning.await?;
    progress.steps.store(3, Relaxed);
    let placed = in_order(placed, &tables);
    // Sent together; rights that are lacking are told first.
    let lacking = lacking_rights::expect_none(context, session, job, &tables);
    let (lacking, types) = join(lacking, sent_form::look(context, session, job, &tables)).await;
    lacking?;
    sent_form::choose(job, &mut tables, &placed, types?);
    toast::choose(context, session, job, &mut tables, &placed).await?;
    plan.files = placed
        .iter()
        .map(|(table_no, head)| file_plan(head, *table_no, &tables[*table_no as usize]))
        .collect();
    arrival::number_inputs(&mut plan.files, &order, &tables)?;
    arrival::expect_all_records(job, &plan.files)?;
    plan.tables = tables;
    Ok(placed)
}

/// The plan of a run that leaves out all files.
fn nothing_new(mut plan: Plan, settled: Settled) -> Result<Planned> {
    let layout = lay_out(&mut plan, &settled, Extent::default())?;
    Ok(Planned {
        began: Instant::now(),
        plan,
        layout,
        history: settled.history,
        open: Vec::new(),
        dated: Vec::new(),
        previews: Vec::new(),
        opened: Vec::new(),
        reject_file: None,
    })
}

fn extent(near_cpus: Option<u32>, plan: &Plan, placed: &[(u32, Head)]) -> Extent {
    let files = &plan.files;
    let kept_bytes: u64 = placed.iter().map(|(_, head)| head.opened.kept_bytes()).sum();
    Extent {
        near_cpus,
        plain_bytes: plain_bytes(files),
        has_ranges: files.iter().any(|file| file.ranged),
        has_parts: placed.iter().any(|(_, head)| head.opened.may_have_parts),
        pipes: feed::pipes_at_once(files),
        kept_bytes: kept_bytes.min(plan.job.memory_bytes / KEPT_SHARE),
        ..Extent::default()
    }
}

/// Cuts up the memory, and with it the files, as an earlier run of the job has done.
fn lay_out(plan: &mut Plan, settled: &Settled, extent: Extent) -> Result<Layout> {
    let scratch = sent_form::scratch(&plan.tables);
    let is_cut = settled.history.has_rows() || matches!(settled.history, History::Done { .. });
    let extent = Extent { is_cut, ..extent };
    let layout = Layout::new(plan.job.memory_bytes, plan.job.jobs, settled.chunk_bytes, extent, scratch)?;
    sent_form::settle(&mut plan.tables, &layout);
    plan.record_bytes_max = layout.record_bytes_max;
    plan.chunk_bytes = layout.chunk_bytes;
    plan.taper = if settled.chunk_bytes.is_some() { settled.taper } else { layout.taper };
    Ok(layout)
}

/// The newest server that the tests run on.
const SERVER_MAJOR_TESTED: u32 = 18;

/// A warning of a server that no test has met: it is read and written as the newest that is known.
fn newer_server(server_version: u32) -> Option<String> {
    let major = server_version / 10_000;
    (major > SERVER_MAJOR_TESTED).then(|| {
        format!(
            "the server is PostgreSQL {major}: this howdah is tested with 13 to {SERVER_MAJOR_TESTED}, and takes it \
             for {SERVER_MAJOR_TESTED}"
        )
    })
}

/// The plan of a job of which nothing is decided yet.
fn empty_plan(job: &Job, job_id: String, identity: Identity, server_version: u32) -> Plan {
    Plan {
        job_id,
        work_key: identity.work_key,
        identity: identity.identity,
        server_version,
        chunk_bytes: 0,
        taper: None,
        record_bytes_max: 0,
        tables: Vec::new(),
        files: Vec::new(),
        indexes: Vec::new(),
        triggers: Vec::new(),
        tuning: TuningPlan::default(),
        warnings: newer_server(server_version).into_iter().collect(),
        value_settings: ValueSettings::new(),
        known: Vec::new(),
        job: job.clone(),
    }
}

/// What becomes of indexes and triggers, and how rows reach partitions: asked anew by every run of a job.
async fn around_rows(
    context: &Context,
    session: &Session,
    plan: &mut Plan,
    rows_to_come: &indexes::RowsToCome,
    history: &History,
    to_load: bool,
) -> Result<Vec<new_partitions::Dated>> {
    let begun = history.has_rows();
    if !settle::is_due_when_empty(&plan.job, begun) {
        settle::make_whole(context, session, plan, to_load).await?;
    }
    let Looks { open, unseen, triggers, tuning, policies, makes_ledger, strangers, doubted_for } =
        looks::look(context, session, plan).await?;
    // Of one that is done nothing is loaded any more.
    if !matches!(history, History::Done { .. }) {
        strangers::expect_nothing_left(context, session, plan, &doubted_for).await?;
    }
    let when = indexes::When { begun, to_load, puts_back: doubted_for.is_empty() };
    plan.indexes = indexes::choose(context, session, plan, rows_to_come, &open, when).await?;
    lock_table::keep_indexes(context, session, plan).await?;
    plan.triggers = triggers::choose(context, session, plan, rows_to_come, triggers).await?;
    let job = &plan.job;
    routing::choose(context, session, job, &plan.indexes, &mut plan.tables).await?;
    lock_table::tell(context, session, plan).await?;
    let job = &plan.job;
    plan.tuning = tune::choose(context, session, plan, tuning).await?;
    numbering::choose(context, session, &mut plan.tables, rows_to_come).await?;
    arrival::choose(context, session, job, &mut plan.tables).await?;
    known_types::choose(context, session, job, &mut plan.tables).await?;
    policies::choose(context, session, plan, policies).await?;
    published::choose(context, session, plan, makes_ledger).await?;
    strangers::tell(plan, &strangers);
    plan.warnings.extend(unseen.map(|error| {
        format!(
            "what other loads have dropped of the tables and not put back is not seen; without an index or a constraint of that, records come in which it would refuse: {}",
            with_its_hint(&error)
        )
    }));
    freeze::choose(context, session, plan).await?;
    kin::expect_none(context, session, plan).await?;
    verify::choose(context, session, plan).await?;
    statistics_cost::tell(context, session, plan, rows_to_come).await?;
    new_partitions::read(context, session, &plan.job, &mut plan.tables).await
}

/// The largest first: the last files to finish are then small ones. A pipe of unknown size counts as large.
/// Files of one size are ordered too, because receipts know a file by its number.
fn in_order(mut placed: Vec<(u32, Head)>, tables: &[TablePlan]) -> Vec<(u32, Head)> {
    placed.sort_by_cached_key(|(table_no, head)| {
        let object = head.object();
        let bytes = object.stored_bytes().unwrap_or(u64::MAX);
        let relation = tables[*table_no as usize].table.relation.clone();
        (std::cmp::Reverse(bytes), object.location().to_owned(), relation, head.data_start_byte)
    });
    placed
}

/// The files' format as the splitter and the server meet it.
fn as_sent(format: &Format, recode: Option<&str>) -> Format {
    let encoding = if recode.is_some() { Some("UTF8".to_owned()) } else { format.encoding.clone() };
    Format { encoding, ..format.clone() }
}

fn file_plan(head: &Head, table_no: u32, table: &TablePlan) -> FilePlan {
    let object = head.object();
    let untouched = head.codec == Codec::None && table.recode.is_none() && table.care != Care::Rewritten;
    FilePlan {
        location: object.location().to_owned(),
        real_location: Some(object.real_location())
            .filter(|real| *real != object.location())
            .map(str::to_owned),
        stored_bytes: object.stored_bytes(),
        version: object.version().map(str::to_owned),
        table_no,
        codec: head.codec,
        // The client writes COPY text, whatever the file's lines end with.
        eol: if table.care == Care::Rewritten { Some(Eol::Lf) } else { head.eol },
        data_start_byte: match (&head.found, &table.recode) {
            (Some(found), Some(_)) => found.finding.utf8.start_byte,
            _ => head.data_start_byte,
        },
        data_end_byte: head.data_end_byte,
        record_like: head.found.as_ref().map_or(0, |found| found.finding.record_like),
        foreign_escapes: head.found.as_deref().is_some_and(Found::has_foreign_escapes),
        other_table: head.found.as_ref().is_some_and(|found| found.finding.second_table.is_some()),
        found: head.found.as_ref().map(|found| found.finding.describe()),
        typed: head.found.as_ref().map(|found| found.finding.typed.clone()).unwrap_or_default(),
        header: head.found_names(),
        evidence: head.found.as_ref().map(|found| found.finding.evidence.clone()).unwrap_or_default(),
        unsure: head.found.as_deref().map(Found::unsure).unwrap_or_default(),
        ranged: object.ranged() && untouched,
        rereadable: object.rereadable(),
        input_no: 0,
        left_out: false,
        cut_as_bytes: None,
        has_changed: false,
    }
}

/// About how much there is to load, where that is known. What is compressed is taken for a third of itself.
pub(crate) fn plain_bytes(files: &[FilePlan]) -> Option<u64> {
    files.iter().map(|file| file.stored_bytes.map(|bytes| plain_bytes_of(file, bytes))).sum()
}

/// About so many plain bytes are in so many stored bytes of the file.
pub(crate) fn plain_bytes_of(file: &FilePlan, stored_bytes: u64) -> u64 {
    let factor = if file.codec == Codec::None { 1 } else { 3 };
    stored_bytes.saturating_mul(factor)
}

/// The ledger of a job, if it has one.
pub(crate) fn ledger_of(job: &Job) -> Option<Ledger> {
    match &job.ledger {
        LedgerChoice::Schema(schema) => Some(Ledger::new(schema).named(job.ledger_named)),
        LedgerChoice::None => None,
    }
}

/// The error of a job that has finished before, and is loaded anew or gone on with (`is_resumed`), which
/// takes no --known.
pub(crate) fn already_done(job_id: &str, at: &str, is_resumed: bool) -> Error {
    let options = if is_resumed { "--force" } else { "--force, or --known load where rows are appended," };
    let message = format!("this job finished at {at} and has stored its rows (job {job_id})");
    Error::new(ErrorKind::JobDone, message)
        .with_hint(format!("{options} loads the same files once more; changed files make another job"))
}

/// The same of one that was planned when another run of it was at work.
pub(crate) fn done_by_another(plan: &Plan, at: &str) -> Error {
    let finished = already_done(&plan.job_id, at, plan.job.resumes.is_some());
    if !plan.job.force && plan.job.known != KnownFiles::Load {
        return finished;
    }
    let message = format!(
        "this job finished at {at}, by another run of it, and has stored its rows (job {})",
        plan.job_id
    );
    finished.with_message(message).with_hint(
        "they are in once; to load the files once more, run the command again when no other run of it is at work",
    )
}

#[cfg(test)]
mod tests {
    use super::newer_server;

    #[test]
    fn a_server_newer_than_the_tests_is_told() {
        assert_eq!(newer_server(180_004), None);
        assert!(newer_server(190_001).is_some_and(|warning| warning.contains("PostgreSQL 19")));
    }
}
