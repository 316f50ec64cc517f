//! Creating the ledger's schema and bringing it up to date. Needs CREATE on the database, once, and
//! nothing else; two loads that start at the same time are serialised by an advisory lock. A schema written
//! by a newer howdah is refused.

use super::{HOWDAH_VERSION, IDLE_IN_TURN_MS, Ledger, is_not_there};
use crate::error::session_error;
use crate::session::{Session, rights};
use crate::sql::{OWN_TABLESPACE_SQL, quote_ident, quote_literal};
use futures_util::future::{join, join4};
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use tokio_postgres::types::{ToSql, Type};

/// Statements that lead from version n to n + 1; `@schema@` stands for the quoted name.
const MIGRATIONS: &[&str] = &[
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
    include_str!("schema_11.sql"),
    include_str!("schema_12.sql"),
    include_str!("schema_13.sql"),
    include_str!("schema_14.sql"),
    include_str!("schema_15.sql"),
];

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
    /// None that could be granted.
    None,
}

/// The tables that a role which shares the ledger needs, but for `reject` and the journal. Others in the schema hold rows that wait.
const SHARED_TABLES: [&str; 7] = ["migration", "job", "file", "chunk", "chunk_part", "step", "unlogged_mark"];

/// The journal. What stands there is run by whoever puts back, and whoever else may write it keeps loads from doing so.
const JOURNAL_TABLES: [&str; 2] = ["undo", "tuned"];

/// All of them.
pub(super) const LEDGER_TABLES: [&str; 10] =
    ["migration", "job", "file", "chunk", "chunk_part", "step", "undo", "tuned", "unlogged_mark", "reject"];

/// The tables that every load writes.
const CHUNK_TABLES: [&str; 3] = ["job", "file", "chunk"];

/// The columns of `reject` without that of the records, which hold values of rows.
const SHARED_COLUMNS: &str = "number, job_id, file_no, chunk_no, record, start_byte, as_in_file, column_name, sqlstate, message, \
    rejected_at, loaded_by";

/// Whether schema `$1` may be used, tables be made in it if `$2`, and its tables `$4` be used in the ways `$3`; for which role.
/// Of `reject`, records need not be readable.
/// Tables of other names may be anybody's; those that not every load writes came with later versions, and rights on them may have to.
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

/// How a ledger stands to this howdah.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// There is none.
    Absent,
    /// Of an older version: a load brings it to the newest.
    Older {
        /// The version that it has.
        version: i32,
        /// The version that it is brought to.
        newest: usize,
    },
    /// As this howdah makes it, or a newer one, which is refused by others.
    Current,
}

/// How a ledger stands to this howdah and to the role of a session, as [`Ledger::look`] finds it.
#[derive(Debug)]
pub struct Footing {
    version: Result<i32>,
    /// See [`Ledger::are_numbers_behind`].
    numbers_behind: bool,
    rights: Result<()>,
}

/// What became of a ledger that was not of the newest version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Migrated {
    /// There was none: it was made, and is there for others.
    Made,
    /// It was brought up to date, or another load had done so meanwhile, in a transaction that is open.
    Brought,
}

/// How long the tables of a ledger that is brought up to date are waited for at a time: all who use it wait behind whoever waits for a
/// table of its own. Autovacuum at work gives way after `deadlock_timeout`, a second by default.
const LOCK_WITHIN_MS: u32 = 2_000;

/// Who holds tables of the schema `$1`, or indexes of them, in any way.
const HOLDERS_SQL: &str = "\
    SELECT DISTINCT l.pid FROM pg_catalog.pg_locks l \
    JOIN pg_catalog.pg_class c ON c.oid = l.relation JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND l.granted AND l.pid <> pg_catalog.pg_backend_pid() \
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()) \
    ORDER BY 1 LIMIT 5";

/// The tables among `$2` that are this role's in a ledger `$1` whose jobs are another's, and who that is.
const OF_THIS_ROLE_SQL: &str = "\
    SELECT c.relname::pg_catalog.text, pg_catalog.pg_get_userbyid(j.relowner)::pg_catalog.text \
    FROM pg_catalog.pg_namespace n \
    JOIN pg_catalog.pg_class j ON j.relnamespace = n.oid AND j.relname = 'job' AND j.relkind = 'r' \
    JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r' AND c.relname = ANY ($2) AND c.relowner <> j.relowner \
    WHERE n.nspname = $1 AND pg_catalog.pg_get_userbyid(c.relowner) = CURRENT_USER ORDER BY c.oid";

/// Key of the advisory lock under which schemas are created: "howdah" in ASCII.
pub(super) const LOCK_KEY: i64 = 0x686f_7764_6168;

