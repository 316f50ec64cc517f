//! `howdah.restore`: puts back what loads have dropped and, being killed, could not put back themselves.

use crate::ending::Call;
use crate::{connection, events, run};
use howdah_engine::model::job::LEDGER_DEFAULT;
use howdah_engine::model::{Event, Listener};
use howdah_engine::{Absent, Context, Sources, restore as engine};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::sync::Arc;

/// Put back what loads have dropped and, being killed, could not put back themselves.
#[pyfunction]
#[pyo3(signature = (job=None, *, to=None, password_command=None, ledger=None, on_event=None),
       text_signature = "(job=None, *, to=None, password_command=None, ledger=None, on_event=None)")]
pub(crate) fn restore(
    py: Python<'_>,
    job: Option<String>,
    to: Option<String>,
    password_command: Option<String>,
    ledger: Option<String>,
    on_event: Option<&Bound<'_, PyAny>>,
) -> PyResult<usize> {
    let call = &Call::begin(py);
    let connection = connection::resolve(call, (to, password_command), Absent::Refused, on_event)?;
    let warned = Arc::<Warned>::default();
    let told = Arc::clone(&warned);
    let restored = run::run(call, on_event, move |listener, stop| async move {
        let listener = Arc::new(Listeners(listener, told));
        let context = Context { sources: Sources::of_process(), connection, listener, stop };
        let schema = ledger.as_deref().unwrap_or(LEDGER_DEFAULT);
        Ok(engine::restore(&context, schema, ledger.is_some(), job.as_deref()).await?)
    });
    let warnings = std::mem::take(&mut *warned.0.lock());
    for message in warnings.iter().filter(|_| on_event.is_none()) {
        // An exception that is on its way counts more than one that a filter makes of a warning.
        events::warn_of(py, message).or_else(|error| restored.is_err().then_some(()).ok_or(error))?;
    }
    Ok(restored?.back)
}

/// What is not as may be expected: there is no summary that could hold it.
#[derive(Default)]
struct Warned(Mutex<Vec<String>>);

/// Both hear of everything.
struct Listeners(Arc<dyn Listener>, Arc<Warned>);

impl Listener for Listeners {
    fn on_event(&self, event: &Event) {
        if let Event::Warning { message } = event {
            self.1.0.lock().push(message.clone());
        }
        self.0.on_event(event);
    }
}
