//! Lines above a table that are not of it: titles, comments, metadata, blank ones, padded with empty fields
//! or not.

use super::cell_types::{Class, Kind};
use super::table::{Line, Lines, Profile, agreement};

/// Metadata above a table has fewer lines than this.
pub(super) const METADATA_LINES_MAX: usize = 4;

/// The first line of the table of this width: its header, or its first record. Who says that there is no
/// header wants the first record, and no names.
pub(super) fn end(lines: &Lines, width: usize, given_header: Option<bool>) -> usize {
    let mut profile = Profile::new(width);
    profile.add(lines, 0..lines.len());
    let all_marked = lines.lines.iter().all(|line| line.marked || line.is_blank());
    let (usual_filled, no_header) = (usual_filled(lines, width), given_header == Some(false));
    let sparse_records =
        no_header && lines.have_among(0..lines.len(), width, |line| is_sparse(line, usual_filled));
    let shape = Shape { lines, width, all_marked, usual_filled, sparse_records, classes: profile.classes() };
    let first_filled = lines.lines.iter().position(|line| !line.is_blank()).unwrap_or(lines.len());
    let mut blank = lines.lines[..first_filled].iter();
    if let Some(empty) = blank.position(|line| no_header && line.is_empty_record(width)) {
        return empty;
    }
    let found = (0..lines.len()).find(|no| shape.begins_table(*no));
    let first = found.unwrap_or(first_filled);
    shape.behind_metadata(first).filter(|_| !no_header).unwrap_or(first)
}

/// What the table's lines look like.
struct Shape<'a> {
    lines: &'a Lines,
    width: usize,
    /// Every line begins with a sign of comments, which then are none.
    all_marked: bool,
    usual_filled: usize,
    /// A record may have few fields filled.
    sparse_records: bool,
    classes: Vec<Option<Class>>,
}

fn usual_filled(lines: &Lines, width: usize) -> usize {
    let mut filled: Vec<usize> =
        lines.lines.iter().filter(|line| line.width == width).map(|line| line.filled).collect();
    filled.sort_unstable();
    filled.get(filled.len() / 2).copied().unwrap_or(0)
}

/// Filled on the left, and half as much as others at most.
fn is_sparse(line: &Line, usual_filled: usize) -> bool {
    line.left && line.filled * 2 <= usual_filled
}

impl Shape<'_> {
    fn begins_table(&self, no: usize) -> bool {
        let line = &self.lines.lines[no];
        if line.is_blank() || (line.marked && !self.all_marked && self.is_comment(no)) {
            return false;
        }
        if self.is_full(no) {
            return true;
        }
        if line.width == 1 || self.width == 1 || !self.leads(no) {
            return false;
        }
        let near =
            line.width.abs_diff(self.width) <= self.width.div_ceil(4) && line.filled * 5 >= self.width * 3;
        // Names may be more than the fields of most records, titles hardly ever.
        near || (line.width > self.width && self.is_names(no))
    }

    /// A marked line is the header (`#id,name`) only right above the first record.
    fn is_comment(&self, no: usize) -> bool {
        let (lines, below) = (&self.lines.lines, no + 1);
        let typed = self.classes.iter().flatten().count() > 0;
        let above_header =
            || typed && self.is_names(below) && below + 1 < lines.len() && !self.is_names(below + 1);
        !self.is_full(no)
            || self.width == 1
            || lines[no].remark
            || lines.get(below).is_some_and(|line| line.marked || line.is_blank() || above_header())
    }

    /// It has the table's width, and is not a title that was padded to it.
    fn is_full(&self, no: usize) -> bool {
        let line = &self.lines.lines[no];
        line.width == self.width && (self.width == 1 || !self.is_padded(no, line))
    }

    fn is_padded(&self, no: usize, line: &Line) -> bool {
        let sparse = !self.sparse_records && is_sparse(line, self.usual_filled);
        let first = self.lines.kinds(no).first().and_then(|kind| kind.class());
        let is_record = first.is_some() && first == self.classes.first().copied().flatten();
        sparse && !is_record
    }

    /// A record, or a header of another width, stands right above a line of the table: not above its header,
    /// for then it is a title.
    fn leads(&self, no: usize) -> bool {
        let below = no + 1;
        if below >= self.lines.len() || self.lines.lines[below].is_blank() {
            return false;
        }
        // The next record may be polluted too.
        let mut together =
            (below..self.lines.len()).take(3).take_while(|no| !self.lines.lines[*no].is_blank());
        let Some(full) = together.find(|no| self.is_full(*no)) else { return false };
        // So may another title stand above the header.
        let is_header = self.is_names(full) && full + 1 < self.lines.len() && !self.is_names(full + 1);
        !is_header
    }

    fn is_names(&self, no: usize) -> bool {
        self.lines.kinds(no).iter().all(|kind| *kind == Kind::Text)
    }

    /// A few lines of the table's own width, then a blank one, then names and many more lines: the few are
    /// metadata.
    fn behind_metadata(&self, first: usize) -> Option<usize> {
        let lines = &self.lines.lines;
        let block = lines.get(first..)?.iter().take_while(|line| !line.is_blank()).count();
        // A line that fills the table is no metadata above a record of empty fields, nor are those beside it.
        let full = lines[first..first + block].iter().any(|line| line.filled == self.width);
        let is_gap = |line: &&Line| line.is_blank() && !(full && line.is_empty_record(self.width));
        let gap = lines[first + block..].iter().take_while(is_gap).count();
        let names = first + block + gap;
        if block >= METADATA_LINES_MAX || gap == 0 || names >= lines.len() || !self.is_names(names) {
            return None;
        }
        let below = lines.len() - names;
        let mut profile = Profile::new(self.width);
        profile.add(self.lines, names + 1..lines.len());
        let classes = profile.classes();
        let typed = classes.iter().flatten().count();
        // Lines that fit the records are records, with a blank line among them.
        let fits = (first..first + block).all(|no| {
            let (same, text) = agreement(self.lines.kinds(no), &classes);
            typed > 0 && same > text
        });
        (self.is_full(names) && below > block * 2 && !fits).then_some(names)
    }
}
