//! Whether what stands under the name of a table that a job makes is the one that the job has made. Names
//! follow from the job's, so anybody who may make tables there can be first: the statements that fill, empty
//! and drop the table would run triggers, views and defaults of theirs with the loader's rights, and show
//! them its rows.
//!
//! It is known by its OID, which the ledger's journal has from the transaction that made it. Its owner must
//! be a role that could have code run by the load in any case, for others may write to the ledger. What it
//! looks like is not asked: whoever may give it a trigger may do so a moment later.

use super::names::is_of_job;
use crate::error::session_error;
use crate::ledger::Ledger;
use crate::membership::{acts_as_sql, is_of_group_sql};
use crate::session::Session;
use crate::sql::{quote_ident, quote_relation};
use howdah_model::{Error, ErrorKind, Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// What stands under the name `$2` in schema `$1`: its OID, whether it is a table, its owner, and whether
/// that is a role with a say over this one: it can act as this role, as a superuser can, or change the table
/// `$3` that the rows are for, whose triggers a load runs anyway; or it is a group that this role is of.
const STANDS_SQL: &str = "\
    SELECT c.oid, c.relkind = 'r', owner.rolname::pg_catalog.text, \
           @acts_as_me@ OR @is_of_group@ \
           OR coalesce((SELECT @has_table@ FROM pg_catalog.pg_class t \
                        WHERE t.oid = pg_catalog.to_regclass($3)::pg_catalog.oid), false) \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_roles owner ON owner.oid = c.relowner \
    JOIN pg_catalog.pg_roles me ON me.rolname = CURRENT_USER \
    WHERE n.nspname = $1 AND c.relname = $2";

/// The OID of the job's own table of this name, whose rows are for `table`; `None` if nothing has the name.
///
/// # Errors
/// Table, where it is none that the job has made; Ledger, where no job makes one of this name; those of
/// ledger and session.
pub(crate) async fn find(
    session: &Session,
    ledger: &Ledger,
    job_id: &str,
    own: &Relation,
    table: &Relation,
) -> Result<Option<u32>> {
    expect_name(ledger, job_id, own)?;
    let Some(stands) = stands(session, own, table).await? else { return Ok(None) };
    stands.expect_trusted(own)?;
    match ledger.has_made(session, job_id, own, stands.oid).await? {
        true => Ok(Some(stands.oid)),
        false => Err(not_made(own, "the ledger's journal knows nothing of it")),
    }
}

/// A table beside the job's own one is there, and of a role that may have it.
///
/// # Errors
/// Table, where it is somebody else's; those of the session.
pub(crate) async fn is_beside(session: &Session, beside: &Relation, table: &Relation) -> Result<bool> {
    let Some(stands) = stands(session, beside, table).await? else { return Ok(false) };
    stands.expect_trusted(beside).map(|()| true)
}

/// The job makes tables of this name: what a ledger says of others was not written by a load.
///
/// # Errors
/// Ledger, where it does not.
pub(crate) fn expect_name(ledger: &Ledger, job_id: &str, own: &Relation) -> Result<()> {
    if is_of_job(own, ledger.schema(), job_id) {
        return Ok(());
    }
    let message = format!(
        "the ledger in schema {} says that job {job_id} has made the table {own}: no job gives a table that name",
        quote_ident(ledger.schema())
    );
    Err(Error::new(ErrorKind::Ledger, message).with_hint(
        "see who may write to the ledger; what else it says of the job may be as wrong: load the files by another job, with another --ledger",
    ))
}

struct Stands {
    oid: u32,
    is_table: bool,
    owner: String,
    is_trusted: bool,
}

impl Stands {
    fn expect_trusted(&self, own: &Relation) -> Result<()> {
        match (self.is_table, self.is_trusted) {
            (true, true) => Ok(()),
            (false, _) => Err(not_made(own, "it is no table")),
            (true, false) => {
                Err(not_made(own, &format!("it belongs to the role {}", quote_ident(&self.owner))))
            }
        }
    }
}

async fn stands(session: &Session, own: &Relation, table: &Relation) -> Result<Option<Stands>> {
    let table = quote_relation(table);
    let asked: [(&(dyn ToSql + Sync), Type); 3] =
        [(&own.schema, Type::TEXT), (&own.name, Type::TEXT), (&table, Type::TEXT)];
    let sql = STANDS_SQL
        .replace("@acts_as_me@", &acts_as_sql("owner.oid", "me.oid"))
        .replace("@is_of_group@", &is_of_group_sql("me", "owner"))
        .replace("@has_table@", &acts_as_sql("owner.oid", "t.relowner"));
    let rows = session.client().query_typed(&sql, &asked).await;
    let rows = rows.map_err(|error| session_error(&error, "looking for the staging table"))?;
    Ok(rows.first().map(|row| Stands {
        oid: row.get(0),
        is_table: row.get(1),
        owner: row.get(2),
        is_trusted: row.get(3),
    }))
}

fn not_made(own: &Relation, why: &str) -> Error {
    let message = format!("{own} is there, and this job has not made it: {why}");
    Error::new(ErrorKind::Table, message)
        .with_hint("see whose it is, and drop or rename it, then run the same command again")
}
