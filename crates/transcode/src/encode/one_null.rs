//! Records in which NULL has several spellings, with one for all of them, which COPY can be told.
//!
//! Whole records enter, in a dialect of which COPY has words for all else; the same records leave, in place
//! and no longer than they were. They have more than one field: of an empty one nothing is left where the
//! last record has no line ending. What has a quote is no spelling of NULL, and nor is a spelling in the
//! fields that it is a value in.

use crate::split::block::{BLOCK_BYTES, positions_of_any};
use howdah_model::{Dialect, Eol, FormatKind};

/// Spells NULL in one way.
#[derive(Debug, Clone)]
pub struct OneNull {
    delimiter: u8,
    /// What makes a field more than its bytes: the quote of csv, the backslash of text.
    of_kind: u8,
    escape: u8,
    kind: FormatKind,
    eol: Eol,
    /// What the others become; none of them is shorter.
    null: Vec<u8>,
    /// The others, and the fields in which each is a value.
    others: Vec<(Vec<u8>, Vec<usize>)>,
    /// Bit `n`: one of them has so many bytes; the last bit: so many or more.
    lengths: u64,
}

impl OneNull {
    /// For records in this dialect. `None` where COPY can be told all of it, or has no words for more than
    /// NULL.
    pub fn new(dialect: &Dialect) -> Option<OneNull> {
        let format = dialect.to_format_but_null()?;
        let kept = |null: &String| dialect.kept.get(null).cloned().unwrap_or_default();
        let others = dialect.nulls.iter().filter(|null| **null != format.null);
        let others: Vec<_> = others.map(|null| (null.as_bytes().to_vec(), kept(null))).collect();
        Some(OneNull {
            delimiter: format.delimiter,
            of_kind: if format.kind == FormatKind::Csv { format.quote } else { b'\\' },
            escape: format.escape,
            kind: format.kind,
            eol: dialect.eol?,
            null: format.null.into_bytes(),
            lengths: others.iter().fold(0, |lengths, (null, _)| lengths | 1 << null.len().min(63)),
            others,
        })
    }

    /// Spells NULL in one way in all of `records`, of which this many bytes are left.
    pub fn respell(&self, records: &mut [u8]) -> usize {
        let mut signs = Signs::new([b'\n', b'\r', self.delimiter, self.of_kind], records);
        let (mut start, mut field_no) = (0, 0);
        // What stands before these has been moved; where it was moved to.
        let (mut moved, mut length) = (0, 0);
        while start < records.len() {
            let (stop, is_plain) = self.field_end(&mut signs, records);
            if is_plain && self.is_other(&records[start..stop], field_no) {
                length = shift(records, moved, start, length);
                records[length..length + self.null.len()].copy_from_slice(&self.null);
                (moved, length) = (stop, length + self.null.len());
            }
            let Some(border) = records.get(stop) else { break };
            (start, field_no) =
                if *border == self.delimiter { (stop + 1, field_no + 1) } else { (stop + 1, 0) };
            if self.eol == Eol::CrLf && field_no == 0 {
                start += 1;
                signs.seek(start, records);
            }
        }
        shift(records, moved, records.len(), length)
    }

    #[inline]
    fn is_other(&self, field: &[u8], no: usize) -> bool {
        self.lengths >> field.len().min(63) & 1 == 1
            && self.others.iter().any(|(null, kept)| null == field && !kept.contains(&no))
    }

    /// Where the next delimiter or line ending is, or the end, and whether no quote stands before it.
    #[inline]
    fn field_end(&self, signs: &mut Signs, records: &[u8]) -> (usize, bool) {
        let mut is_plain = true;
        loop {
            let at = signs.next(records);
            let Some(byte) = records.get(at).copied() else { return (at, is_plain) };
            if byte == self.of_kind {
                let behind = match self.kind {
                    FormatKind::Csv => self.behind_quotes(records, at + 1),
                    // COPY drops the last byte of the data.
                    FormatKind::Text if at + 1 == records.len() => return (at, is_plain),
                    FormatKind::Text => at + 2,
                };
                is_plain &= self.kind == FormatKind::Text;
                signs.seek(behind, records);
            } else if byte == self.delimiter || self.ends_record(byte, records.get(at + 1)) {
                return (at, is_plain);
            }
        }
    }

    #[inline]
    fn ends_record(&self, byte: u8, next: Option<&u8>) -> bool {
        match self.eol {
            Eol::Lf => byte == b'\n',
            Eol::Cr => byte == b'\r',
            Eol::CrLf => byte == b'\r' && next == Some(&b'\n'),
        }
    }

