//! How the sessions of a job read values: as the one that planned it first, whatever role, database and
//! environment of a later run say.
//!
//! `01/02/2024` is another day in another DateStyle, and a time without an offset another moment in another
//! TimeZone. So what the planning session goes by is kept in the plan and set on every session of the job; a
//! run that goes on with the job takes it from there, and so does a load of records that the job has
//! rejected.

use super::identity::Settled;
use crate::Connection;
use howdah_model::{Job, Result, ValueSettings};
use howdah_target::session::Session;

/// Has this session and all further ones read values as the job does. What is to be said comes back, where
/// that is not as this session would.
///
/// # Errors
/// Those of the session.
pub(super) async fn settle(
    connection: &Connection,
    session: &mut Session,
    job: &Job,
    settled: &Settled,
) -> Result<Option<String>> {
    let rejected = job.rejects_of.as_ref().filter(|_| settled.value_settings.is_empty());
    let (kept, job_id) = match rejected {
        Some(of) => (&of.value_settings, &of.job_id),
        None => (&settled.value_settings, &settled.name),
    };
    let mut values = session.own_values().clone();
    values.extend(kept.clone());
    connection.read_values_as(session, &values).await?;
    let differing = differing(&values, session.own_values());
    if differing.is_empty() {
        return Ok(None);
    }
    let differing = differing.join(", ");
    Ok(Some(match rejected {
        Some(_) => {
            format!("values are read as by job {job_id}, which has rejected these records: with {differing}")
        }
        None => format!("values are read as job {job_id} has begun to: with {differing}"),
    }))
}

/// The settings that are not this session's own, for people.
pub(super) fn differing(values: &ValueSettings, own: &ValueSettings) -> Vec<String> {
    let differs = |(name, value): &(&String, &String)| own.get(*name) != Some(*value);
    let said = |(name, value): (&String, &String)| {
        let own = own.get(name).map_or("unknown", String::as_str);
        format!("{name} {value:?} (this session has {own:?})")
    };
    values.iter().filter(differs).map(said).collect()
}
