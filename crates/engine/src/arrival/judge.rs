//! Which of the records that do not go together are left out: they are taken one after the other in the order
//! of the files, and each goes that conflicts with one that stays.

use futures_util::stream::once;
use futures_util::{Stream, StreamExt};
use howdah_model::Result;
use howdah_target::check::found::Found;
use howdah_target::check::rules::{Among, Rule};
use std::collections::{HashMap, HashSet};
use std::future::ready;

/// So many records that go are remembered: some 40 MB, with what is told of them. Behind more, a conflict
/// with one that goes counts as one.
pub(crate) const REMEMBERED_MAX: usize = 1 << 19;

/// Why each record goes, in the order of the records: one finding by each rule, the reason first. Nothing
/// comes of one that stays.
pub(crate) fn judged<'a>(
    found: impl Stream<Item = Result<Found>> + 'a,
    rules: &'a [Rule],
) -> impl Stream<Item = Result<Vec<Found>>> + 'a {
    let mut judge = Judge::default();
    let reasons = move |found: Option<Result<Found>>| -> Result<Vec<Found>> {
        match found {
            Some(found) => Ok(judge.next(rules, found?)),
            None => Ok(judge.end()),
        }
    };
    found.map(Some).chain(once(ready(None))).map(reasons)
}

/// What was said of the records so far. It grows with those that are left out.
#[derive(Debug, Default)]
struct Judge {
    left_out: HashSet<i64>,
    /// Keys, by rule and first record, whose first record was left out, and the one that has it now.
    taken: HashMap<(usize, i64), i64>,
    /// Why the record goes of which findings come, one by each rule.
    reasons: Vec<Found>,
    /// The same of what would not be a reason by itself: it conflicts with records that go.
    more: Vec<Found>,
    /// The keys that it has if it stays.
    keys: Vec<(usize, i64)>,
    place: Option<i64>,
}

impl Judge {
    /// Takes what was found, in the order of the records. Where it is of another record than before, comes
    /// back why that one goes, one finding by each rule; nothing if it stays.
    fn next(&mut self, rules: &[Rule], found: Found) -> Vec<Found> {
        let before = if self.place == Some(found.place) { Vec::new() } else { self.end() };
        self.place = Some(found.place);
        if self.reasons.last().is_some_and(|reason| reason.rule_no == found.rule_no) {
            return before;
        }
        if self.more.last().is_none_or(|other| other.rule_no != found.rule_no) {
            self.more.push(found);
        }
        let among = rules.get(found.rule_no).and_then(|rule| rule.among);
        match among.zip(found.first) {
            Some((among, first)) if self.left_out.contains(&first) => {
                let key = (found.rule_no, first);
                let holder = self.taken.get(&key).copied().filter(|_| among == Among::Keys);
                match holder {
                    Some(holder) => self.reasons.push(Found { first: Some(holder), ..found }),
                    None if among == Among::Keys => self.keys.push(key),
                    None => {}
                }
            }
            _ => self.reasons.push(found),
        }
        before
    }

    /// The same of the last record.
    fn end(&mut self) -> Vec<Found> {
        let (mut reasons, keys) = (std::mem::take(&mut self.reasons), std::mem::take(&mut self.keys));
        let more = std::mem::take(&mut self.more);
        if !reasons.is_empty() {
            // Whoever mends it is told all.
            let others =
                more.into_iter().filter(|more| reasons.iter().all(|other| other.rule_no != more.rule_no));
            let others: Vec<Found> = others.collect();
            reasons.extend(others);
        }
        let Some(place) = self.place.take().filter(|_| self.left_out.len() < REMEMBERED_MAX) else {
            return reasons;
        };
        match reasons.is_empty() {
            true => self.taken.extend(keys.into_iter().map(|key| (key, place))),
            false => _ = self.left_out.insert(place),
        }
        reasons
    }
}
