//! Who a job is: the same files, table and options are the same job, whoever runs it and however often.
//!
//! Two digests: the *work key* covers what was asked (locations as written, tables, options), the *identity*
//! what was asked with all links followed, and every file that was found and its version (ETag, or size and
//! modification time). An unfinished job with the same work key but another identity means that a source
//! changed under it, that a file was added to what a pattern matches or taken away, or that a link leads
//! elsewhere now. Where files were only added, it goes on with its own.

use super::{History, changed, earlier, ledger_of, mended};
use crate::Connection;
use futures_util::future::try_join;
use howdah_model::{
    Error, ErrorKind, FilePlan, Format, IfDone, Job, Keep, KnownFiles, Mode, Plan, Result, Shaping,
    SourceSpec, Table, Taper, ValueSettings, counted, plural,
};
use howdah_source::Object;
use howdah_target::ledger::{FileToLoad, JobRow, JobStatus, Ledger};
use howdah_target::session::Session;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Names of checks begin so in the ledger, which forgets them when they end.
const CHECK_PREFIX: &str = "check-";

/// What the ledger has fixed of a job.
pub(super) struct Settled {
    /// The job's name in the ledger.
    pub(super) name: String,
    /// The chunk size, by an earlier run or by the user.
    pub(super) chunk_bytes: Option<u64>,
    /// What goes with that.
    pub(super) taper: Option<Taper>,
    /// What is there already.
    pub(super) history: History,
    /// How its first run began.
    pub(super) began: Option<Began>,
    /// What the earlier run decided, and the tables as they are now: this run must not decide otherwise.
    pub(super) earlier: Option<(Plan, Vec<Table>)>,
    /// Who else may have written that, and is not believed: it is compared with what this run would decide,
    /// and not gone by.
    pub(super) doubted_for: Vec<String>,
    /// How that run has read values; none where it has decided nothing, or did not say.
    pub(super) value_settings: ValueSettings,
    /// The job's files among those found, where others came since it began.
    pub(super) own: Option<Vec<bool>>,
    /// Files that have changed since the job began, which has stored nothing of them: their numbers in its
    /// plan.
    pub(super) changed: Vec<u32>,
    /// The ledger is closed to the role, and says nothing of the job.
    pub(super) closed: Option<Error>,
}

/// How a job that goes on has begun.
pub(super) struct Began {
    /// When: RFC 3339, UTC, whole seconds.
    pub(super) at: String,
    /// Files that were in their tables then were to come once more.
    pub(super) once_more: bool,
}

/// The digests of a job.
pub(super) struct Identity {
    pub(super) work_key: String,
    pub(super) identity: String,
    /// The identity by paths as written, where links are among them: ledgers know jobs by it that were begun
    /// before links were followed.
    as_written: Option<String>,
    named: Option<String>,
    /// Nothing tells whether a source is still the one that a finished job has loaded, and no name says so.
    may_be_new: bool,
}

/// What the ledger says of a job, asked for before it is certain that the job is the one to come.
pub(super) struct Told {
    identity: String,
    name: String,
    /// There is a ledger.
    exists: Result<bool>,
    /// Its jobs of the same work, and the one of this name.
    known: Result<(Vec<JobRow>, Option<JobRow>)>,
}

/// What must be the same of a file in all runs of the job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) location: String,
    pub(super) real_location: String,
    pub(super) version: Option<String>,
    pub(super) stored_bytes: Option<u64>,
    rereadable: bool,
}

impl Version {
    pub(super) fn of(object: &Object) -> Version {
        Version {
            location: object.location().to_owned(),
            real_location: object.real_location().to_owned(),
            version: object.version().map(str::to_owned),
            stored_bytes: object.stored_bytes(),
            rereadable: object.rereadable(),
        }
    }

