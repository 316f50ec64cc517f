//! Blank lines at the end of a file of one column that can only be read in order. Of a file whose end can be
//! seen beforehand the plan leaves them out, and they are no rows of NULL here either.

use crate::pipeline::Run;
use howdah_model::{Care, counted, plural, show_count};
use howdah_transcode::dialect::blank_end;

/// Where the records of the last chunk of a file end, if blank lines follow them, which are then told, and
/// how many these are.
pub(super) fn leave_out(run: &Run, file_no: u32, records: &[u8]) -> Option<(usize, u64)> {
    let file = run.plan.file(file_no);
    let table = run.plan.table(file.table_no);
    let was_seen = file.data_end_byte.is_some();
    let passes = table.dialect.is_some() && table.care != Care::Rewritten;
    if table.fields.len() != 1 || was_seen || !passes {
        return None;
    }
    let (end, lines) = blank_end(records)?;
    let (what, are) = (counted(&show_count(lines), "blank line"), plural(lines, "is", "are"));
    run.warn(format!("{}: {what} at its end {are} not loaded", file.location));
    Some((end, lines))
}
