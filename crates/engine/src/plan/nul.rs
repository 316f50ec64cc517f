//! No text in PostgreSQL holds a NUL, so that the server would refuse a name or a word with one as broken
//! bytes. What holds one is told by the name of its option instead.

use howdah_model::{Error, ErrorKind, Job, Result};
use serde_json::Value;

/// Options are among these in a [`Job`], and not by themselves.
const GROUPS: [&str; 5] = ["sources", "format", "shaping", "bad_records", "arrival"];

pub(super) fn expect_none(job: &Job) -> Result<()> {
    let told = |error: serde_json::Error| Error::new(ErrorKind::Internal, error.to_string());
    let job = serde_json::to_value(job).map_err(told)?;
    let Some(name) = of_an_option(&job) else { return Ok(()) };
    let option = if name == "id" { "job-id".to_owned() } else { name.replace('_', "-") };
    let message = format!("{option}: expected text that PostgreSQL can hold, got one with a NUL character");
    Err(Error::new(ErrorKind::Usage, message).with_hint("leave the character with the code 0 out"))
}

/// The name of the first option whose value holds one.
fn of_an_option(options: &Value) -> Option<&str> {
    if let Value::Array(groups) = options {
        return groups.iter().find_map(of_an_option);
    }
    options.as_object()?.iter().find_map(|(name, value)| match GROUPS.contains(&name.as_str()) {
        true => of_an_option(value),
        false => holds_nul(value).then_some(name.as_str()),
    })
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(holds_nul),
        Value::Object(pairs) => pairs.iter().any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