    /// Behind the quote that closes; the end where there is none.
    fn behind_quotes(&self, records: &[u8], mut at: usize) -> usize {
        let (quote, escape) = (self.of_kind, self.escape);
        while let Some(found) = records.get(at..).and_then(|rest| memchr::memchr2(quote, escape, rest)) {
            at += found + 1;
            match (records.get(at), records[at - 1] == escape) {
                (Some(next), true) if *next == escape || *next == quote => at += 1,
                _ if records[at - 1] == quote => return at,
                _ => {}
            }
        }
        records.len()
    }
}

/// Moves the bytes from `from` to `to` down to `length`; the end of what was moved.
fn shift(records: &mut [u8], from: usize, to: usize, length: usize) -> usize {
    if from != length {
        records.copy_within(from..to, length);
    }
    length + to - from
}

/// Bytes that mean something to records, one behind the other. What stands before the last one may be written
/// over.
struct Signs {
    signs: [u8; 4],
    /// The first byte of the block that `found` is about.
    block: usize,
    /// Those in the block that are not yet passed.
    found: u64,
}

impl Signs {
    fn new(signs: [u8; 4], bytes: &[u8]) -> Signs {
        let mut new = Signs { signs, block: 0, found: 0 };
        new.load(bytes);
        new
    }

    /// Passes the next one and says where it is; behind the last one, the end.
    #[inline]
    fn next(&mut self, bytes: &[u8]) -> usize {
        while self.found == 0 {
            self.block += BLOCK_BYTES;
            if self.block >= bytes.len() {
                return bytes.len();
            }
            self.load(bytes);
        }
        let at = self.block + self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        at
    }

    /// Goes on from `at`, which is not passed yet.
    fn seek(&mut self, at: usize, bytes: &[u8]) {
        if at >= self.block + BLOCK_BYTES {
            self.block = at - at % BLOCK_BYTES;
            self.load(bytes);
        }
        self.found &= u64::MAX << (at - self.block);
    }

