//! Makes partitions by day or month for rows that have none (`--create-partitions`).
//!
//! Each chunk's dates are looked at before the chunk is sent, as `widen.rs` does with its values: what has no
//! partition yet gets one, once, and the load goes on. In which day of UTC a time of the session's own zone
//! lies, the server says. Dates that only it can read are left to it.

use crate::feed::Asker;
use crate::indexes::with_its_hint;
use howdah_model::route::Edge;
use howdah_model::{BinaryType, Error, ErrorKind, PartitionUnit, Relation, Result};
use howdah_target::date_partitions::{self, DateRanges, Made, Making};
use howdah_transcode::encode::BinaryEncoder;
use howdah_transcode::route;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;

/// More of them are hardly meant: a wrong column, or days where months would do.
const MADE_MAX: usize = 1000;
/// Microseconds of a day, which timestamps are counted in.
const DAY_US: i64 = 86_400_000_000;

/// The tables that partitions are made for.
#[derive(Debug, Default)]
pub(crate) struct Partitioner {
    unit: Option<PartitionUnit>,
    tables: BTreeMap<Relation, Dated>,
}

/// A table that is partitioned by a date or timestamp.
#[derive(Debug)]
struct Dated {
    oid: u32,
    column: String,
    time_zone: String,
    binary: BinaryType,
    unit_us: i64,
    covered: Mutex<Covered>,
}

/// What has a partition.
#[derive(Debug, Clone, Default)]
struct Covered {
    /// Begin and end of each, in order, counted as the column's type does.
    ranges: Vec<(i64, i64)>,
    made: usize,
    /// Days for which none can be made, as they or their month meet a partition of other bounds.
    barred: Vec<Range<i64>>,
}

impl Covered {
    fn holds(&self, number: i64) -> bool {
        let behind = self.ranges.partition_point(|(from, _)| *from <= number);
        behind.checked_sub(1).and_then(|no| self.ranges.get(no)).is_some_and(|(_, to)| number < *to)
    }

    /// All from one to the other have a partition.
    fn spans(&self, from: i64, to: i64) -> bool {
        let mut at = from;
        loop {
            let behind = self.ranges.partition_point(|(from, _)| *from <= at);
            match behind.checked_sub(1).and_then(|no| self.ranges.get(no)) {
                Some((_, end)) if *end > to => return true,
                Some((_, end)) if *end > at => at = *end,
                _ => return false,
            }
        }
    }

    fn add(&mut self, range: (i64, i64)) {
        let at = self.ranges.partition_point(|other| *other < range);
        self.ranges.insert(at, range);
    }
}

impl Partitioner {
    /// For these tables, whose OIDs stand before them.
    ///
    /// # Errors
    /// Usage, where a bound is one that only the server can read.
    pub(crate) fn new(
        unit: Option<PartitionUnit>,
        tables: Vec<(u32, Relation, DateRanges)>,
    ) -> Result<Partitioner> {
        let dated = |(oid, relation, ranges): (u32, Relation, DateRanges)| {
            let covered = Mutex::new(Covered { ranges: numbers(&relation, &ranges)?, ..Covered::default() });
            let DateRanges { column, time_zone, binary, unit_us, .. } = ranges;
            Ok((relation, Dated { oid, column, time_zone, binary, unit_us, covered }))
        };
        Ok(Partitioner { unit, tables: tables.into_iter().map(dated).collect::<Result<_>>()? })
    }

    /// The column that tells the partition of a row, and the session's TimeZone, where partitions of this
    /// table are made.
    pub(crate) fn column(&self, relation: &Relation) -> Option<(&str, &str)> {
        self.tables.get(relation).map(|dated| (dated.column.as_str(), dated.time_zone.as_str()))
    }

    /// Makes the partitions that these records need; field `field_no` is the column. Called before they are
    /// sent, from a thread that may block.
    ///
    /// # Errors
    /// Table, when a partition cannot be made; those of the session.
    pub(crate) fn settle(
        &self,
        asker: &Asker<'_>,
        relation: &Relation,
        records: &[u8],
        reader: &BinaryEncoder,
        field_no: u32,
    ) -> Result<()> {
        let Some((dated, unit)) = self.tables.get(relation).zip(self.unit) else { return Ok(()) };
        let context = asker.context();
        let known = dated.covered.lock().clone();
        // With a time of each that has no partition: one that covers a part of the day may take others.
        let mut days = BTreeMap::new();
        route::read_numbers(records, reader, field_no, &dated.binary, |number| {
            let number = rounded(number, dated.unit_us);
            if !known.holds(number) {
                days.entry(dated.day(number)).or_insert(number);
            }
        });
        if dated.binary == BinaryType::TimestampTz {
            let mut local = Local::default();
            route::read_local_numbers(records, reader, field_no, |number| {
                local.add(rounded(number, dated.unit_us));
            });
            let asked = local.far_from(&known);
            let asking = || async {
                let session = context.connection.open().await?;
                let asking = date_partitions::days_in_utc(&session, &asked);
                context.connection.attend(&session, asking).await
            };
            if !asked.is_empty() {
                for day in asker.wait_patiently(asking)? {
                    let day = i64::from(day);
                    days.entry(day).or_insert(day * DAY_US);
                }
            }
        }
        for (day, number) in days {
            dated.make(asker, relation, unit, day, number)?;
        }
        Ok(())
    }
}

