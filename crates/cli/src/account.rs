//! The summary a load ends with, as a text to paste into a ticket.

use crate::printer;
use crate::units::{show_bytes, show_count, show_rows, show_seconds};
use howdah_engine::model::summary::Status;
use howdah_engine::model::{
    LeftOut, Limit, LimitOf, Mend, SessionsStep, Stage, Summary, Verify, counted, plural,
};
use howdah_engine::spelling;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Records left out that are listed with their places.
const LEFT_OUT_LISTED: usize = 20;
/// Files listed by name; of more, only those that are not complete.
const FILES_LISTED: usize = 20;

/// The text, several lines, without a line ending at the end.
pub fn text(summary: &Summary) -> String {
    let mut text = String::new();
    let ended = match summary.status {
        Status::Done => "done",
        Status::Failed => "FAILED",
        Status::Interrupted => "stopped",
    };
    let seconds = summary.wall_seconds.max(1e-9);
    let loaded = summary.rows_stored - summary.rows_stored_before;
    // As long as the user has waited.
    let waited = summary.planning_seconds + seconds;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "job {}  {ended} in {} (planning {}), {}, {} at most",
        printer::line(&summary.job),
        show_seconds(waited),
        show_seconds(summary.planning_seconds),
        counted(&show_count(summary.files.len() as u64), "file"),
        counted(summary.sessions, "session"),
    );
    let _ = writeln!(text, "server {}", summary.server);
    let _ = writeln!(
        text,
        "rows   {} at {}/s; bytes read {} at {}/s",
        show_count(loaded),
        show_count((loaded as f64 / seconds) as u64),
        show_bytes(summary.bytes_read),
        show_bytes((summary.bytes_read as f64 / seconds) as u64),
    );
    if summary.rows_stored_before > 0 {
        let _ = writeln!(
            text,
            "       {} {} stored by another run of this job",
            show_count(summary.rows_stored_before),
            plural(summary.rows_stored_before, "row more was", "rows more were")
        );
    }
    if summary.rows_waiting > 0 {
        let _ = writeln!(
            text,
            "       {} {} not come into their table",
            show_count(summary.rows_waiting),
            plural(
                summary.rows_waiting,
                "row was read into a staging table and has",
                "rows were read into staging tables and have"
            )
        );
    }
    let _ = writeln!(text, "time   {}", stages(summary));
    if !summary.waits.is_empty() {
        let _ = writeln!(text, "waits  {}", waits(summary));
    }
    if let Some(search) = search(&summary.sessions_trace) {
        let _ = writeln!(text, "search {search}");
    }
    if let Some(limit) = limit(summary) {
        let _ = writeln!(text, "limit  {limit}");
    }
    if summary.paused_seconds > 0.0 {
        let _ = writeln!(text, "paused for {}", show_seconds(summary.paused_seconds));
    }
    let _ = writeln!(text, "tries  {}", retries(summary.retries));
    list_files(&mut text, summary);
    list_changes(&mut text, summary);
    list_mends(&mut text, summary);
    tell_verified(&mut text, summary);
    let _ = write!(text, "{}", verdict(summary));
    text
}

/// What was found when the tables were compared with the sources.
fn tell_verified(text: &mut String, summary: &Summary) {
    let Some(verified) = &summary.verified else { return };
    let rows = show_rows(verified.rows);
    let _ = match (&verified.checksum, verified.by) {
        (Some(checksum), _) => {
            writeln!(text, "verify {rows} compared with the files read again: equal; checksum {checksum}")
        }
        (None, Verify::Checksum) => writeln!(
            text,
            "verify {rows} compared with the files read again, with others that were left out since: equal; no checksum of those that stay"
        ),
        (None, _) => {
            writeln!(text, "verify {rows} counted in the table: as many as were read and not rejected")
        }
    };
    if verified.rows_of_others > 0 {
        let others = show_count(verified.rows_of_others);
        let are = plural(verified.rows_of_others, "row more is", "rows more are");
        let _ = writeln!(text, "       {others} {are} there that this job has not stored");
    }
}

