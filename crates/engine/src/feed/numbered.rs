//! The rows of a chunk with the numbers that a sequence would have given them.

use super::lanes::into_parcels;
use crate::budget::Buffer;
use crate::plan::chunk_format;
use bytes::Bytes;
use howdah_model::arrival::{PLACED_BYTES_MAX, PLACED_FILES_MAX, place_of};
use howdah_model::plan::{Encode, NumberPlan};
use howdah_model::{Eol, Error, ErrorKind, Faster, Form, Origin, Result, StagingPlan, TablePlan};
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

/// Records that wait in a staging table are told apart by their places. Without one of its own a record would
/// have another's.
///
/// # Errors
/// Unsupported, where the file is longer than there are places, or one of more files than have them.
pub(super) fn expect_place(staging: Option<&StagingPlan>, file: (&str, u32), origin: &Origin) -> Result<()> {
    let (location, input_no) = file;
    let is_placed = staging.is_some_and(|staging| staging.place.is_some());
    if !is_placed || place_of(input_no, origin.end_byte.saturating_sub(1)).is_some() {
        return Ok(());
    }
    let message = format!(
        "records that wait in a staging table are told apart by their places, of which {PLACED_FILES_MAX} files have some, and \
         {PLACED_BYTES_MAX} plain bytes of each: these end with byte {} of file {}",
        origin.end_byte,
        u64::from(input_no) + 1
    );
    let error = Error::new(ErrorKind::Unsupported, message).with_hint(
        "load the files by several jobs, one after the other; cut one that is so long into several",
    );
    Err(error.in_file(location))
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

    /// The rows with their numbers. Where that cannot be done, they come back as they were, and the server
    /// numbers them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::arrival::PlaceColumn;
    use howdah_model::{Omitted, Relation};

    #[test]
    fn records_behind_the_last_place_are_refused() {
        let origin = |end_byte| Origin {
            file_no: 0,
            chunk_no: 1 << 20,
            start_byte: end_byte - 10,
            end_byte,
            first_record: 1,
            records: 5,
            omitted: Omitted::default(),
            digest: None,
        };
        let relation = Relation { schema: "howdah".to_owned(), name: "staging".to_owned() };
        let place = PlaceColumn { name: "place".to_owned(), sequence: relation.clone() };
        let counted = StagingPlan { relation: relation.clone(), place: Some(place) };
        let plain = StagingPlan { relation, place: None };
        assert!(expect_place(Some(&counted), ("a.csv", 3), &origin(PLACED_BYTES_MAX)).is_ok());
        for free in [None, Some(&plain)] {
            assert!(expect_place(free, ("a.csv", 3), &origin(PLACED_BYTES_MAX + 1)).is_ok());
        }
        let more = PLACED_FILES_MAX as u32;
        assert!(expect_place(Some(&counted), ("a.csv", more), &origin(10)).is_err());
        let refused = expect_place(Some(&counted), ("a.csv", 3), &origin(PLACED_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert_eq!(refused.place().file.as_deref(), Some("a.csv"));
    }
}
