//! What is known of the tables' constraints once rows have broken some, for all sessions of a load.

use howdah_model::{Error, ErrorKind, Result, TablePlan};
use howdah_target::salvage::SentKeys;
use howdah_target::salvage::probe::Probe;
use howdah_target::session::Session;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// If a chunk had so many rows that broke constraints, the rows of the next one are asked about before any is
/// sent.
const BROKEN_MIN: usize = 64;

/// By the number of the table in the plan.
#[derive(Default)]
pub(crate) struct Probes {
    /// One session reads what a table demands, the others wait for it.
    read: tokio::sync::Mutex<BTreeMap<u32, Option<Arc<Probe>>>>,
    expected: Mutex<BTreeMap<u32, Expected>>,
    sent: Arc<SentKeys>,
}

/// What the chunks of a table so far make expect of the next one.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    /// Many of its rows break constraints.
    are_broken: bool,
    /// COPY can leave these out.
    are_left_out: bool,
    /// It was tried, and COPY does not.
    never_left_out: bool,
    /// Rows in binary can be asked about by their keys.
    stay_written: bool,
    /// They had to be.
    are_asked: bool,
    /// Rows are refused that the server has to try itself.
    are_inserted: bool,
}

impl Probes {
    /// How the server is asked about rows of the table; `None` where it cannot be.
    ///
    /// # Errors
    /// `ConnectionLost`. Whatever else happens is a reason not to ask.
    pub(crate) async fn of(
        &self,
        session: &Session,
        table_no: u32,
        plan: &TablePlan,
    ) -> Result<Option<Arc<Probe>>> {
        let mut read = self.read.lock().await;
        if let Some(known) = read.get(&table_no) {
            return Ok(known.clone());
        }
        let probe = match Probe::read(session, plan, &self.sent).await {
            Ok(probe) => probe.map(Arc::new),
            Err(error) if error.kind() == ErrorKind::ConnectionLost => return Err(error),
            Err(_) => None,
        };
        read.insert(table_no, probe.clone());
        Ok(probe)
    }

    /// What the table demands has changed since it was read.
    pub(crate) async fn forget(&self, table_no: u32) {
        self.read.lock().await.remove(&table_no);
    }

    /// Rows of a chunk broke constraints, for these reasons.
    pub(crate) fn saw(&self, table_no: u32, probe: Option<&Probe>, broken: &[&Error], are_asked: bool) {
        let mut expected = self.expected.lock();
        let of_table = expected.entry(table_no).or_default();
        of_table.are_broken = broken.len() >= BROKEN_MIN;
        of_table.are_left_out = probe.is_some_and(|probe| probe.leaves_out(broken));
        of_table.stay_written = probe.is_some_and(Probe::asks_of_keys);
        of_table.are_asked = are_asked;
    }

    /// COPY cannot leave such rows out.
    pub(crate) fn leave_none_out(&self, table_no: u32) {
        self.expected.lock().entry(table_no).or_default().never_left_out = true;
    }

    /// The next chunk is likely to have some, too.
    pub(crate) fn are_broken(&self, table_no: u32) -> bool {
        self.expected.lock().get(&table_no).is_some_and(|of_table| of_table.are_broken)
    }

    /// And COPY can leave them out, so that it need not be taken apart before.
    pub(crate) fn are_left_out(&self, table_no: u32) -> bool {
        let expected = self.expected.lock();
        let of_table = expected.get(&table_no);
        of_table.is_some_and(|of_table| of_table.are_left_out && !of_table.never_left_out)
    }

    /// Rows in binary need not be taken apart before they are sent.
    pub(crate) fn keep_form(&self, table_no: u32) -> bool {
        self.are_left_out(table_no)
            || self.expected.lock().get(&table_no).is_some_and(|of_table| of_table.stay_written)
    }

    /// So many could not be told without asking that it is best to ask at once.
    pub(crate) fn are_asked(&self, table_no: u32) -> bool {
        self.expected.lock().get(&table_no).is_some_and(|of_table| of_table.are_asked)
    }

    /// Many rows of a chunk were refused that the server had to try itself, or not.
    pub(crate) fn set_inserted(&self, table_no: u32, are_inserted: bool) {
        self.expected.lock().entry(table_no).or_default().are_inserted = are_inserted;
    }

    /// The next chunk is likely to have some, too.
    pub(crate) fn are_inserted(&self, table_no: u32) -> bool {
        self.expected.lock().get(&table_no).is_some_and(|of_table| of_table.are_inserted)
    }
}
