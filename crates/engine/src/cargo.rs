//! What a session takes from the queue at a time: a chunk, or those of several small files that one
//! transaction may take.

use bytes::Bytes;
use howdah_model::{CopyChunk, Error, Faster, Form, Omitted, Origin};
use howdah_transcode::encode::{HEADER, TRAILER};
use howdah_transcode::split::Rules;

pub(crate) struct Cargo {
    /// In the order of the files, each as it can be stored by itself. Never none.
    pub(crate) chunks: Vec<CopyChunk>,
    rows: Option<Rows>,
    /// Why the server has refused the only one, among others.
    refused: Option<Error>,
}

/// The rows of several chunks as one COPY takes them.
pub(crate) struct Rows {
    pub(crate) form: Form,
    /// Their sequence's values are among them.
    pub(crate) numbered: bool,
    /// Without what the binary format has around them.
    pub(crate) bytes: Bytes,
    /// Where those of each chunk end in `bytes`.
    pub(crate) ends: Vec<usize>,
}

impl Cargo {
    pub(crate) fn one(chunk: CopyChunk) -> Cargo {
        Cargo { chunks: vec![chunk], rows: None, refused: None }
    }

    /// Chunks with their rows; one that is alone takes these for its own.
    pub(crate) fn together(mut chunks: Vec<CopyChunk>, rows: Rows) -> Cargo {
        match chunks.as_mut_slice() {
            [only] => {
                let is_as_it_is = rows.form == Form::AsIs && !rows.numbered;
                only.faster = (!is_as_it_is).then(|| rows.faster());
                Cargo { chunks, rows: None, refused: None }
            }
            _ => Cargo { chunks, rows: Some(rows), refused: None },
        }
    }

    /// The chunk that came by itself, and why the server has refused it among others, if it has.
    pub(crate) fn only(mut self) -> Option<(CopyChunk, Option<Error>)> {
        self.chunks.pop().map(|chunk| (chunk, self.refused))
    }

    /// All rows as one chunk, where several came together: as many records and bytes as these have, under the
    /// numbers of the first.
    pub(crate) fn as_one(&self) -> Option<CopyChunk> {
        let faster = self.rows.as_ref()?.faster();
        let origin = sum(&self.chunks);
        Some(CopyChunk {
            origin,
            bytes: Bytes::new(),
            faster: Some(faster),
            refused: None,
            aside: Vec::new(),
        })
    }

    /// The first half of the chunks and the others; of a chunk that came by itself there are no others.
    pub(crate) fn halves(self) -> (Cargo, Option<Cargo>) {
        let middle = self.chunks.len() / 2;
        self.split(middle)
    }

    /// So many chunks from the beginning, at least one and not all, and the others, each with its rows.
    pub(crate) fn split(mut self, middle: usize) -> (Cargo, Option<Cargo>) {
        let Some(Rows { form, numbered, bytes, mut ends }) = self.rows.take() else { return (self, None) };
        let behind = (self.chunks.split_off(middle), ends.split_off(middle));
        let border = ends.last().copied().unwrap_or_default();
        let first = Rows { form, numbered, bytes: bytes.slice(..border), ends };
        let ends = behind.1.into_iter().map(|end| end - border).collect();
        let second = Rows { form, numbered, bytes: bytes.slice(border..), ends };
        (Cargo::together(self.chunks, first), Some(Cargo::together(behind.0, second)))
    }

    /// The chunks before the one with this number, counted from 0, that one, which was refused, and those
    /// behind it.
    pub(crate) fn around(self, no: usize, refused: Error) -> impl DoubleEndedIterator<Item = Cargo> {
        let (before, rest) = match no {
            0 => (None, Some(self)),
            _ => {
                let (before, rest) = self.split(no);
                (Some(before), rest)
            }
        };
        let (one, behind) = rest.map_or((None, None), |rest| {
            let (one, behind) = rest.split(1);
            (Some(Cargo { refused: Some(refused), ..one }), behind)
        });
        [before, one, behind].into_iter().flatten()
    }

    /// Which of the chunks, counted from 0, has the record that the server means by this line of their rows.
    /// `rules` tell where records end in rows as they are.
    pub(crate) fn chunk_of_line(&self, line: u64, rules: Option<&Rules>) -> Option<usize> {
        let rows = self.rows.as_ref()?;
        let row = match (rows.form, rules) {
            (Form::AsIs, Some(rules)) => rules.record_of_line(&rows.bytes, line)?,
            // A record a line.
            (Form::AsIs, None) | (Form::Text | Form::Binary, _) => line.checked_sub(1)?,
        };
        let mut end = 0;
        self.chunks.iter().position(|chunk| {
            end += chunk.origin.records;
            row < end
        })
    }