/// The check that every load ends with.
fn verdict(summary: &Summary) -> String {
    let (read, stored) = (show_count(summary.rows_read), show_count(summary.rows_stored));
    match summary.status {
        Status::Done
            if summary.rows_rejected > 0
                && summary.rows_read == summary.rows_stored + summary.rows_rejected =>
        {
            format!("check  read {read} = stored {stored} + rejected {}", show_count(summary.rows_rejected))
        }
        Status::Done if summary.rows_read == summary.rows_stored + summary.rows_rejected => {
            format!("check  read {read} = stored {stored}")
        }
        Status::Done => format!("check  read {read}, stored {stored}: NOT EQUAL"),
        // What failed came behind the rows: the proof that they are safe, an index, a foreign key.
        Status::Failed | Status::Interrupted if summary.files.iter().all(|file| file.done) => {
            format!("check  read {read}, stored {stored}; what comes after the rows is not done")
        }
        Status::Failed | Status::Interrupted => {
            format!("check  read {read} so far, stored {stored}; the rest is not in the table")
        }
    }
}

fn stages(summary: &Summary) -> String {
    let name = |stage: &Stage| match stage {
        Stage::Read => "read",
        Stage::Decompress => "decompress",
        Stage::Split => "split",
        Stage::Encode => "encode",
        Stage::Copy => "copy",
        Stage::Commit => "commit",
        Stage::Indexes => "indexes",
        Stage::Finish => "finish",
        Stage::Apply => "apply",
        Stage::Verify => "verify",
        Stage::Vacuum => "VACUUM",
        Stage::Analyze => "ANALYZE",
        Stage::Checkpoint => "CHECKPOINT",
    };
    let shown: Vec<String> = summary
        .stages
        .iter()
        .filter(|(_, seconds)| **seconds >= 0.005)
        .map(|(stage, seconds)| format!("{} {}", name(stage), show_seconds(*seconds)))
        .collect();
    if shown.is_empty() {
        "-".to_owned()
    } else {
        format!("{} (summed over threads and sessions)", shown.join(", "))
    }
}

/// How the number of sessions was found, where it is not the one that the load began with.
fn search(trace: &[SessionsStep]) -> Option<String> {
    let end = trace.iter().position(|step| step.settled)?;
    let (found, begun_with) = (&trace[end], trace[0].before);
    let tried: Vec<String> = trace[..=end].iter().map(|step| step.before.to_string()).collect();
    let found_after = show_seconds(found.seconds);
    let found_sessions = counted(found.after, "session");
    let text = || format!("{found_sessions} after {found_after}; tried {}", tried.join(", "));
    (found.after != begun_with).then(text)
}

fn waits(summary: &Summary) -> String {
    let mut waits: Vec<(&String, &f64)> = summary.waits.iter().collect();
    waits.sort_by(|one, other| other.1.total_cmp(one.1));
    let shown: Vec<String> =
        waits.iter().take(5).map(|(wait, share)| format!("{wait} {:.0} %", *share * 100.0)).collect();
    format!("{} of the sessions' time", shown.join(", "))
}

fn retries(count: u64) -> String {
    match count {
        0 => "nothing had to be tried again while rows came".to_owned(),
        count => format!(
            "{} {} tried again after a failure",
            show_count(count),
            plural(count, "step was", "steps were")
        ),
    }
}

/// What held the load back.
pub(crate) fn limit(summary: &Summary) -> Option<String> {
    let Limit { what, share, of } = summary.limit.as_ref()?;
    let of = match of {
        LimitOf::Time => "the time",
        LimitOf::Sessions => "what the sessions were seen at",
    };
    Some(format!("{what} ({:.0} % of {of})", share * 100.0))
}

