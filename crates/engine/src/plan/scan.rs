//! What the fields of a file hold: the values of its sample, or of all of it, as they would be stored.

use super::finding::Windows;
use crate::values;
use howdah_model::Reading;
use howdah_transcode::dialect::Finding;
use howdah_transcode::encode;
use howdah_transcode::infer::{self, ColumnState};
use howdah_transcode::mend::{self, Counts, Field, Shape};
use std::io::{Cursor, Read};
use std::sync::Arc;

/// COPY text looked at at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Records shown.
const PREVIEW_RECORDS: usize = 5;
/// Longer records are passed over while planning; the load says what is wrong with them.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// The values seen of each field.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    pub(super) states: Vec<ColumnState>,
    /// They are all the values there are.
    pub(super) complete: bool,
    /// The first records.
    pub(super) preview: Vec<Vec<Option<String>>>,
}

impl Columns {
    /// How the values of field `no` are spelled, where a column of this type would not read them as they are.
    pub(super) fn reading(&self, no: usize, type_name: &str) -> Option<Reading> {
        infer::reading_for(self.states.get(no)?, type_name)
    }

    /// Those of the sample.
    pub(super) fn sampled(finding: &Finding, windows: &Windows) -> Columns {
        let mut columns = Columns::none(finding);
        columns.take_data(finding, whole_lines(&windows.head, windows.whole));
        let middle = whole_lines(behind_first_line(&windows.middle), false);
        for window in [middle, behind_first_line(&windows.tail)] {
            columns.take(&shape(finding), utf8(finding, window));
        }
        Columns { complete: windows.whole, ..columns }
    }

    /// Those of all plain bytes.
    pub(super) fn of_all(finding: &Finding, plain: &[u8]) -> Columns {
        let mut columns = Columns::none(finding);
        columns.take_data(finding, plain);
        Columns { complete: true, ..columns }
    }

    fn none(finding: &Finding) -> Columns {
        Columns { states: vec![ColumnState::default(); finding.width], complete: false, preview: Vec::new() }
    }

    /// Those of the table in bytes from the beginning of the file.
    fn take_data(&mut self, finding: &Finding, plain: &[u8]) {
        let end = finding.plain.end_byte.and_then(|end| usize::try_from(end).ok()).unwrap_or(usize::MAX);
        // The same as in plain bytes where the file is UTF-8.
        let shape = Shape { data_start_byte: finding.utf8.start_byte, ..shape(finding) };
        self.take(&shape, utf8(finding, &plain[..plain.len().min(end)]));
    }

    /// Shows the values of these bytes to the columns, as far as they can be read. What cannot be read here, the
    /// load meets again and reports.
    fn take(&mut self, shape: &Shape, plain: impl Read + Send) {
        let Ok(mut lines) = mend::reader(shape, plain, Arc::new(Counts::new(shape.fields.len()))) else {
            return;
        };
        let mut held = Vec::new();
        loop {
            let before = held.len();
            let mut piece = Read::by_ref(&mut lines).take(PIECE_BYTES as u64);
            let failed = piece.read_to_end(&mut held).is_err();
            let end = held.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            if self.preview.is_empty() {
                self.preview = values::preview(&held[..end], PREVIEW_RECORDS);
            }
            values::of_copy_text(&held[..end], |no, value| {
                if let Some(state) = self.states.get_mut(no) {
                    state.observe(value);
                }
            });
            if failed || held.len() == before {
                return;
            }
            held.drain(..end);
        }
    }
}

/// Every field kept, as it is spelled; records that do not fit are passed over.
fn shape(finding: &Finding) -> Shape {
    Shape {
        dialect: finding.dialect.clone(),
        fields: vec![Field::as_it_is(); finding.width],
        data_start_byte: 0,
        data_end_byte: None,
        lenient: true,
        record_bytes_max: RECORD_BYTES_MAX,
        read: infer::read,
    }
}

/// The bytes in UTF-8. Where that fails in the middle, what came before is enough for a sample.
fn utf8<'a>(finding: &Finding, bytes: &'a [u8]) -> Box<dyn Read + Send + 'a> {
    match finding.encoding.name.as_str() {
        "UTF8" => Box::new(Cursor::new(bytes)),
        name => {
            encode::to_utf8(name, Box::new(Cursor::new(bytes))).unwrap_or_else(|_| Box::new(std::io::empty()))
        }
    }
}

/// Without the record that the window cuts off.
fn whole_lines(window: &[u8], whole: bool) -> &[u8] {
    if whole {
        return window;
    }
    let end = window.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    &window[..end]
}

fn behind_first_line(window: &[u8]) -> &[u8] {
    let start =
        window.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(window.len(), |at| at + 1);
    &window[start..]
}
