//! A plan as the ledger keeps it: what its files have alike is there once.
//!
//! A job may have a hundred thousand files of hundreds of fields, which would come to more than the 256 MB
//! that jsonb holds.

use howdah_model::{FilePlan, Plan};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::Hash;

#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    looks: Looks,
}

#[derive(Deserialize)]
struct KeptLooks {
    looks: Looks,
}

/// What was found, each text and each row of fields once, and by their numbers for each file.
#[derive(Default, Serialize, Deserialize)]
struct Looks {
    texts: Vec<String>,
    typed: Vec<Vec<bool>>,
    files: Vec<Look>,
}

#[derive(Serialize, Deserialize)]
struct Look {
    found: Option<u32>,
    typed: u32,
    evidence: Vec<u32>,
    unsure: Vec<u32>,
}

/// Things with their numbers, each once.
struct Numbered<T>(HashMap<T, u32>);

impl<T: Hash + Eq> Numbered<T> {
    fn number(&mut self, thing: T) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(thing).or_insert(next)
    }

    fn in_order(self) -> Vec<T> {
        let mut things: Vec<(T, u32)> = self.0.into_iter().collect();
        things.sort_unstable_by_key(|(_, number)| *number);
        things.into_iter().map(|(thing, _)| thing).collect()
    }
}

/// The text that the ledger keeps.
pub(crate) fn write(plan: &Plan) -> serde_json::Result<String> {
    let mut plan = plan.clone();
    let (mut texts, mut typed) = (Numbered(HashMap::new()), Numbered(HashMap::new()));
    let mut look = |file: &mut FilePlan| Look {
        found: file.found.take().map(|text| texts.number(text)),
        typed: typed.number(std::mem::take(&mut file.typed)),
        evidence: file.evidence.drain(..).map(|text| texts.number(text)).collect(),
        unsure: file.unsure.drain(..).map(|text| texts.number(text)).collect(),
    };
    let files = plan.files.iter_mut().map(&mut look).collect();
    let looks = Looks { files, texts: texts.in_order(), typed: typed.in_order() };
    serde_json::to_string(&Kept { plan: &plan, looks })
}

/// The plan in a text of [`write`].
pub(crate) fn read(text: &str) -> serde_json::Result<Plan> {
    let mut plan: Plan = serde_json::from_str(text)?;
    // Not in one go: to read a struct and what is flattened into it takes the whole text as a tree of values
    // first.
    let KeptLooks { looks } = serde_json::from_str(text)?;
    put_back(&mut plan.files, &looks)?;
    Ok(plan)
}

/// Gives the files what was found of each.
fn put_back(files: &mut [FilePlan], looks: &Looks) -> serde_json::Result<()> {
    if looks.files.len() != files.len() {
        let (expected, got) = (files.len(), looks.files.len());
        return Err(serde_json::Error::custom(format!("expected looks of {expected} files, got {got}")));
    }
    for (file, look) in files.iter_mut().zip(&looks.files) {
        let text = |no: &u32| numbered(&looks.texts, *no);
        file.found = look.found.as_ref().map(text).transpose()?;
        file.typed = numbered(&looks.typed, look.typed)?;
        file.evidence = look.evidence.iter().map(text).collect::<Result<_, _>>()?;
        file.unsure = look.unsure.iter().map(text).collect::<Result<_, _>>()?;
    }
    Ok(())
}

fn numbered<T: Clone>(things: &[T], no: u32) -> serde_json::Result<T> {
    let wrong = || {
        serde_json::Error::custom(format!("expected a number below {} in the looks, got {no}", things.len()))
    };
    things.get(no as usize).cloned().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_files_that_are_not_there_are_refused() {
        let look = Look { found: None, typed: 0, evidence: Vec::new(), unsure: Vec::new() };
        let looks = Looks { texts: Vec::new(), typed: vec![Vec::new()], files: vec![look] };
        let told = put_back(&mut [], &looks).unwrap_err().to_string();
        assert_eq!(told, "expected looks of 0 files, got 1");
    }

    #[test]
    fn a_number_of_nothing_is_refused() {
        assert_eq!(numbered(&["a", "b"], 1).unwrap(), "b");
        let told = numbered(&["a", "b"], 2).unwrap_err().to_string();
        assert_eq!(told, "expected a number below 2 in the looks, got 2");
    }
}
