//! Progress on stderr while a load runs: bars where somebody watches, plain lines where not.
//!
//! A listener of the engine's events like any other: it counts, which is all that the load's threads wait
//! for. What is to be shown is written by a thread of its own, a few times a second ([`drawer`]).

mod drawer;

use crate::account;
use crate::printer::Printer;
use crate::shaping;
use crate::units::{show_bytes, show_count, show_rows, show_seconds};
use drawer::Canvas;
use howdah_engine::model::{Codec, Event, Listener, Plan, Result};
use howdah_engine::no_thread;
use indicatif::{MultiProgress, ProgressDrawTarget};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files that are drawn at once; the others show up as these finish.
const BARS_MAX: usize = 12;
/// Of more files than these no line is written for each that is in: the total says how many are.
const FILES_TOLD_MAX: usize = 100;
/// How often a plain line is written.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How often it is looked whether one is due, where no event asks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the total is redrawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// A line that takes longer to be written is written to nobody, for now: a slow terminal takes one in
/// milliseconds.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);
/// Lines that wait to be written meanwhile; only warnings are kept besides.
const LINES_MAX: usize = 1000;
/// How long the end of a load waits for those lines. Behind it nothing is held up by a terminal but the
/// command itself.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);

/// Shows what happens.
pub struct Progress(Arc<Shared>);

struct Shared {
    printer: Printer,
    state: Mutex<State>,
    /// There is something to be shown.
    changed: Condvar,
    /// It is.
    shown: Condvar,
}

struct State {
    /// The first byte was read: what was looked at before says nothing about how fast the load is.
    started: Option<Instant>,
    drawn: Instant,
    /// Somebody watches bars.
    has_screen: bool,
    quiet: bool,
    lines: Vec<Line>,
    /// Lines for which there was no room since then.
    lines_dropped: u64,
    /// It is not to be waited until the next look.
    due: bool,
    /// The thread is at it: since when at the line, or the bars, that it writes.
    writing_since: Option<Instant>,
    /// Whoever has something to tell waits until it is written: the thread may be held up for good.
    over: bool,
    files: Vec<File>,
    /// Files that have a bar. There may be many files, and this is asked for every block that is read.
    bars: BTreeSet<usize>,
    rows: u64,
    /// Of these, stored by another run, which says nothing about how fast this one is.
    rows_before: u64,
    bytes_stored: u64,
    /// Plain bytes of chunks that are under way, when the sessions were last looked at.
    bytes_sent: u64,
    bytes_known: Option<u64>,
    sessions: String,
    paused: Option<String>,
    /// What the load is at while no rows are copied, and since when.
    phase: Option<(String, Instant)>,
    ended: bool,
}

/// What is told of a load, until this is dropped: then all of it is written, unless nobody takes it.
pub struct Telling(Arc<Shared>);

impl Drop for Telling {
    fn drop(&mut self) {
        let shared = &self.0;
        let mut state = shared.state.lock();
        // Also of a load that has failed before it had anything to sum up.
        state.end();
        shared.changed.notify_all();
        shared.shown.wait_while_for(&mut state, |state| state.is_telling(), SHOWN_WITHIN);
        state.over = true;
    }
}

/// A sentence for the user.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Remark(String),
    /// A file is in, which the summary says as well.
    FileDone(String),
    Warning(String),
}

/// What is to be shown now.
struct View {
    lines: Vec<Line>,
    screen: Screen,
}

/// What becomes of the bars.
enum Screen {
    /// There are none, or it is not time to draw.
    Unchanged,
    Cleared,
    Drawn(Total, Vec<Bar>),
}

struct Total {
    bytes_known: Option<u64>,
    bytes_passed: u64,
    line: String,
}

struct Bar {
    file_no: usize,
    location: String,
    stored_bytes: Option<u64>,
    bytes_passed: u64,
    rows: u64,
}

struct File {
    location: String,
    stored_bytes: Option<u64>,
    bytes_read: u64,
    /// Passed over, as they are in the table already.
    bytes_skipped: u64,
    /// Of those read, in the table. Not known where the file is compressed: what is stored is counted in
    /// plain bytes.
    bytes_in: Option<u64>,
    rows: u64,
    done: bool,
}

