//! Rows that the table's constraints refuse, of many rows in a few questions.
//!
//! COPY ends at the first row that breaks a constraint, so that finding a thousand of them takes thousands of
//! COPYs. Here the rows go into a temporary table that has none, each with its number, and the queries of
//! [`crate::check`] say which of them a constraint does not take. What no query can tell (triggers, exclusion
//! constraints), and what comes in between, COPY finds: after this, all others are still shown to it.

use super::filter::Filter;
use super::of_rule;
use super::seen::{Seen, SentKeys};
use super::written::UniqueKey;
use crate::check::facts::{Facts, PlainKey};
use crate::check::found::{self, ALL_WAYS_SQL};
use crate::check::rows::Rows;
use crate::check::rules::{Rule, rules_for};
use crate::copy::placed::Placed;
use crate::copy::server_error::TEMPORARY_SCHEMA;
use crate::error::session_error;
use crate::session::{INFOS_MAX, Session};
use crate::sql::{quote_ident, quote_relation};
use futures_util::StreamExt;
use howdah_model::arrival::PlaceColumn;
use howdah_model::{
    Arrival, BinaryPlan, BinaryType, Error, Relation, RelationKind, Result, StagingPlan, TablePlan, sqlstate,
};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio_postgres::types::Type;

/// Nested loops, until the transaction ends. A hundred thousand keys take 60 ms of a table of a million rows
/// so, and 300 by hashing, which the planner prefers, and which takes longer with each chunk (PostgreSQL 15,
/// Intel Xeon).
const LOOK_UP_SQL: &str = "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// Policies must not hide rows of other tables, which they do not hide from foreign keys: a query that they
/// would hide some from fails instead.
const UNHIDDEN_SQL: &str = "SET LOCAL row_security = off";

/// Another value when what table `$1` demands may be another: no row of the catalog is written without a new
/// `xmin`.
const STAMP_SQL: &str = "\
    SELECT pg_catalog.hashtextextended(pg_catalog.string_agg(part, ' ' ORDER BY part), 0) FROM ( \
        SELECT pg_catalog.concat('r', xmin) FROM pg_catalog.pg_class WHERE oid = $1 \
        UNION ALL SELECT pg_catalog.concat('a', attnum, ':', xmin) FROM pg_catalog.pg_attribute WHERE attrelid = $1 AND attnum > 0 \
        UNION ALL SELECT pg_catalog.concat('c', oid, ':', xmin) FROM pg_catalog.pg_constraint WHERE conrelid = $1 \
        UNION ALL SELECT pg_catalog.concat('i', indexrelid, ':', xmin) FROM pg_catalog.pg_index WHERE indrelid = $1 \
        UNION ALL SELECT pg_catalog.concat('t', oid, ':', xmin) FROM pg_catalog.pg_trigger WHERE tgrelid = $1) AS parts (part)";

/// What is needed to ask about the rows of one table.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Of the table when it was read.
    stamp: Option<i64>,
    /// About rows as the file has them.
    pub(super) of_rows: Question,
    /// About the keys of rows that were written in binary.
    pub(super) of_keys: Option<OfKeys>,
    /// What COPY itself can tell of them.
    filter: Option<Filter>,
    /// Nothing but these rules refuses rows, so that of several with one key the first is stored.
    tells_all: bool,
    /// The table as if its rows were to come through the temporary one.
    plan: TablePlan,
}

/// Rules about the rows of a temporary table.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Makes the temporary table, which lasts as long as the connection; to be run in a transaction.
    pub(super) make_sql: String,
    rules: Vec<Rule>,
    /// Each key is looked up by itself, where an index serves: hashing would read the table, which grows, for
    /// each chunk anew.
    looks_up: bool,
}

/// The question, how its rows come, and which fields of the binary rows they are.
#[derive(Debug, Clone)]
pub(super) struct OfKeys {
    pub(super) question: Question,
    pub(super) copy_sql: String,
    pub(super) fields: Vec<usize>,
    /// The table's unique keys, if equal values of all of them have the same bytes.
    pub(super) known_keys: Option<Arc<KnownKeys>>,
}

