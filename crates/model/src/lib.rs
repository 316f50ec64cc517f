//! The words of howdah: every type that crosses a crate border, and nothing else.
//!
//! In the order the data flows: a [`Job`] says what is wanted, a [`Plan`] what will be done to which
//! [`Table`], a [`CopyChunk`] carries records and where they came from, an [`Event`] tells listeners what
//! happened, a [`Summary`] what came of it, and an [`Error`] what went wrong and where.

pub mod arrival;
pub mod binary;
pub mod borders;
pub mod check;
pub mod chunk;
pub mod dialect;
pub mod environment;
pub mod error;
pub mod event;
pub mod format;
pub mod job;
pub mod plan;
pub mod reading;
pub mod route;
pub mod sqlstate;
pub mod summary;
pub mod table;
pub mod terminal;
pub mod tuning;
pub mod units;
pub mod verify;

pub use arrival::{Arrival, Changes, Keep, Mode, StagingPlan};
pub use binary::BinaryType;
pub use borders::{Borders, Taper};
pub use check::{BadPlace, CheckReport, CheckedFile, Finding, NotChecked};
pub use chunk::{Aside, ChunkId, CopyChunk, Doubt, Faster, Form, Omitted, Origin, Parcel, Receipt, Reject};
pub use dialect::{Dialect, Escape};
pub use error::{Error, ErrorKind, ErrorReport, Place, Result};
pub use event::{Event, Listener, Silent, Stage};
pub use format::{ColumnChoice, Eol, Format, FormatKind, Header};
pub use job::{
    After, BadRecords, EncodeChoice, Evolve, IfDone, IndexesChoice, Job, Jobs, KnownFiles, LedgerChoice,
    MaxErrors, Names, Nul, OnError, PartitionUnit, PartitionsChoice, RejectsOf, SequencesChoice, Shaping,
    SourceSpec, ToastCompression, Told, TriggersChoice,
};
pub use plan::{
    BinaryPlan, Bounds, Care, Codec, FilePlan, IndexFate, IndexesPlan, KnownFile, KnownTypes, NumberPlan,
    Plan, TablePlan, TriggersPlan, TriggersWay,
};
pub use reading::{DateOrder, Mend, Reading, ValueSettings};
pub use route::RoutePlan;
pub use summary::{
    FileSummary, LeftOut, Limit, LimitOf, ReadValues, SessionsStep, StepReason, Summary, TableSummary,
};
pub use table::{Column, NewColumn, NewTable, Relation, RelationKind, Table, TableChange};
pub use tuning::{Guards, ReplicaLag, Tune, TuneScope, Tuned, TuningPlan, UnloggedTable};
pub use units::{counted, plural, show_count, show_size};
pub use verify::{Verified, Verify};