fn list_files(text: &mut String, summary: &Summary) {
    let all = summary.files.len() <= FILES_LISTED;
    for file in summary.files.iter().filter(|file| all || !file.done).take(FILES_LISTED) {
        let state = if file.done { "" } else { "  not complete" };
        let rejected = match file.rows_rejected {
            0 => String::new(),
            count => format!(", {} rejected", show_count(count)),
        };
        let _ = writeln!(
            text,
            "file   {} -> {}: {}{rejected}, {}{state}",
            short(&file.location),
            file.table,
            show_rows(file.rows_stored),
            show_bytes(file.bytes_read)
        );
    }
    if !all {
        let done = summary.files.iter().filter(|file| file.done).count() as u64;
        let _ = writeln!(
            text,
            "files  {} of {} complete",
            show_count(done),
            show_count(summary.files.len() as u64)
        );
    }
}

/// Paths below the current directory are shown as the user would type them, each on one line whatever it
/// holds.
pub(crate) fn short(location: &str) -> Cow<'_, str> {
    let here = std::env::current_dir().ok();
    match seen_from(here.as_deref().and_then(Path::to_str).unwrap_or(""), location) {
        Cow::Borrowed(shown) => printer::line(shown),
        Cow::Owned(shown) => Cow::Owned(printer::line(&shown).into_owned()),
    }
}

/// A location as somebody in the directory `here` would type it. Only what begins with `here` is shortened;
/// `..` stays as it was written, because what it leads to depends on links.
fn seen_from<'a>(here: &str, location: &'a str) -> Cow<'a, str> {
    match location.strip_prefix(here).and_then(|rest| rest.strip_prefix('/')) {
        // The whole path, where `here` is unknown or the root.
        _ if here.is_empty() || here == "/" => location.into(),
        None | Some("") => location.into(),
        // Alone it would read as an option, or as standard input.
        Some(below) if below.starts_with('-') => format!("./{below}").into(),
        Some(below) => below.into(),
    }
}

/// What became of the rows of tables that these did not come into as they were read.
fn list_changes(text: &mut String, summary: &Summary) {
    let changed = summary.tables.iter().filter_map(|table| Some((table, table.changes?)));
    for (table, changes) in changed {
        let _ = write!(
            text,
            "table  {}: {} inserted, {} updated, {} unchanged, {} deleted",
            table.table,
            show_count(changes.inserted),
            show_count(changes.updated),
            show_count(changes.unchanged),
            show_count(changes.deleted)
        );
        if changes.duplicates > 0 {
            let records = counted(&show_count(changes.duplicates), "record");
            let _ = write!(text, "; {records} of a key that another one counts for");
        }
        if changes.held_back > 0 {
            let count = show_count(changes.held_back);
            let _ = write!(text, "; {count} held back by a trigger or policy");
        }
        let _ = writeln!(text);
    }
}

/// What was read in another spelling, passed over, mended and left out.
fn list_mends(text: &mut String, summary: &Summary) {
    for read in &summary.read {
        let _ = writeln!(
            text,
            "read   {}.{}: {} as {}",
            read.table,
            read.column,
            counted(&show_count(read.values), "value"),
            spelling(&read.reading)
        );
    }
    if summary.comments > 0 {
        let _ = writeln!(text, "passed over {}", counted(&show_count(summary.comments), "comment"));
    }
    let mended: Vec<String> = summary
        .mended
        .iter()
        .map(|(mend, count)| format!("{} {}", show_count(*count), mend_words(*mend, *count)))
        .collect();
    if !mended.is_empty() {
        let _ = writeln!(text, "mended {}", mended.join(", "));
    }
    for out in summary.left_out.iter().take(LEFT_OUT_LISTED) {
        let _ = writeln!(text, "out    {}: {}", place_of(out), out.reason);
    }
    if summary.left_out.len() > LEFT_OUT_LISTED {
        let _ = writeln!(text, "out    and more; --json lists the first of each file");
    }
    if summary.rows_rejected_before > 0 {
        let _ = writeln!(
            text,
            "out    {} of {} were left out by an earlier run of this job",
            show_count(summary.rows_rejected_before),
            show_count(summary.rows_rejected)
        );
    }
}

