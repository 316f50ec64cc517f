//! What `howdah plan` says of settings: before, during and after, what each gains and what it risks.

use howdah_engine::model::{Relation, Tune, TuneScope, Tuned, TuningPlan};
use std::fmt::Write;

/// Tables whose setting is the same are named up to this many.
const TABLES_NAMED: usize = 3;

/// Adds it to the plan's text.
pub(super) fn show(text: &mut String, tuning: &TuningPlan) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "settings (--tune {})", word(tuning.level));
    let mut shown: Vec<&Tuned> = Vec::new();
    for setting in &tuning.settings {
        if shown.iter().any(|other| same(other, setting)) {
            continue;
        }
        let relations: Vec<&Relation> = tuning
            .settings
            .iter()
            .filter(|other| same(other, setting))
            .filter_map(|other| other.relation.as_ref())
            .collect();
        show_setting(text, setting, &relations);
        shown.push(setting);
    }
    for note in &tuning.notes {
        let _ = writeln!(text, "  {note}");
    }
    for risk in &tuning.unsafe_as_it_is {
        let _ = writeln!(text, "  WARNING, as it is without this load: {risk}");
    }
}

fn same(one: &Tuned, other: &Tuned) -> bool {
    one.scope == other.scope && one.name == other.name && one.before == other.before
}

fn show_setting(text: &mut String, setting: &Tuned, relations: &[&Relation]) {
    let of = match (setting.scope, relations) {
        (TuneScope::Session, _) => " of this load's sessions".to_owned(),
        (TuneScope::Server, _) => " of the server".to_owned(),
        (TuneScope::Table, relations) => {
            let named: Vec<String> = relations.iter().take(TABLES_NAMED).map(ToString::to_string).collect();
            match relations.len().saturating_sub(TABLES_NAMED) {
                0 => format!(" of {}", named.join(", ")),
                more => format!(" of {} and {more} more", named.join(", ")),
            }
        }
    };
    let before = match (&setting.before, &setting.in_force) {
        (Some(before), _) => before.clone(),
        (None, Some(in_force)) => format!("not set there ({in_force} is in force)"),
        (None, None) => "not set".to_owned(),
    };
    let after = setting.after.as_deref().unwrap_or("not set");
    let _ =
        writeln!(text, "  {}{of}: before {before}, during {}, after {after}", setting.name, setting.during);
    let _ = writeln!(text, "    gain: {}", setting.gain);
    if let Some(risk) = &setting.risk {
        let _ = writeln!(text, "    risk: {risk}");
    }
}

fn word(level: Tune) -> &'static str {
    match level {
        Tune::None => "none",
        Tune::Session => "session",
        Tune::Table => "table",
        Tune::Server => "server",
    }
}
