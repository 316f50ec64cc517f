//! Where in a file the table is: behind titles and metadata, below its header, before totals, footnotes and
//! a second table.
//!
//! One record of another shape is pollution, never a border: a border needs lines on its far side that
//! agree with one another and not with the table, or the end of the file close by.

use super::cell_types::{Class, Kind};
use super::declared_names;
use super::footer;
use super::header::{self, HEADER_LINES_MAX, Place};
use super::preamble::{self, METADATA_LINES_MAX};
use super::rows::Reader;
use super::table::{Line, Lines, Profile, agreement, usual_width};
use super::windows::{Window, Windows};
use std::ops::Range;

/// What was found. Numbers are those of lines: in the head, and for `tail_end` in the tail.
#[derive(Debug, Clone)]
pub(super) struct Regions {
    pub(super) width: usize,
    /// The first line of the table: its header, or its first record.
    pub(super) start: usize,
    pub(super) header_lines: usize,
    /// How sure the header is; `None` if it was given.
    pub(super) header_weight: Option<f64>,
    /// The first line of the head that is no data any more.
    pub(super) end: Option<usize>,
    /// The same for the tail.
    pub(super) tail_end: Option<usize>,
    pub(super) second: Option<usize>,
    pub(super) footer_lines: usize,
    /// Lines that are cut off at both ends though they have as many fields as a record, or no blank line
    /// above.
    pub(super) record_like: usize,
    /// More lines stand above the table than metadata has, and than the table has records.
    pub(super) many_above: bool,
}

/// All windows cut into lines.
pub(super) struct Cut {
    pub(super) head: Lines,
    pub(super) middle: Lines,
    pub(super) tail: Lines,
}

impl Cut {
    pub(super) fn new(reader: &mut Reader, windows: &Windows) -> Cut {
        let mut read =
            |window: Option<&Window>| window.map(|window| Lines::read(reader, window)).unwrap_or_default();
        let mut cut = Cut {
            head: read(Some(&windows.head)),
            middle: read(windows.middle.as_ref()),
            tail: read(windows.tail.as_ref()),
        };
        let windows = [&mut cut.head, &mut cut.middle, &mut cut.tail];
        let width = usual_width(windows.iter().flat_map(|lines| lines.inner()));
        windows.into_iter().for_each(|lines| lines.drop_cut_fields(width));
        cut
    }

