//! The rows of a chunk laid out by the leaf partition that takes them, so that each leaf gets its own by one
//! COPY.

use crate::budget::Buffer;
use crate::plan::chunk_format;
use bytes::Bytes;
use howdah_model::plan::Encode;
use howdah_model::{Eol, Faster, Form, Format, Parcel, TablePlan};
use howdah_transcode::encode::{BinaryEncoder, HEADER, TRAILER, Unquoter};
use howdah_transcode::route::{Laid, Lane, Router, Sent};
use std::ops::Range;

/// How the rows of one file find their leaves.
pub(super) struct Lanes {
    router: Router,
    /// Reads records as the file has them.
    as_is: Option<BinaryEncoder>,
    /// Reads those that were written as COPY text.
    text: Option<BinaryEncoder>,
    /// Buffers in which rows are laid out.
    buffers: usize,
}

impl Lanes {
    /// `None` where the client does not route the table's rows.
    pub(super) fn new(table: &TablePlan, eol: Option<Eol>) -> Option<Lanes> {
        let route = table.route.as_ref()?;
        let reader = |format: &Format, eol| Router::reader(format, eol, &route.time_zone);
        let unquoted = Unquoter::new(&table.format).map(|unquoter| unquoter.sent_format(&table.format));
        let written_eol = if table.encode == Encode::CopyText { Some(Eol::Lf) } else { eol };
        Some(Lanes {
            router: Router::new(route)?,
            as_is: reader(&chunk_format(table), written_eol),
            text: unquoted.and_then(|format| reader(&format, eol)),
            buffers: route.buffers as usize,
        })
    }

    /// Those of a chunk's buffers that rows are laid out in.
    pub(super) fn take_buffers(&self, scratch: &mut Vec<Buffer>) -> Vec<Buffer> {
        scratch.split_off(scratch.len().saturating_sub(self.buffers))
    }

    /// The rows by leaf. Where that cannot be done, they come back as they were: the server finds their
    /// leaves.
    pub(super) fn lay_out(
        &self,
        bytes: &Bytes,
        faster: Option<Faster>,
        mut buffers: Vec<Buffer>,
        chunk_no: u64,
    ) -> Option<Faster> {
        let faster_or_not =
            || faster.clone().unwrap_or_else(|| Faster::whole(Form::AsIs, vec![bytes.clone()]));
        let Faster { form, mut parcels, .. } = faster_or_not();
        let pieces: Vec<&[u8]> =
            parcels.iter().flat_map(|parcel| &parcel.pieces).map(AsRef::as_ref).collect();
        match self.laid(form, &pieces, &mut buffers) {
            None | Some(Laid::Whole(None)) => faster,
            Some(Laid::Whole(leaf_no)) => {
                parcels.iter_mut().for_each(|parcel| parcel.leaf_no = leaf_no);
                Some(Faster { form, numbered: false, parcels })
            }
            Some(Laid::Lanes(lanes)) => {
                let mut parcels = into_parcels(form, lanes, buffers);
                // Sessions begin with different leaves, so that they meet on them less often.
                let first = chunk_no.checked_rem(parcels.len() as u64).unwrap_or(0);
                parcels.rotate_left(usize::try_from(first).unwrap_or(0));
                Some(Faster { form, numbered: false, parcels })
            }
        }
    }

    fn laid(&self, form: Form, pieces: &[&[u8]], buffers: &mut [Buffer]) -> Option<Laid> {
        let sent = match form {
            Form::Binary => Sent::Binary(pieces),
            Form::AsIs => Sent::Records(pieces.first()?, self.as_is.as_ref()?),
            Form::Text => Sent::Records(pieces.first()?, self.text.as_ref()?),
        };
        let empty = |buffer: &mut Buffer| buffer.truncate(0);
        buffers.iter_mut().for_each(empty);
        let mut room: Vec<&mut [u8]> = buffers.iter_mut().map(Buffer::spare).collect();
        self.router.lay_out(sent, &mut room)
    }
}

/// Each lane's part of the buffers, which are one behind the other, with what COPY's format has around rows.
pub(super) fn into_parcels(form: Form, lanes: Vec<Lane>, buffers: Vec<Buffer>) -> Vec<Parcel> {
    let mut left = lanes.last().map_or(0, |lane| lane.bytes.end);
    let buffer_bytes = buffers.iter().map(Buffer::capacity).next().unwrap_or(1);
    let fill = |mut buffer: Buffer| {
        buffer.advance(left);
        left -= buffer.filled().len();
        buffer.freeze()
    };
    let laid: Vec<Bytes> = buffers.into_iter().map(fill).collect();
    let (before, behind): (&'static [u8], &'static [u8]) = match form {
        Form::Binary => (&HEADER, &TRAILER),
        Form::AsIs | Form::Text => (&[], &[]),
    };
    let parcel = |lane: Lane| {
        let framed = |pieces: Vec<Bytes>| {
            let around = [Bytes::from_static(before)].into_iter().chain(pieces);
            around.chain([Bytes::from_static(behind)]).filter(|piece| !piece.is_empty()).collect()
        };
        Parcel { leaf_no: lane.leaf_no, pieces: framed(cut(&laid, buffer_bytes, lane.bytes)) }
    };
    lanes.into_iter().map(parcel).collect()
}

/// A range of all these bytes, of which each piece but the last is `piece_bytes` long.
fn cut(laid: &[Bytes], piece_bytes: usize, range: Range<usize>) -> Vec<Bytes> {
    let starts = (0..laid.len()).map(|no| no * piece_bytes);
    let part = |(start, piece): (usize, &Bytes)| {
        let (from, to) = (range.start.max(start), range.end.min(start + piece.len()));
        (from < to).then(|| piece.slice(from - start..to - start))
    };
    starts.zip(laid).filter_map(part).collect()
}
