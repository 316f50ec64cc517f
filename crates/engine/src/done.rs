//! Loads of which nothing is left to do, and what a load says of files that others have loaded.

use crate::feed::{self, Opened};
use crate::load::{Outcome, by_file};
use crate::partitioner::Partitioner;
use crate::pipeline::{Receipts, Run};
use crate::plan::{Planned, has_other_table, in_tables, ledger_of};
use crate::tally::Tally;
use crate::{Context, again};
use howdah_model::summary::Status;
use howdah_model::{
    Error, ErrorKind, Event, IfDone, KnownFiles, OnError, Origin, Place, Plan, Receipt, Result, counted,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What to do about a source that brings something else than a finished job has read, or than a pipe has
/// brought.
const OTHER_BYTES_HINT: &str = "give the file as it was, or load the new file under another --job-id";

/// The same of a file that is known by its name and of which a job that did not end has stored rows: under
/// another --job-id alone those would be in the way.
const OTHER_FILE_HINT: &str = "give the file as it was; or remove the rows that the job has stored, delete it from the ledger, and run this \
                               again; another --job-id with --force loads the new file beside what is there";

/// What to do about a chunk that is another one now.
pub(crate) fn other_bytes_hint(run: &Run, file_no: u32) -> &'static str {
    let is_named = run.plan.files.get(file_no as usize).is_some_and(|file| file.rereadable);
    if is_named && !run.is_over { OTHER_FILE_HINT } else { OTHER_BYTES_HINT }
}

/// All files are in their tables already.
pub(crate) fn nothing_new(context: &Context, plan: &Plan) -> Outcome {
    let message = format!("nothing new: {}", in_tables(plan).unwrap_or_default());
    let tally = Tally::new(plan, context.connection.display());
    if has_other_table(&plan.known) {
        tally.warn(&message);
        context.warn(message);
    } else {
        context.tell(message);
    }
    done(context, &tally, plan)
}

/// The error says that the job has finished, by this run or by another one at the same time.
pub(crate) fn is_told(outcome: &Result<Outcome>) -> Option<&Error> {
    let error = match outcome {
        Ok(outcome) => outcome.error.as_ref(),
        Err(error) => Some(error),
    };
    error.filter(|error| error.kind() == ErrorKind::JobDone)
}

/// The account of a job that has finished, from the ledger: for who asks once more, having lost the answer.
///
/// # Errors
/// Those of ledger and session.
pub(crate) async fn account(context: &Context, plan: &Plan, told: &Error) -> Result<Outcome> {
    let tally = Tally::new(plan, context.connection.display());
    count(&tally, plan, &receipts(context, plan).await?);
    context.tell(format!("nothing is left to do: {}", told.message()));
    Ok(done(context, &tally, plan))
}

/// Who lacks the file of what the job has rejected, as the run that was to write it was stopped, is told how
/// it is written now.
pub(crate) async fn with_rejects(context: &Context, plan: &Plan, told: Error) -> Error {
    let asks = plan.job.bad_records.on_error == OnError::Skip && plan.job.if_done == IfDone::Fail;
    let Some(ledger) = ledger_of(&plan.job).filter(|_| asks) else { return told };
    let connection = &context.connection;
    let found = async {
        let session = connection.open().await?;
        let found = connection.attend(&session, ledger.find(&session, &plan.job_id)).await?;
        connection.keep(session);
        Ok::<_, Error>(found)
    };
    let rejected = found.await.ok().flatten().map_or(0, |row| row.rows_rejected);
    if rejected == 0 {
        return told;
    }
    let hint = format!(
        "{}; `howdah status JOB --reject-file FILE` writes what it has rejected",
        told.hint().unwrap_or_default()
    );
    again::in_full(told.with_hint(hint), connection, &plan.job_id, ledger.schema())
}

async fn receipts(context: &Context, plan: &Plan) -> Result<Vec<Receipt>> {
    let Some(ledger) = ledger_of(&plan.job) else { return Ok(Vec::new()) };
    let session = context.connection.open().await?;
    let mut receipts = context.connection.attend(&session, ledger.receipts(&session, &plan.job_id)).await?;
    receipts.retain(|receipt| (receipt.file_no as usize) < plan.files.len());
    Ok(receipts)
}

/// Files that need not be read, by their receipts.
fn count<'a>(tally: &Tally, plan: &Plan, receipts: impl IntoIterator<Item = &'a Receipt>) {
    for receipt in receipts {
        tally.known_chunk(receipt.file_no, receipt.rows, receipt.omitted);
        tally.stored(receipt.file_no, receipt.rows, true);
    }
    (0..).zip(&plan.files).for_each(|(no, _)| tally.file(no).read_done.store(true, Relaxed));
}

