//! What is known of the tables' constraints once rows have broken some, for all sessions of a load.

use howdah_model::{ErrorKind, Result, TablePlan};
use howdah_target::salvage::probe::Probe;
use howdah_target::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// If a chunk had so many rows that broke constraints, the rows of the next one are asked about before any is sent.
const BROKEN_MIN: usize = 64;

/// By the number of the table in the plan.
#[derive(Default)]
pub(crate) struct Probes {
    /// One session reads what a table demands, the others wait for it.
    read: tokio::sync::Mutex<BTreeMap<u32, Option<Arc<Probe>>>>,
    broken: Mutex<BTreeSet<u32>>,
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
        let probe = match Probe::read(session, plan).await {
            Ok(probe) => probe.map(Arc::new),
            Err(error) if error.kind() == ErrorKind::ConnectionLost => return Err(error),
            Err(_) => None,
        };
        read.insert(table_no, probe.clone());
        Ok(probe)
    }

    /// A chunk had so many rows that broke constraints.
    pub(crate) fn saw(&self, table_no: u32, broken: usize) {
        let mut tables = self.broken();
        if broken >= BROKEN_MIN {
            tables.insert(table_no);
        } else {
            tables.remove(&table_no);
        }
    }

    /// The next chunk is likely to have some, too.
    pub(crate) fn are_broken(&self, table_no: u32) -> bool {
        self.broken().contains(&table_no)
    }

    fn broken(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
