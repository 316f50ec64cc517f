//! In which form records are sent: COPY binary, COPY text or as the file has them. What the client can write
//! with certainty, where memory has room for it, and what costs both sides together least.
//!
//! The costs are those of `cost.rs`, counted on a sample of the file; `--encode` takes the choice away.

use super::cost;
use super::head::Head;
use super::known_types::{Types, read_types};
use super::tables::UNTOUCHED;
use super::{numbering, routing};
use crate::Context;
use crate::budget::{Layout, Scratch};
use howdah_model::plan::{BinaryPlan, Encode, TablePlan};
use howdah_model::{BinaryType, EncodeChoice, Format, Job, OnError, Result};
use howdah_target::copy;
use howdah_target::session::Session;
use howdah_target::session::column_types::ColumnTypes;
use howdah_transcode::encode::{BinaryEncoder, ColumnEstimate, Estimate};

/// The note of csv that is sent as text; an earlier run's plan has it already.
const AS_TEXT: &str = "csv records are sent as COPY text, which the server reads faster";
/// The beginning of the note of rows that are sent as binary.
const AS_BINARY: &str = "records are sent in COPY's binary format";
/// Where bad records do not end the load, one value in so many may be uncertain.
const UNCERTAIN_SHARE: u64 = 10;
/// Buffers that the rows of a chunk may take. Rows of many small numbers are longer than that, and cost the
/// server more to receive than it saves by not reading them.
const ROW_BUFFERS_MAX: u64 = 4;

/// The types of each table's columns, where records may be sent as binary.
pub(super) async fn look(
    context: &Context,
    session: &Session,
    job: &Job,
    tables: &[TablePlan],
) -> Result<Vec<Option<Types>>> {
    match job.encode {
        EncodeChoice::Auto | EncodeChoice::Binary => read_types(context, session, tables).await,
        _ => Ok(Vec::new()),
    }
}

/// Settles for each table in which form its records are sent, from samples of its files, where its columns
/// are of these types.
pub(super) fn choose(job: &Job, tables: &mut [TablePlan], placed: &[(u32, Head)], found: Vec<Option<Types>>) {
    if job.encode == EncodeChoice::Csv {
        tables.iter_mut().for_each(|table| table.text_sql = None);
    }
    for (no, (table, found)) in tables.iter_mut().zip(found).enumerate() {
        let Some((columns, read)) = found else { continue };
        let heads = placed.iter().filter(|(table_no, _)| usize::try_from(*table_no) == Ok(no));
        match binary(job, table, columns, read, heads.map(|(_, head)| head)) {
            Ok(binary) => table.binary = Some(binary),
            Err(Some(reason)) => table.notes.push(reason),
            Err(None) => {}
        }
    }
}

/// The plan for binary rows; otherwise why there are none, where that is worth a word.
fn binary<'h>(
    job: &Job,
    table: &TablePlan,
    columns: Vec<String>,
    read: ColumnTypes,
    heads: impl Iterator<Item = &'h Head>,
) -> Result<BinaryPlan, Option<String>> {
    let asked = job.encode == EncodeChoice::Binary;
    let unless_asked = |reason: String| asked.then(|| format!("not sent in binary: {reason}"));
    let mut known = Vec::new();
    for (column, found) in columns.iter().zip(read.columns) {
        let Some(found) = found else {
            return Err(unless_asked(format!("the values of {column} can be read by the server alone")));
        };
        known.push(found);
    }
    let (type_oids, types): (Vec<u32>, Vec<BinaryType>) = known.into_iter().unzip();
    let sampled = of_all_fields(table, &types);
    if !read.may_lock {
        return Err(unless_asked(
            "INSERT on the whole table is needed to keep its columns as they are".to_owned(),
        ));
    }
    if !read.usual_settings {
        return Err(unless_asked("the session's settings give values another meaning".to_owned()));
    }
    let mut all = Estimate::of_fields(sampled.len());
    for head in heads {
        let (format, eol, records) = head.sample();
        let encoder = BinaryEncoder::new(&format, eol, &sampled, &read.time_zone);
        // What is sampled as text is sent as the table's format says.
        let sends = BinaryEncoder::new(&chunk_format(table), eol, &types, &read.time_zone);
        let Some(encoder) = encoder.filter(|_| sends.is_some()) else {
            return Err(unless_asked("the format says what the server alone can carry out".to_owned()));
        };
        all.add(&encoder.estimate(records));
    }
    let seen = all.columns.iter().zip(&table.fields).zip(&table.readings);
    // Values in another spelling are rewritten before they get here.
    let is_uncertain = |seen: &ColumnEstimate| match job.bad_records.on_error {
        OnError::Stop => seen.uncertain > 0,
        // Single ones do not spoil the form of the others.
        OnError::Skip => seen.uncertain > seen.values / UNCERTAIN_SHARE,
    };
    let mut uncertain = seen.filter(|((seen, _), reading)| is_uncertain(seen) && reading.is_none());
    if let Some(((_, Some(column)), _)) = uncertain.next() {
        return Err(unless_asked(format!("values of {column} can be read by the server alone")));
    }
    let mut fields = table.fields.iter();
    all.columns.retain(|_| fields.next().is_some_and(Option::is_some));
    let costs = cost::of_record(&types, &type_oids, &all);
    let (text_ns, binary_ns) = (costs.text_ns.round() as u64, costs.binary_ns.round() as u64);
    if !asked && !cost::is_worth_it(&costs) {
        return Err(Some(format!(
            "not sent in binary: a record of these types costs about {binary_ns} ns of CPU so, {text_ns} as text"
        )));
    }
    let buffers = if all.bytes == 0 { 2 } else { (all.sent_bytes + all.sent_bytes / 10).div_ceil(all.bytes) };
    Ok(BinaryPlan {
        copy_sql: copy::binary_statement(table.copied_into(), &columns)
            .map_err(|error| unless_asked(error.message().to_owned()))?,
        columns,
        types,
        type_oids,
        time_zone: read.time_zone,
        text_ns,
        binary_ns,
        buffers: u32::try_from(buffers.clamp(1, ROW_BUFFERS_MAX)).unwrap_or(1),
    })
}

