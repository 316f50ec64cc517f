//! Rows of a chunk, laid out by the leaf partition that takes them.
//!
//! Rows enter as they would be sent, as COPY text, csv or COPY binary, and leave in the same form, those of
//! one leaf behind one another in the order of the file. Which leaf that is follows from the bounds of the
//! partitions as the server itself decides it, for the types and operator classes that are known here (see
//! `KeyKind`). Rows of which that is not certain, and those of leaves that get only a few, go to the
//! partitioned table, where the server routes them. A leaf checks its constraint in any case, so that a row
//! can be refused but never stands in the wrong partition.

mod exact;
mod hash;
mod key;
pub(crate) mod rows;
mod table;

use crate::encode::BinaryEncoder;
use howdah_model::route::{Destination, PartitionedTable, RoutePlan};
use howdah_model::{BinaryType, ColumnChoice, Eol, Format};
use rows::{Values, Wanted};
use std::ops::Range;
use table::Table;

/// Rows whose places are remembered at most, 8 bytes each; a chunk that needs more is not laid out.
/// Neighbours that go to one leaf count as one.
const RUNS_MAX: usize = 1 << 20;

/// Knows the leaf of each row.
#[derive(Debug, Clone)]
pub struct Router {
    table: Table,
    wanted: Wanted,
    leaves: usize,
    leaf_rows_min: u64,
}

/// Rows of one leaf, in the bytes that were laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// As the plan numbers the leaves; `None` is the partitioned table itself.
    pub leaf_no: Option<u32>,
    /// Where they stand.
    pub bytes: Range<usize>,
}

/// Where the rows of a chunk go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Laid {
    /// All of them to one leaf, as they stand.
    Whole(Option<u32>),
    /// To several, laid out anew.
    Lanes(Vec<Lane>),
}

/// Where rows stand that are to be laid out.
#[derive(Debug, Clone, Copy)]
pub enum Sent<'a> {
    /// Rows in COPY's binary format, whole ones in each piece, from the header to the trailer.
    Binary(&'a [&'a [u8]]),
    /// Records in a format of COPY that this encoder reads.
    Records(&'a [u8], &'a BinaryEncoder),
}

impl Router {
    /// For the partitions of a plan. `None` where a bound is one that only the server can read.
    pub fn new(plan: &RoutePlan) -> Option<Router> {
        let mut wanted = Wanted::default();
        want(&plan.root, &mut wanted);
        let text = Format::text();
        let reader = BinaryEncoder::new(&text, None, &[BinaryType::Text], "UTC")?;
        let bound = |value_no: usize, text: &str| {
            let mut bytes = Vec::new();
            let binary = wanted.binary(value_no)?;
            infinite(binary, text)
                .or_else(|| reader.write_value(binary, text.as_bytes(), &mut bytes).map(|()| bytes))
        };
        let table = Table::new(&plan.root, &|field_no| wanted.value_no(field_no), &bound)?;
        Some(Router { table, wanted, leaves: plan.leaves.len(), leaf_rows_min: plan.leaf_rows_min })
    }

    /// Reads records of this format, to find their leaves; `None` where the format says what only the server
    /// can carry out.
    pub fn reader(format: &Format, eol: Option<Eol>, time_zone: &str) -> Option<BinaryEncoder> {
        // The keys behind a value that may be NULL would not be read.
        let is_read = format.force_null == ColumnChoice::None;
        BinaryEncoder::new(format, eol, &[BinaryType::Text], time_zone).filter(|_| is_read)
    }

    /// Lays the rows out in `out`, one buffer behind the other. `None` where that cannot be done: they are
    /// not read with certainty, there are too many of them, or `out` has no room for them.
    pub fn lay_out(&self, sent: Sent<'_>, out: &mut [&mut [u8]]) -> Option<Laid> {
        let mut rows = LaneRows::of(self, sent)?;
        rows.leave_few_to_the_server(self.leaf_rows_min);
        if let Some(leaf_no) = rows.only_lane() {
            return Some(Laid::Whole(leaf_no));
        }
        if matches!(sent, Sent::Records(records, _) if !records.ends_with(b"\n") && !records.ends_with(b"\r"))
        {
            // The last record would run into another.
            return None;
        }
        let pieces: &[&[u8]] = match &sent {
            Sent::Binary(pieces) => pieces,
            Sent::Records(records, _) => std::slice::from_ref(records),
        };
        rows.copy(pieces, matches!(sent, Sent::Binary(_)), out)
    }
}

