//! Rows are shown to COPY, which says which of them the table does not take.
//!
//! What a COPY refuses is cut at the row that the server names, or in the middle if it names none, and the
//! parts are shown again, in the order of the file. Where rows break constraints or a trigger raises, this is
//! the whole price of a bad row, and mostly round trips: so a savepoint is sent together with the COPY under
//! it, and a row that was named for sure is not shown again, if the rows before it go in as one.

use super::insertion::ONE_OF;
use super::rows::{Places, pieces, row_of_line};
use super::written::Written;
use super::{Refused, Salvage, is_about_a_row, is_of_constraint, is_raised};
use crate::commit::{self, ChunkError};
use crate::copy::placed::Placed;
use crate::copy::stream;
use bytes::Bytes;
use futures_util::future;
use howdah_model::{Error, Result};
use tokio_postgres::Statement;

/// Rows of so many bytes of a chunk are shown at once: those before the one that is refused were stored in
/// vain. Measured with 4 million rows (330 MB), 1 % of which repeat a key, 30 rows or 600,000 behind it,
/// medians of 3 runs: all at once 4.6 and 4.6 s, 4 MiB 4.4 and 4.5 s, 2 MiB 4.4 and 4.6 s, 1 MiB 4.3 and 4.7
/// s.
const SHOWN_BYTES: usize = 4 << 20;

/// So few rows cost a COPY no more than its statement.
const AT_ONCE_MIN: usize = 64;

/// After so many rows of a chunk that broke constraints, the server is asked about the rest: each has cost
/// two COPYs.
pub(super) const BROKEN_MAX: usize = 8;
/// About fewer rows it is not asked.
pub(super) const ASKED_MIN: usize = 1000;

/// What the server says about a row, and the line of what was sent that it names.
type Refusal = (Error, Option<u64>);

/// How rows are shown to COPY.
#[derive(Clone, Copy)]
pub(super) struct Showing<'a> {
    pub(super) way: Way<'a>,
    pub(super) bear: &'a (dyn Fn(u64, u64) -> Result<()> + Send + Sync),
    /// There is a way to ask about many at once.
    pub(super) asks: bool,
    /// The server may try many itself.
    pub(super) inserts: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// In binary.
    Written(&'a Written<'a>),
    /// As the file has them; with their places before them, for a table that keeps these.
    AsInFile(&'a Places<'a>, Option<&'a Placed>),
}

/// Rows that are to be shown, by their numbers among all of these.
struct Part {
    first: usize,
    end: usize,
    /// No COPY has failed with all of them.
    is_fresh: bool,
}

/// Where a COPY failed.
struct Named {
    /// The row's number among those that were shown.
    at: usize,
    /// It is this row, not only one near it.
    for_sure: bool,
}

