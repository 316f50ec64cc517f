//! The ways a file is loaded: how it is stored, how it is cut, by how many sessions.

use fastrand::Rng;
use howdah_engine::model::{EncodeChoice, Header, Taper};
use howdah_testkit::NastyFile;
use howdah_testkit::compress;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::JoinHandle;

/// How the bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Cut by ranges and read in parallel.
    Plain,
    Gzip,
    GzipMembers,
    Zstd,
    /// Cannot be read twice.
    Fifo,
}

/// Encodings in which fields cannot be left out.
const EMBEDDING_ASCII: [&str; 7] = ["SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "GB18030", "UHC", "JOHAB"];

/// Columns of text are cheapest as text: the other forms are asked for.
const ENCODES: [EncodeChoice; 4] =
    [EncodeChoice::Auto, EncodeChoice::Csv, EncodeChoice::Binary, EncodeChoice::Binary];

/// One way to load a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variant {
    pub(super) source: Source,
    pub(super) chunk_bytes: u64,
    /// Ranges become smaller towards the end of the file.
    pub(super) tapers: bool,
    pub(super) rises: bool,
    pub(super) jobs: u32,
    pub(super) encode: EncodeChoice,
    pub(super) ledger: bool,
    /// Columns come from the header instead of from the job.
    pub(super) by_name: bool,
    /// The table lacks the last column, so that records are rewritten.
    pub(super) without_last: bool,
}

impl Variant {
    /// Three ways: ranges in tiny chunks side by side; a stream in order; and any other.
    pub(super) fn draw(seed: u64, file: &NastyFile) -> [Variant; 3] {
        let mut rng = Rng::with_seed(seed ^ 0x006f_7261_636c_6500);
        let streams = [Source::Gzip, Source::GzipMembers, Source::Zstd, Source::Fifo];
        let all = [Source::Plain, Source::Plain, Source::Gzip, Source::GzipMembers, Source::Fifo];
        let by_name = file.format.header == Header::Names && !file.header_is_damaged;
        // What the rewriter takes.
        let droppable = by_name
            && file.columns.len() > 1
            && file.format.default.is_none()
            && !EMBEDDING_ASCII.contains(&file.format.encoding.as_deref().unwrap_or_default());
        let mut way = |sources: &[Source], chunk_bytes: &[u64], jobs: &[u32]| {
            let without_last = droppable && rng.bool();
            Variant {
                source: sources[rng.usize(..sources.len())],
                chunk_bytes: chunk_bytes[rng.usize(..chunk_bytes.len())],
                jobs: jobs[rng.usize(..jobs.len())],
                encode: ENCODES[rng.usize(..ENCODES.len())],
                ledger: rng.u32(..100) < 25,
                by_name: without_last || by_name && rng.bool(),
                without_last,
                tapers: rng.bool(),
                rises: rng.bool(),
            }
        };
        [
            way(&[Source::Plain], &[16, 64, 300], &[3]),
            way(&streams, &[16, 64, 300, 4096], &[1]),
            way(&all, &[1, 16, 65, 100, 300, 4096, 1 << 20], &[1, 3]),
        ]
    }
}

impl Variant {
    /// As a plan says it, small enough for these files.
    pub(super) fn taper(&self) -> Option<Taper> {
        let least_bytes = self.chunk_bytes.div_ceil(8);
        self.tapers.then_some(Taper {
            in_order_bytes: self.chunk_bytes,
            least_bytes,
            share: 4,
            rises: self.rises,
        })
    }
}

impl Source {
    pub(super) fn ending(self) -> &'static str {
        match self {
            Source::Plain => "",
            Source::Gzip => ".gz",
            Source::GzipMembers => ".members.gz",
            Source::Zstd => ".zst",
            Source::Fifo => ".fifo",
        }
    }

    pub(super) fn write(self, path: &Path, bytes: &[u8]) -> Written {
        let stored = match self {
            Source::Plain => bytes.to_vec(),
            Source::Gzip => compress::gzip(bytes),
            Source::GzipMembers => compress::gzip_members(bytes),
            Source::Zstd => compress::zstd(bytes),
            Source::Fifo => return Written(Some(pipe(path, bytes.to_vec()))),
        };
        std::fs::write(path, stored).unwrap();
        Written(None)
    }
}

/// A source that is there until [`Written::finish`].
pub(super) struct Written(Option<JoinHandle<()>>);

impl Written {
    pub(super) fn finish(self, path: &Path) {
        if let Some(writer) = self.0 {
            // Lets a writer go whose pipe nobody has opened.
            drop(OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path).unwrap());
            writer.join().unwrap();
        }
        std::fs::remove_file(path).unwrap();
    }
}

/// `O_NONBLOCK` of `open(2)`.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

fn pipe(path: &Path, bytes: Vec<u8>) -> JoinHandle<()> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let path = path.to_owned();
    // A reader that has seen enough closes the pipe early; that is not the writer's failure.
    std::thread::spawn(move || drop(std::fs::write(path, bytes)))
}
