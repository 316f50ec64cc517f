//! Where in its file the record is that the server refused.
//!
//! COPY names a line of what it was sent; file, record and byte leave. Where the file's bytes went untouched
//! the chunk itself tells. Where records were rewritten, the chunk's part of the file is read once more, as
//! far as the record: the bytes are gone by then, and an index of all records would cost every load memory
//! for the sake of the one that fails. Records in a dialect that COPY cannot be told, and those that
//! `--lenient` mends, are found by reading them again as they were read ([`reread`]). Of a pipe only the
//! record is told, unless it begins the chunk.

pub(crate) mod line;
pub(crate) mod reread;

use crate::feed::eol_of_chunk;
use crate::pipeline::Run;
use crate::plan::chunk_format;
use crate::retry::{Directive, directive};
use howdah_model::plan::{Care, Encode};
use howdah_model::{
    CopyChunk, Error, ErrorKind, FilePlan, Form, Origin, Place, Plan, RelationKind, sqlstate,
};
use howdah_target::commit::ChunkError;
use howdah_transcode::characters;
use howdah_transcode::split::{Rules, State, Tail};

/// Bytes read at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// The server's line of a chunk, as file, record and byte.
pub(crate) async fn locate(run: &Run, chunk: &CopyChunk, failed: ChunkError) -> Error {
    let ChunkError { error, line } = failed;
    if error.kind() == ErrorKind::Ledger {
        return error;
    }
    let (plan, origin) = (&run.plan, &chunk.origin);
    let error = with_key_hint(&plan.job.arrival.key, error);
    let error = with_foreign_hint(plan.table_of(origin.file_no).table.kind, error);
    let file = plan.file(origin.file_no);
    let place = Place { file: Some(file.location.clone()), ..Place::default() };
    let Some(line) = line.filter(|_| error.kind() == ErrorKind::Server) else { return error.at(place) };
    let table = plan.table(file.table_no);
    let Ok(rules) = Rules::new(&table.format, plan.server_version, file.eol) else { return error.at(place) };
    let Some(row) = row_of_line(chunk, table.encode, &rules, line) else { return error.at(place) };
    let place = Place { column: broken_column(plan, chunk, &error, row), ..place };
    // What is tried again need not be found yet.
    let is_final = directive(&error) == Directive::GiveUp;
    if is_final && let Some((record, byte)) = reread::place(run, origin, row).await {
        return error.at(Place { record: Some(record), byte: Some(byte), ..place });
    }
    let byte = match table.encode {
        Encode::CopyText => byte_in_file(run, file, &rules, origin, row).await,
        Encode::PassThrough => {
            let start = rules.record_start(&chunk.bytes, row);
            let start = start.filter(|_| table.care != Care::Rewritten && is_untouched(chunk));
            start.map(|start| origin.start_byte + start as u64)
        }
    };
    // Rows of a file from which records are left out are not numbered as its records are.
    let told = !plan.job.shaping.lenient || byte.is_some();
    error.at(Place { record: told.then(|| origin.first_record + row), byte, ..place })
}

/// The row of the chunk that the server means by this line of what was sent.
fn row_of_line(chunk: &CopyChunk, encode: Encode, rules: &Rules, line: u64) -> Option<u64> {
    let form = chunk.faster.as_ref().map_or(Form::AsIs, |faster| faster.form);
    match (form, encode) {
        // Each part of the rows has a COPY of its own, and the server does not say which it was.
        _ if chunk.faster.as_ref().is_some_and(|faster| faster.parcels.len() > 1) => None,
        // COPY text has one line a record, and the server counts binary ones so.
        (Form::Text | Form::Binary, _) | (Form::AsIs, Encode::CopyText) => Some(line.saturating_sub(1)),
        (Form::AsIs, Encode::PassThrough) => rules.record_of_line(&chunk.bytes, line),
    }
}

/// A column of the key takes no NULL, whether or not the table's does: no row has such a key.
fn with_key_hint(key: &[String], error: Error) -> Error {
    let is_of_key = |column: &String| key.contains(column);
    if error.sqlstate() != Some(sqlstate::NOT_NULL_VIOLATION)
        || !error.place().column.as_ref().is_some_and(is_of_key)
    {
        return error;
    }
    error.with_hint(
        "rows of one key are found by =, to which no NULL is equal, whatever a unique index makes of it: give these records a key, or leave them \
         out with --on-error skip",
    )
}