/// Keys whose repetitions among the rows are not the question's matter.
#[derive(Debug)]
pub(super) struct KnownKeys {
    pub(super) keys: Vec<KnownKey>,
    tells: AtomicBool,
    is_learnt: AtomicBool,
}

#[derive(Debug)]
pub(super) struct KnownKey {
    pub(super) key: UniqueKey,
    /// What is said about a row that repeats another.
    pub(super) error: Error,
    /// The keys of the rows before.
    pub(super) seen: Seen,
}

/// What is known of the table's constraints.
#[derive(Debug, Clone, Copy, Default)]
pub struct Constraints<'a> {
    /// The way to ask about many rows at once, if there is one.
    pub probe: Option<&'a Probe>,
    /// Rows of other chunks have broken many, so it is asked before any row is shown to COPY.
    pub are_broken: bool,
    /// COPY can leave them out.
    pub are_left_out: bool,
    /// Few of them could be told without asking.
    pub are_asked: bool,
    /// Many rows of other chunks were refused that the server had to try itself.
    pub are_inserted: bool,
    /// About so many plain bytes of the load are still to be stored.
    pub to_come_bytes: u64,
}

impl<'a> Constraints<'a> {
    pub(super) fn filtered(&self) -> Option<(&'a Probe, &'a Filter)> {
        let probe = self.probe.filter(|_| self.are_broken && self.are_left_out)?;
        Some((probe, probe.filter()?))
    }
}

/// A row that a constraint does not take.
pub(super) struct Broken {
    /// Its number in the chunk.
    pub(super) row: u64,
    pub(super) error: Error,
}

impl Probe {
    /// Reads what the table demands; `sent` is the load's. `None` where queries would not tell: a trigger may
    /// change rows before they are stored, policies hide some of them, or this role may not make temporary
    /// tables or read the table.
    ///
    /// # Errors
    /// Those of the session, which is outside a transaction before and after.
    pub async fn read(session: &Session, plan: &TablePlan, sent: &Arc<SentKeys>) -> Result<Option<Probe>> {
        if !matches!(plan.table.kind, RelationKind::Table | RelationKind::Partitioned)
            || plan.staging.is_some()
        {
            return Ok(None);
        }
        // Before the rest: what changes in between is noticed, too.
        let stamp = stamp(session, plan).await.map_err(|error| session_error(&error, crate::check::DOING))?;
        let facts = Facts::read(session, plan).await?;
        if facts.may_change_rows() {
            return Ok(None);
        }
        let facts = facts.without_exclusions().without_computed_indexes().without_not_null_in_leaves();
        let Some(probe) = Probe::new(facts, plan, sent) else { return Ok(None) };
        Probe { stamp, ..probe }.with_what_is_feasible(session).await
    }

    fn new(facts: Facts, plan: &TablePlan, sent: &Arc<SentKeys>) -> Option<Probe> {
        let is_taken = |name: &String| plan.table.columns.iter().any(|column| column.name == *name);
        let place = (0..).map(|no| format!("place{no}")).find(|name| !is_taken(name))?;
        let columns: Vec<&str> = plan.fields.iter().flatten().map(String::as_str).collect();
        let staging = temporary(&format!("howdah_probe_{}", plan.table.oid), &place);
        let (own, temporary) = (quote_relation(plan.copied_into()), quote_relation(&staging.relation));
        let filled = plan.copy_sql.strip_prefix(&format!("COPY {own} "))?;
        let copy_sql = format!("COPY {temporary} {filled}");
        let tells_all = facts.has_rules_alone();
        let of_keys = OfKeys::new(&facts, plan, &place, sent);
        let of_rows = Question::new(facts, plan, &staging, &columns)?;
        let filter = Filter::new(&of_rows.rules);
        let plan = TablePlan { staging: Some(staging), copy_sql, ..plan.clone() };
        Some(Probe { stamp: None, of_rows, of_keys, filter, tells_all, plan })
    }

