//! Rows as the client has written them in COPY's binary format, to be cut.
//!
//! Source of the format: PostgreSQL documentation, COPY, "Binary Format". Each piece holds whole rows; the
//! first begins with the header, the last ends with the trailer.

use super::seen::Seen;
use bytes::{BufMut, Bytes, BytesMut};
use howdah_model::{CopyChunk, Form};
use std::collections::{BTreeMap, HashMap, HashSet, hash_map};
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::ops::Range;

pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: i16 = -1;
/// The length of NULL, which has no bytes.
const NULL: [u8; 4] = (-1_i32).to_be_bytes();

/// Bytes of the largest piece handed to the connection.
const PIECE_BYTES: usize = 64 << 10;
/// So many bytes of keys are held at a time.
const KEYS_BYTES: usize = 1 << 20;

/// So far ahead of the row that is read its bytes are fetched from memory. Of a load of 4 million rows of 75
/// bytes that took the client 2 s of CPU, finding where they begin took 0.25 s without that, and 0.08 s with
/// it.
const AHEAD_BYTES: usize = 1 << 10;

/// A unique key by the fields of a row.
#[derive(Debug, Clone)]
pub(super) struct UniqueKey {
    pub(super) fields: Vec<usize>,
    /// Two NULLs are the same.
    pub(super) nulls_alike: bool,
}

/// The rows of one chunk.
pub(super) struct Written<'a> {
    pieces: Vec<&'a Bytes>,
    /// Records that are not among them, in order.
    aside: Vec<u64>,
    /// The number of each row's piece, and where it begins in that: 8 bytes for a row, which has 10 at the
    /// least.
    starts: Vec<(u32, u32)>,
    /// Where the rows of each piece end.
    ends: Vec<usize>,
}

/// A row: the number of its record, the number of its piece, and where it stands in that.
type Place = (u64, usize, Range<usize>);

/// A hash needs no hash.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum.rotate_left(8) ^ u64::from(*byte));
    }
}

/// What a record repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeat {
    /// The first record of the chunk with the same key.
    pub(super) first: u64,
    /// Which of the keys it is.
    pub(super) key_no: usize,
}

/// What keys tell of records without a question.
#[derive(Default)]
pub(super) struct Repeats {
    /// Records that repeat another of the chunk.
    pub(super) of: BTreeMap<u64, Repeat>,
    /// Records that may repeat one of a chunk before, in order.
    pub(super) suspects: Vec<u64>,
}

/// Rows of keys.
pub(super) struct Keys {
    pub(super) pieces: Vec<Bytes>,
    pub(super) rows: u64,
    /// The record behind.
    pub(super) next: u64,
}