impl File {
    fn new(location: String, stored_bytes: Option<u64>, is_plain: bool) -> File {
        File {
            location,
            stored_bytes,
            bytes_read: 0,
            bytes_skipped: 0,
            bytes_in: is_plain.then_some(0),
            rows: 0,
            done: false,
        }
    }

    /// Of the bytes read, those whose rows are in the table; of a compressed file those read.
    fn bytes_in(&self) -> u64 {
        match self.bytes_in {
            Some(bytes) if !self.done => bytes.min(self.bytes_read),
            _ => self.bytes_read,
        }
    }

    /// In the table, or passed over. Never all of the file before its last chunk is in.
    fn bytes_passed(&self) -> u64 {
        let passed = self.bytes_in() + self.bytes_skipped;
        let most = self.stored_bytes.filter(|_| !self.done).map(|all| all.saturating_sub(1));
        most.map_or(passed, |most| passed.min(most))
    }
}

impl Progress {
    /// Draws bars if somebody watches, else writes lines; with `--quiet` nothing but warnings, and what is
    /// unsure.
    ///
    /// # Errors
    /// `Local`, when no thread can be had.
    pub fn new(printer: Printer) -> Result<Progress> {
        let screen = printer.draws().then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        // A terminal that cannot move its cursor (TERM=dumb) gets lines.
        let screen = screen.filter(|screen| !screen.is_hidden());
        let state = Mutex::new(State::new(screen.is_some(), printer.quiet()));
        let canvas = Canvas::new(printer.clone(), screen);
        let shared =
            Arc::new(Shared { printer, state, changed: Condvar::default(), shown: Condvar::default() });
        let of_thread = Arc::clone(&shared);
        let drawing = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || drawer::draw(&of_thread, canvas));
        drawing.map_err(|error| no_thread(&error))?;
        Ok(Progress(shared))
    }

    /// All that is told is written when what comes back is dropped. Nothing is drawn from then on.
    pub fn telling(&self) -> Telling {
        Telling(Arc::clone(&self.0))
    }

    /// Waits until nothing is left to be written, however long nobody takes it: for who is about to write to
    /// standard error himself, and may end the process behind it.
    pub(crate) fn wait_until_written(&self) {
        self.0.shown.wait_while(&mut self.0.state.lock(), |state| state.is_telling());
    }
}

impl Listener for Progress {
    fn on_event(&self, event: &Event) {
        let Progress(shared) = self;
        let mut state = shared.state.lock();
        state.count(event);
        if state.over {
            let lines = std::mem::take(&mut state.lines);
            drop(state);
            lines.iter().for_each(|line| line.write(&shared.printer));
        } else if state.due {
            shared.changed.notify_all();
        }
    }
}

impl State {
    fn new(has_screen: bool, quiet: bool) -> State {
        let now = Instant::now();
        State {
            started: None,
            drawn: now,
            has_screen,
            quiet,
            lines: Vec::new(),
            lines_dropped: 0,
            due: false,
            writing_since: None,
            over: false,
            files: Vec::new(),
            bars: BTreeSet::new(),
            rows: 0,
            rows_before: 0,
            bytes_stored: 0,
            bytes_sent: 0,
            bytes_known: None,
            sessions: String::new(),
            paused: None,
            phase: None,
            ended: false,
        }
    }

    fn count(&mut self, event: &Event) {
        match event {
            Event::Planned { plan } => {
                for line in shaping::found(plan) {
                    self.remark(line);
                }
                if self.quiet {
                    plan.unsure().into_iter().for_each(|unsure| self.warning(unsure));
                }
                self.begin(plan);
            }
            Event::Read { file_no, bytes } => self.read(*file_no, *bytes),
            Event::Skipped { file_no, bytes } => self.skipped(*file_no, *bytes),
            Event::Stored { file_no, rows, bytes, before } => {
                self.stored(*file_no, *rows, if *before { None } else { Some(*bytes) });
            }
            Event::Lost { file_no, rows } => self.lost(*file_no, *rows),
            Event::FileDone { file_no } => {
                let line = self.file_done(*file_no);
                if self.files.len() <= FILES_TOLD_MAX {
                    self.line(Line::FileDone(line));
                }
            }
            Event::Sessions { open, waits, sent_bytes } => {
                self.sessions = show_sessions(*open, waits);
                self.bytes_sent = *sent_bytes;
            }
            Event::Retry { reason, delay } => {
                self.remark(format!("trying again in {}: {reason}", show_seconds(delay.as_secs_f64())));
            }
            Event::Paused { reason } => {
                if let Some(reason) = reason {
                    self.remark(format!("paused: {reason}"));
                }
                self.paused.clone_from(reason);
            }
            Event::Phase { what } => {
                self.phase = what.clone().map(|what| {
                    let before = self.phase.as_ref().filter(|(before, _)| step(before) == step(&what));
                    let since = before.map_or_else(Instant::now, |(_, since)| *since);
                    (what, since)
                });
                self.sessions.clear();
            }
            Event::Notice { message } => self.remark(message.clone()),
            Event::Warning { message } => self.warning(message.clone()),
            Event::Done { .. } => self.end(),
            _ => {}
        }
    }

