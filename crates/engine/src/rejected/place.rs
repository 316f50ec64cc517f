//! What stands where rejected records are to be written, and whether it may be replaced or removed. A file
//! that stood there when its user named it may. What has come there since, or stands where a job that is gone
//! on with was told to write, may be of another command, or be mended by now: it must hold nothing but
//! records that the job itself has rejected.

use super::layout::Layouts;
use super::writer::{expect_no_source, is_ordinary};
use super::{Group, names};
use futures_util::StreamExt;
use howdah_model::{Plan, Result};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Two files under one name differ in this, as far as anybody can tell without reading them: a file of the
/// system, its length, when it was written.
type Stamp = (u64, u64, Option<SystemTime>);

/// Where rejected records are to be written.
#[derive(Debug, Clone)]
pub struct RejectFile {
    path: PathBuf,
    /// What stood there, and beside it under the names that belong to it, when the user named it.
    stood: BTreeMap<PathBuf, Stamp>,
}

/// What stood under the names of a job's files when it was judged whose it is.
#[derive(Debug, Default)]
pub(super) struct Judged {
    stands: BTreeMap<PathBuf, Option<Stamp>>,
    others: BTreeSet<PathBuf>,
}

impl Judged {
    /// It is not the job's own to replace or remove, or something else stands there by now: whoever writes
    /// holds the lock of the name meanwhile, so that this is told for good by who holds it.
    pub(super) fn is_of_another(&self, name: &Path) -> bool {
        self.others.contains(name) || self.stands.get(name).is_some_and(|stood| *stood != stamp(name))
    }
}

impl RejectFile {
    /// The user has named it for what is planned here: what stands there now is to be replaced.
    pub fn named(plan: &Plan, path: &Path) -> RejectFile {
        let stood = names(plan, path).into_iter().filter_map(|name| Some((name.clone(), stamp(&name)?)));
        RejectFile { path: path.to_owned(), stood: stood.collect() }
    }

    /// The ledger knows it of an earlier run.
    pub fn noted(path: &Path) -> RejectFile {
        RejectFile { path: path.to_owned(), stood: BTreeMap::new() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at what stands under names of the job's.
    pub(super) async fn judge(
        &self,
        ledger: &Ledger,
        session: &Session,
        job_id: &str,
        plan: &Plan,
    ) -> Result<Judged> {
        // What is no file of its own is written, or left, as it is.
        let is_judged = |name: &PathBuf| is_ordinary(name) && expect_no_source(plan, name).is_ok();
        let names = names(plan, &self.path).into_iter().filter(is_judged);
        let stands: BTreeMap<PathBuf, Option<Stamp>> =
            names.map(|name| (name.clone(), stamp(&name))).collect();
        let is_other =
            |(name, now): &(&PathBuf, &Option<Stamp>)| now.is_some() && self.stood.get(*name) != now.as_ref();
        let others: BTreeSet<PathBuf> =
            stands.iter().filter(is_other).map(|(name, _)| name.clone()).collect();
        let others = match others.is_empty() {
            true => others,
            false => without_own(others, ledger, session, job_id, plan).await?,
        };
        Ok(Judged { stands, others })
    }
}

/// Those of these files that hold anything but records which the job has rejected.
async fn without_own(
    mut others: BTreeSet<PathBuf>,
    ledger: &Ledger,
    session: &Session,
    job_id: &str,
    plan: &Plan,
) -> Result<BTreeSet<PathBuf>> {
    let layouts = Layouts::new(plan);
    let mut compared: Vec<(Group, &PathBuf, Compared)> = Vec::new();
    for name in &others {
        for (index, layout) in layouts.all.iter().enumerate() {
            for as_in_file in [false, true] {
                let opened = Compared::open(name, layout.head(as_in_file));
                compared.extend(opened.map(|opened| ((index, as_in_file), name, opened)));
            }
        }
    }
    if !compared.is_empty() {
        let mut rejects = ledger.all_rejects(session, job_id).await?;
        while let Some(reject) = rejects.next().await {
            let reject = reject?;
            let group = layouts.of_file(reject.file_no).map(|index| (index, reject.as_in_file));
            let of_group = compared.iter_mut().filter(|(of, ..)| Some(*of) == group);
            of_group.for_each(|(.., compared)| compared.pass(&reject.bytes));
        }
    }
    let is_own =
        |(_, name, compared): (Group, &PathBuf, Compared)| compared.ends_here().then(|| name.clone());
    let own: Vec<PathBuf> = compared.into_iter().filter_map(is_own).collect();
    own.iter().for_each(|name| _ = others.remove(name));
    Ok(others)
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = path.metadata().ok()?;
    Some((found.ino(), found.len(), found.modified().ok()))
}

/// A file that is read beside the records that the job has rejected, in their order. An earlier run has
/// written fewer of them.
struct Compared {
    file: BufReader<File>,
    eol: Vec<u8>,
}

impl Compared {
    /// `None` if its header is another one.
    fn open(path: &Path, (head, eol): (Vec<u8>, Vec<u8>)) -> Option<Compared> {
        let mut compared = Compared { file: BufReader::new(File::open(path).ok()?), eol };
        compared.goes_on_with(&head).then_some(compared)
    }

    /// The file is behind this record, if it is its next one.
    fn pass(&mut self, record: &[u8]) {
        let eol = self.eol.clone();
        match record.ends_with(&eol) {
            true => self.goes_on_with(record),
            false => self.goes_on_with(&[record, eol.as_slice()].concat()),
        };
    }

    /// What cannot be read is not what was expected.
    fn goes_on_with(&mut self, expected: &[u8]) -> bool {
        let mut passed = 0;
        while passed < expected.len() {
            let left = &expected[passed..];
            let here = self.file.fill_buf().unwrap_or_default();
            let alike = here.iter().zip(left).take_while(|(got, expected)| got == expected).count();
            let ends = alike < here.len().min(left.len()) || here.is_empty();
            self.file.consume(alike);
            passed += alike;
            if ends {
                let _ = self.file.seek_relative(-i64::try_from(passed).unwrap_or(i64::MAX));
                return false;
            }
        }
        true
    }

    /// Nothing else is in it.
    fn ends_here(mut self) -> bool {
        self.file.fill_buf().is_ok_and(<[u8]>::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &Path) -> Judged {
        let stands = BTreeMap::from([(name.to_owned(), stamp(name))]);
        Judged { stands, others: BTreeSet::new() }
    }

    #[test]
    fn what_has_come_since_it_was_looked_is_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let (name, new) = (folder.path().join("bad.csv"), folder.path().join("new"));
        let looked = judged(&name);
        assert!(!looked.is_of_another(&name));
        std::fs::write(&name, "a\n").unwrap();
        assert!(looked.is_of_another(&name));
        // As long, and written in the same moment.
        let looked = judged(&name);
        std::fs::write(&new, "b\n").unwrap();
        let times = std::fs::FileTimes::new().set_modified(name.metadata().unwrap().modified().unwrap());
        File::options().write(true).open(&new).unwrap().set_times(times).unwrap();
        assert!(!looked.is_of_another(&name));
        std::fs::rename(&new, &name).unwrap();
        assert!(looked.is_of_another(&name));
        // A name that nobody judged is the caller's to write to.
        assert!(!Judged::default().is_of_another(&name));
    }
}
