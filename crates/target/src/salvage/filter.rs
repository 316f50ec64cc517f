//! Rows that do not meet a condition of the table, left out by COPY itself and told by number.
//!
//! NOT NULL, CHECK and the bounds of a partition look at one row alone: they can stand behind COPY's WHERE,
//! and a chunk in which every hundredth row breaks one is sent once, in the form that was made for it. A row
//! that does not meet them is passed to a function of the session's temporary schema, which tells which of
//! them it was; which row it was, the server adds, as it does for errors. The function writes nothing and is
//! STABLE, so that COPY goes on to insert many rows at a time.

use super::{Refused, Salvage, of_rule};
use crate::check::rules::Rule;
use crate::commit::{self, ChunkError};
use crate::copy::server_error::line_of;
use crate::copy::unchanged;
use crate::session::{Info, Session};
use crate::sql::{quote_literal, quote_relation};
use bytes::Bytes;
use howdah_model::{Form, Relation, Result};

const FUNCTION: &str = "pg_temp.howdah_leave_out";

/// The conditions.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    rules: Vec<Rule>,
    condition: String,
}

impl Filter {
    /// `None` where no demand of the table is about one row alone, or a column is computed only behind WHERE.
    pub(super) fn new(rules: &[Rule]) -> Option<Filter> {
        if rules.iter().any(Rule::needs_computed) {
            return None;
        }
        let (rules, conditions): (Vec<Rule>, Vec<&str>) =
            rules.iter().filter_map(|rule| Some((rule.clone(), rule.condition()?))).unzip();
        let case =
            |(no, condition): (usize, &&str)| format!("WHEN ({condition}) IS FALSE THEN {FUNCTION}({no})");
        let cases: Vec<String> = conditions.iter().enumerate().map(case).collect();
        // NOT before an operator would become its negation, for which PostgreSQL 13's COPY looks up no
        // function.
        let condition = format!("CASE {} ELSE true END", cases.join(" "));
        (!rules.is_empty()).then_some(Filter { rules, condition })
    }

    /// This role may make the function, and the conditions mean something to the server outside their
    /// constraints. Asked in a transaction, which is aborted if not.
    pub(super) async fn is_feasible(&self, session: &Session, table: &Relation) -> bool {
        let sql =
            format!("{}; SELECT FROM {} WHERE {} LIMIT 0", make_sql(), quote_relation(table), self.condition);
        session.client().batch_execute(&sql).await.is_ok()
    }
}

/// Makes the function, unless the session has it.
fn make_sql() -> String {
    let body = quote_literal("BEGIN RAISE INFO '%', rule; RETURN false; END");
    let function = format!(
        "CREATE FUNCTION {FUNCTION}(rule pg_catalog.int4) RETURNS pg_catalog.bool LANGUAGE plpgsql STABLE AS {body}"
    );
    let block = format!(
        "BEGIN IF pg_catalog.to_regprocedure('{FUNCTION}(pg_catalog.int4)') IS NULL THEN {function}; END IF; END"
    );
    format!("DO {}", quote_literal(&block))
}

impl Salvage<'_> {
    /// Sends the rows in the form that was made for them, without those that do not meet the conditions.
    /// `false`: something else was refused, or it is not certain which rows were left out; nothing of it is
    /// stored then.
    pub(super) async fn copy_filtered(
        &mut self,
        filter: &Filter,
        refused: &mut Vec<Refused>,
    ) -> Result<bool, ChunkError> {
        let Some(faster) = self.chunk.faster.as_ref().filter(|faster| faster.form != Form::AsIs) else {
            return Ok(false);
        };
        let pieces: Vec<Bytes> =
            faster.parcels.iter().flat_map(|parcel| parcel.pieces.iter().cloned()).collect();
        self.save().await?;
        self.run(&make_sql()).await?;
        let relation = self.target.table.copied_into();
        let for_binary = commit::binary(self.target, self.chunk);
        let unchanged = unchanged::lock_and_compare(self.session, relation, for_binary, &[]).await;
        if !self.or_fail(unchanged).await? {
            return Ok(false);
        }
        let sql = format!("{} WHERE {}", commit::copy_sql(self.target, self.chunk, None)?, filter.condition);
        // Anew for each chunk: PostgreSQL 13 spoils the words behind WHERE when it runs them.
        let prepared = self.session.client().prepare(&sql).await;
        let statement = self.or_fail(prepared).await?;
        self.session.infos().listen();
        let taken = self.send_copy("", &statement, &pieces).await;
        let told = self.session.infos().take();
        let Ok(taken) = taken? else { return Ok(false) };
        let sent = self.chunk.origin.records.saturating_sub(self.chunk.aside.len() as u64);
        let left_out = told.and_then(|told| {
            let line =
                |info: &Info| Some((line_of(&info.context, relation)?, info.message.parse::<usize>().ok()?));
            told.iter().map(line).collect::<Option<Vec<_>>>()
        });
        match left_out.filter(|left_out| taken + left_out.len() as u64 == sent) {
            Some(left_out) => {
                self.keep(taken);
                self.add(filter, &left_out, refused);
                Ok(true)
            }
            None => {
                self.spoil();
                Ok(false)
            }
        }
    }

    /// The rows by the lines of what was sent, where each row is a line of its own.
    fn add(&self, filter: &Filter, left_out: &[(u64, usize)], refused: &mut Vec<Refused>) {
        // Rows are told in the order in which they were sent.
        let mut left_out = left_out.iter().peekable();
        for (line, row) in (1..).zip(self.certain()) {
            let told = left_out.next_if(|(told, _)| *told == line);
            if let Some(rule) = told.and_then(|(_, rule_no)| filter.rules.get(*rule_no)) {
                refused.push(Refused { row, error: of_rule(rule) });
            }
        }
    }
}
