//! Plans and loads in one. A job enters, an account leaves. Where others have loaded files of the plan before
//! the load could begin, and `--known skip` leaves such files out, or have replaced a table of it, it is
//! planned anew: nothing is stored by then.

use crate::Context;
use crate::begin::Tried;
use crate::load::{Outcome, load_planned};
use crate::plan::{Planned, plan_to_load};
use howdah_model::{Event, Job, KnownFiles, Listener, Result, Summary};
use parking_lot::Mutex;
use std::sync::Arc;
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
    let noting = Arc::new(Noting { listener: Arc::clone(&context.listener), warnings: Mutex::default() });
    let context = Context { listener: noting.clone(), ..context.clone() };
    let mut outcome = try_plans(&context, job, prepare).await?;
    noting.complete(&mut outcome.summary);
    Ok(outcome)
}

/// Notes the warnings that it passes on: some are said before there is an account of the load that could hold
/// them.
struct Noting {
    listener: Arc<dyn Listener>,
    warnings: Mutex<Vec<String>>,
}

impl Noting {
    fn complete(&self, summary: &mut Summary) {
        for warning in self.warnings.lock().iter() {
            if !summary.warnings.contains(warning) {
                summary.warnings.push(warning.clone());
            }
        }
    }
}

impl Listener for Noting {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Warning { message } => self.warnings.lock().push(message.clone()),
            Event::Done { summary } => {
                let mut summary = summary.clone();
                self.complete(&mut summary);
                return self.listener.on_event(&Event::Done { summary });
            }
            _ => {}
        }
        self.listener.on_event(event);
    }
}

async fn try_plans(context: &Context, job: Job, prepare: impl Fn(Planned) -> Planned) -> Result<Outcome> {
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
            true => "others have made, changed or replaced a table of this load since it was planned: planning it anew",
            false => "others have loaded files of this load since it was planned: planning it anew",
        });
    }
    let planned = plan_to_load(context, job).await?;
    load_planned(context, prepare(planned), &Tried::default()).await
}