    /// The file of this number by its names; by none, where nothing tells it from another one.
    pub(super) fn names(&self, no: usize) -> impl Iterator<Item = FileToLoad<'_>> {
        let real = (self.real_location != self.location).then_some(&self.real_location);
        let names = std::iter::once(&self.location).chain(real);
        names.filter_map(move |location| Some(FileToLoad { no, location, version: self.version.as_deref()? }))
    }

    /// What is noted of this file in a plan, which is of another version: `None` where it is not this one.
    pub(super) fn differs_from(&self, file: &FilePlan) -> Option<bool> {
        let real_location = file.real_location.as_ref().unwrap_or(&file.location);
        let is_it = self.real_location == *real_location && self.rereadable && self.version.is_some();
        is_it.then(|| self.version != file.version || self.stored_bytes != file.stored_bytes)
    }

    /// Its names: as written, and where the links of that lead.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        [self.location.as_str(), self.real_location.as_str()].into_iter()
    }

    /// One of its names is among these.
    pub(super) fn is_any_of(&self, has: impl Fn(&str) -> bool) -> bool {
        self.paths().any(has)
    }
}

impl Settled {
    /// A run for which nothing is left to do.
    pub(super) fn nothing_new(name: String, job: &Job) -> Settled {
        Settled { history: History::NothingNew, ..fresh(name, job) }
    }
}

/// What was asked, in the form that is hashed. Its fields decide which rows are stored; the number of
/// sessions or the memory do not.
#[derive(Serialize)]
struct Work<'a> {
    named: &'a Option<String>,
    sources: Vec<&'a SourceSpec>,
    table: &'a Option<String>,
    format: &'a Format,
    shaping: &'a Shaping,
    columns: &'a Option<Vec<String>>,
    map: &'a BTreeMap<String, String>,
    ignore_extra: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<(Mode, &'a [String], bool, Keep)>,
    /// The sources as given, where their order tells which record counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'a [SourceSpec]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    check: bool,
}

/// The digest of what was asked: the work of jobs with one of these is the same.
pub fn work_key(job: &Job) -> String {
    let mut sources: Vec<&SourceSpec> = job.sources.iter().collect();
    sources.sort_by(|one, other| (&one.location, &one.table).cmp(&(&other.location, &other.table)));
    digest(&Work {
        named: &job.id,
        sources,
        table: &job.table,
        format: &job.format,
        shaping: &job.shaping,
        columns: &job.columns,
        map: &job.map,
        ignore_extra: job.ignore_extra,
        arrival: job.arrival.work(),
        order: (job.arrival.keep != Keep::Error).then_some(&job.sources),
        check: job.arrival.check,
    })
}

/// The digest of that and the files. In this form for ever: ledgers know jobs by it, and a finished one must
/// not be loaded again.
fn identity_of<'a>(
    work_key: &str,
    versions: &'a [Version],
    location: impl Fn(&'a Version) -> &'a str,
    once: Option<&str>,
) -> String {
    let mut versions: Vec<_> =
        versions.iter().map(|version| (location(version), &version.version, version.stored_bytes)).collect();
    versions.sort_unstable();
    digest(&(work_key, versions, once))
}

impl Identity {
    pub(super) fn new(job: &Job, versions: &[Version]) -> Identity {
        let rereadable = versions.iter().all(|version| version.rereadable);
        // Nobody can tell whether a pipe brings the same bytes again: without a name every run is a new job.
        // So is every check: the table may be another one by now.
        let once = (job.arrival.check || (job.id.is_none() && !rereadable)).then(fresh_salt);
        let once = once.as_deref();
        let written = work_key(job);
        let as_written = identity_of(&written, versions, |version| &version.location, once);
        let mut real = job.clone();
        for spec in &mut real.sources {
            spec.location =
                howdah_source::real_location(&spec.location).unwrap_or_else(|| spec.location.clone());
        }
        let identity = identity_of(&work_key(&real), versions, |version| &version.real_location, once);
        let as_written = (as_written != identity).then_some(as_written);
        let is_nameless = |version: &Version| version.rereadable && version.version.is_none();
        let may_be_new = job.id.is_none() && versions.iter().any(is_nameless);
        Identity { work_key: written, identity, as_written, named: job.id.clone(), may_be_new }
    }

