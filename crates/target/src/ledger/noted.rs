//! What this process has written into the journal itself. Where others may write there too, nothing else of
//! it is believed: its statements run with the rights of whoever puts back.

use super::{Believed, Held, Ledger, NewUndo, Thing, Undo};
use crate::session::Session;
use howdah_model::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::Arc;

/// Shared by all copies of a [`Ledger`]. In the order of the changes; some hundreds at most.
#[derive(Debug, Clone, Default)]
pub(super) struct Noted(Arc<Mutex<Vec<Note>>>);

#[derive(Debug, PartialEq, Eq)]
enum Note {
    Change(String, NewUndo),
    Held(String, Thing, String),
}

impl Noted {
    pub(super) fn change(&self, job_id: &str, change: &NewUndo) {
        self.add(Note::Change(job_id.to_owned(), change.clone()));
    }

    pub(super) fn held(&self, job_id: &str, thing: &Thing, during: &str) {
        self.add(Note::Held(job_id.to_owned(), thing.clone(), during.to_owned()));
    }

    fn add(&self, note: Note) {
        let mut notes = self.0.lock();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// What the job was told to put back, in the order in which that is done.
    fn changes(&self, job_id: &str) -> Vec<NewUndo> {
        let notes = self.0.lock();
        let of_job = notes.iter().filter_map(|note| match note {
            Note::Change(job, change) if job == job_id => Some(change.clone()),
            _ => None,
        });
        let mut changes: Vec<NewUndo> = of_job.collect();
        changes.sort_by(|a, b| (a.kind, &a.relation, &a.name).cmp(&(b.kind, &b.relation, &b.name)));
        changes
    }

    fn has_change(&self, undo: &Undo) -> bool {
        self.0.lock().contains(&Note::Change(undo.job_id.clone(), undo.change.clone()))
    }

    fn has_held(&self, held: &Held) -> bool {
        self.0.lock().contains(&Note::Held(held.job_id.clone(), held.thing.clone(), held.during.clone()))
    }
}

/// A change of a job, and whether it is not undone.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) undo: Undo,
    pub(crate) open: bool,
}

/// Changes of a job that are not undone.
#[derive(Debug, Default)]
pub struct OwnUndos {
    /// Those that may be.
    pub believed: Vec<Undo>,
    /// Those that others may have written.
    pub doubted: Vec<Undo>,
    /// The roles, quoted, for whose sake the others are doubted.
    pub doubted_for: Vec<String>,
}

impl Ledger {
    /// Changes of this job that are not undone. Where strangers may write the journal, those are believed
    /// that this process has noted.
    ///
    /// # Errors
    /// Ledger, where the journal is gone though this process has written there; those of the session.
    pub async fn own_undos(&self, session: &Session, job_id: &str) -> Result<OwnUndos> {
        let open = match self.journal(session, Some(job_id)).await? {
            Some(open) => open,
            None => self
                .noted
                .changes(job_id)
                .is_empty()
                .then(Vec::new)
                .ok_or_else(|| self.journal_gone(job_id))?,
        };
        let is_noted = open.iter().all(|undo| self.noted.has_change(undo));
        let doubted_for = self.doubted_unless(session, is_noted).await?;
        let is_believed = |undo: &Undo| doubted_for.is_empty() || self.noted.has_change(undo);
        let (believed, doubted) = open.into_iter().partition(is_believed);
        Ok(OwnUndos { believed, doubted, doubted_for })
    }

    /// All changes of the job of this one, undone or not, in the order in which they were made, as far as
    /// they are to be believed like this one.
    pub(crate) async fn changes_of_its_job(&self, session: &Session, entry: &Undo) -> Result<Vec<Known>> {
        let mut changes = self.all_of_job(session, &entry.job_id).await?;
        // What was noted in one transaction is noted altogether.
        if self.noted.has_change(entry) {
            changes.retain(|known| self.noted.has_change(&known.undo));
        }
        Ok(changes)
    }

    /// For whose sake entries are not believed. Of those that this process has noted, that is not asked.
    async fn doubted_unless(&self, session: &Session, is_noted: bool) -> Result<Vec<String>> {
        if is_noted { Ok(Vec::new()) } else { self.doubted_for(session, Believed::Journal).await }
    }

    /// Nobody but this process knows what it has changed.
    fn journal_gone(&self, job_id: &str) -> Error {
        let changes = self.noted.changes(job_id);
        let names: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let statements: Vec<&str> =
            changes.iter().flat_map(|change| &change.statements).map(String::as_str).collect();
        let message = format!(
            "the journal of the ledger in schema {} is gone, or not for this role any more, and nothing is put back of what this load \
             has changed: {}",
            self.quoted,
            names.join(", ")
        );
        Error::new(ErrorKind::Ledger, message)
            .with_hint(format!("run what is still missing of this by hand: {}", statements.join("; ")))
    }

    /// Settings that it holds, of which the same are believed.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn own_held(&self, session: &Session, job_id: &str) -> Result<Vec<Held>> {
        let mut held = self.held(session, Some(job_id)).await?;
        let is_noted = held.iter().all(|held| self.noted.has_held(held));
        let doubted_for = self.doubted_unless(session, is_noted).await?;
        held.retain(|held| doubted_for.is_empty() || self.noted.has_held(held));
        Ok(held)
    }
}
