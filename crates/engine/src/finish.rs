//! After the last chunk: the barrier, what a server crash took, and the proof that read = stored.
//!
//! Chunks commit without waiting for the disk. One synchronous commit at the end makes them all durable,
//! because WAL is flushed in order; the ledger read back after it then tells the truth. A chunk that was
//! committed and is missing now was lost in a crash of the server in between: its file is read again and
//! the missing chunks are loaded, then the barrier is repeated.

use crate::again::Way;
use crate::arrival::on_session;
use crate::feed::{first_byte, open_all};
use crate::load::by_file;
use crate::pipeline::{self, Receipts, Run};
use crate::retry::patiently;
use howdah_model::{Error, ErrorKind, Event, Mode, Plan, Receipt, Relation, Result, Stage, counted, plural};
use howdah_target::finish::barrier;
use howdah_target::ledger::{FileAccount, Ledger};
use howdah_target::session::Session;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Crashes in a row after which loading again is given up.
pub(crate) const ROUNDS_MAX: u32 = 5;

/// Makes everything durable and proves that what was read is what is stored.
///
/// # Errors
/// `Internal` when the account does not come out even; otherwise what ends a load.
pub(crate) async fn finish(run: &Arc<Run>) -> Result<()> {
    let start = Instant::now();
    let done = finish_rounds(run).await;
    run.tally.spend(Stage::Finish, start.elapsed());
    done
}

async fn finish_rounds(run: &Arc<Run>) -> Result<()> {
    let retry_for = Duration::from_millis(run.plan.job.retry_for_ms);
    for _ in 0..ROUNDS_MAX {
        run.is_at("making all rows durable");
        let Some(receipts) = patiently(&run.context, retry_for, || settled_receipts(run)).await? else {
            return check_counts(run);
        };
        let receipts = by_file(receipts);
        let missing = (0..run.plan.files.len()).map(|no| missing(run, no, &receipts));
        let (chunks, rows) = missing.fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        if chunks == 0 && rows == 0 {
            check_borders(run, &receipts)?;
            return note_account(run).await;
        }
        expect_kept_here(run, &receipts)?;
        expect_taken_by_server(run, chunks, rows).await?;
        expect_all_come_again(run, rows)?;
        load_again(run, receipts, rows).await?;
    }
    Err(keeps_losing())
}

/// A receipt that is lost proves nothing of rows that went elsewhere: loading them again might double them.
fn expect_kept_here(run: &Run, receipts: &HashMap<u32, Receipts>) -> Result<()> {
    for (no, file) in run.plan.files.iter().enumerate() {
        let table = run.plan.table(file.table_no);
        let (_, rows) = missing(run, no, receipts);
        if rows > 0 && table.outside {
            let message = format!(
                "the server has lost that {} went into {}, which may keep them elsewhere: nobody knows whether they are there",
                counted(rows, "row"),
                table.table.relation
            );
            return Err(Error::new(ErrorKind::CommitUnknown, message).in_file(&file.location).with_hint(
                "look where its rows are; the same command loads those again that the ledger lacks",
            ));
        }
    }
    Ok(())
}

/// Rows whose receipts somebody has deleted are in the table: loading them again would double them.
async fn expect_taken_by_server(run: &Run, chunks: u64, rows: u64) -> Result<()> {
    // All rows of a table are in one transaction then, which may have gone with its connection.
    if run.plan.job.arrival.freeze {
        return Ok(());
    }
    let ask = async |session: &Session| Ok(run.has_lost_nothing(session).await);
    if on_session(run, ask).await.unwrap_or(false) {
        let of = format!("{} of {}", counted(chunks, "chunk"), counted(rows, "row"));
        return Err(deleted(run, &format!("the receipts of {of} are not in the ledger any more")));
    }
    Ok(())
}

/// The ledger has answered, and lacks the job or a step of it.
fn is_gone(error: &Error) -> bool {
    error.kind() == ErrorKind::Ledger && error.sqlstate().is_none()
}

/// What is missing in the ledger neither a crash nor a failover has taken.
fn deleted(run: &Run, missing: &str) -> Error {
    let message = format!(
        "{missing}, and the server has not crashed: somebody has deleted that while job {} ran",
        run.plan.job_id
    );
    let tables: Vec<String> = run.plan.tables.iter().map(|table| table.table.relation.to_string()).collect();
    Error::new(ErrorKind::Ledger, message).with_hint(format!(
        "rows of the job are in {} and would come twice: take them out (TRUNCATE, if nothing else is there), then --force loads \
         everything again from the beginning",
        tables.join(", ")
    ))
}

/// Whoever opens a named pipe once more waits for a writer that may never come, or takes the bytes of the
/// next one for those that are lost.
fn expect_all_come_again(run: &Run, missing: u64) -> Result<()> {
    let Some(pipe) = run.plan.files.iter().find(|file| !file.rereadable) else { return Ok(()) };
    let message = format!("the server has lost {}, and a pipe cannot be read again", counted(missing, "row"));
    let lost = Error::new(ErrorKind::ConnectionLost, message).in_file(&pipe.location);
    Err(lost.with_hint(Way::of(&run.plan).told().unwrap_or_default()))
}

pub(crate) fn keeps_losing() -> Error {
    let message = "the server keeps losing what it has stored: it crashed again and again";
    Error::new(ErrorKind::ConnectionLost, message)
}