impl Ledger {
    /// Makes sure that the schema is there, of this version, and may be used. One round trip if it is. Returns what is not as it should
    /// be all the same, for people.
    ///
    /// # Errors
    /// Ledger, if creating is not allowed, the schema is newer than this howdah, or rights are lacking; Server with 55P03, which may
    /// pass, when others hold tables that are to be changed; those of the session.
    pub async fn ensure(&self, session: &Session) -> Result<Option<String>> {
        let footing = self.look(session).await;
        self.ensure_on(session, footing).await
    }

    /// What [`Ledger::ensure`] looks at, in one flight; nothing is made yet.
    pub async fn look(&self, session: &Session) -> Footing {
        // Sent together: one round trip.
        let ((version, numbers_behind), rights) =
            join(self.version_and_numbers(session), self.check_rights(session, false)).await;
        Footing { version, numbers_behind, rights }
    }

    /// As [`Ledger::ensure`], where [`Ledger::look`] has found this.
    ///
    /// # Errors
    /// As there.
    pub async fn ensure_on(&self, session: &Session, footing: Footing) -> Result<Option<String>> {
        let version = footing.version?;
        if self.known(version)? == MIGRATIONS.len() {
            footing.rights?;
            if footing.numbers_behind {
                self.catch_up_numbers(session).await?;
            }
            return Ok(None);
        }
        let result = match self.migrate(session).await {
            Ok(Migrated::Made) => return Ok(None),
            Ok(Migrated::Brought) => self.give_to_owner(session).await,
            Err(error) => Err(error),
        };
        // Also after success: the lock and the transaction end here, whatever happened.
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = session.client().batch_execute(end).await;
        let told = match result {
            Ok(told) => told,
            Err(error) => return Err(self.not_brought(session, version, error).await),
        };
        ended.map_err(|error| self.error(&error, "creating the ledger"))?;
        Ok(told)
    }

    /// Why the ledger, which was of this version, is not there as it should be.
    async fn not_brought(&self, session: &Session, version: i32, error: Error) -> Error {
        if version > 0 && error.sqlstate() == Some(sqlstate::LOCK_NOT_AVAILABLE) {
            return self.not_free(session).await;
        }
        // Only a hint depends on this.
        let has_schema = self.has_schema(session).await.unwrap_or(false);
        let grants = match (version, has_schema) {
            (0, false) => Grants::Create,
            (0, true) => Grants::CreateTables,
            _ => Grants::None,
        };
        self.with_grants(session, error, grants).await
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

    /// Refuses when the role may not write into the tables; where it makes staging tables, that it may not make them in the schema, and
    /// take away what it has noted of them.
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

    /// Refuses when the role may not write the journal and read it: what it drops it could not put back at the end.
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

    /// The statements that let a role (quoted) use the schema in these ways, and read and use those of its tables in these that loads
    /// need, those of the journal where it is to write that; records that were rejected it does not read.
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
            Grants::None => return error,
            Grants::Create => format!(
                "the owner of the database can run GRANT CREATE ON DATABASE {} TO {role}, or a superuser CREATE SCHEMA \
                 {schema} AUTHORIZATION {role}; or load without resume by --ledger none",
                quote_ident(&who.database)
            ),
            Grants::CreateTables => format!(
                "its owner can run GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}; or name another with --ledger"
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

    /// The schema is there, of whatever version.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn exists(&self, session: &Session) -> Result<bool> {
        Ok(self.version(session).await? > 0)
    }

    /// The same, and what comes of `reading`, which sends statements that read the ledger as soon as it is polled; where there is none, or
    /// its tables are not what a ledger has, they fail. One flight, as a rule.
    ///
    /// # Errors
    /// Ledger, where the tables are not what a ledger has; those of the session.
    pub async fn exists_and<T>(
        &self,
        session: &Session,
        reading: impl AsyncFn() -> T,
    ) -> Result<(Result<bool>, T)> {
        let exists = async || self.version_within(session).await.map(|version| version > 0);
        self.if_plain(session, async || join(exists(), reading()).await).await
    }

    /// What a load would have to do before it may use the ledger.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn age(&self, session: &Session) -> Result<Age> {
        let (version, newest) = (self.version(session).await?, MIGRATIONS.len());
        Ok(match usize::try_from(version) {
            Ok(0) | Err(_) => Age::Absent,
            Ok(known) if known < newest => Age::Older { version, newest },
            Ok(_) => Age::Current,
        })
    }

