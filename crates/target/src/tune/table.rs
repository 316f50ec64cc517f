//! Autovacuum kept away from a table while rows come, by the table's own storage parameters.
//!
//! ALTER TABLE ... SET of these takes SHARE UPDATE EXCLUSIVE: readers and writers go on, VACUUM and the like
//! do not. The change and the note of it are one transaction.

use super::{GivenUp, verdict};
use crate::error::session_error;
use crate::finish::DURABLE_SQL;
use crate::ledger::{Before, Held, IDLE_IN_TURN_MS, Ledger, Thing};
use crate::same_table;
use crate::session::Session;
use crate::sql::{quote_ident, quote_literal, quote_relation};
use crate::tree::BY_NAME_SQL;
use howdah_model::{Relation, Result};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// The storage parameter; that of a TOAST table has the same name there, and `toast.` before it in ALTER
/// TABLE.
const NAME: &str = "autovacuum_enabled";
const TOAST: &str = "toast.";
/// The value while rows come, as it stands among the parameters.
const DURING: &str = "false";
/// How long a lock is waited for at a time. Autovacuum at work gives way after `deadlock_timeout`, a second
/// by default.
const LOCK_WITHIN_MS: u32 = 2000;
/// The same where the others of a transaction wait too.
const LOCK_OF_MANY_WITHIN_MS: u32 = 100;

/// A table that holds rows itself: the table, or a leaf partition of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// Its name.
    pub relation: Relation,
    /// Its OID.
    pub oid: u32,
    /// This role may change it.
    pub owned: bool,
    /// Rows in it do not survive a crash of the server.
    pub unlogged: bool,
    /// The number of the file that the server keeps it in.
    pub file: Option<u32>,
    /// Its storage parameters, `name=value`.
    options: Option<Vec<String>>,
    /// The same of its TOAST table, if it has one.
    toast_options: Option<Option<Vec<String>>>,
}

/// `autovacuum_enabled`, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value; `None`: it is not set.
    pub value: Option<String>,
}

/// What a table has that nobody has made yet.
pub fn autovacuum_of_new_table() -> Parameter {
    Parameter { name: NAME.to_owned(), value: None }
}

const STORAGE_SQL: &str = "\
    SELECT n.nspname, c.relname, c.oid, pg_catalog.pg_has_role(c.relowner, 'USAGE'), c.relpersistence = 'u', \
           c.reloptions, t.oid IS NOT NULL, t.reloptions, pg_catalog.pg_relation_filenode(c.oid::pg_catalog.regclass) \
    FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid AND c.relkind = 'r' \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_catalog.pg_class t ON t.oid = c.reltoastrelid ORDER BY n.nspname, c.relname";

/// The table, or its leaf partitions.
///
/// # Errors
/// Those of the session.
pub async fn look(session: &Session, relation: &Relation) -> Result<Vec<Storage>> {
    let names: [(&(dyn ToSql + Sync), Type); 2] =
        [(&relation.schema, Type::TEXT), (&relation.name, Type::TEXT)];
    let rows = session
        .rows(&format!("{BY_NAME_SQL} {STORAGE_SQL}"), &names, "reading the table's storage parameters")
        .await?;
    Ok(rows.iter().map(storage).collect())
}

fn storage(row: &Row) -> Storage {
    Storage {
        relation: Relation { schema: row.get(0), name: row.get(1) },
        oid: row.get(2),
        owned: row.get(3),
        unlogged: row.get(4),
        options: row.get(5),
        toast_options: row.get::<_, bool>(6).then(|| row.get(7)),
        file: row.get(8),
    }
}

