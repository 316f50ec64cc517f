//! The `sensor_log` table of the parallel-COPY experiment: id, location, reading, date; as CSV.
//!
//! Rows come in order of time and are spread evenly over the days of January 2015, so that daily
//! partitions get equal shares. Fifty locations and readings below a million are guesses.

use crate::Rows;
use crate::random::Random;
use crate::row::{push_number, push_padded};

const DAY_SECONDS: u64 = 86_400;

/// The rows of `sensor_log`.
#[derive(Debug)]
pub struct SensorLog {
    random: Random,
    row: u64,
    rows: u64,
    days: u64,
}

impl SensorLog {
    /// `rows` rows over the first `days` days of the month (1 to 31).
    #[must_use]
    pub fn new(seed: u64, rows: u64, days: u64) -> SensorLog {
        SensorLog { random: Random::new(seed, 100), row: 0, rows: rows.max(1), days: days.clamp(1, 31) }
    }
}

impl Rows for SensorLog {
    fn header(&self) -> String {
        "sensor_log_id,location,reading,reading_date\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        let second = (self.row * self.days * DAY_SECONDS / self.rows).min(self.days * DAY_SECONDS - 1);
        self.row += 1;
        push_number(out, self.row);
        out.extend_from_slice(b",sensor-");
        push_padded(out, u64::from(self.random.below(50)), 3);
        out.push(b',');
        push_number(out, u64::from(self.random.below(1_000_000)));
        out.extend_from_slice(b",2015-01-");
        push_padded(out, 1 + second / DAY_SECONDS, 2);
        for (lead, value) in [(b' ', second / 3600 % 24), (b':', second / 60 % 60), (b':', second % 60)] {
            out.push(lead);
            push_padded(out, value, 2);
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Limit, write_rows};

    #[test]
    fn rows_are_spread_evenly_over_the_days() {
        let mut bytes = Vec::new();
        write_rows(&mut bytes, &mut SensorLog::new(1, 800, 8), Limit::Rows(800)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        for day in 1..=8 {
            assert_eq!(text.matches(&format!(",2015-01-{day:02} ")).count(), 100);
        }
        assert!(text.lines().nth(1).unwrap().ends_with(",2015-01-01 00:00:00"), "{text}");
    }
}
