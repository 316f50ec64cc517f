//! The rows of a chunk as they are sent, one by one: how long each is, and the values that tell its
//! partition.

use crate::encode::{BinaryEncoder, HEADER};
use crate::header::FIELDS_MAX;
use howdah_model::BinaryType;

/// The values of a row that tell its partition, in binary form.
#[derive(Debug, Default)]
pub(crate) struct Values {
    bytes: Vec<u8>,
    /// Where each stands; `None` is NULL.
    places: Vec<Option<(usize, usize)>>,
    /// One of them is known to the server alone.
    uncertain: bool,
}

impl Values {
    fn start_row(&mut self, count: usize) {
        self.bytes.clear();
        self.places.clear();
        self.places.resize(count, None);
        self.uncertain = false;
    }

    fn put(&mut self, value_no: usize, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<()> {
        let from = self.bytes.len();
        self.uncertain |= write(&mut self.bytes).is_none();
        *self.places.get_mut(value_no)? = Some((from, self.bytes.len()));
        Some(())
    }

    /// `Some(None)` is NULL; `None` is not known.
    pub(crate) fn get(&self, value_no: usize) -> Option<Option<&[u8]>> {
        match self.places.get(value_no).filter(|_| !self.uncertain)? {
            Some((from, to)) => Some(Some(self.bytes.get(*from..*to)?)),
            None => Some(None),
        }
    }
}

/// The fields whose values are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// For each field which value it is, up to the last one that is wanted.
    fields: Vec<Option<usize>>,
    types: Vec<BinaryType>,
}

impl Wanted {
    /// The number of this field's value.
    pub(crate) fn value_no(&self, field_no: u32) -> Option<usize> {
        *self.fields.get(field_no as usize)?
    }

    /// How a value is written.
    pub(crate) fn binary(&self, value_no: usize) -> Option<&BinaryType> {
        self.types.get(value_no)
    }

    /// A field that no file has is not wanted: such a number comes from a ledger that somebody has written
    /// to.
    pub(crate) fn add(&mut self, field_no: u32, binary: &BinaryType) {
        let field_no = field_no as usize;
        if field_no >= FIELDS_MAX {
            return;
        }
        if self.fields.len() <= field_no {
            self.fields.resize(field_no + 1, None);
        }
        if let Some(value_no @ None) = self.fields.get_mut(field_no) {
            *value_no = Some(self.types.len());
            self.types.push(binary.clone());
        }
    }
}

/// Tells the values and the length of each row of a piece in COPY's binary format; `None` if it is cut short.
pub(crate) fn of_binary(
    piece: &[u8],
    wanted: &Wanted,
    values: &mut Values,
    mut tell: impl FnMut(&Values, usize),
) -> Option<()> {
    let mut rest = piece;
    while let Some((count, mut row)) = rest.split_first_chunk() {
        let Ok(count) = usize::try_from(i16::from_be_bytes(*count)) else { return Some(()) };
        values.start_row(wanted.types.len());
        for field_no in 0..count {
            let (length, behind) = row.split_first_chunk()?;
            row = behind;
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else { continue };
            let (value, behind) = row.split_at_checked(length)?;
            row = behind;
            if let Some(Some(value_no)) = wanted.fields.get(field_no) {
                values.put(*value_no, |bytes| {
                    bytes.extend_from_slice(value);
                    Some(())
                })?;
            }
        }
        tell(values, rest.len() - row.len());
        rest = row;
    }
    rest.is_empty().then_some(())
}

/// Where the rows of the first piece in COPY's binary format begin.
pub(crate) const BINARY_START: usize = HEADER.len();

/// Tells the values and the length of each record, which are written as `reader` is told; `None` if one of
/// them cannot be read with certainty.
pub(crate) fn of_records(
    records: &[u8],
    reader: &BinaryEncoder,
    wanted: &Wanted,
    values: &mut Values,
    mut tell: impl FnMut(&Values, usize),
) -> Option<()> {
    let (mut fields, mut written) = (reader.fields(records, 0), Vec::new());
    while !fields.is_at_end() {
        let start = fields.position();
        if fields.may_be_marker() {
            return None;
        }
        values.start_row(wanted.types.len());
        for field_no in 0.. {
            let field = fields.next(&mut written)?;
            if let Some(Some(value_no)) = wanted.fields.get(field_no)
                && let Some(text) = field.value
            {
                let binary = wanted.types.get(*value_no)?;
                values.put(*value_no, |bytes| reader.write_value(binary, text, bytes))?;
            }
            if field.ends_record {
                // Of a record that is too short the server has to say so.
                values.uncertain |= field_no + 1 < wanted.fields.len();
                break;
            }
        }
        tell(values, fields.position() - start);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_number_out_of_a_forged_plan_takes_no_memory() {
        let mut wanted = Wanted::default();
        wanted.add(u32::MAX, &BinaryType::Text);
        wanted.add(3, &BinaryType::Text);
        assert_eq!((wanted.value_no(u32::MAX), wanted.value_no(3)), (None, Some(0)));
        assert_eq!(wanted.fields.len(), 4);
    }
}
