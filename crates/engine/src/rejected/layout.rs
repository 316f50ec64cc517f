//! How the rejected records of a job are written: files of one table that are written alike share a layout,
//! whose records can stand in one file.

use crate::plan::chunk_format;
use howdah_model::plan::Encode;
use howdah_model::{Care, Eol, Format, Plan, TablePlan};
use howdah_transcode::encode::{byte_order_mark, from_utf8};
use howdah_transcode::header;
use std::collections::BTreeMap;

/// Fields that go nowhere are called so in a header, with a number behind.
pub(super) const IGNORED: &str = "howdah_ignored_";

/// Files of one table that are written alike.
pub(super) struct Layout<'a> {
    pub(super) table: &'a TablePlan,
    /// How lines end in files that are not rewritten.
    eol: Option<Eol>,
    /// Its number among those of the table, from 1.
    pub(super) no: usize,
    pub(super) file_nos: Vec<u32>,
}

/// All layouts of a job, in the order in which the first files of each were given.
pub(super) struct Layouts<'a> {
    pub(super) all: Vec<Layout<'a>>,
    /// For each file the index of its layout.
    of_files: Vec<usize>,
}

impl<'a> Layouts<'a> {
    pub(super) fn new(plan: &'a Plan) -> Layouts<'a> {
        let tables = &plan.tables;
        let first_alike = |table: &TablePlan| tables.iter().position(|other| are_alike(other, table));
        let first_alike: Vec<Option<usize>> = tables.iter().map(first_alike).collect();
        let files = &plan.files;
        let mut as_given: Vec<usize> = (0..files.len()).collect();
        as_given.sort_by_key(|file_no| files[*file_no].input_no);
        let mut all: Vec<Layout<'a>> = Vec::new();
        let mut known = BTreeMap::new();
        let mut of_files = vec![0; files.len()];
        for file_no in as_given {
            let file = &files[file_no];
            let table = &tables[file.table_no as usize];
            let eol = (table.care != Care::Rewritten).then(|| file.eol.unwrap_or(Eol::Lf));
            let index = *known.entry((first_alike[file.table_no as usize], eol)).or_insert_with(|| {
                let of_table = all.iter().filter(|other| other.table.table.relation == table.table.relation);
                let no = of_table.count() + 1;
                all.push(Layout { table, eol, no, file_nos: Vec::new() });
                all.len() - 1
            });
            // The ledger counts files in four bytes.
            all[index].file_nos.push(u32::try_from(file_no).unwrap_or(u32::MAX));
            of_files[file_no] = index;
        }
        Layouts { all, of_files }
    }

    /// The layout of a file, as an index.
    pub(super) fn of_file(&self, file_no: u32) -> Option<usize> {
        self.of_files.get(file_no as usize).copied()
    }
}

/// Records for these two can stand in one file. What is told of the files' own headers is not theirs.
fn are_alike(one: &TablePlan, other: &TablePlan) -> bool {
    one.table.relation == other.table.relation
        && one.fields == other.fields
        && one.encode == other.encode
        && one.recode == other.recode
        && Format { header: other.format.header, ..one.format.clone() } == other.format
        && one.own_dialect() == other.own_dialect()
        && (one.own_dialect().is_none() || one.readings == other.readings)
}

impl Layout<'_> {
    /// Records are sent in other words than the file has.
    pub(super) fn is_rewritten(&self) -> bool {
        self.table.own_dialect().is_some() || self.table.encode == Encode::CopyText
    }

    /// The header of a file of records that are kept so, and what ends them.
    pub(super) fn head(&self, as_in_file: bool) -> (Vec<u8>, Vec<u8>) {
        let table = self.table;
        let (format, names, eol) = self.form(as_in_file);
        let dialect = table.own_dialect().filter(|_| as_in_file);
        let ending = match dialect.map_or(eol, |dialect| dialect.eol) {
            Some(Eol::CrLf) => "\r\n",
            Some(Eol::Cr) => "\r",
            Some(Eol::Lf) | None => "\n",
        };
        let head = match dialect {
            None => header::record(&format, eol, &names),
            Some(dialect) => (header::record_of_dialect(dialect, &names) + ending).into_bytes(),
        };
        // Of encodings that the server alone knows no name is read that is not ASCII, either.
        let as_read = |bytes: Vec<u8>| match &format.encoding {
            Some(encoding) => from_utf8(encoding, &bytes).unwrap_or(bytes),
            None => bytes,
        };
        let mark = format.encoding.as_deref().map_or(&b""[..], byte_order_mark);
        ([mark, &as_read(head)].concat(), as_read(ending.into()))
    }

    /// How records are kept: their format, the names of their fields, their line ending.
    pub(super) fn form(&self, as_in_file: bool) -> (Format, Vec<String>, Option<Eol>) {
        let table = self.table;
        // What is rewritten has the kept fields only.
        let is_whole = as_in_file || !self.is_rewritten();
        let names = table.fields.iter().enumerate().filter_map(|(no, field)| match field {
            Some(column) => Some(column.clone()),
            None => is_whole.then(|| format!("{IGNORED}{}", no + 1)),
        });
        let names = names.collect();
        if as_in_file {
            let encoding = table.recode.clone().or_else(|| table.format.encoding.clone());
            return (Format { encoding, ..table.format.clone() }, names, self.eol);
        }
        let eol = if table.encode == Encode::CopyText { Some(Eol::Lf) } else { self.eol };
        (chunk_format(table), names, eol)
    }
}
