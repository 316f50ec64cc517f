//! The life of a record: read as raw bytes, cut into chunks of known [`Origin`], made ready as a
//! [`CopyChunk`], stored as a [`Receipt`]. Each carries the same [`Origin`], so any error can name file,
//! record and byte.

use crate::error::Error;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Records that are read and not stored, which only `--lenient` and `--on-error skip` allow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Beyond mending, and left out.
    pub left_out: u64,
    /// Blank, and dropped.
    pub blank: u64,
    /// Refused by the table, and kept in the ledger.
    pub rejected: u64,
}

impl Omitted {
    /// All of them: the numbers of records behind count these.
    pub fn records(self) -> u64 {
        self.left_out + self.blank + self.rejected
    }
}

/// Which chunk of a plan's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkId {
    /// Index into [`crate::Plan::files`].
    pub file_no: u32,
    /// Which of the file's [`Borders`](crate::Borders) it lies between.
    pub chunk_no: u64,
}

/// Where whole records came from. Offsets count plain (decompressed) bytes of the file from its first
/// byte, header and byte order mark included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Index into [`crate::Plan::files`].
    pub file_no: u32,
    /// Which of the file's [`Borders`](crate::Borders) it lies between.
    pub chunk_no: u64,
    /// The first byte of the first record.
    pub start_byte: u64,
    /// One past the last byte of the last record, its line ending included.
    pub end_byte: u64,
    /// The number of the first record; the first data record of a file is 1 and the header is not counted.
    pub first_record: u64,
    /// How many records there are, those that are not stored left out of account.
    pub records: u64,
    /// Records in between that are not stored.
    pub omitted: Omitted,
    /// XXH3 of the records' plain bytes, where the file has no version that would tell other bytes apart.
    pub digest: Option<u64>,
}

impl Origin {
    /// The chunk that they make.
    pub fn chunk(&self) -> ChunkId {
        ChunkId { file_no: self.file_no, chunk_no: self.chunk_no }
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the plan's `copy_sql` takes them.
    AsIs,
    /// As its `text_sql` does.
    Text,
    /// As its `binary` does.
    Binary,
}

/// Rows that one COPY takes.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// The leaf partition that they are copied into, as the plan's `route` numbers them; `None` is the table
    /// itself.
    pub leaf_no: Option<u32>,
    /// The rows, one piece behind the other.
    pub pieces: Vec<Bytes>,
}

/// Records in another form or order than the file's.
#[derive(Debug, Clone)]
pub struct Faster {
    /// How they are written.
    pub form: Form,
    /// They have one more column than the file: that of the plan's `number`.
    pub numbered: bool,
    /// The rows, each in one of these.
    pub parcels: Vec<Parcel>,
}

impl Faster {
    /// Rows that all go to the table itself.
    pub fn whole(form: Form, pieces: Vec<Bytes>) -> Faster {
        Faster { form, numbered: false, parcels: vec![Parcel { leaf_no: None, pieces }] }
    }
}

/// What is known of a record that is set aside.
#[derive(Debug, Clone)]
pub enum Doubt {
    /// It is refused for this reason, whatever the server would say.
    Refused(Error),
    /// It has these values, each with its column, that the client cannot read for certain.
    Values(Vec<(String, String)>),
    /// Only the server can tell.
    Unknown,
}

/// A record of a chunk that may not be fit for the table, and is not among the rows of [`CopyChunk::faster`].
#[derive(Debug, Clone)]
pub struct Aside {
    /// Its number in the chunk, from 0.
    pub row: u64,
    /// Where it stands in [`CopyChunk::bytes`], its line ending included.
    pub range: Range<usize>,
    /// What is known of it.
    pub doubt: Doubt,
    /// Its bytes in the file, where those in the chunk only stand for them.
    pub in_file: Option<Bytes>,
}

impl Aside {
    /// Of a record that stands in the chunk itself.
    pub fn new(row: u64, range: Range<usize>, doubt: Doubt) -> Aside {
        Aside { row, range, doubt, in_file: None }
    }
}

/// Whole records in a form the table's COPY statement takes.
#[derive(Debug, Clone)]
pub struct CopyChunk {
    /// Where they came from.
    pub origin: Origin,
    /// The records as the plan's `copy_sql` takes them. Equal to the file's bytes where COPY can take these
    /// as they are.
    pub bytes: Bytes,
    /// The same records as the server reads them faster. Then these are sent, and `bytes` only if they are
    /// refused.
    pub faster: Option<Faster>,
    /// The record behind these is refused for this reason, before the server sees it. These are shown to
    /// the server all the same, since it may refuse one of them, and are rolled back if it does not.
    pub refused: Option<Error>,
    /// Records of `bytes` that are not in `faster`, in the order of the file; only where the load goes on
    /// without bad ones.
    pub aside: Vec<Aside>,
}

/// A record that is read and not stored, with all that is kept of it.
#[derive(Debug, Clone)]
pub struct Reject {
    /// Its number in the file, from 1, the header not counted, where that can be told.
    pub record: Option<u64>,
    /// Its first byte in the plain bytes of the file, where that can be told.
    pub byte: Option<u64>,
    /// The record with its line ending.
    pub bytes: Bytes,
    /// `bytes` are those of the file; otherwise those that were sent in their place.
    pub as_in_file: bool,
    /// Why, with SQLSTATE and column where known. No row values.
    pub error: Error,
}

/// A chunk that is in the table, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Index into [`crate::Plan::files`].
    pub file_no: u32,
    /// As in [`Origin`].
    pub chunk_no: u64,
    /// As in [`Origin`].
    pub start_byte: u64,
    /// As in [`Origin`].
    pub end_byte: u64,
    /// Rows stored; with those omitted, the records read.
    pub rows: u64,
    /// As in [`Origin`].
    pub omitted: Omitted,
    /// As in [`Origin`].
    pub digest: Option<u64>,
}

impl Receipt {
    /// The chunk that is in.
    pub fn chunk(&self) -> ChunkId {
        ChunkId { file_no: self.file_no, chunk_no: self.chunk_no }
    }
}
