//! Everything decided before a byte moves, in a form that can be printed, kept and shipped.
//!
//! A plan holds no secret and no row values.

use crate::arrival::StagingPlan;
use crate::binary::BinaryType;
use crate::borders::{Borders, Taper};
use crate::dialect::Dialect;
use crate::format::{Eol, Format};
use crate::job::Job;
use crate::reading::{Reading, ValueSettings};
use crate::route::RoutePlan;
use crate::table::{NewTable, Relation, Table, TableChange};
use crate::tuning::TuningPlan;
use serde::{Deserialize, Serialize};

/// Of so many files at most the summary says what is unsure; the files of a load are mostly written alike.
const UNSURE_FILES_MAX: usize = 20;

/// How a file is compressed, told by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Not compressed.
    None,
    /// RFC 1952, one or many members, BGZF included.
    Gzip,
    /// RFC 8878, one or many frames.
    Zstd,
    /// bzip2, one or many streams.
    Bzip2,
    /// The .xz container, one or many streams.
    Xz,
    /// The LZ4 frame format, one or many frames.
    Lz4,
}

/// How the bytes reach COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encode {
    /// The file's bytes go untouched, or as COPY text where that is faster and means the same.
    PassThrough,
    /// Records are rewritten to COPY text in UTF-8.
    CopyText,
}

/// Who looks at the records on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Care {
    /// The server: the options said in COPY's words how the files are written, and COPY refuses the rest.
    Server,
    /// The client too: the dialect was found, and what contradicts it is noticed. The bytes go untouched, but
    /// for spellings of NULL where these are several.
    Watched,
    /// The client reads each record and writes it anew as COPY text.
    Rewritten,
}

/// One table and how files like these are copied into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablePlan {
    /// The table as the catalog told it, or as it is going to be made.
    pub table: Table,
    /// It is made when the load begins.
    pub create: Option<NewTable>,
    /// What is done to it before rows come.
    pub changes: Vec<TableChange>,
    /// For each field of the file, the table column it fills; `None` drops the field (`--ignore-extra`).
    pub fields: Vec<Option<String>>,
    /// For each field of the file, how its values are spelled where PostgreSQL would not read them as they
    /// are.
    pub readings: Vec<Option<Reading>>,
    /// How the files are written, where this was found and not told in COPY's words.
    pub dialect: Option<Dialect>,
    /// Who looks at the records.
    pub care: Care,
    /// How the records are written as the splitter and the server meet them.
    pub format: Format,
    /// The files' encoding when the server cannot read it and the client rewrites it as UTF-8.
    pub recode: Option<String>,
    /// How the bytes reach COPY.
    pub encode: Encode,
    /// The COPY statement of every chunk, identifiers quoted, without HEADER.
    pub copy_sql: String,
    /// That of chunks whose records were csv and are sent as COPY text, which the server reads faster.
    pub text_sql: Option<String>,
    /// How records are written whose values the client can write in COPY's binary format, where that costs
    /// least.
    pub binary: Option<BinaryPlan>,
    /// How rows find the leaf partition that they are copied into, where the table is partitioned and the
    /// client can tell.
    pub route: Option<RoutePlan>,
    /// What the client knows of the columns' types, where records that the table does not take are to be
    /// found.
    pub known: Option<KnownTypes>,
    /// The column whose values come from a sequence by the chunk.
    pub number: Option<NumberPlan>,
    /// The `default_toast_compression` of the transactions that load it; `None` leaves it.
    pub toast_compression: Option<String>,
    /// The staging table that rows are copied into first, where they do not come into the table as they are
    /// read.
    pub staging: Option<StagingPlan>,
    /// What was decided and why, one sentence each.
    pub notes: Vec<String>,
    /// What cannot be told apart, each with the option that settles it.
    pub unsure: Vec<String>,
    /// How rows meet the policies of the table, where these apply to the role.
    pub policies: Option<PoliciesPlan>,
    /// Its rows come frozen, all in one transaction that empties it first.
    pub frozen: bool,
    /// Its rows go to another server or where a trigger puts them, which may commit before the ledger does.
    pub outside: bool,
}

