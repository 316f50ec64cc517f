//! One chunk of which the server refuses records: the others are stored and these are kept, in one
//! transaction.
//!
//! Enters a [`CopyChunk`] whose doubtful records are set aside; leaves an [`Outcome`] and what was refused.
//! In between: BEGIN and claim as for any chunk; the values that only the server can read are judged in one
//! question; the rows that are certain go by one COPY; the others are shown to COPY as the file has them,
//! under a savepoint. What a COPY refuses is cut at the line that the server names, or in the middle if it
//! names none, and both parts are tried again ([`show`]): a record is refused only when COPY has refused it
//! alone, or named it, with all rows before it in the table. So each row is sent at most twice for the first
//! bad record behind it, whatever their number. Where many rows break constraints, the server is asked about
//! all that are left at once ([`probe`]), and only the others are shown; of the chunks behind, COPY leaves
//! such rows out itself where it can ([`filter`]). Where many are refused that no query tells, the server
//! tries them itself ([`insertion`]).

mod asked;
mod filter;
mod insertion;
pub mod probe;
mod rows;
mod seen;
mod show;
mod stored;
mod written;

use crate::check::rules::Rule;
use crate::commit::{self, ChunkError, ChunkTarget, CopyProgress, Outcome};
use crate::copy::judge::judge;
use crate::copy::placed::Placed;
use crate::copy::server_error::POLICY_SQLSTATE;
use crate::copy::silent;
use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{
    Aside, CopyChunk, Doubt, Error, ErrorKind, Place, Receipt, Reject, Relation, Result, sqlstate,
};
pub use probe::Constraints;
use probe::Probe;
use rows::{Places, rows_of};
pub use seen::SentKeys;
use show::{ASKED_MIN, BROKEN_MAX, Showing, Way};
use std::ops::Range;
use std::slice;
use std::time::Instant;
use tokio_postgres::types::Type;

/// A record that the table does not take.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Its number in the chunk, from 0.
    pub row: u64,
    /// Why.
    pub error: Error,
}

/// SQLSTATEs, whole classes of them and single ones. Source: PostgreSQL documentation, appendix A.
struct Sqlstates {
    classes: &'static [&'static str],
    states: &'static [&'static str],
}

impl Sqlstates {
    fn hold(&self, sqlstate: &str) -> bool {
        self.classes.iter().any(|class| sqlstate.starts_with(class)) || self.states.contains(&sqlstate)
    }
}

/// What the server says about a row, wherever it was: data, integrity, WITH CHECK OPTION, RAISE, functions;
/// an index row that is too large.
const ABOUT_A_ROW: Sqlstates =
    Sqlstates { classes: &["22", "23", "44", "P0", "38", "39"], states: &[sqlstate::PROGRAM_LIMIT_EXCEEDED] };

/// What no row is to blame for, even where the server was at one: connections, transactions, resources,
/// operators, the system (classes); what others hold, and tables or indexes that are damaged (states).
const NOT_ABOUT_A_ROW: Sqlstates = Sqlstates {
    classes: &["08", "25", "28", "40", "53", "57", "58", "F0"],
    states: &[
        sqlstate::OBJECT_IN_USE,
        sqlstate::LOCK_NOT_AVAILABLE,
        sqlstate::DATA_CORRUPTED,
        sqlstate::INDEX_CORRUPTED,
    ],
};

/// What has failed with this SQLSTATE while the server was at a row may have failed because of it: a
/// `tsvector` is refused with 42601, a `regclass` with 42P01, and functions raise what they like.
pub(crate) fn may_be_of_a_row(sqlstate: &str) -> bool {
    !sqlstate.is_empty() && !NOT_ABOUT_A_ROW.hold(sqlstate)
}

/// Of so many rows of a chunk, none of which is stored, none is to blame.
const DOUBTED_MAX: usize = 1000;