    /// Leaves rules out that this role may not ask, or that policies would answer wrongly.
    async fn with_what_is_feasible(mut self, session: &Session) -> Result<Option<Probe>> {
        let rules = self.of_rows.rules.len();
        let feasible = self.of_rows.feasible(session, &self.plan).await?;
        let Some(of_rows) = feasible.filter(|question| !question.rules.is_empty()) else { return Ok(None) };
        // What is left out refuses rows as well.
        self.tells_all &= of_rows.rules.len() == rules;
        self.of_rows = of_rows;
        if let Some(of_keys) = self.of_keys.take() {
            let question = of_keys.question.feasible(session, &self.plan).await?;
            self.of_keys = question.map(|question| OfKeys { question, ..of_keys });
        }
        if let Some(filter) = &self.filter {
            let tried = async {
                run(session, "BEGIN READ WRITE").await.is_ok()
                    && filter.is_feasible(session, &self.plan.table.relation).await
            };
            let is_feasible = tried.await;
            session.roll_back().await;
            self.filter.take_if(|_| !is_feasible);
        }
        Ok(Some(self))
    }

    /// COPY itself could have told and left out the rows that were refused for these reasons.
    pub fn leaves_out(&self, reasons: &[&Error]) -> bool {
        let is_of_one_row = |error: &&Error| {
            matches!(error.sqlstate(), Some(sqlstate::NOT_NULL_VIOLATION | sqlstate::CHECK_VIOLATION))
        };
        self.filter.is_some() && reasons.len() < INFOS_MAX && reasons.iter().all(is_of_one_row)
    }

    /// Rows in binary can be asked about as they are.
    pub fn asks_of_keys(&self) -> bool {
        self.of_keys.is_some()
    }

    /// Nothing but rules that can be asked about refuses rows.
    pub(super) fn tells_all(&self) -> bool {
        self.tells_all
    }

    pub(super) fn table_oid(&self) -> u32 {
        self.plan.table.oid
    }

    pub(super) fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// The table demands what it did, until the transaction ends.
    pub(super) async fn is_current(&self, session: &Session) -> Result<bool, tokio_postgres::Error> {
        session.client().batch_execute(&lock_sql(&self.plan)).await?;
        Ok(stamp(session, &self.plan).await? == self.stamp)
    }

    /// How rows come into it.
    pub(super) fn placed(&self) -> Option<Placed> {
        Placed::new(&self.plan, Some(0))
    }

    /// Asks about the rows that are in the question's temporary table. Of a row that repeats one which is
    /// refused itself nothing is said.
    ///
    /// # Errors
    /// Those of the session; the transaction is aborted then.
    pub(super) async fn ask(&self, session: &Session, question: &Question) -> Result<Vec<Broken>> {
        let fail = |error| session_error(&error, crate::check::DOING);
        let look_up = if question.looks_up { LOOK_UP_SQL } else { "" };
        let begin = format!("SAVEPOINT howdah_asking; {UNHIDDEN_SQL}; {ALL_WAYS_SQL}; {look_up}");
        run(session, &begin).await.map_err(fail)?;
        let mut stream = found::stream(session, &question.rules).await?;
        let (mut found, mut repeats) = (Vec::new(), Vec::new());
        let mut refused = HashSet::new();
        while let Some(one) = stream.next().await {
            let one = one?;
            match one.first {
                Some(first) => repeats.push((one, first)),
                None if refused.insert(one.place) => found.push(question.broken(&one)),
                None => {}
            }
        }
        // What is set for asking is not set for storing.
        let end = "ROLLBACK TO SAVEPOINT howdah_asking; RELEASE SAVEPOINT howdah_asking";
        run(session, end).await.map_err(fail)?;
        // In the order of the file: which of them are refused is known when their repetitions are looked at.
        for (one, first) in repeats.into_iter().filter(|_| self.tells_all) {
            if !refused.contains(&first) && refused.insert(one.place) {
                found.push(question.broken(&one));
            }
        }
        Ok(found)
    }
}

fn lock_sql(plan: &TablePlan) -> String {
    format!("LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE", quote_relation(&plan.table.relation))
}