/// How the rows of a chunk come into a table that the server takes no COPY into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoliciesPlan {
    /// The temporary table that they are copied into.
    pub relation: Relation,
    /// The statement that makes it, in the transaction of the chunk.
    pub make_sql: String,
    /// The statement that brings its rows into the table.
    pub insert_sql: String,
}

/// What no value of a column may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Characters of a `varchar(n)` or `char(n)`; spaces at the end do not count.
    pub chars_max: Option<u32>,
    /// The type as the server writes it.
    pub type_name: String,
    /// NULL is refused, and nothing could put a value in its place.
    pub not_null: bool,
}

impl Bounds {
    /// The server may take it.
    pub fn may_hold(&self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return !self.not_null };
        let Some(most) = self.chars_max.map(|most| most as usize).filter(|most| value.len() > *most) else {
            return true;
        };
        let spaces = value.iter().rev().take_while(|byte| **byte == b' ').count();
        let begins_character = |byte: &&u8| **byte & 0xc0 != 0x80;
        value[..value.len() - spaces].iter().filter(begins_character).count() <= most
    }
}

/// Types by which the client can tell many values that the server would take, and some that it would not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTypes {
    /// Those of the columns, in the order of the fields.
    pub types: Vec<BinaryType>,
    /// And what their values may not be.
    pub bounds: Vec<Bounds>,
    /// The session's TimeZone.
    pub time_zone: String,
}

impl TablePlan {
    /// The relation that a chunk has its rows in when it is committed: the table, or its staging table.
    pub fn stored_in(&self) -> &Relation {
        self.staging.as_ref().map_or(&self.table.relation, |staging| &staging.relation)
    }

    /// The relation that COPY takes the rows of a chunk into: the same, or a temporary table that they come
    /// from.
    pub fn copied_into(&self) -> &Relation {
        self.policies.as_ref().map_or_else(|| self.stored_in(), |policies| &policies.relation)
    }

    /// The table was in the catalog when this was planned.
    pub fn is_there(&self) -> bool {
        self.table.oid != 0
    }

    /// The dialect of files that nobody reads right by what COPY is told of them.
    pub fn own_dialect(&self) -> Option<&Dialect> {
        let dialect = self.dialect.as_ref()?;
        (self.care == Care::Rewritten || dialect.to_format().is_none()).then_some(dialect)
    }

    /// Records pass as they are, but that NULL has several spellings in them and one when they are sent.
    pub fn respells_null(&self) -> bool {
        self.care == Care::Watched && self.own_dialect().is_some()
    }
}

/// How records are sent in COPY's binary format. A chunk with a value that is not certain goes as it would
/// without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinaryPlan {
    /// The COPY statement.
    pub copy_sql: String,
    /// The columns in the order of the fields, unquoted.
    pub columns: Vec<String>,
    /// How the values of each are written.
    pub types: Vec<BinaryType>,
    /// `pg_attribute.atttypid` of each: the bytes mean something else to another type.
    pub type_oids: Vec<u32>,
    /// The session's TimeZone.
    pub time_zone: String,
    /// What a record costs client and server as text, in nanoseconds of CPU, as far as that is known.
    pub text_ns: u64,
    /// The same in binary.
    pub binary_ns: u64,
    /// Chunk buffers that the rows of one chunk take.
    pub buffers: u32,
}

/// A column that the files lack and a sequence fills. The client takes as many values from the sequence as a
/// chunk has rows, and sends them with the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberPlan {
    /// The column, unquoted.
    pub column: String,
    /// The sequence.
    pub sequence: Relation,
    /// The length of a value: 2, 4 or 8.
    pub number_bytes: u8,
    /// As the table's `copy_sql`, with the column as the last.
    pub copy_sql: String,
    /// As its `text_sql`.
    pub text_sql: Option<String>,
    /// As that of its `binary`.
    pub binary_sql: Option<String>,
    /// Chunk buffers that the rows of one chunk take.
    pub buffers: u32,
}

