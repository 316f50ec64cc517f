//! A plan as the ledger keeps it: what its files have alike is there once.
//!
//! A job may have a hundred thousand files of hundreds of fields, which would come to more than the 256 MB that jsonb holds.
//! A howdah that knows nothing of this reads the plan as one in which nothing was found of the files, which is there to be looked at.

use howdah_model::{FilePlan, Plan};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::Hash;

#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    looks: Looks,
}

/// Plans in older ledgers have no looks: what was found stands with each file.
#[derive(Deserialize)]
struct KeptLooks {
    looks: Option<Looks>,
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

/// The plan in a text of [`write`], or of an older howdah.
pub(crate) fn read(text: &str) -> serde_json::Result<Plan> {
    let mut plan: Plan = serde_json::from_str(text)?;
    let KeptLooks { looks } = serde_json::from_str(text)?;
    let Looks { texts, typed, files } = looks.unwrap_or_default();
    let text = |no: &u32| texts.get(*no as usize).cloned();
    for (file, look) in plan.files.iter_mut().zip(&files) {
        file.found = look.found.as_ref().and_then(text);
        file.typed = typed.get(look.typed as usize).cloned().unwrap_or_default();
        file.evidence = look.evidence.iter().filter_map(text).collect();
        file.unsure = look.unsure.iter().filter_map(text).collect();
    }
    Ok(plan)
}
