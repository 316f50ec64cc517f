//! Options about rows that are there already, as typed -> [`Arrival`].

use crate::options::{ArrivalOptions, IndexesName, KeepName, LoadOptions, ModeName, TriggersName};
use crate::units;
use howdah_engine::model::arrival::LOCK_TIMEOUT_MS_DEFAULT;
use howdah_engine::model::{Arrival, Error, ErrorKind, Keep, Mode, Result};

/// What the options say.
///
/// # Errors
/// `Usage` for options that contradict each other or lack another.
pub fn resolve(options: &LoadOptions) -> Result<Arrival> {
    let typed = &options.arrival;
    let arrival = Arrival {
        mode: typed.mode.map_or(Mode::Append, Mode::from),
        key: typed.key.concat(),
        delete_missing: typed.delete_missing == Some(true),
        keep: match typed.keep {
            None | Some(KeepName::Error) => Keep::Error,
            Some(KeepName::First) => Keep::First,
            Some(KeepName::Last) => Keep::Last,
        },
        atomic: typed.atomic == Some(true),
        freeze: typed.freeze == Some(true),
        lock_timeout_ms: lock_timeout_ms(typed)?,
        check: false,
    };
    check(&arrival, typed, options)?;
    Ok(arrival)
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Mode {
        match name {
            ModeName::Append => Mode::Append,
            ModeName::Truncate => Mode::Truncate,
            ModeName::Replace => Mode::Replace,
            ModeName::Merge => Mode::Merge,
            ModeName::InsertNew => Mode::InsertNew,
        }
    }
}

/// To the server 0 means without end, which is what nobody who waits behind us wants.
fn lock_timeout_ms(options: &ArrivalOptions) -> Result<u64> {
    let Some(text) = &options.lock_timeout else { return Ok(LOCK_TIMEOUT_MS_DEFAULT) };
    match units::milliseconds("--lock-timeout", text)? {
        ms @ 1..=LOCK_TIMEOUT_MS_MAX => Ok(ms),
        _ => Err(usage(format!("--lock-timeout: expected 1ms to 1h, got {text:?}"))),
    }
}

/// Nobody waits so long for readers; the server counts in 31 bits.
const LOCK_TIMEOUT_MS_MAX: u64 = 3_600_000;

fn check(arrival: &Arrival, typed: &ArrivalOptions, options: &LoadOptions) -> Result<()> {
    let has_key = arrival.has_key();
    if has_key && arrival.key.is_empty() {
        return Err(usage(
            "--mode merge and --mode insert-new need the --key that tells rows apart".to_owned(),
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = arrival.key.iter().find(|column| !seen.insert(*column)) {
        return Err(usage(format!("--key names the column {twice} twice")));
    }
    for (name, given) in [("--key", !arrival.key.is_empty()), ("--keep", typed.keep.is_some())] {
        if given && !has_key {
            return Err(usage(format!("{name} is for --mode merge and --mode insert-new")));
        }
    }
    if arrival.delete_missing && arrival.mode != Mode::Merge {
        return Err(usage("--delete-missing is for --mode merge".to_owned()));
    }
    if arrival.atomic && arrival.mode == Mode::Truncate {
        let message = "--atomic and --mode truncate exclude each other: emptying a table shuts its readers out until the rows are in";
        return Err(
            usage(message.to_owned()).with_hint("--mode replace fills a new table and swaps the two at once")
        );
    }
    if arrival.is_staged() || arrival.mode != Mode::Append {
        check_others(options)?;
    }
    if arrival.freeze { check_freeze(arrival, options) } else { Ok(()) }
}

/// What goes with rows that come in one transaction a table.
fn check_freeze(arrival: &Arrival, options: &LoadOptions) -> Result<()> {
    if arrival.is_staged() {
        let message =
            "--freeze is for rows that come into the table as they are read, not from a staging table";
        return Err(usage(message.to_owned())
            .with_hint("a table that is loaded with --freeze shows all its rows at once, as with --atomic"));
    }
    let others = [
        ("--create-partitions", options.run.create_partitions.is_some()),
        ("--ledger none", options.target.ledger.as_deref() == Some("none")),
    ];
    match others.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(usage(format!(
            "--freeze and {name} exclude each other: all rows of a table come in one transaction, or none"
        ))),
        None => Ok(()),
    }
}

/// What goes with rows that are appended as they are read, and not with others.
fn check_others(options: &LoadOptions) -> Result<()> {
    let run = &options.run;
    if options.target.ledger.as_deref() == Some("none") {
        let message = "--mode and --atomic need a ledger, in which is kept what has been done to the table";
        return Err(usage(message.to_owned()).with_hint("leave out --ledger none"));
    }
    let staged = options.arrival.atomic == Some(true)
        || matches!(options.arrival.mode, Some(ModeName::Merge | ModeName::InsertNew | ModeName::Replace));
    let is_partitioned = run.create_partitions.is_some().then_some("--create-partitions");
    match is_partitioned.or_else(|| only_appended(run.indexes, run.triggers)).filter(|_| staged) {
        Some(name) => Err(for_appended(name)),
        None => Ok(()),
    }
}

/// What staged rows cannot have.
pub(crate) fn only_appended(
    indexes: Option<IndexesName>,
    triggers: Option<TriggersName>,
) -> Option<&'static str> {
    match (indexes, triggers) {
        (Some(IndexesName::Rebuild), _) => Some("--indexes rebuild"),
        (_, Some(TriggersName::Disable)) => Some("--triggers disable"),
        _ => None,
    }
}

pub(crate) fn for_appended(name: &str) -> Error {
    let hint = match name {
        "--indexes rebuild" => {
            "leave it out: --mode replace builds the indexes behind the rows in any case, the others change those that are there"
        }
        "--triggers disable" => {
            "leave it out: with --mode replace no trigger fires for the rows, with the others those do that the table has then"
        }
        _ => "leave it out, and make the partitions before",
    };
    usage(format!("{name} is for rows that come into the table as they are read, not from a staging table"))
        .with_hint(hint)
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}
