//! Columns of numbers whose commas and points mean something else than in the other columns of their file.

use super::columns::{self, Columns};
use super::head::Head;
use super::tables::{Readings, joined};
use crate::widen::is_number;
use howdah_model::{Error, ErrorKind, Job, Reading, Result, Table};
use howdah_transcode::infer::{self, ColumnState};

/// A column whose values prove that the comma is their decimal sign.
fn with_comma(readings: &Readings) -> Option<&String> {
    let has_comma = |reading: &Option<Reading>| matches!(reading, Some(Reading::Number { decimal: ',', .. }));
    readings.iter().find(|(_, reading)| has_comma(reading)).map(|(name, _)| name)
}

/// Where another column proves decimal commas, and none points, a comma that may be one is not taken for one
/// between groups only because its column holds integers: `1,500` beside `12,50`.
pub(super) fn expect_one(
    job: &Job,
    table: &Table,
    readings: &Readings,
    chosen: &[Columns],
    heads: &[Head],
) -> Result<()> {
    // What is told of one column is told since it is unlike the others.
    let mut seen = joined(chosen, heads);
    seen.retain(|name, _| !columns::is_told(job, name));
    let is_open = |name: &&String| seen.get(name).is_some_and(|(state, _)| infer::is_number_open(state));
    let read = |are: fn(Option<char>, char) -> bool| {
        let is_one = move |name: &&String| match readings.get(*name) {
            Some(Some(Reading::Number { group, decimal, .. })) => are(*group, *decimal),
            _ => false,
        };
        seen.keys().copied().filter(is_one)
    };
    let has_points = read(|group, decimal| group == Some(',') && decimal == '.').any(|name| !is_open(&name));
    let (Some(other), false) = (read(|_, decimal| decimal == ',').next(), has_points) else { return Ok(()) };
    let contrary = read(|group, _| group == Some(',')).find(is_open);
    let column = contrary.and_then(|name| table.columns.iter().find(|column| column.name == *name));
    let Some(column) = column else { return Ok(()) };
    let (name, type_name) = (&column.name, &column.type_name);
    let message = format!(
        "column {name} is {type_name}, and the commas of its values may stand before a fraction, as in {other}, or between groups"
    );
    let error = Error::new(ErrorKind::Columns, message).with_hint(format!(
        "--types {name}=numeric:1,234.56 or {name}=numeric:1.234,56 says what comma and point mean"
    ));
    // All files of the table are read in one way.
    Err(match heads.first() {
        Some(head) => error.in_file(head.object().location()),
        None => error,
    })
}

/// Where the comma of one column is a decimal sign, the points of another may stand between groups: `1.234`
/// beside `1.234,50` or `12,50`.
pub(super) fn tell_open_points(table: &Table, readings: &Readings, chosen: &mut [Columns], heads: &[Head]) {
    let Some(other) = with_comma(readings) else { return };
    let is_open = |name: &String, state: &ColumnState| {
        let column = table.columns.iter().find(|column| column.name == *name);
        column.is_some_and(|column| is_number(&column.type_name))
            && !readings.contains_key(name)
            && infer::has_open_points(state)
    };
    let seen = joined(chosen, heads).into_iter();
    let open: Vec<String> =
        seen.filter(|(name, (state, _))| is_open(name, state)).map(|(name, _)| name.clone()).collect();
    for columns in chosen {
        let there = open.iter().filter(|name| columns.fields.iter().flatten().any(|field| field == *name));
        let told: Vec<String> = there
            .map(|name| {
                format!(
                    "points in {name} may stand between groups of digits, since {other} has decimal commas, and are read as decimal points; \
                     --types {name}=numeric:1.234,56 settles it"
                )
            })
            .collect();
        columns.unsure.extend(told);
    }
}