/// What becomes of the indexes, keys and foreign keys of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexesPlan {
    /// The table.
    pub relation: Relation,
    /// The table is made by this load, so that the catalog cannot tell yet what it has: all of it is built
    /// behind the last row.
    pub new: bool,
    /// About how many rows are to come.
    pub rows_to_come: u64,
    /// About how many bytes of files they are.
    pub bytes_to_come: u64,
    /// Dropped before the first row and built again behind the last one.
    pub rebuilt: Vec<IndexFate>,
    /// What the table's `parallel_workers` are until then, so that they sort in little memory.
    pub workers: Option<u32>,
    /// Kept as they are.
    pub kept: Vec<IndexFate>,
    /// What is said of the table as a whole.
    pub notes: Vec<String>,
}

/// One index, key or foreign key, and why it stays or goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexFate {
    /// Its name, unquoted.
    pub name: String,
    /// What it is, in words: `index`, `primary key` ...
    pub what: String,
    /// Why.
    pub reason: String,
}

/// What becomes of the triggers that rows of this load would fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggersPlan {
    /// The table.
    pub relation: Relation,
    /// How they are kept from firing, if they are.
    pub way: TriggersWay,
    /// What that means, or what they cost.
    pub notes: Vec<String>,
    /// They cost enough to say so when the load begins.
    pub costly: bool,
}

/// How triggers are kept from firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggersWay {
    /// They fire, or there is none.
    Keep,
    /// By `session_replication_role` in the transactions of the load.
    Replica,
    /// By ALTER TABLE ... DISABLE TRIGGER, until the load ends.
    Disable,
}

/// One file of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePlan {
    /// A display name that can be opened again: path, `-` or URL without credentials.
    pub location: String,
    /// Where the links in that path led, where there are any.
    pub real_location: Option<String>,
    /// Bytes as stored (compressed), where known.
    pub stored_bytes: Option<u64>,
    /// What must stay the same between runs: ETag, or size and modification time. `None` for stdin.
    pub version: Option<String>,
    /// Index into [`Plan::tables`].
    pub table_no: u32,
    /// How it is compressed.
    pub codec: Codec,
    /// How its records end; `None` when the file has no complete line.
    pub eol: Option<Eol>,
    /// Plain bytes before the first data record: byte order mark, title rows and header. Counted in UTF-8
    /// where the client rewrites the encoding.
    pub data_start_byte: u64,
    /// Where the data ends before the file does (totals, notes, a second table), in plain bytes of the file.
    pub data_end_byte: Option<u64>,
    /// Lines of the table's width, or of delimiters alone, that stand before or behind it, and any right
    /// behind its last record, that are taken for titles, totals, notes or blank lines.
    pub record_like: u64,
    /// Backslashes in its sample are none of COPY's text format.
    pub foreign_escapes: bool,
    /// Another table begins where this one ends.
    pub other_table: bool,
    /// How it is written, in one line, where this was found.
    pub found: Option<String>,
    /// For each field: its values at the beginning are numbers, days or the like, so that text there may be
    /// names of another table. Empty where options say how the file is written.
    pub typed: Vec<bool>,
    /// The names in its header, where how it is written was found: a record that says them again is refused.
    pub header: Vec<String>,
    /// What that was found from.
    pub evidence: Vec<String>,
    /// What cannot be told apart, each with the option that settles it.
    pub unsure: Vec<String>,
    /// It can be cut by byte ranges and read in parallel (not compressed, ranges available).
    pub ranged: bool,
    /// It can be read again (not stdin).
    pub rereadable: bool,
    /// Its number in the order in which the sources were given.
    pub input_no: u32,
    /// This run leaves it out, though it is the job's: another job has loaded it since.
    #[serde(skip)]
    pub left_out: bool,
    /// The stored bytes by which the files before it are cut, where it has changed since: chunks of these are
    /// in.
    pub cut_as_bytes: Option<u64>,
    /// It has changed since the job began, which has stored nothing of it: this run takes it as it is.
    #[serde(skip)]
    pub has_changed: bool,
}

impl FilePlan {
    /// It has changed since the job began: before this run, or before an earlier one.
    pub fn has_ever_changed(&self) -> bool {
        self.has_changed || self.cut_as_bytes.is_some()
    }
}

/// A file that a finished job has loaded into the table that it would go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// As that job wrote it.
    pub location: String,
    /// The table, `schema.name`.
    pub table: String,
    /// The latest job that has.
    pub job_id: String,
    /// When that job finished: RFC 3339, UTC, whole seconds.
    pub at: String,
    /// The table was dropped or made anew since, and holds rows: whether those of the file are among them,
    /// nobody knows.
    #[serde(default)]
    pub made_anew: bool,
}

