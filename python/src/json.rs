//! Serialisable values as Python objects, by way of JSON text.
//!
//! Python's own parser builds the objects, so what the library returns has the keys and types of the
//! command's `--json`. A document is small and an event a hundred bytes: the detour costs microseconds.

use crate::errors::Failure;
use howdah_engine::model::{Error, ErrorKind};
use pyo3::prelude::*;
use serde::Serialize;

/// The value as dict, list, str, int, float, bool and None.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(|error| {
        let message = format!("a document cannot be written as JSON: {error}");
        Failure::from(Error::new(ErrorKind::Internal, message)).into_exception(py)
    })?;
    py.import("json")?.call_method1("loads", (text,))
}
