//! What stands behind a line `\\.`, with which COPY ends whatever follows.

use crate::pipeline::Run;

/// Bytes of the marker itself, its line ending aside.
pub(super) const MARKER_BYTES: usize = 2;

/// What follows is not loaded, as COPY would not load it, but not lost without a word.
pub(super) fn tell(run: &Run, file_no: u32, record: u64, byte: u64) {
    let location = &run.plan.file(file_no).location;
    run.warn(format!(
        "the end-of-data marker \\. at record {record}, byte {byte}, of {location} ends the data: what follows it is not loaded"
    ));
}
