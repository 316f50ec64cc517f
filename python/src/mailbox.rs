//! Events on their way from the load's threads to the Python thread that waits for it.
//!
//! Enters: [`Event`]s from many threads, which are never made to wait. Leaves: events in order, taken by one
//! thread. What a slow callback has not taken yet is added up, so that the mailbox stays small without
//! losing a row or byte; only remarks beyond [`REMARKS_MAX`] are dropped.

use howdah_engine::model::{Event, Listener};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Retries and notices kept for a callback that does not come back.
const REMARKS_MAX: usize = 1000;

/// One load's events.
pub(crate) struct Mailbox {
    /// Somebody wants to hear of events.
    wanted: AtomicBool,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// How many of them are remarks.
    remarks: usize,
    closed: bool,
}

/// What was in the mailbox.
pub(crate) struct Mail {
    /// In the order they happened.
    pub(crate) events: VecDeque<Event>,
    /// Nothing more will come.
    pub(crate) closed: bool,
}

impl Mailbox {
    /// An empty mailbox; events are thrown away unless wanted.
    pub(crate) fn new(wanted: bool) -> Mailbox {
        Mailbox { wanted: AtomicBool::new(wanted), state: Mutex::default(), arrived: Condvar::new() }
    }

    /// From now on events are kept.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Relaxed);
    }

    /// Waits for mail, at most this long, and takes it.
    pub(crate) fn take(&self, patience: Duration) -> Mail {
        let mut state = self.state.lock();
        self.arrived.wait_while_for(&mut state, |state| state.events.is_empty() && !state.closed, patience);
        state.remarks = 0;
        Mail { events: std::mem::take(&mut state.events), closed: state.closed }
    }

    /// The load has ended.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_all();
    }
}

impl Listener for Mailbox {
    fn on_event(&self, event: &Event) {
        if !self.wanted.load(Relaxed) {
            return;
        }
        let mut state = self.state.lock();
        state.put(event);
        drop(state);
        self.arrived.notify_all();
    }
}

impl State {
    fn put(&mut self, event: &Event) {
        // Adding to an event that waits further ahead keeps it before its file's `file_done`. What comes
        // behind a loss is no part of what was lost.
        let mut latest = self.events.iter_mut().rev().take_while(|waiting| !loses(waiting, event));
        if latest.any(|waiting| add(waiting, event)) {
            return;
        }
        if matches!(event, Event::Retry { .. } | Event::Notice { .. } | Event::Warning { .. }) {
            if self.remarks == REMARKS_MAX {
                return;
            }
            self.remarks += 1;
        }
        self.events.push_back(event.clone());
    }
}

/// The event that waits says that what was stored of the other one's file is lost.
fn loses(waiting: &Event, event: &Event) -> bool {
    match (waiting, event) {
        (Event::Lost { file_no, .. }, Event::Stored { file_no: file, .. }) => file_no == file,
        _ => false,
    }
}

/// Adds an event to one that waits, if they are of one kind and the sum tells the same.
fn add(waiting: &mut Event, event: &Event) -> bool {
    match (waiting, event) {
        (Event::Read { file_no, bytes }, Event::Read { file_no: file, bytes: more }) if file_no == file => {
            *bytes += more;
            true
        }
        (Event::Skipped { file_no, bytes }, Event::Skipped { file_no: file, bytes: more })
            if file_no == file =>
        {
            *bytes += more;
            true
        }
        (
            Event::Stored { file_no, rows, bytes, before },
            Event::Stored { file_no: file, rows: more_rows, bytes: more_bytes, before: earlier },
        ) if file_no == file && before == earlier => {
            *rows += more_rows;
            *bytes += more_bytes;
            true
        }
        // Of two samples the later counts.
        (waiting @ Event::Sessions { .. }, Event::Sessions { .. }) => {
            *waiting = event.clone();
            true
        }
        _ => false,
    }
}
