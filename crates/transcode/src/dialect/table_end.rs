//! Where a table ends because another one begins, in a part of the file that the sample did not hold.
//!
//! In the sample everything is weighed together ([`regions`](super::regions)). Further on there is less to go
//! by: a record that does not fit, what follows it, and what is known of the table. So only the sure case
//! counts: names, behind a blank line or above other values, and records of their width below. Anything else
//! stays an error, or something to be mended.

use super::Finding;
use super::cell_types::Kind;
use super::rows::Reader;
use super::table::{Line, Lines, usual_width};
use super::windows::Window;
use crate::infer::fold;
use howdah_model::Dialect;

/// Bytes from a record on that [`TableEnd::is_at`] may look at.
pub const TABLE_END_BYTES: usize = 64 << 10;

/// Lines of them: blank ones, titles, names and some records.
const LOOK_LINES: usize = 16;

/// Titles above the names of a second table, at most, and totals above these.
const TITLE_LINES_MAX: usize = 3;

/// Without a blank line above them, names have at least so many records below.
const RECORDS_SURE: usize = 3;

/// So many of its records have the width that most have, before a part of the file is taken for another
/// table: pollution is rarer, and the lines of a text differ more.
const ALIKE_PERCENT: usize = 75;

/// What is known of the first table of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableEnd {
    dialect: Dialect,
    /// The names of its fields, folded.
    names: Vec<String>,
    /// For each field: its values are numbers, days or the like, so that a text there is another thing.
    typed: Vec<bool>,
}

impl TableEnd {
    /// `names` and `typed` have an entry for each field; a name that is not known is empty.
    pub fn new(dialect: &Dialect, names: &[String], typed: &[bool]) -> TableEnd {
        let names = names.iter().map(|name| fold(name)).collect();
        TableEnd { dialect: dialect.clone(), names, typed: typed.to_vec() }
    }

    /// The same for the table of a finding.
    pub fn of(finding: &Finding) -> TableEnd {
        let mut names = finding.names.clone();
        names.resize(finding.width, String::new());
        TableEnd::new(&finding.dialect, &names, &finding.typed)
    }

    /// Another table, its title included, begins with the record that does not fit this one, which is the
    /// first of `bytes`. They are looked at up to [`TABLE_END_BYTES`]; with `at_end` the file ends with them.
    pub fn is_at(&self, bytes: &[u8], at_end: bool) -> bool {
        let looked = first_lines(&bytes[..bytes.len().min(TABLE_END_BYTES)]);
        let Ok(mut reader) = Reader::new(&self.dialect) else { return false };
        let window = Window::of_text(looked, at_end && looked.len() == bytes.len());
        let lines = Lines::read(&mut reader, &window);
        self.begins_other(&lines, &mut reader, &window)
    }

    /// The records of this window are most likely those of another table. `bytes` begin anywhere in the file.
    pub fn is_before(&self, finding: &Finding, bytes: &[u8]) -> bool {
        let Ok(mut reader) = Reader::new(&self.dialect) else { return false };
        let mut window = Window::new(bytes, false, None, finding.encoding.decoding());
        window.begins_inside = true;
        window.skip_to_record();
        let lines = Lines::read(&mut reader, &window);
        let is_whole = |no: &usize| !lines.lines[*no].is_blank() && !lines.is_of_cut_field(*no);
        let whole: Vec<usize> = (0..lines.len()).filter(is_whole).collect();
        if whole.len() < RECORDS_SURE {
            return false;
        }
        let width = usual_width(whole.iter().map(|no| &lines.lines[*no]));
        if width != self.typed.len() {
            // The lines of a long text in quotes have as many delimiters as it happens.
            let alike = whole.iter().filter(|no| lines.lines[**no].width == width).count();
            return width > 1 && alike * 100 >= whole.len() * ALIKE_PERCENT;
        }
        let (mut same, mut text) = (0, 0);
        for no in whole {
            let agrees = self.agrees(lines.kinds(no));
            same += usize::from(agrees == Some(true));
            text += usize::from(agrees == Some(false));
        }
        text > same
    }

    /// Where another table begins in bytes of the file from `start_byte` on, which begin with a record of
    /// this one or inside it: an offset in the file.
    pub fn find(&self, finding: &Finding, bytes: &[u8], start_byte: u64, at_end: bool) -> Option<u64> {
        let mut reader = Reader::new(&self.dialect).ok()?;
        let mut window = Window::new(bytes, at_end, Some(start_byte), finding.encoding.decoding());
        window.begins_inside = true;
        window.skip_to_record();
        let lines = Lines::read(&mut reader, &window);
        let is_odd = |line: &Line| line.is_blank() || line.width != self.typed.len();
        let begins = |no: &usize| {
            let line = &lines.lines[*no];
            is_odd(line)
                && self.is_at(&window.text[line.start..], window.at_end)
                && self.is_behind_record(&lines, *no)
                && !(at_end && reader.is_quoted(&window, line.start))
        };
        let no = (0..lines.len()).find(begins)?;
        window.plain_byte(lines.lines[no].start)
    }

