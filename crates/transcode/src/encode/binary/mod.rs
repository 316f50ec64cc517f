//! Records as COPY's binary format, which the server reads at far less cost where columns are typed.
//!
//! Whole records of csv or text enter; rows leave with each value in the form that its type's receive
//! function takes (one file a type). Only what the server would read to the very same value under any setting
//! of the session is written; one value that is not certain, one field too few, and the chunk is sent as it
//! is, so that the server decides and its words are those that the user reads.
//!
//! Format: PostgreSQL documentation, COPY, "Binary Format": a signature, and for each row the count of its
//! fields and each field behind its length in bytes, all in network order.

mod array;
mod bit;
mod bytea;
mod date;
mod estimate;
mod fields;
mod float;
mod geometry;
mod integer;
mod interval;
mod network;
mod numeric;
mod out;
mod range;
mod swar;
mod time;
mod timestamp;
mod vector;
mod wkt;
mod words;

use crate::split::{Rules, State, Tail};
pub use estimate::{ColumnEstimate, Estimate};
pub(crate) use fields::Fields;
use howdah_model::{BinaryType, Bounds, ColumnChoice, Eol, Format, FormatKind};
use out::Out;
use std::ops::Range;

/// `PGCOPY\n\377\r\n\0`, no flags, no extension.
pub const HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Instead of a count of fields.
pub const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// `name` holds one byte less, and input cuts what is longer.
const NAME_BYTES: usize = 64;

/// Writes the records of one kind of file into one table's columns.
#[derive(Debug, Clone)]
pub struct BinaryEncoder {
    format: Format,
    eol: Eol,
    /// For each field of a record.
    columns: Vec<BinaryType>,
    /// Of each, where values beyond them are passed over; else empty.
    bounds: Vec<Bounds>,
    count: i16,
    /// Times without a time zone are read in UTC.
    session_is_utc: bool,
}

/// What one buffer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    /// Bytes of the records that are written, from their beginning.
    pub taken: usize,
    /// Bytes of the buffer in use.
    pub length: usize,
    /// There is no more to come: the trailer is written.
    pub is_done: bool,
}

/// A record that was not written: its number, from 0, and where it stands.
pub type PassedOver = (u64, Range<usize>);

/// What one buffer took of records of which some are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// The buffer.
    pub encoded: Encoded,
    /// The number of the record behind the last one, passed over ones included.
    pub rows: u64,
}

impl BinaryEncoder {
    /// For records of this format whose fields are of these types, in a session with this TimeZone. `None`
    /// where the format says what only the server can carry out.
    pub fn new(
        format: &Format,
        eol: Option<Eol>,
        columns: &[BinaryType],
        time_zone: &str,
    ) -> Option<BinaryEncoder> {
        let is_utf8 = format
            .encoding
            .as_deref()
            .is_none_or(|name| ["UTF8", "UTF-8"].iter().any(|utf8| name.eq_ignore_ascii_case(utf8)));
        let bytes = match format.kind {
            FormatKind::Csv => [format.delimiter, format.quote, format.escape],
            FormatKind::Text => [format.delimiter; 3],
        };
        let can = is_utf8
            && format.force_not_null == ColumnChoice::None
            && format.default.is_none()
            && !Rules::embeds_ascii(format)
            && bytes.iter().all(|byte| byte.is_ascii() && !matches!(byte, 0 | b'\n' | b'\r'))
            // Whatever the server refuses, it goes on refusing.
            && !(format.kind == FormatKind::Csv && format.null.as_bytes().contains(&format.quote))
            && !format.null.bytes().any(|byte| byte == format.delimiter || matches!(byte, b'\n' | b'\r'))
            && !(format.kind == FormatKind::Text && format.delimiter.is_ascii_alphanumeric())
            && !(format.kind == FormatKind::Text && matches!(format.delimiter, b'.' | b'\\'));
        let count = i16::try_from(columns.len()).ok().filter(|count| *count > 0 && can)?;
        Some(BinaryEncoder {
            format: format.clone(),
            eol: eol.unwrap_or(Eol::Lf),
            columns: columns.to_vec(),
            bounds: Vec::new(),
            count,
            session_is_utc: is_utc(time_zone),
        })
    }

    /// Values beyond these bounds of the columns are not certain, either.
    #[must_use]
    pub fn within(self, bounds: &[Bounds]) -> BinaryEncoder {
        BinaryEncoder { bounds: bounds.to_vec(), ..self }
    }

