//! The values of records on their way to the server, one by one.

use howdah_transcode::cells::{Cells, Next, Record};
use howdah_transcode::encode::text_value;

/// Calls `each` with field number and value of every field of these lines of COPY text (`\t`, `\N`, `\n`;
/// whole lines) that is not NULL.
pub(crate) fn of_copy_text(lines: &[u8], mut each: impl FnMut(usize, &[u8])) {
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        for (no, field) in line.split(|&byte| byte == b'\t').enumerate() {
            if field == b"\\N" {
                continue;
            }
            if field.contains(&b'\\') {
                each(no, &text_value(field));
            } else {
                each(no, field);
            }
        }
    }
}

/// The same of whole records as the file has them, but for a bare `\N`: where it is not NULL, no type but
/// text holds it, and the load refuses it in any other. In quotes it is a value.
pub(crate) fn of_records(cells: &Cells, records: &[u8], mut each: impl FnMut(usize, &[u8])) {
    let (mut record, mut at) = (Record::default(), 0);
    while let Some(rest) = records.get(at..) {
        let length = match cells.read(rest, true, &mut record) {
            Next::Record { length, .. } => length,
            Next::Comment(length) => {
                at += length;
                continue;
            }
            Next::More | Next::End => return,
        };
        for (no, value) in record.values().enumerate() {
            if !record.is_null(no) && !is_null_word(&record, no) {
                each(no, value);
            }
        }
        at += length;
    }
}

/// COPY's NULL, neither quoted nor escaped.
pub(crate) fn is_null_word(record: &Record, no: usize) -> bool {
    record.value(no) == b"\\N" && !record.quoted(no) && !record.escaped(no)
}

/// The fields of the first `count` lines of COPY text, for people to look at; `None` is NULL.
pub(crate) fn preview(lines: &[u8], count: usize) -> Vec<Vec<Option<String>>> {
    let value =
        |field: &[u8]| (field != b"\\N").then(|| String::from_utf8_lossy(&text_value(field)).into_owned());
    lines
        .split_inclusive(|&byte| byte == b'\n')
        .take(count)
        .map(|line| {
            line.strip_suffix(b"\n").unwrap_or(line).split(|&byte| byte == b'\t').map(value).collect()
        })
        .collect()
}