    /// A job of which the ledger may not be asked.
    pub(super) fn untold(&self, job: &Job, error: Error) -> Settled {
        Settled { closed: Some(error), ..fresh(self.name(), job) }
    }

    /// What [`Identity::settle`] asks first, in one flight; `None` where it asks nothing.
    pub(super) async fn ask(&self, session: &Session, job: &Job) -> Option<Told> {
        let ledger = ledger_of(job).filter(|_| !job.arrival.check)?;
        let (identity, name) = (self.identity.clone(), self.name());
        let known = async || {
            try_join(ledger.of_work(session, &self.work_key, &identity), ledger.find(session, &name)).await
        };
        let (exists, known) = match ledger.exists_and(session, known).await {
            Ok(Some(told)) => told,
            Ok(None) => (Ok(false), Ok((Vec::new(), None))),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        Some(Told { identity, name, exists, known })
    }

    /// What the ledger says about the job of these files, where it was `told` of this one or another. By all
    /// that were `found` it is told what has changed.
    pub(super) async fn settle(
        &mut self,
        (connection, session): (&Connection, &Session),
        job: &Job,
        versions: &[Version],
        found: &[Version],
        told: Option<Told>,
    ) -> Result<Settled> {
        if job.arrival.check {
            if let Some(ledger) = ledger_of(job) {
                ledger.expect_plain(session).await?;
            }
            return Ok(fresh(format!("{CHECK_PREFIX}{}", &self.identity[..16]), job));
        }
        expect_to_know_done(job, versions)?;
        let Some(ledger) = ledger_of(job) else { return Ok(fresh(self.name(), job)) };
        let (exists, told) = match told {
            Some(Told { identity, name, exists, known }) => (exists?, Some((identity, name, known))),
            None => (ledger.exists(session).await?, None),
        };
        if !exists {
            return Ok(fresh(self.name(), job));
        }
        self.go_by_the_known(session, &ledger).await?;
        let name = self.name();
        let is_of_this =
            |(identity, named, _): &(String, String, _)| *identity == self.identity && *named == name;
        let (mut known, first) = match told.filter(is_of_this) {
            Some((_, _, known)) => known?,
            None => {
                let known = ledger.of_work(session, &self.work_key, &self.identity);
                try_join(known, ledger.find(session, &name)).await?
            }
        };
        // Begun by another path to the same files.
        if let Some(first) = first.as_ref().filter(|first| self.is_by_another_path(first)) {
            known.extend(ledger.of_work(session, &first.work_key, &self.identity).await?);
        }
        known.retain(|row| row.plan.identity == self.identity || has_records_alike(job, &row.plan.job));
        if let Some(row) = self.of_other_files(&ledger, session, job, &known).await? {
            let of_job = (connection, session, &ledger);
            if let Some(settled) = self.go_on_with_others(of_job, job, row, versions, found).await? {
                return Ok(settled);
            }
        }
        if !job.force {
            let changed = known.iter().filter(|row| self.is_changed(row));
            changed::expect_none((connection, session, &ledger), job, changed, versions, found).await?;
        }
        let first = match first {
            // Files of it have changed since it got its name.
            None => known.iter().rfind(|row| self.is_renewed(row, &name)).cloned(),
            first => first,
        };
        let Some(first) = first else {
            return Ok(fresh(name, job));
        };
        if !known.iter().any(|row| row.plan.identity == self.identity) {
            // Nothing is left of what these have stored, or they would have been refused.
            let gone: Vec<&str> =
                known.iter().filter(|row| self.is_changed(row)).map(|row| row.job_id.as_str()).collect();
            if self.has_other_files(&first)
                && (job.force || !ledger.has_stored(session, &self.work_key, &name, &gone).await?)
            {
                return Ok(fresh(ledger.next_name(session, &name).await?, job));
            }
            self.refuse_other_work(&first, found)?;
        }
        // A later run of the same files has another name: it was forced, or the table was gone. One that did
        // not end is gone on with, so that its part is not left in the table.
        let last = known.into_iter().rfind(|row| row.plan.identity == self.identity).unwrap_or(first);
        let done = last.status == JobStatus::Done;
        // `--if-done ok` and `howdah resume` are about the job that has finished: neither loads its files
        // once more.
        let once_more = job.known == KnownFiles::Load && job.resumes.is_none() && job.if_done == IfDone::Fail;
        let again =
            done && (self.may_be_new || once_more) || job.force && is_over(session, &ledger, &last).await?;
        let earlier =
            if again { None } else { earlier::go_on(connection, session, &ledger, job, last).await? };
        match earlier {
            Some(settled) => Ok(settled),
            None => Ok(fresh(ledger.next_name(session, &name).await?, job)),
        }
    }

    /// The job that began with other files, where it goes on: others came, or some have changed of which it
    /// has stored nothing.
    async fn go_on_with_others(
        &mut self,
        (connection, session, ledger): (&Connection, &Session, &Ledger),
        job: &Job,
        row: JobRow,
        versions: &[Version],
        found: &[Version],
    ) -> Result<Option<Settled>> {
        if let Some((identity, own)) = of_its_files(job, &row, versions) {
            let settled = earlier::go_on(connection, session, ledger, job, row).await?;
            if settled.is_some() {
                *self = identity;
            }
            return Ok(settled.map(|settled| Settled { own: Some(own), ..settled }));
        }
        let settled = mended::go_on((connection, session, ledger), job, &row, versions).await?;
        if settled.is_none() && job.resumes.is_some() && !job.force {
            return Err(changed::refusal((session, ledger), job, &row, versions, found).await?);
        }
        Ok(settled)
    }

    /// The identity by which the ledger knows these files, where it has another one of them than they get
    /// now.
    async fn go_by_the_known(&mut self, session: &Session, ledger: &Ledger) -> Result<()> {
        if let Some(as_written) = self.as_written.take() {
            let before = ledger.of_work(session, &self.work_key, &as_written).await?;
            if before.iter().any(|row| row.plan.identity == as_written) {
                self.identity = as_written;
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.named.clone().unwrap_or_else(|| self.identity[..16].to_owned())
    }

    /// The job of these files, under the name that it got from those that it began with.
    fn is_renewed(&self, row: &JobRow, name: &str) -> bool {
        row.plan.identity == self.identity && !row.job_id.starts_with(name)
    }

    fn is_by_another_path(&self, row: &JobRow) -> bool {
        row.plan.identity == self.identity && row.work_key != self.work_key
    }

    /// The job has stored rows of what its sources were then.
    fn is_changed(&self, row: &JobRow) -> bool {
        row.plan.identity != self.identity && row.chunks > 0 && rereadable(row)
    }

    /// The job that is gone on with, where other files are found than it began with: the one that was named,
    /// or one that has stored rows of the same work.
    async fn of_other_files(
        &self,
        ledger: &Ledger,
        session: &Session,
        job: &Job,
        known: &[JobRow],
    ) -> Result<Option<JobRow>> {
        let is_other = |row: &JobRow| row.plan.identity != self.identity && rereadable(row);
        if let Some(id) = &job.resumes {
            return Ok(ledger.find(session, id).await?.filter(is_other));
        }
        let has_begun = |row: &&JobRow| row.status != JobStatus::Done && row.chunks > 0;
        if job.force || known.iter().any(|row| row.plan.identity == self.identity) {
            return Ok(None);
        }
        Ok(known.iter().filter(has_begun).find(|row| is_other(row)).cloned())
    }

    /// The job is the same but for its files: mended, if nothing of them was stored.
    fn has_other_files(&self, first: &JobRow) -> bool {
        first.work_key == self.work_key && first.plan.identity != self.identity && rereadable(first)
    }

    /// A name given by the user must mean the same work, and the same files, each time.
    fn refuse_other_work(&self, row: &JobRow, found: &[Version]) -> Result<()> {
        if row.work_key != self.work_key {
            let message = format!("job {} is in the ledger with other sources, table or options", row.job_id);
            return Err(Error::new(ErrorKind::SourceChanged, message)
                .with_hint("choose another --job-id, or give the job what it was begun with"));
        }
        if row.plan.identity == self.identity || !rereadable(row) {
            return Ok(());
        }
        Err(changed::other_files(row, found))
    }
}

/// A file of rejected records that has the name of one of another job's is none that has changed.
fn has_records_alike(one: &Job, other: &Job) -> bool {
    let of = |job: &Job| job.rejects_of.as_ref().map(|of| of.job_id.clone());
    of(one) == of(other)
}

/// Of what nothing but a name tells whether it is loaded, each run is a new job, and none has finished.
fn expect_to_know_done(job: &Job, versions: &[Version]) -> Result<()> {
    if job.if_done == IfDone::Fail || job.id.is_some() || job.resumes.is_some() {
        return Ok(());
    }
    match versions.iter().find(|version| !version.rereadable || version.version.is_none()) {
        None => Ok(()),
        Some(version) => {
            let message = "--if-done ok needs --job-id for a pipe or a URL without a version";
            Err(Error::new(ErrorKind::Usage, message).in_file(&version.location).with_hint(
                "without a name each run is a new job, and stores its rows: give the same --job-id to every try of a load, and \
                 another one to the next load",
            ))
        }
    }
}

/// The identity by the job's own files, and which of those found they are, where they are as it read them and
/// others came since.
fn of_its_files(job: &Job, row: &JobRow, versions: &[Version]) -> Option<(Identity, Vec<bool>)> {
    let names =
        row.plan.files.iter().flat_map(|file| std::iter::once(&file.location).chain(&file.real_location));
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let is_own = |version: &Version| version.is_any_of(|name| names.contains(name));
    let own: Vec<bool> = versions.iter().map(is_own).collect();
    let own_versions: Vec<Version> = versions.iter().filter(|version| is_own(version)).cloned().collect();
    let mut identity = Identity::new(job, &own_versions);
    let is_as_read = identity.identity == row.plan.identity
        || identity.as_written.as_ref().is_some_and(|as_written| *as_written == row.plan.identity);
    identity.identity.clone_from(&row.plan.identity);
    (is_as_read && own.contains(&false)).then_some((identity, own))
}

/// What is said of files that a job leaves out, which began before they came.
pub(super) fn came_since(job: &Job, job_id: &str, files: usize) -> String {
    let (are, files) = (plural(files, "is", "are"), counted(files, "file"));
    let command = if job.resumes.is_some() { "the job's `howdah load` command" } else { "the same command" };
    // A name stays with its files.
    let name = if job.id.is_some() { Some("another --job-id") } else { None };
    let skip = (job.arrival.mode == Mode::Append).then_some("--known skip");
    let options: Vec<&str> = skip.into_iter().chain(name).collect();
    let with = if options.is_empty() { String::new() } else { format!(" with {}", options.join(" and ")) };
    format!(
        "{files} came since job {job_id} began, and {are} no part of it: when it is done, {command}{with} loads what came"
    )
}

/// Begun anew where that is wanted: the job is done; or nobody is at work on it, and what it has stored waits
/// in a new table, which is nobody else's.
async fn is_over(session: &Session, ledger: &Ledger, last: &JobRow) -> Result<bool> {
    let waits = last.plan.job.arrival.mode == Mode::Replace && last.chunks > 0;
    Ok(last.status == JobStatus::Done || (waits && !ledger.is_job_held(session, &last.job_id).await?))
}

fn fresh(name: String, job: &Job) -> Settled {
    Settled {
        name,
        chunk_bytes: job.chunk_bytes,
        taper: None,
        history: History::Fresh,
        began: None,
        earlier: None,
        doubted_for: Vec::new(),
        value_settings: ValueSettings::new(),
        own: None,
        changed: Vec::new(),
        closed: None,
    }
}

fn digest(value: &impl Serialize) -> String {
    // Strings, numbers and maps with string keys: serialising cannot fail.
    let json = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(&json).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A pipe has no version to compare; its chunks are compared one by one instead.
fn rereadable(row: &JobRow) -> bool {
    row.plan.files.iter().all(|file| file.rereadable)
}

fn fresh_salt() -> String {
    format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_model::LedgerChoice;

    fn job(sources: &[&str]) -> Job {
        let sources = sources.iter().map(|location| SourceSpec::new(*location)).collect();
        let job = Job::new(sources, Some("t".to_owned()), Format::csv());
        Job { ledger: LedgerChoice::None, ..job }
    }

    fn file(location: &str, version: &str) -> Version {
        Version {
            location: location.to_owned(),
            real_location: location.to_owned(),
            version: Some(version.to_owned()),
            stored_bytes: Some(1),
            rereadable: true,
        }
    }

    #[test]
    fn the_order_of_sources_and_files_does_not_matter() {
        let one = Identity::new(&job(&["/a", "/b"]), &[file("/a", "1"), file("/b", "1")]);
        let other = Identity::new(&job(&["/b", "/a"]), &[file("/b", "1"), file("/a", "1")]);
        assert_eq!((one.work_key, one.identity), (other.work_key, other.identity));
    }

    #[test]
    fn a_job_keeps_its_name() {
        let work_key = Identity::new(&job(&["/a"]), &[]).work_key;
        let known = digest(&(&work_key, vec![("/a", Some("1"), Some(1_u64))], None::<String>));
        assert_eq!(Identity::new(&job(&["/a"]), &[file("/a", "1")]).identity, known);
    }

    #[test]
    fn a_file_is_the_same_by_whatever_path_and_a_link_that_leads_elsewhere_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        for name in ["x", "y"] {
            std::fs::write(path(name), "").unwrap();
        }
        let link = |to: &str| {
            let _ = std::fs::remove_file(path("link"));
            std::os::unix::fs::symlink(path(to), path("link")).unwrap();
            let by_link = Version { real_location: path(to), ..file(&path("link"), "1") };
            Identity::new(&job(&[&path("link")]), &[by_link])
        };
        let real = Identity::new(&job(&[&path("x")]), &[file(&path("x"), "1")]);
        let by_url = Identity::new(&job(&[&format!("file://{}", path("x"))]), &[file(&path("x"), "1")]);
        assert_eq!(by_url.identity, real.identity);
        assert!(by_url.as_written.is_some(), "ledgers know it by its URL");
        let (by_link, elsewhere) = (link("x"), link("y"));
        assert_eq!((&by_link.identity, real.as_written), (&real.identity, None));
        assert_eq!(by_link.work_key, elsewhere.work_key);
        assert_ne!(by_link.identity, elsewhere.identity);
    }

    #[test]
    fn a_file_that_changed_or_came_to_a_pattern_is_the_same_work_of_other_files() {
        let before = Identity::new(&job(&["/*"]), &[file("/a", "1")]);
        for files in [vec![file("/a", "2")], vec![file("/a", "1"), file("/b", "1")]] {
            let after = Identity::new(&job(&["/*"]), &files);
            assert_eq!(before.work_key, after.work_key);
            assert_ne!(before.identity, after.identity);
        }
    }
}
