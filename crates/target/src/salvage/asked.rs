//! Rows are asked about before they are sent, and sent in the form that was made for them.
//!
//! Where the rows of a load keep breaking unique or foreign keys, they go into a temporary table, of rows in
//! binary the columns of the keys alone, each with the number of its record; the rules of [`crate::check`]
//! tell which of them are not taken. Rows in binary whose keys have the very bytes of another's are known
//! without a question, and while [`super::seen`] tells all that repeat a key of another chunk, only these are
//! asked about. The others are shown to COPY, which has the last word; rows in binary are parsed by nobody
//! again.

use super::probe::{Broken, KnownKey, OfKeys, Probe, Question};
use super::rows::{Places, rows_of};
use super::show::{ASKED_MIN, Showing, Way};
use super::written::{Repeat, Repeats, Written};
use super::{Constraints, Refused, Salvage};
use crate::commit::{self, ChunkError};
use crate::copy::placed::Placed;
use crate::copy::unchanged;
use bytes::Bytes;
use howdah_model::{Error, Result, sqlstate};
use std::collections::HashMap;

/// Who is asked about rows in binary, by their keys alone.
#[derive(Clone, Copy)]
struct Asked<'a> {
    probe: &'a Probe,
    keys: &'a OfKeys,
}

/// What keys tell without a question.
#[derive(Default)]
struct Known {
    /// Rows that repeat another of the chunk, in order.
    repeats: Vec<(u64, Repeat)>,
    /// Records that may repeat one of a chunk before, in order.
    suspects: Vec<u64>,
}