impl Storage {
    /// What keeps autovacuum away, as far as it is not so already.
    pub fn to_change(&self) -> Vec<Parameter> {
        let own = (NAME.to_owned(), Some(&self.options));
        let toast = (format!("{TOAST}{NAME}"), self.toast_options.as_ref());
        [own, toast]
            .into_iter()
            .filter_map(|(name, options)| {
                let value = value_of(options?.as_deref(), NAME).map(str::to_owned);
                let is_off = value.as_deref().is_some_and(is_false);
                (!is_off).then_some(Parameter { name, value })
            })
            .collect()
    }

    fn options_of(&self, name: &str) -> Option<&[String]> {
        let options = if name.starts_with(TOAST) { self.toast_options.as_ref()? } else { &self.options };
        options.as_deref()
    }

    fn value(&self, name: &str) -> Option<&str> {
        value_of(self.options_of(name), name.trim_start_matches(TOAST))
    }
}

fn value_of<'a>(options: Option<&'a [String]>, name: &str) -> Option<&'a str> {
    let value = |option: &'a String| option.split_once('=').filter(|(known, _)| *known == name);
    options?.iter().find_map(value).map(|(_, value)| value)
}

/// The server keeps the word as it was written; these are all it takes for false (`parse_bool`).
fn is_false(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let begins = |whole: &str, least: usize| word.len() >= least && whole.starts_with(&word);
    word == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2)
}

/// Keeps autovacuum away from these tables and notes it, each in a transaction of its own. Returns how many
/// are changed, or held beside another load that has changed them.
///
/// # Errors
/// Server with 55P03 when a table was not free within two seconds; those of ledger and session.
pub async fn hold(session: &Session, ledger: &Ledger, job_id: &str, relation: &Relation) -> Result<usize> {
    let mut count = 0;
    for storage in look(session, relation).await?.into_iter().filter(|storage| storage.owned) {
        let done = hold_one(session, ledger, job_id, &storage).await;
        count += usize::from(session.or_roll_back(done).await?);
    }
    Ok(count)
}

async fn hold_one(session: &Session, ledger: &Ledger, job_id: &str, found: &Storage) -> Result<bool> {
    begin(session, ledger, LOCK_WITHIN_MS).await?;
    let Some(storage) = read(session, &[found.oid]).await?.pop() else {
        run(session, "ROLLBACK").await?;
        return Ok(false);
    };
    let to_change = storage.to_change();
    let names = to_change.iter().map(|parameter| parameter.name.clone());
    let held = ledger.held(session, None).await?;
    let held = held.into_iter().filter(|held| {
        held.thing.table.as_ref().is_some_and(|(oid, _)| *oid == storage.oid)
            && !to_change.iter().any(|parameter| parameter.name == held.thing.name)
    });
    let mut all: Vec<String> = names.chain(held.map(|held| held.thing.name)).collect();
    all.sort();
    all.dedup();
    for name in &all {
        let thing = Thing { table: Some((storage.oid, storage.relation.clone())), name: name.clone() };
        let before = Before {
            value: storage.value(name).map(str::to_owned),
            options: storage.options_of(name).map(<[String]>::to_vec),
        };
        ledger.hold(session, job_id, &thing, &before, DURING).await?;
    }
    if !to_change.is_empty() {
        let set: Vec<String> =
            to_change.iter().map(|parameter| format!("{} = {DURING}", spelled(&parameter.name))).collect();
        run(session, &alter(&storage.relation, &format!("SET ({})", set.join(", ")))).await?;
        if !same_table::is_so(session, storage.oid, &storage.relation).await? {
            run(session, "ROLLBACK").await?;
            return Ok(false);
        }
    }
    run(session, "COMMIT").await?;
    Ok(!all.is_empty())
}

/// Gives up these changes of one job in one transaction, and puts back those that nobody else holds. Of
/// several, none is given up where one of the tables is not free at once.
///
/// # Errors
/// Server with 55P03 when a table was not free, in two seconds if it is the only one, which may pass; those
/// of ledger and session.
pub async fn give_up(session: &Session, ledger: &Ledger, held: &[Held]) -> Result<Vec<GivenUp>> {
    let mut done = give_up_or_roll_back(session, ledger, held).await;
    if done.as_ref().is_err_and(|error| error.sqlstate() == Some(same_table::ANOTHER_SQLSTATE)) {
        // It was renamed while it was waited for: by its OID it is found again.
        done = give_up_or_roll_back(session, ledger, held).await;
    }
    done
}