    /// The lines of each window together with it.
    pub(super) fn with_windows<'a, 'w>(
        &'a self,
        windows: &'a Windows<'w>,
    ) -> impl Iterator<Item = (&'a Lines, &'a Window<'w>)> + Clone {
        let pairs = [
            Some((&self.head, &windows.head)),
            windows.middle.as_ref().map(|window| (&self.middle, window)),
            windows.tail.as_ref().map(|window| (&self.tail, window)),
        ];
        pairs.into_iter().flatten()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Line> {
        self.head.lines.iter().chain(&self.middle.lines).chain(&self.tail.lines)
    }

    /// The columns' kinds, in the head from line `from` on to `end`, and in the later windows.
    pub(super) fn profile(&self, width: usize, from: usize, end: Option<usize>) -> Profile {
        let mut profile = Profile::new(width);
        profile.add(&self.head, from..end.unwrap_or(self.head.len()));
        if end.is_none() {
            profile.add(&self.middle, 0..self.middle.len());
            profile.add(&self.tail, 0..self.tail.len());
        }
        profile
    }
}

/// Finds the regions. `given_header` says whether there is a header, and `width` how many fields the first
/// table has, if that is known.
pub(super) fn find(
    cut: &Cut,
    windows: &Windows,
    reader: &mut Reader,
    given_header: Option<bool>,
    width: Option<usize>,
) -> Regions {
    let width = width.unwrap_or_else(|| first_width(&cut.head, usual_width(cut.all())));
    let start = preamble::end(&cut.head, width, given_header);
    let mut regions = Regions {
        width,
        start,
        header_lines: 0,
        header_weight: None,
        end: None,
        tail_end: None,
        second: None,
        footer_lines: 0,
        record_like: 0,
        many_above: false,
    };
    let declared = declared_names::line_above(&cut.head, start, width, &windows.head);
    match declared.filter(|_| given_header != Some(false)) {
        // What stands between it and the first record are comments, too.
        Some(line) => (regions.start, regions.header_lines) = (line, start - line),
        None => {
            regions.find_header(cut, windows, reader, given_header);
            regions.find_other_header(cut, windows, reader, given_header);
        }
    }
    let data = regions.start + regions.header_lines;
    regions.second = second_table(&cut.head, width, data, reader, &windows.head);
    regions.end = regions.second;
    if regions.second.is_some() && declared.is_none() && regions.start == start {
        // The lines of the second table have spoken about the header of the first one.
        regions.find_header(cut, windows, reader, given_header);
        regions.find_other_header(cut, windows, reader, given_header);
    }
    let data = regions.start + regions.header_lines;
    let head_ends = windows.head.at_end || regions.second.is_some();
    if head_ends {
        let end = regions.end.unwrap_or(cut.head.len());
        let profile = cut.profile(width, data, Some(end));
        let found = footer::find(&cut.head, data..end, &profile, reader, &windows.head, &[]);
        regions.footer_lines = end - found;
        regions.record_like = below_record(&cut.head, found..end, width);
        let cut_off = found < cut.head.len() || windows.head.padded;
        regions.end = cut_off.then_some(found);
    } else if let Some(window) = windows.tail.as_ref() {
        let profile = cut.profile(width, data, None);
        let before = [&cut.head, &cut.middle];
        let mut found = footer::find(&cut.tail, 0..cut.tail.len(), &profile, reader, window, &before);
        // The last lines of a long text in quotes may look like notes.
        if cut.tail.lines.get(found).is_some_and(|line| reader.is_quoted(window, line.start)) {
            found = cut.tail.len();
        }
        regions.footer_lines = cut.tail.len() - found;
        regions.record_like = below_record(&cut.tail, found..cut.tail.len(), width);
        regions.tail_end = (found < cut.tail.len() || window.padded).then_some(found);
    }
    regions.look_above(cut, windows, data);
    regions
}

/// How many of the lines behind the last record could be records: those directly below it, too.
fn below_record(lines: &Lines, range: Range<usize>, width: usize) -> usize {
    let behind = lines.lines.get(range.clone()).unwrap_or_default();
    let directly = behind.iter().take_while(|line| !line.is_blank()).count();
    directly + record_like(lines, range.start + directly..range.end, width)
}

/// How many of these lines could be records: COPY takes one of delimiters alone for a record, too, of
/// whatever width.
fn record_like(lines: &Lines, range: Range<usize>, width: usize) -> usize {
    let lines = lines.lines.get(range).unwrap_or_default();
    let written = |line: &Line| width > 1 || line.is_empty_record(width);
    lines.iter().filter(|line| line.width == width && written(line) || line.only_delimits).count()
}

/// How many of these lines could be records that lack fields: they have half of them at least, more than the
/// pairs that metadata come in, and values of their columns.
fn short_records(lines: &Lines, range: Range<usize>, profile: &Profile) -> usize {
    let (width, classes) = (profile.width(), profile.classes());
    let may_be = |no: &usize| {
        let line = &lines.lines[*no];
        let (same, text) = agreement(lines.kinds(*no), &classes);
        line.width > 2 && line.width < width && line.width * 2 >= width && same > 0 && text == 0
    };
    range.filter(|no| *no < lines.len()).filter(may_be).count()
}

impl Regions {
    /// How many lines right below the header are drawn, and hold no values.
    pub(super) fn lines_drawn_below_header(&self, head: &Lines) -> usize {
        let below = head.lines.iter().skip(self.start + self.header_lines);
        if self.header_lines == 0 { 0 } else { below.take_while(|line| line.ruled).count() }
    }

    /// Notices records among the lines above the table.
    fn look_above(&mut self, cut: &Cut, windows: &Windows, data: usize) {
        // `sep=;` has a delimiter, and says which one.
        let declared = usize::from(declared_names::delimiter(&windows.head.text).is_some());
        let above = declared.min(self.start)..self.start;
        let profile = cut.profile(self.width, data, self.end);
        self.record_like += record_like(&cut.head, above.clone(), self.width);
        self.record_like += short_records(&cut.head, above, &profile);
        let lines = cut.head.lines.iter().take(self.start);
        let titles = lines.filter(|line| !line.is_blank() && !line.marked).count();
        let records = self.end.unwrap_or(cut.head.len()).saturating_sub(data);
        self.many_above = titles > records.max(METADATA_LINES_MAX);
    }