    /// Writes as many whole rows as there is room for in `buffer`, from byte `from` of the records on, where
    /// an earlier call left off. `None` where the records cannot be written with certainty, or one of them is
    /// longer than `buffer`.
    pub fn encode(&self, records: &[u8], from: usize, buffer: &mut [u8]) -> Option<Encoded> {
        let room = buffer.len().checked_sub(TRAILER.len())?;
        let mut out = Out::new(buffer.get_mut(..room)?);
        if from == 0 {
            simdutf8::basic::from_utf8(records).ok()?;
            out.put(HEADER)?;
        }
        let mut fields = Fields::new(&self.format, self.eol, records, from);
        let (mut value, first) = (Vec::new(), out.length());
        while !fields.is_at_end() {
            let (taken, length) = (fields.position(), out.length());
            if self.row(&mut fields, &mut value, &mut out).is_none() {
                let goes_on = out.is_full() && length > first;
                return goes_on.then_some(Encoded { taken, length, is_done: false });
            }
        }
        let length = out.length();
        *buffer.get_mut(length..)?.first_chunk_mut()? = TRAILER;
        Some(Encoded { taken: records.len(), length: length + TRAILER.len(), is_done: true })
    }

    /// Like [`BinaryEncoder::encode`], but a record that cannot be written with certainty is passed over:
    /// `aside` is told its number, counted from `row`, and where it stands in the records. `None` where there
    /// is no going on.
    pub fn encode_most(
        &self,
        rules: &Rules,
        records: &[u8],
        (from, mut row): (usize, u64),
        buffer: &mut [u8],
        aside: &mut Vec<PassedOver>,
    ) -> Option<Most> {
        let room = buffer.len().checked_sub(TRAILER.len())?;
        let mut out = Out::new(buffer.get_mut(..room)?);
        if from == 0 {
            out.put(HEADER)?;
        }
        let broken_bytes = !is_storable(records.get(from..)?);
        let mut fields = Fields::new(&self.format, self.eol, records, from);
        let (mut value, first) = (Vec::new(), out.length());
        while !fields.is_at_end() {
            let (start, length) = (fields.position(), out.length());
            let written = self.row(&mut fields, &mut value, &mut out).is_some();
            if !written && out.is_full() {
                let encoded = Encoded { taken: start, length, is_done: false };
                return (length > first).then_some(Most { encoded, rows: row });
            }
            if !written || (broken_bytes && !is_storable(&records[start..fields.position()])) {
                out.truncate(length);
                let end = match rules.tail(State::START, &records[start..]) {
                    Tail::Border(end) => start + end,
                    Tail::Unfinished(_) => records.len(),
                    Tail::EndMarker(_) => return None,
                };
                aside.push((row, start..end));
                fields = Fields::new(&self.format, self.eol, records, end);
            }
            row += 1;
        }
        let length = out.length();
        *buffer.get_mut(length..)?.first_chunk_mut()? = TRAILER;
        let encoded = Encoded { taken: records.len(), length: length + TRAILER.len(), is_done: true };
        Some(Most { encoded, rows: row })
    }

    /// Timestamps without an offset are in UTC.
    pub(crate) fn session_is_utc(&self) -> bool {
        self.session_is_utc
    }

    /// The columns' types, in the order of the fields.
    pub(crate) fn columns(&self) -> &[BinaryType] {
        &self.columns
    }

    /// The bounds of their values, where there are any.
    pub(crate) fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    /// The fields of whole records, from the beginning of one.
    pub(crate) fn fields<'a>(&'a self, records: &'a [u8], from: usize) -> Fields<'a> {
        Fields::new(&self.format, self.eol, records, from)
    }

    /// Appends a value, without its length; `None` where only the server can read it, or where it is long and
    /// no text.
    pub(crate) fn write_value(&self, column: &BinaryType, value: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
        const LENGTH_BYTES: usize = 4;
        if *column == BinaryType::Text {
            bytes.extend_from_slice(value);
            return Some(());
        }
        let mut buffer = [0; 256];
        let mut out = Out::new(&mut buffer);
        self.value(column, value, &mut out)?;
        bytes.extend_from_slice(out.since(LENGTH_BYTES)?);
        Some(())
    }

    #[inline]
    fn row(&self, fields: &mut Fields, value: &mut Vec<u8>, out: &mut Out) -> Option<()> {
        if fields.may_be_marker() {
            return None;
        }
        out.put(self.count.to_be_bytes())?;
        let (mut columns, mut bounds) = (self.columns.iter(), self.bounds.iter());
        loop {
            let column = columns.next()?;
            let field = fields.next(value)?;
            if bounds.next().is_some_and(|bounds| !bounds.may_hold(field.value)) {
                return None;
            }
            match field.value {
                Some(value) => self.value(column, value, out)?,
                None => out.null()?,
            }
            if field.ends_record {
                return columns.next().is_none().then_some(());
            }
        }
    }

