//! What puts an index, a constraint or a foreign key back, as entries of the journal.
//!
//! An index is one entry, so that several can be built side by side: CREATE INDEX locks against writers
//! alone. What locks harder, ADD CONSTRAINT and what is said of an index elsewhere, is an entry of its own
//! that is quickly done, but for constraints that build their indexes themselves. An index of a partitioned
//! table is put back as pg_dump does it: those of the partitions like any others, their parent alone, and
//! each attachment. A foreign key comes back as NOT VALID and is validated by another entry: if rows
//! contradict it, it still guards the rows to come.

use super::capture::What;
use crate::ledger::{NewUndo, UndoKind};
use crate::sql::{quote_ident, quote_literal, quote_relation};
use howdah_model::Relation;

/// The table that things belong to.
pub(super) struct Place {
    pub(super) relation: Relation,
    pub(super) table_oid: u32,
    /// Ready for SET.
    pub(super) search_path: String,
}

impl Place {
    /// Of what needs no `search_path`.
    pub(super) fn of(relation: &Relation, table_oid: u32) -> Place {
        Place { relation: relation.clone(), table_oid, search_path: "''".to_owned() }
    }

    fn entry(&self, kind: UndoKind, name: &str, definition: &str, statements: Vec<String>) -> NewUndo {
        NewUndo {
            kind,
            relation: self.relation.clone(),
            table_oid: self.table_oid,
            name: name.to_owned(),
            definition: definition.to_owned(),
            statements,
            compared_by_libc: false,
        }
    }

    fn table(&self) -> String {
        quote_relation(&self.relation)
    }

    /// Indexes live in the schema of their table.
    pub(super) fn sibling(&self, name: &str) -> String {
        quote_relation(&Relation { schema: self.relation.schema.clone(), name: name.to_owned() })
    }

    /// What the statements of a definition run under. `''` is the database's own tablespace.
    fn settings(&self, tablespace: &str) -> Vec<String> {
        vec![
            "SET LOCAL datestyle = 'ISO, MDY'".to_owned(),
            "SET LOCAL intervalstyle = 'postgres'".to_owned(),
            format!("SET LOCAL search_path = {}", self.search_path),
            format!("SET LOCAL default_tablespace = {}", quote_literal(tablespace)),
        ]
    }
}

/// An index as the catalog tells it.
pub(super) struct FoundIndex {
    pub(super) name: String,
    /// As the server tells it under an empty `search_path`.
    pub(super) definition: String,
    /// As it is to be read under that of its place.
    pub(super) create_sql: String,
    pub(super) what: What,
    /// Empty: that of the database.
    pub(super) tablespace: String,
    pub(super) comment: Option<String>,
    pub(super) deferrable: bool,
    pub(super) deferred: bool,
    pub(super) constraint: Option<String>,
    /// As it is to be read under the `search_path` of its place.
    pub(super) constraint_sql: Option<String>,
    pub(super) constraint_comment: Option<String>,
    /// Column number and target.
    pub(super) statistics: Vec<(i32, i32)>,
    pub(super) extensions: Vec<String>,
    pub(super) clustered: bool,
    pub(super) replica_identity: bool,
    /// A primary key of a column whose NOT NULL is its parent's alone (PostgreSQL 18): USING INDEX would make
    /// it the partition's own as well, for good.
    pub(super) inherits_not_null: bool,
    /// That of a partitioned table: it has no rows of its own, and parts where there are partitions.
    pub(super) partitioned: bool,
    /// Its storage parameters, ready for WITH.
    pub(super) options: Option<String>,
    /// A btree whose first column are strings that the server compares by functions of the C library.
    pub(super) compared_by_libc: bool,
}

impl FoundIndex {
    pub(super) fn drop_sql(&self, place: &Place) -> String {
        match self.what {
            What::Index => format!("DROP INDEX {}", place.sibling(&self.name)),
            _ => format!("ALTER TABLE {} DROP CONSTRAINT {}", place.table(), quote_ident(&self.name)),
        }
    }

    pub(super) fn entries(&self, place: &Place) -> Vec<NewUndo> {
        let mut entries =
            if self.partitioned { vec![self.without_partitions(place)] } else { self.built(place) };
        let marks = self.marks(place);
        if !marks.is_empty() {
            entries.push(place.entry(UndoKind::Marks, &self.name, "", marks));
        }
        entries
    }

