//! Creating the ledger's schema. Needs CREATE on the database, once, and nothing else; two loads that start
//! at the same time are serialised by an advisory lock. A schema of another version is refused;
//! docs/decisions/2026-11-29-ledger-schema.md says how the next one is added.

use super::{HOWDAH_VERSION, IDLE_IN_TURN_MS, Ledger, is_not_there};
use crate::copy::server_error::is_raised;
use crate::error::session_error;
use crate::session::{Session, rights};
use crate::sql::{OWN_TABLESPACE_SQL, quote_ident, quote_literal};
use futures_util::future::join;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use tokio_postgres::error::DbError;
use tokio_postgres::types::{ToSql, Type};

/// The statements that make the ledger; `@schema@` stands for the quoted name.
const SCHEMA_SQL: &str = include_str!("schema.sql");

/// The version that they make. Smaller ones were never released.
const VERSION: i32 = 15;

/// Which rights are lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grants {
    /// To make the schema.
    Create,
    /// To make tables in the schema, which is there.
    CreateTables,
    /// To use what another role has made.
    Use,
    /// To read what loads have changed.
    ReadJournal,
}

/// The tables that a role which shares the ledger needs, but for `reject` and the journal. Others in the
/// schema hold rows that wait.
const SHARED_TABLES: [&str; 7] = ["migration", "job", "file", "chunk", "chunk_part", "step", "unlogged_mark"];

/// The journal. What stands there is run by whoever puts back, and whoever else may write it keeps loads from
/// doing so.
const JOURNAL_TABLES: [&str; 2] = ["undo", "tuned"];

/// All of them.
pub(super) const LEDGER_TABLES: [&str; 10] =
    ["migration", "job", "file", "chunk", "chunk_part", "step", "undo", "tuned", "unlogged_mark", "reject"];

/// The tables that every load writes.
const CHUNK_TABLES: [&str; 3] = ["job", "file", "chunk"];

/// The columns of `reject` without that of the records, which hold values of rows.
const SHARED_COLUMNS: &str = "number, job_id, file_no, chunk_no, record, start_byte, as_in_file, column_name, sqlstate, message, \
    rejected_at, loaded_by";

/// Whether schema `$1` may be used, tables be made in it if `$2`, and its tables `$4` be used in the ways
/// `$3`; for which role. Of `reject`, records need not be readable. Tables of other names may be anybody's.
const RIGHTS_SQL: &str = "\
    SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
           AND (NOT $2 OR pg_catalog.has_schema_privilege(n.oid, 'CREATE')) \
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c CROSS JOIN pg_catalog.unnest($3) AS way \
                           WHERE c.relnamespace = n.oid AND c.relkind = 'r' \
                             AND c.relname = ANY ($4) \
                             AND NOT CASE WHEN c.relname = 'reject' AND way = 'SELECT' \
                                          THEN pg_catalog.has_column_privilege(c.oid, 'job_id', way) \
                                          ELSE pg_catalog.has_table_privilege(c.oid, way) END), \
           CURRENT_USER::pg_catalog.text \
    FROM pg_catalog.pg_namespace n WHERE n.nspname = $1";

/// How a ledger stands to this howdah and to the role of a session, as [`Ledger::look`] finds it.
#[derive(Debug)]
pub struct Footing {
    exists: Result<bool>,
    /// See [`Ledger::are_numbers_behind`].
    numbers_behind: bool,
    rights: Result<()>,
}

/// How long a lock is waited for while the ledger is made, as by an event trigger: others wait behind that.
const LOCK_WITHIN_MS: u32 = 2_000;

/// Key of the advisory lock under which schemas are created: "howdah" in ASCII.
pub(super) const LOCK_KEY: i64 = 0x686f_7764_6168;

impl Ledger {
    /// Makes sure that the schema is there, of this version, and may be used. One round trip if it is.
    ///
    /// # Errors
    /// Ledger, if creating is not allowed, the schema is of another version, or rights are lacking; those of
    /// the session.
    pub async fn ensure(&self, session: &Session) -> Result<()> {
        let footing = self.look(session).await;
        self.ensure_on(session, footing).await
    }

