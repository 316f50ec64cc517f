//! A file that can be read anywhere, from one of its tables on: the sample of it, and where the next table
//! begins.
//!
//! The sample holds little of a long file. When its middle or its tail does not look like the first table,
//! the border is looked for by halving: some twenty small reads in a file of any length.

use super::finding::{Found, Windows, found_in, may_be_long};
use howdah_model::Result;
use howdah_source::Object;
use howdah_transcode::dialect::{Finding, Given, TABLE_END_BYTES, TableEnd, WINDOW_BYTES, copy_escape};

/// Bytes looked at to tell to which table they belong: some hundred records of most files.
const LOOK_BYTES: u64 = 16 << 10;

/// Files of tabs up to this size are read whole if nothing in their sample speaks against escapes, since one
/// may come later: one more read of a store, and a file that is found by all of it takes some 50 ms.
const ESCAPES_BYTES_MAX: u64 = 1 << 20;

const WINDOW: u64 = WINDOW_BYTES as u64;

/// The bytes of a file from one on, which are not compressed.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) object: &'a Object,
    pub(super) start_byte: u64,
}

impl Part<'_> {
    /// Finds how it is written. Of `head`, its first bytes, more are read if need be; with `all` they are all
    /// there are. Places in what is found are counted from the beginning of the part. What belongs to another
    /// table is left out of the sample.
    pub(super) async fn find(&self, head: Vec<u8>, all: bool, given: Given) -> Result<Found> {
        let stored_bytes = self.object.stored_bytes().map(|bytes| bytes.saturating_sub(self.start_byte));
        let size_bytes = stored_bytes.unwrap_or(head.len() as u64);
        let mut head = if all || head.len() >= WINDOW_BYTES {
            head
        } else {
            self.read(0, WINDOW.min(size_bytes)).await?
        };
        let mut long = None;
        let (mut found, whole, later) = loop {
            let windows = self.windows(head.clone(), all, size_bytes).await?;
            let whole = windows.whole;
            let later = [windows.middle.clone(), windows.tail.clone()];
            let found = found_in(windows, given.clone()).await?;
            let Some(bytes) = found.longer_head(head.len()) else { break (found, whole, later) };
            may_be_long(&mut long).await;
            let longer = self.read(0, size_bytes.min(bytes as u64)).await?;
            // A store that gives no more than that is not asked again and again.
            if longer.len() <= head.len() {
                break (found, whole, later);
            }
            head = longer;
        };
        if !whole && may_be_copy_text(&found.finding) && size_bytes <= ESCAPES_BYTES_MAX {
            let all = self.read(0, size_bytes).await?;
            if copy_escape(b'\t', all.get(WINDOW_BYTES..).unwrap_or_default()).is_some() {
                let windows = Windows {
                    head: all,
                    middle: Vec::new(),
                    tail: Vec::new(),
                    whole: true,
                    size_bytes: Some(size_bytes),
                };
                found = found_in(windows, given.clone()).await?;
                if found.finding.second_table.is_some() || !may_be_copy_text(&found.finding) {
                    return Ok(found);
                }
            }
        }
        if whole || found.finding.second_table.is_some() {
            return Ok(found);
        }
        let Some(byte) = self.other_table(&found.finding, size_bytes, &later).await? else {
            return Ok(found);
        };
        let windows = self.windows(head, false, byte).await?;
        let mut found = found_in(windows, given).await?;
        found.finding.end_before(byte);
        Ok(found)
    }

    /// The byte at which another table begins, its title included. `middle` and `tail` are those of the
    /// sample, which is not the whole part.
    async fn other_table(
        &self,
        finding: &Finding,
        size_bytes: u64,
        [middle, tail]: &[Vec<u8>; 2],
    ) -> Result<Option<u64>> {
        let end = TableEnd::of(finding);
        let tail_start = size_bytes.saturating_sub(tail.len() as u64);
        let behind = if end.is_before(finding, middle) {
            size_bytes / 2
        } else if end.is_before(finding, tail) {
            tail_start
        } else {
            return Ok(end.find(finding, tail, tail_start, true));
        };
        // The table holds the records at `within`, and none of those at `behind`.
        let (mut within, mut behind) = (finding.plain.start_byte, behind);
        while behind.saturating_sub(within) > WINDOW {
            let between = (within + (behind - within) / 2) & !1;
            let bytes = self.read(between, between + LOOK_BYTES).await?;
            if end.is_before(finding, &bytes) { behind = between } else { within = between }
        }
        let stop = (behind + WINDOW + TABLE_END_BYTES as u64).min(size_bytes);
        let bytes = self.read(within, stop).await?;
        Ok(end.find(finding, &bytes, within, stop == size_bytes))
    }

    /// The sample of the first `bytes`, of which the head was read, a window at least. Windows never overlap.
    async fn windows(&self, mut head: Vec<u8>, whole: bool, bytes: u64) -> Result<Windows> {
        head.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        let head_bytes = WINDOW.max(head.len() as u64);
        if whole || bytes <= head_bytes {
            let size_bytes = Some(head.len() as u64);
            return Ok(Windows { head, middle: Vec::new(), tail: Vec::new(), whole: true, size_bytes });
        }
        if bytes <= head_bytes + 2 * WINDOW {
            let rest = self.read(head.len() as u64, bytes).await?;
            let head = [head, rest].concat();
            let size_bytes = Some(head.len() as u64);
            return Ok(Windows { head, middle: Vec::new(), tail: Vec::new(), whole: true, size_bytes });
        }
        let tail_start = bytes.saturating_sub(WINDOW).max(head_bytes);
        // Even, so that characters of two bytes stay whole.
        let middle_start = (bytes / 2).saturating_sub(WINDOW / 2).max(head_bytes) & !1;
        let tail = self.read(tail_start & !1, bytes).await?;
        let middle_end = (middle_start + WINDOW).min(tail_start & !1);
        let middle = self.read(middle_start, middle_end).await?;
        Ok(Windows { head, middle, tail, whole: false, size_bytes: Some(bytes) })
    }

    /// The bytes from `start` to `end`, fewer where the file ends before.
    pub(super) async fn read(&self, start: u64, end: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
        if !bytes.is_empty() {
            let count = self.object.read_at(self.start_byte + start, &mut bytes).await?;
            bytes.truncate(count);
        }
        Ok(bytes)
    }
}