/// What settles a repeated key of a table does not of a foreign one.
fn with_foreign_hint(kind: RelationKind, error: Error) -> Error {
    if error.sqlstate() != Some(sqlstate::UNIQUE_VIOLATION) || kind != RelationKind::Foreign {
        return error;
    }
    error.with_hint(
        "--on-error skip leaves such records out; --mode insert-new and merge are for the table itself: give them a --to of the server \
         that has it",
    )
}

/// The server tells the line of bytes that are no character, and not the column. Those that stand in the file
/// as they are were found before; these are written with backslashes.
fn broken_column(plan: &Plan, chunk: &CopyChunk, error: &Error, row: u64) -> Option<String> {
    // Of a database in another encoding the server knows what it takes.
    if error.sqlstate() != Some(sqlstate::CHARACTER_NOT_IN_REPERTOIRE)
        || !error.message().contains("\"UTF8\"")
    {
        return None;
    }
    let file_no = chunk.origin.file_no;
    let table = plan.table_of(file_no);
    let format = chunk_format(table);
    let rules = Rules::new(&format, plan.server_version, eol_of_chunk(plan, file_no)).ok()?;
    let range = rules.ranges_of(&chunk.bytes, &[row]).pop()?;
    let field_no = characters::broken_field(&format, chunk.bytes.get(range)?)?;
    match table.encode {
        Encode::PassThrough => table.fields.get(field_no)?.clone(),
        Encode::CopyText => table.fields.iter().flatten().nth(field_no).cloned(),
    }
}

/// Number and first byte of the record that a row of a chunk came from, where the row is not as the file has
/// it.
pub(crate) async fn record_of_row(run: &Run, origin: &Origin, row: u64) -> Option<(u64, u64)> {
    if let Some(found) = reread::place(run, origin, row).await {
        return Some(found);
    }
    let file = run.plan.file(origin.file_no);
    let table = run.plan.table(file.table_no);
    let rules = Rules::new(&table.format, run.plan.server_version, file.eol).ok()?;
    let byte = match table.encode {
        Encode::CopyText => byte_in_file(run, file, &rules, origin, row).await?,
        Encode::PassThrough => return None,
    };
    Some((origin.first_record + row, byte))
}

/// What was sent is what stands in the file. A mended chunk of the very same length is taken for one, too.
pub(crate) fn is_untouched(chunk: &CopyChunk) -> bool {
    chunk.bytes.len() as u64 == chunk.origin.end_byte - chunk.origin.start_byte
}

/// Where the chunk's record of this number, counted from 0, begins. `None` if the file cannot be read there
/// any more: the server's error is the one to tell.
async fn byte_in_file(
    run: &Run,
    file: &FilePlan,
    rules: &Rules,
    origin: &Origin,
    record: u64,
) -> Option<u64> {
    if record == 0 {
        return Some(origin.start_byte);
    }
    if !file.ranged {
        return None;
    }
    let object = run.context.sources.open(&file.location, file.version.as_deref()).await.ok()?;
    let mut block = vec![0; BLOCK_BYTES];
    let (mut state, mut offset, mut borders_left) = (State::START, origin.start_byte, record);
    while offset < origin.end_byte {
        let count = object.read_at(offset, &mut block).await.ok().filter(|count| *count > 0)?;
        let bytes = block.get(..count)?;
        let scan = rules.scan(state, bytes);
        if scan.records >= borders_left {
            return Some(offset + border(rules, state, bytes, borders_left)? as u64);
        }
        borders_left -= scan.records;
        (state, offset) = (scan.state, offset + count as u64);
    }
    None
}

/// One past the end of the `count`-th record that ends in `bytes`.
fn border(rules: &Rules, from: State, bytes: &[u8], count: u64) -> Option<usize> {
    let (mut state, mut end) = (from, 0);
    for _ in 0..count {
        let Tail::Border(border) = rules.tail(state, bytes.get(end..)?) else { return None };
        (state, end) = (State::START, end + border);
    }
    Some(end)
}
