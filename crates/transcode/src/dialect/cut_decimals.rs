//! Numbers that the delimiter cuts at their decimal comma.

use super::header::COMPARED_LINES;
use super::rows::Reader;
use super::table::Lines;
use super::windows::Window;
use std::ops::Range;

/// The comma that is the delimiter may be that of fractions, too: where a header has `missing` names too few,
/// as many pairs of fields are an amount and its fraction in every record, no number has a point, and the
/// first field has no quotes, as those have that name rows.
pub(super) fn may_be(
    lines: &Lines,
    (below, width, missing): (Range<usize>, usize, usize),
    reader: &mut Reader,
    window: &Window,
) -> bool {
    if reader.dialect.delimiter != "," {
        return false;
    }
    let has_point = |value: &String| {
        value.split_once('.').is_some_and(|(before, behind)| is_amount(before) && is_whole(behind))
    };
    let mut fractions = vec![Fractions::default(); width.saturating_sub(1)];
    for no in below.take(COMPARED_LINES) {
        let Some(line) = lines.lines.get(no).filter(|line| !line.is_blank() && line.width == width) else {
            continue;
        };
        let quoted = window.text.get(line.start).is_some_and(|byte| Some(*byte) == reader.dialect.quote);
        let values = lines.values(no, reader, window);
        if quoted || values.iter().any(has_point) {
            return false;
        }
        for (pair, fractions) in values.windows(2).zip(&mut fractions) {
            fractions.observe(&pair[0], &pair[1]);
        }
    }
    let (mut no, mut pairs) = (0, 0);
    while let Some(found) = fractions.get(no) {
        let is_pair = found.may_be();
        pairs += usize::from(is_pair);
        no += if is_pair { 2 } else { 1 };
    }
    missing > 0 && pairs >= missing
}

/// What stands in two fields side by side.
#[derive(Clone, Default)]
struct Fractions {
    lengths: Option<(usize, usize)>,
    ends_with_zero: bool,
    is_other: bool,
}

impl Fractions {
    fn observe(&mut self, amount: &str, fraction: &str) {
        self.is_other |= !is_amount(amount) || !is_whole(fraction);
        self.ends_with_zero |= fraction.len() > 1 && fraction.ends_with('0');
        let (least, most) = self.lengths.unwrap_or((fraction.len(), fraction.len()));
        self.lengths = Some((least.min(fraction.len()), most.max(fraction.len())));
    }

    /// Programs write as many digits in each fraction, or no zeros at its end.
    fn may_be(&self) -> bool {
        let is_even = self.lengths.is_some_and(|(least, most)| least == most);
        !self.is_other && self.lengths.is_some() && (is_even || !self.ends_with_zero)
    }
}

fn is_whole(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_amount(value: &str) -> bool {
    is_whole(value.strip_prefix('-').unwrap_or(value))
}
