//! Small files that are stored together: one transaction, one claim statement and one COPY for many of them.
//!
//! Chunks enter as each file is read, and leave for the queue with others of their table and form. Each keeps
//! its own claim in the ledger and its own bytes, so that they can still be stored one by one. Whatever the
//! server must see apart goes by itself: what is held for an error, goes to leaf partitions, or is numbered
//! by its place.

use super::Feeder;
use super::emit::Emitter;
use crate::cargo::{Cargo, Rows};
use crate::pipeline::Run;
use bytes::Bytes;
use howdah_model::plan::Encode;
use howdah_model::{CopyChunk, Eol, Faster, FilePlan, Form, Plan};
use howdah_transcode::encode::{HEADER, TRAILER};
use howdah_transcode::split::State;
use std::mem;
use std::time::{Duration, Instant};

/// A larger file has a transaction of its own. What a transaction costs the server beside its rows is about
/// what a thousand short rows cost, and these are as many bytes.
const FILE_BYTES_MAX: u64 = 32 << 10;
/// The chunks that wait in one thread, for all tables, hold about so much: a part of the mebibyte that the
/// budget has for each session.
const WAITING_BYTES_MAX: usize = 512 << 10;
/// With so many together, what stands around the rows has become a small part of what each costs. Of more,
/// more would have to be sent again when one of them is refused.
const CHUNKS_MAX: usize = 256;
/// The files come slowly, and sessions have nothing to do: they store what is there.
const WAITS_AT_MOST: Duration = Duration::from_secs(1);

/// The chunks of small files that wait in one thread for more of their kind.
#[derive(Default)]
pub(super) struct Gathering {
    kinds: Vec<Together>,
    bytes: usize,
    since: Option<Instant>,
}

/// What one COPY statement takes.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    table_no: u32,
    form: Form,
    numbered: bool,
    /// How records end; none in the binary format.
    eol: Option<Eol>,
}

struct Together {
    kind: Kind,
    chunks: Vec<CopyChunk>,
    /// The rows of all of them, without what the binary format has around them.
    rows: Vec<u8>,
    /// Where those of each end.
    ends: Vec<usize>,
}

impl Gathering {
    /// Takes in the chunk; what has become enough for a transaction comes back, and what has to come before
    /// it: a session stores rows of a table in the order of their files and records, so that none is in from
    /// behind a record that ends the load.
    fn add(&mut self, chunk: CopyChunk, joint: Joint) -> Vec<Cargo> {
        let (table_no, kind) = (joint.kind.table_no, &joint.kind);
        let comes_behind =
            self.kinds.iter().any(|other| other.kind.table_no == table_no && other.kind != *kind);
        let mut ready = if comes_behind { self.take() } else { Vec::new() };
        let no = match self.kinds.iter().position(|together| together.kind == joint.kind) {
            Some(no) => no,
            None => {
                let (chunks, rows, ends) = (Vec::new(), Vec::new(), Vec::new());
                self.kinds.push(Together { kind: joint.kind, chunks, rows, ends });
                self.kinds.len() - 1
            }
        };
        let together = &mut self.kinds[no];
        self.bytes += chunk.bytes.len() + joint.rows.len();
        together.rows.extend_from_slice(&joint.rows);
        together.ends.push(together.rows.len());
        // The chunk's own buffers go back to the pool.
        together.chunks.push(CopyChunk {
            bytes: Bytes::copy_from_slice(&chunk.bytes),
            faster: None,
            ..chunk
        });
        self.since.get_or_insert_with(Instant::now);
        if together.chunks.len() >= CHUNKS_MAX || self.bytes >= WAITING_BYTES_MAX {
            ready.append(&mut self.take());
        }
        ready
    }

    /// All that waits.
    fn take(&mut self) -> Vec<Cargo> {
        (self.bytes, self.since) = (0, None);
        mem::take(&mut self.kinds).into_iter().map(Together::ready).collect()
    }

    fn is_due(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= WAITS_AT_MOST)
    }
}

