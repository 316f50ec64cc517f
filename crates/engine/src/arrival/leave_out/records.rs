//! The bytes of records that are left out: read again from their files, in order, one chunk in memory, and
//! written into the ledger. Records of pipes, and those that were rewritten or mended on their way, are kept
//! as the server writes their rows.

use crate::arrival::Staged;
use crate::check::reread::Files;
use crate::feed::eol_of_chunk;
use crate::pipeline::Run;
use crate::plan::chunk_format;
use crate::rejects::as_kept;
use crate::spot::{Spot, Spots};
use bytes::{BufMut, Bytes, BytesMut};
use howdah_model::{Eol, Error, ErrorKind, Place, Reject, Result};
use howdah_target::arrival::leave_out;
use howdah_target::check::rules::Rule;
use howdah_target::ledger::Ledger;
use howdah_target::salvage::of_rule;
use howdah_target::session::Session;
use howdah_transcode::encode::from_utf8;
use howdah_transcode::split::Rules;
use std::time::{Duration, Instant};

/// The load waits for these records: they are read however long that takes.
const WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);
/// Records that go to the ledger at once.
const AT_ONCE: usize = 1000;
/// The same in bytes.
const AT_ONCE_BYTES: usize = 1 << 20;
/// Of so many of each file the summary tells.
const FIRST_MAX: usize = 20;
/// Places in files that are looked up by reading them from the beginning, and how long at most: staging
/// tables are locked meanwhile.
const LOOKED_UP_MAX: u32 = 20;
const LOOKING_UP: Duration = Duration::from_secs(5);

/// Records on their way to the ledger.
pub(super) struct Records<'a> {
    run: &'a Run,
    ledger: &'a Ledger,
    spots: &'a Spots,
    files: Files<'a>,
    first: Vec<(u32, Vec<Reject>)>,
    looked_up: u32,
    began: Instant,
}

/// One of them, with what its file has.
struct Found {
    place: i64,
    spot: Spot,
    rule_no: usize,
    in_file: Option<(u64, Bytes)>,
}