fn place_of(out: &LeftOut) -> String {
    let line = out.line.map(|line| format!(", line {line}")).unwrap_or_default();
    let byte = out.byte.map(|byte| format!(", byte {byte}")).unwrap_or_default();
    let column = out.column.as_ref().map(|column| format!(", column {column}")).unwrap_or_default();
    let sqlstate = out.sqlstate.as_ref().map(|code| format!(" (SQLSTATE {code})")).unwrap_or_default();
    let record = out.record.map(|record| format!(", record {record}")).unwrap_or_default();
    format!("{}{line}{record}{byte}{column}{sqlstate}", short(&out.file))
}

fn mend_words(mend: Mend, count: u64) -> String {
    let records = plural(count, "record", "records");
    match mend {
        Mend::ShortRow => format!("short {records} padded with NULL"),
        Mend::SurplusEmpty => format!("{records} with surplus empty fields"),
        Mend::StrayQuote => format!("{records} with a stray quote"),
        Mend::OtherQuotes => format!("{records} in another quote style"),
        Mend::OtherDelimiter => format!("{records} with another delimiter"),
        Mend::OtherLineEnding => format!("{records} with another line ending"),
        Mend::BrokenBytes => format!("{records} with broken bytes"),
        Mend::ByteOrderMark => format!("{records} behind a byte order mark"),
        Mend::NulBytes => format!("{records} with NUL bytes"),
        Mend::BlankRow => format!("blank {records} dropped"),
        Mend::LeftOut => format!("{records} left out"),
    }
}

#[cfg(test)]
mod tests {
    use super::{search, seen_from};
    use howdah_engine::model::{SessionsStep, StepReason};

    #[test]
    fn a_number_of_sessions_is_told_where_it_is_not_the_first() {
        let step = |seconds: f64, before, after, settled| SessionsStep {
            seconds,
            before,
            after,
            mb_per_second: 100.0,
            wait: None,
            wait_share: 0.0,
            reason: StepReason::Measured,
            settled,
        };
        let found =
            [step(2.0, 2, 3, false), step(4.0, 3, 5, false), step(6.0, 5, 3, true), step(9.0, 3, 4, false)];
        assert_eq!(search(&found).unwrap(), "3 sessions after 6.00 s; tried 2, 3, 5");
        assert_eq!(search(&found[..2]), None);
        assert_eq!(search(&[step(2.0, 2, 3, false), step(4.0, 3, 2, true)]), None);
        assert_eq!(search(&[]), None);
    }

    #[test]
    fn a_location_is_shown_as_the_user_would_type_it() {
        let cases = [
            ("/data/in/a.csv", "in/a.csv"),
            ("/data/../other/a.csv", "../other/a.csv"),
            ("/database/a.csv", "/database/a.csv"),
            ("/a.csv", "/a.csv"),
            ("/data", "/data"),
            ("/data/", "/data/"),
            ("/data/-", "./-"),
            ("/data/--to", "./--to"),
            ("-", "-"),
            ("s3://data/a.csv", "s3://data/a.csv"),
        ];
        for (location, shown) in cases {
            assert_eq!(seen_from("/data", location), shown);
        }
    }

    #[test]
    fn a_location_is_shown_on_one_line() {
        assert_eq!(super::short("/data/a\nfile   b.csv"), "/data/a\\u000afile   b.csv");
    }

    #[test]
    fn without_a_directory_to_start_from_the_whole_path_is_shown() {
        assert_eq!(seen_from("/", "/data/a.csv"), "/data/a.csv");
        assert_eq!(seen_from("", "/data/a.csv"), "/data/a.csv");
    }
}
