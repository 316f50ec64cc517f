//! Wide tables whose statistics cost the server more than their rows: said in the plan.
//!
//! ANALYZE reads every column of 300 rows for each of the largest statistics target, and sorts each: 30,000
//! values a column, however many rows there are. In a row of values of no fixed length it passes over those
//! before each one, so that a value costs more the more columns there are. Measured with 30,000 rows
//! (PostgreSQL 18, collation C.UTF-8, an AMD EPYC), nanoseconds a value, beside 100 for its COPY:
//!
//! | columns | 10 | 50 | 100 | 300 | 600 |
//! | --- | --- | --- | --- | --- | --- |
//! | text of 8 bytes | 660 | 700 | 910 | 1550 | 1980 |
//! | integer | | 240 | | 380 | |

use super::indexes::{RowsToCome, ToCome};
use crate::Context;
use howdah_model::units::show_count;
use howdah_model::{After, Column, Job, Plan, RelationKind, Result};
use howdah_target::session::Session;
use howdah_target::upkeep::{self, Sample};

/// With fewer columns, ANALYZE of the default target takes less than 3 s.
const COLUMNS_MIN: usize = 100;
/// Less is not worth a word.
const SECONDS_MIN: f64 = 5.0;
/// The beginning of the note; an earlier run's plan has it already.
const COSTS: &str = "ANALYZE behind the last row takes the server";

/// A note for each table whose statistics will take longer than its rows.
///
/// # Errors
/// Those of the session.
pub(super) async fn tell(
    context: &Context,
    session: &Session,
    plan: &mut Plan,
    rows_to_come: &RowsToCome,
) -> Result<()> {
    let is_due = makes_statistics(&plan.job);
    for table in &mut plan.tables {
        table.notes.retain(|note| !note.starts_with(COSTS));
        let columns = &table.table.columns;
        let to_come = rows_to_come.get(&table.table.relation).copied().unwrap_or_default();
        if !is_due || columns.len() < COLUMNS_MIN || table.table.kind != RelationKind::Table {
            continue;
        }
        let reading = upkeep::sample_of(session, &table.table.relation);
        let sample = context.connection.attend(session, reading).await?;
        table.notes.extend(note(columns, to_come, &sample));
    }
    Ok(())
}

/// Rows that come by their key may change few of those that are there; nobody knows before.
fn makes_statistics(job: &Job) -> bool {
    let is_asked = job.after.as_ref().is_none_or(|steps| steps.iter().any(|step| *step != After::Checkpoint));
    is_asked && !job.arrival.has_key() && !job.arrival.check
}

fn note(columns: &[Column], to_come: ToCome, sample: &Sample) -> Option<String> {
    let rows = (to_come.rows as f64 + sample.rows_there).min(sample.rows_max);
    let of_rows_s = to_come.rows as f64 * columns.len() as f64 * COPY_NS / 1e9;
    let analyze_s = rows * of_row_ns(columns) / 1e9;
    let is_told = sample.is_renewed_by(to_come.rows) && analyze_s >= SECONDS_MIN && analyze_s > of_rows_s;
    is_told.then(|| {
        format!(
            "{COSTS} about {analyze_s:.0} s, more than the rows: it samples {} of {} columns; --after none leaves it to autovacuum, where that is on",
            show_count(rows as u64),
            columns.len()
        )
    })
}

const COPY_NS: f64 = 200.0;

/// Nanoseconds for a row of the sample.
fn of_row_ns(columns: &[Column]) -> f64 {
    let per_value = 250.0 + 0.5 * columns.len() as f64;
    let per_text = 400.0 + 3.0 * columns.len() as f64;
    let fixed = columns.iter().filter(|column| FIXED.contains(&column.type_oid)).count() as f64;
    columns.len() as f64 * per_value + (columns.len() as f64 - fixed) * per_text
}

/// `pg_type.oid` of booleans, integers, floating-point numbers, days, times and uuids.
const FIXED: [u32; 12] = [16, 20, 21, 23, 26, 700, 701, 1082, 1083, 1114, 1184, 2950];

#[cfg(test)]
mod tests {
    use super::*;

    fn note_of(type_oid: u32, columns: usize, rows: u64, there: f64) -> Option<String> {
        let column = Column {
            name: "c".to_owned(),
            attnum: 1,
            type_name: "x".to_owned(),
            type_oid,
            not_null: false,
            has_default: false,
            generated: false,
            identity: false,
        };
        let sample = Sample { rows_max: 30_000.0, rows_there: there };
        note(&vec![column; columns], ToCome { rows, bytes: 0 }, &sample)
    }

    #[test]
    fn statistics_are_told_where_they_take_longer_than_the_rows() {
        let (text, int4) = (25, 23);
        let told = note_of(text, 300, 30_000, 0.0).unwrap();
        assert!(told.contains("about 15 s") && told.contains("30,000 of 300 columns"), "{told}");
        assert_eq!(note_of(text, 300, 3_000_000, 0.0), None, "the rows take longer");
        assert_eq!(note_of(text, 100, 30_000, 0.0), None, "soon done");
        assert_eq!(note_of(int4, 300, 30_000, 0.0), None, "soon done");
        assert_eq!(note_of(text, 300, 30_000, 1e6), None, "too few rows to make statistics stale");
    }
}
