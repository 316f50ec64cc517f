//! Databases of SQL_ASCII store the bytes that come. Those of a file that COPY reads are its own, and those
//! of records that the client rewrites are UTF-8: one text of two files would be two keys.

use howdah_model::plan::{Care, TablePlan};
use howdah_model::{Error, ErrorKind, Result};
use howdah_target::session::{Session, encoding};

/// # Errors
/// Unsupported, for records that are rewritten from an encoding whose bytes the database would store where
/// they are not; those of the session.
pub(super) async fn expect(session: &Session, plan: &TablePlan) -> Result<()> {
    let Some(name) = plan.recode.as_deref().filter(|_| plan.care == Care::Rewritten) else { return Ok(()) };
    if !encoding::stores_bytes_of(session, name).await? {
        return Ok(());
    }
    let message = format!(
        "its records have to be rewritten, as UTF-8, and are in {name}: the database, of SQL_ASCII, stores the bytes of other files \
         as they are, and one text would be stored in two ways"
    );
    let hint = format!(
        "convert the file, where the database is to hold UTF-8: iconv -f {name} -t UTF-8; a file of ASCII alone is loaded with --encoding UTF8"
    );
    Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
}
