//! What this process has written into the journal itself. Where others may write there too, nothing else of it is believed: its
//! statements run with the rights of whoever puts back.

use super::{Believed, Held, Ledger, NewUndo, Thing, Undo};
use crate::session::Session;
use howdah_model::Result;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::try_join;

/// Shared by all copies of a [`Ledger`].
#[derive(Debug, Clone, Default)]
pub(super) struct Noted(Arc<Mutex<HashSet<Note>>>);

#[derive(Debug, PartialEq, Eq, Hash)]
enum Note {
    Change(String, NewUndo),
    Held(String, Thing, String),
}

impl Noted {
    pub(super) fn change(&self, job_id: &str, change: &NewUndo) {
        self.0.lock().insert(Note::Change(job_id.to_owned(), change.clone()));
    }

    pub(super) fn held(&self, job_id: &str, thing: &Thing, during: &str) {
        self.0.lock().insert(Note::Held(job_id.to_owned(), thing.clone(), during.to_owned()));
    }

    fn has_change(&self, undo: &Undo) -> bool {
        self.0.lock().contains(&Note::Change(undo.job_id.clone(), undo.change.clone()))
    }

    fn has_held(&self, held: &Held) -> bool {
        self.0.lock().contains(&Note::Held(held.job_id.clone(), held.thing.clone(), held.during.clone()))
    }
}

/// Changes of a job that are not undone.
#[derive(Debug, Default)]
pub struct OwnUndos {
    /// Those that may be.
    pub believed: Vec<Undo>,
    /// Those that others may have written.
    pub doubted: Vec<Undo>,
    /// The roles, quoted, that may write the journal.
    pub doubted_for: Vec<String>,
}

impl Ledger {
    /// Changes of this job that are not undone. Where strangers may write the journal, those are believed that this process has noted.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn own_undos(&self, session: &Session, job_id: &str) -> Result<OwnUndos> {
        let open = self.open_undos(session, Some(job_id));
        let (open, doubted_for) = try_join!(open, self.doubted_for(session, Believed::Journal))?;
        let is_believed = |undo: &Undo| doubted_for.is_empty() || self.noted.has_change(undo);
        let (believed, doubted) = open.into_iter().partition(is_believed);
        Ok(OwnUndos { believed, doubted, doubted_for })
    }

    /// Settings that it holds, of which the same are believed.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn own_held(&self, session: &Session, job_id: &str) -> Result<Vec<Held>> {
        let held = self.held(session, Some(job_id));
        let (mut held, doubted_for) = try_join!(held, self.doubted_for(session, Believed::Journal))?;
        held.retain(|held| doubted_for.is_empty() || self.noted.has_held(held));
        Ok(held)
    }
}