/// A job made concrete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The job's identity in the ledger.
    pub job_id: String,
    /// Digest of the job without its sources' versions; equal for a run of the same files after a change.
    pub work_key: String,
    /// Digest of the work key and the version of every file.
    pub identity: String,
    /// What was asked.
    pub job: Job,
    /// The server's `server_version_num`.
    pub server_version: u32,
    /// Bytes of plain data between chunk borders, or the most of it where they taper.
    pub chunk_bytes: u64,
    /// Borders that are closer together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taper: Option<Taper>,
    /// No single record may be longer.
    pub record_bytes_max: u64,
    /// Targets.
    pub tables: Vec<TablePlan>,
    /// Sources, the largest first.
    pub files: Vec<FilePlan>,
    /// What becomes of the tables' indexes, once for each table that has any.
    pub indexes: Vec<IndexesPlan>,
    /// What becomes of the tables' triggers, once for each table that has any.
    pub triggers: Vec<TriggersPlan>,
    /// What is tuned and put back.
    pub tuning: TuningPlan,
    /// What others may meet though the load goes on: said before anything is made.
    pub warnings: Vec<String>,
    /// How sessions read values.
    pub value_settings: ValueSettings,
    /// Files that are in their tables already: left out, or loaded once more. Not kept in the ledger.
    pub known: Vec<KnownFile>,
}

impl Plan {
    /// What could not be told of its first files and of its tables, each with the name and the option that
    /// settles it.
    #[must_use]
    pub fn unsure(&self) -> Vec<String> {
        let mut all = Vec::new();
        for file in self.files.iter().take(UNSURE_FILES_MAX) {
            all.extend(file.unsure.iter().map(|unsure| format!("{}: {unsure}", file.location)));
        }
        for table in &self.tables {
            for unsure in &table.unsure {
                let told = format!("{}: {unsure}", table.table.relation);
                if !all.contains(&told) {
                    all.push(told);
                }
            }
        }
        all
    }

    /// A file of this plan.
    #[must_use]
    pub fn file(&self, file_no: u32) -> &FilePlan {
        &self.files[file_no as usize]
    }

    /// A table of this plan.
    #[must_use]
    pub fn table(&self, table_no: u32) -> &TablePlan {
        &self.tables[table_no as usize]
    }

    /// The table that a file goes to.
    #[must_use]
    pub fn table_of(&self, file_no: u32) -> &TablePlan {
        self.table(self.file(file_no).table_no)
    }

    /// Where the chunks of a file begin and end.
    #[must_use]
    pub fn borders(&self, file_no: u32) -> Borders {
        let file = self.file(file_no);
        let Some(taper) = self.taper else { return Borders::even(self.chunk_bytes) };
        let chunk_bytes = if file.ranged { self.chunk_bytes } else { taper.in_order_bytes };
        // All sessions begin with the ranges of one file, or with a compressed file each.
        let first_files = if file.ranged { 1 } else { taper.sessions().max(1) };
        let borders = if taper.rises && file_no < first_files {
            Borders::rising(chunk_bytes, taper)
        } else {
            Borders::even(chunk_bytes)
        };
        if !file.ranged {
            return borders;
        }
        let end_byte = file.stored_bytes.unwrap_or(0).min(file.data_end_byte.unwrap_or(u64::MAX));
        if end_byte <= taper.least_bytes.min(self.chunk_bytes) {
            // One chunk, whatever is behind it, and there may be many files as small.
            return borders;
        }
        // While sessions find work in the files behind, none waits for the last chunk of this one.
        let enough_bytes = self.chunk_bytes.saturating_mul(taper.share.into());
        let mut behind_bytes = 0_u64;
        for other in &self.files[file_no as usize + 1..] {
            if behind_bytes >= enough_bytes {
                break;
            }
            behind_bytes =
                behind_bytes.saturating_add(other.cut_as_bytes.or(other.stored_bytes).unwrap_or(0));
        }
        borders.tapering(taper, end_byte.saturating_add(behind_bytes))
    }
}
