//! Settings of the whole server, changed by ALTER SYSTEM and a reload.
//!
//! ALTER SYSTEM cannot be part of a transaction: what it was is noted and committed first. Where nothing was
//! changed after all, because somebody pulled the plug in between, there is nothing to put back, and that is
//! seen.

use super::{GivenUp, tuners, verdict};
use crate::error::{server_error, session_error};
use crate::finish::DURABLE_SQL;
use crate::ledger::{Before, Held, Ledger, Origin, Thing};
use crate::session::Session;
use crate::sql::{quote_ident, quote_literal};
use crate::undo::RUN_BY_ANOTHER;
use howdah_model::{Error, ErrorKind, Result, sqlstate};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::types::{ToSql, Type};

/// One setting as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// In its own unit.
    pub value: String,
    /// For people: `8GB`.
    pub shown: String,
    /// The value is one of the role, the database or the connection: it hides the server's, whose change
    /// would not reach this load's sessions.
    pub of_session: bool,
    /// It can be changed without a restart, and what `postgresql.auto.conf` says counts.
    pub reloadable: bool,
    /// Words that it takes, if it takes words.
    pub words: Vec<String>,
    /// The largest number that it takes.
    pub most: Option<String>,
    /// What `postgresql.auto.conf` says; `None`: nothing, or this role may not look.
    pub in_file: Option<String>,
    /// This role may change it.
    pub may: bool,
}

/// What this role may do with the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// The role.
    pub role: String,
    /// It is a superuser.
    pub superuser: bool,
    /// It may read `pg_file_settings`, without which nobody knows what to put back.
    pub reads_files: bool,
    /// It may call `pg_reload_conf`.
    pub reloads: bool,
    /// It may CHECKPOINT.
    pub checkpoints: bool,
    /// The provider who keeps ALTER SYSTEM for itself, by what is typical of it.
    pub managed: Option<&'static str>,
    /// ALTER SYSTEM is switched off (`allow_alter_system`).
    pub forbidden: bool,
}

/// The provider whose parameter groups are changed by a command.
pub const AMAZON: &str = "Amazon RDS or Aurora";

/// A setting and the value it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// As `postgresql.auto.conf` will say it.
    pub during: String,
}

const RIGHTS_SQL: &str = "\
    SELECT current_user::text, \
           (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user), \
           pg_catalog.has_function_privilege('pg_catalog.pg_show_all_file_settings()', 'EXECUTE') \
             AND pg_catalog.has_table_privilege('pg_catalog.pg_file_settings', 'SELECT'), \
           pg_catalog.has_function_privilege('pg_catalog.pg_reload_conf()', 'EXECUTE'), \
           (SELECT pg_catalog.min(r.rolname) FROM pg_catalog.pg_roles r \
            WHERE r.rolname IN ('rdsadmin', 'cloudsqladmin', 'azuresu', 'alloydbadmin')), \
           coalesce(pg_catalog.current_setting('allow_alter_system', true), 'on') = 'off', \
           coalesce((SELECT pg_catalog.pg_has_role(r.oid, 'USAGE') FROM pg_catalog.pg_roles r \
                     WHERE r.rolname = 'pg_checkpoint'), false)";

/// What this role may do.
///
/// # Errors
/// Those of the session.
pub async fn rights(session: &Session) -> Result<Rights> {
    let rows = session.rows(RIGHTS_SQL, &[], "reading what the role may do").await?;
    let Some(row) = rows.first() else { return Ok(Rights::default()) };
    let superuser: bool = row.get(1);
    Ok(Rights {
        role: row.get(0),
        superuser,
        reads_files: row.get(2),
        reloads: row.get(3),
        checkpoints: superuser || row.get(6),
        managed: match row.get::<_, Option<&str>>(4) {
            Some("rdsadmin") => Some(AMAZON),
            Some("cloudsqladmin") => Some("Cloud SQL"),
            Some("alloydbadmin") => Some("AlloyDB"),
            Some(_) => Some("Azure Database"),
            None => None,
        },
        forbidden: row.get(5),
    })
}

/// The last line of a name counts. What comes from the command line is stronger than all files.
const SETTINGS_SQL: &str = "\
    SELECT s.name, s.setting, pg_catalog.current_setting(s.name), \
           s.context IN ('sighup', 'superuser', 'user', 'backend', 'superuser-backend') \
             AND s.source NOT IN ('command line', 'environment variable', 'override'), \
           coalesce(s.enumvals, '{}'), s.max_val, @may@, @file@, \
           s.source NOT IN ('default', 'environment variable', 'configuration file', 'command line', 'override') \
    FROM pg_catalog.pg_settings s WHERE s.name = ANY ($1)";