impl Salvage<'_> {
    /// Stores the rows that are certain, in the form that was made for them, and leaves out what the table
    /// refuses. `false`: they have no such form, or not all of them can be told apart in it; nothing is
    /// stored then.
    pub(super) async fn copy_made(
        &mut self,
        bear: &(dyn Fn(u64, u64) -> Result<()> + Send + Sync),
        constraints: Constraints<'_>,
        refused: &mut Vec<Refused>,
    ) -> Result<bool, ChunkError> {
        let Some(written) = Written::of(self.chunk) else {
            return Ok(!constraints.are_broken && self.copy_certain().await?);
        };
        self.save().await?;
        if !self.is_as_written().await? {
            return Ok(false);
        }
        let asked = constraints.probe.and_then(|probe| Some(Asked { probe, keys: probe.of_keys.as_ref()? }));
        let (mut left, mut known) = (self.certain().collect(), Known::default());
        if let Some(asked) = asked.filter(|_| constraints.are_broken) {
            known = self.take_repeats(asked, &written, constraints, &mut left).await?;
            if constraints.are_asked || asked.keys.are_told() {
                left = self.ask_keys(asked, &written, left, &known.suspects, refused).await?;
            }
        }
        let before = rows_of(refused);
        let asks = asked.is_some_and(|asked| self.told.is_none() || asked.keys.are_told());
        let showing = Showing { way: Way::Written(&written), bear, asks, inserts: true };
        if constraints.are_inserted && self.insert_all(&left, &before, &showing, refused).await? {
            left.clear();
        }
        if let Some(shown) = self.show(&left, &before, &showing, refused).await?
            && let Some(asked) = asked
        {
            left.drain(..shown);
            asked.keys.set_told(false);
            if !constraints.are_broken {
                known = self.take_repeats(asked, &written, constraints, &mut left).await?;
            }
            left = self.ask_keys(asked, &written, left, &known.suspects, refused).await?;
            let before = rows_of(refused);
            self.show(&left, &before, &Showing { asks: false, ..showing }, refused).await?;
        }
        if let Some(asked) = asked {
            self.settle_repeats(asked, known.repeats, &showing, refused).await?;
        }
        Ok(true)
    }

    /// Rows that are not set aside.
    pub(super) fn certain(&self) -> impl Iterator<Item = u64> {
        let mut aside = self.chunk.aside.iter().map(|aside| aside.row).peekable();
        (0..self.chunk.origin.records).filter(move |row| aside.next_if_eq(row).is_none())
    }

    /// Takes the rows out that repeat others of the chunk.
    async fn take_repeats(
        &mut self,
        asked: Asked<'_>,
        written: &Written<'_>,
        constraints: Constraints<'_>,
        left: &mut Vec<u64>,
    ) -> Result<Known, ChunkError> {
        let Some(known_keys) = &asked.keys.known_keys else { return Ok(Known::default()) };
        self.save().await?;
        if !self.is_current(asked.probe).await? {
            return Ok(Known::default());
        }
        self.learn(asked.probe, known_keys, constraints.to_come_bytes).await?;
        let Repeats { of, suspects } =
            written.repeats(known_keys.keys.iter().map(|known| (&known.key, &known.seen)));
        let mut known = Known { repeats: Vec::new(), suspects };
        left.retain(|row| {
            let Some(repeat) = of.get(row) else { return true };
            known.repeats.push((*row, *repeat));
            false
        });
        Ok(known)
    }

    /// Rows whose key is there are refused; COPY says what becomes of those that repeat one of which that is
    /// not certain, because it is refused itself.
    async fn settle_repeats(
        &mut self,
        asked: Asked<'_>,
        repeats: Vec<(u64, Repeat)>,
        showing: &Showing<'_>,
        refused: &mut Vec<Refused>,
    ) -> Result<(), ChunkError> {
        let keys: &[KnownKey] = asked.keys.known_keys.as_ref().map_or(&[], |known| &known.keys);
        // Which key a row is refused for that was not taken out here is known where there is one, and no
        // trigger that says the same.
        let is_plain = keys.len() == 1 && asked.probe.tells_all();
        let only_key =
            |error: &Error| (is_plain && error.sqlstate() == Some(sqlstate::UNIQUE_VIOLATION)).then_some(0);
        let mut reasons: HashMap<u64, Option<usize>> =
            refused.iter().map(|refused| (refused.row, only_key(&refused.error))).collect();
        let mut left = Vec::new();
        for (row, Repeat { first, key_no }) in repeats {
            if reasons.get(&first).is_none_or(|reason| *reason == Some(key_no)) {
                reasons.insert(row, Some(key_no));
                refused.push(Refused { row, error: keys[key_no].error.clone() });
            } else {
                reasons.insert(row, None);
                left.push(row);
            }
        }
        let known = rows_of(refused);
        self.show(&left, &known, &Showing { asks: false, ..*showing }, refused).await?;
        Ok(())
    }

    /// The rows are written for the table as it is, until the transaction ends.
    async fn is_as_written(&mut self) -> Result<bool, ChunkError> {
        let relation = self.target.table.copied_into();
        let for_binary = commit::binary(self.target, self.chunk);
        let unchanged = unchanged::lock_and_compare(self.session, relation, for_binary, &[]).await;
        self.or_fail(unchanged).await
    }

    /// Sends the rows in the form that was made for them, if there is one and the server takes them all.
    async fn copy_certain(&mut self) -> Result<bool, ChunkError> {
        let Some(faster) = &self.chunk.faster else { return Ok(false) };
        let pieces: Vec<Bytes> =
            faster.parcels.iter().flat_map(|parcel| parcel.pieces.iter().cloned()).collect();
        self.save().await?;
        if !self.is_as_written().await? {
            return Ok(false);
        }
        let rows = self.chunk.origin.records.saturating_sub(self.chunk.aside.len() as u64);
        let sql = commit::copy_sql(self.target, self.chunk, None)?;
        Ok(self.try_copy(&sql, &pieces, rows).await?.is_none())
    }

    /// Takes those of the rows out that a constraint refuses. Where that cannot be asked all are left.
    pub(super) async fn ask(
        &mut self,
        probe: &Probe,
        places: &Places<'_>,
        rows: Vec<u64>,
        refused: &mut Vec<Refused>,
    ) -> Result<Vec<u64>, ChunkError> {
        self.save().await?;
        if !self.is_current(probe).await? {
            return Ok(rows);
        }
        let Some(broken) = self.broken(probe, places, &rows).await? else {
            self.spoil();
            return Ok(rows);
        };
        Ok(without(rows, broken, refused))
    }

    /// Puts the rows into the temporary table and asks. `None`: the server has refused something, and the
    /// transaction is aborted.
    async fn broken(
        &mut self,
        probe: &Probe,
        places: &Places<'_>,
        rows: &[u64],
    ) -> Result<Option<Vec<Broken>>, ChunkError> {
        let Some(placed) = probe.placed() else { return Ok(None) };
        match self.session.client().batch_execute(&probe.of_rows.make_sql).await {
            Ok(()) => {}
            Err(error) if error.as_db_error().is_some() => return Ok(None),
            Err(error) => return Err(self.fail(&error).await),
        }
        let stored = self.stored;
        for some in rows.chunks(Placed::rows_at_once(rows.len(), self.chunk.bytes.len())) {
            let placed_rows = some.iter().map(|row| (*row, places.of(*row)));
            let pieces = placed.pieces(&self.chunk.bytes, placed_rows);
            let refusal = self.try_copy(&placed.sql, &pieces, some.len() as u64).await?;
            // These are not in the table.
            (self.stored, self.unmarked) = (stored, false);
            if refusal.is_some() {
                return Ok(None);
            }
        }
        self.answer(probe, &probe.of_rows).await
    }

    /// The same about rows in binary, by their keys; about the suspects alone if these are told.
    async fn ask_keys(
        &mut self,
        asked: Asked<'_>,
        written: &Written<'_>,
        rows: Vec<u64>,
        suspects: &[u64],
        refused: &mut Vec<Refused>,
    ) -> Result<Vec<u64>, ChunkError> {
        let Some(first) = rows.first().filter(|_| rows.len() >= ASKED_MIN) else { return Ok(rows) };
        let chosen = asked.keys.are_told().then_some(suspects);
        if chosen.is_some_and(<[u64]>::is_empty) {
            return Ok(rows);
        }
        self.told = Some(0);
        self.save().await?;
        if !self.is_current(asked.probe).await? {
            return Ok(rows);
        }
        let Some(broken) = self.broken_keys(asked, written, *first, chosen).await? else {
            self.spoil();
            return Ok(rows);
        };
        if chosen.is_none() && !broken.is_empty() {
            // Those that repeat another of the chunk are not among the rows any more.
            let mut left = broken.iter().filter(|broken| rows.binary_search(&broken.row).is_ok());
            asked.keys.set_told(left.all(|broken| suspects.binary_search(&broken.row).is_ok()));
        }
        let before = refused.len();
        let left = without(rows, broken, refused);
        self.told = Some(refused.len() - before);
        Ok(left)
    }

    /// As [`Salvage::broken`], of the keys of all rows from this one on, or of those that are chosen.
    async fn broken_keys(
        &mut self,
        asked: Asked<'_>,
        written: &Written<'_>,
        first: u64,
        chosen: Option<&[u64]>,
    ) -> Result<Option<Vec<Broken>>, ChunkError> {
        let Asked { probe, keys } = asked;
        match self.session.client().batch_execute(&keys.question.make_sql).await {
            Ok(()) => {}
            Err(error) if error.as_db_error().is_some() => return Ok(None),
            Err(error) => return Err(self.fail(&error).await),
        }
        let (stored, mut next) = (self.stored, first);
        loop {
            let Some(some) = written.keys(&keys.fields, next, chosen) else { return Ok(None) };
            if some.rows == 0 {
                break;
            }
            let refusal = self.try_copy(&keys.copy_sql, &some.pieces, some.rows).await?;
            // These are not in the table.
            (self.stored, self.unmarked) = (stored, false);
            if refusal.is_some() {
                return Ok(None);
            }
            next = some.next;
        }
        self.answer(probe, &keys.question).await
    }

    /// What the table has against the rows in the question's temporary table. `None`: the server has refused
    /// something, and the transaction is aborted.
    async fn answer(
        &mut self,
        probe: &Probe,
        question: &Question,
    ) -> Result<Option<Vec<Broken>>, ChunkError> {
        match probe.ask(self.session, question).await {
            Ok(broken) => Ok(Some(broken)),
            Err(error) if error.sqlstate().is_some() => Ok(None),
            Err(error) => {
                self.session.abandon();
                Err(error.into())
            }
        }
    }
}

/// The rows that nothing is broken by; the others are refused.
fn without(mut rows: Vec<u64>, broken: Vec<Broken>, refused: &mut Vec<Refused>) -> Vec<u64> {
    let mut errors: HashMap<u64, Error> =
        broken.into_iter().map(|broken| (broken.row, broken.error)).collect();
    rows.retain(|row| match errors.remove(row) {
        Some(error) => {
            refused.push(Refused { row: *row, error });
            false
        }
        None => true,
    });
    rows
}