/// They may be refused for what is wrong with a function or trigger, and not with any of them: one that is
/// missing has 42P01.
pub fn are_in_doubt(refused: &[Refused]) -> bool {
    refused.iter().all(|Refused { error, .. }| {
        let sqlstate = error.sqlstate().unwrap_or_default();
        error.is_met_at_row() && error.place().column.is_none() && !ABOUT_A_ROW.hold(sqlstate)
    })
}

/// The server said this about a row, not about itself, the table or the session: another row may well be
/// stored.
pub fn is_about_a_row(error: &Error) -> bool {
    let sqlstate = error.sqlstate().unwrap_or_default();
    if error.kind() == ErrorKind::Record && sqlstate == POLICY_SQLSTATE {
        return true;
    }
    error.kind() == ErrorKind::Server
        && (ABOUT_A_ROW.hold(sqlstate) || error.is_met_at_row() && may_be_of_a_row(sqlstate))
}

/// A function or trigger in PL/pgSQL raised it.
pub fn is_raised(error: &Error) -> bool {
    error.sqlstate().is_some_and(|sqlstate| sqlstate.starts_with("P0"))
}

/// It broke a constraint.
pub fn is_of_constraint(error: &Error) -> bool {
    error.sqlstate().is_some_and(sqlstate::is_integrity_violation)
}

/// The table has a foreign key to itself that is enforced, so that whether it takes a row may depend on those
/// behind.
///
/// # Errors
/// Those of the session, which is outside a transaction before and after.
pub async fn refers_to_itself(session: &Session, relation: &Relation) -> Result<bool> {
    const SQL: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.contype = 'f' \
        AND f.conrelid = pg_catalog.to_regclass($1)::pg_catalog.oid \
        AND coalesce((pg_catalog.to_jsonb(f) ->> 'conenforced'::pg_catalog.text)::pg_catalog.bool, true) \
        AND coalesce(pg_catalog.pg_partition_root(f.conrelid), f.conrelid) \
            = coalesce(pg_catalog.pg_partition_root(f.confrelid), f.confrelid))";
    let name = quote_relation(relation);
    let rows = session.rows(SQL, &[(&name, Type::TEXT)], "asking for foreign keys").await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// A transaction that waits for the rows of a chunk.
pub struct Salvage<'a> {
    session: &'a mut Session,
    target: &'a ChunkTarget<'a>,
    chunk: &'a CopyChunk,
    progress: &'a CopyProgress,
    started: Instant,
    savepoint: Savepoint,
    /// Rows were stored under the savepoint that is open.
    unmarked: bool,
    stored: u64,
    /// The table demands something else than when it was asked for.
    outdated: bool,
    /// Rows in binary were asked about, and of so many it was told that they are not taken.
    told: Option<usize>,
    /// The server has tried rows itself, and refused enough of them for that to be worth it.
    inserted: Option<bool>,
}

/// The one that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Savepoint {
    None,
    Kept,
    Failed,
}

impl Savepoint {
    /// Leads to a fresh one.
    fn sql(self) -> &'static str {
        match self {
            Savepoint::None => "SAVEPOINT howdah",
            Savepoint::Kept => "RELEASE SAVEPOINT howdah; SAVEPOINT howdah",
            Savepoint::Failed => "ROLLBACK TO SAVEPOINT howdah",
        }
    }
}