const FILE_SQL: &str = "\
    (SELECT f.setting FROM pg_catalog.pg_file_settings f \
     WHERE f.name = s.name AND f.sourcefile LIKE '%/postgresql.auto.conf' ORDER BY f.seqno DESC LIMIT 1)";

/// These settings as they are; those that this server does not know are left out.
///
/// # Errors
/// Those of the session.
pub async fn look(session: &Session, rights: &Rights, names: &[&str]) -> Result<Vec<Setting>> {
    let may = match (rights.superuser, session.server_version() >= 150_000) {
        (true, _) => "true",
        (false, true) => "pg_catalog.has_parameter_privilege(s.name, 'ALTER SYSTEM')",
        (false, false) => "false",
    };
    let file = if rights.reads_files { FILE_SQL } else { "NULL::text" };
    let sql = SETTINGS_SQL.replace("@may@", may).replace("@file@", file);
    let rows = session.rows(&sql, &[(&names, Type::TEXT_ARRAY)], "reading the server's settings").await?;
    let setting = |row: &tokio_postgres::Row| Setting {
        name: row.get(0),
        value: row.get(1),
        shown: row.get(2),
        reloadable: row.get(3),
        words: row.get(4),
        most: row.get(5),
        may: row.get(6),
        in_file: row.get(7),
        of_session: row.get(8),
    };
    Ok(rows.iter().map(setting).collect())
}

/// What has come of holding settings.
#[derive(Debug, Default)]
pub struct Holding {
    /// Set, with the values that they have.
    pub set: Vec<Change>,
    /// Left as they are: this server does not take values that an earlier run has chosen on another one, or
    /// on this one built otherwise.
    pub not_taken: Vec<Change>,
}

/// Changes these settings and notes it before. Returns them as they are set: one that another load holds
/// stays as that has set it.
///
/// # Errors
/// Server with 55P03 when others who set the server have kept the lock for long, which may pass; Table, when
/// the server refuses; those of ledger and session.
pub async fn hold(session: &Session, ledger: &Ledger, job_id: &str, changes: &[Change]) -> Result<Holding> {
    ledger.lock_tuned_for_session(session).await?;
    let done = hold_all(session, ledger, job_id, changes).await;
    unlock(session, ledger, session.or_roll_back(done).await).await
}

async fn hold_all(session: &Session, ledger: &Ledger, job_id: &str, changes: &[Change]) -> Result<Holding> {
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    let now = in_file(session, &names).await?;
    run(session, &format!("BEGIN ISOLATION LEVEL READ COMMITTED; {DURABLE_SQL}")).await?;
    let mut noted = Vec::new();
    for Change { name, during } in changes {
        let thing = Thing { table: None, name: name.clone() };
        let before = Before { value: now.get(name).cloned(), options: None };
        let during = ledger.hold(session, job_id, &thing, &before, during).await?;
        noted.push(Change { name: name.clone(), during });
    }
    run(session, "COMMIT").await?;
    let mut holding = Holding::default();
    for change in noted {
        let is_set = now.get(&change.name) == Some(&change.during);
        let done = if is_set { Ok(()) } else { run(session, &set_sql(&change.name, &change.during)).await };
        match done {
            Err(error) if error.sqlstate() == Some(sqlstate::INVALID_PARAMETER_VALUE) => {
                holding.not_taken.push(change);
            }
            done => {
                done?;
                holding.set.push(change);
            }
        }
    }
    reload(session).await?;
    Ok(holding)
}

/// What came of giving up changes.
#[derive(Debug)]
pub enum GivingUp {
    /// Of each.
    Done(Vec<GivenUp>),
    /// Nothing is done: a load of another ledger tunes the server, as this says.
    NotYet(Error),
}

/// Gives up changes, and puts back those that nobody else holds, in this order. Those that were noted in
/// another database, from which the ledger has come, are closed: this server may never have been changed, and
/// what it is set to is its owner's.
///
/// # Errors
/// Those of [`hold`].
pub async fn give_up(session: &Session, ledger: &Ledger, held: &[Held]) -> Result<GivingUp> {
    ledger.lock_tuned_for_session(session).await?;
    let done = give_up_all(session, ledger, held).await;
    let done =
        done.map_err(|error| if error.kind() == ErrorKind::Table { left(&error, held) } else { error });
    unlock(session, ledger, session.or_roll_back(done).await).await
}

