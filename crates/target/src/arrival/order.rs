//! In which order the rows of several tables come in: those that foreign keys lead to before those that they
//! lead from.

use crate::session::Session;
use crate::sql::quote_relation;
use howdah_model::{Arrival, Relation, Result};
use tokio_postgres::types::{ToSql, Type};

/// Of the tables `$1`, from 1, each pair of which a foreign key, on them or on a partition, leads from the
/// first to the second. Where all come in at once, as `$2` says, those are left out that are checked at the
/// end: they ask for no order, unless rows are deleted, as `$3` says, by which ON DELETE CASCADE, RESTRICT
/// and the like do something at once.
const LEADS_SQL: &str = "\
    WITH RECURSIVE tree (no, oid) AS ( \
        SELECT named.no, pg_catalog.to_regclass(named.name)::pg_catalog.oid \
        FROM pg_catalog.unnest($1) WITH ORDINALITY AS named (name, no) \
        UNION SELECT tree.no, h.inhrelid FROM tree JOIN pg_catalog.pg_inherits h ON h.inhparent = tree.oid) \
    SELECT DISTINCT c.no, p.no FROM pg_catalog.pg_constraint f \
    JOIN tree c ON c.oid = f.conrelid JOIN tree p ON p.oid = f.confrelid \
    WHERE f.contype = 'f' AND c.no <> p.no AND NOT ($2 AND f.condeferred AND (f.confdeltype = 'a' OR NOT $3)) ORDER BY c.no, p.no";

/// The numbers of these tables, which come in this way, each behind those that it leads to. Tables that lead
/// to each other in a circle have no such order.
///
/// # Errors
/// Those of the session.
pub async fn parents_first(session: &Session, tables: &[&Relation], arrival: &Arrival) -> Result<Vec<usize>> {
    let mut parents = vec![Vec::new(); tables.len()];
    if tables.len() > 1 {
        let names: Vec<String> = tables.iter().map(|relation| quote_relation(relation)).collect();
        let asked: [(&(dyn ToSql + Sync), Type); 3] = [
            (&names, Type::TEXT_ARRAY),
            (&arrival.atomic, Type::BOOL),
            (&arrival.delete_missing, Type::BOOL),
        ];
        let number = |no: i64| usize::try_from(no - 1).unwrap_or_default();
        for row in session.rows(LEADS_SQL, &asked, "reading the foreign keys").await? {
            parents[number(row.get(0))].push(number(row.get(1)));
        }
    }
    Ok(behind(&parents))
}

/// Each number behind its parents, otherwise in their own order.
fn behind(parents: &[Vec<usize>]) -> Vec<usize> {
    fn visit(no: usize, parents: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
        if std::mem::replace(&mut seen[no], true) {
            return;
        }
        parents[no].iter().for_each(|parent| visit(*parent, parents, seen, order));
        order.push(no);
    }
    let (mut seen, mut order) = (vec![false; parents.len()], Vec::new());
    (0..parents.len()).for_each(|no| visit(no, parents, &mut seen, &mut order));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_and_a_circle_leaves_nobody_out() {
        assert_eq!(behind(&[vec![1], vec![2], vec![]]), [2, 1, 0]);
        assert_eq!(behind(&[vec![], vec![], vec![0]]), [0, 1, 2]);
        // 0 and 1 lead to each other, and both to 3.
        assert_eq!(behind(&[vec![1, 3], vec![0, 3], vec![], vec![]]), [3, 1, 0, 2]);
    }
}