impl<'a> Salvage<'a> {
    /// Begins and claims; `None` if the chunk is in already. If the future is dropped before it is done, or
    /// this before [`Salvage::commit`], the session counts as closed.
    ///
    /// # Errors
    /// As for [`commit::commit_chunk`].
    pub async fn begin(
        session: &'a mut Session,
        target: &'a ChunkTarget<'a>,
        chunk: &'a CopyChunk,
        progress: &'a CopyProgress,
    ) -> Result<Option<Salvage<'a>>, ChunkError> {
        let started = Instant::now();
        let claim = target
            .ledger
            .map(|ledger| ledger.claim(target.job_id, slice::from_ref(&chunk.origin)))
            .transpose()?;
        session.set_busy(true);
        let mut salvage = Salvage {
            session,
            target,
            chunk,
            progress,
            started,
            savepoint: Savepoint::None,
            unmarked: false,
            stored: 0,
            outdated: false,
            told: None,
            inserted: None,
        };
        // What is deferred would fail at COMMIT, where nobody can tell the row.
        let begin = format!("{}; SET CONSTRAINTS ALL IMMEDIATE", commit::begin_sql(target, chunk, false));
        salvage.run(&begin).await?;
        if let Some(claim) = claim {
            let claimed = salvage.session.client().execute_typed(&claim.sql, &claim.parameters()).await;
            if salvage.or_fail(claimed).await? == 0 {
                commit::roll_back(salvage.session).await;
                commit::expect_same(salvage.session, target, chunk).await?;
                return Ok(None);
            }
        }
        let stored_in = target.table.stored_in();
        let silenced = silent::begin(salvage.session.client(), target.triggers, stored_in).await;
        if !salvage.or_fail(silenced).await? {
            commit::roll_back(salvage.session).await;
            return Err(silent::refusal(target.triggers, stored_in).into());
        }
        Ok(Some(salvage))
    }

    /// Stores what the table takes; what it refuses comes back, in the order of the file. `rows` tells where
    /// each record of the chunk stands. `bear` is told rows stored and refused so far, in the order of the
    /// file, and says when that is too much.
    ///
    /// # Errors
    /// As for [`commit::commit_chunk`], but for what is about a row; that of `bear`. The chunk is not in
    /// then.
    pub async fn copy(
        &mut self,
        rows: &(dyn Fn() -> Vec<Range<usize>> + Send + Sync),
        bear: &(dyn Fn(u64, u64) -> Result<()> + Send + Sync),
        constraints: Constraints<'_>,
    ) -> Result<Vec<Refused>, ChunkError> {
        let mut refused = self.refused_for_sure().await?;
        let placed = Placed::new(self.target.table, self.target.first_place);
        // Those that are certain were not numbered with the gaps that the others leave.
        let done = match constraints.filtered() {
            _ if placed.is_some() => false,
            Some((probe, filter)) => {
                self.is_current(probe).await? && self.copy_filtered(filter, &mut refused).await?
            }
            None => self.copy_made(bear, constraints, &mut refused).await?,
        };
        let places = if done { Places::Aside(&self.chunk.aside) } else { Places::All(rows()) };
        let mut known = rows_of(&refused);
        let mut left = places.rows();
        left.retain(|row| known.binary_search(row).is_err());
        let mut probe = constraints.probe.filter(|_| left.len() >= ASKED_MIN);
        if let Some(probe) = probe.take_if(|_| constraints.are_broken) {
            left = self.ask(probe, &places, left, &mut refused).await?;
            known = rows_of(&refused);
        }
        let way = Way::AsInFile(&places, placed.as_ref());
        let showing = Showing { way, bear, asks: probe.is_some(), inserts: true };
        if constraints.are_inserted && self.insert_all(&left, &known, &showing, &mut refused).await? {
            left.clear();
        }
        if let Some(shown) = self.show(&left, &known, &showing, &mut refused).await?
            && let Some(probe) = probe
        {
            left.drain(..shown);
            left = self.ask(probe, &places, left, &mut refused).await?;
            known = rows_of(&refused);
            self.show(&left, &known, &Showing { asks: false, ..showing }, &mut refused).await?;
        }
        refused.sort_by_key(|refused| refused.row);
        self.bear(bear, &refused, refused.len()).await?;
        Ok(refused)
    }

    /// Ends the transaction without the chunk.
    pub async fn give_up(self) {
        commit::roll_back(self.session).await;
    }

    /// What is known of the table's constraints may be asked about.
    async fn is_current(&mut self, probe: &Probe) -> Result<bool, ChunkError> {
        let current = probe.is_current(self.session).await;
        let current = self.or_fail(current).await?;
        self.outdated |= !current;
        Ok(current)
    }

    /// Of many rows in binary it was known only by asking that they are not taken.
    pub fn had_to_ask(&self) -> bool {
        self.told.is_some_and(|told| told >= BROKEN_MAX)
    }

    /// Many rows were refused that the server had to try itself.
    pub fn had_to_insert(&self) -> bool {
        self.inserted == Some(true)
    }

    /// The table's constraints were not asked about, because they are others than those that were read.
    pub fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// Records that no COPY would take: those that the client knows, and those with values that the server
    /// does not read.
    async fn refused_for_sure(&mut self) -> Result<Vec<Refused>, ChunkError> {
        let (mut refused, mut asked) = (Vec::new(), Vec::new());
        for aside in &self.chunk.aside {
            match &aside.doubt {
                Doubt::Refused(error) => refused.push(of(aside, error.clone())),
                Doubt::Values(values) => asked.extend(values.iter().map(|value| (aside, value))),
                Doubt::Unknown => {}
            }
        }
        if asked.is_empty() {
            return Ok(refused);
        }
        let columns: Vec<&str> = asked.iter().map(|(_, (column, _))| column.as_str()).collect();
        let values: Vec<&str> = asked.iter().map(|(_, (_, value))| value.as_str()).collect();
        self.save().await?;
        let (version, relation) = (self.session.server_version(), self.target.table.copied_into());
        let verdicts = match judge(self.session.client(), version, relation, &columns, &values).await {
            Ok(verdicts) => verdicts,
            Err(error) if error.as_db_error().is_some() => {
                self.savepoint = Savepoint::Failed;
                return Ok(refused);
            }
            Err(error) => return Err(self.fail(&error).await),
        };
        for verdict in verdicts {
            let Some((aside, (column, _))) = asked.get(verdict.no) else { continue };
            // The first of a record is the one that COPY would name.
            if refused.last().is_none_or(|last: &Refused| last.row != aside.row) {
                let place = Place { column: Some(column.clone()), ..Place::default() };
                let message = format!("the server says: {}", verdict.message);
                let error = Error::new(ErrorKind::Server, message).with_sqlstate(verdict.sqlstate).at(place);
                refused.push(of(aside, error));
            }
        }
        Ok(refused)
    }

    /// So many rows more are stored under the savepoint.
    fn keep(&mut self, rows: u64) {
        self.savepoint = Savepoint::Kept;
        self.unmarked = rows > 0;
        self.stored += rows;
    }

    /// Nothing under the savepoint is to stay.
    fn spoil(&mut self) {
        self.savepoint = Savepoint::Failed;
    }

    /// As [`commit::bring_in`]; the temporary table is empty then for the next rows.
    async fn bring_in(&self, copied: u64) -> Result<u64, tokio_postgres::Error> {
        let came = commit::bring_in(self.session, self.target, copied).await?;
        if let Some(policies) = &self.target.table.policies {
            let empty = format!("TRUNCATE TABLE {}", quote_relation(&policies.relation));
            self.session.client().batch_execute(&empty).await?;
        }
        Ok(came)
    }

    /// The first record that the table refuses, all before it being in; none, if it refuses none by itself.
    /// Nothing is stored. `rows` as for [`Salvage::copy`].
    ///
    /// # Errors
    /// As for [`commit::commit_chunk`], but for what is about a row.
    pub async fn first_refused(
        mut self,
        rows: &(dyn Fn() -> Vec<Range<usize>> + Send + Sync),
    ) -> Result<Option<Refused>, ChunkError> {
        let first = |_: u64, refused: u64| match refused {
            0 => Ok(()),
            _ => Err(Error::new(ErrorKind::Interrupted, "the first one is found")),
        };
        let (places, mut refused) = (Places::All(rows()), Vec::new());
        let showing =
            Showing { way: Way::AsInFile(&places, None), bear: &first, asks: false, inserts: false };
        let shown = self.show(&places.rows(), &[], &showing, &mut refused).await;
        if refused.is_empty() {
            shown?;
            commit::roll_back(self.session).await;
        }
        Ok(refused.pop())
    }

    /// Writes down what was refused, and commits. `rejects` are all of it.
    ///
    /// # Errors
    /// As for [`commit::commit_chunk`].
    pub async fn commit(mut self, rejects: &[Reject]) -> Result<Outcome, ChunkError> {
        let origin = &self.chunk.origin;
        if self.stored + rejects.len() as u64 != origin.records {
            commit::roll_back(self.session).await;
            return Err(commit::wrong_count(self.stored, origin.records - rejects.len() as u64).into());
        }
        if self.savepoint == Savepoint::Failed || self.unmarked {
            self.save().await?;
        }
        if let (Some(ledger), false) = (self.target.ledger, rejects.is_empty())
            && let Err(error) = ledger.reject(self.session, self.target.job_id, origin, rejects).await
        {
            commit::roll_back(self.session).await;
            return Err(error.into());
        }
        let (triggers, stored_in) = (self.target.triggers, self.target.table.stored_in());
        let checked = silent::checked(self.session.client(), triggers, stored_in).await;
        if !self.or_fail(checked).await? {
            commit::roll_back(self.session).await;
            return Err(silent::refusal(triggers, stored_in).into());
        }
        self.progress.enter(commit::Phase::Commit);
        let copied = Instant::now();
        commit::commit(self.session).await?;
        let mut omitted = origin.omitted;
        omitted.rejected = rejects.len() as u64;
        let receipt = Receipt {
            file_no: origin.file_no,
            chunk_no: origin.chunk_no,
            start_byte: origin.start_byte,
            end_byte: origin.end_byte,
            rows: self.stored,
            omitted,
            digest: origin.digest,
        };
        Ok(Outcome::Stored { receipt, copy_time: copied - self.started, commit_time: copied.elapsed() })
    }

    /// `counted` of these are before the row that was looked at last.
    async fn bear(
        &mut self,
        bear: &(dyn Fn(u64, u64) -> Result<()> + Send + Sync),
        refused: &[Refused],
        counted: usize,
    ) -> Result<(), ChunkError> {
        let borne = match refused.get(..DOUBTED_MAX) {
            Some(first) if self.stored == 0 && are_in_doubt(first) => Err(first[0].error.clone()),
            _ => bear(self.stored, counted as u64),
        };
        let Err(error) = borne else { return Ok(()) };
        commit::roll_back(self.session).await;
        Err(error.into())
    }

    /// A savepoint under which nothing has been done.
    async fn save(&mut self) -> Result<(), ChunkError> {
        let sql = self.save_sql();
        self.run(&sql).await
    }

    /// Leads to one; if it fails, the chunk does.
    fn save_sql(&mut self) -> String {
        self.progress.step();
        let mark = self.target.ledger.filter(|_| self.unmarked);
        let mark = mark.map(|ledger| ledger.mark_sql(self.target.job_id, &self.chunk.origin) + "; ");
        let sql = mark.unwrap_or_default() + self.savepoint.sql();
        self.unmarked = false;
        if self.savepoint == Savepoint::None {
            self.savepoint = Savepoint::Kept;
        }
        sql
    }

    async fn run(&mut self, sql: &str) -> Result<(), ChunkError> {
        let done = self.session.client().batch_execute(sql).await;
        self.or_fail(done).await
    }

    async fn or_fail<T>(&mut self, done: Result<T, tokio_postgres::Error>) -> Result<T, ChunkError> {
        match done {
            Ok(done) => Ok(done),
            Err(error) => Err(self.fail(&error).await),
        }
    }

    /// The chunk is not in.
    async fn fail(&mut self, error: &tokio_postgres::Error) -> ChunkError {
        commit::after_failed_copy(self.session, self.target, error).await
    }
}

/// What is said of a row that does not meet the rule.
pub fn of_rule(rule: &Rule) -> Error {
    let place = Place { column: rule.column.clone(), ..Place::default() };
    Error::new(ErrorKind::Server, rule.reason.clone()).with_sqlstate(rule.sqlstate.clone()).at(place)
}

fn of(aside: &Aside, error: Error) -> Refused {
    Refused { row: aside.row, error }
}