/// Tells the values of one field of whole records that are dates or timestamps: days, or microseconds, from
/// 2000-01-01. What comes behind a record that cannot be read with certainty is not told, nor are values that
/// cannot.
pub fn read_numbers(
    records: &[u8],
    reader: &BinaryEncoder,
    field_no: u32,
    binary: &BinaryType,
    mut tell: impl FnMut(i64),
) {
    let mut wanted = Wanted::default();
    wanted.add(field_no, binary);
    // Whatever is wrong with the rest, the server says.
    let _ = rows::of_records(records, reader, &wanted, &mut Values::default(), |values, _| {
        if let Some(number) = values.get(0).flatten().and_then(hash::signed) {
            tell(number);
        }
    });
}

/// Tells those that have no offset and are in the session's time zone, which is not UTC: microseconds from
/// 2000-01-01 there.
pub fn read_local_numbers(records: &[u8], reader: &BinaryEncoder, field_no: u32, tell: impl FnMut(i64)) {
    if !reader.session_is_utc() {
        read_numbers(records, reader, field_no, &BinaryType::Timestamp, tell);
    }
}

/// The same number for the text of a bound, in ISO spelling and in UTC; infinite ones are the least and the
/// greatest.
pub fn read_bound(binary: &BinaryType, text: &str) -> Option<i64> {
    let reader = BinaryEncoder::new(&Format::text(), None, &[BinaryType::Text], "UTC")?;
    match text {
        "-infinity" => Some(i64::MIN),
        "infinity" => Some(i64::MAX),
        _ => {
            let mut bytes = Vec::new();
            reader.write_value(binary, text.as_bytes(), &mut bytes)?;
            hash::signed(&bytes)
        }
    }
}

fn want(table: &PartitionedTable, wanted: &mut Wanted) {
    for key in &table.keys {
        wanted.add(key.field_no, &key.binary);
    }
    for to in table.partitions.iter().map(|partition| &partition.to).chain(&table.default) {
        if let Destination::Partitioned(table) = to {
            want(table, wanted);
        }
    }
}

/// Bounds may be infinite, as values of rows are not here.
fn infinite(binary: &BinaryType, text: &str) -> Option<Vec<u8>> {
    let (low, high) = match binary {
        BinaryType::Date => (i32::MIN.to_be_bytes().to_vec(), i32::MAX.to_be_bytes().to_vec()),
        BinaryType::Timestamp | BinaryType::TimestampTz => {
            (i64::MIN.to_be_bytes().to_vec(), i64::MAX.to_be_bytes().to_vec())
        }
        _ => return None,
    };
    match text {
        "-infinity" => Some(low),
        "infinity" => Some(high),
        _ => None,
    }
}

/// Neighbouring rows that go to one leaf.
#[derive(Debug, Clone, Copy)]
struct Run {
    lane: u32,
    bytes: u32,
}

/// The rows of a chunk and where they go. Lane 0 is the partitioned table, lane `n` leaf `n - 1`.
struct LaneRows {
    runs: Vec<Run>,
    rows: Vec<u64>,
    bytes: Vec<usize>,
    too_many: bool,
}

impl LaneRows {
    fn of(router: &Router, sent: Sent<'_>) -> Option<LaneRows> {
        let lanes = router.leaves + 1;
        let mut found =
            LaneRows { runs: Vec::new(), rows: vec![0; lanes], bytes: vec![0; lanes], too_many: false };
        let (mut values, mut scratch) = (Values::default(), Vec::new());
        let mut tell = |values: &Values, bytes: usize| {
            let leaf_no = router.table.leaf(values, &mut scratch);
            found.add(leaf_no.map_or(0, |no| no + 1), bytes);
        };
        match sent {
            Sent::Records(records, reader) => {
                rows::of_records(records, reader, &router.wanted, &mut values, tell)?;
            }
            Sent::Binary(pieces) => {
                for (no, piece) in pieces.iter().enumerate() {
                    let piece = piece.get(binary_start(no)..)?;
                    rows::of_binary(piece, &router.wanted, &mut values, &mut tell)?;
                }
            }
        }
        (!found.too_many).then_some(found)
    }