    /// `ON ONLY`, which is how the server tells the definition of such an index.
    fn without_partitions(&self, place: &Place) -> NewUndo {
        let (kind, definition, create) = match self.constraint.as_deref() {
            None => (UndoKind::PartitionedIndex, self.definition.as_str(), self.create_sql.clone()),
            Some(constraint) => {
                let constraint_with = self.with_options(self.constraint_sql.as_deref().unwrap_or(constraint));
                let (table, name) = (place.table(), quote_ident(&self.name));
                let add = format!("ALTER TABLE ONLY {table} ADD CONSTRAINT {name} {constraint_with}");
                (UndoKind::PartitionedConstraint, constraint, add)
            }
        };
        let mut statements = place.settings(&self.tablespace);
        statements.push(create);
        statements.extend(self.said_of_index(place));
        statements.extend(self.said_of_constraint(place));
        place.entry(kind, &self.name, definition, statements)
    }

    /// The server tells storage parameters of exclusion constraints alone.
    fn with_options(&self, constraint: &str) -> String {
        let Some(options) = self.options.as_deref().filter(|_| self.what != What::Exclusion) else {
            return constraint.to_owned();
        };
        let when = [" DEFERRABLE INITIALLY DEFERRED", " DEFERRABLE"];
        let when = when.into_iter().find(|when| constraint.ends_with(when)).unwrap_or_default();
        let what = constraint.strip_suffix(when).unwrap_or(constraint);
        format!("{what} WITH ({options}){when}")
    }

    /// The index becomes part of its parent's.
    pub(super) fn attach(&self, place: &Place, parent: &str) -> NewUndo {
        let index = place.sibling(&self.name);
        let attach = format!("ALTER INDEX {parent} ATTACH PARTITION {index}");
        place.entry(UndoKind::Attach, &self.name, parent, vec![attach])
    }

    fn built(&self, place: &Place) -> Vec<NewUndo> {
        let constraint = self.constraint.as_deref().unwrap_or_default();
        if self.what == What::Exclusion || self.inherits_not_null {
            let mut statements = place.settings(&self.tablespace);
            let definition = self.with_options(self.constraint_sql.as_deref().unwrap_or(constraint));
            statements.push(self.add_constraint(place, &definition));
            statements.extend(self.said_of_index(place));
            statements.extend(self.said_of_constraint(place));
            let whole = place.entry(UndoKind::Constraint, &self.name, constraint, statements);
            return vec![NewUndo { compared_by_libc: self.compared_by_libc, ..whole }];
        }
        let mut statements = place.settings(&self.tablespace);
        statements.push(self.create_sql.clone());
        statements.extend(self.said_of_index(place));
        let index = place.entry(UndoKind::Index, &self.name, &self.definition, statements);
        let mut entries = vec![NewUndo { compared_by_libc: self.compared_by_libc, ..index }];
        if matches!(self.what, What::PrimaryKey | What::Unique) {
            let mut statements = vec![self.add_constraint(place, &self.using_index())];
            statements.extend(self.said_of_constraint(place));
            entries.push(place.entry(UndoKind::Constraint, &self.name, constraint, statements));
        }
        entries
    }

    /// Alone: before PostgreSQL 18, tables that inherit from it would get the NOT NULL of a primary key.
    fn add_constraint(&self, place: &Place, definition: &str) -> String {
        format!("ALTER TABLE ONLY {} ADD CONSTRAINT {} {definition}", place.table(), quote_ident(&self.name))
    }

    fn using_index(&self) -> String {
        let what = if self.what == What::PrimaryKey { "PRIMARY KEY" } else { "UNIQUE" };
        let deferrable = match (self.deferrable, self.deferred) {
            (false, _) => "",
            (true, false) => " DEFERRABLE",
            (true, true) => " DEFERRABLE INITIALLY DEFERRED",
        };
        format!("{what}{}{deferrable}", takes_index(&self.name))
    }

    fn said_of_index(&self, place: &Place) -> Vec<String> {
        let index = place.sibling(&self.name);
        let target = |(column, target): &(i32, i32)| {
            format!("ALTER INDEX {index} ALTER COLUMN {column} SET STATISTICS {target}")
        };
        let mut statements: Vec<String> = self.statistics.iter().map(target).collect();
        if let Some(comment) = &self.comment {
            statements.push(format!("COMMENT ON INDEX {index} IS {}", quote_literal(comment)));
        }
        statements
    }

    fn said_of_constraint(&self, place: &Place) -> Option<String> {
        let comment = self.constraint_comment.as_deref()?;
        Some(comment_on_constraint(place, &self.name, comment))
    }