impl Question {
    /// About rows of which `staging` keeps these columns.
    fn new(facts: Facts, plan: &TablePlan, staging: &StagingPlan, columns: &[&str]) -> Option<Question> {
        let place = quote_ident(&staging.place.as_ref()?.name);
        let columns: String = columns.iter().map(|name| format!(", {}", quote_ident(name))).collect();
        let make_sql = format!(
            "CREATE TEMPORARY TABLE IF NOT EXISTS {} ON COMMIT DELETE ROWS AS \
             SELECT NULL::pg_catalog.int8 AS {place}{columns} FROM {} WITH NO DATA",
            quote_relation(&staging.relation),
            quote_relation(plan.copied_into()),
        );
        let looks_up = !facts.joins_rows();
        let arrival = Arrival::default();
        let rows = Rows::new(facts, plan, staging, &arrival)?;
        // Partitions may be made while the load goes on: whether one takes a row is for COPY to say.
        let rules = rules_for(&[rows], &arrival, true, false).rules;
        Some(Question { make_sql, rules, looks_up })
    }

    /// The rules that this role may ask; `None` where it may not make the temporary table, or lock the table
    /// for its rows, which rights on columns do not allow.
    async fn feasible(self, session: &Session, plan: &TablePlan) -> Result<Option<Question>> {
        let made = async {
            run(session, &format!("BEGIN; {}", lock_sql(plan))).await?;
            run(session, &self.make_sql).await?;
            run(session, &format!("{UNHIDDEN_SQL}; {ALL_WAYS_SQL}")).await
        };
        let feasible = match made.await {
            Ok(()) => self.asked(session).await.map(Some),
            Err(error) if error.as_db_error().is_some() => Ok(None),
            Err(error) => Err(session_error(&error, crate::check::DOING)),
        };
        session.roll_back().await;
        feasible
    }

    async fn asked(self, session: &Session) -> Result<Question> {
        let (rules, _) = found::feasible(session, self.rules).await?;
        let looks_up = self.looks_up && found::finds_by_index(session, LOOK_UP_SQL, &rules).await?;
        Ok(Question { rules, looks_up, ..self })
    }

    fn broken(&self, found: &found::Found) -> Broken {
        Broken { row: found.place.cast_unsigned(), error: of_rule(&self.rules[found.rule_no]) }
    }
}

impl OfKeys {
    /// `None` where no rows are written in binary, or nothing is demanded but of one row alone.
    fn new(facts: &Facts, plan: &TablePlan, place: &str, sent: &Arc<SentKeys>) -> Option<OfKeys> {
        let binary = plan.binary.as_ref()?;
        let filled: BTreeSet<&str> = plan.fields.iter().flatten().map(String::as_str).collect();
        let plain = facts.of_keys(&filled);
        let plain_keys = facts.plain_keys();
        let facts = plain.as_ref().unwrap_or(facts);
        let fields: Vec<usize> =
            (0..binary.columns.len()).filter(|no| facts.has_column(&binary.columns[*no])).collect();
        let columns: Vec<&str> = fields.iter().map(|no| binary.columns[*no].as_str()).collect();
        // The session may have another one, of what the table demanded before it was altered.
        let mut hasher = DefaultHasher::new();
        columns.hash(&mut hasher);
        let staging = temporary(&format!("howdah_keys_{:x}_{}", hasher.finish(), plan.table.oid), place);
        let names: Vec<String> =
            std::iter::once(place).chain(columns.iter().copied()).map(quote_ident).collect();
        let copy_sql = format!(
            "COPY {} ({}) FROM STDIN WITH (FORMAT binary)",
            quote_relation(&staging.relation),
            names.join(", ")
        );
        let has_keys = facts.has_keys();
        let narrow = TablePlan {
            fields: columns.iter().map(|name| Some((*name).to_owned())).collect(),
            ..plan.clone()
        };
        let mut question = Question::new(facts.clone(), &narrow, &staging, &columns).filter(|_| has_keys)?;
        let known_keys =
            plain_keys.and_then(|keys| KnownKeys::new(&keys, plan, &mut question, sent)).map(Arc::new);
        Some(OfKeys { question, copy_sql, fields, known_keys })
    }
}

