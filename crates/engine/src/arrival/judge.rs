//! Which of the records that do not go together are left out: they are taken one after the other in the order of the files, and
//! each goes that conflicts with one that stays.

use howdah_target::check::found::Found;
use howdah_target::check::rules::{Among, Rule};
use std::collections::HashSet;

/// What was said of the records so far. It grows with those that are left out.
#[derive(Debug, Default)]
pub(super) struct Judge {
    left_out: HashSet<i64>,
    /// Keys, by rule and first record, whose first record was left out and which another one has now.
    taken: HashSet<(usize, i64)>,
}

impl Judge {
    /// Which of these is the reason why their record goes, if it does: they are all that was found of one record. Records come
    /// in their order.
    pub(super) fn reason(&mut self, rules: &[Rule], found: &[Found]) -> Option<usize> {
        let meets = |found: &&Found| match (rules.get(found.rule_no).and_then(|rule| rule.among), found.first)
        {
            (Some(among), Some(first)) => {
                let stays = !self.left_out.contains(&first);
                stays || among == Among::Keys && self.taken.contains(&(found.rule_no, first))
            }
            _ => true,
        };
        if let Some(reason) = found.iter().find(meets) {
            self.left_out.insert(reason.place);
            return Some(reason.rule_no);
        }
        let is_key =
            |found: &&Found| rules.get(found.rule_no).is_some_and(|rule| rule.among == Some(Among::Keys));
        let keys = found.iter().filter(is_key);
        self.taken.extend(keys.filter_map(|found| Some((found.rule_no, found.first?))));
        None
    }
}
