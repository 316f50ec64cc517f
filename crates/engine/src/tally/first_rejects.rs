//! The first records of a file that were refused in this run, for the account. What the server loses is
//! loaded once more, and refused once more: it is listed once.

use howdah_model::{LeftOut, Reject};
use parking_lot::Mutex;

/// So many are kept of each file.
const MAX: usize = 20;

#[derive(Debug, Default)]
pub(super) struct FirstRejects(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Each with the round in which it was refused last.
    records: Vec<(u32, LeftOut)>,
    round: u32,
}

impl FirstRejects {
    /// What was refused may be refused again.
    pub(super) fn begin_round(&self) {
        self.0.lock().round += 1;
    }

    pub(super) fn add(&self, location: &str, rejects: &[Reject]) {
        let mut kept = self.0.lock();
        let round = kept.round;
        for reject in rejects.iter().take(MAX) {
            let reject = told(location, reject);
            // Several of which no place is known may look alike: each stands for one.
            let known = kept.records.iter().position(|(last, known)| *last < round && *known == reject);
            match known {
                Some(no) => kept.records[no].0 = round,
                None if kept.records.len() < MAX => kept.records.push((round, reject)),
                None => {}
            }
        }
    }

    /// In the order of the file.
    pub(super) fn in_order(&self) -> Vec<LeftOut> {
        let kept = self.0.lock();
        let mut records: Vec<LeftOut> = kept.records.iter().map(|(_, record)| record.clone()).collect();
        records.sort_by_key(|record| record.record.unwrap_or(u64::MAX));
        records
    }
}

fn told(location: &str, reject: &Reject) -> LeftOut {
    LeftOut {
        file: location.to_owned(),
        record: reject.record,
        line: None,
        byte: reject.byte,
        column: reject.error.place().column.clone(),
        sqlstate: reject.error.sqlstate().map(str::to_owned),
        reason: reject.error.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use howdah_model::{Error, ErrorKind};

    fn reject(record: Option<u64>) -> Reject {
        let error = Error::new(ErrorKind::Server, "refused");
        Reject { record, byte: None, bytes: Bytes::new(), as_in_file: true, error }
    }

    #[test]
    fn a_record_that_is_refused_once_more_is_listed_once() {
        let first = FirstRejects::default();
        let nameless = [reject(None), reject(None)];
        first.add("a.csv", &[reject(Some(7))]);
        first.add("a.csv", &nameless);
        first.begin_round();
        first.add("a.csv", &nameless);
        first.add("a.csv", &[reject(Some(7)), reject(Some(3))]);
        let listed: Vec<Option<u64>> = first.in_order().iter().map(|record| record.record).collect();
        assert_eq!(listed, [Some(3), Some(7), None, None]);
    }

    #[test]
    fn no_more_are_kept_than_an_account_needs() {
        let first = FirstRejects::default();
        for _ in 0..3 {
            let many: Vec<Reject> = (1..=50).map(|record| reject(Some(record))).collect();
            first.add("a.csv", &many);
            first.begin_round();
        }
        assert_eq!(first.in_order().len(), MAX);
    }
}
