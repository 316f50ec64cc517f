//! A file through one COPY in one session, as `psql \copy` sends it, or `zcat | psql` where it is compressed:
//! one thread reads and decompresses, the session sends. What stands before and behind the data is left out,
//! as HEADER, `head` and `tail` do. Pieces are larger than psql's, so it takes no longer than with psql.

use crate::{Context, Planned};
use bytes::{Buf, Bytes};
use howdah_model::plan::Encode;
use howdah_model::{Codec, Dialect, Format, FormatKind, Relation, Result, TablePlan};
use howdah_source::{BlockStream, Object};
use howdah_target::copy;
use howdah_transcode::decompress;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Sender};

/// Bytes of one message, as for chunks (`target/src/copy/stream.rs`).
const PIECE_BYTES: usize = 128 << 10;
/// Read ahead of the session.
const PIECES_AHEAD: usize = 8;

/// A file that COPY takes as it is, but for compression.
#[derive(Clone)]
pub(super) struct Plain {
    object: Object,
    codec: Codec,
    /// Plain bytes from which and up to which there is data.
    start_byte: u64,
    end_byte: Option<u64>,
    format: Format,
    /// The only spelling of NULL that it is told, of several.
    null: Option<String>,
    columns: Vec<String>,
    server_version: u32,
}

impl Plain {
    /// The one file of the plan, or why COPY alone cannot load it.
    pub(super) fn of(planned: &Planned) -> Result<Plain, String> {
        let (file, table) = (&planned.plan.files[0], &planned.plan.tables[0]);
        let one_null = with_one_null(table);
        if let Some(reason) = refusal(table, one_null.is_some()) {
            return Err(reason);
        }
        Ok(Plain {
            object: planned.opened[0].object.clone(),
            codec: file.codec,
            start_byte: file.data_start_byte,
            end_byte: file.data_end_byte,
            null: one_null.as_ref().map(|format| format.null.clone()),
            format: one_null.unwrap_or_else(|| table.format.clone()),
            columns: table.fields.iter().flatten().cloned().collect(),
            server_version: planned.plan.server_version,
        })
    }

    /// The only spelling of NULL that COPY is told, where the file may have others.
    pub(super) fn told_null(&self) -> Option<&str> {
        self.null.as_deref()
    }

    /// Loads all of it; returns the rows.
    pub(super) async fn load(&self, context: &Context, into: &Relation) -> Result<u64> {
        let sql = copy::statement(into, &self.columns, &self.format, self.server_version)?;
        let mut session = context.stop.guard(context.connection.open()).await?;
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
        let (plain, handle) = (self.clone(), Handle::current());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = plain.read(handle, &sender) {
                let error = error.in_file(plain.object.location());
                // Whoever is gone wants no error.
                let _ = sender.blocking_send(Err(error));
            }
        });
        let backend = session.backend();
        let copying = copy::plain(&mut session, &sql, into, &self.columns, receiver);
        let copied = context.stop.guard(copying).await;
        if session.is_closed() {
            // It may hold the table for as long as it has not noticed.
            context.connection.lose(backend);
        }
        copied
    }

    /// Sends the data in pieces until all is sent, or nobody takes it.
    fn read(&self, handle: Handle, sender: &Sender<Result<Bytes>>) -> Result<()> {
        let stream = handle.block_on(self.object.stream(0))?;
        let stored = StreamBytes { stream, block: Bytes::new(), handle };
        let mut decoder = decompress::decoder(self.codec, stored)?;
        let skipped = io::copy(&mut decoder.by_ref().take(self.start_byte), &mut io::sink());
        skipped.map_err(decompress::error)?;
        let data_bytes = self.end_byte.map_or(u64::MAX, |end| end.saturating_sub(self.start_byte));
        let mut data = decoder.take(data_bytes);
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let read = data.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
            read.map_err(decompress::error)?;
            if piece.is_empty() || sender.blocking_send(Ok(piece.into())).is_err() {
                return Ok(());
            }
        }
    }
}

/// What COPY is told of a file whose only secret is that NULL may be the empty field, too, or a value in some
/// columns: nobody knows whether such fields stand beyond the sample, and where they do COPY refuses them, or
/// stores them otherwise, as fast.
fn with_one_null(table: &TablePlan) -> Option<Format> {
    let dialect = table.own_dialect()?;
    let mut words = dialect.nulls.iter().filter(|null| !null.is_empty());
    let (Some(word), None) = (words.next(), words.next()) else { return None };
    if table.recode.is_some() || table.readings.iter().any(Option::is_some) {
        return None;
    }
    let one = Dialect { nulls: vec![word.clone()], kept: BTreeMap::new(), ..dialect.clone() };
    Some(Format { encoding: Some("UTF8".to_owned()), ..one.to_format()? })
}

/// Why COPY cannot take the file as it is.
fn refusal(table: &TablePlan, has_one_null: bool) -> Option<String> {
    let kind = if table.format.kind == FormatKind::Csv { "csv" } else { "text" };
    if !table.changes.is_empty() {
        return Some("the table has to be changed for the data first".to_owned());
    }
    if table.own_dialect().is_some() && !has_one_null {
        return Some(format!("its options have no words for {}", beyond_copy(table)));
    }
    if table.encode == Encode::CopyText || table.fields.iter().any(Option::is_none) {
        return Some("it cannot leave out fields".to_owned());
    }
    table.recode.as_ref().map(|encoding| format!("the server cannot read {kind} in {encoding}"))
}

/// How the file is written that COPY cannot be told of.
fn beyond_copy(table: &TablePlan) -> String {
    let read = table.fields.iter().flatten().zip(&table.readings).find(|(_, reading)| reading.is_some());
    let Some(dialect) = &table.dialect else { return "how the file is written".to_owned() };
    let what = match () {
        () if dialect.delimiter.len() != 1 => "a delimiter that is not one byte",
        () if dialect.repeats => "delimiters that repeat",
        () if dialect.trim => "blanks around fields",
        () if dialect.eol.is_none() => "line endings of several kinds",
        () if dialect.comment.is_some() => "comments",
        () if dialect.nulls.len() > 1 => "several spellings of NULL; --null names one",
        () if !dialect.kept.is_empty() => {
            "a spelling of NULL that is a value in some columns; --null names one for all"
        }
        () => match read {
            Some((column, _)) => return format!("how the values of {column} are spelled"),
            None => "how the file or its values are written",
        },
    };
    what.to_owned()
}

/// Stored bytes, as the decoders want them.
struct StreamBytes {
    stream: BlockStream,
    block: Bytes,
    handle: Handle,
}

impl BufRead for StreamBytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.block.is_empty()
            && let Some(block) = self.handle.block_on(self.stream.next()).map_err(io::Error::other)?
        {
            self.block = block;
        }
        Ok(&self.block)
    }

    fn consume(&mut self, count: usize) {
        self.block.advance(count);
    }
}

impl Read for StreamBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}
