//! Records that say the names of the header again, as they stand in files that were put together from
//! several.
//!
//! Enters: whole records, as the file has them or as COPY text. Leaves: where such records stand. One name is
//! searched for as bytes, so that records without it cost a pass at the speed of memory; only records that
//! have it, and begin with the first name, are cut into fields.

use crate::cells::{Cells, Next, Record};
use crate::encode::text_value;
use crate::split::Rules;
use howdah_model::{Dialect, Result};
use memchr::memmem::Finder;
use std::ops::Range;

/// How the records are written.
#[derive(Debug, Clone)]
enum Written {
    AsInFile(Box<Cells>),
    CopyText,
}

/// Finds records that repeat one header.
#[derive(Debug, Clone)]
pub struct RepeatedHeader {
    names: Vec<String>,
    written: Written,
    /// The field behind the first one with the longest name, and what begins it.
    searched: Vec<Finder<'static>>,
}

impl RepeatedHeader {
    /// In records as a file of this dialect has them. `None` where no record can be told: of one field a name
    /// may be a value.
    ///
    /// # Errors
    /// `Internal` or `Usage` for a dialect that cannot be read.
    pub fn in_records(dialect: &Dialect, names: &[String]) -> Result<Option<RepeatedHeader>> {
        let cells = Cells::new(dialect)?;
        let quote = dialect.quote.map(char::from).map(String::from).unwrap_or_default();
        Ok(RepeatedHeader::new(
            Written::AsInFile(Box::new(cells)),
            names,
            &[&dialect.delimiter, &format!("{}{quote}", dialect.delimiter)],
        ))
    }

    /// The same in COPY text, with tabs between fields and `\N` for NULL.
    pub fn in_copy_text(names: &[String]) -> Option<RepeatedHeader> {
        RepeatedHeader::new(Written::CopyText, names, &["\t"])
    }

    fn new(written: Written, names: &[String], begins: &[&str]) -> Option<RepeatedHeader> {
        // Written alike in every encoding and format.
        let is_plain = |name: &&String| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ' | b'-' | b'.');
            !name.is_empty() && name.bytes().all(plain)
        };
        let name = names.iter().skip(1).filter(is_plain).max_by_key(|name| name.len())?;
        let searched =
            begins.iter().map(|begin| Finder::new(format!("{begin}{name}").as_bytes()).into_owned());
        Some(RepeatedHeader { names: names.to_vec(), searched: searched.collect(), written })
    }

    /// Where such records stand among these, with their numbers from 0.
    pub fn find(&self, rules: &Rules, records: &[u8]) -> Vec<(u64, Range<usize>)> {
        if !self.may_be_among(records) {
            return Vec::new();
        }
        let ranges = (0..).zip(rules.ranges(records));
        ranges.filter(|(_, range)| self.is_repeated(&records[range.clone()])).collect()
    }

    /// Such records may be among these. Values that only begin with the name (`type_1` below `type`) are
    /// none.
    pub fn may_be_among(&self, records: &[u8]) -> bool {
        self.searched.iter().any(|name| {
            let mut ends = name.find_iter(records).map(|at| records.get(at + name.needle().len()));
            ends.any(|end| end.is_none_or(|end| !end.is_ascii_alphanumeric() && *end != b'_'))
        })
    }

    /// It has the first name where it begins, as far as that can be told from its bytes.
    fn begins_alike(&self, record: &[u8]) -> bool {
        let is_aside = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
        let first = self.names[0].as_bytes();
        if first.first().is_none_or(is_aside) {
            return true;
        }
        // A quote, a blank, and a byte order mark may stand before it.
        let aside = record.iter().take_while(|byte| is_aside(byte)).count();
        record[aside..].starts_with(&first[..first.iter().take_while(|byte| !is_aside(byte)).count()])
    }

    /// This record says the same names.
    pub fn is_repeated(&self, record: &[u8]) -> bool {
        if !self.begins_alike(record) || !self.may_be_among(record) {
            return false;
        }
        match &self.written {
            Written::AsInFile(cells) => {
                let mut fields = Record::default();
                matches!(cells.read(record, true, &mut fields), Next::Record { .. })
                    && self.are_names(fields.values().map(<[u8]>::to_vec))
            }
            Written::CopyText => {
                let line = record.strip_suffix(b"\n").unwrap_or(record);
                let value = |field: &[u8]| if field == b"\\N" { Vec::new() } else { text_value(field) };
                self.are_names(line.split(|byte| *byte == b'\t').map(value))
            }
        }
    }

    /// Names beyond ASCII may be in an encoding that only the server reads.
    fn are_names(&self, fields: impl Iterator<Item = Vec<u8>>) -> bool {
        let fields: Vec<Vec<u8>> = fields.collect();
        let is_name = |(field, name): (&Vec<u8>, &String)| {
            // A file's byte order mark comes into the middle.
            let field = field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(field).trim_ascii();
            field == name.as_bytes() || !field.is_ascii() && !name.is_ascii()
        };
        fields.len() == self.names.len() && fields.iter().zip(&self.names).all(is_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::{Eol, Format};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn records_that_say_the_names_again_are_found() {
        let dialect = Dialect { eol: Some(Eol::Lf), ..Dialect::csv() };
        let rules = Rules::new(&Format::csv(), 180_000, Some(Eol::Lf)).unwrap();
        let found = |header: &[&str], records: &str| {
            let header = RepeatedHeader::in_records(&dialect, &names(header)).unwrap();
            let found = header.map(|header| header.find(&rules, records.as_bytes())).unwrap_or_default();
            found.into_iter().map(|(no, range)| (no, range.start)).collect::<Vec<_>>()
        };
        let two = &["id", "name"];
        assert_eq!(found(two, "1,a\nid,name\n2,b\n\"id\",\"name\"\n"), [(1, 4), (3, 16)]);
        assert_eq!(found(two, "1,a\n\u{feff}id,name"), [(1, 4)]);
        assert_eq!(found(two, "1,\"a\nid,name\n\"\n1,name\nid,names\nid,name,x\n"), []);
        assert_eq!(found(&["", "x"], "\"\",\"x\"\n"), [(0, 0)]);
        assert_eq!(found(&["name"], "name\n"), []);
        assert_eq!(found(two, "1,name_1\n id,names\n2,name\n\"id\",name"), [(3, 26)]);
    }

    #[test]
    fn so_are_lines_of_copy_text() {
        let rules = Rules::new(&Format::text(), 180_000, Some(Eol::Lf)).unwrap();
        let header = RepeatedHeader::in_copy_text(&names(&["", "a b", "c\td"])).unwrap();
        assert_eq!(header.find(&rules, b"1\t2\t3\n\\N\ta b\tc\\td\n\ta b\tc\n"), [(1, 6..18)]);
    }
}