async fn give_up_all(session: &Session, ledger: &Ledger, held: &[Held]) -> Result<GivingUp> {
    let of_here = held.iter().filter(|held| held.origin != Origin::Elsewhere);
    let names: Vec<&str> = of_here.clone().map(|held| held.thing.name.as_str()).collect();
    // Who has nothing to put back needs no right to look.
    let now = if names.is_empty() { BTreeMap::new() } else { in_file(session, &names).await? };
    let open = ledger.open_holds(session, held).await?;
    if of_here.clone().any(|held| open.contains_key(&held.number))
        && let Some(database) = tuners::other(session, ledger).await?
    {
        return Ok(GivingUp::NotYet(held_by_other(&database, held)));
    }
    let mut given = Vec::new();
    let mut closed = format!("BEGIN; {DURABLE_SQL}");
    for held in held {
        let found = match open.get(&held.number) {
            None => Some(GivenUp::ByAnother),
            Some(_) if held.origin == Origin::Elsewhere => Some(GivenUp::OfAnotherServer),
            Some(true) => Some(GivenUp::HeldByAnother),
            Some(false) => {
                let now = now.get(&held.thing.name).map(String::as_str);
                verdict(now, held.before.value.as_deref(), &held.during)
            }
        };
        if found.is_none() {
            let put_back = match &held.before.value {
                Some(value) => set_sql(&held.thing.name, value),
                None => format!("ALTER SYSTEM RESET {}", quote_ident(&held.thing.name)),
            };
            run(session, &put_back).await?;
        }
        closed.push_str("; ");
        closed.push_str(&ledger.given_up_sql(held.number));
        given.push(found.unwrap_or(GivenUp::PutBack));
    }
    // Who has put it back into the file may have been cut off before the server has read that.
    if given.iter().any(|given| matches!(given, GivenUp::PutBack | GivenUp::WasThere)) {
        reload(session).await?;
    }
    run(session, &format!("{closed}; COMMIT")).await?;
    Ok(GivingUp::Done(given))
}

fn names(held: &[Held]) -> String {
    let names: BTreeSet<&str> = held.iter().map(|held| held.thing.name.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// That load has found what is to be put back now, and will put it back as what was there before.
fn held_by_other(database: &str, held: &[Held]) -> Error {
    let message =
        format!("not put back for the whole server are {} yet: {}", names(held), tuners::says(database));
    Error::new(ErrorKind::Ledger, message).with_hint("wait for its end, then run howdah restore")
}

/// What the server does not let this role put back.
fn left(error: &Error, held: &[Held]) -> Error {
    let message = format!("not put back for the whole server are {}: {}", names(held), error.message());
    let left = Error::new(ErrorKind::Table, message)
        .with_hint(format!("{RUN_BY_ANOTHER} the role of the load that changed them, or as a superuser"));
    match error.sqlstate() {
        Some(sqlstate) => left.with_sqlstate(sqlstate),
        None => left,
    }
}

async fn unlock<T>(session: &Session, ledger: &Ledger, done: Result<T>) -> Result<T> {
    // The lock goes with the session, if not before.
    let unlocked = ledger.unlock_tuned(session).await;
    let done = done?;
    unlocked.map(|()| done)
}

fn set_sql(name: &str, value: &str) -> String {
    format!("ALTER SYSTEM SET {} = {}", quote_ident(name), quote_literal(value))
}

/// What `postgresql.auto.conf` says of these.
async fn in_file(session: &Session, names: &[&str]) -> Result<BTreeMap<String, String>> {
    let sql = "SELECT DISTINCT ON (f.name) f.name, f.setting FROM pg_catalog.pg_file_settings f \
               WHERE f.name = ANY ($1) AND f.sourcefile LIKE '%/postgresql.auto.conf' \
               ORDER BY f.name, f.seqno DESC";
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&names, Type::TEXT_ARRAY)];
    let rows = session.client().query_typed(sql, &parameters).await.map_err(|error| refused(&error))?;
    Ok(rows.iter().filter_map(|row| Some((row.get(0), row.get::<_, Option<String>>(1)?))).collect())
}

async fn reload(session: &Session) -> Result<()> {
    run(session, "SELECT pg_catalog.pg_reload_conf()").await
}

async fn run(session: &Session, sql: &str) -> Result<()> {
    session.client().batch_execute(sql).await.map_err(|error| refused(&error))
}

fn refused(error: &tokio_postgres::Error) -> Error {
    let Some(db) = error.as_db_error() else { return session_error(error, "tuning the server") };
    let message = format!("the server's settings cannot be changed: the server says: {}", db.message());
    match db.code().code() {
        code @ (sqlstate::INSUFFICIENT_PRIVILEGE
        | sqlstate::FEATURE_NOT_SUPPORTED
        | sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE
        | sqlstate::INVALID_PARAMETER_VALUE) => Error::new(ErrorKind::Table, message)
            .with_sqlstate(code)
            .with_hint("--tune table leaves the server as it is"),
        _ => server_error(db, &message),
    }
}
