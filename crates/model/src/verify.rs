//! Whether what is stored is compared with the sources when all rows are in, and what came of it.

use serde::{Deserialize, Serialize};

/// How what is stored is compared with what was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// Not at all, beyond the counts that COPY answers with.
    #[default]
    None,
    /// The rows that each chunk has left in the table are counted there.
    Count,
    /// That, and the sources are read once more and compared with these rows value by value.
    Checksum,
}

impl Verify {
    /// The word of the option and of the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Verify::None => "none",
            Verify::Count => "count",
            Verify::Checksum => "checksum",
        }
    }
}

/// What a comparison that found no difference was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// How it was done.
    pub by: Verify,
    /// Rows of this job that were found in the tables: with a key, records whose rows are there as they say,
    /// or as another of their key says.
    pub rows: u64,
    /// The sum of the hashes of all of them, in hexadecimal; `None` where they were only counted.
    pub checksum: Option<String>,
    /// Rows of the tables that this job has not stored.
    pub rows_of_others: u64,
}