    /// Refuses when the role may not read what loads have changed; all is well where there is no ledger, or no journal yet.
    ///
    /// # Errors
    /// Those of the session, with the GRANT that helps.
    pub async fn expect_readable(&self, session: &Session) -> Result<()> {
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

    /// 0 if there is no ledger. No transaction is open. Asking the table itself and taking "undefined" for an answer is one round
    /// trip; a guard by `to_regclass` would not help, a statement is analysed as a whole.
    pub(super) async fn version(&self, session: &Session) -> Result<i32> {
        let reading = async || self.version_answer(session).await;
        self.version_of(session, self.if_plain(session, reading).await?).await
    }

    /// The same in an open transaction, in which the tables were looked at.
    async fn version_within(&self, session: &Session) -> Result<i32> {
        self.version_of(session, self.version_answer(session).await).await
    }

    pub(super) async fn version_answer(
        &self,
        session: &Session,
    ) -> std::result::Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        let sql = format!("SELECT pg_catalog.max(version) FROM {}.migration", self.quoted);
        session.client().query_typed(&sql, &[]).await
    }

    pub(super) async fn version_of(
        &self,
        session: &Session,
        answer: std::result::Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>,
    ) -> Result<i32> {
        match answer {
            Ok(rows) => Ok(rows.first().and_then(|row| row.get(0)).unwrap_or(0)),
            // Neither table nor schema: no ledger yet.
            Err(error) if is_not_there(&error) => Ok(0),
            Err(error) => {
                let error = self.error(&error, "reading the ledger's version");
                Err(self.with_grants(session, error, Grants::Use).await)
            }
        }
    }

    fn known(&self, version: i32) -> Result<usize> {
        let newest = MIGRATIONS.len();
        match usize::try_from(version) {
            Ok(version) if version <= newest => Ok(version),
            _ => Err(Error::new(
                ErrorKind::Ledger,
                format!(
                    "the ledger in schema {} has version {version}; this howdah knows {newest}",
                    self.quoted
                ),
            )
            .with_hint("use the howdah that wrote it or a newer one, or name another schema with --ledger")),
        }
    }