/// The receipts after the barrier; `None` without a ledger.
async fn settled_receipts(run: &Run) -> Result<Option<Vec<Receipt>>> {
    let connection = &run.context.connection;
    let session = connection.open().await?;
    let receipts = async {
        match &run.ledger {
            None => Ok(None),
            Some(ledger) => {
                ledger.forget_emptied(&session, &run.plan.job_id).await?;
                ledger.receipts(&session, &run.plan.job_id).await.map(Some)
            }
        }
    };
    let emptied = emptied(&run.plan);
    let standing = async {
        match &run.ledger {
            None => Ok(()),
            Some(ledger) => ledger.expect_standing(&session, &run.plan.job_id, &emptied).await,
        }
    };
    // Sent together: the server reads the ledger when the barrier has answered.
    let settling = async { tokio::try_join!(barrier(&session), standing, receipts) };
    let ((), (), receipts) = match connection.attend(&session, settling).await {
        Err(error) if is_gone(&error) && run.has_lost_nothing(&session).await => {
            return Err(deleted(run, "the ledger lacks what it has held of the job"));
        }
        settled => settled?,
    };
    connection.keep(session);
    Ok(receipts)
}

/// The tables that were emptied before the first row came.
fn emptied(plan: &Plan) -> Vec<&Relation> {
    let arrival = &plan.job.arrival;
    let empties = arrival.mode == Mode::Truncate && !arrival.check;
    let tables = plan.tables.iter().filter(|table| empties && !table.frozen);
    tables.map(|table| &table.table.relation).collect()
}

/// Chunks and rows of a file that were acknowledged and are not in the ledger. A chunk may hold no row, if
/// all its records were left out.
fn missing(run: &Run, no: usize, receipts: &HashMap<u32, Receipts>) -> (u64, u64) {
    let file_no = u32::try_from(no).unwrap_or(u32::MAX);
    let in_ledger = receipts.get(&file_no);
    let chunks = in_ledger.map_or(0, |receipts| receipts.len() as u64);
    let rows = in_ledger.map_or(0, |receipts| receipts.values().map(in_account).sum());
    let tally = &run.tally.files[no];
    (tally.chunks.load(Relaxed).saturating_sub(chunks), tally.rows_read.load(Relaxed).saturating_sub(rows))
}

/// Records of a chunk that are in the table, or kept for having been refused.
fn in_account(receipt: &Receipt) -> u64 {
    receipt.rows + receipt.omitted.rejected
}

/// Without a ledger the counters must agree: every chunk found was acknowledged.
fn check_counts(run: &Run) -> Result<()> {
    for (file, tally) in run.plan.files.iter().zip(&run.tally.files) {
        check_rows(&file.location, tally.rows_read.load(Relaxed), tally.rows_stored.load(Relaxed))?;
    }
    Ok(())
}

fn check_rows(location: &str, read: u64, stored: u64) -> Result<()> {
    if read == stored {
        return Ok(());
    }
    let message = format!("read {}, but {stored} are stored or kept as rejected", counted(read, "record"));
    Err(Error::new(ErrorKind::Internal, message).in_file(location))
}

/// The chunks of a file must follow each other without a gap or an overlap.
fn check_borders(run: &Run, receipts: &HashMap<u32, Receipts>) -> Result<()> {
    for (no, file) in run.plan.files.iter().enumerate() {
        let Some(chunks) = u32::try_from(no).ok().and_then(|no| receipts.get(&no)) else { continue };
        let mut expected = first_byte(&run.plan, file);
        for receipt in chunks.values() {
            if receipt.start_byte != expected {
                let message = format!(
                    "chunk {} starts at another byte than the chunk before it ends at: expected {expected}, got {}",
                    receipt.chunk_no, receipt.start_byte
                );
                return Err(Error::new(ErrorKind::Internal, message).in_file(&file.location));
            }
            expected = receipt.end_byte;
        }
        let rejected: u64 = chunks.values().map(|receipt| receipt.omitted.rejected).sum();
        let accounted: u64 = chunks.values().map(in_account).sum();
        check_rows(&file.location, run.tally.files[no].rows_read.load(Relaxed), accounted)?;
        run.tally.settle(no, accounted - rejected, rejected);
    }
    Ok(())
}

/// Read is stored and rejected, file by file: the ledger is told as it was proved.
pub(crate) async fn note_account(run: &Run) -> Result<()> {
    let Some(ledger) = &run.ledger else { return Ok(()) };
    let files: Vec<FileAccount> = (0..run.plan.files.len()).map(|no| run.tally.account(no)).collect();
    let note = async |session: &Session| ledger.account(session, &run.plan.job_id, &files).await;
    on_session(run, note).await
}

/// Reads the files again and loads the chunks that have no receipt any more.
async fn load_again(run: &Arc<Run>, receipts: HashMap<u32, Receipts>, missing: u64) -> Result<()> {
    let rows = counted(missing, "row");
    let ask = async |session: &Session| Ok(run.is_on_another_server(session).await);
    let lost = match on_session(run, ask).await {
        Ok(true) => format!(
            "another server took the place of the one that this load began on, and lacks {rows} it had not received yet"
        ),
        Ok(false) | Err(_) => format!("the server crashed and lost {rows} it had not yet written to disk"),
    };
    let message = match run.plan.job.arrival.freeze {
        false if run.ledger.as_ref().is_some_and(Ledger::is_volatile) => format!(
            "the server crashed and has emptied the UNLOGGED tables, of rows that were in them before as well: loading \
             {rows} again"
        ),
        false => format!("{lost}: loading {} again", plural(missing, "it", "these")),
        true => format!("{rows} whose transaction was lost {} loaded again", plural(missing, "is", "are")),
    };
    // How far that is, the files do not tell: most of what is read of them is in. Before the notice, with
    // which a share of it would be told otherwise.
    run.is_at(format!("loading {rows} again"));
    run.context.listener.on_event(&Event::Notice { message });
    run.frozen.restart(run).await;
    let opened = open_all(&run.context, &run.plan).await?;
    run.set_receipts(receipts);
    run.tally.restart_rows();
    pipeline::run(run, opened).await
}
