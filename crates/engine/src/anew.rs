//! Plans and loads in one. A job enters, an account leaves. Where others have loaded files of the plan before the load could begin, and
//! `--known skip` leaves such files out, or have replaced a table of it, it is planned anew: nothing is stored by then.

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
        let is_elsewhere = tried.is_elsewhere.load(Relaxed);
        let is_outdated = is_elsewhere || (skips && tried.is_outdated.load(Relaxed));
        if !(outcome.is_err() && comes_again && is_outdated) {
            return outcome;
        }
        context.tell(match is_elsewhere {
            true => "others have replaced a table of this load since it was planned: planning it anew",
            false => "others have loaded files of this load since it was planned: planning it anew",
        });
    }
    let planned = plan_to_load(context, job).await?;
    load_planned(context, prepare(planned), &Tried::default()).await
}
