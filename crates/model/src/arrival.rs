//! How rows come into their table: chunk by chunk as they are read, or all of them from a staging table.

use crate::table::Relation;
use serde::{Deserialize, Serialize};

/// What the rows of a load are to the rows that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They come on top.
    #[default]
    Append,
    /// They come into the table after it was emptied.
    Truncate,
    /// They come into a new table, which takes the place of the old one.
    Replace,
    /// Those whose key is there change the row of that key, the others come on top.
    Merge,
    /// Those whose key is not there come on top.
    InsertNew,
}

/// Which of several records of one key counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// None: the load fails.
    #[default]
    Error,
    /// The first in the order of the sources.
    First,
    /// The last.
    Last,
}

/// How rows come into their table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// What they are to the rows that are there.
    pub mode: Mode,
    /// The columns that tell rows apart, for modes that need it.
    pub key: Vec<String>,
    /// Rows whose key no record has are deleted.
    pub delete_missing: bool,
    /// Which of several records of one key counts.
    pub keep: Keep,
    /// Other sessions see all of the rows at once.
    pub atomic: bool,
    /// The rows of each table come frozen, in one transaction.
    pub freeze: bool,
    /// How long a lock is waited for at a time; others wait behind us for no longer.
    pub lock_timeout_ms: u64,
    /// They do not come at all: what the table would have against them is told.
    pub check: bool,
}

/// Longer, and an application whose readers wait behind us seems to stand still.
pub const LOCK_TIMEOUT_MS_DEFAULT: u64 = 5000;

impl Default for Arrival {
    fn default() -> Arrival {
        Arrival {
            mode: Mode::Append,
            key: Vec::new(),
            delete_missing: false,
            keep: Keep::Error,
            atomic: false,
            freeze: false,
            lock_timeout_ms: LOCK_TIMEOUT_MS_DEFAULT,
            check: false,
        }
    }
}

impl Arrival {
    /// Rows are told apart by a key.
    pub fn has_key(&self) -> bool {
        matches!(self.mode, Mode::Merge | Mode::InsertNew)
    }

    /// Rows wait in a staging table until all of them are there.
    pub fn is_staged(&self) -> bool {
        self.has_key() || self.atomic || self.mode == Mode::Replace || self.check
    }

    /// What is asked, where it decides which rows are in the end in the table; `None` where rows are appended
    /// as they come. Jobs are known by a digest of this.
    pub fn work(&self) -> Option<(Mode, &[String], bool, Keep)> {
        let is_plain = self.mode == Mode::Append && !self.atomic;
        (!is_plain).then_some((self.mode, &self.key, self.delete_missing, self.keep))
    }
}

/// A table in which rows wait until all of them are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingPlan {
    /// Its name: in the ledger's schema, of this job.
    pub relation: Relation,
    /// Its column with the place of each record among all of the job, where records are told apart by a key.
    pub place: Option<PlaceColumn>,
}

/// The column of a staging table that tells the place of each record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceColumn {
    /// Its name, which no column of the table has.
    pub name: String,
    /// The sequence that counts the records of a chunk that the client has not numbered.
    pub sequence: Relation,
}

/// Bits of a place that count within one file: bytes of 16 TiB.
const PLACE_BITS: u32 = 44;

/// Files whose records have places.
pub const PLACED_FILES_MAX: usize = 1 << (63 - PLACE_BITS);
/// Plain bytes of a file whose records have places.
pub const PLACED_BYTES_MAX: u64 = 1 << PLACE_BITS;

/// The place of the first record of a chunk: of two records, the one in the file that was named earlier, or
/// earlier in the same file, has the smaller one. The `n`th record of the chunk has a place larger by `n`,
/// which no record of the next chunk has, since each takes a byte at least. `None` for files beyond 16 TiB or
/// half a million.
pub fn place_of(input_no: u32, start_byte: u64) -> Option<i64> {
    let fits = start_byte < PLACED_BYTES_MAX && (input_no as usize) < PLACED_FILES_MAX;
    fits.then(|| i64::try_from(u64::from(input_no) << PLACE_BITS | start_byte).ok()).flatten()
}

/// The file and the byte behind which a place lies.
pub fn file_of_place(place: i64) -> (u32, u64) {
    let place = place.cast_unsigned();
    (u32::try_from(place >> PLACE_BITS).unwrap_or(u32::MAX), place & ((1 << PLACE_BITS) - 1))
}

/// What became of the rows of a load in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Rows that came on top.
    pub inserted: u64,
    /// Rows that were there and were changed.
    pub updated: u64,
    /// Records that say what is there already, or whose key is there and nothing more was asked.
    pub unchanged: u64,
    /// Rows that are gone: by `--delete-missing`.
    pub deleted: u64,
    /// Records that did not count, another one having the same key.
    pub duplicates: u64,
    /// Rows that were to be changed, or deleted, which a trigger or a policy has prevented.
    pub held_back: u64,
}

impl Changes {
    /// Both together.
    #[must_use]
    pub fn and(self, more: Changes) -> Changes {
        Changes {
            inserted: self.inserted + more.inserted,
            updated: self.updated + more.updated,
            unchanged: self.unchanged + more.unchanged,
            deleted: self.deleted + more.deleted,
            duplicates: self.duplicates + more.duplicates,
            held_back: self.held_back + more.held_back,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_files_and_bytes_and_lead_back() {
        let places = [(0, 0), (0, 7), (1, 0), (1, (1 << 44) - 1), (500_000, 3)];
        let numbers = places.map(|(file, byte)| place_of(file, byte).unwrap());
        assert!(numbers.is_sorted());
        assert_eq!(numbers.map(file_of_place), places);
        assert_eq!(place_of(0, 1 << 44), None);
        assert_eq!(place_of(1 << 19, 0), None);
    }
}
