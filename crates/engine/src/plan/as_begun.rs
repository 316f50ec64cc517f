//! A job that goes on in a ledger that strangers may write: what it has decided may be theirs, which tables
//! its rows go to and how their values become those of types. So it is planned anew, and goes on only where
//! that comes to the same.

use super::earlier::expect_same_count;
use super::{ledger_of, read_values};
use crate::again::option;
use crate::budget::CHUNK_BYTES_MIN;
use howdah_model::{Error, ErrorKind, FilePlan, Plan, Result, TablePlan, ValueSettings, show_size};
use howdah_target::sql::quote_ident;

/// The plan reads the files as the ledger says that the job does, this session (whose own settings these are)
/// their values, and has them go to the same tables.
///
/// # Errors
/// Ledger, where it does not; Usage, where it counts records otherwise.
pub(super) fn expect(
    plan: &Plan,
    (in_ledger, own_values): (&Plan, &ValueSettings),
    doubted_for: &[String],
) -> Result<()> {
    expect_same_count(plan, &in_ledger.job.bad_records)?;
    let other = other(plan, in_ledger).map(str::to_owned);
    let other = other.or_else(|| other_values(&in_ledger.value_settings, own_values));
    let other = other.or_else(|| too_small(plan, in_ledger));
    let Some((what, ledger)) = other.zip(ledger_of(&plan.job)) else { return Ok(()) };
    let schema = quote_ident(ledger.schema());
    let message = format!(
        "the ledger in schema {schema} says that job {} was begun otherwise than this command would do it ({what}), and {} may have \
         written that",
        plan.job_id,
        doubted_for.join(", ")
    );
    let hint = format!(
        "where you trust who may write the ledger, add {}, to go on as it says",
        option("--ledger", ledger.schema())
    );
    Err(Error::new(ErrorKind::Ledger, message).with_hint(hint))
}

/// What of it differs.
fn other(plan: &Plan, in_ledger: &Plan) -> Option<&'static str> {
    let tables =
        |plan: &Plan| plan.tables.iter().map(|table| table.table.relation.clone()).collect::<Vec<_>>();
    if tables(plan) != tables(in_ledger) {
        return Some("rows go to other tables");
    }
    if plan.files.len() != in_ledger.files.len()
        || !plan.files.iter().zip(&in_ledger.files).all(|(file, was)| is_same_file(file, was))
    {
        return Some("other files, or parts of them");
    }
    let is_same = |(table, was): (&TablePlan, &TablePlan)| is_read_alike(table, was);
    (!plan.tables.iter().zip(&in_ledger.tables).all(is_same)).then_some("files are read otherwise")
}

/// Day and month would be exchanged.
fn other_values(in_ledger: &ValueSettings, own_values: &ValueSettings) -> Option<String> {
    let differing = read_values::differing(in_ledger, own_values);
    (!differing.is_empty()).then(|| format!("values are read otherwise: with {}", differing.join(", ")))
}

/// Chunks smaller than any that are chosen take a transaction for each record.
fn too_small(plan: &Plan, in_ledger: &Plan) -> Option<String> {
    let least_bytes = plan.job.chunk_bytes.unwrap_or(CHUNK_BYTES_MIN).min(CHUNK_BYTES_MIN);
    let taper = in_ledger.taper.iter().flat_map(|taper| [taper.in_order_bytes, taper.least_bytes]);
    let bytes = taper.chain([in_ledger.chunk_bytes]).min().filter(|bytes| *bytes < least_bytes)?;
    Some(format!("in chunks of {}", show_size(bytes)))
}

fn is_same_file(file: &FilePlan, was: &FilePlan) -> bool {
    let of = |file: &FilePlan| {
        let path = file.real_location.clone().unwrap_or_else(|| file.location.clone());
        (path, file.table_no, file.codec, file.eol, file.data_start_byte, file.data_end_byte)
    };
    of(file) == of(was)
}

/// Records are read in the same way, and their values go to the same columns.
pub(super) fn is_read_alike(table: &TablePlan, was: &TablePlan) -> bool {
    let staging = |table: &TablePlan| table.staging.as_ref().map(|staging| staging.relation.clone());
    table.format == was.format
        && table.dialect == was.dialect
        && table.care == was.care
        && table.recode == was.recode
        && table.fields == was.fields
        && table.readings == was.readings
        && table.copy_sql == was.copy_sql
        && staging(table) == staging(was)
}