impl<'a> Written<'a> {
    /// `None` where the rows are not binary, or not as many as there are records that are not set aside.
    pub(super) fn of(chunk: &'a CopyChunk) -> Option<Written<'a>> {
        let faster =
            chunk.faster.as_ref().filter(|faster| faster.form == Form::Binary && !faster.numbered)?;
        let pieces = faster.parcels.iter().flat_map(|parcel| &parcel.pieces).collect();
        let aside: Vec<u64> = chunk.aside.iter().map(|aside| aside.row).collect();
        let rows = usize::try_from(chunk.origin.records).ok()?.checked_sub(aside.len())?;
        let mut written = Written { pieces, aside, starts: Vec::with_capacity(rows), ends: Vec::new() };
        written.find_rows()?;
        (written.starts.len() == rows && rows > 0).then_some(written)
    }

    fn find_rows(&mut self) -> Option<()> {
        for (no, piece) in (0..).zip(&self.pieces) {
            let mut at = if no == 0 { HEADER.len() } else { 0 };
            while let Some(end) = row_end(piece, at) {
                // Where a field ends is known only when its length has come from memory; what is behind must
                // not wait for that.
                black_box(piece.get(end + AHEAD_BYTES).copied());
                self.starts.push((no, u32::try_from(at).ok()?));
                at = end;
            }
            self.ends.push(at);
        }
        Some(())
    }

    /// How many fields a row has.
    pub(super) fn fields(&self) -> usize {
        let (no, range) = self.row(0);
        let count = self.pieces[no][range].first_chunk();
        count.map_or(0, |count| usize::try_from(i16::from_be_bytes(*count)).unwrap_or(0))
    }

    /// From this record on.
    fn each(&self, record: u64) -> impl Iterator<Item = Place> {
        let before = self.aside.partition_point(|of| *of < record);
        let mut aside = self.aside[before..].iter().peekable();
        let records = (record..).filter(move |row| aside.next_if_eq(&row).is_none());
        let rows = (self.row_no(record)..self.starts.len()).map(|row| self.row(row));
        rows.zip(records).map(|((no, range), record)| (record, no, range))
    }

    /// The row of this record, or of the first one behind it that is not set aside.
    fn row_no(&self, record: u64) -> usize {
        let before = self.aside.partition_point(|of| *of < record);
        usize::try_from(record).unwrap_or(usize::MAX).saturating_sub(before)
    }

    fn row(&self, row: usize) -> (usize, Range<usize>) {
        let (no, start) = self.starts[row];
        let end = match self.starts.get(row + 1) {
            Some((next, end)) if *next == no => *end as usize,
            _ => self.ends[no as usize],
        };
        (no as usize, start as usize..end)
    }

    /// Rows of the record's number and these fields, from this record on, as many as are held at a time; and
    /// how many these are. Of all records or only of those that are `chosen`, which are in order.
    pub(super) fn keys(&self, fields: &[usize], record: u64, chosen: Option<&[u64]>) -> Option<Keys> {
        let (mut pieces, mut piece, mut bytes, mut rows) = (Vec::new(), BytesMut::from(HEADER), 0, 0);
        let mut next = record;
        let mut chosen = chosen.map(|of| of[of.partition_point(|of| *of < record)..].iter().peekable());
        for (record, no, range) in self.each(record) {
            if chosen.as_mut().is_some_and(|chosen| chosen.next_if_eq(&&record).is_none()) {
                continue;
            }
            put_keys(&mut piece, record, &self.pieces[no][range], fields)?;
            (rows, next) = (rows + 1, record + 1);
            if piece.len() >= PIECE_BYTES {
                bytes += piece.len();
                pieces.push(piece.split().freeze());
            }
            if bytes >= KEYS_BYTES {
                break;
            }
        }
        piece.put_i16(TRAILER);
        pieces.push(piece.freeze());
        Some(Keys { pieces, rows, next })
    }

    /// Looks for keys that have the very bytes of one before: what is stored from the same bytes is the same
    /// to any index. Values may be equal and not be written alike. `known` are all keys of a row, each with
    /// what was seen of it before.
    pub(super) fn repeats<'k>(&self, known: impl Iterator<Item = (&'k UniqueKey, &'k Seen)>) -> Repeats {
        let mut repeats = Repeats::default();
        for (key_no, (unique, before)) in known.enumerate() {
            self.repeats_of(key_no, unique, before, &mut repeats);
        }
        let Repeats { of, suspects } = &mut repeats;
        suspects.sort_unstable();
        suspects.dedup();
        suspects.retain(|record| !of.contains_key(record));
        repeats
    }

