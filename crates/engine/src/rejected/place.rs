//! What stands where rejected records are to be written, and whether it may be replaced or removed. A file that stood there when its user
//! named it may. What has come there since, or stands where a job that is gone on with was told to write, may be of another command, or be
//! mended by now: it must hold nothing but records that the job itself has rejected.

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
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Two files under one name differ in this, as far as anybody can tell without reading them.
type Stamp = (u64, Option<SystemTime>);

/// Where rejected records are to be written.
#[derive(Debug, Clone)]
pub struct RejectFile {
    path: PathBuf,
    /// What stood there, and beside it under the names that belong to it, when the user named it.
    stood: BTreeMap<PathBuf, Stamp>,
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

    /// Files under names of the job's that are not its own to replace or remove.
    pub(super) async fn others(
        &self,
        ledger: &Ledger,
        session: &Session,
        job_id: &str,
        plan: &Plan,
    ) -> Result<BTreeSet<PathBuf>> {
        let is_other = |name: &PathBuf| {
            let now = stamp(name).filter(|_| is_ordinary(name) && expect_no_source(plan, name).is_ok());
            now.is_some_and(|now| self.stood.get(name) != Some(&now))
        };
        let mut others: BTreeSet<PathBuf> = names(plan, &self.path).into_iter().filter(is_other).collect();
        if others.is_empty() {
            return Ok(others);
        }
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
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = path.metadata().ok()?;
    Some((found.len(), found.modified().ok()))
}

/// A file that is read beside the records that the job has rejected, in their order. An earlier run has written fewer of them.
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
