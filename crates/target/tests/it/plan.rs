//! Plans and chunks for tests.

use howdah_model::plan::Encode;
use howdah_model::{
    Care, Codec, CopyChunk, FilePlan, Format, Job, Jobs, LedgerChoice, Omitted, Origin, Plan, Shaping,
    TablePlan,
};
use howdah_target::copy;
use howdah_target::session::{Session, catalog};
use std::collections::BTreeMap;

/// Loads all columns of a table from csv.
pub(crate) async fn table(session: &Session, name: &str) -> TablePlan {
    let table = catalog::read_table(session, name).await.unwrap();
    let columns: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let copy_sql =
        copy::statement(&table.relation, &columns, &Format::csv(), session.server_version()).unwrap();
    let fields: Vec<Option<String>> = columns.into_iter().map(Some).collect();
    TablePlan {
        table,
        create: None,
        changes: Vec::new(),
        readings: vec![None; fields.len()],
        fields,
        dialect: None,
        care: Care::Server,
        format: Format::csv(),
        recode: None,
        encode: Encode::PassThrough,
        copy_sql,
        text_sql: None,
        binary: None,
        route: None,
        known: None,
        number: None,
        toast_compression: None,
        staging: None,
        notes: Vec::new(),
        unsure: Vec::new(),
        policies: None,
        outside: false,
        frozen: false,
    }
}

/// A plan of one file.
pub(crate) fn plan(job_id: &str, table: TablePlan) -> Plan {
    let job = Job {
        id: Some(job_id.to_owned()),
        sources: Vec::new(),
        table: None,
        format: Format::csv(),
        shaping: Shaping::default(),
        columns: None,
        map: BTreeMap::new(),
        ignore_extra: false,
        encode: howdah_model::EncodeChoice::Auto,
        after: None,
        sequences: howdah_model::SequencesChoice::default(),
        partitions: howdah_model::PartitionsChoice::Auto,
        create_partitions: None,
        max_decompressed_bytes: None,
        verify: howdah_model::Verify::None,
        rejects_of: None,
        resumes: None,
        if_done: howdah_model::IfDone::default(),
        known: howdah_model::KnownFiles::default(),
        once_more_until: None,
        toast_compression: howdah_model::ToastCompression::Auto,
        indexes: howdah_model::IndexesChoice::Keep,
        triggers: howdah_model::TriggersChoice::Keep,
        bad_records: howdah_model::BadRecords::default(),
        arrival: howdah_model::Arrival::default(),
        chunk_bytes: None,
        memory_bytes: 1 << 28,
        jobs: Jobs::Fixed(2),
        ledger: LedgerChoice::Schema("howdah".to_owned()),
        force: false,
        retry_for_ms: 1000,
        tune: None,
        guards: howdah_model::Guards::default(),
    };
    Plan {
        job_id: job_id.to_owned(),
        work_key: "work".to_owned(),
        identity: "identity".to_owned(),
        job,
        server_version: 150_000,
        chunk_bytes: 1 << 24,
        taper: None,
        record_bytes_max: 1 << 26,
        tables: vec![table],
        files: vec![file()],
        indexes: Vec::new(),
        triggers: Vec::new(),
        tuning: howdah_model::TuningPlan::default(),
        warnings: Vec::new(),
        value_settings: howdah_model::ValueSettings::new(),
        known: Vec::new(),
    }
}

fn file() -> FilePlan {
    FilePlan {
        location: "a \"file\".csv".to_owned(),
        real_location: None,
        stored_bytes: Some(10),
        version: Some("10-1".to_owned()),
        table_no: 0,
        codec: Codec::None,
        eol: None,
        data_start_byte: 0,
        data_end_byte: None,
        record_like: 0,
        foreign_escapes: false,
        other_table: false,
        found: None,
        typed: Vec::new(),
        evidence: Vec::new(),
        unsure: Vec::new(),
        ranged: true,
        rereadable: true,
        input_no: 0,
        left_out: false,
    }
}

/// Chunk `chunk_no` of file 0.
pub(crate) fn chunk(chunk_no: u64, records: u64, bytes: impl Into<bytes::Bytes>) -> CopyChunk {
    let bytes = bytes.into();
    let start_byte = chunk_no << 24;
    let end_byte = start_byte + bytes.len() as u64;
    let origin = Origin {
        file_no: 0,
        chunk_no,
        start_byte,
        end_byte,
        first_record: 1,
        records,
        omitted: Omitted::default(),
        digest: None,
    };
    CopyChunk { origin, bytes, faster: None, refused: None, aside: Vec::new() }
}