    /// Writes a value behind its length. Part of [`BinaryEncoder::row`] like the cutting of fields: calls,
    /// and the registers that they save, took a fifth of all instructions (callgrind, lineitem: 1,780 million
    /// for 67 MB, so 1,580).
    #[inline(always)]
    fn value(&self, column: &BinaryType, value: &[u8], out: &mut Out) -> Option<()> {
        match column {
            BinaryType::Text => out.sized(|out| out.extend(value)),
            BinaryType::Int4 => out.fixed(i32::try_from(integer::parse(value)?).ok()?.to_be_bytes()),
            BinaryType::Int8 => out.fixed(integer::parse(value)?.to_be_bytes()),
            BinaryType::Int2 => out.fixed(i16::try_from(integer::parse(value)?).ok()?.to_be_bytes()),
            BinaryType::Numeric => numeric::write_sized(value, out),
            BinaryType::Date => out.fixed(date::parse(value)?.to_be_bytes()),
            BinaryType::Timestamp => out.fixed(timestamp::parse(value)?.to_be_bytes()),
            BinaryType::TimestampTz => {
                out.fixed(timestamp::parse_in_utc(value, self.session_is_utc)?.to_be_bytes())
            }
            _ => self.other(column, value, out),
        }
    }

    /// The same for types that are less frequent: what is in one function with the others costs these, too.
    #[inline(never)]
    fn other(&self, column: &BinaryType, value: &[u8], out: &mut Out) -> Option<()> {
        match column {
            BinaryType::Text
            | BinaryType::Int2
            | BinaryType::Int4
            | BinaryType::Int8
            | BinaryType::Numeric
            | BinaryType::Date
            | BinaryType::Timestamp
            | BinaryType::TimestampTz => self.value(column, value, out),
            BinaryType::Float8 => out.fixed(float::parse_8(value)?.to_be_bytes()),
            BinaryType::Float4 => out.fixed(float::parse_4(value)?.to_be_bytes()),
            BinaryType::Bool => out.fixed([u8::from(words::boolean(value)?)]),
            BinaryType::Time => out.fixed(time::parse(value)?.to_be_bytes()),
            BinaryType::TimeTz => {
                let (time, east) = time::parse_with_offset(value)?;
                out.sized(|out| {
                    out.put(time.to_be_bytes())?;
                    out.put((-east).to_be_bytes())
                })
            }
            BinaryType::Uuid => out.fixed(words::uuid(value)?),
            BinaryType::Jsonb => out.sized(|out| {
                // The version of the format.
                out.put([1])?;
                out.extend(value)
            }),
            BinaryType::Oid => out.fixed(integer::oid(value)?.to_be_bytes()),
            BinaryType::Char => out.fixed(words::char(value)?),
            BinaryType::Name if value.len() < NAME_BYTES => out.sized(|out| out.extend(value)),
            BinaryType::Name => None,
            BinaryType::Bytea => out.sized(|out| bytea::write(value, out)),
            BinaryType::Interval => {
                let interval = interval::parse(value)?;
                out.sized(|out| {
                    out.put(interval.microseconds.to_be_bytes())?;
                    out.put(interval.days.to_be_bytes())?;
                    out.put(interval.months.to_be_bytes())
                })
            }
            BinaryType::Inet => out.sized(|out| network::write(value, false, out)),
            BinaryType::Cidr => out.sized(|out| network::write(value, true, out)),
            BinaryType::Macaddr => out.fixed(network::hardware_6(value)?),
            BinaryType::Macaddr8 => out.fixed(network::hardware_8(value)?),
            BinaryType::Bit => out.sized(|out| bit::write(value, out)),
            BinaryType::Array { element_oid, element } => out.sized(|out| {
                let elements = array::Elements { oid: *element_oid, delimiter: element_delimiter(element) };
                array::write(value, elements, out, |value, out| self.value(element, value, out))
            }),
            BinaryType::Range { bound } => {
                out.sized(|out| range::write(value, out, |value, out| self.value(bound, value, out)))
            }
            BinaryType::Vector => out.sized(|out| vector::write(value, out)),
            BinaryType::Geometry => out.sized(|out| geometry::write(value, out)),
        }
    }
}

/// `pg_type.typdelim`; domains have that of their type. Of all types that are written here PostGIS's alone
/// have another one.
fn element_delimiter(element: &BinaryType) -> u8 {
    if *element == BinaryType::Geometry { b':' } else { b',' }
}

/// Characters of UTF-8 that the server can store.
pub(crate) fn is_storable(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok() && memchr::memchr(0, bytes).is_none()
}

/// The names under which a session may have UTC.
fn is_utc(time_zone: &str) -> bool {
    const NAMES: [&str; 6] = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Zulu"];
    NAMES.iter().any(|name| name.eq_ignore_ascii_case(time_zone))
}

#[cfg(test)]
mod tests;
