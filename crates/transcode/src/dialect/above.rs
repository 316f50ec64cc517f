//! The one line right above the first record: a title, or the name of the only column, whose values the
//! delimiter cuts.

use super::regions::{Cut, Regions};
use super::rows::Reader;
use super::windows::Window;
use super::{Finding, Given, Unsure, cut_decimals, describe};
use howdah_model::{Error, ErrorKind, Result};

impl Finding {
    /// Says so where one word above the records may name the one column of a table (`price` above `12,34`).
    ///
    /// # Errors
    /// `Usage` if there is a header, as `given` says, which of two lines may be.
    pub(super) fn look_above(
        &mut self,
        cut: &Cut,
        regions: &Regions,
        reader: &mut Reader,
        window: &Window,
        given: &Given,
    ) -> Result<()> {
        if !self.may_be_one_column(cut, regions, reader, window) {
            return Ok(());
        }
        let is_told = given.delimiter.is_some() || given.dialect.is_some();
        if given.header == Some(true) && !is_told {
            return Err(two_headers(regions.width, &self.dialect.delimiter));
        }
        if !is_told {
            let what =
                "the first line may name the one column of a table, whose values the delimiter then cuts";
            self.unsure.push(Unsure { what: what.to_owned(), option: "--delimiter" });
            let records = regions.start + regions.header_lines..regions.end.unwrap_or(cut.head.len());
            self.cuts_decimals |=
                cut_decimals::may_be(&cut.head, (records, regions.width, 1), reader, window);
        }
        Ok(())
    }

    /// The first line is one word, and what stands below it is a record, or no surer header.
    fn may_be_one_column(&self, cut: &Cut, regions: &Regions, reader: &mut Reader, window: &Window) -> bool {
        let head = &cut.head;
        let first = head.lines.first().filter(|line| line.width == 1 && !line.is_blank() && !line.marked);
        let Some(line) = first.filter(|_| regions.start == 1 && regions.width > 1) else { return false };
        let is_header = match regions.header_lines {
            0 => false,
            _ => self.typed.contains(&true) && head.kinds(1).iter().all(|kind| kind.class().is_none()),
        };
        let text = window.text.get(line.start..line.start + line.length);
        if is_header || text.is_none_or(|text| text.starts_with(b"sep=")) {
            return false;
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        head.values(0, reader, window).iter().all(|value| !value.is_empty() && value.chars().all(is_part))
    }
}

fn two_headers(width: usize, delimiter: &str) -> Error {
    let delimiter = describe::visible(delimiter);
    let message = format!(
        "the first line is one word, and records have {width} fields by the delimiter {delimiter} that was found: either of \
         the first two lines may be the header"
    );
    Error::new(ErrorKind::Usage, message).with_hint(format!(
        "if the first line names the one column of the file, give a --delimiter that none of its values has; if it is a \
         title, give --delimiter {delimiter}"
    ))
}