    fn warning(&mut self, text: String) {
        self.lines.push(Line::Warning(text));
        self.due = true;
    }

    fn remark(&mut self, text: String) {
        self.line(Line::Remark(text));
    }

    fn line(&mut self, line: Line) {
        if self.quiet {
            return;
        }
        self.due = true;
        let is_stuck = self.writing_since.is_some_and(|since| since.elapsed() >= TAKEN_WITHIN);
        if !is_stuck || self.lines.len() < LINES_MAX {
            self.lines.push(line);
            return;
        }
        self.lines_dropped += 1;
        let is_spare = |line: &Line| matches!(line, Line::FileDone(_));
        if !is_spare(&line)
            && let Some(spare) = self.lines.iter().position(is_spare)
        {
            self.lines.remove(spare);
            self.lines.push(line);
        }
    }

    /// Something is to be written, or is being written.
    fn is_telling(&self) -> bool {
        self.due || self.writing_since.is_some()
    }

    /// What is to be shown now; lines are shown once.
    fn view(&mut self) -> View {
        let mut lines = std::mem::take(&mut self.lines);
        let dropped = std::mem::take(&mut self.lines_dropped);
        if dropped > 0 {
            let what = if dropped == 1 { "line is" } else { "lines are" };
            let text = format!("{} {what} left out: nobody took any for a while", show_count(dropped));
            lines.push(Line::Remark(text));
        }
        let is_planning = self.files.is_empty();
        let tells_total = !(self.quiet || self.ended || is_planning && self.phase.is_none());
        if tells_total && !self.has_screen && self.drawn.elapsed() >= LINE_EVERY {
            self.drawn = Instant::now();
            lines.push(Line::Remark(self.total_line()));
        }
        let screen = match (tells_total, self.has_screen && self.drawn.elapsed() >= DRAW_EVERY) {
            (false, _) => Screen::Cleared,
            (true, false) => Screen::Unchanged,
            (true, true) => {
                self.drawn = Instant::now();
                self.draw()
            }
        };
        View { lines, screen }
    }

    /// Goes through all files, of which there may be many.
    fn draw(&self) -> Screen {
        let total = Total {
            bytes_known: self.bytes_known,
            bytes_passed: self.bytes_passed(),
            line: self.total_line(),
        };
        let bar = |no: &usize| {
            let file = self.files.get(*no)?;
            Some(Bar {
                file_no: *no,
                location: file.location.clone(),
                stored_bytes: file.stored_bytes,
                bytes_passed: file.bytes_passed(),
                rows: file.rows,
            })
        };
        Screen::Drawn(total, self.bars.iter().filter_map(bar).collect())
    }

    fn begin(&mut self, plan: &Plan) {
        self.phase = None;
        self.files = plan
            .files
            .iter()
            .map(|file| File::new(file.location.clone(), file.stored_bytes, file.codec == Codec::None))
            .collect();
        self.bytes_known = plan.files.iter().map(|file| file.stored_bytes).sum();
    }

    fn read(&mut self, file_no: u32, bytes: u64) {
        let no = file_no as usize;
        let Some(file) = self.files.get_mut(no) else { return };
        self.started.get_or_insert_with(Instant::now);
        // What a crash of the server took is read once more.
        file.bytes_read = (file.bytes_read + bytes).min(file.stored_bytes.unwrap_or(u64::MAX));
        if self.has_screen && !file.done && self.bars.len() < BARS_MAX {
            self.bars.insert(no);
        }
    }