    fn marks(&self, place: &Place) -> Vec<String> {
        let (table, index) = (place.table(), place.sibling(&self.name));
        let mut marks = Vec::new();
        if self.clustered {
            marks.push(format!("ALTER TABLE {table} CLUSTER ON {}", quote_ident(&self.name)));
        }
        if self.replica_identity {
            marks.push(format!(
                "ALTER TABLE {table} REPLICA IDENTITY USING INDEX {}",
                quote_ident(&self.name)
            ));
        }
        let depends =
            |name: &String| format!("ALTER INDEX {index} DEPENDS ON EXTENSION {}", quote_ident(name));
        marks.extend(self.extensions.iter().map(depends));
        marks
    }
}

/// What the statement of a constraint holds that is given an index which is there.
pub(super) fn takes_index(name: &str) -> String {
    format!(" USING INDEX {}", quote_ident(name))
}

/// A foreign key as the catalog tells it.
pub(super) struct FoundForeignKey {
    pub(super) name: String,
    pub(super) definition: String,
    pub(super) validated: bool,
    pub(super) comment: Option<String>,
    /// Those of its table, on every level, the upper ones first: they have it too.
    pub(super) partitions: Vec<(u32, Relation)>,
}

impl FoundForeignKey {
    pub(super) fn entries(&self, place: &Place) -> Vec<NewUndo> {
        let (table, name, literal) = (place.table(), quote_ident(&self.name), quote_literal(&self.name));
        // A definition that is not valid says so itself.
        let not_valid = if self.validated { " NOT VALID" } else { "" };
        let add = format!("ALTER TABLE {table} ADD CONSTRAINT {name} {}{not_valid}", self.definition);
        let comment = self.comment.as_deref().map(|text| comment_on_constraint(place, &self.name, text));
        let mut statements = place.settings("");
        statements.push(add);
        statements.extend(comment);
        statements.extend(self.for_detached(
            &format!("NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.conname = {literal})"),
            &format!("ADD CONSTRAINT {name} {}{not_valid}", self.definition),
        ));
        let mut entries = vec![place.entry(UndoKind::ForeignKey, &self.name, &self.definition, statements)];
        if self.validated {
            let mut validate = vec![format!("ALTER TABLE {table} VALIDATE CONSTRAINT {name}")];
            let is_new = format!(
                "EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.conname = {literal} \
                         AND k.contype = 'f' AND k.conparentid = 0::pg_catalog.oid AND NOT k.convalidated)"
            );
            validate.extend(self.for_detached(&is_new, &format!("VALIDATE CONSTRAINT {name}")));
            entries.push(place.entry(UndoKind::Validate, &self.name, &self.definition, validate));
        }
        entries
    }

    /// Behind what gives it to the table and its partitions: the same for those that were partitions when it
    /// was dropped and are none any more, which DETACH PARTITION leaves it. `lacks` says of the table `c`
    /// whether something is to be done. Where the journal has come from another database, other tables have
    /// these OIDs.
    fn for_detached(&self, lacks: &str, what: &str) -> Option<String> {
        if self.partitions.is_empty() {
            return None;
        }
        let known = |(oid, relation): &(u32, Relation)| {
            format!("({oid}::pg_catalog.oid, {})", quote_literal(&quote_relation(relation)))
        };
        let partitions: Vec<String> = self.partitions.iter().map(known).collect();
        let body = format!(
            "DECLARE part record; BEGIN \
                 FOR part IN SELECT * FROM (VALUES {}) AS v (oid, name) LOOP \
                     IF EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = part.oid \
                                AND c.oid = pg_catalog.to_regclass(part.name)::pg_catalog.oid \
                                AND pg_catalog.pg_has_role(c.relowner, 'USAGE') AND {lacks}) \
                     THEN EXECUTE 'ALTER TABLE ' || part.name || {}; END IF; \
                 END LOOP; \
             END",
            partitions.join(", "),
            quote_literal(&format!(" {what}"))
        );
        Some(format!("DO {}", quote_literal(&body)))
    }
}

/// The storage parameter, which was not set.
pub(super) const WORKERS: &str = "parallel_workers";

/// Builds of the table's indexes take so many workers: the statement that says so, and how it is undone.
pub(super) fn with_workers(place: &Place, workers: u32) -> (String, NewUndo) {
    let table = place.table();
    let reset = vec![format!("ALTER TABLE {table} RESET ({WORKERS})")];
    let undo = place.entry(UndoKind::Workers, WORKERS, &format!("{WORKERS}={workers}"), reset);
    (format!("ALTER TABLE {table} SET ({WORKERS} = {workers})"), undo)
}

