//! Decides everything before a byte moves: which files go to which table, how each is read, which columns
//! its fields fill, how memory is cut up, and whether an earlier run has begun the same job.
//!
//! Enters a [`Job`], leaves a [`Plan`] that can be printed, kept and shipped. Reads the heads of the files,
//! the catalog and the ledger; changes nothing anywhere.

mod columns;
mod head;
mod identity;
mod sources;

pub use columns::field_targets;

use crate::Context;
use crate::budget::Layout;
use crate::feed::Opened;
use crate::retry::patiently;
use columns::Columns;
use head::{Head, Heads};
use howdah_model::plan::{Encode, FilePlan, Plan, TablePlan};
use howdah_model::{Codec, Error, ErrorKind, Format, Job, LedgerChoice, Receipt, Result, Table};
use howdah_target::copy;
use howdah_target::ledger::Ledger;
use howdah_target::session::{Session, catalog, encoding};
use howdah_transcode::encode::Rewriter;
use identity::Identity;
use std::collections::BTreeMap;
use std::time::Duration;

/// While planning, failures that may pass are tried again for this long at most: a server or store that does
/// not answer at all is most likely misspelled.
const PATIENCE_MAX: Duration = Duration::from_secs(15);

/// A plan and what it takes to carry it out in this process.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// How its memory is cut up.
    pub layout: Layout,
    /// What the ledger says about this job.
    pub history: History,
    /// The files, opened; the head of a pipe is kept here, since it cannot be read twice.
    pub opened: Vec<Opened>,
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
}

/// Plans a job.
///
/// # Errors
/// `SourceNotFound`, `SourceDenied`, `Unsupported` for files; `Table` and `Columns` for what does not fit;
/// `SourceChanged` when an unfinished run of the same job read other versions of the files; those of the
/// connection.
pub async fn plan(context: &Context, job: Job) -> Result<Planned> {
    context.stop.guard(plan_all(context, job)).await
}

async fn plan_all(context: &Context, mut job: Job) -> Result<Planned> {
    if job.format.encoding.is_none() {
        job.format.encoding = context.connection.client_encoding().map(str::to_owned);
    }
    let patience = PATIENCE_MAX.min(Duration::from_millis(job.retry_for_ms));
    let found = patiently(context, patience, || sources::find(context, &job)).await?;
    sources::settle(&mut job, &found);
    let session = patiently(context, patience, || context.connection.open()).await?;
    let recode = recoding(&session, &job.format).await?;
    let format = as_sent(&job.format, recode.as_deref());
    let heads = Heads {
        context,
        session: &session,
        patience,
        format: &format,
        by_position: job.columns.is_some(),
        recode: recode.as_deref(),
    };
    let heads = heads.read_all(found).await?;
    let mut tables = Tables {
        session: &session,
        job: &job,
        format: &format,
        recode: recode.as_deref(),
        shapes: BTreeMap::new(),
        plans: Vec::new(),
    };
    let mut placed = Vec::new();
    for head in heads {
        placed.push((tables.plan_for(&head).await?, head));
    }
    let tables = tables.plans;
    // The largest first: the last files to finish are then small ones. A pipe of unknown size counts as large.
    // Files of one size are ordered too, because receipts know a file by its number.
    placed.sort_by_cached_key(|(table_no, head)| {
        let object = head.object();
        let bytes = object.stored_bytes().unwrap_or(u64::MAX);
        let relation = tables[*table_no as usize].table.relation.clone();
        (std::cmp::Reverse(bytes), object.location().to_owned(), relation)
    });
    let files: Vec<FilePlan> =
        placed.iter().map(|(table_no, head)| file_plan(head, *table_no, recode.is_some())).collect();
    let identity = Identity::new(&job, &files);
    let (job_id, chunk_bytes, history) = identity.settle(&session, &job).await?;
    let shared_bytes = context.connection.server_cpus().and_then(|_| plain_bytes(&files));
    let layout = Layout::new(job.memory_bytes, job.jobs, chunk_bytes, shared_bytes)?;
    let plan = Plan {
        job_id,
        work_key: identity.work_key,
        identity: identity.identity,
        server_version: session.server_version(),
        chunk_bytes: layout.chunk_bytes,
        record_bytes_max: layout.record_bytes_max,
        format,
        recode,
        tables,
        files,
        job,
    };
    Ok(Planned {
        plan,
        layout,
        history,
        opened: placed.into_iter().map(|(_, head)| head.into_opened()).collect(),
    })
}