/// What the server stores of a time: half a unit is rounded away from 2000-01-01 (`AdjustTimestampForTypmod`
/// in `timestamp.c`).
fn rounded(number: i64, unit_us: i64) -> i64 {
    let half = (unit_us / 2) * number.signum();
    number.checked_add(half).map_or(number, |number| number / unit_us * unit_us)
}

/// Times of the session's own zone: the first and the last of each day there.
#[derive(Debug, Default)]
struct Local {
    days: BTreeMap<i64, (i64, i64)>,
}

impl Local {
    fn add(&mut self, number: i64) {
        let (first, last) = self.days.entry(number.div_euclid(DAY_US)).or_insert((number, number));
        (*first, *last) = ((*first).min(number), (*last).max(number));
    }

    /// Those that may have no partition: no zone is a day away from UTC. A day there lies in two days of UTC
    /// at most, so that its first and its last tell all that rows lie in.
    fn far_from(&self, known: &Covered) -> Vec<i64> {
        let is_open = |(first, last): &&(i64, i64)| !known.spans(first - DAY_US, last + DAY_US);
        self.days.values().filter(is_open).flat_map(|(first, last)| [*first, *last]).collect()
    }
}

impl Dated {
    fn units_of_a_day(&self) -> i64 {
        if self.binary == BinaryType::Date { 1 } else { DAY_US }
    }

    fn day(&self, number: i64) -> i64 {
        number.div_euclid(self.units_of_a_day())
    }

    /// One at a time: whoever waited finds that it is there.
    fn make(
        &self,
        asker: &Asker<'_>,
        relation: &Relation,
        unit: PartitionUnit,
        day: i64,
        number: i64,
    ) -> Result<()> {
        let mut covered = self.covered.lock();
        let (units, context) = (self.units_of_a_day(), asker.context());
        if covered.holds(number) || covered.barred.iter().any(|days| days.contains(&day)) {
            return Ok(());
        }
        if covered.made == MADE_MAX {
            let message = format!("more than {MADE_MAX} partitions of {relation} would be made");
            return Err(Error::new(ErrorKind::Table, message)
                .with_hint("--create-partitions month makes fewer; or make those that are meant by hand"));
        }
        let day = i32::try_from(day).unwrap_or(i32::MAX);
        let making = || async {
            let session = context.connection.open().await?;
            let making =
                date_partitions::make(&session, relation, asker.lock_timeout_ms(), &self.binary, unit, day);
            context.connection.attend(&session, making).await
        };
        let (error, overlapping) = match asker.wait_patiently(making) {
            Ok(Making::Made(made)) => {
                context.tell(told(relation, &made));
                covered.made += 1;
                covered.add((i64::from(made.from_day) * units, i64::from(made.to_day) * units));
                return Ok(());
            }
            Ok(Making::Overlaps { error, from_day, to_day }) => {
                (error, Some(i64::from(from_day)..i64::from(to_day)))
            }
            Err(error) => (error, None),
        };
        // Another load may have made it; if not, the server says so of the rows.
        let reading = || async {
            let session = context.connection.open().await?;
            let reading = date_partitions::read(&session, self.oid, relation);
            context.connection.attend(&session, reading).await
        };
        let read = asker.wait_patiently(reading);
        match read.and_then(|ranges| numbers(relation, &ranges)) {
            Ok(ranges) => covered.ranges = ranges,
            // The table got partitions of another kind meanwhile, as one for all other rows; the plan has
            // found none.
            Err(changed) if changed.kind() == ErrorKind::Usage => return Err(error),
            Err(failed) => return Err(failed),
        }
        if covered.holds(number) {
            return Ok(());
        }
        // As without the option: the rows have no partition, and are bad records.
        let Some(days) = overlapping else { return Err(error) };
        covered.barred.push(days);
        context.warn(with_its_hint(&error));
        Ok(())
    }
}

fn told(relation: &Relation, made: &Made) -> String {
    let owned = made.not_given_to.as_ref().map(|owner| {
        format!("; it belongs to this role, which may not give it to {owner}, the owner of the table")
    });
    format!("{} was made, a partition of {relation}{}", made.relation, owned.unwrap_or_default())
}

/// Begin and end of the partitions as numbers, in order.
fn numbers(relation: &Relation, ranges: &DateRanges) -> Result<Vec<(i64, i64)>> {
    let number = |edge: &Edge| match edge {
        Edge::Min => Some(i64::MIN),
        Edge::Max => Some(i64::MAX),
        Edge::Value(text) => route::read_bound(&ranges.binary, text),
    };
    let pair = |(from, to): &(Edge, Edge)| number(from).zip(number(to));
    let mut numbers: Vec<(i64, i64)> =
        ranges.taken.iter().map(pair).collect::<Option<_>>().ok_or_else(|| {
            let message =
                format!("--create-partitions: {relation} has a partition whose bound is not understood");
            Error::new(ErrorKind::Usage, message)
        })?;
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn times_are_rounded_as_the_server_does() {
        let second = 1_000_000;
        assert_eq!(
            [499_999, 500_000, -499_999, -500_000].map(|us| rounded(us, second)),
            [0, second, 0, -second]
        );
        assert_eq!([7, -7, i64::MAX].map(|us| rounded(us, 1)), [7, -7, i64::MAX]);
    }
}
