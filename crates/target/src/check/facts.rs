//! What a table demands of rows, out of the catalog. Expressions are the server's own text, with all names in
//! full.

use super::DOING;
use super::catalog_sql::{
    CHECKS_SQL, COLUMNS_SQL, COMPUTED_INDEXES_SQL, EXCLUSIONS_SQL, FOREIGN_SQL, LEAVES_SQL, OTHERS_SQL,
    TABLE_SQL, UNIQUES_SQL,
};
use crate::error::session_error;
use crate::session::Session;
use crate::sql::quote_ident;
use crate::steady::{Reading, told};
use howdah_model::{Relation, Result, TablePlan};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// A column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) not_null: bool,
    pub(super) default: Option<String>,
    pub(super) generated: Option<String>,
    /// Its default takes a number from a sequence, which a check must not.
    pub(super) is_numbered: bool,
    /// What it is generated from.
    pub(super) made_from: Vec<String>,
    /// It is generated when it is read, so that a row is stored for which that fails.
    pub(super) is_virtual: bool,
    /// It is `varchar` or `char` of so many.
    pub(super) characters_max: Option<i32>,
}

/// A CHECK constraint.
#[derive(Debug, Clone)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) expression: String,
    pub(super) columns: Vec<String>,
}

/// One part of a unique key.
#[derive(Debug, Clone)]
pub(super) struct KeyPart {
    pub(super) expression: String,
    /// Ready for SQL.
    pub(super) equals: Option<String>,
    /// The order of a B-tree index, ready for SQL.
    pub(super) less: Option<String>,
    pub(super) collation: Option<String>,
}

/// A unique index, whether of a constraint or not.
#[derive(Debug, Clone)]
pub(super) struct Unique {
    pub(super) name: String,
    pub(super) method: String,
    pub(super) predicate: Option<String>,
    /// Two NULLs are the same.
    pub(super) nulls_alike: bool,
    pub(super) parts: Vec<KeyPart>,
    pub(super) columns: Vec<String>,
    /// Values may be the same though their bytes are others.
    pub(super) is_loose: bool,
    /// It is one WITHOUT OVERLAPS, whose last part takes no empty range.
    pub(super) is_temporal: bool,
    /// Some column has another collation than in the table.
    pub(super) is_collated_otherwise: bool,
}

/// A unique key of columns as they are.
pub(crate) struct PlainKey<'a> {
    pub(crate) name: &'a str,
    pub(crate) columns: Vec<String>,
    /// Two NULLs are the same.
    pub(crate) nulls_alike: bool,
    /// See [`Unique::is_loose`]; types are not looked at.
    pub(crate) is_loose: bool,
}

/// A foreign key.
#[derive(Debug, Clone)]
pub(super) struct Foreign {
    pub(super) name: String,
    pub(super) oid: u32,
    pub(super) other: Relation,
    pub(super) is_partitioned: bool,
    pub(super) is_full: bool,
    pub(super) columns: Vec<String>,
    pub(super) columns_there: Vec<String>,
    pub(super) equals: Vec<String>,
    pub(super) collations: Vec<Option<String>>,
    pub(super) has_period: bool,
    /// Its trigger fires for rows that come: it may be disabled, and none does for a role whose
    /// `session_replication_role` is replica.
    pub(super) fires: bool,
}

/// Something that only storing a row would tell.
#[derive(Debug, Clone)]
pub(super) struct Other {
    pub(super) what: String,
    pub(super) name: String,
    /// The partition that has it, and not the table.
    pub(super) partition: Option<String>,
}

/// A partition that rows may go to.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// What it takes; `None` takes anything.
    pub(super) takes: Option<String>,
    /// Columns that are NOT NULL there alone.
    pub(super) not_null: Vec<String>,
}