/// The types of all fields of the file, which samples have. Those that are left out are certain, whatever
/// they hold.
fn of_all_fields(table: &TablePlan, kept: &[BinaryType]) -> Vec<BinaryType> {
    let mut kept = kept.iter();
    let fields = table.fields.iter();
    let of_kept = |field: &Option<String>| field.as_ref().and_then(|_| kept.next().cloned());
    fields.map(of_kept).map(|of| of.unwrap_or(BinaryType::Text)).collect()
}

/// The format of the records of a chunk when they are to be encoded: that of the file, or COPY text where
/// fields have been left out.
pub(crate) fn chunk_format(table: &TablePlan) -> Format {
    match table.encode {
        Encode::PassThrough => table.format.clone(),
        Encode::CopyText => Format { encoding: table.format.encoding.clone(), ..Format::text() },
    }
}

/// The buffer that records without some fields are written to.
fn rewritten(table: &TablePlan) -> u32 {
    u32::from(table.encode == Encode::CopyText)
}

/// The further buffers that chunks of these tables need, or would use.
pub(super) fn scratch(tables: &[TablePlan]) -> Scratch {
    let needed = tables.iter().map(rewritten).max().unwrap_or(0);
    let useful = |table: &TablePlan| {
        let rows = table.binary.as_ref().map_or(0, |binary| binary.buffers);
        let rows = rows.max(u32::from(table.text_sql.is_some()));
        rewritten(table) + rows + routing::scratch(table, rows) + numbering::scratch(table, rows)
    };
    Scratch { needed, useful: tables.iter().map(useful).max().unwrap_or(0).max(needed) }
}

/// What there is no memory for is not done; the plan says what is.
pub(super) fn settle(tables: &mut [TablePlan], layout: &Layout) {
    routing::settle(tables, layout);
    for table in tables.iter_mut() {
        let further = layout.chunk_buffers.saturating_sub(1 + rewritten(table));
        table.binary = table.binary.take().filter(|binary| binary.buffers <= further);
        table.text_sql = table.text_sql.take().filter(|_| further > 0);
        if table.binary.is_none() && table.text_sql.is_none() {
            continue;
        }
        let notes = [UNTOUCHED, AS_TEXT, AS_BINARY];
        table.notes.retain(|note| !notes.iter().any(|known| note.starts_with(known)));
        let as_text = table.text_sql.is_some() || table.encode == Encode::CopyText;
        let otherwise = if as_text { "as COPY text" } else { "as they are" };
        table.notes.push(match &table.binary {
            None => AS_TEXT.to_owned(),
            Some(BinaryPlan { text_ns, binary_ns, .. }) => format!(
                "{AS_BINARY} where every value is certain (about {binary_ns} ns of CPU a record, {text_ns} as text), \
                 else {otherwise}"
            ),
        });
    }
    numbering::settle(tables, layout, rewritten);
}