    fn add(&mut self, lane: u32, bytes: usize) {
        if let Some((rows, all)) = self.rows.get_mut(lane as usize).zip(self.bytes.get_mut(lane as usize)) {
            *rows += 1;
            *all += bytes;
        }
        let Ok(bytes) = u32::try_from(bytes) else {
            self.too_many = true;
            return;
        };
        if let Some(run) = self.runs.last_mut().filter(|run| run.lane == lane)
            && let Some(sum) = run.bytes.checked_add(bytes)
        {
            run.bytes = sum;
        } else if self.runs.len() < RUNS_MAX {
            self.runs.push(Run { lane, bytes });
        } else {
            self.too_many = true;
        }
    }

    /// A chunk whose rows all go to one leaf stays with it, however few they are.
    fn leave_few_to_the_server(&mut self, leaf_rows_min: u64) {
        if self.only_lane().is_some() {
            return;
        }
        let few: Vec<bool> = self.rows.iter().map(|rows| *rows < leaf_rows_min).collect();
        let is_few = |lane: u32| few.get(lane as usize).copied().unwrap_or(true);
        for run in &mut self.runs {
            if is_few(run.lane) {
                run.lane = 0;
            }
        }
        for (lane, _) in few.iter().enumerate().skip(1).filter(|(_, few)| **few) {
            let (rows, bytes) = (std::mem::take(&mut self.rows[lane]), std::mem::take(&mut self.bytes[lane]));
            self.rows[0] += rows;
            self.bytes[0] += bytes;
        }
    }

    fn only_lane(&self) -> Option<Option<u32>> {
        let mut used = (0_u32..).zip(&self.rows).filter(|(_, rows)| **rows > 0);
        let lane = used.next()?.0;
        used.next().is_none().then(|| lane.checked_sub(1))
    }

    /// Copies the rows of the pieces to `out`, lane by lane.
    fn copy(&self, pieces: &[&[u8]], is_binary: bool, out: &mut [&mut [u8]]) -> Option<Laid> {
        let mut ends = Vec::with_capacity(self.bytes.len());
        let mut lanes = Vec::new();
        let mut start = 0;
        for (lane, bytes) in (0_u32..).zip(&self.bytes) {
            ends.push(start);
            if *bytes > 0 {
                lanes.push(Lane { leaf_no: lane.checked_sub(1), bytes: start..start + bytes });
            }
            start += bytes;
        }
        let mut runs = self.runs.iter();
        let mut left = 0;
        let mut lane = 0;
        for (no, piece) in pieces.iter().enumerate() {
            let first = if is_binary { binary_start(no) } else { 0 };
            let mut rest = piece.get(first..)?;
            loop {
                if left == 0 {
                    let Some(run) = runs.next() else { break };
                    (lane, left) = (run.lane as usize, run.bytes as usize);
                }
                let (now, behind) = rest.split_at(left.min(rest.len()));
                let end = ends.get_mut(lane)?;
                put(out, *end, now)?;
                *end += now.len();
                left -= now.len();
                rest = behind;
                if left > 0 {
                    break;
                }
            }
        }
        Some(Laid::Lanes(lanes))
    }
}

pub(crate) fn binary_start(piece_no: usize) -> usize {
    if piece_no == 0 { rows::BINARY_START } else { 0 }
}

/// Writes at `at` of the buffers, which all have one length and are taken as one.
pub(crate) fn put(out: &mut [&mut [u8]], at: usize, mut bytes: &[u8]) -> Option<()> {
    let buffer_bytes = out.first()?.len();
    let (mut no, mut at) = (at.checked_div(buffer_bytes)?, at.checked_rem(buffer_bytes)?);
    while !bytes.is_empty() {
        let room = out.get_mut(no)?.get_mut(at..)?;
        let (now, behind) = bytes.split_at(bytes.len().min(room.len()));
        room.get_mut(..now.len())?.copy_from_slice(now);
        bytes = behind;
        (no, at) = (no + 1, 0);
    }
    Some(())
}