    /// A cargo for each key that chunks have, with the rows of these; in the order of their first chunks.
    pub(crate) fn by_key<K: PartialEq>(self, key: impl Fn(&CopyChunk) -> K) -> Vec<Cargo> {
        let keys: Vec<K> = self.chunks.iter().map(key).collect();
        let Some(rows) = self.rows.as_ref().filter(|_| keys.iter().any(|key| *key != keys[0])) else {
            return vec![self];
        };
        let (mut parts, mut keys_of_parts, mut start) = (Vec::new(), Vec::new(), 0);
        for ((key, chunk), end) in keys.into_iter().zip(self.chunks).zip(&rows.ends) {
            let no = keys_of_parts.iter().position(|of_part| *of_part == key).unwrap_or(parts.len());
            if no == parts.len() {
                keys_of_parts.push(key);
                parts.push((Vec::new(), Vec::new(), Vec::new()));
            }
            let (chunks, bytes, ends) = &mut parts[no];
            chunks.push(chunk);
            bytes.extend_from_slice(&rows.bytes[start..*end]);
            ends.push(bytes.len());
            start = *end;
        }
        let Rows { form, numbered, .. } = *rows;
        let part = |(chunks, bytes, ends): (_, Vec<u8>, _)| {
            Cargo::together(chunks, Rows { form, numbered, bytes: bytes.into(), ends })
        };
        parts.into_iter().map(part).collect()
    }
}

impl Rows {
    fn faster(&self) -> Faster {
        let rows = self.bytes.clone();
        let pieces = match self.form {
            Form::Binary => vec![Bytes::from_static(&HEADER), rows, Bytes::from_static(&TRAILER)],
            Form::AsIs | Form::Text => vec![rows],
        };
        Faster { numbered: self.numbered, ..Faster::whole(self.form, pieces) }
    }
}

fn sum(chunks: &[CopyChunk]) -> Origin {
    let mut origins = chunks.iter().map(|chunk| chunk.origin);
    let first = origins.next();
    let nothing = Origin {
        file_no: first.map_or(0, |first| first.file_no),
        chunk_no: first.map_or(0, |first| first.chunk_no),
        start_byte: 0,
        end_byte: 0,
        first_record: 1,
        records: 0,
        omitted: Omitted::default(),
        digest: None,
    };
    first.into_iter().chain(origins).fold(nothing, |sum, origin| Origin {
        end_byte: sum.end_byte + (origin.end_byte - origin.start_byte),
        records: sum.records + origin.records,
        ..sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::ErrorKind;

    fn chunk(file_no: u32) -> CopyChunk {
        let origin = Origin {
            file_no,
            chunk_no: 0,
            start_byte: 3,
            end_byte: 5,
            first_record: 1,
            records: 1,
            omitted: Omitted::default(),
            digest: None,
        };
        CopyChunk { origin, bytes: "1\n".into(), faster: None, refused: None, aside: Vec::new() }
    }

    /// The rows of what is sent at a time, until each chunk is alone.
    fn sent(cargo: Cargo, out: &mut Vec<(usize, Vec<u8>)>) {
        let whole = cargo.as_one();
        let faster = whole.as_ref().or_else(|| cargo.chunks.first()).and_then(|chunk| chunk.faster.as_ref());
        let bytes = faster.map(|faster| faster.parcels[0].pieces.concat()).unwrap_or_default();
        out.push((cargo.chunks.len(), bytes));
        if let (first, Some(second)) = cargo.halves() {
            sent(first, out);
            sent(second, out);
        }
    }

    #[test]
    fn halves_have_the_rows_of_their_chunks() {
        let rows =
            || Rows { form: Form::Binary, numbered: false, bytes: "abbccc".into(), ends: vec![1, 3, 6] };
        let framed = |rows: &[u8]| [&HEADER[..], rows, &TRAILER].concat();
        let mut tries = Vec::new();
        sent(Cargo::together((0..3).map(chunk).collect(), rows()), &mut tries);
        let expected = [(3, "abbccc"), (1, "a"), (2, "bbccc"), (1, "bb"), (1, "ccc")];
        assert_eq!(tries, expected.map(|(chunks, rows)| (chunks, framed(rows.as_bytes()))));
        let whole = Cargo::together((0..3).map(chunk).collect(), rows());
        assert_eq!([1, 3, 4].map(|line| whole.chunk_of_line(line, None)), [Some(0), Some(2), None]);
        let mut around = Vec::new();
        for part in whole.around(1, Error::new(ErrorKind::Server, "refused")) {
            assert_eq!(part.refused.is_some(), part.chunks[0].origin.file_no == 1);
            sent(part, &mut around);
        }
        let expected = [(1, "a"), (1, "bb"), (1, "ccc")];
        assert_eq!(around, expected.map(|(chunks, rows)| (chunks, framed(rows.as_bytes()))));
        let odd = Cargo::together((0..3).map(chunk).collect(), rows());
        let mut by_key = Vec::new();
        odd.by_key(|chunk| chunk.origin.file_no % 2).into_iter().for_each(|part| sent(part, &mut by_key));
        let expected = [(2, "accc"), (1, "a"), (1, "ccc"), (1, "bb")];
        assert_eq!(by_key, expected.map(|(chunks, rows)| (chunks, framed(rows.as_bytes()))));
        let as_they_are = Rows { form: Form::AsIs, ..rows() };
        let (first, second) = Cargo::together((0..2).map(chunk).collect(), as_they_are).halves();
        assert!(first.chunks[0].faster.is_none() && second.is_some_and(|cargo| cargo.as_one().is_none()));
    }
}
