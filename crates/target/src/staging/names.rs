//! Names of the tables that a job makes. They follow from the job's name and the number of the table, so that
//! a further run finds them; so does everybody else who knows these ([`super::own`]).

use howdah_model::{Relation, StagingPlan};
use sha2::{Digest, Sha256};

/// Names of staging tables begin so: a digest of the job's name and the number of the table follow.
pub(crate) const PREFIX: &str = "staging";

/// Names of those in which rows are looked at only begin so.
const CHECK_PREFIX: &str = "check";

/// Names of tables that take the place of others begin so; names of their indexes go on behind them, within
/// 63 bytes.
const NEW_PREFIX: &str = "howdah_new";

/// The name of a job's staging table for its table of this number.
pub fn name(schema: &str, job_id: &str, table_no: usize) -> Relation {
    Relation { schema: schema.to_owned(), name: format!("{PREFIX}_{}_{table_no}", digest(job_id)) }
}

/// The same of a table whose rows are looked at and come nowhere.
pub fn name_of_check(schema: &str, job_id: &str, table_no: usize) -> Relation {
    Relation { schema: schema.to_owned(), name: format!("{CHECK_PREFIX}_{}_{table_no}", digest(job_id)) }
}

/// The name of the new table that takes the place of this one, the job's table of this number.
pub fn beside(old: &Relation, job_id: &str, table_no: usize) -> Relation {
    Relation { schema: old.schema.clone(), name: format!("{NEW_PREFIX}_{}_{table_no}", digest(job_id)) }
}

/// The same where rows wait in a staging table: the table itself, if that is the new one.
pub fn new_table(old: &Relation, staging: &StagingPlan) -> Relation {
    match staging.relation.name.strip_prefix(PREFIX) {
        Some(rest) => Relation { schema: old.schema.clone(), name: format!("{NEW_PREFIX}{rest}") },
        None => staging.relation.clone(),
    }
}

/// The sequence that counts the records of a staging table.
pub fn sequence(staging: &Relation) -> Relation {
    Relation { schema: staging.schema.clone(), name: format!("{}_place", staging.name) }
}

/// Its rows are looked at and come nowhere.
pub(super) fn is_of_check(staging: &Relation) -> bool {
    staging.name.starts_with(CHECK_PREFIX)
}

/// It is going to take the place of the table itself.
pub fn is_new_table(staging: &StagingPlan) -> bool {
    is_name_of_new_table(&staging.relation.name)
}

/// The same of a name.
pub fn is_name_of_new_table(name: &str) -> bool {
    name.starts_with(NEW_PREFIX)
}

/// The job may give this name to a table that it makes, and drops: one of a new table in any schema, all
/// others in that of its ledger.
pub(crate) fn is_of_job(relation: &Relation, ledger_schema: &str, job_id: &str) -> bool {
    let digest = digest(job_id);
    let is_of = |prefix: &str| {
        let no = relation.name.strip_prefix(&format!("{prefix}_{digest}_"));
        no.is_some_and(|no| !no.is_empty() && no.bytes().all(|byte| byte.is_ascii_digit()))
    };
    is_of(NEW_PREFIX) || (relation.schema == ledger_schema && (is_of(PREFIX) || is_of(CHECK_PREFIX)))
}

/// The same of a check.
pub(crate) fn is_of_this_check(relation: &Relation, ledger_schema: &str, job_id: &str) -> bool {
    is_of_check(relation) && is_of_job(relation, ledger_schema, job_id)
}

fn digest(job_id: &str) -> String {
    Sha256::digest(job_id.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_job_are_told_from_all_others() {
        let orders = Relation { schema: "public".to_owned(), name: "orders".to_owned() };
        let own = [name("howdah", "j", 0), name_of_check("howdah", "j", 12), beside(&orders, "j", 3)];
        for relation in &own {
            assert!(is_of_job(relation, "howdah", "j"), "{relation}");
            assert!(!is_of_job(relation, "howdah", "k"), "{relation}");
            let longer = Relation { name: format!("{}_place", relation.name), ..relation.clone() };
            assert!(!is_of_job(&longer, "howdah", "j"), "{longer}");
        }
        assert!(!is_of_job(&own[0], "other", "j") && !is_of_job(&own[1], "other", "j"));
        assert!(!is_of_job(&orders, "howdah", "j"));
        assert_eq!(own.map(|own| is_of_this_check(&own, "howdah", "j")), [false, true, false]);
    }
}