/// What a table demands.
#[derive(Debug, Clone)]
pub struct Facts {
    pub(super) relation: Relation,
    /// 0 for a table that is going to be made.
    pub(super) oid: u32,
    pub(super) is_partitioned: bool,
    /// The only column whose ranges its partitions are.
    pub(super) ranged_by: Option<String>,
    /// What it takes, being a partition itself.
    pub(super) bounds: Option<String>,
    /// Its partitions that rows may go to.
    pub(super) leaves: Vec<Leaf>,
    pub(super) has_policies: bool,
    /// A trigger may fill columns, or change or drop rows, before they are stored.
    pub(super) is_changed: bool,
    /// The same of rows that are changed, and of what rules make of statements.
    pub(super) is_rewritten: bool,
    pub(super) columns: Vec<Column>,
    pub(super) checks: Vec<Check>,
    pub(super) uniques: Vec<Unique>,
    /// Exclusion constraints, and keys WITHOUT OVERLAPS; their operators stand for equality.
    pub(super) exclusions: Vec<Unique>,
    /// Other indexes, whose expressions or predicates may fail for a row.
    pub(super) computed_indexes: Vec<Unique>,
    pub(super) foreign: Vec<Foreign>,
    pub(super) others: Vec<Other>,
}

impl Unique {
    /// `None` unless it is of columns as they are, and about all rows.
    fn plain(&self) -> Option<PlainKey<'_>> {
        let column = |part: &KeyPart| {
            let is_bare = part.expression.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let is_it = |column: &&String| {
                quote_ident(column) == part.expression || is_bare && **column == part.expression
            };
            self.columns.iter().find(is_it).cloned()
        };
        let columns = self.parts.iter().map(column).collect::<Option<Vec<String>>>()?;
        let plain =
            PlainKey { name: &self.name, columns, nulls_alike: self.nulls_alike, is_loose: self.is_loose };
        self.predicate.is_none().then_some(plain)
    }
}

impl Facts {
    /// Reads them; of a table that is going to be made, its key.
    ///
    /// # Errors
    /// Those of the session.
    pub async fn read(session: &Session, plan: &TablePlan) -> Result<Facts> {
        if plan.create.is_some() {
            return Ok(Facts::of_new(plan));
        }
        let mut reading = Reading::default();
        loop {
            let begun = session.client().batch_execute("BEGIN READ ONLY; SET LOCAL search_path = ''").await;
            begun.map_err(|error| session_error(&error, DOING))?;
            let read = Facts::read_all(session, plan).await;
            session.roll_back().await;
            match read {
                Err(error) if reading.is_again(&error).await => {}
                read => return read,
            }
        }
    }

    /// Rows may be stored otherwise than they come, or may not be seen.
    pub(crate) fn may_change_rows(&self) -> bool {
        self.is_changed || self.has_policies
    }

    /// The same of rows that come in from a staging table.
    pub fn may_change_arriving(&self) -> bool {
        self.may_change_rows() || self.is_rewritten
    }

    /// The table.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// The demands of its keys alone, with no other of these columns than theirs. `None` where something it
    /// demands may be about any column.
    pub(crate) fn of_keys(&self, filled: &BTreeSet<&str>) -> Option<Facts> {
        let about_any = self.is_partitioned
            || self.bounds.is_some()
            || !self.checks.is_empty()
            || !self.exclusions.is_empty()
            || self.columns.iter().any(|column| column.generated.is_some())
            || self.foreign.iter().any(|foreign| foreign.oid == self.oid)
            || !self.uniques.iter().all(|unique| unique.plain().is_some());
        if about_any {
            return None;
        }
        let of_uniques = self.uniques.iter().flat_map(|unique| &unique.columns);
        let keys: BTreeSet<&String> =
            of_uniques.chain(self.foreign.iter().flat_map(|foreign| &foreign.columns)).collect();
        let is_asked =
            |column: &Column| keys.contains(&column.name) || !filled.contains(column.name.as_str());
        let columns = self.columns.iter().filter(|column| is_asked(column)).cloned().collect();
        Some(Facts { columns, ..self.clone() })
    }