    fn find_header(&mut self, cut: &Cut, windows: &Windows, reader: &mut Reader, given: Option<bool>) {
        (self.header_lines, self.header_weight) = (0, None);
        if given == Some(false) || self.start >= cut.head.len() {
            return;
        }
        let stop = self.end.unwrap_or(cut.head.len()).min(self.start + HEADER_LINES_MAX);
        let (mut no, mut by_place) = (self.start, false);
        while no < stop {
            let line = &cut.head.lines[no];
            let first = no == self.start;
            if !first && line.ruled {
                break;
            }
            let profile = self.profile_below(cut, no);
            let sparse_first = first && is_spread(line, self.width);
            // Below what spans columns stands the line that names them.
            let is_first_names =
                first || (no == self.start + 1 && is_spread(&cut.head.lines[self.start], self.width));
            let place = if is_first_names { Place::First } else { Place::Further };
            let verdict = header::verdict(&cut.head, no, place, &profile, reader, &windows.head);
            if first {
                self.header_weight = given.is_none().then_some(verdict.weight);
            }
            let more = if first {
                verdict.is_header() || given == Some(true)
            } else {
                // A record with a word for one of its values is more usual than a second line of names.
                let (_, against) = agreement(cut.head.kinds(no), &profile.classes());
                let words = against > 1 || is_spread(&cut.head.lines[self.start], self.width);
                // Who says that there is a header means one record.
                given.is_none()
                    && verdict.by_types
                    && words
                    && is_full_header(line, self.width, verdict.weight)
            };
            let spans = sparse_first && no + 1 < stop && !cut.head.lines[no + 1].is_blank();
            let names = more || (first && spans && self.names_follow(cut, windows, reader, no + 1));
            if !names {
                break;
            }
            by_place |= first && !more;
            no += 1;
            // Names above names: what spans columns stands above what names them.
            if first && !verdict.by_types && !spans {
                break;
            }
        }
        self.header_lines = no - self.start;
        // What spans columns, and has no names below it, was taken for names by its gaps alone.
        if by_place && self.header_lines == 1 {
            self.header_weight = self.header_weight.map(|_| BY_PLACE);
        }
    }

    /// The columns' kinds below line `no`, further names aside.
    fn profile_below(&self, cut: &Cut, no: usize) -> Profile {
        let is_names =
            |no: &usize| cut.head.lines[*no].width == self.width && is_all_text(cut.head.kinds(*no));
        let end = self.end.unwrap_or(cut.head.len());
        let names = (no + 1..end).take(HEADER_LINES_MAX).take_while(is_names).count();
        let profile = cut.profile(self.width, no + 1 + names, self.end);
        if profile.is_empty() { cut.profile(self.width, no + 1, self.end) } else { profile }
    }

    /// A header that another delimiter cuts stands above the first record.
    fn find_other_header(&mut self, cut: &Cut, windows: &Windows, reader: &Reader, given: Option<bool>) {
        let Some(above) = self.start.checked_sub(1) else { return };
        let wanted = self.header_lines == 0 && given != Some(false) && !cut.head.lines[above].marked;
        if wanted && header::otherwise(&cut.head, above, self.width, reader, &windows.head).is_some() {
            (self.start, self.header_lines) = (above, 1);
        }
    }

