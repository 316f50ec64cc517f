//! Values that a column which others made may not take, and the type that it must get for their sake.
//!
//! Values enter one by one. Those that a type of another kind is known to hold say so themselves; of those
//! that only text would hold the server is asked: it reads more than inference does (`007` as an integer,
//! `NaN` as a number, `20240131` as a date). It is also asked which of them it would round (`+1.255` in a
//! `numeric(5,2)`).

use crate::widen::{
    any_number, characters, count_characters, drops_zone_or_day, is_number, needed, without_limit,
};
use howdah_model::{Relation, Result};
use howdah_target::define;
use howdah_target::session::Session;
use howdah_transcode::infer::{ColumnState, Inferred, are_plain_numbers, misfit};
use std::collections::BTreeSet;

/// Different values that the server is asked about, of one column and one chunk: with short ones a megabyte.
/// Others are left to COPY.
const ASKED_MAX: usize = 10_000;
/// Longer values are left to COPY.
const ASKED_BYTES_MAX: usize = 1000;

/// Those of one column.
pub(crate) struct Misfits {
    has: String,
    /// Of strings, how many characters it takes, and whether some value has more.
    limit: Option<usize>,
    is_long: bool,
    /// What the column surely does not hold.
    refused: ColumnState,
    /// Each of these is a number.
    are_numbers: bool,
    doubtful: BTreeSet<String>,
}

impl Misfits {
    /// For a column of this type.
    pub(crate) fn new(has: &str) -> Misfits {
        Misfits {
            has: has.to_owned(),
            limit: characters(has),
            is_long: false,
            refused: ColumnState::default(),
            are_numbers: is_number(has),
            doubtful: BTreeSet::new(),
        }
    }

    /// The type that the column has.
    pub(crate) fn has(&self) -> &str {
        &self.has
    }

    /// Takes in a value that is not NULL.
    pub(crate) fn observe(&mut self, value: &[u8]) {
        if let Some(limit) = self.limit {
            self.is_long |= count_characters(value) > limit;
            return;
        }
        let state = of(value);
        let Some(wanted) = needed(&self.has, &state) else { return };
        let is_certain = misfit(&state, &self.has).is_some() || drops_zone_or_day(&self.has, &state);
        if wanted.type_name != "text" || is_certain {
            self.are_numbers &= are_plain_numbers(&state);
            self.refused.join(&state);
        } else if self.doubtful.len() < ASKED_MAX
            && value.len() <= ASKED_BYTES_MAX
            && let Ok(value) = std::str::from_utf8(value)
            && !self.doubtful.contains(value)
        {
            self.doubtful.insert(value.to_owned());
        }
    }

    /// What this column of the table must become; `None`: it takes all values, or COPY is to say that it does
    /// not.
    ///
    /// # Errors
    /// Those of the session.
    pub(crate) async fn needed(
        &self,
        session: &Session,
        relation: &Relation,
        column: &str,
    ) -> Result<Option<Inferred>> {
        if let Some(limit) = self.limit {
            return Ok(self.is_long.then(|| without_limit(limit)));
        }
        let (mut refused, mut are_numbers) = (self.refused.clone(), self.are_numbers);
        let values: Vec<&str> = self.doubtful.iter().map(String::as_str).collect();
        if !values.is_empty() {
            for refusal in define::not_taken(session, relation, column, &self.has, &values).await? {
                if let Some(value) = values.get(refusal.no) {
                    let state = of(value.as_bytes());
                    are_numbers &= refusal.is_number || are_plain_numbers(&state);
                    refused.join(&state);
                }
            }
        }
        Ok(needed(&self.has, &refused).map(|wanted| match wanted.type_name == "text" && are_numbers {
            true => any_number(wanted),
            false => wanted,
        }))
    }
}

fn of(value: &[u8]) -> ColumnState {
    let mut state = ColumnState::default();
    state.observe(value);
    state
}
