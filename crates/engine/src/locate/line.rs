//! The line of a file in which a record begins, as an editor counts: header and newlines within quotes count,
//! too.
//!
//! Enters a byte that a record begins at, leaves the line; nothing for a pipe, for a source that has become
//! unreadable, and for what is too far behind the beginning of the file, from which it is read: the record's
//! number and byte are told without it.

use super::reread::StoredFrom;
use crate::feed::{Recoding, plain_error, plain_utf8, recoding};
use crate::pipeline::Run;
use howdah_model::summary::LeftOut;
use howdah_model::{Eol, Error, FilePlan, Place, Result};
use howdah_transcode::decompress;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::time::{Duration, Instant};

/// Somebody waits for the error: what takes longer to read is told without the line.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);
/// A load that is through need not wait for lines.
const LEFT_OUT_WITHIN: Duration = Duration::from_secs(2);
/// Read and decompressed in the time that anybody waits gladly: a second or two, with the file near.
const PLAIN_BYTES_MAX: u64 = 1 << 30;
/// Bytes read at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// The error with the line of its record. Bytes are those of the text that a file was converted to, where it
/// was: they lead to its line, and to nothing in the file.
pub(crate) async fn with_line(run: &Run, error: Error) -> Error {
    let error = line_added(run, error).await;
    let is_converted = error.place().file.as_deref().is_some_and(|file| is_converted(run, file));
    if is_converted { error.without_byte() } else { error }
}

/// Takes the bytes away that lead to nothing in the file.
pub(crate) fn hide_bytes<'a>(run: &Run, places: impl Iterator<Item = (&'a str, &'a mut Option<u64>)>) {
    for (location, byte) in places {
        *byte = byte.filter(|_| !is_converted(run, location));
    }
}

/// The file that is told so is read in another encoding than its own.
fn is_converted(run: &Run, location: &str) -> bool {
    let file = run.plan.files.iter().find(|file| file.location == location);
    file.is_some_and(|file| run.plan.table(file.table_no).recode.is_some())
}

async fn line_added(run: &Run, error: Error) -> Error {
    let place = error.place();
    let (Some(location), Some(_), Some(byte), None) = (&place.file, place.record, place.byte, place.line)
    else {
        return error;
    };
    let Some(file) = run.plan.files.iter().find(|file| file.location == *location) else { return error };
    let line = lines(run, file, &[byte], WITHIN).await.get(&byte).copied();
    error.at(Place { line, ..Place::default() })
}

/// Tells where records that were left out stand: with the lines, if `reads` allows that.
pub(crate) async fn tell_places(run: &Run, left_out: &mut [LeftOut], reads: bool) {
    if reads {
        add_lines(run, left_out).await;
    }
    hide_bytes(run, left_out.iter_mut().map(|out| (out.file.as_str(), &mut out.byte)));
}

/// Adds the lines of records that were left out. They are a help, and worth no more waiting than a moment for
/// all of them.
async fn add_lines(run: &Run, left_out: &mut [LeftOut]) {
    let mut wanted: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for out in &*left_out {
        wanted.entry(&out.file).or_default().extend(out.byte);
    }
    let (began, mut found) = (Instant::now(), BTreeMap::new());
    for file in &run.plan.files {
        let Some(bytes) = wanted.remove(file.location.as_str()) else { continue };
        let left = LEFT_OUT_WITHIN.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        found.insert(file.location.clone(), lines(run, file, &bytes, left).await);
    }
    for out in left_out {
        let of_file = found.get(&out.file);
        out.line = out.byte.and_then(|byte| of_file?.get(&byte).copied());
    }
}

/// The lines that these bytes of a file are in, as far as they can be told.
pub(crate) async fn lines(run: &Run, file: &FilePlan, bytes: &[u64], within: Duration) -> BTreeMap<u64, u64> {
    let mut wanted: Vec<u64> = bytes.iter().copied().filter(|byte| *byte <= PLAIN_BYTES_MAX).collect();
    wanted.sort_unstable();
    wanted.dedup();
    if !file.rereadable || wanted.is_empty() {
        return BTreeMap::new();
    }
    let opening = run.context.sources.open(&file.location, file.version.as_deref());
    let Ok(Ok(object)) = tokio::time::timeout(WITHIN, run.context.stop.guard(opening)).await else {
        return BTreeMap::new();
    };
    let stored = StoredFrom::new(&run.context, object, 0, within);
    let (file, recoding) = (file.clone(), recoding(&run.plan, file));
    let counting = tokio::task::spawn_blocking(move || {
        let mut found = BTreeMap::new();
        // What was found before it cannot be read any further is found.
        let _ = count(&file, recoding, stored, &wanted, &mut found);
        found
    });
    counting.await.unwrap_or_default()
}

fn count(
    file: &FilePlan,
    recoding: Recoding,
    stored: StoredFrom,
    wanted: &[u64],
    found: &mut BTreeMap<u64, u64>,
) -> Result<()> {
    let plain = decompress::decoder(file.codec, BufReader::new(stored))?;
    let mut plain = plain_utf8(file, recoding, plain, 0)?;
    let ends_with = if file.eol == Some(Eol::Cr) { b'\r' } else { b'\n' };
    let mut block = vec![0; BLOCK_BYTES];
    let (mut at, mut line) = (0, 1);
    for byte in wanted {
        while at < *byte {
            let most = block.len().min(usize::try_from(byte - at).unwrap_or(usize::MAX));
            let count = plain.read(&mut block[..most]).map_err(plain_error)?;
            if count == 0 {
                return Ok(());
            }
            line += block[..count].iter().filter(|byte| **byte == ends_with).count() as u64;
            at += count as u64;
        }
        found.insert(*byte, line);
    }
    Ok(())
}
