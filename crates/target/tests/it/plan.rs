//! Plans and chunks for tests.

use howdah_model::plan::Encode;
use howdah_model::{Care, Codec, CopyChunk, FilePlan, Format, Job, Jobs, Omitted, Origin, Plan, TablePlan};
use howdah_target::copy;
use howdah_target::session::{Session, catalog};

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
        jobs: Jobs::Fixed(2),
        retry_for_ms: 1000,
        ..Job::new(Vec::new(), None, Format::csv())
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
        header: Vec::new(),
        evidence: Vec::new(),
        unsure: Vec::new(),
        ranged: true,
        rereadable: true,
        input_no: 0,
        left_out: false,
        cut_as_bytes: None,
        has_changed: false,
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
