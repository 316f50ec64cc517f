//! What is tuned for a load and put back behind it, and what a load looks out for while it runs.

use crate::table::Relation;
use serde::{Deserialize, Serialize};

/// How far a load may go with settings. Each level includes those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tune {
    /// Nothing but what correctness needs.
    None,
    /// Settings of the load's own sessions.
    Session,
    /// That, and options of the tables while they load.
    #[default]
    Table,
    /// That, and settings of the whole server.
    Server,
}

/// What has a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TuneScope {
    /// The load's own sessions.
    Session,
    /// A table, or a leaf partition.
    Table,
    /// The server.
    Server,
}

/// One setting before, during and after the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    /// What has it.
    pub scope: TuneScope,
    /// The table, if it is one's.
    pub relation: Option<Relation>,
    /// Its name, as the server knows it.
    pub name: String,
    /// The value now. Of a table's option and of the server's `postgresql.auto.conf`, `None` says that it is
    /// not set there.
    pub before: Option<String>,
    /// The value in force now, where `before` is only where it is set.
    pub in_force: Option<String>,
    /// While the load runs.
    pub during: String,
    /// When it has ended: the same as before.
    pub after: Option<String>,
    /// What it is good for.
    pub gain: String,
    /// What it costs.
    pub risk: Option<String>,
}

/// What is tuned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningPlan {
    /// How far it goes.
    pub level: Tune,
    /// Setting by setting.
    pub settings: Vec<Tuned>,
    /// What is left as it is and why, one sentence each.
    pub notes: Vec<String>,
    /// What is unsafe about the server or the tables as they are, and why it matters.
    pub unsafe_as_it_is: Vec<String>,
    /// Tables whose rows a crash of the server takes.
    pub unlogged: Vec<UnloggedTable>,
}

/// A table that a crash of the server empties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnloggedTable {
    /// The table that is loaded.
    pub relation: Relation,
    /// All of its rows go; else those of some partitions.
    pub whole: bool,
    /// The numbers of the files that the server keeps them in, before the load, or as soon as the load has
    /// emptied the table. A crash leaves them as they are, and ALTER TABLE ... SET LOGGED does not.
    pub files: Vec<u32>,
}

/// How far replicas may be behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplicaLag {
    /// In WAL that they have not replayed.
    Bytes(u64),
    /// In milliseconds.
    Ms(u64),
}

/// What a load looks out for while it runs, and for how long it pauses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    /// Pause while a replica is further behind.
    pub max_replica_lag: Option<ReplicaLag>,
    /// Connections that are left to others.
    pub reserve_connections: u32,
    /// How long a pause may last before the load gives up.
    pub pause_for_ms: u64,
}

impl Default for Guards {
    /// Three connections: an application's health check, a monitor and a person.
    fn default() -> Guards {
        Guards { max_replica_lag: None, reserve_connections: 3, pause_for_ms: 600_000 }
    }
}
