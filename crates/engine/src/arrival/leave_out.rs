//! Where a load goes on without bad records (`--on-error skip`), rows that wait in staging tables are looked
//! at before they come into their tables: what these would refuse is kept in the ledger, as COPY's rejects
//! are, and does not come.
//!
//! The queries of `howdah check` tell which rows these are ([`ask`]). First go those that are bad by
//! themselves, then those that do not go together, one after the other in the order of the files
//! ([`super::judge`]). Of several records of a key (`--keep`) the one is asked about that would count; where
//! that is left out, the next one takes its place, so that the others stay until all are found. What is found
//! is written down and deleted from the staging tables in one transaction ([`take_away`]): a run that is
//! killed before it has done nothing, and behind it the next run finds it done. Nothing is taken away any
//! more when some part has come in.
//!
//! What goes may have led to what seemed to stay: a record that has changed a row no longer frees what that
//! row says. Who repeats a key of such a one alone stays until that has gone ([`certain`]).

use super::judge::{REMEMBERED_MAX, judged};
use super::{Staged, on_session, rows_rejected, settle_duplicates, surroundings};
use crate::finish::note_account;
use crate::load::by_file;
use crate::pipeline::Run;
use crate::rejects;
use crate::retry::patiently;
use crate::spot::Spots;
use futures_util::StreamExt;
use howdah_model::{Error, ErrorKind, Job, Keep, Mode, OnError, Reject, Result, TablePlan, sqlstate};
use howdah_target::arrival::leave_out;
use howdah_target::arrival::table::Into;
use howdah_target::check::facts::Facts;
use howdah_target::check::rows::Rows;
use howdah_target::check::rules::{self, Rule};
use howdah_target::check::{entries, found};
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;
use std::collections::{BTreeSet, HashSet};
use std::pin::pin;
use std::time::Duration;

mod records;

use records::Records;

/// So many are taken away at once, for they are kept in memory until then. More are found by asking again.
const AT_ONCE: usize = REMEMBERED_MAX;

/// Rows that wait are left out of this load.
pub(crate) fn is_for(job: &Job) -> bool {
    let (arrival, skips) = (&job.arrival, job.bad_records.on_error == OnError::Skip);
    // With a record goes what it says about its key, and the row of that key must not go with it.
    skips && !arrival.delete_missing
}

/// The table has something against a row, so that looking again may help.
pub(super) fn is_broken(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Server | ErrorKind::Table)
        && error.sqlstate().is_some_and(sqlstate::is_integrity_violation)
}

/// Says why a record was not left out, and whether more and more of them were told.
pub(super) fn hinted(run: &Run, error: Error, is_told: bool) -> Error {
    let is_of_rows = is_broken(&error) || error.sqlstate().is_some_and(|state| state.starts_with("P0"));
    if !is_of_rows {
        return error;
    }
    let (deletes, is_by_others) = (run.plan.job.arrival.delete_missing, is_told && is_broken(&error));
    error.with_hint(match (deletes, is_by_others) {
        (true, _) => {
            "--delete-missing would delete the rows of records that are left out, so that none are: howdah check lists them"
        }
        (false, true) => {
            "other sessions change the table meanwhile, so that it refuses more and more of the rows: run the same command again, or \
             give a longer --retry-for"
        }
        (false, false) => {
            "queries alone find the rows to leave out: not what triggers, policies and constraints of one partition refuse, and \
             nothing where a BEFORE trigger or a policy may change rows; howdah check names what it cannot tell"
        }
    })
}

/// Leaves out what the tables would refuse; returns how many records these were.
///
/// # Errors
/// `TooManyErrors`; what ends a load.
pub(super) async fn all(run: &Run, ledger: &Ledger, tables: &Staged<'_>, into: &[Into]) -> Result<u64> {
    for (_, staging) in tables {
        on_session(run, async |session| found::analyze(session, &staging.relation).await).await?;
    }
    let arrival = &run.plan.job.arrival;
    let one_counts = arrival.has_key() && arrival.keep != Keep::Error;
    let looking = Looking { run, ledger, tables, one_counts };
    let noted = rows_rejected(run);
    let mut left_out = looking.by_themselves(What::Alone).await?;
    loop {
        let together = looking.together().await?;
        if together == 0 {
            break;
        }
        // Others may have led to these, or count in their place.
        let what = if one_counts { What::Alone } else { What::Leading };
        left_out += together + looking.by_themselves(what).await?;
    }
    if one_counts {
        for into in into {
            settle_duplicates(run, ledger, into).await?;
        }
    }
    // Behind a COMMIT whose answer is lost there is nothing left to leave out: the counts alone tell that
    // some were.
    if rows_rejected(run) != noted {
        note_account(run).await?;
    }
    Ok(left_out)
}