    fn names_follow(&self, cut: &Cut, windows: &Windows, reader: &mut Reader, no: usize) -> bool {
        let profile = cut.profile(self.width, no + 1, self.end);
        header::verdict(&cut.head, no, Place::First, &profile, reader, &windows.head).is_header()
    }
}

/// A further header line is sure: text where the columns are typed, and little of it missing.
fn is_full_header(line: &Line, width: usize, weight: f64) -> bool {
    weight > 0.0 && line.width == width && line.filled * 2 >= width && (weight >= 3.0 || line.filled == width)
}

/// Filled here and there: a line that spans columns.
fn is_spread(line: &Line, width: usize) -> bool {
    line.width == width && !line.left && line.filled < width && line.filled > 0
}

/// The width of the first table: that of the most lines, or that of a whole table that stands before these.
fn first_width(lines: &Lines, usual: usize) -> usize {
    let mut at = 0;
    while at < lines.len() {
        let line = &lines.lines[at];
        let run =
            lines.lines[at..].iter().take_while(|next| next.width == line.width && !next.is_blank()).count();
        if line.width == usual && run > 1 && !line.is_blank() {
            return usual;
        }
        let mut profile = Profile::new(line.width);
        profile.add(lines, at + 1..at + run);
        let typed = profile.classes().iter().flatten().count();
        let (_, text) = agreement(lines.kinds(at), &profile.classes());
        // Metadata comes in pairs too, but not in many that are alike.
        let told = typed > 0 && text * 2 >= typed && run >= 3;
        if line.width > 1 && line.filled > 1 && (told || run >= 10) {
            return line.width;
        }
        at += run.max(1);
    }
    usual
}

/// What speaks for a header that has gaps and no other sign: unsure.
const BY_PLACE: f64 = 0.0;

/// So many lines beyond a border are looked at.
const BEYOND_LINES: usize = 8;

/// Text in so many columns at once that hold something else is names, and no odd record.
const NAMES_SURE: usize = 4;

/// The first line of a second table, its title included.
fn second_table(
    lines: &Lines,
    width: usize,
    data: usize,
    reader: &mut Reader,
    window: &Window,
) -> Option<usize> {
    let header = data.checked_sub(1).map(|no| lines.values(no, reader, window)).unwrap_or_default();
    let (mut profile, mut added) = (Profile::new(width), data);
    let mut classes = profile.classes();
    for no in data + 1..lines.len() {
        let (line, before) = (&lines.lines[no], &lines.lines[no - 1]);
        if line.is_blank() || line.broken {
            continue;
        }
        // Cheap before thorough: only odd lines are borders.
        let odd = before.is_blank() || line.width != width || is_all_text(lines.kinds(no));
        if !odd {
            continue;
        }
        // Records of other widths may be many, and this one wide.
        if profile.add(lines, added..no) {
            classes = profile.classes();
        }
        added = no;
        // What a stray quote makes of a line speaks for nothing.
        let is_whole = |no: &usize| !lines.lines[*no].is_blank() && !lines.lines[*no].broken;
        let beyond: Vec<usize> = (no..lines.len()).filter(is_whole).take(BEYOND_LINES).collect();
        let border = if line.width == width {
            let values = lines.values(no, reader, window);
            let words = values.iter().filter(|value| header::has_word(value)).count() * 2 >= width;
            let sure = before.is_blank() || words;
            names_again(lines, no, &beyond, &classes, sure)
                && values != header
                && (before.is_blank()
                    || classes.iter().flatten().count() >= NAMES_SURE
                    || is_other_below(lines, &beyond, &classes))
        } else {
            is_border(lines, &beyond, width, &classes, before.is_blank())
        };
        if border {
            return Some(no);
        }
    }
    None
}

fn is_all_text(kinds: &[Kind]) -> bool {
    kinds.iter().all(|kind| *kind == Kind::Text)
}

/// The lines behind the first hold other kinds of values than the table. Where they do not, one odd line
/// among records is an odd record.
fn is_other_below(lines: &Lines, beyond: &[usize], classes: &[Option<Class>]) -> bool {
    let mut below = Profile::new(classes.len());
    for no in beyond.iter().skip(1) {
        below.add(lines, *no..*no + 1);
    }
    below
        .classes()
        .iter()
        .zip(classes)
        .any(|(below, above)| below.is_some() && above.is_some() && below != above)
}

/// A line of the table's width that is text wherever the table and the lines below are not.
fn names_again(lines: &Lines, no: usize, beyond: &[usize], classes: &[Option<Class>], sure: bool) -> bool {
    let mut below = Profile::new(classes.len());
    for no in beyond.iter().skip(1) {
        below.add(lines, *no..*no + 1);
    }
    let (same_below, text_below) = agreement(lines.kinds(no), &below.classes());
    if same_below > 0 || text_below == 0 {
        return false;
    }
    let (same, text) = agreement(lines.kinds(no), classes);
    let typed = classes.iter().flatten().count();
    let enough = if sure { 1 } else { 2 };
    !lines.lines[no].flawed && is_all_text(lines.kinds(no)) && same == 0 && text >= enough && text == typed
}

/// Lines that agree with one another, and not with the table.
fn is_border(
    lines: &Lines,
    beyond: &[usize],
    width: usize,
    classes: &[Option<Class>],
    behind_blank: bool,
) -> bool {
    let other = usual_width(beyond.iter().map(|no| &lines.lines[*no]).filter(|line| line.width > 1));
    let agree = beyond.iter().filter(|no| lines.lines[**no].width == other).count();
    if other == width || other < 2 {
        let (fits, names) = fits(lines, beyond, width, classes);
        // The second table may have the width of the first one, below a title.
        return behind_blank && names && !fits;
    }
    if behind_blank {
        return agree >= 2 && agree * 10 >= beyond.len() * 6;
    }
    // Records that have a field more or less from here on are no table: names stand above one.
    agree == beyond.len() && agree >= 2 && are_names_above(lines, beyond, other)
}

/// The first of these lines is text wherever those below it are not, and somewhere they are not.
fn are_names_above(lines: &Lines, beyond: &[usize], width: usize) -> bool {
    let Some((first, rest)) = beyond.split_first() else { return false };
    let mut below = Profile::new(width);
    for no in rest {
        below.add(lines, *no..*no + 1);
    }
    let kinds = lines.kinds(*first);
    let (same, text) = agreement(kinds, &below.classes());
    is_all_text(kinds) && same == 0 && text > 0
}

/// Whether the first full line is a record of the table, and whether it is names.
fn fits(lines: &Lines, beyond: &[usize], width: usize, classes: &[Option<Class>]) -> (bool, bool) {
    let Some(full) = beyond.iter().find(|no| lines.lines[**no].width == width) else { return (false, false) };
    let last = beyond.last() == Some(full);
    let (same, text) = agreement(lines.kinds(*full), classes);
    (same > 0 || text == 0, !last && text > 0 && is_all_text(lines.kinds(*full)))
}
