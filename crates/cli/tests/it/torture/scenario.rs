//! One load, drawn from a seed: who loads which files into what, and how.

use super::beside::Beside;
use super::data::{self, FIRST_ID, Record, Stuff};
use super::faults::Fault;
use super::flaw::{self, Flaw};
use super::knobs::Knobs;
use super::mode::{Arrival, Keep, Mode, OnError};
use super::shape::Shape;
use super::way::{self, Way};
use super::world::{CHIEF, LOADER};
use super::writer;
use super::written::{Charset, Codec, Written};
use fastrand::Rng;

/// So many files are small ones.
const FILES_MANY: usize = 50;

/// All that is drawn before a load starts.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    /// Who loads, and owns the tables.
    pub(super) role: &'static str,
    /// Schemas with a table `t` each, all of them loaded by one command.
    pub(super) places: &'static [&'static str],
    pub(super) shape: Shape,
    pub(super) mode: Mode,
    pub(super) written: Written,
    /// Rows of all files together.
    pub(super) rows: u64,
    /// The encoding of the database.
    pub(super) server_encoding: &'static str,
    /// The codec of each file of a table.
    pub(super) files: Vec<Codec>,
    pub(super) way: Way,
    pub(super) knobs: Knobs,
    /// Policies apply to whoever loads, owner or not.
    pub(super) guarded: bool,
    /// What is wrong with some records.
    pub(super) flaws: Vec<Flaw>,
    /// One record in so many is bad.
    pub(super) flaw_every: u64,
    /// The files are checked before they are loaded, and that is struck, too.
    pub(super) checked: bool,
    /// A second load at the same time.
    pub(super) beside: Option<Beside>,
    /// Other people write into the table meanwhile.
    pub(super) others_write: bool,
}

/// The records of a file.
pub(super) struct Records {
    pub(super) place: &'static str,
    /// What the file is called.
    pub(super) name: String,
    pub(super) codec: Codec,
    pub(super) records: Vec<Record>,
}

impl Scenario {
    /// A load that this fault can strike.
    pub(super) fn draw(random: &mut Rng, fault: Fault) -> Scenario {
        // Some connections are kept for superusers, so that one of them does not run out of any.
        let is_superuser = random.u8(..4) == 0 && fault != Fault::NoConnections;
        let shape = Shape::draw(random);
        let mut written = Written::draw(random, !shape.needs_finding());
        let mode = Mode::draw(random, shape, written, fault);
        let needs_reading = shape.is_dated() || mode.arrival.is_frozen();
        if needs_reading {
            // Whoever makes or finds partitions has to read the rows.
            written.charset = Charset::Utf8;
        }
        let mut knobs = Knobs::draw(random, shape, mode, is_superuser);
        if written.is_told() {
            // COPY alone reads the files.
            knobs.nul = "reject";
        }
        let other_encoding =
            written.charset.of_database().filter(|_| random.bool() && !shape.has_foreign_key());
        let way = match Way::draw(random, fault) {
            // One load brings two tables.
            way if shape == Shape::Kin && way.is_once() => Way::Folder,
            way => way,
        };
        if way.is_once() && knobs.verify.is_some() {
            // Nothing can be read a second time.
            knobs.verify = Some("count");
        }
        let files = match random.u8(..8) {
            _ if way == Way::Input => 1,
            // So few records tell little of how they are written.
            0 if way != Way::Pipes && written.is_told() => FILES_MANY,
            _ => random.usize(1..=4),
        };
        let mut scenario = Scenario {
            role: if is_superuser { CHIEF } else { LOADER },
            // The names of a publication and of what else is known to all of a database come once.
            places: if (random.u8(..6) == 0 || shape == Shape::Kin) && shape != Shape::Laden && !way.is_once()
            {
                &["public", "other"]
            } else {
                &["public"]
            },
            shape,
            mode,
            written,
            rows: [4000, 4000, 8000, 16_000][random.usize(..4)],
            server_encoding: other_encoding.unwrap_or("UTF8"),
            files: (0..files).map(|_| Codec::ALL[random.usize(..Codec::ALL.len())]).collect(),
            way,
            knobs,
            guarded: false,
            flaws: Vec::new(),
            flaw_every: [2000, 500, 150][random.usize(..3)],
            checked: random.u8(..4) == 0,
            beside: None,
            others_write: false,
        };
        scenario.guard(random);
        scenario.flaws = Flaw::draw(&scenario, random);
        // A check does not tell what a trigger may fill.
        scenario.checked &= !shape.is_amended() || mode.on_error != OnError::Skip;
        scenario.beside = Beside::draw(&scenario, is_superuser, fault, random);
        scenario.others_write = writer::draw(&scenario, random);
        scenario
    }

