//! Numbers that the delimiter cuts at their decimal comma.

use super::header::COMPARED_LINES;
use super::rows::Reader;
use super::table::Lines;
use super::windows::Window;
use std::ops::Range;

/// The comma that is the delimiter may be that of fractions, too: in each record below a header with a name too few, two integers
/// stand side by side, no number has a point, and the first field has no quotes, as those have that name rows.
pub(super) fn may_be(
    lines: &Lines,
    (below, width): (Range<usize>, usize),
    reader: &mut Reader,
    window: &Window,
) -> bool {
    if reader.dialect.delimiter != "," {
        return false;
    }
    let is_whole = |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_amount = |value: &str| is_whole(value.strip_prefix('-').unwrap_or(value));
    let has_point = |value: &String| {
        value.split_once('.').is_some_and(|(before, behind)| is_amount(before) && is_whole(behind))
    };
    let mut records = 0;
    for no in below.take(COMPARED_LINES) {
        let Some(line) = lines.lines.get(no).filter(|line| !line.is_blank() && line.width == width) else {
            continue;
        };
        let quoted = window.text.get(line.start).is_some_and(|byte| Some(*byte) == reader.dialect.quote);
        let values = lines.values(no, reader, window);
        let pair = values.windows(2).any(|pair| is_amount(&pair[0]) && is_whole(&pair[1]));
        if quoted || !pair || values.iter().any(has_point) {
            return false;
        }
        records += 1;
    }
    records > 0
}
