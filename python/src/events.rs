//! Events as Python dicts, handed to the caller's function on the caller's own thread.
//!
//! The keys are those of [`Event`]'s JSON form; `type` says which event it is.

use crate::errors::python_names;
use crate::json;
use howdah_engine::model::Event;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::borrow::Cow;
use std::ffi::CString;

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
        on_event.call1((json::to_python(py, &*spelled(event))?,))?;
    }
    Ok(())
}

/// What is told in words names options as Python spells them, like errors.
fn spelled(event: &Event) -> Cow<'_, Event> {
    match event {
        Event::Notice { message } => Cow::Owned(Event::Notice { message: python_names(message) }),
        Event::Warning { message } => Cow::Owned(Event::Warning { message: python_names(message) }),
        event => Cow::Borrowed(event),
    }
}

/// What is told in words becomes warnings of Python, when the caller's function is not called any more. That
/// a filter makes errors of them changes nothing: an exception is on its way already.
pub(crate) fn warn<'a>(py: Python<'_>, events: impl IntoIterator<Item = &'a Event>) {
    for event in events {
        if let Event::Notice { message } | Event::Warning { message } = event {
            let _ = warn_of(py, message);
        }
    }
}

/// One warning of Python.
///
/// # Errors
/// What a filter makes of it.
pub(crate) fn warn_of(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = CString::new(python_names(message))?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 1)
}

/// What the user should know before there is a load: a notice for the caller's function, else a warning of
/// Python.
///
/// # Errors
/// What the function raises, or a filter makes of the warning.
pub(crate) fn notice(py: Python<'_>, on_event: Option<&Bound<'_, PyAny>>, message: &str) -> PyResult<()> {
    match on_event {
        Some(on_event) => tell(py, on_event, [&Event::Notice { message: message.to_owned() }]),
        None => warn_of(py, message),
    }
}
