//! Columns of days in numbers, of which no value tells in what order day, month and year are.

use super::columns::{self, Columns};
use super::head::Head;
use super::tables::joined;
use super::whole::{Extent, Wholes};
use crate::Context;
use howdah_model::{Column, Error, ErrorKind, Job, Reading, Result, Table};
use howdah_target::session::{Session, catalog};
use howdah_transcode::infer::{self, Among, ColumnState};

/// What is planned, and the server it is planned for.
pub(super) struct Asked<'a> {
    pub(super) context: &'a Context,
    pub(super) session: &'a Session,
    pub(super) job: &'a Job,
}

/// A column of one file whose order is open.
struct Open {
    column: String,
    /// As `--types` writes its type.
    type_name: &'static str,
    /// The orders that its values may have.
    left: Vec<&'static str>,
}

/// Looks for values that prove the order of days, and says where there are none.
pub(super) async fn prove(
    asked: &Asked<'_>,
    table: &Table,
    wholes: &Wholes<'_>,
    chosen: &mut [Columns],
    heads: &mut [Head],
) -> Result<()> {
    let Asked { context, session, job } = *asked;
    let open = heads.iter_mut().zip(chosen.iter());
    let open = open.filter(|(head, chosen)| !open_orders(job, table, head, chosen).is_empty());
    wholes.scan(open.map(|(head, _)| head), Extent::All).await?;
    let settled = settled(table, chosen, heads);
    let proven = proven(table, chosen, heads);
    let split = split(chosen, heads);
    let mut of_server = None;
    for (head, chosen) in heads.iter().zip(chosen) {
        for open in open_orders(job, table, head, chosen) {
            if open.left.is_empty() {
                return Err(contradicting(&open.column).in_file(head.object().location()));
            }
            if settled.contains(&open.column) {
                continue;
            }
            // Asked once, and only where it decides.
            if of_server.is_none() {
                of_server = Some(context.connection.attend(session, catalog::date_order(session)).await?);
            }
            if let Some(order) = of_server.as_deref().filter(|order| !open.left.contains(order)) {
                return Err(refused(&open, order).in_file(head.object().location()));
            }
            chosen.unsure.push(told(&open, &proven, &split));
        }
    }
    Ok(())
}

/// Columns whose order another file proves, or in which the order does not matter.
fn settled(table: &Table, chosen: &[Columns], heads: &[Head]) -> Vec<String> {
    let is_settled = |name: &String, state: &ColumnState, among: &Among| {
        let column = table.columns.iter().find(|column| column.name == *name);
        among.proves_order() || column.is_some_and(|column| agreed(column, state, among, heads).is_some())
    };
    let seen = joined(chosen, heads).into_iter();
    seen.filter(|(name, (state, among))| is_settled(name, state, among))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Any order will do where all values were seen and are the same days in each order left, as 01/01/2020 is.
pub(super) fn agreed(column: &Column, state: &ColumnState, among: &Among, heads: &[Head]) -> Option<Reading> {
    let are_all_seen =
        || heads.iter().all(|head| head.found.as_ref().is_some_and(|found| found.columns.complete));
    let is_open = infer::is_order_open(state, among, &column.type_name) && are_all_seen();
    if is_open { among.agreed_order().map(Reading::Date) } else { None }
}

fn contradicting(column: &str) -> Error {
    let message = format!("the days in {column} are not all in one order of day and month");
    Error::new(ErrorKind::Columns, message)
        .with_hint(format!("--types {column}=date:d/m/y says which it is, and others are refused"))
}

/// The server would refuse some days, and take the others for what they may not be.
fn refused(open: &Open, of_server: &str) -> Error {
    let column = &open.column;
    let message = format!(
        "the days in {column} are not all in the order {of_server} of the server's DateStyle: their order may be {}",
        open.left.join(" or ")
    );
    Error::new(ErrorKind::Columns, message).with_hint(format!("--types {} says which it is", open.spelled()))
}

/// Says that the order is open, and how that of another column speaks for one.
fn told(open: &Open, proven: &[(String, &'static str)], split: &[String]) -> String {
    let column = &open.column;
    let why = match split.contains(column) {
        true => format!("other files prove more than one order of day and month in {column}, this one none"),
        false => format!("no value seen of {column} tells day from month"),
    };
    let said = format!("{why}: the server's DateStyle decides; ");
    match proven.iter().find(|(_, order)| open.left.contains(order)) {
        Some((other, order)) => {
            format!(
                "{said}{other} is {order}, and --types {column}={}:{order} reads {column} so, too",
                open.type_name
            )
        }
        None => format!("{said}--types {} settles it", open.spelled()),
    }
}

/// Columns of days that are in another order in one file than in another.
fn split(chosen: &[Columns], heads: &[Head]) -> Vec<String> {
    let seen = joined(chosen, heads).into_iter();
    seen.filter(|(_, (_, among))| among.orders_left().is_empty()).map(|(name, _)| name.clone()).collect()
}

/// Columns of days that are all in one order, which they prove.
fn proven(table: &Table, chosen: &[Columns], heads: &[Head]) -> Vec<(String, &'static str)> {
    let order = |(name, (state, among)): (&String, (ColumnState, Among))| {
        let column = table.columns.iter().find(|column| column.name == *name)?;
        let reading = infer::reading_for(&state, &among, &column.type_name)?;
        let order = matches!(reading, Reading::Date(_)).then(|| among.orders_left().first().copied());
        Some((name.clone(), order.flatten()?))
    };
    joined(chosen, heads).into_iter().filter_map(order).collect()
}

impl Open {
    /// Each order left, as `--types` takes it.
    fn spelled(&self) -> String {
        let spelled = |order: &&str| format!("{}={}:{order}", self.column, self.type_name);
        self.left.iter().map(spelled).collect::<Vec<String>>().join(" or ")
    }
}

/// Columns of days whose order nothing seen so far proves and nobody has told.
fn open_orders(job: &Job, table: &Table, head: &Head, chosen: &Columns) -> Vec<Open> {
    let seen = head.found.iter().flat_map(|found| found.columns.states.iter().zip(&found.columns.among));
    let open = |(field, (state, among)): (&Option<String>, (&ColumnState, &Among))| {
        let column = table.columns.iter().find(|column| Some(&column.name) == field.as_ref())?;
        if columns::is_told(job, &column.name) || !infer::is_order_open(state, among, &column.type_name) {
            return None;
        }
        let left = among.orders_left();
        Some(Open { column: column.name.clone(), type_name: type_word(&column.type_name), left })
    };
    chosen.fields.iter().zip(seen).filter_map(open).collect()
}

/// A type of time, short.
fn type_word(type_name: &str) -> &'static str {
    match type_name {
        name if !name.starts_with("timestamp") => "date",
        name if name.contains("with time zone") || name.starts_with("timestamptz") => "timestamptz",
        _ => "timestamp",
    }
}
