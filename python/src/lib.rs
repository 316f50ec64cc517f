//! The extension module `howdah._howdah`: an index of the verbs, one file each.
//!
//! Enters: Python arguments. Leaves: the engine's answers as Python objects, its errors as exceptions. There
//! is no loading logic here: [`options`] hands the arguments to the command's own settings, [`run`] waits
//! for the engine without holding the interpreter, [`errors`] is the only mapping to exceptions.

mod check;
mod command;
mod connection;
mod ending;
mod errors;
mod events;
mod json;
mod load;
mod mailbox;
mod options;
mod pg;
mod plan;
mod restore;
mod resume;
mod run;
mod status;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

/// Bulk loader for PostgreSQL. Import `howdah` instead.
#[pymodule(gil_used = false)]
fn _howdah(module: &Bound<'_, PyModule>) -> PyResult<()> {
    warn_of_debug_build(module.py())?;
    ending::attend(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(load::load, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan, module)?)?;
    module.add_function(wrap_pyfunction!(check::check, module)?)?;
    module.add_function(wrap_pyfunction!(status::status, module)?)?;
    module.add_function(wrap_pyfunction!(resume::resume, module)?)?;
    module.add_function(wrap_pyfunction!(restore::restore, module)?)?;
    module.add_function(wrap_pyfunction!(pg::pg_start, module)?)?;
    module.add_function(wrap_pyfunction!(pg::pg_stop, module)?)?;
    module.add_function(wrap_pyfunction!(pg::pg_status, module)?)?;
    module.add_function(wrap_pyfunction!(pg::pg_url, module)?)?;
    module.add_function(wrap_pyfunction!(command::command, module)?)
}

/// Nobody should measure the wrong build.
fn warn_of_debug_build(py: Python<'_>) -> PyResult<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let message = c"howdah was built without optimisation: do not measure this build";
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), message, 1)
}