    /// What [`Ledger::ensure`] looks at, in one flight; nothing is made yet.
    pub async fn look(&self, session: &Session) -> Footing {
        if self.is_absent(session) {
            return Footing { exists: Ok(false), numbers_behind: false, rights: Ok(()) };
        }
        // Sent together: one round trip.
        let ((exists, numbers_behind), rights) =
            join(self.exists_and_numbers(session), self.check_rights(session, false)).await;
        Footing { exists, numbers_behind, rights }
    }

    /// As [`Ledger::ensure`], where [`Ledger::look`] has found this.
    ///
    /// # Errors
    /// As there.
    pub async fn ensure_on(&self, session: &Session, footing: Footing) -> Result<()> {
        if !footing.exists? {
            return self.make(session).await;
        }
        footing.rights?;
        if footing.numbers_behind {
            self.catch_up_numbers(session).await?;
        }
        Ok(())
    }

    /// A publication of all tables, whose subscribers get the ledger's rows as well.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn publication(&self, session: &Session) -> Result<Option<String>> {
        let sql = "SELECT pubname::pg_catalog.text FROM pg_catalog.pg_publication WHERE puballtables ORDER BY 1 LIMIT 1";
        let rows = session.rows(sql, &[], "reading the publications").await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Refuses when the role may not write into the tables; where it makes staging tables, that it may not
    /// make them in the schema, and take away what it has noted of them.
    ///
    /// # Errors
    /// Ledger with SQLSTATE 42501 and what to grant; those of the session.
    pub async fn check_rights(&self, session: &Session, makes_tables: bool) -> Result<()> {
        match makes_tables {
            false => self.expect_rights(session, &CHUNK_TABLES, &["SELECT", "INSERT", "UPDATE"], false).await,
            true => {
                let tables = [&CHUNK_TABLES[..], &["chunk_part", "reject", "step", "undo", "tuned"]].concat();
                let ways = ["SELECT", "INSERT", "UPDATE", "DELETE"];
                self.expect_rights(session, &tables, &ways, true).await
            }
        }
    }

    /// Refuses when the role may not write the journal and read it: what it drops it could not put back at
    /// the end.
    ///
    /// # Errors
    /// Ledger with SQLSTATE 42501 and what to grant; those of the session.
    pub(crate) async fn expect_journal(&self, session: &Session) -> Result<()> {
        self.expect_rights(session, &["undo"], &["SELECT", "INSERT", "UPDATE"], false).await
    }

    async fn expect_rights(
        &self,
        session: &Session,
        tables: &[&str],
        on_tables: &[&str],
        makes_tables: bool,
    ) -> Result<()> {
        let on_schema = if makes_tables { "USAGE, CREATE" } else { "USAGE" };
        let fail = |error: tokio_postgres::Error| session_error(&error, "asking for the role's rights");
        let asked: [(&(dyn ToSql + Sync), Type); 4] = [
            (&self.schema, Type::TEXT),
            (&makes_tables, Type::BOOL),
            (&on_tables, Type::TEXT_ARRAY),
            (&tables, Type::TEXT_ARRAY),
        ];
        let row = session.client().query_typed_one(RIGHTS_SQL, &asked).await.map_err(fail)?;
        if row.get(0) {
            return Ok(());
        }
        let (schema, role) = (&self.quoted, quote_ident(row.get(1)));
        let what = format!("role {role} may not use the ledger in schema {schema} as this needs");
        let of_journal = JOURNAL_TABLES.iter().any(|table| tables.contains(table));
        let grants = self.grants(session, &role, on_schema, &on_tables[1..], of_journal).await;
        Err(Error::new(ErrorKind::Ledger, what)
            .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
            .with_hint(share_hint(&role, &grants)))
    }