impl Salvage<'_> {
    /// Shows rows to COPY, all at once, then what was refused in parts. `known` are refused already; of
    /// these, only those before a row count when it is asked whether that is too much. If so many rows break
    /// constraints that asking about the rest is cheaper, the number of rows that were looked at comes back.
    pub(super) async fn show(
        &mut self,
        rows: &[u64],
        known: &[u64],
        showing: &Showing<'_>,
        refused: &mut Vec<Refused>,
    ) -> Result<Option<usize>, ChunkError> {
        let part = |first: usize, end: usize, is_fresh: bool| Part { first, end, is_fresh };
        let mut parts = vec![part(0, rows.len(), true)];
        // A COPY that fails has been sent whole: where bad records stand close together, fewer rows go at
        // once.
        let at_once_max = match showing.way {
            Way::AsInFile(_, Some(_)) => Placed::rows_at_once(rows.len(), self.chunk.bytes.len()),
            _ => rows.len().saturating_mul(SHOWN_BYTES).div_ceil(self.chunk.bytes.len().max(1)),
        };
        let (mut at_once, mut broken) = (at_once_max, 0);
        let (mut inserts, before) = (showing.inserts, refused.len());
        // Refused for sure behind rows that have not failed since.
        let mut told: Option<Refused> = None;
        while let Some(Part { first, mut end, is_fresh }) = parts.pop() {
            if showing.asks && broken >= BROKEN_MAX && rows.len() - first >= ASKED_MIN {
                return Ok(Some(first));
            }
            let so_far = refused.len() - before;
            let are_many = so_far >= BROKEN_MAX && so_far * ONE_OF >= first;
            if told.is_none()
                && are_many
                && std::mem::take(&mut inserts)
                && self.insert_all(&rows[first..], known, showing, refused).await?
            {
                return Ok(None);
            }
            // So that what is left of a COPY that failed is none of its own.
            while is_fresh && let Some(next) = parts.pop_if(|next| next.is_fresh) {
                end = next.end;
            }
            if end - first > at_once {
                parts.push(part(first + at_once, end, is_fresh));
                end = first + at_once;
            }
            let Some(some) = rows.get(first..end).filter(|some| !some.is_empty()) else { continue };
            let (error, line) = match told.take_if(|told| some == [told.row]) {
                Some(told) => (told.error, None),
                None => match self.show_some(some, &showing.way).await? {
                    Some(refusal) => refusal,
                    None => {
                        if some.len() == at_once {
                            at_once = at_once.saturating_mul(2).min(at_once_max);
                        }
                        continue;
                    }
                },
            };
            if let [row] = some {
                // A row before the one that was named, refused when COPY was over (a foreign key): it was in
                // the way, perhaps.
                told = None;
                broken += usize::from(is_of_constraint(&error));
                refused.push(Refused { row: *row, error });
                let behind = known.len() - known.partition_point(|known| known < row);
                self.bear(showing.bear, refused, refused.len() - behind).await?;
                continue;
            }
            let named = line.and_then(|line| self.named(&showing.way, some, line, &error));
            let (at, behind) =
                named.as_ref().map_or((some.len() / 2, some.len() / 2), |named| (named.at, named.at + 1));
            told = named.filter(|named| named.for_sure).map(|named| Refused { row: some[named.at], error });
            let is_named = at < behind;
            if is_named {
                at_once = (2 * behind).max(AT_ONCE_MIN).min(at_once_max);
            }
            let (at, behind) = (first + at, first + behind);
            parts.extend([part(behind, end, is_named), part(at, behind, false), part(first, at, false)]);
        }
        Ok(None)
    }

    /// Which row the server means.
    fn named(&self, way: &Way<'_>, rows: &[u64], line: u64, error: &Error) -> Option<Named> {
        let (at, one_line_each) = match way {
            Way::Written(_) => {
                (usize::try_from(line).ok()?.checked_sub(1).filter(|at| *at < rows.len())?, true)
            }
            Way::AsInFile(places, _) => row_of_line(&self.chunk.bytes, places, rows, line)?,
        };
        // A constraint, or RAISE. Lines are less certain of what is told while COPY reads (a quote that is
        // left open), and while it writes up to a thousand rows at once (one that is too large for a page:
        // `CopyMultiInsertBufferFlush`).
        let of_one_row = is_of_constraint(error) || is_raised(error);
        Some(Named { at, for_sure: one_line_each && of_one_row })
    }

    async fn show_some(&mut self, rows: &[u64], way: &Way<'_>) -> Result<Option<Refusal>, ChunkError> {
        let (sql, pieces) = self.cut(way, rows)?;
        let mut save = self.save_sql();
        if !self.session.has_prepared(&sql) {
            // Nothing can be prepared in a transaction that has failed.
            self.run(&std::mem::take(&mut save)).await?;
        }
        self.copy_behind(&save, &sql, &pieces, rows.len() as u64).await
    }

    /// These rows, and the statement that takes them.
    fn cut(&self, way: &Way<'_>, rows: &[u64]) -> Result<(String, Vec<Bytes>)> {
        Ok(match way {
            Way::Written(written) => {
                (commit::copy_sql(self.target, self.chunk, None)?, written.only(rows.iter().copied()))
            }
            Way::AsInFile(places, Some(placed)) => {
                let rows = rows.iter().map(|row| (*row, places.of(*row)));
                (placed.sql.clone(), placed.pieces(&self.chunk.bytes, rows))
            }
            Way::AsInFile(places, None) => {
                (self.target.table.copy_sql.clone(), pieces(&self.chunk.bytes, places, rows))
            }
        })
    }

    /// One COPY under the savepoint: what the server says about a row, and the line that it names.
    pub(super) async fn try_copy(
        &mut self,
        sql: &str,
        pieces: &[Bytes],
        rows: u64,
    ) -> Result<Option<Refusal>, ChunkError> {
        self.copy_behind("", sql, pieces, rows).await
    }

    /// The same behind `save`, if it is not empty: both are sent together.
    async fn copy_behind(
        &mut self,
        save: &str,
        sql: &str,
        pieces: &[Bytes],
        rows: u64,
    ) -> Result<Option<Refusal>, ChunkError> {
        let statement = self.session.prepare_copy(sql).await?;
        match self.send_copy(save, &statement, pieces).await? {
            Ok(taken) if taken == rows => {
                self.keep(rows);
                Ok(None)
            }
            Ok(taken) => {
                commit::roll_back(self.session).await;
                Err(commit::wrong_count(taken, rows).into())
            }
            Err(refusal) => Ok(Some(refusal)),
        }
    }

    /// One COPY behind `save`: how many rows the server took, or what it says about one.
    pub(super) async fn send_copy(
        &mut self,
        save: &str,
        statement: &Statement,
        pieces: &[Bytes],
    ) -> Result<Result<u64, Refusal>, ChunkError> {
        let client = self.session.client();
        let saving = async { if save.is_empty() { Ok(()) } else { client.batch_execute(save).await } };
        let (saved, sink) = future::join(saving, client.copy_in(statement)).await;
        let sink = match saved.and(sink) {
            Ok(sink) => sink,
            Err(error) => {
                // See `begin_claim_and_start`.
                self.session.abandon();
                return Err(commit::copy_failure(&error, self.target));
            }
        };
        let origin = &self.chunk.origin;
        let mut sent = stream::Sent {
            all_bytes: pieces.iter().map(|bytes| bytes.len() as u64).sum(),
            plain_bytes: origin.end_byte - origin.start_byte,
            passed_bytes: 0,
            told: self.progress.bytes_cell(),
        };
        let taken = match stream::send(sink, pieces, &mut sent).await {
            Ok(taken) => self.bring_in(taken).await,
            refused => refused,
        };
        match taken {
            Ok(taken) => Ok(Ok(taken)),
            Err(error) => {
                let failure = commit::copy_failure(&error, self.target);
                if is_about_a_row(&failure.error) {
                    self.spoil();
                    return Ok(Err((failure.error, failure.line)));
                }
                Err(self.fail(&error).await)
            }
        }
    }
}
