//! What `--tune server` sets, and what each setting is good for. Figures:
//! docs/decisions/2026-11-22-tuning.md.
//!
//! Only what a reload changes; only upwards; never fsync, full_page_writes, synchronous_commit or autovacuum.

use super::ledger_of;
use crate::Context;
use crate::disk::server_places;
use howdah_model::{Error, ErrorKind, Plan, Result, TuneScope, Tuned, sqlstate};
use howdah_target::ledger::{Held, Origin};
use howdah_target::session::Session;
use howdah_target::tune::server::{self, AMAZON, Rights, Setting};
use howdah_target::tune::tuners;

const GIB: u64 = 1 << 30;
/// WAL between two checkpoints, where the disk has room for four times as much.
const WAL_GIB_MAX: u64 = 16;
/// The same where the disk cannot be seen.
const WAL_GIB_UNSEEN: u64 = 4;
/// Of the room that is left on the disk, WAL may take this part.
const WAL_SHARE: u64 = 4;

/// A setting that a load would like to be otherwise.
struct Wanted {
    name: &'static str,
    value: Value,
    gain: &'static str,
    risk: Option<&'static str>,
}

/// What it is to be.
enum Value {
    /// At least so much: in the setting's own unit, and as it is written.
    AtLeast(f64, String),
    /// This word, if it is off and the server knows the word.
    Word(&'static str),
    /// What another setting says now, if this one says "as that one".
    AsNow(&'static str),
}

/// `wal_gib` of WAL fit between two checkpoints.
fn wanted(wal_gib: u64) -> Vec<Wanted> {
    let at_least = |number: f64, text: &str| Value::AtLeast(number, text.to_owned());
    vec![
        Wanted {
            name: "max_wal_size",
            value: Value::AtLeast((wal_gib * 1024) as f64, format!("{wal_gib}GB")),
            gain: "checkpoints by time, not by so much WAL: with two indexes kept, 43 % less WAL and 12 % less CPU than with one every 96 MB, 21 % and 3 % than with one every 256 MB",
            risk: Some("after a crash the server replays up to so much WAL before it answers"),
        },
        Wanted {
            name: "checkpoint_timeout",
            value: at_least(1800.0, "30min"),
            gain: "as above",
            risk: Some("as above"),
        },
        Wanted {
            name: "checkpoint_completion_target",
            value: at_least(0.9, "0.9"),
            gain: "a checkpoint writes over most of the time until the next, not at once (not measured: 0.9 is the default since version 14)",
            risk: None,
        },
        Wanted {
            name: "maintenance_work_mem",
            value: at_least(98_304.0, "96MB"),
            gain: "room for two parallel workers of an index build: three builds took 10.5 s instead of 13.6 s; more made no build quicker",
            risk: None,
        },
        Wanted {
            name: "autovacuum_work_mem",
            value: Value::AsNow("maintenance_work_mem"),
            gain: "none: autovacuum does not take the memory that is meant for builds",
            risk: None,
        },
        Wanted {
            name: "wal_compression",
            value: Value::Word("lz4"),
            gain: "whole pages in WAL, which indexes that are kept write after each checkpoint: 20 % less WAL with a checkpoint every 96 MB, nothing without any",
            risk: None,
        },
        Wanted {
            name: "bgwriter_lru_maxpages",
            value: at_least(1000.0, "1000"),
            gain: "pages of indexes are written by the background writer, not by the sessions that need the room; none was measured on two busy cores",
            risk: None,
        },
        Wanted {
            name: "effective_io_concurrency",
            value: at_least(32.0, "32"),
            gain: "reads ahead on disks that take several requests at once; none was measured with all in memory",
            risk: None,
        },
        Wanted {
            name: "maintenance_io_concurrency",
            value: at_least(32.0, "32"),
            gain: "the same in VACUUM behind the last row",
            risk: None,
        },
    ]
}

/// What is changed, and notes on what is not.
pub(super) async fn choose(
    context: &Context,
    session: &Session,
    plan: &Plan,
    held: &[Held],
) -> Result<(Vec<Tuned>, Vec<String>)> {
    let rights = server::rights(session).await?;
    if let Some(ledger) = ledger_of(&plan.job)
        && let Some(database) = tuners::other(session, &ledger).await?
    {
        return Ok((
            Vec::new(),
            vec![format!("the server's settings stay as they are: {}", tuners::says(&database))],
        ));
    }
    let places = server_places(context, session, &[], false).await?;
    let free_bytes = places.known.iter().filter_map(|place| Some(place.room().ok()?.free_bytes)).min();
    let wanted = wanted(wal_gib(free_bytes));
    let names: Vec<&str> = wanted.iter().map(|wanted| wanted.name).collect();
    let settings = server::look(session, &rights, &names).await?;
    let (mut tuned, mut notes) = (Vec::new(), Vec::new());
    for wanted in &wanted {
        let Some(setting) = settings.iter().find(|setting| setting.name == wanted.name) else { continue };
        let is_it = |held: &&Held| {
            held.thing.table.is_none() && held.thing.name == setting.name && held.origin != Origin::Elsewhere
        };
        let by_another = held.iter().find(is_it);
        let during = match by_another {
            Some(held) => Ok(held.during.clone()),
            None => during(wanted, setting, &settings),
        };
        // Of several loads the last puts back what the first has found.
        let before = by_another.map_or(&setting.in_file, |held| &held.before.value);
        match during {
            Ok(during) => tuned.push(Tuned {
                scope: TuneScope::Server,
                relation: None,
                name: setting.name.clone(),
                before: before.clone(),
                in_force: Some(setting.shown.clone()),
                during,
                after: before.clone(),
                gain: wanted.gain.to_owned(),
                risk: wanted.risk.map(str::to_owned),
            }),
            Err(reason) => notes.push(format!("{} stays at {}: {reason}", setting.name, setting.shown)),
        }
    }
    let may = |setting: &&Setting| !setting.may && tuned.iter().any(|tuned| tuned.name == setting.name);
    let denied: Vec<&str> = settings.iter().filter(may).map(|setting| setting.name.as_str()).collect();
    let by_hand: Vec<ByHand> = wanted
        .iter()
        .filter(|wanted| tuned.iter().any(|tuned| tuned.name == wanted.name))
        .filter_map(|wanted| ByHand::of(wanted, &settings))
        .collect();
    check(&rights, &denied, &by_hand, ledger_of(&plan.job).is_some(), session.server_version())?;
    let checkpoint = if rights.checkpoints {
        "a CHECKPOINT ends the load, behind everything else"
    } else {
        "the CHECKPOINT behind the load is left to the server: the role may not (GRANT pg_checkpoint, since version 15)"
    };
    notes.push(checkpoint.to_owned());
    if !tuned.is_empty() {
        notes.push(COPIED.to_owned());
    }
    Ok((tuned, notes))
}

/// Nobody can put them back on a server that is made of such a copy later.
const COPIED: &str = "a base backup that is taken while the load runs, for a new standby too, copies these values with postgresql.auto.conf: put them \
                      back there by hand (ALTER SYSTEM)";

/// The largest power of two that fits.
fn wal_gib(free_bytes: Option<u64>) -> u64 {
    let Some(free_bytes) = free_bytes else { return WAL_GIB_UNSEEN };
    let fits = (free_bytes / WAL_SHARE / GIB).clamp(1, WAL_GIB_MAX);
    1 << fits.ilog2()
}

fn during(wanted: &Wanted, setting: &Setting, settings: &[Setting]) -> Result<String, &'static str> {
    if setting.of_session {
        return Err("the role, database or connection has this value of its own, which hides the server's");
    }
    if !setting.reloadable {
        return Err("the server's command line sets it, or it takes a restart");
    }
    match &wanted.value {
        Value::AtLeast(least, text) => match setting.value.parse::<f64>() {
            Ok(now) if now >= *least => Err("that is enough"),
            _ if setting
                .most
                .as_deref()
                .and_then(|most| most.parse::<f64>().ok())
                .is_some_and(|most| most < *least) =>
            {
                Err("the server takes no more")
            }
            _ => Ok(text.clone()),
        },
        Value::Word(_) if setting.value != "off" => Err("somebody has set it"),
        Value::Word(word) if !setting.words.iter().any(|known| known == word) => {
            Err("this server does not know lz4, and pglz costs more CPU than it saves")
        }
        Value::Word(word) => Ok((*word).to_owned()),
        Value::AsNow(other) => match settings.iter().find(|setting| setting.name == *other) {
            // What it says is not the server's, which is not changed.
            Some(other) if other.of_session => Err("what it goes by is not changed"),
            Some(other) if setting.value == "-1" => Ok(other.shown.clone()),
            _ => Err("somebody has set it"),
        },
    }
}

/// A change that the user makes where the provider keeps the server's configuration.
struct ByHand {
    name: String,
    /// For people.
    shown: String,
    /// In the setting's own unit, which a parameter group takes.
    now: String,
    during: String,
}

impl ByHand {
    fn of(wanted: &Wanted, settings: &[Setting]) -> Option<ByHand> {
        let named = |name: &str| settings.iter().find(|setting| setting.name == name);
        let setting = named(wanted.name)?;
        let (during, shown) = match &wanted.value {
            Value::AtLeast(number, text) => (number.to_string(), text.clone()),
            Value::Word(word) => ((*word).to_owned(), (*word).to_owned()),
            Value::AsNow(other) => named(other).map(|other| (other.value.clone(), other.shown.clone()))?,
        };
        Some(ByHand {
            name: setting.name.clone(),
            shown: format!("{} {} -> {shown}", setting.name, setting.shown),
            now: setting.value.clone(),
            during,
        })
    }
}

/// A parameter group takes so many at a time (Amazon's limit).
const PARAMETERS_MAX: usize = 20;

/// The command that gives settings these values; only the group's name is left to be written.
fn modify_group<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let parameters: Vec<String> = settings
        .take(PARAMETERS_MAX)
        .map(|(name, value)| format!("ParameterName={name},ParameterValue={value},ApplyMethod=immediate"))
        .collect();
    format!(
        "`aws rds modify-db-parameter-group --db-parameter-group-name GROUP --parameters {}`",
        parameters.join(" ")
    )
}

