//! What this process has written into the journal itself. Where others may write there too, nothing else of it is believed: its
//! statements run with the rights of whoever puts back.

use super::{Held, Ledger, NewUndo, Thing, Undo};
use crate::ledger::Believed;
use crate::session::Session;
use howdah_model::Result;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tokio::try_join;

/// Shared by all copies of a [`Ledger`].
#[derive(Debug, Clone, Default)]
pub(super) struct Noted(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    own: HashSet<Note>,
    /// Entries of its job that are not believed: they stay open when it ends.
    passed_over: BTreeSet<i64>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Note {
    Change(String, NewUndo),
    Held(String, Thing, String),
}

impl Noted {
    pub(super) fn change(&self, job_id: &str, change: &NewUndo) {
        self.0.lock().own.insert(Note::Change(job_id.to_owned(), change.clone()));
    }

    pub(super) fn held(&self, job_id: &str, thing: &Thing, during: &str) {
        self.0.lock().own.insert(Note::Held(job_id.to_owned(), thing.clone(), during.to_owned()));
    }

    /// The numbers of entries that are left open, as the elements of an array.
    pub(super) fn passed_over(&self) -> String {
        let numbers: Vec<String> = self.0.lock().passed_over.iter().map(i64::to_string).collect();
        numbers.join(",")
    }

    fn has_change(&self, undo: &Undo) -> bool {
        self.0.lock().own.contains(&Note::Change(undo.job_id.clone(), undo.change.clone()))
    }

    fn has_held(&self, held: &Held) -> bool {
        self.0.lock().own.contains(&Note::Held(held.job_id.clone(), held.thing.clone(), held.during.clone()))
    }
}

impl Ledger {
    /// Changes of this job that are not undone, and may be: where strangers may write the journal, those that this process has noted.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn own_undos(&self, session: &Session, job_id: &str) -> Result<Vec<Undo>> {
        let open = self.open_undos(session, Some(job_id));
        let (mut open, strangers) = try_join!(open, self.writers(session, Believed::Journal))?;
        if !strangers.is_empty() {
            let (own, others): (Vec<Undo>, Vec<Undo>) =
                open.into_iter().partition(|undo| self.noted.has_change(undo));
            self.noted.0.lock().passed_over.extend(others.iter().map(|undo| undo.number));
            open = own;
        }
        Ok(open)
    }

    /// The same of settings that it holds.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn own_held(&self, session: &Session, job_id: &str) -> Result<Vec<Held>> {
        let held = self.held(session, Some(job_id));
        let (mut held, strangers) = try_join!(held, self.writers(session, Believed::Journal))?;
        held.retain(|held| strangers.is_empty() || self.noted.has_held(held));
        Ok(held)
    }
}
