//! A second load into the same table at the same time.
//!
//! One with files of its own is begun beside the first run that is struck, so that what strikes the server
//! strikes both; in the end it runs alone, until it is done. Its rows belong to the model.

use super::data::{self, Stuff};
use super::faults::Fault;
use super::knobs::Knobs;
use super::mode::Arrival;
use super::scenario::{Records, Scenario};
use super::shape::Shape;
use super::way::Way;
use fastrand::Rng;

/// Rows of its files have ids from here on, those of no other file.
const FIRST_ID: u64 = 10_000_000;
const FILES: u64 = 2;
const ROWS_OF_A_FILE: u64 = 1000;
/// What its files are called begins so.
pub(super) const NAME: &str = "beside";

/// What it is.
#[derive(Debug, Clone)]
pub(super) enum Beside {
    /// The same command, which nothing strikes, begun twice.
    Twice,
    /// A job of its own, with options of its own.
    Other(Box<Knobs>),
}

impl Beside {
    /// None in three of four loads, and where the one would take the other's rows or columns away.
    pub(super) fn draw(
        scenario: &Scenario,
        is_superuser: bool,
        fault: Fault,
        random: &mut Rng,
    ) -> Option<Beside> {
        let Scenario { shape, mode, knobs, flaws, places, .. } = scenario;
        let adds = match mode.arrival {
            Arrival::Append | Arrival::InsertNew { .. } => true,
            Arrival::Merge { deletes, .. } => !deletes,
            Arrival::Truncate { .. } | Arrival::Replace | Arrival::Make { .. } => false,
        };
        if !adds || *shape == Shape::Narrow || random.u8(..4) > 0 {
            return None;
        }
        // What is to be struck once a plan is made must not be taken for struck by another's plan.
        if places.len() > 1 || fault == Fault::Changed || random.u8(..3) == 0 {
            // What one brings to a named pipe, another would read.
            return (scenario.way != Way::Pipes).then_some(Beside::Twice);
        }
        let own = Knobs::draw(random, *shape, *mode, is_superuser);
        Some(Beside::Other(Box::new(Knobs {
            // Bad records may be found by keys alone.
            indexes: if flaws.is_empty() { own.indexes } else { "keep" },
            // Whether a trigger is silent is the table's, not the session's.
            triggers: knobs.triggers,
            ledger: knobs.ledger,
            nul: knobs.nul,
            patient: true,
            verify: None,
            // Rows that policies have to look at go by no way of their own.
            partitions: if scenario.guarded { "auto" } else { own.partitions },
            bounded: false,
            ..own
        })))
    }

    /// The records of its files, if it has any.
    pub(super) fn records(scenario: &Scenario, stuff: Stuff, random: &mut Rng) -> Vec<Records> {
        if !matches!(scenario.beside, Some(Beside::Other(_))) {
            return Vec::new();
        }
        let one = |no| Records {
            place: scenario.places[0],
            name: format!("{NAME}.{}", scenario.written.file_name(no as usize, scenario.files[0])),
            codec: scenario.files[0],
            records: data::records(random, FIRST_ID + no * ROWS_OF_A_FILE, ROWS_OF_A_FILE, stuff),
        };
        (0..FILES).map(one).collect()
    }
}