/// Which rules are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Those about each record by itself.
    Alone,
    /// Of these, those which other records have to do with.
    Leading,
    /// Those about several.
    Together,
}

impl What {
    fn includes(self, rule: &Rule) -> bool {
        match self {
            What::Alone => rule.among.is_none(),
            What::Leading => rule.among.is_none() && rule.leads_to_records,
            What::Together => rule.among.is_some(),
        }
    }
}

/// What was done at once.
struct Round {
    left_out: u64,
    /// There is nothing more of it.
    is_last: bool,
}

/// Records to be left out, each with the number of the reason, in the order of the files.
struct Bad {
    rules: Vec<Rule>,
    records: Vec<(i64, usize)>,
    /// Of these, with which others each does not go together.
    conflicts: Vec<(i64, i64)>,
    /// Rules by which others may go when these do.
    leading: Vec<Rule>,
    is_all: bool,
}

/// What was taken away: how many, the first of each file, and whether others wait for what that has led to.
struct Taken {
    left_out: u64,
    first: Vec<(u32, Vec<Reject>)>,
    some_wait: bool,
}

struct Looking<'a> {
    run: &'a Run,
    ledger: &'a Ledger,
    tables: &'a Staged<'a>,
    /// Of several records of a key, so that another one is looked at when that is left out.
    one_counts: bool,
}

impl Looking<'_> {
    /// Those that do not go together.
    async fn together(&self) -> Result<u64> {
        let mut left_out = 0;
        loop {
            let round = self.round(What::Together).await?;
            left_out += round.left_out;
            if round.is_last {
                return Ok(left_out);
            }
        }
    }

    /// Until each row that is left is good by itself.
    async fn by_themselves(&self, mut what: What) -> Result<u64> {
        let mut left_out = 0;
        loop {
            let round = self.round(what).await?;
            left_out += round.left_out;
            if round.left_out == 0 {
                return Ok(left_out);
            }
            if round.is_last && !self.one_counts {
                what = What::Leading;
            }
        }
    }

    async fn round(&self, what: What) -> Result<Round> {
        let retry_for = Duration::from_millis(self.run.plan.job.retry_for_ms);
        patiently(&self.run.context, retry_for, || self.round_once(what)).await
    }

    async fn round_once(&self, what: What) -> Result<Round> {
        let connection = &self.run.context.connection;
        let mut session = connection.open().await?;
        // By whichever run: the counts are the ledger's.
        connection.attend(&session, self.recount(&session)).await?;
        let bad = connection.attend(&session, self.ask(&session, what)).await?;
        session.roll_back().await;
        let is_all = bad.is_all;
        if bad.records.is_empty() {
            return Ok(Round { left_out: 0, is_last: true });
        }
        let Some(taken) = self.take_away(&mut session, bad).await? else {
            return Ok(Round { left_out: 0, is_last: true });
        };
        for (file_no, rejects) in taken.first {
            let location = &self.run.plan.file(file_no).location;
            self.run.tally.rejected(location, file_no, &rejects);
        }
        connection.attend(&session, self.recount(&session)).await?;
        Ok(Round { left_out: taken.left_out, is_last: is_all || taken.some_wait })
    }

    /// What is in of each chunk, and what was refused.
    async fn recount(&self, session: &Session) -> Result<()> {
        let receipts = by_file(self.ledger.receipts(session, &self.run.plan.job_id).await?);
        for (no, file_no) in (0..self.run.plan.files.len()).zip(0..) {
            let chunks = || receipts.get(&file_no).into_iter().flat_map(|chunks| chunks.values());
            let rejected = chunks().map(|receipt| receipt.omitted.rejected).sum();
            self.run.tally.settle(no, chunks().map(|receipt| receipt.rows).sum(), rejected);
        }
        self.run.set_receipts(receipts);
        Ok(())
    }

    /// Leaves the transaction open in which was asked.
    async fn ask(&self, session: &Session, what: What) -> Result<Bad> {
        let (mut all, mut plans, mut asked) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (table, staging) in self.tables {
            let facts = Facts::read(session, table).await?;
            // A trigger may mend what a query finds bad; none fires for the rows of a new table.
            let is_new = self.run.plan.job.arrival.mode == Mode::Replace;
            if is_new || !facts.may_change_arriving() {
                asked.insert(facts.relation().clone());
            }
            if let Some(rows) = Rows::new(facts, table, staging, &self.run.plan.job.arrival) {
                all.push(rows);
                plans.push(*table);
            }
        }
        let mut rules = rules::rules_in_full(&all, &self.run.plan.job).rules;
        if what == What::Alone {
            rules.extend(entries::too_long(session, &all, &plans, &self.run.plan.job.arrival).await?.rules);
        }
        rules.retain(|rule| asked.contains(&rule.table));
        let mut leading = rules.clone();
        leading.retain(|rule| what == What::Together && What::Leading.includes(rule));
        rules.retain(|rule| what.includes(rule));
        found::begin(session).await?;
        let (rules, _) = found::feasible(session, rules).await?;
        let (leading, _) = found::feasible(session, leading).await?;
        let told = collect(session, rules.clone()).await;
        if told.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server) {
            // Some expression fails for some row.
            session.roll_back().await;
            found::begin(session).await?;
            let (rules, _) = found::answerable(session, rules).await?;
            return Ok(Bad { leading, ..collect(session, rules).await? });
        }
        Ok(Bad { leading, ..told? })
    }

    /// `None` where rows have come in already.
    async fn take_away(&self, session: &mut Session, bad: Bad) -> Result<Option<Taken>> {
        if !leave_out::begin(session, surroundings(self.run, self.ledger), self.tables).await? {
            return Ok(None);
        }
        let done = self.take_away_within(session, bad).await;
        match done {
            Ok(taken) => leave_out::commit(session).await.map(|()| Some(taken)),
            Err(error) => {
                session.roll_back().await;
                Err(error)
            }
        }
    }

    async fn take_away_within(&self, session: &mut Session, mut bad: Bad) -> Result<Taken> {
        let found = bad.records.len();
        if !bad.leading.is_empty() {
            let others: HashSet<i64> = bad.conflicts.iter().map(|(_, other)| *other).collect();
            let led = async |session: &Session| {
                self.delete(session, &bad.records).await?;
                found::places(session, &bad.leading, &others).await
            };
            let led = leave_out::on_trial(session, led).await?;
            bad.records = certain(&bad, &led);
        }
        let left_out = bad.records.len();
        rejects::bear_waiting(self.run, left_out as u64)?;
        let spots = Spots::new(self.run);
        let mut records = Records::new(self.run, self.ledger, &spots);
        records.keep(session, self.tables, &bad.rules, &bad.records).await?;
        self.delete(session, &bad.records).await?;
        Ok(Taken { left_out: left_out as u64, first: records.first(), some_wait: left_out < found })
    }

    async fn delete(&self, session: &Session, records: &[(i64, usize)]) -> Result<()> {
        let spots = Spots::new(self.run);
        for (table, staging) in self.tables {
            let is_of = |(place, _): &&(i64, usize)| self.table_of(&spots, *place) == Some(table);
            let places: Vec<i64> = records.iter().filter(is_of).map(|(place, _)| *place).collect();
            let deleted = match places.is_empty() {
                true => 0,
                false => leave_out::delete(session, staging, &places).await?,
            };
            if deleted != places.len() as u64 {
                let message = "another run of this job has left out rows at the same moment";
                return Err(Error::new(ErrorKind::CommitUnknown, message));
            }
        }
        Ok(())
    }

    /// The table with the staging table that the record waits in.
    fn table_of(&self, spots: &Spots, place: i64) -> Option<&TablePlan> {
        let own = self.run.plan.table_of(spots.file_no(place)?).staging.as_ref();
        self.tables.iter().find(|(_, staging)| Some(*staging) == own).map(|(table, _)| *table)
    }
}

