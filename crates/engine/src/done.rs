//! Loads of which nothing is left to do, and what a load says of files that others have loaded.

use crate::Context;
use crate::indexes::tell;
use crate::load::Outcome;
use crate::plan::in_tables;
use crate::tally::Tally;
use howdah_model::summary::Status;
use howdah_model::{Event, KnownFiles, Plan};

/// All files are in their tables already.
pub(crate) fn nothing_new(context: &Context, plan: &Plan) -> Outcome {
    tell(context, format!("nothing new: {}", in_tables(plan).unwrap_or_default()));
    done(context, &Tally::new(plan, context.connection.display()), plan)
}

fn done(context: &Context, tally: &Tally, plan: &Plan) -> Outcome {
    let summary = tally.summary(plan, Status::Done);
    context.listener.on_event(&Event::Done { summary: Box::new(summary.clone()) });
    Outcome { summary, error: None, written: Vec::new() }
}

/// Says which files are left out; a warning of those that are loaded once more comes back. The ledger keeps neither.
pub(crate) fn tell_known(context: &Context, plan: &mut Plan) -> Option<String> {
    let known = in_tables(plan);
    plan.known = Vec::new();
    if plan.job.known == KnownFiles::Skip && !plan.job.force {
        known.into_iter().for_each(|known| tell(context, format!("left out: {known}")));
        return None;
    }
    known.map(|known| format!("rows come once more: {known}"))
}