impl KnownKeys {
    /// Takes the repetitions out of the question. `None` if not those of all keys can be known.
    fn new(
        keys: &[PlainKey<'_>],
        plan: &TablePlan,
        question: &mut Question,
        sent: &Arc<SentKeys>,
    ) -> Option<KnownKeys> {
        let binary = plan.binary.as_ref()?;
        let (mut rules, mut known_keys) = (question.rules.clone(), Vec::new());
        for (no, PlainKey { name, columns, nulls_alike, is_loose }) in keys.iter().enumerate() {
            let of = |column: &String| binary.columns.iter().position(|name| name == column);
            let fields = columns.iter().map(of).collect::<Option<Vec<usize>>>()?;
            let is_alike = |column: &String| is_written_alike(plan, binary, column, *is_loose);
            // The first rule of a key is about repetitions.
            let is_its = |rule: &Rule| rule.constraint.as_deref() == Some(*name);
            let rule_no = rules.iter().position(is_its).filter(|_| columns.iter().all(is_alike))?;
            let error = of_rule(&rules.remove(rule_no));
            let key = UniqueKey { fields, nulls_alike: *nulls_alike };
            known_keys.push(KnownKey { key, error, seen: Seen::new(sent, plan.table.oid, no) });
        }
        question.rules = rules;
        let known_keys =
            KnownKeys { keys: known_keys, tells: AtomicBool::new(false), is_learnt: AtomicBool::new(false) };
        (!known_keys.keys.is_empty()).then_some(known_keys)
    }

    /// Whoever is told so first is to learn the keys that the table holds.
    pub(super) fn is_to_learn(&self) -> bool {
        !self.is_learnt.swap(true, Relaxed)
    }
}

impl OfKeys {
    /// Rows whose keys were not seen before need not be asked about.
    pub(super) fn are_told(&self) -> bool {
        self.known_keys.as_ref().is_some_and(|known_keys| known_keys.tells.load(Relaxed))
    }

    /// What was seen before tells, or does not tell, which rows are not taken.
    pub(super) fn set_told(&self, told: bool) {
        if let Some(known_keys) = &self.known_keys {
            known_keys.tells.store(told, Relaxed);
        }
    }
}

/// Equal values of the column have the same bytes, so that repetitions are known without asking.
fn is_written_alike(plan: &TablePlan, binary: &BinaryPlan, column: &str, is_loose: bool) -> bool {
    use BinaryType::{Bool, Bytea, Date, Int2, Int4, Int8, Oid, Text, Time, Timestamp, TimestampTz, Uuid};
    let of_type = binary.columns.iter().zip(&binary.types).find(|(name, _)| *name == column);
    let type_name = plan.table.columns.iter().find(|of| of.name == column).map(|of| of.type_name.as_str());
    // A precision rounds what is stored. A length cuts off blanks at most, of what is too long.
    let is_rounded = type_name.is_none_or(|name| name.contains('('));
    let is_text = type_name.is_some_and(|name| name == "text" || name.starts_with("character varying"));
    let is_canonical = |of: &BinaryType| match of {
        Bool | Bytea | Date | Int2 | Int4 | Int8 | Oid | Time | Timestamp | TimestampTz | Uuid => !is_rounded,
        Text => is_text && !is_loose,
        _ => false,
    };
    of_type.is_some_and(|(_, of)| is_canonical(of))
}

/// A temporary table of this name, of rows with their places.
pub(super) fn temporary(name: &str, place: &str) -> StagingPlan {
    let relation = Relation { schema: TEMPORARY_SCHEMA.to_owned(), name: name.to_owned() };
    let sequence = Relation { schema: TEMPORARY_SCHEMA.to_owned(), name: String::new() };
    StagingPlan { relation, place: Some(PlaceColumn { name: place.to_owned(), sequence }) }
}

async fn run(session: &Session, sql: &str) -> Result<(), tokio_postgres::Error> {
    session.client().batch_execute(sql).await
}

async fn stamp(session: &Session, plan: &TablePlan) -> Result<Option<i64>, tokio_postgres::Error> {
    let rows = session.client().query_typed(STAMP_SQL, &[(&plan.table.oid, Type::OID)]).await?;
    Ok(rows.first().and_then(|row| row.get(0)))
}
