//! Plans and loads in one. A job enters, an account leaves. Where others have loaded files of the plan before the load could begin, and
//! `--known skip` leaves such files out, it is planned anew: nothing is stored by then.

use crate::Context;
use crate::begin::Tried;
use crate::load::{Outcome, load_planned};
use crate::plan::{Planned, plan_to_load};
use howdah_model::{Job, KnownFiles, Result};
use std::sync::atomic::Ordering::Relaxed;

/// Each needs another load that begins and ends while this one looks at its sources.
const PLANS_MAX: usize = 5;

/// [`plan_to_load`](crate::plan_to_load), `prepare`, [`load`](crate::load()).
///
/// # Errors
/// Those of the two.
pub async fn plan_and_load(
    context: &Context,
    job: Job,
    prepare: impl Fn(Planned) -> Planned,
) -> Result<Outcome> {
    let skips = job.known == KnownFiles::Skip && !job.force;
    for _ in 1..PLANS_MAX {
        let planned = plan_to_load(context, job.clone()).await?;
        // What came out of a pipe would be lost.
        let comes_again = planned.plan.files.iter().all(|file| file.rereadable);
        let tried = Tried::default();
        let outcome = load_planned(context, prepare(planned), &tried).await;
        if !(outcome.is_err() && skips && comes_again && tried.is_outdated.load(Relaxed)) {
            return outcome;
        }
        context.tell("others have loaded files of this load since it was planned: planning it anew");
    }
    let planned = plan_to_load(context, job).await?;
    load_planned(context, prepare(planned), &Tried::default()).await
}
