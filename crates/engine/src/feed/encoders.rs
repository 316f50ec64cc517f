//! A chunk's records in the form that the server reads at least cost: COPY binary where every value is
//! certain, else COPY text where that means the same, else as the file has them.

use crate::budget::Buffer;
use crate::plan::chunk_format;
use howdah_model::plan::Encode;
use howdah_model::{Aside, Doubt, Eol, Faster, Form, TablePlan};
use howdah_transcode::encode::{BinaryEncoder, PassedOver, Unquoter};
use howdah_transcode::sift::Sifter;
use howdah_transcode::split::Rules;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// After so many chunks in a row that could not be binary, a further one is tried only now and then: writing
/// most of a chunk for nothing costs the client about what it would have saved the server.
const FAILURES_MAX: u32 = 4;
/// Then of so many chunks one is tried.
const TRY_EVERY: u32 = 16;

/// How the chunks of one file are written, beside as they are.
pub(super) struct Encoders {
    binary: Option<BinaryEncoder>,
    unquoter: Option<Unquoter>,
    /// Chunks since the last one that was binary.
    failures: AtomicU32,
}

impl Encoders {
    pub(super) fn new(table: &TablePlan, eol: Option<Eol>) -> Encoders {
        let (binary, format) = (table.binary.as_ref(), chunk_format(table));
        let eol = if table.encode == Encode::CopyText { Some(Eol::Lf) } else { eol };
        let encoder = binary.and_then(|plan| BinaryEncoder::new(&format, eol, &plan.types, &plan.time_zone));
        Encoders {
            binary: encoder.map(|encoder| match &table.known {
                Some(known) => encoder.within(&known.bounds),
                None => encoder,
            }),
            unquoter: table.text_sql.as_ref().and_then(|_| Unquoter::new(&table.format)),
            failures: AtomicU32::new(0),
        }
    }

    /// The records in the cheapest form there is for them; none if that is their own. Buffers that are not
    /// needed go back to the pool.
    pub(super) fn encode(&self, records: &[u8], mut scratch: Vec<Buffer>) -> Option<Faster> {
        if let Some(encoder) = self.binary.as_ref().filter(|_| self.is_worth_a_try()) {
            if let Some(used) = binary(encoder, records, &mut scratch) {
                self.failures.store(0, Relaxed);
                let rows = scratch.drain(..used).map(Buffer::freeze).collect();
                return Some(Faster::whole(Form::Binary, rows));
            }
            self.failures.fetch_add(1, Relaxed);
        }
        let (unquoter, mut buffer) = self.unquoter.as_ref().zip(scratch.into_iter().next())?;
        buffer.truncate(0);
        let length = unquoter.unquote(records, buffer.spare())?;
        buffer.advance(length);
        Some(Faster::whole(Form::Text, vec![buffer.freeze()]))
    }

    /// The same, and the records that are not certain, which are set aside instead of spoiling the form of
    /// all others.
    pub(super) fn encode_most(
        &self,
        rules: &Rules,
        sifter: Option<&Sifter>,
        records: &[u8],
        mut scratch: Vec<Buffer>,
    ) -> (Option<Faster>, Vec<Aside>) {
        let encoder = self.binary.as_ref().filter(|_| self.is_worth_a_try());
        let Some(encoder) = encoder else { return (self.encode(records, scratch), Vec::new()) };
        if let Some((used, aside)) = most(encoder, rules, records, &mut scratch) {
            self.failures.store(0, Relaxed);
            let rows = scratch.drain(..used).map(Buffer::freeze).collect();
            let told = |(row, range): PassedOver| match sifter {
                Some(sifter) => sifter.aside(records, row, range),
                None => Aside::new(row, range, Doubt::Unknown),
            };
            return (Some(Faster::whole(Form::Binary, rows)), aside.into_iter().map(told).collect());
        }
        self.failures.fetch_add(1, Relaxed);
        (None, Vec::new())
    }

    fn is_worth_a_try(&self) -> bool {
        let failures = self.failures.load(Relaxed);
        if failures < FAILURES_MAX {
            return true;
        }
        // Counts what is passed over, too.
        self.failures.fetch_add(1, Relaxed).is_multiple_of(TRY_EVERY)
    }
}

/// Writes the records that are certain as rows; how many buffers these took, and the others. `None` where
/// most are such.
fn most(
    encoder: &BinaryEncoder,
    rules: &Rules,
    records: &[u8],
    buffers: &mut [Buffer],
) -> Option<(usize, Vec<PassedOver>)> {
    let (mut at, mut aside) = ((0, 0), Vec::new());
    for (no, buffer) in buffers.iter_mut().enumerate() {
        let most = encoder.encode_most(rules, records, at, buffer.spare(), &mut aside)?;
        buffer.advance(most.encoded.length);
        if most.encoded.is_done {
            let is_worth_it = (aside.len() as u64).saturating_mul(2) < most.rows;
            return is_worth_it.then_some((no + 1, aside));
        }
        at = (most.encoded.taken, most.rows);
    }
    None
}

/// Writes the records as rows, and says how many buffers these took.
fn binary(encoder: &BinaryEncoder, records: &[u8], buffers: &mut [Buffer]) -> Option<usize> {
    let mut from = 0;
    for (no, buffer) in buffers.iter_mut().enumerate() {
        let encoded = encoder.encode(records, from, buffer.spare())?;
        buffer.advance(encoded.length);
        if encoded.is_done {
            return Some(no + 1);
        }
        from = encoded.taken;
    }
    None
}
