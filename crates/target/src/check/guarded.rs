//! Expressions that fail for some row: a division by zero, a function that raises. Such a row is bad too, and
//! must not keep the others from being checked.
//!
//! Each row is looked at in a subtransaction of its own, by a function in the session's temporary schema;
//! that is slow, and only done where asking for all rows at once has failed.

use super::DOING;
use super::rules::Rule;
use crate::error::session_error;
use crate::session::Session;
use howdah_model::{Result, sqlstate};

/// Classes of SQLSTATEs that a row may be to blame for. Not that of what is not found (42): a function may
/// find it when a row is stored, by another `search_path`.
const ABOUT_A_ROW: &str = "'0A', '21', '22', '23', '2F', '38', '39', '44', '54', 'P0', 'XX'";

/// Another session says the same of it when the row is stored.
pub(super) fn is_about_a_row(code: &str) -> bool {
    let is_of_table = [sqlstate::DATA_CORRUPTED, sqlstate::INDEX_CORRUPTED].contains(&code);
    !is_of_table && code.get(..2).is_some_and(|class| ABOUT_A_ROW.contains(&format!("'{class}'")))
}

/// A condition that each row must meet, and the rows.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    /// What follows FROM: the place, and the columns that are not generated.
    pub(super) from: String,
    /// The name by which an expression may call a whole row, quoted.
    pub(super) alias: String,
    /// The place's column, quoted.
    pub(super) place: String,
    /// Columns that are not generated, quoted.
    pub(super) fields: Vec<String>,
    /// Generated ones, as items of SELECT.
    pub(super) computed: Vec<String>,
    /// Not met where it is false.
    pub(super) expression: String,
    /// PostgreSQL's code for a row that does not meet it.
    pub(super) code: &'static str,
    /// What is said of a row for which it fails.
    pub(super) failing: String,
}

impl Condition {
    /// The function of this number.
    fn function_sql(&self, no: usize) -> String {
        let own: Vec<String> = self.fields.iter().map(|name| format!("r.{name} AS {name}")).collect();
        let whole: Vec<String> =
            std::iter::once(format!("{}.*", self.alias)).chain(self.computed.clone()).collect();
        let row = format!("SELECT {} FROM (SELECT {}) AS {}", whole.join(", "), own.join(", "), self.alias);
        let body = format!(
            "#variable_conflict use_column\n\
             DECLARE r pg_catalog.record; met pg_catalog.bool; \
             BEGIN \
                 FOR r IN SELECT * FROM {} LOOP \
                     place := r.{}; code := NULL; \
                     BEGIN \
                         SELECT ({}) INTO met FROM ({row}) AS {}; \
                         IF NOT met THEN code := '{}'; END IF; \
                     EXCEPTION WHEN OTHERS OR assert_failure THEN \
                         IF pg_catalog.left(SQLSTATE, 2) NOT IN ({ABOUT_A_ROW}) OR SQLSTATE IN ('XX001', 'XX002') THEN RAISE; END IF; \
                         code := SQLSTATE; \
                     END; \
                     IF code IS NOT NULL THEN RETURN NEXT; END IF; \
                 END LOOP; \
             END",
            self.from, self.place, self.expression, self.alias, self.code
        );
        format!(
            "CREATE OR REPLACE FUNCTION pg_temp.howdah_check_{no}(OUT place pg_catalog.int8, OUT code pg_catalog.text) \
             RETURNS SETOF pg_catalog.record LANGUAGE plpgsql AS {}",
            crate::sql::quote_literal(&body)
        )
    }
}

/// One rule for each SQLSTATE that the condition of this rule ends with; `None` where that cannot be told
/// either: the role may not make temporary functions, or what fails is not about a row.
///
/// # Errors
/// Those of the session.
pub(super) async fn split(session: &Session, rule: &Rule, no: usize) -> Result<Option<Vec<Rule>>> {
    let Some(condition) = &rule.condition else { return Ok(None) };
    let asked = async {
        session.client().batch_execute(&condition.function_sql(no)).await?;
        // What it calls must not write.
        session.client().batch_execute("BEGIN READ ONLY; SET LOCAL row_security = off").await?;
        let sql = format!("SELECT DISTINCT code FROM pg_temp.howdah_check_{no}() ORDER BY 1");
        session.client().query_typed(&sql, &[]).await
    };
    let asked = asked.await;
    session.roll_back().await;
    let rows = match asked {
        Ok(rows) => rows,
        Err(error) if error.as_db_error().is_some() => return Ok(None),
        Err(error) => return Err(session_error(&error, DOING)),
    };
    let of_code = |row: &tokio_postgres::Row| {
        let code: String = row.get(0);
        let violates = code == condition.code;
        let reason = match violates {
            true => rule.reason.clone(),
            false => condition.failing.clone(),
        };
        let literal = crate::sql::quote_literal(&code);
        let sql = format!(
            "SELECT place, NULL::pg_catalog.int8 FROM pg_temp.howdah_check_{no}() WHERE code = {literal}"
        );
        Rule { sqlstate: code, reason, sql, condition: None, ..rule.clone() }
    };
    Ok(Some(rows.iter().map(of_code).collect()))
}
