//! Statistics that are lost with an index on expressions when it is dropped. They do not come back with the
//! index, but by ANALYZE of its table; without them the planner guesses how many rows an expression finds.

use crate::Context;
use howdah_model::{Relation, Result};
use howdah_target::ledger::{Undo, UndoKind};
use howdah_target::upkeep;
use std::collections::{BTreeMap, BTreeSet};

/// The indexes of some entries of the journal.
pub(crate) struct Rebuilt {
    /// Table and name.
    indexes: Vec<(u32, String)>,
    relations: BTreeMap<u32, Relation>,
}

impl Rebuilt {
    /// Of an exclusion constraint, the index is part of it.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = &'a Undo>) -> Rebuilt {
        let built: Vec<&Undo> = entries
            .into_iter()
            .filter(|entry| matches!(entry.change.kind, UndoKind::Index | UndoKind::Constraint))
            .collect();
        Rebuilt {
            indexes: built.iter().map(|entry| (entry.change.table_oid, entry.change.name.clone())).collect(),
            relations: built
                .iter()
                .map(|entry| (entry.change.table_oid, entry.change.relation.clone()))
                .collect(),
        }
    }

    /// Renews the statistics of the tables that have indexes on expressions among these. Returns the tables
    /// of which it was done; what cannot be done is told.
    pub(crate) async fn analyze(&self, context: &Context) -> BTreeSet<Relation> {
        if self.indexes.is_empty() {
            return BTreeSet::new();
        }
        let relations = match self.on_expressions(context).await {
            Ok(relations) => relations,
            Err(error) => {
                context.tell(format!("statistics of indexes on expressions are not renewed: {error}"));
                return BTreeSet::new();
            }
        };
        let mut analyzed = BTreeSet::new();
        for relation in relations {
            match analyze(context, &relation).await {
                Ok(()) => drop(analyzed.insert(relation)),
                Err(error) => context.tell(format!("ANALYZE of {relation} was not done: {error}")),
            }
        }
        analyzed
    }

    async fn on_expressions(&self, context: &Context) -> Result<BTreeSet<Relation>> {
        let session = context.connection.open().await?;
        let indexes: Vec<(u32, &str)> =
            self.indexes.iter().map(|(table_oid, name)| (*table_oid, name.as_str())).collect();
        let tables = context.connection.attend(&session, upkeep::on_expressions(&session, &indexes)).await?;
        context.connection.keep(session);
        Ok(tables.iter().filter_map(|oid| self.relations.get(oid).cloned()).collect())
    }
}

async fn analyze(context: &Context, relation: &Relation) -> Result<()> {
    let session = context.connection.open().await?;
    context.connection.attend(&session, upkeep::analyze(&session, relation)).await
}