    /// Row-level security in one of six loads, where none of its options is refused for that.
    fn guard(&mut self, random: &mut Rng) {
        let Mode { arrival, on_error, .. } = self.mode;
        let takes_table = matches!(arrival, Arrival::Replace | Arrival::Make { .. }) || arrival.is_frozen();
        // What queries about policies would have to tell ends the load.
        let asks = self.mode.is_staged() && on_error == OnError::Skip;
        self.guarded = self.role == LOADER && !takes_table && !asks && random.u8(..6) == 0;
        if self.guarded {
            (self.knobs.verify, self.knobs.partitions) = (None, "auto");
            self.checked &= on_error != OnError::Skip;
        }
    }

    /// Some files lack a column: where rows wait, or come in one transaction, all of them must fill the same
    /// ones.
    fn has_short_files(&self) -> bool {
        let needs_same = self.mode.is_staged() || self.mode.arrival.is_frozen() || self.checked;
        self.shape == Shape::Lean && !needs_same
    }

    /// What its rows are made of.
    pub(super) fn stuff(&self) -> Stuff {
        Stuff { charset: self.written.charset, wide: self.shape == Shape::Wide, days: self.shape.days() }
    }

    /// The records of all files, table by table.
    pub(super) fn records(&self, random: &mut Rng) -> Vec<Records> {
        let count = self.rows / (self.files.len() * self.places.len()) as u64;
        let stuff = self.stuff();
        let mut all = Vec::new();
        for place in self.places {
            let firsts = (0..self.files.len() as u64).map(|no| FIRST_ID + no * count);
            let mut files: Vec<_> = firsts.map(|first| data::records(random, first, count, stuff)).collect();
            if self.mode.arrival.keep() != Keep::Only {
                data::repeat_keys(random, &mut files, self.mode.arrival.keep() == Keep::Last);
            }
            if self.has_short_files() {
                let short = random.usize(..files.len());
                files[..short].iter_mut().flatten().for_each(Record::shorten);
            }
            flaw::spoil(random, &mut files, self);
            all.extend(files.into_iter().zip(&self.files).enumerate().map(|(no, (records, codec))| {
                Records { place, name: self.name(place, no, *codec), codec: *codec, records }
            }));
        }
        all
    }

    /// What a file is called.
    fn name(&self, place: &str, no: usize, codec: Codec) -> String {
        match self.way {
            Way::Input => way::INPUT.to_owned(),
            _ => format!("{place}.{}", self.written.file_name(no, codec)),
        }
    }

    /// Sources of the command, within their folder or bucket.
    pub(super) fn sources(&self) -> Vec<String> {
        let place = if self.places.len() == 1 { self.places[0] } else { "{table}" };
        self.files.iter().enumerate().map(|(no, codec)| self.name(place, no, *codec)).collect()
    }

    /// Options of the command, but for sources and where to.
    pub(super) fn arguments(&self) -> Vec<String> {
        let table = if self.places.len() == 1 { "t" } else { "{table}.t" };
        let words = ["--table", table].into_iter().chain(self.written.arguments());
        let words = words.chain(self.mode.arguments()).chain(self.shape.arguments().iter().copied());
        words.map(str::to_owned).chain(self.knobs.arguments()).collect()
    }
}