    /// All unique keys. `None` where one is not of columns alone, or where it counts for another row which of
    /// two that are alike is refused.
    pub(crate) fn plain_keys(&self) -> Option<Vec<PlainKey<'_>>> {
        let is_about_rows =
            !self.exclusions.is_empty() || self.foreign.iter().any(|foreign| foreign.oid == self.oid);
        if self.is_partitioned || is_about_rows {
            return None;
        }
        self.uniques.iter().map(Unique::plain).collect()
    }

    /// Rules join the rows with each other, or with the table by more than its keys: looking up would compare
    /// each with each.
    pub(crate) fn joins_rows(&self) -> bool {
        !self.exclusions.is_empty()
            || self.foreign.iter().any(|foreign| foreign.oid == self.oid)
            || self.uniques.iter().any(|unique| unique.nulls_alike)
    }

    /// Exclusion constraints are not asked about: that costs twice what it takes to store the rows.
    pub(crate) fn without_exclusions(mut self) -> Facts {
        let other = |exclusion: Unique| Other {
            what: "exclusion constraint".to_owned(),
            name: exclusion.name,
            partition: None,
        };
        self.others.extend(std::mem::take(&mut self.exclusions).into_iter().map(other));
        self
    }

    /// Nor are indexes of which no more can be told than that they fail: where one does, COPY says so of each
    /// row.
    pub(crate) fn without_computed_indexes(self) -> Facts {
        Facts { computed_indexes: Vec::new(), ..self }
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// Something is demanded of more than one row alone.
    pub(crate) fn has_keys(&self) -> bool {
        !self.uniques.is_empty() || !self.foreign.is_empty() || !self.exclusions.is_empty()
    }

    /// Queries can tell all that the table demands.
    pub(crate) fn has_rules_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// What partitions alone demand is not asked about: nobody keeps others from changing that.
    pub(crate) fn without_not_null_in_leaves(mut self) -> Facts {
        let columns: Vec<String> = self.not_null_in_leaves().into_keys().map(str::to_owned).collect();
        let other = |name| Other { what: "NOT NULL of column".to_owned(), name, partition: None };
        self.others.extend(columns.into_iter().map(other));
        self.leaves.iter_mut().for_each(|leaf| leaf.not_null.clear());
        self
    }

    /// The partitions in which a column is NOT NULL, which the table does not demand, by columns.
    pub(super) fn not_null_in_leaves(&self) -> BTreeMap<&str, Vec<&Leaf>> {
        let mut columns: BTreeMap<&str, Vec<&Leaf>> = BTreeMap::new();
        for leaf in &self.leaves {
            for column in &leaf.not_null {
                columns.entry(column).or_default().push(leaf);
            }
        }
        columns
    }

    async fn read_all(session: &Session, plan: &TablePlan) -> Result<Facts> {
        let oid = plan.table.oid;
        let ask = async |sql: &str| {
            let rows = session.client().query_typed(sql, &[(&oid, Type::OID)]).await;
            rows.map_err(|error| session_error(&error, "reading what the table demands"))
        };
        let table = ask(TABLE_SQL).await?;
        let flag = |at: usize| table.first().is_some_and(|row| row.get(at));
        let is_partitioned = flag(0);
        Ok(Facts {
            relation: plan.table.relation.clone(),
            oid,
            is_partitioned,
            ranged_by: table.first().and_then(|row| row.get(5)),
            bounds: table.first().and_then(|row| row.get(1)),
            has_policies: flag(2),
            is_changed: flag(3),
            is_rewritten: flag(4),
            leaves: match is_partitioned {
                true => ask(LEAVES_SQL).await?.iter().map(leaf).collect(),
                false => Vec::new(),
            },
            columns: ask(COLUMNS_SQL).await?.iter().map(column).collect(),
            checks: ask(CHECKS_SQL).await?.iter().map(check).collect::<Result<_>>()?,
            uniques: ask(UNIQUES_SQL).await?.iter().map(unique).collect::<Result<_>>()?,
            exclusions: ask(EXCLUSIONS_SQL).await?.iter().map(unique).collect::<Result<_>>()?,
            computed_indexes: ask(COMPUTED_INDEXES_SQL).await?.iter().map(unique).collect::<Result<_>>()?,
            foreign: ask(FOREIGN_SQL).await?.iter().map(foreign).collect(),
            others: ask(OTHERS_SQL).await?.iter().map(other).collect(),
        })
    }

    fn of_new(plan: &TablePlan) -> Facts {
        let key = plan.create.iter().flat_map(|create| &create.primary_key);
        let part = |name: &String| KeyPart {
            expression: quote_ident(name),
            equals: Some("OPERATOR(pg_catalog.=)".to_owned()),
            less: Some("OPERATOR(pg_catalog.<)".to_owned()),
            collation: None,
        };
        let parts: Vec<KeyPart> = key.clone().map(part).collect();
        let primary = Unique {
            name: "primary key".to_owned(),
            method: "btree".to_owned(),
            predicate: None,
            nulls_alike: false,
            parts,
            columns: key.cloned().collect(),
            is_loose: true,
            is_temporal: false,
            is_collated_otherwise: false,
        };
        Facts {
            relation: plan.table.relation.clone(),
            oid: 0,
            is_partitioned: false,
            ranged_by: None,
            bounds: None,
            leaves: Vec::new(),
            has_policies: false,
            is_changed: false,
            is_rewritten: false,
            columns: Vec::new(),
            checks: Vec::new(),
            uniques: Some(primary).filter(|primary| !primary.parts.is_empty()).into_iter().collect(),
            exclusions: Vec::new(),
            computed_indexes: Vec::new(),
            foreign: Vec::new(),
            others: Vec::new(),
        }
    }
}

