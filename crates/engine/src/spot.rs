//! From the place that a staging table keeps back to the record in its file.

use crate::locate::reread;
use crate::pipeline::{Receipts, Run};
use howdah_model::arrival::file_of_place;
use howdah_model::{Care, Origin, Place, Receipt};
use std::collections::HashMap;

/// The chunk that a record came in, and which of its records it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    /// Index into the plan's files.
    pub(crate) file_no: u32,
    /// The chunk.
    pub(crate) receipt: Receipt,
    /// The number of the chunk's first record.
    first_record: u64,
    /// The same, where those that were not sent do not count.
    first_sent: u64,
    /// Counted from 0, among the records that were sent of the chunk.
    pub(crate) row: u64,
    /// All records of the chunk were sent.
    is_whole: bool,
}

impl Spot {
    /// Its number in the file. `None` in a chunk of which some records were not sent: nobody knows which.
    pub(crate) fn record(&self) -> Option<u64> {
        self.is_whole.then_some(self.first_record + self.row)
    }

    /// Number and first byte, as far as they can be told; the file may have to be read for that.
    pub(crate) async fn found(&self, run: &Run) -> (Option<u64>, Option<u64>) {
        let receipt = self.receipt;
        // What is rewritten is numbered as it is sent.
        let is_rewritten = is_rewritten(run, self.file_no);
        let origin = Origin {
            file_no: self.file_no,
            chunk_no: receipt.chunk_no,
            start_byte: receipt.start_byte,
            end_byte: receipt.end_byte,
            first_record: if is_rewritten { self.first_sent } else { self.first_record },
            records: receipt.rows + receipt.omitted.rejected,
            omitted: receipt.omitted,
            digest: receipt.digest,
        };
        match reread::place(run, &origin, self.row).await {
            Some((record, byte)) => (Some(record), Some(byte)),
            None => (self.record(), None),
        }
    }
}

/// A chunk, and the numbers of its first record: with those before it that were not sent, and without.
type Numbered = (Receipt, u64, u64);

/// What leads from places to records.
pub(crate) struct Spots {
    /// By the number of the file in the order of the sources.
    files: HashMap<u32, Chunks>,
}

/// Those of a file.
struct Chunks {
    file_no: u32,
    in_order: Vec<Numbered>,
    /// The reader of a rewritten file reads ahead: which chunk a record was left out of is not known.
    may_lack: bool,
}

fn is_rewritten(run: &Run, file_no: u32) -> bool {
    run.plan.table_of(file_no).care == Care::Rewritten
}

/// Some of its records were not sent.
fn lacks_some(receipt: &Receipt) -> bool {
    receipt.omitted.left_out + receipt.omitted.blank > 0
}

impl Spots {
    /// By the receipts that the run knows.
    pub(crate) fn new(run: &Run) -> Spots {
        let file = |(file_no, input_no): (u32, u32)| {
            let receipts = run.receipts(file_no);
            let may_lack = is_rewritten(run, file_no) && receipts.values().any(lacks_some);
            (input_no, Chunks { file_no, in_order: numbered(&receipts), may_lack })
        };
        let inputs = (0..).zip(run.plan.files.iter().map(|file| file.input_no));
        Spots { files: inputs.map(file).collect() }
    }

    /// The record of a place: its chunk is the last one that begins at or before it, and the rest is its
    /// number there.
    pub(crate) fn of(&self, place: i64) -> Option<Spot> {
        let (input_no, at) = file_of_place(place);
        let Chunks { file_no, in_order, may_lack } = self.files.get(&input_no)?;
        let behind = in_order.partition_point(|(receipt, ..)| receipt.start_byte <= at);
        let (receipt, first_record, first_sent) = *in_order.get(behind.checked_sub(1)?)?;
        let row = at - receipt.start_byte;
        let is_whole = !may_lack && !lacks_some(&receipt);
        let spot = Spot { file_no: *file_no, receipt, first_record, first_sent, row, is_whole };
        (at < receipt.end_byte).then_some(spot)
    }

    /// The file that a place is in.
    pub(crate) fn file_no(&self, place: i64) -> Option<u32> {
        self.files.get(&file_of_place(place).0).map(|chunks| chunks.file_no)
    }

    /// The same as words for an error, without the byte.
    pub(crate) fn place_in_file(&self, run: &Run, place: i64) -> Place {
        let spot = self.of(place);
        let file = self.file_no(place).and_then(|no| run.plan.files.get(no as usize));
        let file = file.map(|file| file.location.clone());
        Place { file, record: spot.and_then(|spot| spot.record()), ..Place::default() }
    }
}

fn numbered(receipts: &Receipts) -> Vec<Numbered> {
    let (mut next, mut next_sent) = (1, 1);
    let number = |receipt: &Receipt| {
        let numbered = (*receipt, next, next_sent);
        next += receipt.rows + receipt.omitted.records();
        next_sent += receipt.rows + receipt.omitted.rejected;
        numbered
    };
    receipts.values().map(number).collect()
}