    fn repeats_of(&self, key_no: usize, unique: &UniqueKey, before: &Seen, repeats: &mut Repeats) {
        let mut records = Vec::with_capacity(self.starts.len());
        let (mut hashed, mut hits) = (Vec::with_capacity(self.starts.len()), Vec::new());
        let (mut key, mut other) = (Vec::new(), Vec::new());
        for (record, no, range) in self.each(0) {
            if unique.read(&self.pieces[no][range], &mut key) {
                records.push(record);
                hashed.push(before.hash(&key));
            }
        }
        before.add_all(&hashed, |no| hits.push((records[no], hashed[no])));
        // What was not seen repeats nothing of this chunk either, so that few keys have to be compared.
        let hashes: HashSet<u64, BuildHasherDefault<Hashed>> = hits.iter().map(|(_, hash)| *hash).collect();
        let mut firsts: HashMap<u64, u64, BuildHasherDefault<Hashed>> = HashMap::default();
        let mut hits = hits.into_iter().peekable();
        let keys = records.into_iter().zip(hashed);
        for (record, hash) in keys.filter(|(_, hash)| hashes.contains(hash)) {
            let is_hit = hits.next_if_eq(&(record, hash)).is_some();
            match firsts.entry(hash) {
                // Of two keys with one hash the second is not looked for: COPY will tell.
                hash_map::Entry::Occupied(entry) => {
                    let first = *entry.get();
                    let (row, of_first) = (self.row(self.row_no(record)), self.row(self.row_no(first)));
                    if unique.read(&self.pieces[row.0][row.1], &mut key)
                        && unique.read(&self.pieces[of_first.0][of_first.1], &mut other)
                        && key == other
                    {
                        repeats.of.entry(record).or_insert(Repeat { first, key_no });
                    }
                }
                hash_map::Entry::Vacant(entry) => {
                    entry.insert(record);
                    if is_hit {
                        repeats.suspects.push(record);
                    }
                }
            }
        }
    }

    /// The rows of these records, which are in order.
    pub(super) fn only(&self, records: impl Iterator<Item = u64>) -> Vec<Bytes> {
        let mut records = records.peekable();
        let mut kept = vec![Bytes::from_static(HEADER)];
        let mut last: Option<(usize, Range<usize>)> = None;
        for (record, no, range) in self.each(records.peek().copied().unwrap_or(u64::MAX)) {
            if records.next_if_eq(&record).is_none() {
                if records.peek().is_none() {
                    break;
                }
                continue;
            }
            match &mut last {
                Some((of, kept)) if *of == no && kept.end == range.start => kept.end = range.end,
                _ => {
                    let before = last.replace((no, range));
                    kept.extend(before.map(|(no, range)| self.pieces[no].slice(range)));
                }
            }
        }
        kept.extend(last.map(|(no, range)| self.pieces[no].slice(range)));
        kept.push(Bytes::copy_from_slice(&TRAILER.to_be_bytes()));
        kept
    }
}

impl UniqueKey {
    /// The key of the row that begins here; `false` if it is like no other.
    pub(super) fn read(&self, row: &[u8], key: &mut Vec<u8>) -> bool {
        key.clear();
        let mut no = 0;
        let mut is_whole = true;
        let fields_max = self.fields.iter().max().map_or(0, |last| last + 1);
        let read = read_fields(row, fields_max, |field| {
            if self.fields.contains(&no) {
                is_whole &= self.nulls_alike || field.first_chunk() != Some(&NULL);
                key.extend_from_slice(field);
            }
            no += 1;
        });
        read.is_some() && is_whole
    }
}

fn put_keys(out: &mut BytesMut, record: u64, row: &[u8], fields: &[usize]) -> Option<()> {
    out.put_i16(i16::try_from(fields.len() + 1).ok()?);
    out.put_i32(8);
    out.put_u64(record);
    let (mut wanted, mut no) = (fields.iter().peekable(), 0);
    read_fields(row, usize::MAX, |field| {
        if wanted.next_if_eq(&&no).is_some() {
            out.put_slice(field);
        }
        no += 1;
    })?;
    wanted.next().is_none().then_some(())
}

/// Where the row at `at` ends; `None` if none begins there, or it is cut short.
pub(super) fn row_end(piece: &[u8], at: usize) -> Option<usize> {
    let count = u16::try_from(i16::from_be_bytes(*piece.get(at..)?.first_chunk()?)).ok()?;
    let mut end = at + size_of::<i16>();
    for _ in 0..count {
        let length = i32::from_be_bytes(*piece.get(end..)?.first_chunk()?);
        end += NULL.len() + usize::try_from(length).unwrap_or(0);
    }
    (end <= piece.len()).then_some(end)
}

