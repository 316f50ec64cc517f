//! Seeded data for benchmarks and tests: rows are made one at a time and written straight to a file.
//!
//! A seed and a size enter; a file leaves, the same byte for byte for the same seed and size on every
//! machine (gzip: for the same compressor version). Memory stays constant whatever the size. Nothing is
//! downloaded, and no row of anybody's real data is in here.
//!
//! # The IMDb look-alikes and how their shape was chosen
//!
//! The published loading experiments use seven files that may not be redistributed, so [`imdb`] makes
//! files of the same shape.
//!
//! *From the published description of the data set*: the seven files, their columns and order, tab
//! separation, a header line, `\N` for an absent value, UTF-8, identifiers `tt` and `nm` followed by at
//! least seven digits, at most ten principals a title (the rule of those years), up to three genres,
//! comma-separated lists of people in `title.crew`, and `characters` as a list in brackets and double
//! quotes.
//!
//! *From the published experiment*: `title.principals.tsv.gz` was 361 MB, which at the about 36 to 40
//! million rows of its time is 9 to 10 stored bytes a row; plain rows are about 43 bytes. The size of a
//! production's cast and how long a series keeps it ([`imdb`]'s `principals`) were set so that generated
//! rows come out at about 42 bytes, and at about 9 after gzip at level 6.
//!
//! *Guessed, from general knowledge of films rather than a count*: the relative sizes of the seven files
//! ([`imdb::Table::rows_at_scale_one`]), the frequency of each category, job, region and genre, the share
//! of absent values per column, how names and titles are made up (a few word lists, one in twenty outside
//! ASCII). Double quotes are always balanced within a field, because the published load reads the files
//! as csv with `"` as quote, and an odd one would join lines there.
//!
//! # The other makers
//!
//! [`sensor`] is the table of the parallel-COPY experiment, [`quoted`] is CSV in which nearly every newline
//! and delimiter is data, [`wide`] has many columns, [`bigrow`] has a few huge rows among small ones,
//! [`documents`] has JSON of one shape in a field.

pub mod bigrow;
pub mod documents;
pub mod imdb;
pub mod output;
pub mod quoted;
pub mod random;
mod row;
pub mod sensor;
pub mod wide;
mod words;

/// A table's rows, one after the other.
pub trait Rows {
    /// The header line, newline included.
    fn header(&self) -> String;
    /// Appends the next row, newline included.
    fn push_row(&mut self, out: &mut Vec<u8>);
}
