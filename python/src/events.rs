//! Events as Python dicts, handed to the caller's function on the caller's own thread.
//!
//! The keys are those of [`Event`]'s JSON form; `type` says which event it is.

use crate::json;
use howdah_engine::model::Event;
use pyo3::prelude::*;

/// Calls `on_event` with each event.
///
/// # Errors
/// The first exception it raises; the events after that one are not told.
pub(crate) fn tell<'a>(
    py: Python<'_>,
    on_event: &Bound<'_, PyAny>,
    events: impl IntoIterator<Item = &'a Event>,
) -> PyResult<()> {
    for event in events {
        on_event.call1((json::to_python(py, event)?,))?;
    }
    Ok(())
}