/// What somebody can do where there is no ALTER SYSTEM.
fn advice(provider: &str, by_hand: &[ByHand]) -> String {
    if by_hand.is_empty() {
        return "the settings that a load would change are as it wants them".to_owned();
    }
    let shown: Vec<&str> = by_hand.iter().map(|change| change.shown.as_str()).collect();
    let shown = shown.join(", ");
    if provider != AMAZON {
        return format!(
            "set these in the flags (parameters) of the instance before the load and put them back behind it: {shown}"
        );
    }
    let during = by_hand.iter().map(|change| (change.name.as_str(), change.during.as_str()));
    let now = by_hand.iter().map(|change| (change.name.as_str(), change.now.as_str()));
    format!(
        "set these in the instance's parameter group before the load, as far as it has them: {shown}: {}; put them back behind it: {}",
        modify_group(during),
        modify_group(now)
    )
}

/// Names every right that is missing, with the statement that gives it.
fn check(
    rights: &Rights,
    denied: &[&str],
    by_hand: &[ByHand],
    has_ledger: bool,
    server_version: u32,
) -> Result<()> {
    let leave = "or give --tune table, which leaves the server as it is";
    let error = |message: &str| Error::new(ErrorKind::Table, format!("--tune server: {message}"));
    if !has_ledger {
        return Err(Error::new(
            ErrorKind::Usage,
            "--tune server needs a ledger, in which is kept how to put settings back",
        )
        .with_hint("leave out --ledger none, or give --tune table"));
    }
    if rights.forbidden {
        return Err(error("ALTER SYSTEM is switched off on this server (allow_alter_system)")
            .with_hint(format!("set these where the server's configuration is kept, {leave}")));
    }
    if rights.superuser {
        return Ok(());
    }
    if let Some(provider) = rights.managed {
        return Err(error(&format!("{provider} has no ALTER SYSTEM"))
            .with_hint(format!("{}; {leave}", advice(provider, by_hand))));
    }
    let role = format!("\"{}\"", rights.role.replace('"', "\"\""));
    let mut grants = Vec::new();
    if !denied.is_empty() {
        grants.push(format!("GRANT ALTER SYSTEM ON PARAMETER {} TO {role}", denied.join(", ")));
    }
    if !rights.reads_files {
        grants.push(format!("GRANT SELECT ON pg_file_settings TO {role}"));
        grants.push(format!("GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO {role}"));
    }
    if !rights.reloads {
        grants.push(format!("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {role}"));
    }
    if grants.is_empty() {
        return Ok(());
    }
    if server_version < 150_000 {
        return Err(error("before PostgreSQL 15 only a superuser may change the server's settings")
            .with_hint(format!("load as a superuser, {leave}")));
    }
    Err(error(&format!("the role {role} may not change the server's settings"))
        .with_sqlstate(sqlstate::INSUFFICIENT_PRIVILEGE)
        .with_hint(format!("let a superuser run {}; {leave}", grants.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wal_takes_a_quarter_of_the_room_and_never_more_than_its_limit() {
        assert_eq!(wal_gib(None), 4);
        assert_eq!(wal_gib(Some(500 * GIB)), 16);
        assert_eq!(wal_gib(Some(38 * GIB)), 8);
        assert_eq!(wal_gib(Some(GIB)), 1);
    }

    #[test]
    fn nothing_that_keeps_data_safe_is_touched() {
        for wanted in wanted(16) {
            let name = wanted.name;
            let unsafe_names = ["fsync", "full_page_writes", "synchronous_commit", "autovacuum", "wal_level"];
            assert!(!unsafe_names.contains(&name), "{name}");
        }
    }

    fn setting(name: &str, value: &str, shown: &str) -> Setting {
        Setting {
            name: name.to_owned(),
            value: value.to_owned(),
            shown: shown.to_owned(),
            of_session: false,
            reloadable: true,
            words: Vec::new(),
            most: None,
            in_file: None,
            may: false,
        }
    }

    #[test]
    fn where_there_is_no_alter_system_the_commands_are_told_that_set_and_put_back() {
        let settings = [
            setting("max_wal_size", "1024", "1GB"),
            setting("checkpoint_completion_target", "0.5", "0.5"),
            setting("maintenance_work_mem", "65536", "64MB"),
            setting("autovacuum_work_mem", "-1", "-1"),
        ];
        let by_hand: Vec<ByHand> =
            wanted(4).iter().filter_map(|wanted| ByHand::of(wanted, &settings)).collect();
        let hint = |managed| {
            let rights = Rights { managed: Some(managed), ..Rights::default() };
            let error = check(&rights, &[], &by_hand, true, 150_000).unwrap_err();
            error.hint().unwrap().to_owned()
        };
        let amazon = hint(AMAZON);
        let command = "`aws rds modify-db-parameter-group --db-parameter-group-name GROUP --parameters ";
        let (_, commands) = amazon.split_once(command).unwrap();
        let (set, back) = commands.split_once(command).unwrap();
        assert!(
            amazon.contains("max_wal_size 1GB -> 4GB, checkpoint_completion_target 0.5 -> 0.9, "),
            "{amazon}"
        );
        assert!(amazon.contains("autovacuum_work_mem -1 -> 64MB"), "{amazon}");
        for (name, now, during) in [
            ("max_wal_size", "1024", "4096"),
            ("checkpoint_completion_target", "0.5", "0.9"),
            ("maintenance_work_mem", "65536", "98304"),
            ("autovacuum_work_mem", "-1", "65536"),
        ] {
            let parameter =
                |value| format!("ParameterName={name},ParameterValue={value},ApplyMethod=immediate");
            assert!(set.contains(&parameter(during)) && back.contains(&parameter(now)), "{amazon}");
        }
        let other = hint("Cloud SQL");
        assert!(other.contains("max_wal_size 1GB -> 4GB") && !other.contains("aws"), "{other}");
    }

    #[test]
    fn each_missing_right_is_named_with_its_grant() {
        let rights = Rights { role: "Load".to_owned(), ..Rights::default() };
        let error = check(&rights, &["max_wal_size"], &[], true, 150_000).unwrap_err();
        let hint = error.hint().unwrap();
        for grant in [
            "GRANT ALTER SYSTEM ON PARAMETER max_wal_size TO \"Load\"",
            "GRANT SELECT ON pg_file_settings TO \"Load\"",
            "GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO \"Load\"",
            "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO \"Load\"",
        ] {
            assert!(hint.contains(grant), "{hint}");
        }
    }
}
