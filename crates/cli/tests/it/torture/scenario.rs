//! One load, drawn from a seed: files, table and options.

use super::data::{self, Charset, Codec, Format, Record};
use super::mode::Mode;
use super::shape::Shape;
use fastrand::Rng;

/// Rows of a load, over all its files.
const ROWS: u64 = 16_000;
/// Rows of files have ids from here on; smaller ones are for rows that were there before.
const FIRST_ID: u64 = 1000;

/// All that is drawn before a load starts.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    pub(super) shape: Shape,
    pub(super) mode: Mode,
    pub(super) format: Format,
    pub(super) charset: Charset,
    /// The codec of each file.
    pub(super) files: Vec<Codec>,
    /// They are objects of a bucket.
    pub(super) in_bucket: bool,
    pub(super) jobs: u64,
    pub(super) chunk_kb: u64,
    pub(super) indexes: &'static str,
    pub(super) triggers: &'static str,
    pub(super) encode: &'static str,
    pub(super) partitions: &'static str,
    pub(super) ledger: &'static str,
    /// It retries, instead of ending at the first failure.
    pub(super) patient: bool,
    /// How sources and table are compared in the end.
    pub(super) verify: Option<&'static str>,
    /// The files are checked before they are loaded, and that is struck, too.
    pub(super) checked: bool,
}

fn one_of<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(..all.len())]
}

impl Scenario {
    pub(super) fn draw(random: &mut Rng) -> Scenario {
        let files = random.usize(1..=4);
        let shape = Shape::draw(random);
        let mode = Mode::draw(random, shape);
        let triggers = one_of(random, &["keep", "disable"]);
        let indexes = one_of(random, &["auto", "keep", "rebuild", "rebuild"]);
        let charset = one_of(random, &[Charset::Utf8, Charset::Utf8, Charset::Latin1]);
        let partitions = one_of(random, &["auto", "direct", "parent"]);
        // The client has to know the partition of each row.
        let is_routed = shape == Shape::Partitioned && mode == Mode::Truncate { freeze: true };
        Scenario {
            shape,
            mode,
            format: one_of(random, &[Format::Csv, Format::Csv, Format::Text]),
            charset: if is_routed { Charset::Utf8 } else { charset },
            files: (0..files).map(|_| one_of(random, &[Codec::Plain, Codec::Gzip, Codec::Zstd])).collect(),
            in_bucket: random.u8(..3) == 0,
            jobs: random.u64(1..=4),
            chunk_kb: one_of(random, &[64, 100, 256]),
            indexes: if mode.is_staged() { "auto" } else { indexes },
            triggers: if mode.is_staged() { "keep" } else { triggers },
            encode: one_of(random, &["auto", "csv", "text", "binary"]),
            partitions: if is_routed { "direct" } else { partitions },
            ledger: one_of(random, &["howdah", "howdah", "night \"shift\"; --"]),
            patient: random.u8(..3) == 0,
            verify: one_of(random, &[None, None, Some("count"), Some("checksum")]),
            checked: random.u8(..4) == 0,
        }
    }

    /// The records of each file.
    pub(super) fn records(&self, random: &mut Rng) -> Vec<Vec<Record>> {
        let count = ROWS / self.files.len() as u64;
        let file = |no: u64| {
            let wide = self.shape == Shape::Wide;
            data::records(random, FIRST_ID + no * count, count, self.charset, wide)
        };
        (0..self.files.len() as u64).map(file).collect()
    }

    /// What a file is called.
    pub(super) fn file_name(&self, no: usize) -> String {
        let format = if self.format == Format::Csv { "csv" } else { "txt" };
        format!("part{no}.{format}{}", self.files[no].suffix())
    }

    /// Options of the command, but for sources and where to.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut words: Vec<String> = match self.format {
            Format::Csv => vec!["--format", "csv", "--header"],
            Format::Text => vec!["--format", "text", "--columns", data::HEADER],
        }
        .into_iter()
        .map(str::to_owned)
        .collect();
        let (jobs, chunk) = (self.jobs.to_string(), format!("{}kB", self.chunk_kb));
        let pairs = [
            ("--encoding", if self.charset == Charset::Utf8 { "UTF8" } else { "LATIN1" }),
            ("--jobs", &jobs),
            ("--chunk-size", &chunk),
            ("--indexes", self.indexes),
            ("--triggers", self.triggers),
            ("--encode", self.encode),
            ("--partitions", self.partitions),
            ("--ledger", self.ledger),
            ("--retry-for", if self.patient { "30s" } else { "0s" }),
        ];
        words.extend(pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_owned()]));
        words.extend(self.verify.into_iter().flat_map(|by| ["--verify".to_owned(), by.to_owned()]));
        words.extend(self.mode.arguments());
        words
    }
}