/// Tells the fields of the row that begins here, so many at most, each with its length before it. `None` at
/// the trailer.
fn read_fields<'a>(row: &'a [u8], fields_max: usize, mut tell: impl FnMut(&'a [u8])) -> Option<()> {
    let (count, mut rest) = row.split_first_chunk()?;
    let count = usize::try_from(i16::from_be_bytes(*count)).ok()?;
    for _ in 0..count.min(fields_max) {
        let length = i32::from_be_bytes(*rest.first_chunk()?);
        let (field, behind) = rest.split_at_checked(4 + usize::try_from(length).unwrap_or(0))?;
        tell(field);
        rest = behind;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::{Aside, Doubt, Faster, Omitted, Origin};
    use std::sync::Arc;

    fn row(fields: &[Option<&str>]) -> Vec<u8> {
        let mut row = (fields.len() as i16).to_be_bytes().to_vec();
        for field in fields {
            row.extend(field.map_or(-1, |field| field.len() as i32).to_be_bytes());
            row.extend(field.unwrap_or_default().as_bytes());
        }
        row
    }

    /// Records 0 to 5, of which 1 and 4 are set aside, in pieces of two rows.
    fn chunk() -> CopyChunk {
        let rows: Vec<Vec<u8>> =
            ["a", "c", "d", "f"].iter().map(|name| row(&[Some(name), None, Some("key of it")])).collect();
        let first = [HEADER, &rows[0], &rows[1]].concat();
        let last = [&rows[2], &rows[3], &TRAILER.to_be_bytes()[..]].concat();
        let origin = Origin {
            file_no: 0,
            chunk_no: 0,
            start_byte: 0,
            end_byte: 60,
            first_record: 1,
            records: 6,
            omitted: Omitted::default(),
            digest: None,
        };
        let aside = [1, 4].map(|row| Aside::new(row, 10..20, Doubt::Unknown)).to_vec();
        let faster = Some(Faster::whole(Form::Binary, vec![first.into(), last.into()]));
        CopyChunk { origin, bytes: Bytes::from(vec![b' '; 60]), faster, refused: None, aside }
    }

    #[test]
    fn rows_are_told_with_the_numbers_of_their_records() {
        let chunk = chunk();
        let written = Written::of(&chunk).unwrap();
        let records = |from| written.each(from).map(|(record, no, _)| (record, no)).collect::<Vec<_>>();
        assert_eq!(records(0), [(0, 0), (2, 0), (3, 1), (5, 1)]);
        assert_eq!((records(1), records(4)), (records(2), vec![(5, 1)]));
        let keys = written.keys(&[1, 2], 2, None).unwrap();
        let place = |place: u64| String::from_utf8(place.to_be_bytes().to_vec()).unwrap();
        let expected: Vec<u8> =
            [2, 3, 5].iter().flat_map(|no| row(&[Some(&place(*no)), None, Some("key of it")])).collect();
        assert_eq!(keys.pieces.concat(), [HEADER, &expected, &TRAILER.to_be_bytes()].concat());
        assert_eq!((keys.rows, keys.next), (3, 6));
        let chosen = written.keys(&[1, 2], 2, Some(&[0, 3])).unwrap();
        let expected = row(&[Some(&place(3)), None, Some("key of it")]);
        assert_eq!(chosen.pieces.concat(), [HEADER, &expected, &TRAILER.to_be_bytes()].concat());
        assert_eq!((chosen.rows, chosen.next), (1, 4));
        assert_eq!(written.keys(&[1], 6, None).unwrap().rows, 0);
        assert!(written.keys(&[3], 0, None).is_none());
    }

    #[test]
    fn rows_are_cut_out_wherever_they_stand() {
        let chunk = chunk();
        let written = Written::of(&chunk).unwrap();
        for chosen in 0_u64..1 << 4 {
            let rows = [(0, "a"), (2, "c"), (3, "d"), (5, "f")];
            let rows = rows.iter().enumerate().filter(|(no, _)| chosen >> no & 1 == 1).map(|(_, row)| row);
            let bytes: Vec<u8> =
                rows.clone().flat_map(|(_, name)| row(&[Some(name), None, Some("key of it")])).collect();
            let only = written.only(rows.map(|(no, _)| *no)).concat();
            assert_eq!(only, [HEADER, &bytes, &TRAILER.to_be_bytes()].concat());
        }
    }

    #[test]
    fn rows_repeat_the_first_that_has_their_key() {
        let rows: [[Option<&str>; 2]; 8] = [
            [Some("1"), Some("a")],
            [Some("1"), Some("b")],
            [Some("2"), Some("b")],
            [Some("3"), Some("b")],
            [None, Some("c")],
            [None, Some("d")],
            [Some(""), None],
            [Some("4"), Some("a")],
        ];
        let bytes: Vec<u8> = rows.iter().flat_map(|fields| row(fields)).collect();
        let mut chunk = chunk();
        (chunk.origin.records, chunk.aside) = (8, Vec::new());
        chunk.faster =
            Some(Faster::whole(Form::Binary, vec![[HEADER, &bytes, &TRAILER.to_be_bytes()].concat().into()]));
        let written = Written::of(&chunk).unwrap();
        let repeats = |fields: &[usize], nulls_alike| -> Vec<(u64, u64)> {
            let (key, seen) =
                (UniqueKey { fields: fields.to_vec(), nulls_alike }, Seen::new(&Arc::default(), 1, 0));
            let first = written.repeats(std::iter::once((&key, &seen)));
            assert!(first.suspects.is_empty(), "a wrong answer among so few is next to impossible");
            // Those that are no repetitions, and not NULL, were all seen the first time.
            let again = written.repeats(std::iter::once((&key, &seen)));
            assert_eq!(again.of, first.of);
            let is_whole =
                |no: u64| nulls_alike || fields.iter().all(|field| rows[no as usize][*field].is_some());
            let expected = (0..8).filter(|no| is_whole(*no) && !first.of.contains_key(no));
            assert_eq!(again.suspects, expected.collect::<Vec<u64>>());
            first.of.into_iter().map(|(record, repeat)| (record, repeat.first)).collect()
        };
        assert_eq!(repeats(&[0], false), [(1, 0)]);
        assert_eq!(repeats(&[0], true), [(1, 0), (5, 4)]);
        assert_eq!(repeats(&[1], false), [(2, 1), (3, 1), (7, 0)]);
        assert_eq!(repeats(&[0, 1], false), []);
        let sent = Arc::default();
        let keys = [0, 1].map(|field| UniqueKey { fields: vec![field], nulls_alike: false });
        let seen = [0, 1].map(|no| Seen::new(&sent, 1, no));
        let of_both = written.repeats(keys.iter().zip(&seen)).of;
        let expected = [(1, 0, 0), (2, 1, 1), (3, 1, 1), (7, 0, 1)];
        assert_eq!(of_both, expected.map(|(of, first, key_no)| (of, Repeat { first, key_no })).into());
    }

    #[test]
    fn what_is_not_as_told_is_not_cut() {
        let mut chunk = chunk();
        chunk.origin.records = 7;
        assert!(Written::of(&chunk).is_none());
        chunk.origin.records = 6;
        let pieces = &mut chunk.faster.as_mut().unwrap().parcels[0].pieces;
        let last = pieces.pop().unwrap();
        pieces.push(last.slice(..last.len() - 5));
        assert!(Written::of(&chunk).is_none());
        chunk.faster = Some(Faster::whole(Form::Text, Vec::new()));
        assert!(Written::of(&chunk).is_none());
    }
}