impl Together {
    fn ready(self) -> Cargo {
        let Together { kind: Kind { form, numbered, .. }, chunks, rows, ends } = self;
        Cargo::together(chunks, Rows { form, numbered, bytes: rows.into(), ends })
    }
}

/// How a chunk goes together with others.
pub(super) struct Joint {
    kind: Kind,
    /// Its rows, with the end of the last one.
    rows: Vec<u8>,
}

/// The file is so small that it may share a transaction with others.
pub(super) fn is_small(file: &FilePlan) -> bool {
    file.rereadable && file.stored_bytes.is_some_and(|bytes| bytes <= FILE_BYTES_MAX)
}

/// Chunks of the file may be stored with those of others.
fn may_join(run: &Run, plan: &Plan, file: &FilePlan) -> bool {
    let table = plan.table(file.table_no);
    // Where a lost answer to COMMIT cannot be settled, or may be lost with the server, a chunk is less to ask
    // about.
    let is_claimed = run.ledger.is_some() && file.version.is_some() && !table.outside;
    // What is only compared is not claimed.
    let may = run.comparison.is_some() || is_claimed;
    may && is_small(file) && !table.frozen && table.policies.is_none()
}

impl Emitter {
    /// How the chunk goes together with those of other files; `None` where it has to go by itself.
    pub(super) fn joint(&self, run: &Run, chunk: &CopyChunk) -> Option<Joint> {
        let file = run.plan.file(self.file_no);
        let table = run.plan.table(file.table_no);
        if !may_join(run, &run.plan, file) || chunk.refused.is_some() || !chunk.aside.is_empty() {
            return None;
        }
        let (form, numbered, pieces) = match &chunk.faster {
            None => (Form::AsIs, false, std::slice::from_ref(&chunk.bytes)),
            Some(Faster { form, numbered, parcels }) => match parcels.as_slice() {
                [all] if all.leaf_no.is_none() => (*form, *numbered, all.pieces.as_slice()),
                _ => return None,
            },
        };
        let is_placed = table.staging.as_ref().is_some_and(|staging| staging.place.is_some());
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        if (is_placed && !numbered) || bytes.max(chunk.bytes.len()) as u64 > FILE_BYTES_MAX {
            return None;
        }
        let mut rows = pieces.concat();
        let eol = match form {
            Form::Binary => {
                rows = rows.strip_prefix(&HEADER)?.strip_suffix(&TRAILER)?.to_vec();
                None
            }
            Form::AsIs | Form::Text => {
                let (eol, missing) = self.end_of_last(table.encode, &chunk.bytes)?;
                rows.extend_from_slice(missing);
                Some(eol)
            }
        };
        Some(Joint { kind: Kind { table_no: file.table_no, form, numbered, eol }, rows })
    }

    /// How records end, and what the last one lacks of that. `None` where a record behind it would not be one
    /// of its own: a quote may be open, or the line ending be part of a value.
    fn end_of_last(&self, encode: Encode, records: &[u8]) -> Option<(Eol, &'static [u8])> {
        if encode == Encode::CopyText {
            return records.ends_with(b"\n").then_some((Eol::Lf, b""));
        }
        let state = self.rules.scan(State::START, records).state;
        if state == State::INSIDE {
            // A record that is alone in its file may end in any way. Whether a backslash ends the data may
            // depend on what is behind it.
            let eol = self.rules.eol().or_else(|| (!records.contains(&b'\\')).then_some(Eol::Lf))?;
            let missing: &'static [u8] = match eol {
                Eol::Lf => b"\n",
                Eol::Cr => b"\r",
                Eol::CrLf => b"\r\n",
            };
            return Some((eol, missing));
        }
        let eol = self.rules.eol()?;
        (state == State::START).then_some((eol, b""))
    }
}

impl Feeder {
    /// Queues the chunk, at once or with others; false if nobody takes any more.
    pub(super) fn hand_over(&self, chunk: CopyChunk, joint: Option<Joint>) -> bool {
        let Some(joint) = joint else { return self.hand_over_all() && self.send(vec![Cargo::one(chunk)]) };
        let ready = self.gathering.lock().add(chunk, joint);
        self.send(ready)
    }

