//! What looks like the ledger's tables, looked at before any of them is read.
//!
//! Any role that may make a schema can have made it before howdah did: views whose functions run with the
//! rights of whoever reads them, triggers and defaults that run with those of whoever writes, and types,
//! operators and indexes that bring functions along. So the catalog is asked first, which calls none of them.
//! Where nothing is to be said against the tables, that costs no round trip: the question and what reads the
//! tables are sent together, as one transaction. Where the question fails, the transaction has failed, and
//! the server does not so much as analyse what follows.

use super::Ledger;
use super::schema::LEDGER_TABLES;
use super::strangers::{SEEN_BY_SQL, is_stranger_sql};
use crate::error::session_error;
use crate::session::Session;
use crate::sql::{quote_ident, quote_literal};
use futures_util::future::join3;
use howdah_model::{Error, ErrorKind, Result, sqlstate};

/// The columns of each table with their types, as all versions have made them. Another type, even one of the
/// server's own, could have operators of other schemas called, where the server has none of its own.
pub(super) const COLUMNS: [(&str, &str); 10] = [
    ("migration", "version int4, howdah_version text, applied_at timestamptz"),
    (
        "job",
        "job_id text, work_key text, status text, plan jsonb, rows_stored int8, runs int4, howdah_version text, started_at timestamptz, \
         finished_at timestamptz, verified text, error jsonb, ledger_oid oid",
    ),
    (
        "file",
        "job_id text, file_no int4, location text, version text, stored_bytes int8, target text, rows_read int8, rows_stored int8, \
         rows_rejected int8, real_location text",
    ),
    (
        "chunk",
        "job_id text, file_no int4, chunk_no int8, start_byte int8, end_byte int8, rows int8, digest int8, stored_at timestamptz, \
         left_out int8, blank int8, rejected int8, xid xid8",
    ),
    ("chunk_part", "job_id text, file_no int4, chunk_no int8"),
    (
        "step",
        "job_id text, target text, name text, part_no int4, parts int4, rows int8, inserted int8, updated int8, deleted int8, \
         done_at timestamptz, held_back int8",
    ),
    (
        "undo",
        "number int8, job_id text, kind text, schema_name text, table_name text, table_oid oid, name text, definition text, \
         statements _text, made_at timestamptz, undone_at timestamptz, compared_by_libc bool, ledger_oid oid",
    ),
    (
        "tuned",
        "number int8, job_id text, table_oid oid, schema_name text, table_name text, name text, value_before text, options_before _text, \
         value_during text, made_at timestamptz, undone_at timestamptz, ledger_oid oid",
    ),
    ("unlogged_mark", "job_id text, xid xid8"),
    (
        "reject",
        "number int8, job_id text, file_no int4, chunk_no int8, record int8, start_byte int8, bytes bytea, as_in_file bool, \
         column_name text, sqlstate text, message text, rejected_at timestamptz, loaded_by text",
    ),
];

/// What is to be said against the tables: by whom they are, which, and what. Of a table that no stranger
/// owns, that it is none, that another refers to it, or that it has a trigger in which a stranger has a hand;
/// of others, all that brings code along.
const ODD_SQL: &str = "\
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace @seen_by@ \
    CROSS JOIN LATERAL (SELECT @owner@ AS is_strange) o \
    CROSS JOIN LATERAL (SELECT pg_catalog.min(pg_catalog.format('%I.%I', rn.nspname, r.relname)) AS of_table \
                        FROM pg_catalog.pg_constraint f \
                        JOIN pg_catalog.pg_class r ON r.oid = f.conrelid JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace \
                        WHERE f.contype = 'f' AND f.confrelid = c.oid \
                          AND NOT (rn.oid = n.oid AND r.relname = ANY (@tables@))) k \
    CROSS JOIN LATERAL (SELECT CASE \
        WHEN c.relkind <> 'r' THEN 'is no table' \
        WHEN k.of_table IS NOT NULL THEN 'is what a foreign key of ' || k.of_table || ' refers to' \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid \
                     WHERE g.tgrelid = c.oid AND NOT g.tgisinternal \
                       AND (o.is_strange OR @function@ \
                            OR EXISTS (SELECT FROM pg_catalog.aclexplode(c.relacl) acl \
                                       WHERE acl.privilege_type = 'TRIGGER' AND @grantee@))) \
            THEN 'has a trigger' \
        WHEN NOT o.is_strange THEN NULL \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid) THEN 'has a rule' \
        WHEN c.relrowsecurity THEN 'has row-level security' \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent)) THEN 'inherits' \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = c.oid) THEN 'has extended statistics' \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
                     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
                       AND (a.attgenerated <> '' OR t.typnamespace <> @pg_catalog@ \
                            OR c.relname::pg_catalog.text || '.'::pg_catalog.text || a.attname::pg_catalog.text || ' '::pg_catalog.text \
                               || t.typname::pg_catalog.text <> ALL (@columns@) \
                               AND EXISTS (SELECT FROM pg_catalog.unnest(@columns@) AS known (it) \
                                           WHERE pg_catalog.starts_with(known.it, \
                                                     c.relname::pg_catalog.text || '.'::pg_catalog.text || a.attname::pg_catalog.text \
                                                         || ' '::pg_catalog.text)))) \
            THEN 'has a column of another type' \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_attrdef f WHERE f.adrelid = c.oid AND @default@) THEN 'has a default of its own' \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'c' AND @check@) \
            THEN 'has a check of its own' \
        WHEN EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND (@expressions@ OR @predicate@ \
                         OR EXISTS (SELECT FROM pg_catalog.unnest(i.indclass::pg_catalog.oid[]) AS class (oid) \
                                    JOIN pg_catalog.pg_opclass k ON k.oid = class.oid WHERE k.opcnamespace <> @pg_catalog@))) \
            THEN 'has an index of its own' \
        END AS what) w \
    WHERE n.nspname = @schema@ AND c.relname = ANY (@tables@) AND w.what IS NOT NULL";