    /// Runs what is missing in a transaction, under the lock; it stays open, unless all was made.
    async fn migrate(&self, session: &Session) -> Result<Migrated> {
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL default_table_access_method = heap; {OWN_TABLESPACE_SQL}; \
             SET LOCAL idle_in_transaction_session_timeout = {IDLE_IN_TURN_MS}; \
             SELECT pg_catalog.pg_advisory_xact_lock({LOCK_KEY}); SET LOCAL lock_timeout = {LOCK_WITHIN_MS}; {}; SAVEPOINT before",
            self.expect_plain_sql()
        );
        let fail = |error| self.error(&error, "creating the ledger");
        // Under the lock: another load may have created it while this one waited. Sent together: one round trip. To ask for a version
        // that is not there ends the transaction, but for the savepoint.
        let (begun, version, to_before, has_schema) = join4(
            session.client().batch_execute(&begin),
            self.version_within(session),
            session.client().batch_execute("ROLLBACK TO SAVEPOINT before"),
            self.has_schema(session),
        )
        .await;
        if let Err(error) = begun {
            session.roll_back().await;
            return Err(self.not_plain(session, &error).await);
        }
        let version = version?;
        to_before.map_err(fail)?;
        let (known, has_schema) = (self.known(version)?, has_schema?);
        // All in one: a server far away would be waited for as often as there are versions.
        let mut sql: Vec<String> =
            (known..MIGRATIONS.len()).map(|index| migration(index, has_schema)).collect();
        let migrated = if known == 0 { Migrated::Made } else { Migrated::Brought };
        if migrated == Migrated::Made {
            // All of it is this role's, as the jobs are: there is nothing to give to anybody.
            sql.push("COMMIT".to_owned());
        }
        let sql = sql.join("\n").replace("@schema@", &self.quoted);
        let made = session.client().batch_execute(&sql).await;
        made.map_err(|error| self.create_error(&error, known, has_schema))?;
        Ok(migrated)
    }

    /// What a later version brings belongs to whoever owns the jobs: a member of that role, or a superuser, may bring the ledger up to
    /// date, and its owner must be able to use it, grant rights on it and drop it. Returns what keeps it from that.
    async fn give_to_owner(&self, session: &Session) -> Result<Option<String>> {
        let asked: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.schema, Type::TEXT), (&&LEDGER_TABLES[..], Type::TEXT_ARRAY)];
        let fail = |error| self.error(&error, "giving the ledger's tables to their owner");
        let rows = session.client().query_typed(OF_THIS_ROLE_SQL, &asked).await.map_err(fail)?;
        let Some(owner) = rows.first().map(|row| quote_ident(row.get(1))) else { return Ok(None) };
        let statement = |row: &tokio_postgres::Row| {
            let table = quote_ident(row.get(0));
            format!("ALTER TABLE {}.{table} OWNER TO {owner}", self.quoted)
        };
        let give = rows.iter().map(statement).collect::<Vec<_>>().join("; ");
        match session.client().batch_execute(&format!("SAVEPOINT given; {give}")).await {
            Ok(()) => Ok(None),
            Err(error)
                if error.code().is_some_and(|code| code.code() == sqlstate::INSUFFICIENT_PRIVILEGE) =>
            {
                let undo = session.client().batch_execute("ROLLBACK TO SAVEPOINT given").await;
                undo.map_err(fail)?;
                let cause = session_error(&error, "giving them to their owner");
                Ok(Some(format!(
                    "tables of the ledger in schema {} belong to this role, and not to {owner}, as its jobs do: {}; a superuser can run \
                     {give}",
                    self.quoted,
                    cause.message()
                )))
            }
            Err(error) => Err(fail(error)),
        }
    }

    /// Others hold tables of a ledger that is to be brought up to date.
    async fn not_free(&self, session: &Session) -> Error {
        let asked = [(&self.schema as &(dyn ToSql + Sync), Type::TEXT)];
        // Only the words depend on this.
        let rows = session.client().query_typed(HOLDERS_SQL, &asked).await.unwrap_or_default();
        let pids: Vec<String> = rows.iter().map(|row| row.get::<_, i32>(0).to_string()).collect();
        let by = match pids.len() {
            0 => String::new(),
            1 => format!(", held by process {}", pids[0]),
            _ => format!(", held by processes {}", pids.join(", ")),
        };
        let message = format!(
            "the ledger in schema {} cannot be brought to version {} yet: its tables were not free within {} seconds{by}",
            self.quoted,
            MIGRATIONS.len(),
            LOCK_WITHIN_MS / 1000
        );
        Error::new(ErrorKind::Server, message).with_sqlstate(sqlstate::LOCK_NOT_AVAILABLE).with_hint(
            "pg_stat_activity tells what that is, a dump for example; when it has ended, run the same command again",
        )
    }

    async fn has_schema(&self, session: &Session) -> Result<bool> {
        let asked = [(&self.schema as &(dyn ToSql + Sync), Type::TEXT)];
        let sql = "SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1";
        let found = self.ask(session, sql, &asked, "creating the ledger").await?;
        Ok(!found.is_empty())
    }

    /// `version` is the one that it is of, 0 if there is none yet.
    fn create_error(&self, error: &tokio_postgres::Error, version: usize, has_schema: bool) -> Error {
        let schema = &self.quoted;
        let mapped = self.error(error, "creating the ledger");
        if error.code().is_none_or(|code| code.code() != sqlstate::INSUFFICIENT_PRIVILEGE) {
            return mapped;
        }
        if version > 0 {
            let message = format!(
                "the ledger in schema {schema} is of version {version} and cannot be brought to version {}: {}",
                MIGRATIONS.len(),
                session_error(error, "changing the ledger").message()
            );
            return Error::new(ErrorKind::Ledger, message)
                .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
                .with_hint("a load by its owner brings it up to date; or name another schema with --ledger");
        }
        let cause = session_error(error, "creating the ledger");
        let what = if has_schema { "the ledger's tables in schema" } else { "the ledger schema" };
        let message = format!("{what} {schema} cannot be created: {}", cause.message());
        Error::new(ErrorKind::Ledger, message).with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
    }
}

/// What a role (quoted) can do that may not use a ledger.
fn share_hint(role: &str, grants: &str) -> String {
    format!(
        "name a ledger of its own with --ledger NAME, for which a superuser can run CREATE SCHEMA NAME AUTHORIZATION {role}; or, where all \
         who share this one trust each other, its owner can run {grants}"
    )
}

/// The statements that lead from version `index` to the next, and note it.
fn migration(index: usize, has_schema: bool) -> String {
    let (statements, version) = (definition(MIGRATIONS[index], has_schema), index + 1);
    let by = quote_literal(HOWDAH_VERSION);
    format!(
        "{statements}\nINSERT INTO @schema@.migration (version, howdah_version) VALUES ({version}, {by});"
    )
}

/// Leaves CREATE SCHEMA and its comment out where the schema is there already: IF NOT EXISTS does not
/// spare its user the CREATE privilege on the database, and the comment belongs to the owner.
fn definition(statements: &str, has_schema: bool) -> String {
    let on_schema = |line: &&str| line.starts_with("CREATE SCHEMA") || line.starts_with("COMMENT ON SCHEMA");
    let lines = statements.lines().filter(|line| !has_schema || !on_schema(line));
    lines.collect::<Vec<_>>().join("\n")
}
