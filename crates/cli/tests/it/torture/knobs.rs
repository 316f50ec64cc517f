//! Options that say how a load goes about it, and not what comes of it.

use super::mode::{Mode, OnError};
use super::reject_file;
use super::shape::Shape;
use fastrand::Rng;

/// What is drawn of them.
#[derive(Debug, Clone)]
pub(super) struct Knobs {
    pub(super) jobs: u64,
    pub(super) chunk_kb: u64,
    pub(super) indexes: &'static str,
    pub(super) triggers: &'static str,
    pub(super) encode: &'static str,
    pub(super) partitions: &'static str,
    pub(super) ledger: &'static str,
    /// It retries, instead of ending at the first failure.
    pub(super) patient: bool,
    /// How far it goes with settings.
    pub(super) tune: Option<&'static str>,
    pub(super) after: Option<&'static str>,
    pub(super) toast_compression: &'static str,
    pub(super) memory: &'static str,
    /// How sources and table are compared in the end.
    pub(super) verify: Option<&'static str>,
    /// What becomes of NUL bytes.
    pub(super) nul: &'static str,
    /// What is left out is written to a file.
    pub(super) reject_file: bool,
    /// A bound that is not reached.
    pub(super) bounded: bool,
    /// The type of the ids of a table that the load makes, if it is told.
    pub(super) id_type: Option<&'static str>,
    /// A table that the load makes gets a primary key.
    pub(super) keyed: bool,
}

fn one_of<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(..all.len())]
}

impl Knobs {
    pub(super) fn draw(random: &mut Rng, shape: Shape, mode: Mode, is_superuser: bool) -> Knobs {
        // The client has to know the partition of each row.
        let is_routed = matches!(shape, Shape::Partitioned | Shape::Rest) && mode.arrival.is_frozen();
        let indexes: &[&str] =
            if mode.is_staged() { &["auto", "keep"] } else { &["auto", "keep", "rebuild", "rebuild"] };
        // A row that no trigger has changed is another one than the model's.
        let must_fire = mode.is_staged() || shape.is_amended();
        let triggers: &[&str] = if must_fire { &["keep"] } else { &["keep", "disable"] };
        let partitions: &[&str] = if is_routed { &["direct"] } else { &["auto", "direct", "parent"] };
        // What stored a row leaves no trace where the row is written anew.
        let verify: &[Option<&str>] = match shape {
            Shape::Narrow => &[None],
            // A value that a trigger has changed is a difference.
            Shape::Amended => &[None, Some("count")],
            _ => &[None, None, Some("count"), Some("checksum")],
        };
        let is_made = shape == Shape::Absent;
        let tune: &[Option<&str>] = if is_superuser {
            &[Some("server"), Some("server"), Some("table"), None]
        } else {
            &[None, Some("none"), Some("session"), Some("table"), Some("table")]
        };
        Knobs {
            jobs: random.u64(1..=4),
            chunk_kb: one_of(random, &[64, 100, 256]),
            indexes: one_of(random, indexes),
            triggers: one_of(random, triggers),
            encode: one_of(random, &["auto", "auto", "csv", "text", "binary"]),
            partitions: one_of(random, partitions),
            ledger: one_of(random, &["howdah", "howdah", "night \"shift\"; --"]),
            patient: random.u8(..3) == 0,
            tune: one_of(random, tune),
            after: one_of(
                random,
                &[None, None, Some("analyze"), Some("vacuum"), Some("checkpoint"), Some("none")],
            ),
            toast_compression: one_of(random, &["auto", "auto", "keep"]),
            memory: one_of(random, &["256MB", "64MB"]),
            verify: one_of(random, verify),
            nul: one_of(random, &["reject", "reject", "strip", "replace"]),
            bounded: mode.on_error == OnError::Skip && random.bool(),
            id_type: if is_made { one_of(random, &[None, Some("bigint")]) } else { None },
            keyed: is_made && random.bool(),
            reject_file: reject_file::draw(random, mode.on_error),
        }
    }

    /// Options of the command.
    pub(super) fn arguments(&self) -> Vec<String> {
        let (jobs, chunk) = (self.jobs.to_string(), format!("{}kB", self.chunk_kb));
        let always = [
            ("--jobs", jobs.as_str()),
            ("--chunk-size", &chunk),
            ("--indexes", self.indexes),
            ("--triggers", self.triggers),
            ("--encode", self.encode),
            ("--partitions", self.partitions),
            ("--ledger", self.ledger),
            ("--retry-for", if self.patient { "5min" } else { "0s" }),
            ("--toast-compression", self.toast_compression),
            ("--memory", self.memory),
            ("--nul", self.nul),
        ];
        let types = self.id_type.map(|name| format!("id={name}"));
        let sometimes = [
            ("--tune", self.tune),
            ("--after", self.after),
            ("--verify", self.verify),
            ("--max-errors", self.bounded.then_some("40%")),
            ("--types", types.as_deref()),
            ("--primary-key", self.keyed.then_some("id")),
        ];
        let sometimes = sometimes.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let words = always.into_iter().chain(sometimes);
        words.flat_map(|(name, value)| [name.to_owned(), value.to_owned()]).collect()
    }
}
