//! Reading the catalogs while others drop what stands in them.
//!
//! A query sees the catalogs as of its beginning, and functions that spell a definition look it up as it is
//! at that moment. Of what is gone by then some of them say NULL, and some fail with an internal error
//! (`cache lookup failed`). Source: `src/backend/utils/adt/ruleutils.c`.

use howdah_model::{Error, ErrorKind, Result, sqlstate};
use std::time::Duration;
use tokio::time::sleep;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

/// Who drops one thing after another is waited for a second.
const TRIES: u32 = 20;
const WAIT: Duration = Duration::from_millis(50);

/// The error may be that of something that was dropped meanwhile.
pub(crate) fn is_gone(error: &Error) -> bool {
    error.sqlstate() == Some(sqlstate::INTERNAL_ERROR)
}

/// What a function of the catalogs tells, which is never NULL of something that is there.
///
/// # Errors
/// One that [`is_gone`].
pub(crate) fn told<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|_| {
        let message = "something was dropped while the catalogs were read";
        Error::new(ErrorKind::Server, message)
            .with_sqlstate(sqlstate::INTERNAL_ERROR)
            .with_hint("run the same command again")
    })
}

/// All of these columns are told in all rows.
///
/// # Errors
/// As for [`told`].
pub(crate) fn expect_told(rows: &[Row], columns: &[usize]) -> Result<()> {
    rows.iter().try_for_each(|row| columns.iter().try_for_each(|column| told::<Any>(row, *column).map(drop)))
}

/// A value that is not NULL.
struct Any;

impl FromSql<'_> for Any {
    fn from_sql(_: &Type, _: &[u8]) -> std::result::Result<Any, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Any)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// One reading, which is done again while what it reads is gone from under it. Each try leaves its
/// transaction.
#[derive(Default)]
pub(crate) struct Reading {
    tries: u32,
}

impl Reading {
    /// Waits a moment where it is worth another try.
    pub(crate) async fn is_again(&mut self, error: &Error) -> bool {
        self.tries += 1;
        let is_again = is_gone(error) && self.tries < TRIES;
        if is_again {
            sleep(WAIT).await;
        }
        is_again
    }
}