    /// The statements that let a role (quoted) use the schema in these ways, and read and use those of its
    /// tables in these that loads need, those of the journal where it is to write that; records that were
    /// rejected it does not read.
    async fn grants(
        &self,
        session: &Session,
        role: &str,
        on_schema: &str,
        ways: &[&str],
        of_journal: bool,
    ) -> String {
        let sql = "SELECT pg_catalog.array_agg(c.relname::pg_catalog.text ORDER BY c.oid) FROM pg_catalog.pg_class c \
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
            WHERE n.nspname = $1 AND c.relkind = 'r' AND (c.relname = ANY ($2) OR c.relname = 'reject')";
        let shared =
            if of_journal { [&SHARED_TABLES[..], &JOURNAL_TABLES].concat() } else { SHARED_TABLES.to_vec() };
        let asked: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.schema, Type::TEXT), (&shared, Type::TEXT_ARRAY)];
        let rows = session.client().query_typed(sql, &asked).await;
        // Only a hint depends on this.
        let found =
            rows.ok().and_then(|rows| rows.first()?.get::<_, Option<Vec<String>>>(0)).unwrap_or_default();
        let (schema, ways) = (&self.quoted, ways.join(", "));
        let mut grants = vec![format!("GRANT {on_schema} ON SCHEMA {schema} TO {role}")];
        let shared = found.iter().filter(|table| *table != "reject");
        let shared: Vec<String> = shared.map(|table| format!("{schema}.{table}")).collect();
        if !shared.is_empty() {
            grants.push(format!("GRANT SELECT, {ways} ON {} TO {role}", shared.join(", ")));
        }
        if shared.len() < found.len() {
            grants.push(format!("GRANT SELECT ({SHARED_COLUMNS}), {ways} ON {schema}.reject TO {role}"));
        }
        grants.join("; ")
    }

    /// Refuses when the role may not read the records that were rejected, those of all jobs.
    ///
    /// # Errors
    /// Ledger with SQLSTATE 42501 and what to grant; those of the session.
    pub async fn expect_readable_records(&self, session: &Session) -> Result<()> {
        let sql =
            "SELECT pg_catalog.has_column_privilege($1, 'bytes', 'SELECT'), CURRENT_USER::pg_catalog.text";
        let table = format!("{}.reject", self.quoted);
        let row = session.client().query_typed_one(sql, &[(&table, Type::TEXT)]).await;
        let row = row.map_err(|error| self.error(&error, "asking for the role's rights"))?;
        if row.get(0) {
            return Ok(());
        }
        let role = quote_ident(row.get(1));
        let what = format!("role {role} may not read the rejected records in {table}, as this needs");
        Err(Error::new(ErrorKind::Ledger, what)
            .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
            .with_hint(format!(
                "its owner can run GRANT SELECT ON {table} TO {role}, which shows it those of all jobs of this ledger; or name another \
                 with --ledger, or leave out --reject-file and --verify checksum"
            )))
    }

    /// The error, if it is about rights, with the statements that give them to this role.
    pub(super) async fn with_grants(&self, session: &Session, error: Error, grants: Grants) -> Error {
        if error.sqlstate() != Some(sqlstate::INSUFFICIENT_PRIVILEGE) {
            return error;
        }
        // Only a hint depends on this.
        let Ok(who) = rights::who(session).await else { return error };
        let (schema, role) = (&self.quoted, quote_ident(&who.role));
        let hint = match grants {
            Grants::Create => format!(
                "the owner of the database can run GRANT CREATE ON DATABASE {} TO {role}, or a superuser CREATE SCHEMA \
                 {schema} AUTHORIZATION {role}; or load without resume by --ledger none",
                quote_ident(&who.database)
            ),
            Grants::CreateTables => format!(
                "its owner can run GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}; or name another with --ledger, if no load of these files \
                 was begun with this one"
            ),
            Grants::ReadJournal => format!(
                "its owner can run GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT ON {} TO {role}",
                ["job", "undo", "tuned"].map(|table| format!("{schema}.{table}")).join(", ")
            ),
            Grants::Use => {
                let ways = ["INSERT", "UPDATE", "DELETE"];
                share_hint(&role, &self.grants(session, &role, "USAGE", &ways, false).await)
            }
        };
        error.with_hint(hint)
    }

    /// The ledger is there.
    ///
    /// # Errors
    /// Ledger, if it is of another version; those of the session.
    pub async fn exists(&self, session: &Session) -> Result<bool> {
        if self.is_absent(session) {
            return Ok(false);
        }
        let reading = async || self.version_answer(session).await;
        self.is_there(session, self.if_plain(session, reading).await?).await
    }

    /// Some table of that name is there, by the catalogs alone: whoever has looked at the ledger before needs
    /// no more.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn is_made(&self, session: &Session) -> Result<bool> {
        let sql = "SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                   WHERE n.nspname = $1 AND c.relname = 'migration'";
        let rows = session.rows(sql, &[(&self.schema, Type::TEXT)], "looking for the ledger").await?;
        Ok(!rows.is_empty())
    }

    /// [`Ledger::exists`], and what comes of `reading`, which sends statements that read the ledger as soon
    /// as it is polled; where there is none, or its tables are not what a ledger has, they fail. One flight,
    /// as a rule. `None` where it is known that there is none.
    ///
    /// # Errors
    /// Ledger, where the tables are not what a ledger has, or it is of another version; those of the session.
    pub async fn exists_and<T>(
        &self,
        session: &Session,
        reading: impl AsyncFn() -> T,
    ) -> Result<Option<(Result<bool>, T)>> {
        if self.is_absent(session) {
            return Ok(None);
        }
        let reading = async || join(self.version_answer(session), reading()).await;
        let (answer, read) = self.if_plain(session, reading).await?;
        // Behind the transaction: one that has failed answers nothing more.
        Ok(Some((self.is_there(session, answer).await, read)))
    }

    /// Refuses when the role may not read what loads have changed; all is well where there is no ledger, or
    /// no journal yet.
    ///
    /// # Errors
    /// Those of the session, with the GRANT that helps.
    pub async fn expect_readable(&self, session: &Session) -> Result<()> {
        if self.is_absent(session) {
            return Ok(());
        }
        let tables = ["job", "undo", "tuned"].map(|table| format!("{}.{table}", self.quoted)).join(", ");
        match session.client().query_typed(&format!("SELECT FROM {tables} LIMIT 0"), &[]).await {
            Ok(_) => Ok(()),
            Err(error) if is_not_there(&error) => Ok(()),
            Err(error) => {
                let error = self.error(&error, "reading the ledger's journal");
                Err(self.with_grants(session, error, Grants::ReadJournal).await)
            }
        }
    }

    /// Asking the table itself and taking "undefined" for an answer is one round trip; a guard by
    /// `to_regclass` would not help, a statement is analysed as a whole.
    pub(super) async fn version_answer(
        &self,
        session: &Session,
    ) -> std::result::Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        let sql = format!("SELECT pg_catalog.max(version) FROM {}.migration", self.quoted);
        session.client().query_typed(&sql, &[]).await
    }

    pub(super) async fn is_there(
        &self,
        session: &Session,
        answer: std::result::Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>,
    ) -> Result<bool> {
        match answer {
            Ok(rows) => match rows.first().and_then(|row| row.get(0)) {
                None => Ok(false),
                Some(VERSION) => Ok(true),
                Some(version) => Err(self.of_another_version(version)),
            },
            // Neither table nor schema: no ledger yet.
            Err(error) if is_not_there(&error) => Ok(false),
            Err(error) => {
                let error = self.error(&error, "reading the ledger's version");
                Err(self.with_grants(session, error, Grants::Use).await)
            }
        }
    }

    fn of_another_version(&self, version: i32) -> Error {
        let schema = &self.quoted;
        let message =
            format!("the ledger in schema {schema} has version {version}; this howdah knows {VERSION}");
        let hint = if version > VERSION {
            "use the howdah that wrote it or a newer one; another schema (--ledger) knows nothing of what was loaded with this one".to_owned()
        } else {
            format!(
                "it is of a howdah before the first release: have that one put back what its loads have changed (howdah restore), then \
                 DROP SCHEMA {schema} CASCADE, and what was loaded is not known any more; or name another schema with --ledger"
            )
        };
        Error::new(ErrorKind::Ledger, message).with_hint(hint)
    }

    /// Makes all of it in one transaction, under the lock.
    async fn make(&self, session: &Session) -> Result<()> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL default_table_access_method = heap; {OWN_TABLESPACE_SQL}; \
             SET LOCAL idle_in_transaction_session_timeout = {IDLE_IN_TURN_MS}; \
             SELECT pg_catalog.pg_advisory_xact_lock({LOCK_KEY}); SET LOCAL lock_timeout = {LOCK_WITHIN_MS}; {}",
            self.expect_plain_sql()
        );
        // Under the lock: another load may have created it while this one waited. Sent together: one round
        // trip.
        let (begun, parts) = join(session.client().batch_execute(&begin), self.parts(session)).await;
        if let Err(error) = begun {
            session.roll_back().await;
            return Err(self.not_plain(session, &error).await);
        }
        let (has_schema, is_made) = session.or_roll_back(parts).await?;
        let exists = is_made && {
            let answer = self.version_answer(session).await;
            session.or_roll_back(self.is_there(session, answer).await).await?
        };
        let is_copy =
            !exists && has_schema && session.or_roll_back(self.is_empty_copy(session).await).await?;
        let statements = match (exists, is_copy) {
            (true, _) => String::new(),
            (false, true) => format!("{}; {}", self.keep_plain_sql(&["migration"]), self.noting()),
            (false, false) => self.definition(has_schema),
        };
        let made = session.client().batch_execute(&format!("{statements}COMMIT")).await;
        match session.or_roll_back(made).await {
            Ok(()) => {
                session.ledger_seen().is_there();
                Ok(())
            }
            Err(error) => Err(self.not_made(session, &error, has_schema).await),
        }
    }

    /// What makes the ledger, and notes its version. CREATE SCHEMA and its comment are left out where the
    /// schema is there already: IF NOT EXISTS does not spare its user the CREATE privilege on the database,
    /// and the comment belongs to the owner.
    fn definition(&self, has_schema: bool) -> String {
        let on_schema =
            |line: &&str| line.starts_with("CREATE SCHEMA") || line.starts_with("COMMENT ON SCHEMA");
        let lines: Vec<&str> = SCHEMA_SQL.lines().filter(|line| !has_schema || !on_schema(line)).collect();
        format!("{}\n{}", lines.join("\n").replace("@schema@", &self.quoted), self.noting())
    }

    /// What notes its version.
    fn noting(&self) -> String {
        let (schema, by) = (&self.quoted, quote_literal(HOWDAH_VERSION));
        format!("INSERT INTO {schema}.migration (version, howdah_version) VALUES ({VERSION}, {by});\n")
    }

    /// Whether the schema is there, and the table in it that tells the version.
    async fn parts(&self, session: &Session) -> Result<(bool, bool)> {
        let asked = [(&self.schema as &(dyn ToSql + Sync), Type::TEXT)];
        let sql = "SELECT c.oid IS NOT NULL FROM pg_catalog.pg_namespace n \
                   LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = 'migration' WHERE n.nspname = $1";
        let found = self.ask(session, sql, &asked, "creating the ledger").await?;
        Ok((!found.is_empty(), found.first().is_some_and(|row| row.get(0))))
    }

    async fn not_made(&self, session: &Session, error: &tokio_postgres::Error, has_schema: bool) -> Error {
        if let Some(db) = error.as_db_error().filter(|db| is_raised(db)) {
            return self.forbidden(db);
        }
        let mapped = self.error(error, "creating the ledger");
        if mapped.sqlstate() == Some(sqlstate::DUPLICATE_TABLE) {
            return mapped.with_hint(format!(
                "schema {0} is no ledger of this howdah: where it was copied without its rows from one of another version, DROP SCHEMA {0} \
                 CASCADE; where it is not howdah's own, --ledger names another one, which the load makes, or rename what has the name",
                self.quoted
            ));
        }
        if mapped.sqlstate() != Some(sqlstate::INSUFFICIENT_PRIVILEGE) {
            return mapped;
        }
        let (what, grants) = match has_schema {
            true => ("the ledger's tables in schema", Grants::CreateTables),
            false => ("the ledger schema", Grants::Create),
        };
        let cause = session_error(error, "creating the ledger");
        let message = format!("{what} {} cannot be created: {}", self.quoted, cause.message());
        let error = Error::new(ErrorKind::Ledger, message).with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE);
        self.with_grants(session, error, grants).await
    }

    /// No trigger of a table fires when the ledger is made.
    fn forbidden(&self, db: &DbError) -> Error {
        let message = format!(
            "the ledger {} cannot be created: an event trigger of the database forbids it, or fails; its text is not shown",
            self.quoted
        );
        Error::new(ErrorKind::Ledger, message).with_sqlstate(db.code().code()).with_hint(
            "pg_event_trigger tells which: have it let CREATE SCHEMA, CREATE TABLE, CREATE INDEX and COMMENT pass while the first load makes the \
             ledger; or load without resume by --ledger none",
        )
    }
}

/// What a role (quoted) can do that may not use a ledger.
fn share_hint(role: &str, grants: &str) -> String {
    format!(
        "where all who share this ledger trust each other, its owner can run {grants}; or, only if no load of these files was begun with \
         this one, since what that has stored would come twice, name a ledger of its own with --ledger NAME, for which a superuser can \
         run CREATE SCHEMA NAME AUTHORIZATION {role}"
    )
}
