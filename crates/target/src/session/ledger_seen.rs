//! Whether the ledger was there when a session was opened. To read tables that are not there is an error,
//! which stands in the server's log for its owner to wonder at: the first load of a database would leave a
//! dozen of them.

use crate::sql::quote_literal;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Who was told that the ledger is not there goes by the newest answer, until one says that it is: answers
/// come in any order, and that it is gone again is what statements are left to find out.
const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const THERE: u8 = 2;

/// What the sessions of one description know of the ledger.
#[derive(Debug, Default)]
pub(crate) struct LedgerSeen {
    /// The schema, unquoted, if sessions are to look.
    schema: Mutex<Option<String>>,
    what: AtomicU8,
}

impl LedgerSeen {
    /// Sessions that are opened from now on look for the ledger in this schema.
    pub(super) fn look_for(&self, schema: &str) {
        let mut looked_for = self.schema.lock();
        if looked_for.as_deref() != Some(schema) {
            *looked_for = Some(schema.to_owned());
            self.what.store(UNKNOWN, Relaxed);
        }
    }

    /// The column of a query that [`LedgerSeen::saw`] reads. Nothing is known yet of where the session looks
    /// for operators.
    pub(super) fn column_sql(&self) -> String {
        let Some(schema) = self.schema.lock().clone() else { return "NULL".to_owned() };
        format!(
            "EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
             WHERE n.nspname OPERATOR(pg_catalog.=) {} AND c.relname OPERATOR(pg_catalog.=) 'migration')",
            quote_literal(&schema)
        )
    }

    /// What the server has answered.
    pub(super) fn saw(&self, answer: Option<&str>) {
        let what = match answer {
            None => UNKNOWN,
            Some("t") => THERE,
            Some(_) => ABSENT,
        };
        self.what.fetch_max(what, Relaxed);
    }

    /// The ledger in this schema was not there, and nobody in this process has seen it since.
    pub(crate) fn is_absent(&self, schema: &str) -> bool {
        self.what.load(Relaxed) == ABSENT && self.schema.lock().as_deref() == Some(schema)
    }

    /// It is there now.
    pub(crate) fn is_there(&self) {
        self.what.store(THERE, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_taken_for_absent_by_an_older_answer() {
        let seen = LedgerSeen::default();
        assert!(!seen.is_absent("howdah"));
        seen.look_for("howdah");
        assert!(!seen.is_absent("howdah"));
        seen.saw(Some("f"));
        assert!(seen.is_absent("howdah") && !seen.is_absent("other"));
        seen.is_there();
        seen.saw(Some("f"));
        seen.look_for("howdah");
        assert!(!seen.is_absent("howdah"));
        seen.look_for("other");
        seen.saw(Some("f"));
        assert!(seen.is_absent("other"));
    }
}