/// An expression calls, in the ways that the server stores it, more than the ledger's own do.
const ODD_EXPRESSION_SQL: &str = "\
    EXISTS (SELECT FROM pg_catalog.regexp_matches(@tree@::pg_catalog.text, '[{]([A-Z]+)|:(funcid|opno) ([0-9]+)', 'g') AS m (found) \
            WHERE CASE WHEN m.found[1] IS NOT NULL \
                  THEN m.found[1] <> ALL ('{CONST,VAR,FUNCEXPR,OPEXPR,SCALARARRAYOPEXPR,ARRAY,ARRAYEXPR,RELABELTYPE,BOOLEXPR,NULLTEST}'\
                                          ::pg_catalog.text[]) \
                  WHEN m.found[2] = 'funcid' \
                  THEN NOT EXISTS (SELECT FROM pg_catalog.pg_proc p \
                                   WHERE p.oid = m.found[3]::pg_catalog.oid AND p.pronamespace = @pg_catalog@ \
                                     AND p.proname = ANY ('{clock_timestamp,pg_current_xact_id,int8}'::pg_catalog.text[])) \
                  ELSE NOT EXISTS (SELECT FROM pg_catalog.pg_operator p \
                                   WHERE p.oid = m.found[3]::pg_catalog.oid AND p.oprnamespace = @pg_catalog@) END)";

/// What the question fails with: `undefined_object`.
const ODD_SQLSTATE: &str = sqlstate::UNDEFINED_OBJECT;

/// Tables of which [`ODD_SQL`] may have something to say. A foreign key has triggers of the server on the
/// table that it refers to, and an index leads to these.
const COMMON_SQL: &str = "\
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace @seen_by@ \
    WHERE n.nspname = @schema@ AND c.relname = ANY (@tables@) \
      AND (c.relkind <> 'r' OR (c.relowner <> me.oid AND @owner@) \
           OR EXISTS (SELECT FROM pg_catalog.pg_trigger g \
                      WHERE g.tgrelid = c.oid \
                        AND NOT (g.tgisinternal \
                                 AND EXISTS (SELECT FROM pg_catalog.pg_class r \
                                             WHERE r.oid = g.tgconstrrelid AND r.relnamespace = n.oid AND r.relname = ANY (@tables@)))))";

/// A statement that fails where there is something.
fn fails_where_sql(something_sql: &str) -> String {
    // A setting that nobody has made is not looked up when the statement is planned.
    format!(
        "SELECT CASE WHEN EXISTS (SELECT {something_sql}) THEN pg_catalog.current_setting('howdah.the_ledger_is_not_plain') ELSE '' END"
    )
}

/// It may be that question that has failed.
pub(super) fn is_odd(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code() == ODD_SQLSTATE)
}

fn tables_sql() -> String {
    text_array(LEDGER_TABLES.iter().map(|table| (*table).to_owned()))
}

fn text_array(texts: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> = texts.map(|text| quote_literal(&text)).collect();
    format!("ARRAY[{}]::pg_catalog.text[]", quoted.join(", "))
}

impl Ledger {
    fn odd_sql(&self) -> String {
        let columns = COLUMNS
            .iter()
            .flat_map(|(table, columns)| columns.split(", ").map(move |column| format!("{table}.{column}")));
        let expression = |tree: &str| ODD_EXPRESSION_SQL.replace("@tree@", tree);
        ODD_SQL
            .replace("@seen_by@", SEEN_BY_SQL)
            .replace("@owner@", &is_stranger_sql("c.relowner"))
            .replace("@function@", &is_stranger_sql("p.proowner"))
            .replace("@grantee@", &is_stranger_sql("acl.grantee"))
            .replace("@default@", &expression("f.adbin"))
            .replace("@check@", &expression("f.conbin"))
            .replace("@expressions@", &expression("i.indexprs"))
            .replace("@predicate@", &expression("i.indpred"))
            .replace("@columns@", &text_array(columns))
            .replace("@tables@", &tables_sql())
            .replace("@pg_catalog@", "'pg_catalog'::pg_catalog.regnamespace::pg_catalog.oid")
            .replace("@schema@", &quote_literal(&self.schema))
    }