    /// Queues all that waits for more of its kind; false if nobody takes any more.
    pub(super) fn hand_over_all(&self) -> bool {
        let waiting = self.gathering.lock().take();
        self.send(waiting)
    }

    /// Nothing waits longer than it must: for a piece that may take its time, or for further ones that come
    /// slowly.
    pub(super) fn hand_over_what_is_due(&self, is_small: bool) -> bool {
        if is_small && !self.gathering.lock().is_due() {
            return true;
        }
        self.hand_over_all()
    }

    fn send(&self, cargos: Vec<Cargo>) -> bool {
        let queue = |cargo| self.queue.blocking_send(cargo).is_ok();
        cargos.into_iter().all(|cargo| self.run.first_records.in_turn(&self.run, cargo, queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(file_no: u32, bytes: &'static [u8]) -> CopyChunk {
        let origin = howdah_model::Origin {
            file_no,
            chunk_no: 0,
            start_byte: 3,
            end_byte: 3 + bytes.len() as u64,
            first_record: 1,
            records: 1,
            omitted: howdah_model::Omitted::default(),
            digest: None,
        };
        CopyChunk { origin, bytes: bytes.into(), faster: None, refused: None, aside: Vec::new() }
    }

    fn joint(table_no: u32, form: Form, rows: &[u8]) -> Joint {
        Joint { kind: Kind { table_no, form, numbered: false, eol: None }, rows: rows.to_vec() }
    }

    #[test]
    fn chunks_of_a_table_and_form_go_together() {
        let mut gathering = Gathering::default();
        for (no, table_no) in [(0, 0), (1, 1), (2, 0)] {
            assert!(gathering.add(chunk(no, b"1\n"), joint(table_no, Form::Binary, b"row")).is_empty());
        }
        let cargos = gathering.take();
        let of = |cargo: &Cargo| cargo.chunks.iter().map(|chunk| chunk.origin.file_no).collect::<Vec<_>>();
        assert_eq!(cargos.iter().map(of).collect::<Vec<_>>(), [vec![0, 2], vec![1]]);
        let rows = cargos[0].as_one().unwrap();
        let sent = rows.faster.as_ref().unwrap().parcels[0].pieces.concat();
        assert_eq!(sent, [&HEADER[..], b"rowrow", &TRAILER].concat());
        assert_eq!((rows.origin.records, rows.origin.end_byte - rows.origin.start_byte), (2, 4));
        // Alone it is sent in its own form.
        assert!(cargos[1].as_one().is_none() && cargos[1].chunks[0].faster.is_some());
        assert!(gathering.take().is_empty());
    }

    #[test]
    fn rows_of_a_table_keep_their_order() {
        let mut gathering = Gathering::default();
        let forms = [Form::Binary, Form::Binary, Form::AsIs, Form::Binary];
        let mut cargos: Vec<Cargo> = (0..)
            .zip(forms)
            .flat_map(|(no, form)| gathering.add(chunk(no, b"1\n"), joint(0, form, b"1\n")))
            .collect();
        cargos.append(&mut gathering.take());
        let of = |cargo: &Cargo| cargo.chunks.iter().map(|chunk| chunk.origin.file_no).collect::<Vec<_>>();
        assert_eq!(cargos.iter().map(of).collect::<Vec<_>>(), [vec![0, 1], vec![2], vec![3]]);
    }

    #[test]
    fn what_waits_has_limits() {
        let mut gathering = Gathering::default();
        let many: Vec<Cargo> =
            (0..600).flat_map(|no| gathering.add(chunk(no, b"1\n"), joint(0, Form::AsIs, b"1\n"))).collect();
        assert_eq!(many.iter().map(|cargo| cargo.chunks.len()).collect::<Vec<_>>(), [256, 256]);
        gathering.take();
        let long = vec![b'1'; 30 << 10];
        let first =
            (0..).find(|no| !gathering.add(chunk(*no, b"1\n"), joint(*no, Form::AsIs, &long)).is_empty());
        assert_eq!(first.map(|no| (no as usize + 1) * long.len() / WAITING_BYTES_MAX), Some(1));
    }
}