impl<'a> Records<'a> {
    pub(super) fn new(run: &'a Run, ledger: &'a Ledger, spots: &'a Spots) -> Records<'a> {
        let files = Files::new(run, WITHIN);
        Records { run, ledger, spots, files, first: Vec::new(), looked_up: 0, began: Instant::now() }
    }

    /// The first of each file.
    pub(super) fn first(self) -> Vec<(u32, Vec<Reject>)> {
        self.first
    }

    /// Writes them into the ledger, in the open transaction. They are in the order of their places.
    pub(super) async fn keep(
        &mut self,
        session: &mut Session,
        tables: &Staged<'_>,
        rules: &[Rule],
        bad: &[(i64, usize)],
    ) -> Result<()> {
        let (mut batch, mut bytes) = (Vec::<Found>::new(), 0);
        for (place, rule_no) in bad {
            let spot = self.spots.of(*place).ok_or_else(lost)?;
            let is_next = |last: &Found| {
                (last.spot.file_no, last.spot.receipt.chunk_no) != (spot.file_no, spot.receipt.chunk_no)
            };
            if batch.len() >= AT_ONCE || bytes >= AT_ONCE_BYTES || batch.last().is_some_and(is_next) {
                self.write(session, tables, rules, std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            let in_file = self.read(&spot).await;
            bytes += in_file.as_ref().map_or(0, |(_, bytes)| bytes.len());
            batch.push(Found { place: *place, spot, rule_no: *rule_no, in_file });
        }
        self.write(session, tables, rules, batch).await
    }

    /// First byte and bytes, as the file has them.
    async fn read(&mut self, spot: &Spot) -> Option<(u64, Bytes)> {
        let table = self.run.plan.table_of(spot.file_no);
        let (byte, bytes) = self.files.record(spot).await?;
        match &table.recode {
            None => Some((byte, bytes)),
            Some(encoding) => Some((byte, from_utf8(encoding, &bytes)?.into())),
        }
    }

    /// All of one chunk.
    async fn write(
        &mut self,
        session: &mut Session,
        tables: &Staged<'_>,
        rules: &[Rule],
        batch: Vec<Found>,
    ) -> Result<()> {
        let Some(Spot { file_no, receipt, .. }) = batch.first().map(|found| found.spot) else {
            return Ok(());
        };
        let unread: Vec<i64> =
            batch.iter().filter(|found| found.in_file.is_none()).map(|found| found.place).collect();
        let mut anew = self.written_anew(session, tables, file_no, &unread).await?.into_iter();
        let location = self.run.plan.file(file_no).location.clone();
        let mut rejects = Vec::with_capacity(batch.len());
        for Found { spot, rule_no, in_file, .. } in batch {
            let as_in_file = in_file.is_some();
            let (record, byte, bytes) = match in_file {
                Some((byte, bytes)) => (spot.record(), Some(byte), bytes),
                None => {
                    let (record, byte) = self.look_up(&spot).await;
                    (record, byte, anew.next().ok_or_else(lost)?)
                }
            };
            let error = rules.get(rule_no).map(of_rule).ok_or_else(lost)?;
            let error = error.at(Place { file: Some(location.clone()), ..Place::default() });
            rejects.push(Reject { record, byte, bytes, as_in_file, error });
        }
        self.note_first(file_no, &rejects);
        let kept = as_kept(self.run, file_no, &rejects);
        self.ledger.reject_later(session, &self.run.plan.job_id, receipt.chunk(), &kept).await
    }

    fn note_first(&mut self, file_no: u32, rejects: &[Reject]) {
        if self.first.last().is_none_or(|(no, _)| *no != file_no) {
            self.first.push((file_no, Vec::new()));
        }
        if let Some((_, first)) = self.first.last_mut() {
            let room = FIRST_MAX.saturating_sub(first.len());
            first.extend(rejects.iter().take(room).cloned());
        }
    }

    /// Where a record stands that was rewritten or mended.
    async fn look_up(&mut self, spot: &Spot) -> (Option<u64>, Option<u64>) {
        self.looked_up += 1;
        if self.looked_up > LOOKED_UP_MAX || self.began.elapsed() > LOOKING_UP {
            return (spot.record(), None);
        }
        spot.found(self.run).await
    }

    async fn written_anew(
        &self,
        session: &Session,
        tables: &Staged<'_>,
        file_no: u32,
        places: &[i64],
    ) -> Result<Vec<Bytes>> {
        let plan = &self.run.plan;
        let table = plan.table_of(file_no);
        let staged = tables.iter().find(|(_, staging)| table.staging.as_ref() == Some(*staging));
        let (Some((_, staging)), false) = (staged, places.is_empty()) else { return Ok(Vec::new()) };
        let format = chunk_format(table);
        let bytes = leave_out::written_anew(session, table, staging, &format, places).await?;
        let rules = Rules::new(&format, plan.server_version, Some(Eol::Lf))?;
        let ranges = rules.ranges(&bytes);
        if ranges.len() != places.len() {
            return Err(lost());
        }
        let eol: &[u8] = match eol_of_chunk(plan, file_no) {
            Some(Eol::CrLf) => b"\r\n",
            Some(Eol::Cr) => b"\r",
            Some(Eol::Lf) | None => b"\n",
        };
        let ended = |range: std::ops::Range<usize>| {
            let record = &bytes[range];
            let mut ended = BytesMut::from(record.strip_suffix(b"\n").unwrap_or(record));
            ended.put_slice(eol);
            ended.freeze()
        };
        Ok(ranges.into_iter().map(ended).collect())
    }
}

/// Rows of a staging table have places of its job's records.
fn lost() -> Error {
    Error::new(ErrorKind::Internal, "a row of a staging table is not where its place says")
}