    /// A statement that fails where the tables are not what a ledger has.
    pub(super) fn expect_plain_sql(&self) -> String {
        fails_where_sql(&self.odd_sql())
    }

    /// The same in a transaction, and the tables stay so until it ends: nobody gives them a trigger, or a
    /// foreign key, meanwhile.
    pub(super) fn keep_plain_sql(&self, tables: &[&str]) -> String {
        let tables: Vec<String> = tables.iter().map(|table| format!("{}.{table}", self.quoted)).collect();
        format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE; {}", tables.join(", "), self.expect_plain_sql())
    }

    /// Fails also where more is to be asked: of tables that a stranger owns, or that have triggers. Most
    /// ledgers have neither, and to plan the whole question takes the server some 10 ms, this one 2 ms
    /// (PostgreSQL 15).
    fn expect_common_sql(&self) -> String {
        let asked = COMMON_SQL
            .replace("@seen_by@", SEEN_BY_SQL)
            .replace("@owner@", &is_stranger_sql("c.relowner"))
            .replace("@tables@", &tables_sql())
            .replace("@schema@", &quote_literal(&self.schema));
        fails_where_sql(&asked)
    }

    /// What comes of `reading`, which sends statements that read tables of the ledger as soon as it is
    /// polled, no transaction being open: they are not run where they are not what a ledger has. One round
    /// trip, and two more where that is not easily told.
    ///
    /// # Errors
    /// Ledger, where they are not; those of the session.
    pub(super) async fn if_plain<T>(&self, session: &Session, reading: impl AsyncFn() -> T) -> Result<T> {
        match self.behind(session, &self.expect_common_sql(), &reading).await? {
            Ok(read) => Ok(read),
            Err(error) if !is_odd(&error) => Err(self.not_plain(session, &error).await),
            Err(_) => match self.behind(session, &self.expect_plain_sql(), &reading).await? {
                Ok(read) => Ok(read),
                Err(error) => Err(self.not_plain(session, &error).await),
            },
        }
    }

    /// What comes of `reading` in a transaction behind this statement. The inner error is that of the
    /// statement.
    async fn behind<T>(
        &self,
        session: &Session,
        expect_sql: &str,
        reading: impl AsyncFn() -> T,
    ) -> Result<std::result::Result<T, tokio_postgres::Error>> {
        let look = format!("BEGIN; {expect_sql}");
        let client = session.client();
        // In this order, whatever comes of the first: the others fail with it.
        let (looked, read, ended) =
            join3(client.batch_execute(&look), reading(), client.batch_execute("COMMIT")).await;
        match looked {
            Ok(()) => ended.map(|()| Ok(read)).map_err(|error| self.error(&error, "reading the ledger")),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Refuses where the tables are not what a ledger has. One round trip.
    ///
    /// # Errors
    /// As [`Ledger::if_plain`].
    pub async fn expect_plain(&self, session: &Session) -> Result<()> {
        match session.client().batch_execute(&self.expect_plain_sql()).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.not_plain(session, &error).await),
        }
    }

    /// Why [`Ledger::expect_plain_sql`] has failed.
    pub(super) async fn not_plain(&self, session: &Session, error: &tokio_postgres::Error) -> Error {
        let doing = "looking what the ledger's tables are";
        if !is_odd(error) {
            return self.error(error, doing);
        }
        let sql = format!(
            "SELECT c.relname::pg_catalog.text, w.what, pg_catalog.pg_get_userbyid(c.relowner)::pg_catalog.text, k.of_table {} ORDER BY c.oid LIMIT 1",
            self.odd_sql()
        );
        let found = match session.client().query_typed(&sql, &[]).await {
            Ok(found) => found,
            Err(error) => return session_error(&error, doing),
        };
        let schema = &self.quoted;
        let what = found.first().map_or_else(
            || "were".to_owned(),
            |row| {
                let (table, owner) = (quote_ident(row.get(0)), quote_ident(row.get(2)));
                format!("are: {table}, of {owner}, {}", row.get::<_, &str>(1))
            },
        );
        let message = format!(
            "the ledger in schema {schema} is not read: its tables are not what howdah makes, and could have others' code run with \
             this role's rights; they {what}"
        );
        if let Some(of_table) = found.first().and_then(|row| row.get::<_, Option<&str>>(3)) {
            return Error::new(ErrorKind::Ledger, message).with_hint(format!(
                "a foreign key has triggers of {of_table} run when rows of the ledger go: drop it (ALTER TABLE {of_table} DROP CONSTRAINT), \
                 and see who has REFERENCES on the tables of {schema}, which no load needs"
            ));
        }
        Error::new(ErrorKind::Ledger, message).with_hint(format!(
            "if that is meant, and owner and loaders trust each other, give schema and tables to a group (NOLOGIN) that all of them are \
             members of: ALTER SCHEMA {schema} OWNER TO, ALTER TABLE ... OWNER TO, and the functions of triggers too; else ask the owner \
             of that schema what this is, or name another ledger with --ledger, which does not know what is loaded by this one"
        ))
    }
}