async fn give_up_or_roll_back(session: &Session, ledger: &Ledger, held: &[Held]) -> Result<Vec<GivenUp>> {
    session.or_roll_back(give_up_all(session, ledger, held).await).await
}

async fn give_up_all(session: &Session, ledger: &Ledger, held: &[Held]) -> Result<Vec<GivenUp>> {
    let lock_within_ms = if held.len() > 1 { LOCK_OF_MANY_WITHIN_MS } else { LOCK_WITHIN_MS };
    begin(session, ledger, lock_within_ms).await?;
    let open = ledger.open_holds(session, held).await?;
    let oids: Vec<u32> =
        held.iter().filter_map(|held| held.thing.table.as_ref()).map(|(oid, _)| *oid).collect();
    let tables = read(session, &oids).await?;
    let (mut sql, mut given) = (String::new(), Vec::with_capacity(held.len()));
    for held in held {
        let table = held.thing.table.as_ref();
        let found = match open.get(&held.number) {
            None => GivenUp::ByAnother,
            Some(true) => GivenUp::HeldByAnother,
            Some(false) => {
                let storage = table.and_then(|(oid, _)| tables.iter().find(|storage| storage.oid == *oid));
                match (storage, table) {
                    (Some(storage), _) => {
                        let now = storage.value(&held.thing.name);
                        let found = verdict(now, held.before.value.as_deref(), &held.during);
                        found.unwrap_or_else(|| {
                            let expect = same_table::expect_sql(storage.oid, &storage.relation);
                            sql += &format!("{}; {expect}; ", put_back_sql(storage, held));
                            GivenUp::PutBack
                        })
                    }
                    (None, Some((_, relation))) if has_another(session, held, relation).await? => {
                        GivenUp::TableNew
                    }
                    (None, _) => GivenUp::TableGone,
                }
            }
        };
        if found != GivenUp::ByAnother {
            sql += &format!("{}; ", ledger.given_up_sql(held.number));
        }
        given.push(found);
    }
    // One message: the server goes through with it even if the client is killed meanwhile.
    run(session, &format!("{sql}COMMIT")).await?;
    Ok(given)
}

/// Some table of this name has what was set: a new one that has got the options of the old one, as
/// `CREATE TABLE ... (LIKE ...)` by hand gives them, or was made so.
async fn has_another(session: &Session, held: &Held, relation: &Relation) -> Result<bool> {
    let named = look(session, relation).await?;
    let has = |storage: &Storage| storage.value(&held.thing.name) == Some(held.during.as_str());
    Ok(named.iter().any(|storage| storage.relation == *relation && has(storage)))
}

/// RESET where it was not set. Else, as SET puts what it sets behind the others, all parameters in their
/// order, unless somebody has changed others meanwhile.
fn put_back_sql(storage: &Storage, held: &Held) -> String {
    let name = &held.thing.name;
    let Some(value) = &held.before.value else {
        return alter(&storage.relation, &format!("RESET ({})", spelled(name)));
    };
    let bare = name.trim_start_matches(TOAST);
    let others = |options: &[String]| -> Vec<String> {
        let other = |option: &&String| option.split_once('=').is_none_or(|(known, _)| known != bare);
        options.iter().filter(other).cloned().collect()
    };
    let (now, before) = (storage.options_of(name).unwrap_or_default(), held.before.options.as_deref());
    let same = before.filter(|before| others(before) == others(now));
    let prefix = if name.starts_with(TOAST) { TOAST } else { "" };
    let set = match same {
        Some(before) => before
            .iter()
            .filter_map(|option| option.split_once('='))
            .map(|(name, value)| {
                format!("{} = {}", spelled(&format!("{prefix}{name}")), quote_literal(value))
            })
            .collect::<Vec<_>>()
            .join(", "),
        None => format!("{} = {}", spelled(name), quote_literal(value)),
    };
    alter(&storage.relation, &format!("SET ({set})"))
}