    fn skipped(&mut self, file_no: u32, bytes: u64) {
        if let Some(file) = self.files.get_mut(file_no as usize) {
            file.bytes_skipped += bytes;
        }
    }

    /// `bytes` of what this run has stored; none of what another one had.
    fn stored(&mut self, file_no: u32, rows: u64, bytes: Option<u64>) {
        self.rows += rows;
        match bytes {
            Some(bytes) => {
                self.bytes_stored += bytes;
                self.bytes_sent = self.bytes_sent.saturating_sub(bytes);
            }
            None => self.rows_before += rows,
        }
        if let Some(file) = self.files.get_mut(file_no as usize) {
            file.rows += rows;
            if let (Some(bytes_in), Some(bytes)) = (&mut file.bytes_in, bytes) {
                *bytes_in += bytes;
            }
        }
    }

    fn lost(&mut self, file_no: u32, rows: u64) {
        self.rows = self.rows.saturating_sub(rows);
        if let Some(file) = self.files.get_mut(file_no as usize) {
            file.rows = file.rows.saturating_sub(rows);
        }
    }

    fn file_done(&mut self, file_no: u32) -> String {
        let Some(file) = self.files.get_mut(file_no as usize) else { return String::new() };
        file.done = true;
        self.bars.remove(&(file_no as usize));
        format!(
            "{}: {} from {}",
            account::short(&file.location),
            show_rows(file.rows),
            show_bytes(file.bytes_read)
        )
    }

    fn end(&mut self) {
        (self.ended, self.due) = (true, true);
        self.bars.clear();
    }

    fn bytes_read(&self) -> u64 {
        self.files.iter().map(|file| file.bytes_read).sum()
    }

    fn bytes_passed(&self) -> u64 {
        self.files.iter().map(File::bytes_passed).sum()
    }

    fn bytes_in(&self) -> u64 {
        self.files.iter().map(File::bytes_in).sum()
    }

    /// Sent and not in. Of compressed files all counts as in that was read.
    fn bytes_in_flight(&self) -> u64 {
        let is_open = |file: &&File| file.bytes_in.is_some() && !file.done;
        let open = self.files.iter().filter(is_open);
        self.bytes_sent.min(open.map(|file| file.bytes_read.saturating_sub(file.bytes_in())).sum())
    }

    fn total_line(&self) -> String {
        if let Some((phase, since)) = &self.phase {
            let lasts = since.elapsed();
            let lasts = (lasts >= LINE_EVERY).then(|| format!(" ({})", show_seconds(lasts.as_secs_f64())));
            let lasts = lasts.unwrap_or_default();
            if self.files.is_empty() {
                return format!("{phase}{lasts}");
            }
            return format!("{}, {phase}{lasts}", show_rows(self.rows));
        }
        let seconds = self.started.map_or(Duration::ZERO, |since| since.elapsed()).as_secs_f64().max(1e-9);
        let (read, passed) = (self.bytes_read(), self.bytes_passed());
        let mut line = format!(
            "{}, {} rows/s, {}/s",
            show_rows(self.rows),
            show_count((self.rows.saturating_sub(self.rows_before) as f64 / seconds) as u64),
            show_bytes((self.bytes_stored as f64 / seconds) as u64),
        );
        if let Some(all) = self.bytes_known.filter(|all| *all > 0 && read > 0) {
            let is_done = self.files.iter().all(|file| file.done);
            if !self.has_screen {
                // Rounded down: all is said of all alone.
                let percent = (passed as f64 / all as f64).min(1.0) * 100.0;
                line.push_str(&format!(", {} %", percent.floor()));
            }
            // As fast as what was sent so far: a chunk that takes long is not in for as long. Before the
            // first is, or when all was sent and waits, nobody knows.
            let sent = self.bytes_in_flight();
            let (came, left) = (self.bytes_in() + sent, all.saturating_sub(passed + sent));
            let waits = left <= self.files.len() as u64;
            if is_done || self.bytes_in() > 0 && !waits {
                let left = left as f64 * seconds / came as f64;
                line.push_str(&format!(", {} left", show_seconds(left)));
            }
        } else {
            line.push_str(&format!(", {} read", show_bytes(read)));
        }
        if self.files.len() > FILES_TOLD_MAX {
            let (done, all) = (self.files.iter().filter(|file| file.done).count(), self.files.len());
            line.push_str(&format!(", {} of {} files", show_count(done as u64), show_count(all as u64)));
        }
        if let Some(reason) = &self.paused {
            line.push_str(", paused: ");
            line.push_str(reason);
        } else if !self.sessions.is_empty() {
            line.push_str(", ");
            line.push_str(&self.sessions);
        }
        line
    }
}