/// Of records that go, those that do not go together with some that stays, also when those have gone that
/// others lead to, `led`, once these go; all where each hangs on that.
fn certain(bad: &Bad, led: &HashSet<i64>) -> Vec<(i64, usize)> {
    if led.is_empty() {
        return bad.records.clone();
    }
    let go: HashSet<i64> = bad.records.iter().map(|(place, _)| *place).collect();
    let stays = |place: &i64| !go.contains(place) && !led.contains(place);
    let certain: HashSet<i64> =
        bad.conflicts.iter().filter(|(_, other)| stays(other)).map(|(place, _)| *place).collect();
    let records: Vec<(i64, usize)> =
        bad.records.iter().filter(|(place, _)| certain.contains(place)).copied().collect();
    if records.is_empty() { bad.records.clone() } else { records }
}

async fn collect(session: &Session, rules: Vec<Rule>) -> Result<Bad> {
    let (mut records, mut conflicts, mut is_all) = (Vec::new(), Vec::new(), true);
    {
        let mut judged = pin!(judged(found::stream(session, &rules).await?, &rules));
        while let Some(reasons) = judged.next().await {
            let reasons = reasons?;
            records.extend(reasons.first().map(|found| (found.place, found.rule_no)));
            conflicts.extend(reasons.iter().filter_map(|found| Some((found.place, found.first?))));
            if records.len() >= AT_ONCE {
                is_all = false;
                break;
            }
        }
    }
    Ok(Bad { rules, records, conflicts, leading: Vec::new(), is_all })
}