/// The name of the file's encoding when the server cannot read it and the client has to rewrite it as UTF-8.
async fn recoding(session: &Session, format: &Format) -> Result<Option<String>> {
    let Some(name) = &format.encoding else { return Ok(None) };
    let readable = encoding::reads_encoding(session, name).await?;
    Ok((!readable).then(|| name.clone()))
}

/// The files' format as the splitter and the server meet it.
fn as_sent(format: &Format, recode: Option<&str>) -> Format {
    let encoding = if recode.is_some() { Some("UTF8".to_owned()) } else { format.encoding.clone() };
    Format { encoding, ..format.clone() }
}

/// The tables met so far. Files whose headers differ in order have plans of their own for the same table.
struct Tables<'a> {
    session: &'a Session,
    job: &'a Job,
    format: &'a Format,
    recode: Option<&'a str>,
    shapes: BTreeMap<String, Table>,
    plans: Vec<TablePlan>,
}

impl Tables<'_> {
    /// The number of the plan for this file's table and columns.
    async fn plan_for(&mut self, head: &Head) -> Result<u32> {
        let written = &head.table;
        if !self.shapes.contains_key(written) {
            let shape = catalog::read_table(self.session, written).await?;
            self.shapes.insert(written.clone(), shape);
        }
        let table = &self.shapes[written];
        let in_file = |error: Error| error.in_file(head.object().location());
        let columns = Columns::choose(self.job, table, head.names.as_deref()).map_err(in_file)?;
        let known =
            self.plans.iter().position(|plan| plan.table.oid == table.oid && plan.fields == columns.fields);
        let no = match known {
            Some(no) => no,
            None => {
                let plan = self.table_plan(table.clone(), columns).map_err(in_file)?;
                self.plans.push(plan);
                self.plans.len() - 1
            }
        };
        Ok(u32::try_from(no).unwrap_or(u32::MAX))
    }

    fn table_plan(&self, table: Table, columns: Columns) -> Result<TablePlan> {
        let Columns { fields, mut notes } = columns;
        let stored: Vec<String> = fields.iter().flatten().cloned().collect();
        let rewritten = fields.iter().any(Option::is_none);
        let (encode, format) = if rewritten {
            let text = Format { encoding: self.format.encoding.clone(), ..Format::text() };
            notes.push("records are rewritten to COPY text, because fields are left out".to_owned());
            (Encode::CopyText, text)
        } else {
            (Encode::PassThrough, self.format.clone())
        };
        if let Some(encoding) = self.recode {
            notes.push(format!(
                "the server cannot read {encoding}: the bytes are rewritten as UTF8 on the way"
            ));
        } else if !rewritten {
            notes.push("COPY takes the bytes as they are: they go untouched".to_owned());
        }
        let copy_sql = copy::statement(&table.relation, &stored, &format, self.session.server_version())?;
        let plan = TablePlan { table, fields, encode, copy_sql, notes };
        if rewritten {
            // What cannot be rewritten is said now, not in the middle of the load.
            Rewriter::new(self.format, &field_targets(&plan, self.format))?;
        }
        Ok(plan)
    }
}

fn file_plan(head: &Head, table_no: u32, recoded: bool) -> FilePlan {
    let object = head.object();
    FilePlan {
        location: object.location().to_owned(),
        stored_bytes: object.stored_bytes(),
        version: object.version().map(str::to_owned),
        table_no,
        codec: head.codec,
        eol: head.eol,
        data_start_byte: head.data_start_byte,
        ranged: object.ranged() && head.codec == Codec::None && !recoded,
        rereadable: object.rereadable(),
    }
}

/// About how much there is to load, where that is known. What is compressed is taken for a third of itself.
fn plain_bytes(files: &[FilePlan]) -> Option<u64> {
    let bytes = |file: &FilePlan| {
        let factor = if file.codec == Codec::None { 1 } else { 3 };
        file.stored_bytes.map(|bytes| bytes.saturating_mul(factor))
    };
    files.iter().map(bytes).sum()
}

/// The ledger of a job, if it has one.
pub fn ledger_of(job: &Job) -> Option<Ledger> {
    match &job.ledger {
        LedgerChoice::Schema(schema) => Some(Ledger::new(schema)),
        LedgerChoice::None => None,
    }
}

/// The error of a job that has finished before.
pub fn already_done(job_id: &str, at: &str) -> Error {
    Error::new(
        ErrorKind::JobDone,
        format!("this job finished at {at} and its rows are in the table (job {job_id})"),
    )
    .with_hint("--force loads the same files once more; other options or changed files make another job")
}
