//! A chunk's records in the form that the server reads at least cost: COPY binary where every value is certain,
//! else COPY text where that means the same, else as the file has them.

use crate::budget::Buffer;
use crate::plan::chunk_format;
use howdah_model::plan::Encode;
use howdah_model::{Eol, Faster, Form, TablePlan};
use howdah_transcode::encode::{BinaryEncoder, Unquoter};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// After so many chunks in a row that could not be binary, a further one is tried only now and then: writing most of
/// a chunk for nothing costs the client about what it would have saved the server.
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
        Encoders {
            binary: binary
                .and_then(|binary| BinaryEncoder::new(&format, eol, &binary.types, &binary.time_zone)),
            unquoter: table.text_sql.as_ref().and_then(|_| Unquoter::new(&table.format)),
            failures: AtomicU32::new(0),
        }
    }

    /// The records in the cheapest form there is for them; none if that is their own. Buffers that are not needed go
    /// back to the pool.
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

    fn is_worth_a_try(&self) -> bool {
        let failures = self.failures.load(Relaxed);
        if failures < FAILURES_MAX {
            return true;
        }
        // Counts what is passed over, too.
        self.failures.fetch_add(1, Relaxed).is_multiple_of(TRY_EVERY)
    }
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
