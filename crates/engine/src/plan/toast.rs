//! How the server compresses values that are too wide for a page.
//!
//! PostgreSQL compresses such values (TOAST) before it stores them, by pglz unless a setting or the column
//! says otherwise; since version 14 it may have lz4, which takes a fraction of the time. Measured: 20,000
//! documents of 20 kB as jsonb, PostgreSQL 15 on two cores, two runs each: psql \\copy 14.5 and 15.5 s by
//! pglz, 6.5 s by lz4; this load 9.4 and 9.5 s by pglz, 5.0 and 6.7 s by lz4, and the table takes 278 instead
//! of 317 MB.

use super::head::Head;
use crate::Context;
use howdah_model::{Job, Result, TablePlan, ToastCompression, Tune};
use howdah_target::session::{Session, toast};
use howdah_transcode::split::{Rules, State};

/// Records longer than this are compressed: `TOAST_TUPLE_THRESHOLD`, a fourth of a page
/// (`src/include/access/heaptoast.h`).
const WIDE_BYTES: u64 = 2032;

/// Settles for each table whether its transactions ask for lz4: where its records are wide, the server has
/// it, and nobody has set another method.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    job: &Job,
    tables: &mut [TablePlan],
    placed: &[(u32, Head)],
) -> Result<()> {
    if job.toast_compression == ToastCompression::Keep || job.tune == Some(Tune::None) {
        return Ok(());
    }
    let of_table =
        |no: usize| placed.iter().filter(move |(table_no, _)| usize::try_from(*table_no) == Ok(no));
    let wide: Vec<usize> =
        (0..tables.len()).filter(|no| of_table(*no).any(|(_, head)| is_wide(head, session))).collect();
    if wide.is_empty() || !context.connection.attend(session, toast::may_use_lz4(session)).await? {
        return Ok(());
    }
    for no in wide {
        tables[no].toast_compression = Some(toast::LZ4.to_owned());
        tables[no].notes.push(
            "values too wide for a page are compressed by lz4, which costs the server less than pglz \
             (--toast-compression keep leaves it as it is)"
                .to_owned(),
        );
    }
    Ok(())
}

/// The records of the sample are wide on average. A sample without a whole record is of wider ones.
fn is_wide(head: &Head, session: &Session) -> bool {
    let (format, eol, sample) = head.sample();
    let Ok(rules) = Rules::new(&format, session.server_version(), eol) else { return false };
    let records = rules.scan(State::START, sample).records;
    match head.object().stored_bytes() {
        Some(stored) if records == 0 => stored > WIDE_BYTES,
        _ => sample.len() as u64 > records * WIDE_BYTES,
    }
}