fn show_sessions(open: u32, waits: &[(String, u32)]) -> String {
    let shown: Vec<String> = waits.iter().map(|(wait, sessions)| format!("{sessions} {wait}")).collect();
    let sessions = if open == 1 { "session" } else { "sessions" };
    if shown.is_empty() {
        format!("{open} {sessions}")
    } else {
        format!("{open} {sessions} ({})", shown.join(", "))
    }
}

/// What a step is called; how far it is stands behind a colon.
fn step(what: &str) -> &str {
    what.split_once(':').map_or(what, |(step, _)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(bytes: u64) -> State {
        let mut state = State::new(false, false);
        state.files = vec![File::new("a.csv".to_owned(), Some(bytes), true)];
        state.bytes_known = Some(bytes);
        state.started = Instant::now().checked_sub(Duration::from_secs(10));
        state
    }

    #[test]
    fn what_another_run_has_stored_counts_for_the_share_and_not_for_the_speed() {
        let mut state = state(1000);
        state.skipped(0, 600);
        state.stored(0, 6000, None);
        state.read(0, 200);
        state.stored(0, 2000, Some(200));
        let line = state.total_line();
        let rate = line.split(", ").nth(1).unwrap().trim_end_matches(" rows/s");
        let rate: u32 = rate.parse().unwrap();
        assert!(line.starts_with("8,000 rows, ") && (150..=200).contains(&rate), "{line}");
        assert!(line.contains(", 80 %, 10.") && line.ends_with(" s left"), "{line}");
    }

    #[test]
    fn what_was_sent_is_not_taken_for_stored() {
        let mut state = state(1000);
        state.read(0, 1000);
        let line = state.total_line();
        assert!(line.contains(", 0 %") && !line.contains("left"), "{line}");
        state.stored(0, 3000, Some(500));
        let line = state.total_line();
        assert!(line.contains(", 50 %, 10.") && line.ends_with(" s left"), "{line}");
        // A compressed file, of which it is not known how much is in.
        let files = vec![File::new("a.csv.gz".to_owned(), Some(1000), false)];
        let mut state = State { files, ..state };
        state.read(0, 1000);
        let line = state.total_line();
        assert!(line.contains(", 99 %") && !line.contains("left"), "{line}");
        state.file_done(0);
        let line = state.total_line();
        assert!(line.contains(", 100 %, 0"), "{line}");
    }

    #[test]
    fn the_rest_takes_as_long_as_what_was_sent_did() {
        let mut state = state(1000);
        state.read(0, 800);
        state.stored(0, 1000, Some(200));
        let sessions = |sent_bytes| Event::Sessions { open: 1, waits: Vec::new(), sent_bytes };
        // By what is in, it would be 40 s, and more each second until the next chunk is in.
        state.count(&sessions(300));
        assert!(state.total_line().contains(", 20 %, 10."), "{}", state.total_line());
        state.stored(0, 1500, Some(300));
        assert!(state.total_line().contains(", 50 %, 10."), "{}", state.total_line());
        // No more than was read was sent.
        state.count(&sessions(900));
        assert!(state.total_line().contains(", 50 %, 2."), "{}", state.total_line());
        // Planning took its time before.
        let files = vec![File::new("a.csv".to_owned(), Some(1000), true)];
        let mut state = State { files, started: None, bytes_stored: 0, bytes_sent: 0, ..state };
        state.read(0, 200);
        assert!(state.started.is_some_and(|since| since.elapsed() < Duration::from_secs(5)));
    }

    #[test]
    fn a_file_is_drawn_when_another_one_has_ended() {
        let mut state = State::new(true, false);
        let files = 0..BARS_MAX + 2;
        state.files = files.map(|no| File::new(no.to_string(), Some(9), true)).collect();
        let read_all = |state: &mut State| (0..).take(BARS_MAX + 2).for_each(|no| state.read(no, 1));
        let drawn = |state: &mut State| {
            state.drawn = Instant::now().checked_sub(DRAW_EVERY).unwrap();
            let Screen::Drawn(_, bars) = state.view().screen else { panic!("it is time to draw") };
            assert!(matches!(state.view().screen, Screen::Unchanged), "drawn at every look");
            bars.iter().map(|bar| bar.file_no).collect::<Vec<_>>()
        };
        read_all(&mut state);
        assert_eq!(drawn(&mut state), (0..BARS_MAX).collect::<Vec<_>>());
        state.file_done(3);
        read_all(&mut state);
        assert_eq!(drawn(&mut state), (0..=BARS_MAX).filter(|no| *no != 3).collect::<Vec<_>>());
    }

    #[test]
    fn while_many_files_are_looked_at_it_is_said_how_many() {
        let mut state = State::new(false, false);
        let view = |state: &mut State| {
            state.drawn = Instant::now().checked_sub(LINE_EVERY).unwrap();
            state.view().lines
        };
        assert_eq!(view(&mut state), []);
        let what = "looking at the files: 200 of 5000".to_owned();
        state.count(&Event::Phase { what: Some(what.clone()) });
        assert_eq!(view(&mut state), [Line::Remark(what)]);
        state.count(&Event::Phase { what: None });
        assert_eq!(view(&mut state), []);
    }

    #[test]
    fn of_many_files_it_is_told_how_many_are_in_and_not_each() {
        for (files, lines) in [(FILES_TOLD_MAX, FILES_TOLD_MAX), (FILES_TOLD_MAX + 1, 0)] {
            let mut state = State::new(false, false);
            state.files = (0..files).map(|no| File::new(no.to_string(), Some(9), true)).collect();
            (0..files as u32).for_each(|file_no| state.count(&Event::FileDone { file_no }));
            assert_eq!(state.view().lines.len(), lines);
            assert_eq!(
                state.total_line().contains(", 101 of 101 files"),
                lines == 0,
                "{}",
                state.total_line()
            );
        }
    }

    fn tell_many(state: &mut State) {
        state.files = vec![File::new("a.csv".to_owned(), None, true)];
        state.count(&Event::FileDone { file_no: 0 });
        for no in 1..LINES_MAX + 3 {
            state.count(&Event::Notice { message: no.to_string() });
        }
        state.count(&Event::FileDone { file_no: 0 });
        state.count(&Event::Warning { message: "look".to_owned() });
    }

    #[test]
    fn of_lines_that_nobody_takes_warnings_are_kept() {
        let mut state = State::new(false, false);
        state.writing_since = Instant::now().checked_sub(TAKEN_WITHIN);
        tell_many(&mut state);
        let lines = state.view().lines;
        assert_eq!(lines.len(), LINES_MAX + 2);
        // The first notice that found no room took that of the file that is in.
        assert_eq!(lines[0], Line::Remark("1".to_owned()));
        assert_eq!(lines[LINES_MAX - 1], Line::Remark(LINES_MAX.to_string()));
        assert_eq!(lines[LINES_MAX], Line::Warning("look".to_owned()));
        let told = "4 lines are left out: nobody took any for a while".to_owned();
        assert_eq!(lines[LINES_MAX + 1], Line::Remark(told));
        assert!(state.view().lines.is_empty());
    }

    #[test]
    fn many_lines_at_once_are_all_told_where_they_are_taken() {
        for since in [None, Some(Instant::now())] {
            let mut state = State::new(false, false);
            state.writing_since = since;
            tell_many(&mut state);
            assert_eq!(state.view().lines.len(), LINES_MAX + 5);
        }
    }

    #[test]
    fn while_no_rows_are_copied_it_is_said_what_the_load_is_at() {
        let mut state = state(1000);
        state.read(0, 1000);
        state.stored(0, 5000, Some(1000));
        let now = Instant::now();
        state.phase = Some(("building 3 indexes".to_owned(), now));
        assert_eq!(state.total_line(), "5,000 rows, building 3 indexes");
        state.phase =
            Some(("building 3 indexes".to_owned(), now.checked_sub(Duration::from_secs(75)).unwrap()));
        assert_eq!(state.total_line(), "5,000 rows, building 3 indexes (75.0 s)");
    }
}