fn comment_on_constraint(place: &Place, name: &str, comment: &str) -> String {
    format!("COMMENT ON CONSTRAINT {} ON {} IS {}", quote_ident(name), place.table(), quote_literal(comment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let relation = Relation { schema: "S".to_owned(), name: "a\"b".to_owned() };
        Place { relation, table_oid: 7, search_path: "pg_catalog".to_owned() }
    }

    #[test]
    fn a_primary_key_comes_back_as_an_index_and_a_constraint_that_uses_it() {
        let found = FoundIndex {
            name: "Key".to_owned(),
            definition: "CREATE UNIQUE INDEX \"Key\" ON ...".to_owned(),
            create_sql: "CREATE UNIQUE INDEX \"Key\" ON ...".to_owned(),
            what: What::PrimaryKey,
            tablespace: String::new(),
            comment: Some("it's".to_owned()),
            deferrable: true,
            deferred: true,
            constraint: Some("PRIMARY KEY (id)".to_owned()),
            constraint_sql: None,
            constraint_comment: None,
            statistics: vec![(1, 500)],
            extensions: Vec::new(),
            clustered: true,
            replica_identity: false,
            inherits_not_null: false,
            partitioned: false,
            options: Some("fillfactor='70'".to_owned()),
            compared_by_libc: true,
        };
        let entries = found.entries(&place());
        let kinds: Vec<UndoKind> = entries.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [UndoKind::Index, UndoKind::Constraint, UndoKind::Marks]);
        assert!(entries[0].compared_by_libc && !entries[1].compared_by_libc);
        assert_eq!(entries[0].statements[5], "ALTER INDEX \"S\".\"Key\" ALTER COLUMN 1 SET STATISTICS 500");
        assert_eq!(entries[0].statements[6], "COMMENT ON INDEX \"S\".\"Key\" IS 'it''s'");
        assert_eq!(
            entries[1].statements,
            ["ALTER TABLE ONLY \"S\".\"a\"\"b\" ADD CONSTRAINT \"Key\" PRIMARY KEY USING INDEX \"Key\" \
              DEFERRABLE INITIALLY DEFERRED"]
        );
        assert_eq!(entries[2].statements, ["ALTER TABLE \"S\".\"a\"\"b\" CLUSTER ON \"Key\""]);
        assert_eq!(found.drop_sql(&place()), "ALTER TABLE \"S\".\"a\"\"b\" DROP CONSTRAINT \"Key\"");
    }

    #[test]
    fn storage_parameters_stand_before_what_is_deferred() {
        let found = |options: Option<&str>| FoundIndex {
            name: "k".to_owned(),
            definition: String::new(),
            create_sql: String::new(),
            what: What::Unique,
            tablespace: String::new(),
            comment: None,
            deferrable: true,
            deferred: true,
            constraint: Some("UNIQUE (a) INCLUDE (b) DEFERRABLE INITIALLY DEFERRED".to_owned()),
            constraint_sql: None,
            constraint_comment: None,
            statistics: Vec::new(),
            extensions: Vec::new(),
            clustered: false,
            replica_identity: false,
            inherits_not_null: false,
            partitioned: true,
            options: options.map(str::to_owned),
            compared_by_libc: false,
        };
        let add = |options| found(options).entries(&place())[0].statements[4].clone();
        let start = "ALTER TABLE ONLY \"S\".\"a\"\"b\" ADD CONSTRAINT \"k\" UNIQUE (a) INCLUDE (b)";
        assert_eq!(
            add(Some("fillfactor='70'")),
            format!("{start} WITH (fillfactor='70') DEFERRABLE INITIALLY DEFERRED")
        );
        assert_eq!(add(None), format!("{start} DEFERRABLE INITIALLY DEFERRED"));
        let part = found(None).attach(&place(), "\"S\".\"p\"");
        assert_eq!(part.statements, ["ALTER INDEX \"S\".\"p\" ATTACH PARTITION \"S\".\"k\""]);
        assert_eq!((part.kind, part.definition.as_str()), (UndoKind::Attach, "\"S\".\"p\""));
    }

    #[test]
    fn a_foreign_key_that_was_not_valid_is_not_validated() {
        let mut found = FoundForeignKey {
            name: "f".to_owned(),
            definition: "FOREIGN KEY (a) REFERENCES s.t(a)".to_owned(),
            validated: true,
            comment: None,
            partitions: Vec::new(),
        };
        assert!(found.entries(&place())[0].statements[4].ends_with("REFERENCES s.t(a) NOT VALID"));
        assert_eq!(found.entries(&place())[1].kind, UndoKind::Validate);
        found.validated = false;
        found.definition.push_str(" NOT VALID");
        let entries = found.entries(&place());
        assert!(entries.len() == 1 && entries[0].statements[4].ends_with("REFERENCES s.t(a) NOT VALID"));
    }
}
