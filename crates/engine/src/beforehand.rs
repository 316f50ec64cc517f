//! What a load says before its first chunk is sent.

use crate::load::Noted;
use crate::pipeline::Run;
use crate::plan::{columns, routing};
use crate::{emptied, in_part};

/// Warns of what the plan and the ledger tell; of files that are loaded `once_more` first.
pub(crate) fn warn(run: &Run, once_more: Option<String>, noted: &Noted) {
    once_more.into_iter().for_each(|warning| run.warn(warning));
    noted.in_part.iter().for_each(|stored| run.warn(in_part::warning(stored)));
    // They are told already.
    run.plan.warnings.iter().for_each(|message| _ = run.tally.warn(message));
    if noted.forgotten {
        run.warn(format!(
            "the ledger held chunks of an earlier job {}, which was deleted from it: they are forgotten, and everything is loaded",
            run.plan.job_id
        ));
    }
    if noted.crashed {
        run.warn(emptied::EMPTIED.to_owned());
    }
    for relation in &noted.emptied {
        run.warn(format!("{relation} was emptied since an earlier run of this job: what that had stored there is loaded again"));
    }
    for (relation, jobs) in &noted.come_since {
        let jobs = jobs.join(", ");
        run.warn(format!(
            "since this job began, rows have come into {relation} by {jobs}: they are taken out of it with those that were there"
        ));
    }
    warn_of_computed(run);
    warn_of_other_tables(run);
    warn_of_slow_ways(run);
    warn_of_record_like(run);
}

/// Values of the files that no column takes, since the server computes its own.
pub(crate) fn warn_of_computed(run: &Run) {
    columns::computed(&run.plan).for_each(|what| run.warn(what));
}

/// What follows the first table of a file is not loaded unless it was asked for.
pub(crate) fn warn_of_other_tables(run: &Run) {
    if !run.plan.job.shaping.all_tables {
        for file in run.plan.files.iter().filter(|file| file.other_table) {
            run.warn(format!("{} holds several tables: the first one is loaded", file.location));
        }
    }
}

/// Each row that goes to another server by itself takes a round trip.
fn warn_of_slow_ways(run: &Run) {
    routing::slow_ways(&run.plan).for_each(|way| run.warn(way.to_owned()));
}

/// Nothing that looks like a record is left out without a word.
pub(crate) fn warn_of_record_like(run: &Run) {
    for file in run.plan.files.iter().filter(|file| file.record_like > 0) {
        let what = match file.record_like {
            1 => "1 line before or behind the table that could be a record is".to_owned(),
            many => format!("{many} lines before or behind the table that could be records are"),
        };
        run.warn(format!(
            "{}: {what} not loaded, being taken for titles, totals, notes or blank lines; --format csv or text loads all",
            file.location
        ));
    }
}
