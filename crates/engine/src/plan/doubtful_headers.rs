//! First records that words alone make a header, or further ones that they add to it: rows they may be as
//! well, and would be lost. And those that were taken for rows, and are spelled like the names of the
//! columns.

use super::columns::find_column;
use super::finding::Found;
use super::head::Head;
use super::siblings::first_record;
use howdah_model::{Error, ErrorKind, Job, Result, Table};
use howdah_transcode::infer;
use std::collections::{HashMap, HashSet};

/// A header that is doubtful shares a name with the table that is there, or with another file: else it would
/// make columns of values. One that was told is none, nor is one of a file that comes alone to a table that
/// is to be made.
pub(super) fn expect_known_names(job: &Job, table: Option<&Table>, heads: &[Head]) -> Result<()> {
    let is_told = job.shaping.told.as_ref().is_none_or(|told| told.header.is_some());
    if is_told || job.columns.is_some() || (table.is_none() && heads.len() < 2) {
        return Ok(());
    }
    let is_doubtful =
        |head: &&Head| head.found.as_ref().is_some_and(|found| found.finding.is_header_doubtful());
    // Counted once: there may be thousands of files.
    let mut files_by_name: HashMap<String, usize> = HashMap::new();
    for head in heads {
        let names: HashSet<String> = head.names.iter().flatten().map(|name| infer::fold(name)).collect();
        names.into_iter().for_each(|name| *files_by_name.entry(name).or_default() += 1);
    }
    for head in heads.iter().filter(is_doubtful) {
        let is_known = |name: &String| {
            let wanted = job.map.get(name).unwrap_or(name);
            table.is_some_and(|table| find_column(table, wanted).is_some())
                || files_by_name.get(&infer::fold(name)).is_some_and(|files| *files > 1)
        };
        if !head.names.iter().flatten().any(is_known) {
            return Err(strange(table, head, has_other_header(head, heads)));
        }
    }
    match table {
        Some(table) => expect_no_names(table, heads),
        None => Ok(()),
    }
}

/// A first record that was taken for data does not hold the names of the table's columns, as it does where
/// these are numbers as the values are. A value may be spelled like the name of one column, and hardly of
/// each.
fn expect_no_names(table: &Table, heads: &[Head]) -> Result<()> {
    for head in heads {
        let Some((_, fields)) = first_record(head).filter(|(_, fields)| fields.len() > 1) else { continue };
        let mut columns: Vec<&str> =
            fields.iter().filter_map(|field| find_column(table, field)).map(|column| &*column.name).collect();
        columns.sort_unstable();
        columns.dedup();
        if columns.len() == fields.len() {
            let message = format!(
                "its first record was taken for data, and holds names of columns of {}",
                table.relation
            );
            return Err(Error::new(ErrorKind::Columns, message)
                .in_file(head.object().location())
                .with_hint("say --header if the first record is a header, --header=false if it is data"));
        }
    }
    Ok(())
}

/// Another file of the table has a header that is no matter of doubt.
fn has_other_header(doubtful: &Head, heads: &[Head]) -> bool {
    heads.iter().any(|head| {
        let is_sure = |found: &Found| found.finding.header_rows > 0 && !found.finding.is_header_doubtful();
        !std::ptr::eq(head, doubtful) && head.found.as_deref().is_some_and(is_sure)
    })
}

fn strange(table: Option<&Table>, head: &Head, others_have: bool) -> Error {
    let beside = table.map_or("the other files of its table".to_owned(), |table| table.relation.to_string());
    let records = head.found.as_ref().map_or(1, |found| found.finding.header_rows);
    let (what, hint) = if records > 1 {
        (
            "its first records may be a header or data, and share",
            "say --header if only the first of them is a header, --header=false if there is none",
        )
    } else if others_have {
        (
            "its first record may be a header or data, and shares",
            "if the first record is data, load the files without a header by a command of their own, with --header=false; if it is a \
             header, say --header",
        )
    } else {
        (
            "its first record may be a header or data, and shares",
            "say --header=false if the first record is data, --header if it is a header",
        )
    };
    Error::new(ErrorKind::Columns, format!("{what} no name with {beside}"))
        .in_file(head.object().location())
        .with_hint(hint)
}