/// Tabs delimit, and nothing in the sample speaks for escapes or against them.
fn may_be_copy_text(finding: &Finding) -> bool {
    finding.dialect.delimiter == "\t" && finding.may_escape_with.contains(&None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use howdah_source::Sources;
    use std::fmt::Write as _;
    use std::path::Path;

    /// Of two of them most of the last text in the first window has as many commas as a record.
    const SEEDS: [u64; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 108, 193];

    const WORDS: [&str; 12] = [
        "the",
        "meeting",
        "was",
        "moved",
        "to",
        "Friday",
        "Anna",
        "will",
        "bring",
        "3",
        "reports",
        "2024-01-05",
    ];

    fn words(rng: &mut Rng, count: usize) -> String {
        (0..count).map(|_| WORDS[rng.usize(..WORDS.len())]).collect::<Vec<_>>().join(" ")
    }

    /// Lines of an e-mail: paragraphs, some of them with as many commas in each line.
    fn mail(rng: &mut Rng, lines: usize) -> String {
        let mut text = String::new();
        let mut no = 0;
        while no < lines {
            let (paragraph, style) = (rng.usize(1..12), rng.usize(..5));
            for _ in 0..paragraph {
                let count = rng.usize(3..9);
                let (one, other) = (words(rng, count), words(rng, 4));
                let _ = match style {
                    0 => writeln!(text, "{one}, {other}"),
                    1 => writeln!(text, "{one}, {other}, {}", words(rng, 2)),
                    2 => writeln!(text, "{one} \"\"{other}\"\" {}", words(rng, 2)),
                    _ if rng.usize(..4) == 0 => writeln!(text, "{one}, {other}"),
                    _ => writeln!(text, "{one} {other}"),
                };
            }
            text.push('\n');
            no += paragraph + 1;
        }
        text
    }

    /// A table of e-mails.
    fn mails(rng: &mut Rng) -> String {
        let mut text = "id,author,body\n".to_owned();
        let (bytes, long) = (rng.usize(250_000..600_000), rng.usize(60..300));
        for id in 1.. {
            if text.len() > bytes {
                break;
            }
            let lines = if rng.usize(..5) == 0 { 1 } else { rng.usize(20..=long) };
            let _ = writeln!(text, "{id},{},\"{}\"", WORDS[rng.usize(5..7)], mail(rng, lines));
        }
        text
    }

    /// Where the data is found to end.
    async fn end(folder: &Path, text: &str) -> Option<u64> {
        let path = folder.join("a.csv");
        std::fs::write(&path, text).unwrap();
        let objects = Sources::of_process().list(path.to_str().unwrap()).await.unwrap();
        let part = Part { object: &objects[0], start_byte: 0 };
        part.find(Vec::new(), false, Given::default()).await.unwrap().finding.plain.end_byte
    }

    /// A text in quotes may look like another table, in a window that begins and ends inside it.
    #[tokio::test]
    async fn lines_of_a_text_in_quotes_are_no_other_table() {
        let folder = tempfile::tempdir().unwrap();
        let mut found = 0;
        for seed in SEEDS {
            let mut text = mails(&mut Rng::with_seed(seed));
            assert_eq!(end(folder.path(), &text).await, None, "seed {seed}");
            let border = text.len() as u64;
            text.push_str("\ncity,street,trees,owner\n");
            for no in 0..8000 {
                let _ = writeln!(text, "Rome,street {no},{no},town");
            }
            // Where it is not found, the load says which record does not fit.
            let end = end(folder.path(), &text).await;
            assert!(end.is_none_or(|end| end == border), "seed {seed}: {end:?}, expected {border}");
            found += usize::from(end.is_some());
        }
        assert!(found * 4 >= SEEDS.len() * 3, "{found} of {}", SEEDS.len());
    }

    /// The second record begins far behind the first window.
    #[tokio::test]
    async fn a_head_is_read_on_to_the_end_of_its_field() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let rows = (0..3).map(|no| format!("{no},\"{}\"\n", "a line, of many\n".repeat(40_000)));
        std::fs::write(&path, format!("id,body\n{}", rows.collect::<String>())).unwrap();
        let objects = Sources::of_process().list(path.to_str().unwrap()).await.unwrap();
        let part = Part { object: &objects[0], start_byte: 0 };
        let finding = part.find(Vec::new(), false, Given::default()).await.unwrap().finding;
        assert_eq!(
            (finding.width, finding.names.join("|").as_str()),
            (2, "id|body"),
            "{}",
            finding.describe()
        );
        assert_eq!((finding.plain.end_byte, finding.unsure.len()), (None, 0), "{:?}", finding.unsure);
    }
}