/// Of a source of the job nothing is known beforehand that tells whether it is the same as in an earlier run:
/// a pipe, or a URL without a version.
pub(crate) fn only_bytes_tell(plan: &Plan) -> bool {
    plan.files.iter().any(|file| file.version.is_none())
}

/// The account of a finished job with such sources. They are read to their ends, which whoever writes into a
/// pipe waits for, and must bring what the job has stored: under the name of a job that has finished, other
/// records would be taken for loaded ones.
///
/// # Errors
/// `SourceChanged`, where they bring something else; what reading them fails with; those of ledger and
/// session.
pub(crate) async fn compare(context: &Context, planned: Planned, told: &Error) -> Result<Outcome> {
    let Planned { began, plan, layout, opened, .. } = planned;
    context.tell(format!("{}: what comes is compared with what it has stored", told.message()));
    let receipts = by_file(context.stop.guard(receipts(context, &plan)).await?);
    let partitioner = Partitioner::new(None, Vec::new())?;
    context.listener.on_event(&Event::Planned { plan: Box::new(plan.clone()) });
    let ledger = ledger_of(&plan.job);
    let mut run = Run::new(context, plan, layout, ledger, receipts.clone(), (Vec::new(), partitioner));
    run.is_over = true;
    run.tally.planned_for.get_or_init(|| began.elapsed());
    let run = Arc::new(run);
    let read = read_all(&run, opened).await.and_then(|()| expect_all(&run, &receipts));
    let known = receipts.iter().filter(|(no, _)| run.plan.file(**no).version.is_some());
    count(&run.tally, &run.plan, known.flat_map(|(_, receipts)| receipts.values()));
    if read.is_ok() {
        context.tell(format!("nothing is left to do: {}", told.message()));
    }
    let outcome = done(context, &run.tally, &run.plan);
    read.map(|()| outcome)
}

/// Reads what only its bytes tell from other sources.
async fn read_all(run: &Arc<Run>, opened: Vec<Opened>) -> Result<()> {
    let (queue, mut chunks) = tokio::sync::mpsc::channel(1);
    let is_read = |(no, _): &(usize, Opened)| run.plan.files[*no].version.is_none();
    let feeders = feed::start(run, opened.into_iter().enumerate().filter(is_read), &queue)?;
    drop(queue);
    // Chunks are compared where they are made: none comes out, and the queue closes behind the last.
    let reading = async {
        while chunks.recv().await.is_some() {}
        Ok(())
    };
    let stopped = run.context.stop.guard(reading).await;
    drop(chunks);
    feed::join(feeders).await;
    stopped.and(run.halt.result())
}

/// Every chunk that the job has stored of these files has come again.
fn expect_all(run: &Run, receipts: &HashMap<u32, Receipts>) -> Result<()> {
    for (no, file) in (0..).zip(&run.plan.files).filter(|(_, file)| file.version.is_none()) {
        let came = run.tally.file(no).chunks.load(Relaxed);
        let mut stored = receipts.get(&no).into_iter().flat_map(|receipts| receipts.values());
        let Some(missing) = stored.nth(usize::try_from(came).unwrap_or(usize::MAX)) else { continue };
        let message = format!(
            "it ended at byte {}, expected chunk {}, which an earlier run has stored from there up to byte {}",
            missing.start_byte, missing.chunk_no, missing.end_byte
        );
        return Err(Error::new(ErrorKind::SourceChanged, message)
            .in_file(&file.location)
            .with_hint(OTHER_BYTES_HINT));
    }
    Ok(())
}

/// The job has finished without this chunk.
pub(crate) fn beyond_the_end(origin: &Origin) -> Error {
    let message = format!(
        "the source goes on behind what the finished job has stored: expected its end before chunk {}, got {}",
        origin.chunk_no,
        counted(origin.records, "more record")
    );
    let place =
        Place { record: Some(origin.first_record), byte: Some(origin.start_byte), ..Place::default() };
    Error::new(ErrorKind::SourceChanged, message).at(place).with_hint(OTHER_BYTES_HINT)
}

fn done(context: &Context, tally: &Tally, plan: &Plan) -> Outcome {
    let summary = tally.summary(plan, Status::Done);
    context.listener.on_event(&Event::Done { summary: Box::new(summary.clone()) });
    Outcome { summary, error: None, written: Vec::new() }
}

/// Says which files are left out; a warning comes back of those that are loaded once more, or of which nobody
/// knows whether their rows are there. The ledger keeps neither.
pub(crate) fn tell_known(context: &Context, plan: &mut Plan) -> Option<String> {
    let known = in_tables(plan);
    let of_another_table = has_other_table(&std::mem::take(&mut plan.known));
    if plan.job.known == KnownFiles::Skip && !plan.job.force {
        let left_out = format!("left out: {}", known?);
        if of_another_table {
            return Some(left_out);
        }
        context.tell(left_out);
        return None;
    }
    known.map(|known| format!("rows come once more: {known}"))
}