    /// A record of this table stands above this line, totals aside, and not a text in quotes that goes on
    /// with it.
    fn is_behind_record(&self, lines: &Lines, no: usize) -> bool {
        let is_record = |no: usize| {
            lines.lines[no].width == self.typed.len() && self.agrees(lines.kinds(no)) != Some(false)
        };
        let mut above =
            (0..no).rev().filter(|no| !lines.lines[*no].is_blank()).take(TITLE_LINES_MAX).peekable();
        !lines.is_of_cut_field(no) && (above.peek().is_none() || above.any(is_record))
    }

    fn begins_other(&self, lines: &Lines, reader: &mut Reader, window: &Window) -> bool {
        let width = usual_width(lines.lines.iter().filter(|line| line.width > 1));
        let is_names = |line: &Line| line.width == width && line.filled == width && !line.flawed;
        let Some(names_no) = lines.lines.iter().position(is_names) else { return false };
        let (above, below) = (&lines.lines[..names_no], &lines.lines[names_no + 1..]);
        let titles = above.iter().filter(|line| !line.is_blank()).count();
        let records = below.iter().take_while(|line| !line.is_blank()).count();
        let fit = below[..records].iter().all(|line| line.width == width && !line.broken);
        if width < 2 || titles > TITLE_LINES_MAX || records == 0 || !fit || !is_text(lines.kinds(names_no)) {
            return false;
        }
        let behind_blank = titles < above.len();
        let has_values = (names_no + 1..=names_no + records)
            .any(|no| lines.kinds(no).iter().any(|kind| kind.is_value() && *kind != Kind::Text));
        if width != self.typed.len() {
            return behind_blank || (has_values && records >= RECORDS_SURE);
        }
        let values = lines.values(names_no, reader, window);
        let is_own = values.iter().map(|value| fold(value)).eq(self.names.iter().cloned());
        behind_blank && !is_own && has_values && self.typed.contains(&true)
    }

    /// Whether a record has values rather than text where this table has; `None` if that cannot be said.
    fn agrees(&self, kinds: &[Kind]) -> Option<bool> {
        if kinds.len() != self.typed.len() {
            return None;
        }
        let typed = || kinds.iter().zip(&self.typed).filter(|(kind, typed)| **typed && kind.is_value());
        let text = typed().filter(|(kind, _)| **kind == Kind::Text).count();
        (typed().count() > 0).then(|| text * 2 < typed().count())
    }
}

fn is_text(kinds: &[Kind]) -> bool {
    kinds.iter().all(|kind| *kind == Kind::Text)
}

/// The first [`LOOK_LINES`] lines.
fn first_lines(bytes: &[u8]) -> &[u8] {
    let ends = memchr::memchr2_iter(b'\n', b'\r', bytes);
    // Each of CR and LF counts: half as many lines are enough.
    let end = ends.take(2 * LOOK_LINES).last().map_or(bytes.len(), |at| at + 1);
    if memchr::memchr2_iter(b'\n', b'\r', bytes).nth(2 * LOOK_LINES).is_none() {
        bytes
    } else {
        &bytes[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Given, Sample, find};

    const TABLE: &str = "id,day,name\n1,2024-01-01,ada\n2,2024-01-02,bob\n3,2024-01-03,eve\n";

    fn known() -> TableEnd {
        TableEnd::of(&find(&Sample::of_whole(TABLE.as_bytes()), &Given::default()).unwrap())
    }

    #[test]
    fn names_and_records_behind_a_blank_line_are_another_table() {
        for other in [
            "\ncode,label\nA,alpha\n",
            "\n\nStations\ncode,label\nA,alpha\n",
            "Stations\n\ncode,label\nA,alpha\n",
            "\nplace,size,city\nParis,2.5,Rome\n",
            "code,label\nA,1\nB,2\nC,3\n",
            "\ncode,label,of,four\nA,1,2,3\n",
        ] {
            assert!(known().is_at(other.as_bytes(), true), "{other:?}");
        }
    }

    #[test]
    fn records_that_do_not_fit_are_none() {
        for other in [
            "\n4,2024-01-04,dan\n5,2024-01-05,tom\n",
            "4,2024-01-04\n5,2024-01-05\n6,2024-01-06\n7,2024-01-07\n",
            "\n4,2024-01-04\n5,2024-01-05\n",
            "4,2024-01-04,dan,x\n5,2024-01-05,tom\n",
            "\nid,day,name\n4,2024-01-04,dan\n",
            "Id,Day,Name\n4,2024-01-04,dan\n5,2024-01-05,tom\n6,2024-01-06,x\n",
            "\nTotal,3\n",
            "\n\n\n",
            "a note, or two\n",
            "",
        ] {
            assert!(!known().is_at(other.as_bytes(), true), "{other:?}");
        }
    }

    #[test]
    fn the_beginning_is_found_in_a_window() {
        let (known, finding) =
            (known(), find(&Sample::of_whole(TABLE.as_bytes()), &Given::default()).unwrap());
        let first = "8,2024-01-08,kim\n".repeat(50);
        let second = format!("\nstations\n\ncode,label\n{}", "A,alpha\n".repeat(50));
        let text = format!("{first}{second}");
        let found = known.find(&finding, text.as_bytes(), 1000, true);
        assert_eq!(found, Some(1000 + first.len() as u64));
        assert!(!known.is_before(&finding, first.as_bytes()));
        assert!(known.is_before(&finding, second.as_bytes()));
        let same_width = "Rome,1,x\n".repeat(50);
        assert!(known.is_before(&finding, same_width.as_bytes()));
    }
}