fn column(row: &Row) -> Column {
    Column {
        name: row.get(0),
        type_name: row.get(1),
        not_null: row.get(2),
        default: row.get(3),
        generated: row.get(4),
        is_numbered: row.get(5),
        made_from: row.get(6),
        is_virtual: row.get(7),
        characters_max: row.get(8),
    }
}

fn check(row: &Row) -> Result<Check> {
    Ok(Check { name: row.get(0), expression: told(row, 1)?, columns: row.get(2) })
}

fn unique(row: &Row) -> Result<Unique> {
    let expressions: Vec<String> = told(row, 5)?;
    let equals: Vec<Option<String>> = row.get(6);
    let collations: Vec<Option<String>> = row.get(7);
    let less: Vec<Option<String>> = row.get::<_, Option<Vec<_>>>(12).unwrap_or_default();
    let less = less.into_iter().chain(std::iter::repeat(None));
    let parts = expressions.into_iter().zip(equals).zip(less).zip(collations);
    let part = |(((expression, equals), less), collation)| KeyPart { expression, equals, less, collation };
    Ok(Unique {
        name: row.get::<_, Option<String>>(1).unwrap_or_else(|| row.get(0)),
        method: row.get(2),
        predicate: row.get(3),
        nulls_alike: row.get(4),
        parts: parts.map(part).collect(),
        columns: row.get(8),
        is_loose: row.get(9),
        is_temporal: row.get(10),
        is_collated_otherwise: row.get(11),
    })
}

fn foreign(row: &Row) -> Foreign {
    Foreign {
        name: row.get(0),
        oid: row.get(1),
        other: Relation { schema: row.get(2), name: row.get(3) },
        is_partitioned: row.get(4),
        is_full: row.get::<_, &str>(5) == "f",
        columns: row.get(6),
        columns_there: row.get(7),
        equals: row.get(8),
        collations: row.get(9),
        has_period: row.get(10),
        fires: row.get(11),
    }
}

fn leaf(row: &Row) -> Leaf {
    Leaf { takes: row.get(0), not_null: row.get(1) }
}

fn other(row: &Row) -> Other {
    let is_own: bool = row.get(2);
    Other { what: row.get(0), name: row.get(1), partition: (!is_own).then(|| row.get(3)) }
}
