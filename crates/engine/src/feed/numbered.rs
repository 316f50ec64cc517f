//! The rows of a chunk with the numbers that a sequence would have given them.

use super::lanes::into_parcels;
use crate::budget::Buffer;
use crate::plan::chunk_format;
use bytes::Bytes;
use howdah_model::plan::{Encode, NumberPlan};
use howdah_model::{Eol, Faster, Form, TablePlan};
use howdah_transcode::encode::Unquoter;
use howdah_transcode::number::{self, Numberer, Numbers};
use howdah_transcode::route::Lane;

/// How the rows of one file get their numbers.
pub(super) struct Numbered {
    pub(super) plan: NumberPlan,
    /// Reads records as the file has them.
    as_is: Option<Numberer>,
    /// Reads those that were written as COPY text.
    text: Option<Numberer>,
}

impl Numbered {
    /// `None` where the server numbers the rows, or none are.
    pub(super) fn new(table: &TablePlan, eol: Option<Eol>) -> Option<Numbered> {
        let plan = table.number.clone()?;
        let written_eol = if table.encode == Encode::CopyText { Some(Eol::Lf) } else { eol };
        let unquoted = Unquoter::new(&table.format).map(|unquoter| unquoter.sent_format(&table.format));
        Some(Numbered {
            plan,
            as_is: Numberer::new(&chunk_format(table), written_eol),
            text: unquoted.and_then(|format| Numberer::new(&format, eol)),
        })
    }

    /// Those of a chunk's buffers that numbered rows are written to.
    pub(super) fn take_buffers(&self, scratch: &mut Vec<Buffer>) -> Vec<Buffer> {
        scratch.split_off(scratch.len().saturating_sub(self.plan.buffers as usize))
    }

    /// The rows with their numbers. Where that cannot be done, they come back as they were, and the server numbers
    /// them.
    pub(super) fn number(
        &self,
        bytes: &Bytes,
        faster: Option<Faster>,
        mut buffers: Vec<Buffer>,
        numbers: &Numbers,
    ) -> Option<Faster> {
        let form = faster.as_ref().map_or(Form::AsIs, |faster| faster.form);
        let pieces: Vec<&[u8]> = match &faster {
            Some(faster) => {
                faster.parcels.iter().flat_map(|parcel| &parcel.pieces).map(AsRef::as_ref).collect()
            }
            None => vec![bytes],
        };
        buffers.iter_mut().for_each(|buffer| buffer.truncate(0));
        let mut room: Vec<&mut [u8]> = buffers.iter_mut().map(Buffer::spare).collect();
        let first = pieces.first().copied().unwrap_or_default();
        let written = match form {
            Form::Binary => number::binary(&pieces, numbers, usize::from(self.plan.number_bytes), &mut room),
            Form::AsIs => self.as_is.as_ref().and_then(|by| by.records(first, numbers, &mut room)),
            Form::Text => self.text.as_ref().and_then(|by| by.records(first, numbers, &mut room)),
        };
        let Some(end) = written else { return faster };
        let lane = Lane { leaf_no: None, bytes: 0..end };
        Some(Faster { form, numbered: true, parcels: into_parcels(form, vec![lane], buffers) })
    }
}