    #[inline]
    fn load(&mut self, bytes: &[u8]) {
        let rest = bytes.get(self.block..).unwrap_or_default();
        self.found = match rest.first_chunk() {
            Some(block) => positions_of_any(block, self.signs),
            None => {
                let mut block = [0; BLOCK_BYTES];
                block[..rest.len()].copy_from_slice(rest);
                positions_of_any(&block, self.signs) & !(u64::MAX << rest.len())
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{Cells, Next, Record};
    use howdah_model::Escape;

    fn dialect(nulls: &[&str]) -> Dialect {
        Dialect { nulls: nulls.iter().map(|null| (*null).to_owned()).collect(), ..Dialect::csv() }
    }

    fn respelled(dialect: &Dialect, records: &str) -> String {
        let mut bytes = records.as_bytes().to_vec();
        let length = OneNull::new(dialect).unwrap().respell(&mut bytes);
        bytes.truncate(length);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_spelling_becomes_the_shortest_one_outside_quotes() {
        let of = dialect(&["NA", "", "n/a"]);
        assert_eq!(respelled(&of, "NA,1,n/a\n\"NA\",NAN,\nx\"\"NA,NA,NA"), ",1,\n\"NA\",NAN,\nx\"\"NA,,");
        assert_eq!(respelled(&of, "\"a\nNA,\"\"\",NA\n"), "\"a\nNA,\"\"\",\n");
        assert_eq!(respelled(&of, "NA\nNA"), "\n");
        assert_eq!(respelled(&of, ""), "");
        assert_eq!(respelled(&dialect(&["null", "NA"]), "null,NA,\n"), "NA,NA,\n");
    }

    #[test]
    fn a_spelling_is_a_value_in_the_fields_that_keep_it() {
        let of = Dialect { kept: [("NA".to_owned(), vec![1])].into(), ..dialect(&["", "NA"]) };
        assert_eq!(respelled(&of, "NA,NA,NA\nNA,NA,NA\n"), ",NA,\n,NA,\n");
    }

    #[test]
    fn records_end_as_the_file_says() {
        let of = Dialect { eol: Some(Eol::CrLf), ..dialect(&["", "NA"]) };
        assert_eq!(respelled(&of, "NA,NA\r\nNA,1\r\n1,NA"), ",\r\n,1\r\n1,");
        let of = Dialect { eol: Some(Eol::Cr), ..dialect(&["", "NA"]) };
        assert_eq!(respelled(&of, "NA,NA\rNA,1\r"), ",\r,1\r");
    }

    #[test]
    fn backslashes_hide_quotes_and_delimiters() {
        let of = Dialect { escape: Escape::Backslash, ..dialect(&["", "NA"]) };
        assert_eq!(respelled(&of, "\"a\\\",NA,\",NA\n"), "\"a\\\",NA,\",\n");
        let of = Dialect {
            delimiter: "\t".to_owned(),
            quote: None,
            escape: Escape::Backslash,
            ..dialect(&["\\N", "NA"])
        };
        assert_eq!(respelled(&of, "NA\ta\\\tNA\t\\NA\tNA\n"), "\\N\ta\\\tNA\t\\NA\t\\N\n");
    }

    #[test]
    fn what_copy_can_be_told_and_what_would_grow_has_none() {
        for nulls in [&[""][..], &[], &["NA"], &["\\.", ""], &["a,b", ""], &["\"", ""]] {
            assert!(OneNull::new(&dialect(nulls)).is_none(), "{nulls:?}");
        }
        let kept = Dialect { kept: [(String::new(), vec![1])].into(), ..dialect(&["", "NA"]) };
        assert!(OneNull::new(&kept).is_none());
        assert!(OneNull::new(&Dialect { trim: true, ..dialect(&["", "NA"]) }).is_none());
    }

    /// Cut at any place into blocks.
    #[test]
    fn fields_are_found_wherever_blocks_begin() {
        let of = dialect(&["", "NA"]);
        for length in 0..200 {
            let text = "x".repeat(length);
            let records = format!("{text},NA,\"{text},NA\",NA\nNA,{text}\n");
            assert_eq!(respelled(&of, &records), format!("{text},,\"{text},NA\",\n,{text}\n"), "{length}");
        }
    }

    /// By the reader that types are found with and records are looked at, which knows all spellings.
    #[test]
    fn values_and_nulls_of_random_records_stay() {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut compared = 0;
        for _ in 0..4000 {
            let (quote, escape) = [
                (Some(b'"'), Escape::Doubled),
                (Some(b'"'), Escape::Backslash),
                (None, Escape::Backslash),
                (None, Escape::None),
            ][rng.usize(..4)];
            let eol = [Eol::Lf, Eol::Cr, Eol::CrLf][rng.usize(..3)];
            let kept = [("NA".to_owned(), vec![1]), ("-".to_owned(), vec![0, 2])].into();
            let nulls = ["NA", "-", ""].map(str::to_owned).to_vec();
            let of = Dialect { quote, escape, eol: Some(eol), nulls, kept, ..Dialect::csv() };
            let end = ["\n", "\r", "\r\n"]
                [[Eol::Lf, Eol::Cr, Eol::CrLf].iter().position(|one| *one == eol).unwrap()];
            let pieces = [
                ",",
                ",",
                end,
                "NA",
                "-",
                "\"",
                "\"NA\"",
                "\"-,\"",
                "\\",
                "x",
                "\"\"",
                "long words in a row ",
            ];
            let records: String = (0..rng.usize(..60)).map(|_| pieces[rng.usize(..pieces.len())]).collect();
            let Some(before) = read(&of, records.as_bytes()) else { continue };
            if before.last().is_some_and(|record| record.len() == 1) {
                continue;
            }
            let mut bytes = records.clone().into_bytes();
            let length = OneNull::new(&of).unwrap().respell(&mut bytes);
            let one = Dialect { nulls: vec![String::new()], kept: Default::default(), ..of.clone() };
            assert_eq!(read(&one, &bytes[..length]), Some(before), "{of:?} {records:?}");
            compared += 1;
        }
        assert!(compared > 1000, "{compared}");
    }

    /// The fields of all records, none being NULL; `None` where one is not as the dialect says.
    fn read(dialect: &Dialect, mut bytes: &[u8]) -> Option<Vec<Vec<Option<Vec<u8>>>>> {
        let (cells, mut record, mut records) = (Cells::new(dialect).unwrap(), Record::default(), Vec::new());
        while let Next::Record { length, flaw } = cells.read(bytes, true, &mut record) {
            let field = |no| (!record.is_null(no)).then(|| record.value(no).to_vec());
            records.push((0..record.len()).map(field).collect());
            bytes = &bytes[length..];
            if flaw.is_some() {
                return None;
            }
        }
        Some(records)
    }
}