fn alter(relation: &Relation, what: &str) -> String {
    format!("ALTER TABLE ONLY {} {what}", quote_relation(relation))
}

fn spelled(name: &str) -> String {
    match name.strip_prefix(TOAST) {
        Some(name) => format!("toast.{}", quote_ident(name)),
        None => quote_ident(name),
    }
}

/// The very tables that were changed, whatever their names are now.
async fn read(session: &Session, oids: &[u32]) -> Result<Vec<Storage>> {
    let sql = format!("WITH tree AS (SELECT pg_catalog.unnest($1) AS oid) {STORAGE_SQL}");
    let rows =
        session.rows(&sql, &[(&oids, Type::OID_ARRAY)], "reading the table's storage parameters").await?;
    Ok(rows.iter().map(storage).collect())
}

async fn begin(session: &Session, ledger: &Ledger, lock_within_ms: u32) -> Result<()> {
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}; SET LOCAL lock_timeout = {lock_within_ms}; \
         SET LOCAL idle_in_transaction_session_timeout = {IDLE_IN_TURN_MS}"
    );
    run(session, &begin).await?;
    ledger.lock_tuned(session).await
}

async fn run(session: &Session, sql: &str) -> Result<()> {
    session.client().batch_execute(sql).await.map_err(|error| session_error(&error, "tuning a table"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Origin;

    fn storage(options: &[&str]) -> Storage {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let relation = Relation { schema: "s".to_owned(), name: "t".to_owned() };
        Storage {
            relation,
            oid: 7,
            owned: true,
            unlogged: false,
            file: None,
            options: Some(options),
            toast_options: None,
        }
    }

    fn held(value: Option<&str>, options: &[&str]) -> Held {
        Held {
            number: 1,
            job_id: "j".to_owned(),
            thing: Thing { table: None, name: NAME.to_owned() },
            before: Before {
                value: value.map(str::to_owned),
                options: Some(options.iter().map(|option| (*option).to_owned()).collect()),
            },
            during: DURING.to_owned(),
            origin: Origin::Here,
        }
    }

    #[test]
    fn parameters_come_back_in_their_order_unless_others_have_changed() {
        let before = ["autovacuum_enabled=on", "fillfactor=70"];
        let now = storage(&["fillfactor=70", "autovacuum_enabled=false"]);
        assert_eq!(
            put_back_sql(&now, &held(Some("on"), &before)),
            "ALTER TABLE ONLY \"s\".\"t\" SET (\"autovacuum_enabled\" = 'on', \"fillfactor\" = '70')"
        );
        let now = storage(&["fillfactor=80", "autovacuum_enabled=false"]);
        assert_eq!(
            put_back_sql(&now, &held(Some("on"), &before)),
            "ALTER TABLE ONLY \"s\".\"t\" SET (\"autovacuum_enabled\" = 'on')"
        );
        assert_eq!(
            put_back_sql(&now, &held(None, &["fillfactor=70"])),
            "ALTER TABLE ONLY \"s\".\"t\" RESET (\"autovacuum_enabled\")"
        );
    }

    #[test]
    fn what_is_off_already_is_not_changed() {
        for word in ["false", "off", "OFF", "no", "0", "f"] {
            assert!(storage(&[&format!("autovacuum_enabled={word}")]).to_change().is_empty(), "{word}");
        }
        for word in ["true", "on", "1", "o"] {
            assert_eq!(storage(&[&format!("autovacuum_enabled={word}")]).to_change().len(), 1, "{word}");
        }
    }
}
