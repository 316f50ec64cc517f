//! Bad records that COPY has taken into the staging tables, out of their files into the ledger, so that they
//! are written to the file of bad records like the others. Which they are comes in the order of the files.

use super::reread::Files;
use crate::arrival::judge::judged;
use crate::pipeline::Run;
use crate::spot::{Spot, Spots};
use bytes::Bytes;
use futures_util::StreamExt;
use howdah_model::{ChunkId, Error, ErrorKind, Reject, Result};
use howdah_target::check::found;
use howdah_target::check::rules::Rule;
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use std::pin::pin;
use std::time::Duration;

/// Somebody has asked for these records: they are read however long that takes.
const WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);
/// Records that go to the ledger at once.
const AT_ONCE: usize = 1000;
/// The same in bytes.
const AT_ONCE_BYTES: usize = 1 << 20;

/// Records of one chunk on their way to the ledger.
struct Batch<'a> {
    ledger: &'a Ledger,
    session: &'a Session,
    job_id: &'a str,
    of: ChunkId,
    bytes: usize,
    rejects: Vec<Reject>,
}

impl Batch<'_> {
    async fn add(&mut self, spot: &Spot, reject: Reject) -> Result<()> {
        let of = spot.receipt.chunk();
        if of != self.of || self.rejects.len() >= AT_ONCE || self.bytes >= AT_ONCE_BYTES {
            self.flush().await?;
        }
        self.of = of;
        self.bytes += reject.bytes.len();
        self.rejects.push(reject);
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        let rejects = std::mem::take(&mut self.rejects);
        match rejects.is_empty() {
            true => Ok(()),
            false => self.ledger.keep_bad(self.session, self.job_id, self.of, &rejects).await,
        }
    }
}

/// Keeps what these rules find, each record once, in one transaction. `asking` is the session that asks;
/// returns how many records cannot be read again.
///
/// # Errors
/// Those of the sessions.
pub(super) async fn keep(run: &Run, ledger: &Ledger, asking: &Session, rules: &[Rule]) -> Result<u64> {
    let session = run.context.connection.open().await?;
    ledger.begin_keeping(&session).await?;
    let mut batch = Batch {
        ledger,
        session: &session,
        job_id: &run.plan.job_id,
        of: ChunkId { file_no: 0, chunk_no: 0 },
        bytes: 0,
        rejects: Vec::new(),
    };
    let (spots, mut files) = (Spots::new(run), Files::new(run, WITHIN));
    let mut unread = 0;
    let mut judged = pin!(judged(found::stream(asking, rules).await?, rules));
    while let Some(reasons) = judged.next().await {
        let reasons = reasons?;
        let Some(found) = reasons.first() else { continue };
        let spot = spots.of(found.place);
        let read = match &spot {
            Some(spot) => files.record(spot).await,
            None => None,
        };
        let (Some(spot), Some((byte, bytes))) = (spot, read) else {
            unread += 1;
            continue;
        };
        let reason = rules.get(found.rule_no).map(|rule| rule.reason.clone()).unwrap_or_default();
        batch.add(&spot, reject(run, &spot, byte, bytes, reason)).await?;
    }
    batch.flush().await?;
    ledger.end_keeping(&session).await?;
    Ok(unread)
}

fn reject(run: &Run, spot: &Spot, byte: u64, bytes: Bytes, reason: String) -> Reject {
    let table = run.plan.table_of(spot.file_no);
    Reject {
        record: spot.record(),
        byte: Some(byte),
        // The client has rewritten the encoding.
        as_in_file: table.recode.is_none(),
        bytes,
        error: Error::new(ErrorKind::Server, reason),
    }
}
