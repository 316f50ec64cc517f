//! What a role may not do with the ledger that its first load would need, asked before anything is made: told
//! with the rights on tables that it lacks, so that nobody is sent for rights twice.

use super::Ledger;
use super::schema::Grants;
use crate::error::session_error;
use crate::session::Session;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use tokio_postgres::types::Type;

/// Whether the schema `$1` is there, and whether it or the tables in it may be made.
const MAY_MAKE_SQL: &str = "\
    SELECT n.oid IS NOT NULL, \
           CASE WHEN n.oid IS NULL THEN pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') \
                ELSE pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_schema_privilege(n.oid, 'CREATE') END \
    FROM (SELECT $1::pg_catalog.text AS name) AS wanted \
    LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = wanted.name";

impl Ledger {
    /// The error with which a load of this role would end for want of rights on the ledger, or on what it is
    /// made in.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn lacking(&self, session: &Session) -> Result<Option<Error>> {
        let used = match self.exists(session).await {
            Ok(false) => return self.may_not_make(session).await,
            Ok(true) => self.check_rights(session, false).await,
            Err(error) => Err(error),
        };
        match used {
            Err(error) if error.sqlstate() == Some(sqlstate::INSUFFICIENT_PRIVILEGE) => Ok(Some(error)),
            done => done.map(|()| None),
        }
    }

    async fn may_not_make(&self, session: &Session) -> Result<Option<Error>> {
        let row = session.client().query_typed_one(MAY_MAKE_SQL, &[(&self.schema, Type::TEXT)]).await;
        let row = row.map_err(|error| session_error(&error, "asking for the role's rights"))?;
        if row.get(1) {
            return Ok(None);
        }
        let (grants, what) = match row.get(0) {
            true => (Grants::CreateTables, format!("tables in schema {}", self.quoted)),
            false => (Grants::Create, format!("schema {}", self.quoted)),
        };
        let error = Error::new(ErrorKind::Ledger, format!("it may not make the ledger's {what}"))
            .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE);
        Ok(Some(self.with_grants(session, error, grants).await))
    }
}
